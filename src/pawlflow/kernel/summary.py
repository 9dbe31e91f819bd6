"""Summary: what an instance is, seen from outside. Its state by counters, and by seed vocabulary.

The four lenses are total functions: every state of the model has a name in each vocabulary.
"""

from typing import Any, Final, Literal

from pawlflow.kernel.state import (
    BACKOFF,
    CORRECTING,
    ESCALATED,
    READY,
    RUNNING,
    STATUS_NAMES,
    SUCCEEDED,
    UNDO_BACKOFF,
    UNDO_DONE,
    UNDO_FAILED,
    UNDO_NONE,
    UNDO_PENDING,
    UNDO_RUNNING,
    WAITING,
    Instance,
)

InstanceState = Literal[
    "created",
    "queued",
    "running",
    "waiting",
    "escalated",
    "compensating",
    "completed",
    "failed",
    "cancelled",
]
LENSES: Final = ("control-plane", "kernel", "ioa", "ores")


def instance_state(state: Instance) -> InstanceState:
    """The state of an instance, from counters alone."""
    if state.outcome is not None:
        return state.outcome
    if state.compensating:
        return "compensating"
    if state.started is None:
        return "queued" if state.queued else "created"
    counts = state.counts
    if counts[READY] or counts[RUNNING] or counts[BACKOFF] or counts[CORRECTING]:
        return "running"
    if counts[ESCALATED]:
        return "escalated"
    return "waiting" if counts[WAITING] else "running"


def lens(state: Instance) -> dict[str, str]:
    """The instance in all four vocabularies."""
    return {
        "control-plane": control_plane(state),
        "kernel": kernel(state),
        "ioa": ioa(state),
        "ores": ores(state),
    }


def control_plane(state: Instance) -> str:
    """Spec 000. With parallel branches, the most pressing one speaks for the instance."""
    summary = instance_state(state)
    if summary in CONTROL_PLANE:
        return CONTROL_PLANE[summary]
    counts = state.counts
    pressing = (
        (counts[ESCALATED], "Escalated"),
        (state.waits.get("approval", 0), "AwaitingApproval"),
        (counts[CORRECTING], "Correcting"),
        (counts[RUNNING] + counts[BACKOFF], "AwaitingAgent"),
        (counts[READY], "AssigningTask"),
    )
    return next((name for count, name in pressing if count), "Running")


CONTROL_PLANE: Final[dict[str, str]] = {
    "created": "Created",
    "queued": "Created",
    "compensating": "Compensating",
    "completed": "Completed",
    "failed": "Failed",
    "cancelled": "Cancelled",
}


def kernel(state: Instance) -> str:
    """Spec 002: waiting while anything is in flight."""
    summary = instance_state(state)
    if summary in ("completed", "failed"):
        return summary
    if summary == "cancelled":
        return "failed"
    in_flight = state.counts[RUNNING] or state.counts[BACKOFF] or state.undoing is not None
    outside = summary in ("waiting", "escalated", "compensating")
    return "waiting" if in_flight or outside else "running"


def ioa(state: Instance) -> str:
    """Spec 003. A full rollback counts as completed there; blocked means a human is needed."""
    summary = instance_state(state)
    if summary == "failed":
        return "completed" if state.rollback == "full" else "failed"
    if summary == "waiting":
        return "blocked" if state.waits.get("approval") else "executing"
    return IOA[summary]


IOA: Final[dict[str, str]] = {
    "created": "idle",
    "queued": "queued",
    "running": "executing",
    "escalated": "blocked",
    "compensating": "compensating",
    "completed": "completed",
    "cancelled": "failed",
}


def ores(state: Instance) -> str:
    """Spec 004."""
    summary = instance_state(state)
    if summary == "failed" and state.rollback == "full":
        return "compensated"
    return ORES[summary]


ORES: Final[dict[str, str]] = {
    "created": "pending",
    "queued": "pending",
    "running": "in_progress",
    "waiting": "in_progress",
    "escalated": "in_progress",
    "compensating": "compensating",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "failed",
}


def step_status(state: Instance, step: int) -> str:
    """The status of a step, by name."""
    return STATUS_NAMES[state.status(step)]


def step_undo(state: Instance, step: int) -> str:
    """What became of a step's effect."""
    unit = state.units[step]
    if unit is None or not state.compensating:
        return "none"
    if unit.undo == UNDO_NONE:
        read_only = unit.status == SUCCEEDED and not state.plan.steps[step].mutates
        return "not_required" if read_only else "none"
    return UNDO_NAMES[unit.undo]


UNDO_NAMES: Final[dict[int, str]] = {
    UNDO_PENDING: "pending",
    UNDO_RUNNING: "running",
    UNDO_BACKOFF: "running",
    UNDO_DONE: "done",
    UNDO_FAILED: "failed",
}


def error_of(state: Instance) -> dict[str, Any] | None:
    """What decided the failure: the step (None: the instance itself), its class, code and words."""
    closing = state.closing
    if closing is None or closing.failure is None:
        return None
    unit = state.units[closing.step] if closing.step >= 0 else None
    return {
        "step": None if unit is None else state.plan.steps[closing.step].name,
        "class": closing.failure.kind,
        "code": closing.failure.code,
        "message": closing.failure.message,
        "attempts": 0 if unit is None else unit.attempt,
    }
