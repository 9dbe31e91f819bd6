"""Undo: stopping an instance, and compensation: undo completed steps, last first, one at a time.

No forward step starts after this room has been entered. A failed undo never triggers another
compensation (spec 003, 4.2 rule 4).
"""

from typing import Any, Literal

from pawlflow.definition.plan import UndoPlan
from pawlflow.definition.rules import UNDOING_RULES
from pawlflow.kernel import children, ladder
from pawlflow.kernel.backoff import delay_ms
from pawlflow.kernel.counters import depth_of
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import RUNNING, SUCCEEDED, Unit
from pawlflow.kernel.values import evaluate_payload, extra_of
from pawlflow.model import events as ev
from pawlflow.model.failure import RETRIED, Failure
from pawlflow.model.ids import TimeMs
from pawlflow.model.inputs import CancelInstance
from pawlflow.model.payload import Payload


def stop(draft: Draft, decided: ev.InstanceStopping) -> None:
    """The outcome is decided: what waits is cancelled now, what runs is told to stop."""
    draft.emit(decided)
    state = draft.state
    for unit in sorted(map(state.unit, state.open), key=lambda unit: (unit.step, unit.item)):
        if unit.is_attempted():
            children.stop_attempt(draft, unit, "cancel")
        else:
            draft.emit(ev.StepCancelled(unit.step, unit.item))


def cancel(draft: Draft, incoming: CancelInstance) -> Rejected | None:
    """A human stops the instance; with failurePolicy compensate, its work is undone too."""
    if draft.state.closing is not None:
        return Rejected("instance.stopping", draft.state.cell.key)
    refused = ladder.bars_cancel(draft.state, incoming.acting)
    if refused is not None:
        return refused
    said = (incoming.by, draft.state.plan.compensates, incoming.comment)
    stop(draft, ev.InstanceStopping("cancelled", -1, None, *said))
    return None


def wind_down(draft: Draft) -> None:
    """Once every attempt has settled: the next undo, or the close."""
    state = draft.state
    while state.closing is not None and state.closed is None:
        if state.counts[RUNNING] or state.waits.get("child") or state.left:
            return
        if state.closing.compensate and not state.compensating:
            draft.emit(ev.CompensationStarted())
        place = next_to_undo(state)
        if place is not None:
            begin_undo(draft, state.unit(place))
        elif state.undoing:
            return
        else:
            close(draft, state.closing.outcome)


def next_to_undo(state: Instance) -> int | None:
    """The unit completed last, unless an undo failed and the rest is not to be touched.

    One at a time; with parallelUndo those that lie equally deep, the deepest first, and as many as
    `limit` and maxParallel allow.
    """
    plan = state.plan
    given_up = state.undone_failed and not plan.undo_continues
    if given_up or not state.compensating or not state.undo_list:
        return None
    place = state.undo_list[-1]
    limit = plan.steps[state.unit(place).step].limit if plan.parallel_undo else 1
    if len(state.undoing) >= min(limit, plan.max_parallel or limit):
        return None
    level = depth_of(state, next(iter(state.undoing), place))
    return place if depth_of(state, place) == level else None


def close(draft: Draft, outcome: Literal["failed", "cancelled"]) -> None:
    """End the instance with what became of its effects."""
    rollback: ev.Rollback = "none"
    if draft.state.compensating:
        rollback = "partial" if draft.state.undone_failed else "full"
    ended = ev.InstanceFailed if outcome == "failed" else ev.InstanceCancelled
    draft.emit(ended(rollback))


def begin_undo(draft: Draft, unit: Unit) -> None:
    """Build the undo from the original command and its result, and dispatch it."""
    plan = undo_plan(draft, unit)
    # What an earlier run was answered is not the answer to a run that failed.
    answered = unit.status == SUCCEEDED or draft.state.rules < UNDOING_RULES
    result = (unit.result if answered else None) or unit.late
    facts: dict[str, Any] = {
        "command": unit.params.value if unit.params else None,
        "result": result.value if result else None,
    }
    if unit.items is not None:  # put aside: the list may be another now
        item = {"item": unit.items.value[unit.item], "index": unit.item}
    else:
        item = dict(extra_of(draft, draft.state.plan.steps[unit.step], unit.item))
    params = evaluate_payload(draft, plan.params, default=facts, extra={**item, **facts})
    if isinstance(params, Failure):
        draft.emit(ev.UndoFailed(unit.step, unit.item, 0, params, run_of(unit)))
    else:
        start_undo(draft, unit, params)


def start_undo(draft: Draft, unit: Unit, params: Payload) -> None:
    """Dispatch an attempt to undo."""
    attempt = unit.undo_attempt + 1
    draft.emit(ev.UndoStarted(unit.step, unit.item, attempt, params, run_of(unit)))
    draft.call(draft.state.unit(unit.place), "undo")


def fail_undo(draft: Draft, unit: Unit, failure: Failure) -> None:
    """Try the undo again by its policy, or leave the rollback partial."""
    plan = undo_plan(draft, unit)
    on_timeout = draft.state.plan.steps[unit.step].on_timeout
    again = failure.kind in RETRIED or (failure.kind == "timeout" and on_timeout == "retry")
    if again and unit.undo_retries < plan.retry.max_retries:
        retry_at = TimeMs(draft.now + delay_ms(plan.retry, unit.undo_retries + 1))
        said = (unit.step, unit.item, unit.undo_attempt, failure)
        draft.emit(ev.UndoBackedOff(*said, retry_at, run_of(unit)))
    else:
        draft.emit(ev.UndoFailed(unit.step, unit.item, unit.undo_attempt, failure, run_of(unit)))


def leave_undo(draft: Draft, unit: Unit, reason: ev.StopReason) -> None:
    """Go on without the present attempt to undo; the next undo and the close wait for it."""
    draft.stop(unit, "undo", reason)
    draft.leave(unit, "undo", reason)


def run_of(unit: Unit) -> int:
    """How events say which run of a step is undone: by its last round, if it was put aside."""
    return unit.round if unit.over else 0


def retry_undo(draft: Draft, unit: Unit) -> None:
    """A back-off is over: the same undo again."""
    assert unit.undo_params is not None
    start_undo(draft, unit, unit.undo_params)


def undo_plan(draft: Draft, unit: Unit) -> UndoPlan:
    """How this step is undone."""
    plan = draft.state.plan.steps[unit.step].undo
    assert plan is not None, "only steps with an undo are on the list"
    return plan
