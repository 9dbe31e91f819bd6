"""Undo: stopping an instance, and compensation: undo completed steps, last first, one at a time.

No forward step starts after this room has been entered. A failed undo never triggers another
compensation (spec 003, 4.2 rule 4).
"""

from typing import Any, Literal

from pawlflow.kernel.backoff import delay_ms
from pawlflow.kernel.draft import ENGINE, Draft, Rejected
from pawlflow.kernel.plan import UndoPlan
from pawlflow.kernel.state import RUNNING, Instance, Unit
from pawlflow.kernel.values import evaluate_payload
from pawlflow.model.events import (
    CompensationStarted,
    InstanceCancelled,
    InstanceFailed,
    InstanceStopping,
    Rollback,
    StepCancelled,
    UndoBackedOff,
    UndoFailed,
    UndoStarted,
)
from pawlflow.model.failure import RETRIED, Failure
from pawlflow.model.ids import TimeMs
from pawlflow.model.inputs import CancelInstance
from pawlflow.model.payload import Payload


def stop(  # noqa: PLR0913  # the six facts of a closing decision
    draft: Draft,
    outcome: Literal["failed", "cancelled"],
    step: int,
    failure: Failure | None,
    *,
    compensate: bool,
    by: str = ENGINE,
    comment: Payload | None = None,
) -> None:
    """Decide the outcome. Waiting steps are cancelled now; running attempts are told to stop."""
    draft.emit(InstanceStopping(outcome, step, failure, by, compensate, comment))
    state = draft.state
    for open_step in sorted(state.open):
        unit = state.unit(open_step)
        if unit.status == RUNNING:
            draft.stop(unit, "do", "cancel")
        else:
            draft.emit(StepCancelled(open_step, unit.item))


def cancel(draft: Draft, incoming: CancelInstance) -> Rejected | None:
    """A human stops the instance; with failurePolicy compensate, its work is undone too."""
    if draft.state.closing is not None:
        return Rejected("instance.stopping", draft.state.cell.key)
    compensate = draft.state.plan.compensates
    stop(
        draft,
        "cancelled",
        -1,
        None,
        compensate=compensate,
        by=incoming.by,
        comment=incoming.comment,
    )
    return None


def wind_down(draft: Draft) -> None:
    """Once every attempt has settled: the next undo, or the close."""
    state = draft.state
    while state.closing is not None and state.closed is None:
        if state.counts[RUNNING] or state.undoing is not None:
            return
        if state.closing.compensate and not state.compensating:
            draft.emit(CompensationStarted())
        step = next_to_undo(state)
        if step is None:
            close(draft, state.closing.outcome)
        else:
            begin_undo(draft, state.unit(step))


def next_to_undo(state: Instance) -> int | None:
    """The step completed last, unless an undo failed and the rest is not to be touched."""
    if not state.compensating or not state.undo_list:
        return None
    if state.undone_failed and not state.plan.undo_continues:
        return None
    return state.undo_list[-1]


def close(draft: Draft, outcome: Literal["failed", "cancelled"]) -> None:
    """End the instance with what became of its effects."""
    rollback: Rollback = "none"
    if draft.state.compensating:
        rollback = "partial" if draft.state.undone_failed else "full"
    draft.emit(InstanceFailed(rollback) if outcome == "failed" else InstanceCancelled(rollback))


def begin_undo(draft: Draft, unit: Unit) -> None:
    """Build the undo from the original command and its result, and dispatch it."""
    plan = undo_plan(draft, unit)
    facts: dict[str, Any] = {
        "command": unit.params.value if unit.params else None,
        "result": result.value if (result := unit.result or unit.late) else None,
    }
    params = evaluate_payload(draft, plan.params, default=facts, extra=facts)
    if isinstance(params, Failure):
        draft.emit(UndoFailed(unit.step, unit.item, 0, params))
    else:
        start_undo(draft, unit, params)


def start_undo(draft: Draft, unit: Unit, params: Payload) -> None:
    """Dispatch an attempt to undo."""
    draft.emit(UndoStarted(unit.step, unit.item, unit.undo_attempt + 1, params))
    draft.call(unit, "undo")


def fail_undo(draft: Draft, unit: Unit, failure: Failure) -> None:
    """Try the undo again by its policy, or leave the rollback partial."""
    plan = undo_plan(draft, unit)
    on_timeout = draft.state.plan.steps[unit.step].on_timeout
    again = failure.kind in RETRIED or (failure.kind == "timeout" and on_timeout == "retry")
    if again and unit.undo_retries < plan.retry.max_retries:
        retry_at = TimeMs(draft.now + delay_ms(plan.retry, unit.undo_retries + 1))
        draft.emit(UndoBackedOff(unit.step, unit.item, unit.undo_attempt, failure, retry_at))
    else:
        draft.emit(UndoFailed(unit.step, unit.item, unit.undo_attempt, failure))


def retry_undo(draft: Draft, unit: Unit) -> None:
    """A back-off is over: the same undo again."""
    assert unit.undo_params is not None
    start_undo(draft, unit, unit.undo_params)


def undo_plan(draft: Draft, unit: Unit) -> UndoPlan:
    """How this step is undone."""
    plan = draft.state.plan.steps[unit.step].undo
    assert plan is not None, "only steps with an undo are on the list"
    return plan
