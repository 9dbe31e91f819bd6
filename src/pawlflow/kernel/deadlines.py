"""Deadlines: what happens by itself when its time has come. Each fires at most once."""

from heapq import heappop

from pawlflow.kernel import children, gates, ladder, mend, undo
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.state import RANK_INSTANCE, RANK_LEFT, RANK_UNDO, next_deadline
from pawlflow.kernel.system import starting
from pawlflow.kernel.units import BACKOFF, ESCALATED, RUNNING, UNDO_BACKOFF, Unit
from pawlflow.model.events import AttemptEnded, StepCancelled, StepRequeued, StepSucceeded


def tick(draft: Draft) -> Rejected | None:
    """Fire every deadline that is due, in order of time; the instance's own goes first."""
    state = draft.state
    ended = False
    while (due := next_deadline(state)) is not None and due[0] <= draft.now:
        _, rank, place = due
        if ended and rank != RANK_LEFT:  # it may be held back, which is asked of the first alone
            break
        ended = rank == RANK_LEFT
        heappop(state.deadlines)
        if rank == RANK_INSTANCE:
            fire_instance(draft)
        elif rank == RANK_UNDO:
            fire_undo(draft, state.unit(place))
        elif rank == RANK_LEFT:
            draft.emit(AttemptEnded(*place))
        else:
            fire_step(draft, state.unit(place))
    return None if draft.events else Rejected("timer.not_due", state.cell.key)


def fire_instance(draft: Draft) -> None:
    """The time to start, or the workflow's timeout: then failurePolicy decides, whatever runs."""
    if draft.state.started is None:
        starting.due(draft)
        return
    message = "the workflow took too long"
    mend.fail_instance(draft, draft.failure("timeout", "workflow.timeout", message))


def fire_step(draft: Draft, unit: Unit) -> None:
    """The end of an attempt's time, of a back-off, of a wait, or of the grace after a stop."""
    plan = draft.state.plan.steps[unit.step]
    if unit.status == RUNNING and draft.state.closing is not None:
        draft.emit(StepCancelled(unit.step, unit.item))
    elif unit.is_attempted():
        children.leave_attempt(draft, unit, "timeout")
        message = f"attempt {unit.attempt} of {plan.name} took too long"
        mend.fail_attempt(draft, unit, draft.failure("timeout", "step.timeout", message))
    elif unit.status == BACKOFF:
        draft.emit(StepRequeued(unit.step, unit.item))
    elif unit.status == ESCALATED:
        ladder.raise_up(draft, unit)
    elif unit.wait == "timer":
        draft.emit(StepSucceeded(unit.step, unit.item, 0, draft.payload(None)))
    elif unit.wait == "approval":
        gates.expire(draft, unit)
    else:
        message = f"no {plan.event} came for {plan.name} in time"
        mend.fail_attempt(draft, unit, draft.failure("timeout", "wait.timeout", message))


def fire_undo(draft: Draft, unit: Unit) -> None:
    """The end of an undo's time, or of its back-off."""
    if unit.undo == UNDO_BACKOFF:
        undo.retry_undo(draft, unit)
        return
    undo.leave_undo(draft, unit, "timeout")
    message = f"undoing {draft.state.plan.steps[unit.step].name} took too long"
    undo.fail_undo(draft, unit, draft.failure("timeout", "undo.timeout", message))
