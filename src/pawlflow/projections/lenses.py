"""Lenses: an instance, and its steps, in the words of the four documents we come from.

Each is a total function: every state of the model has a word in each vocabulary. docs/states.md
shows every word and every edge between them, each with a scenario.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from pawlflow.kernel.state import Instance
from pawlflow.kernel.summary import instance_state
from pawlflow.kernel.units import (
    BACKOFF,
    CANCELLED,
    CORRECTING,
    ESCALATED,
    FAILED,
    PENDING,
    READY,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    UNDO_BACKOFF,
    UNDO_DONE,
    UNDO_FAILED,
    UNDO_NONE,
    UNDO_PENDING,
    UNDO_RUNNING,
    Unit,
)
from pawlflow.model.ids import NO_ITEM

LENSES: Final[dict[str, tuple[str, ...]]] = {
    "control-plane": (
        *("Created", "Running", "AssigningTask", "AwaitingAgent", "Correcting"),
        *("AwaitingApproval", "Escalated", "Compensating", "Completed", "Failed", "Cancelled"),
    ),
    "kernel": ("running", "waiting", "completed", "failed"),
    "ioa": ("idle", "queued", "executing", "blocked", "compensating", "completed", "failed"),
    "ores": ("pending", "in_progress", "compensating", "completed", "compensated", "failed"),
}
STEP_LENSES: Final[dict[str, tuple[str, ...]]] = {  # the others have no words for steps
    "ioa": ("pending", "running", "completed", "failed", "skipped"),
    "ores": ("pending", "in_progress", "completed", "completed_with_warnings", "failed"),
}


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
    outside = summary in ("waiting", "escalated", "compensating")
    return "waiting" if outside or state.counts[RUNNING] or state.counts[BACKOFF] else "running"


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


# Steps


def lens_steps(state: Instance, name: str, units: Sequence[Unit]) -> list[dict[str, Any]]:
    """These steps and items in a vocabulary that has words for them, each with its index there.

    In spec 004 an undo is a step of its own; its index is -1 - that of the step it undoes.
    """
    if name not in STEP_LENSES:
        return []
    word = STEP_WORDS[name]
    rows = [row_of(state.name_of(unit), unit.step, word(state, unit)) for unit in units]
    if name == "ores" and state.compensating:
        rows += [
            row_of(f"undo/{state.name_of(unit)}", -1 - unit.step, UNDO_WORDS[unit.undo])
            for unit in reversed(units)
            if unit.undo != UNDO_NONE
        ]
    return rows


def row_of(step: str, index: int, word: str) -> dict[str, Any]:
    """One step, seen through a lens."""
    return {"step": step, "index": index, "state": word}


def ioa_step(state: Instance, unit: Unit) -> str:
    """Spec 003: begun is running until it is settled; what never began stays pending."""
    if unit.status in SETTLED:
        return SETTLED[unit.status]
    if unit.status == CANCELLED:
        return "failed" if has_begun(state, unit) else "pending"
    return "running" if has_begun(state, unit) else "pending"


SETTLED: Final[dict[int, str]] = {SUCCEEDED: "completed", FAILED: "failed", SKIPPED: "skipped"}


def ores_step(state: Instance, unit: Unit) -> str:
    """Spec 004, which knows no skipping: what never began has no row, and is pending."""
    if unit.status == SUCCEEDED:
        return "completed_with_warnings" if unit.warnings else "completed"
    if not has_begun(state, unit):
        return "pending"
    return "failed" if unit.status in (FAILED, SKIPPED, CANCELLED) else "in_progress"


def has_begun(state: Instance, unit: Unit) -> bool:
    """Was it attempted or opened, or did it fail before it could be? One sent back has not yet."""
    if unit.status == PENDING:
        return False
    fanned = unit.item == NO_ITEM and unit.step in state.fans
    return fanned or unit.attempt > 0 or unit.wait is not None or unit.failure is not None


STEP_WORDS: Final[dict[str, Callable[[Instance, Unit], str]]] = {
    "ioa": ioa_step,
    "ores": ores_step,
}
UNDO_WORDS: Final[dict[int, str]] = {
    UNDO_PENDING: "pending",
    UNDO_RUNNING: "in_progress",
    UNDO_BACKOFF: "in_progress",
    UNDO_DONE: "completed",
    UNDO_FAILED: "failed",
}
