"""Receipts: the outcome of an attempt comes back.

A success may settle any attempt of its step key, a failure only its own. So a duplicate, a late or
a reordered receipt never changes an outcome.
"""

from pawlflow.definition.rules import SETTLING_RULES, UNDOING_RULES
from pawlflow.kernel import budget, children, mend, policies, undo
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.state import Instance, Left
from pawlflow.kernel.units import SUCCEEDED, UNDO_NONE, UNDO_RUNNING, Key, Unit, is_open
from pawlflow.model.events import AttemptEnded, LateSuccess, StepCancelled, StepSucceeded, UndoDone
from pawlflow.model.failure import Failure
from pawlflow.model.inputs import Receipt


def receive(draft: Draft, incoming: Receipt) -> Rejected | None:
    """Find what the receipt is about, and settle it."""
    key = draft.state.keys.get(incoming.key)
    if key is None:
        return Rejected("receipt.unknown", incoming.key.hex())
    unit = draft.state.of_round(key.step, key.item, key.round)
    left = left_by(draft.state, key, incoming) if draft.state.left else None
    if key.direction == "undo":
        settled = receive_undo(draft, unit, incoming)
    elif key.direction == "ask":
        settled = policies.receive_answer(draft, unit, incoming)
    elif incoming.outcome == "ok":
        settled = receive_success(draft, unit, key, incoming)
    else:
        settled = receive_failure(draft, unit, key, incoming)
    if left is not None:
        if not settled and key.direction == "do":
            budget.spend(draft, unit, incoming)
        draft.emit(AttemptEnded(*left))
    return None if settled or left else Rejected("receipt.not_awaited", incoming.key.hex())


def left_by(state: Instance, key: Key, incoming: Receipt) -> Left | None:
    """The attempt that a receipt is of, if that was left: it is over then, whatever it says."""
    left = (key.step, key.item, incoming.attempt, key.direction == "undo", key.round)
    return left if key.direction != "ask" and left in state.left else None


def receive_success(draft: Draft, unit: Unit, key: Key, incoming: Receipt) -> bool:
    """Settle an open step; of a settled one, remember that it happened after all."""
    attempt, result = incoming.attempt, incoming.result or draft.payload(None)
    if not 0 < attempt <= unit.attempt or unit.status == SUCCEEDED or unit.late is not None:
        return False
    if not is_open(unit.status):
        undone = joins_undo(draft, unit)
        draft.emit(LateSuccess(unit.step, unit.item, attempt, result, undone, key.round))
        budget.spend(draft, unit, incoming)
        return True
    if attempt != unit.attempt:  # another one may be at work, which is no longer wanted
        children.leave_attempt(draft, unit, "cancel")
    usage = () if incoming.usage is None else budget.usage_in(incoming)
    draft.emit(
        StepSucceeded(unit.step, unit.item, attempt, result, incoming.warnings, key.round, usage)
    )
    if draft.state.plan.budget:
        budget.warn(draft)
    return True


def joins_undo(draft: Draft, unit: Unit) -> bool:
    """Must this late success be undone, now or should it come to that? Only once."""
    state = draft.state
    has_undo = state.plan.steps[unit.step].undo is not None
    may_come = state.rules >= UNDOING_RULES if state.closing is None else state.closing.compensate
    return has_undo and may_come and unit.undo == UNDO_NONE


def receive_failure(draft: Draft, unit: Unit, key: Key, incoming: Receipt) -> bool:
    """Fail the running attempt, or see it stopped."""
    own = incoming.attempt == unit.attempt and key.round == unit.round
    if not own or not unit.is_attempted():
        return False
    budget.spend(draft, unit, incoming)
    lost = incoming.failure is not None and incoming.failure.code == "heartbeat.lost"
    if lost and draft.state.rules >= SETTLING_RULES:  # nobody knows whether it is over
        children.leave_attempt(draft, unit, "timeout")
    if draft.state.closing is not None:
        draft.emit(StepCancelled(unit.step, unit.item))
    else:
        mend.fail_attempt(draft, unit, failure_in(draft, incoming))
    return True


def receive_undo(draft: Draft, unit: Unit, incoming: Receipt) -> bool:
    """The outcome of an undo, under the same rule."""
    if unit.place not in draft.state.undoing or not 0 < incoming.attempt <= unit.undo_attempt:
        return False
    own = unit.undo == UNDO_RUNNING and incoming.attempt == unit.undo_attempt
    if incoming.outcome == "ok":
        if unit.undo == UNDO_RUNNING and not own:
            undo.leave_undo(draft, unit, "cancel")
        draft.emit(UndoDone(unit.step, unit.item, incoming.attempt, undo.run_of(unit)))
        return True
    if own:
        undo.fail_undo(draft, unit, failure_in(draft, incoming))
    return own


def failure_in(draft: Draft, incoming: Receipt) -> Failure:
    """What the receipt blames; an executor that merely gave up may be tried again."""
    if incoming.failure is not None:
        return incoming.failure
    message = "the executor stopped without a result"
    return draft.failure("transient", "attempt.abandoned", message)
