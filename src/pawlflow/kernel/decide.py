"""Decide: one input, one room. Reads the state; what happens is emitted, and follows by itself."""

from typing import assert_never

from pawlflow.kernel import deadlines, forward, gates, mend, receipts, tell, undo, waits
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.state import Instance
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
from pawlflow.model.operate import DiscardInput, RedriveInput
from pawlflow.model.system import (
    AcquireSlot,
    AwaitEvent,
    Continue,
    EmitEvent,
    GrantSlot,
    HoldInstance,
    PublishDefinition,
    ReleaseSlot,
    StopAwaiting,
    Subscribe,
    Unsubscribe,
)


def decide(draft: Draft, incoming: Input, rules: int) -> Rejected | None:
    """Apply one input to the draft. A refusal comes before the first event, or not at all."""
    state = draft.state
    refused = not_there(state, incoming) or decide_input(draft, incoming, rules)
    if refused is None:
        forward.advance(draft)
        undo.wind_down(draft)
        if state.listened or state.slot:
            tell.tell_others(draft)
    return refused


def not_there(state: Instance, incoming: Input) -> Rejected | None:
    """Only a start may come before there is an instance, and nothing after it is closed."""
    if isinstance(incoming, StartInstance):
        return None if state.created is None else Rejected("instance.exists", state.cell.key)
    if state.created is None:
        return Rejected("instance.unknown", state.cell.key)
    return None if state.closed is None else Rejected("instance.closed", state.cell.key)


def decide_input(  # noqa: C901  # one table
    draft: Draft, incoming: Input, rules: int
) -> Rejected | None:
    """One input, one room."""
    match incoming:
        case Receipt():
            return receipts.receive(draft, incoming)
        case Tick():
            return deadlines.tick(draft)
        case StartInstance():
            return forward.start(draft, incoming, rules)
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
        case GrantSlot() | HoldInstance():
            return forward.receive_slot(draft, incoming)
        case RedriveInput() | DiscardInput():
            return Rejected("input.not_for_cells", type(incoming).__name__)
        case AcquireSlot() | ReleaseSlot() | AwaitEvent() | StopAwaiting() | Subscribe():
            return Rejected("input.misplaced", type(incoming).__name__)
        case Unsubscribe() | EmitEvent() | Continue() | PublishDefinition():
            return Rejected("input.misplaced", type(incoming).__name__)
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
