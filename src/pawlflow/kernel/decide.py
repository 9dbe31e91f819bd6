"""Decide: one input, one room. Reads the state; what happens is emitted, and follows by itself."""

from typing import assert_never

from pawlflow.kernel import deadlines, forward, gates, mend, receipts, undo, waits
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.model.events import InstancePaused, InstanceUnpaused
from pawlflow.model.inputs import (
    Approve,
    CancelInstance,
    DeliverEvent,
    Input,
    PauseInstance,
    Receipt,
    Reject,
    ResumeStep,
    Signal,
    StartInstance,
    Tick,
    UnpauseInstance,
)


def decide(draft: Draft, incoming: Input, rules: int) -> Rejected | None:
    """Apply one input to the draft. A refusal comes before the first event, or not at all."""
    state = draft.state
    if isinstance(incoming, StartInstance):
        refused = forward.start(draft, incoming, rules)
    elif state.created is None:
        refused = Rejected("instance.unknown", state.cell.key)
    elif state.closed is not None:
        refused = Rejected("instance.closed", state.cell.key)
    else:
        refused = decide_open(draft, incoming)
    if refused is None:
        forward.advance(draft)
        undo.wind_down(draft)
    return refused


def decide_open(draft: Draft, incoming: Input) -> Rejected | None:  # noqa: C901  # one table
    """An input for an instance that is neither new nor closed."""
    match incoming:
        case Receipt():
            return receipts.receive(draft, incoming)
        case Tick():
            return deadlines.tick(draft)
        case Signal():
            return waits.receive_signal(draft, incoming)
        case DeliverEvent():
            return waits.receive_event(draft, incoming)
        case Approve():
            return gates.approve(draft, incoming)
        case Reject():
            return gates.reject(draft, incoming)
        case ResumeStep():
            return mend.resume(draft, incoming)
        case CancelInstance():
            return undo.cancel(draft, incoming)
        case PauseInstance() | UnpauseInstance():
            return decide_pause(draft, incoming)
        case StartInstance():
            return Rejected("instance.exists", draft.state.cell.key)
        case _:
            assert_never(incoming)


def decide_pause(draft: Draft, incoming: PauseInstance | UnpauseInstance) -> Rejected | None:
    """Hold back, or let go, what has not started."""
    state = draft.state
    wanted = isinstance(incoming, PauseInstance)
    if state.closing is not None:
        return Rejected("instance.stopping", state.cell.key)
    if state.paused == wanted:
        return Rejected("instance.paused" if wanted else "instance.not_paused", state.cell.key)
    event = InstancePaused if wanted else InstanceUnpaused
    draft.emit(event(incoming.by, incoming.comment))
    return None
