"""Decide: one input, one room. Reads the state; what happens is emitted, and follows by itself."""

from typing import assert_never

from pawlflow.kernel import budget, deadlines, fans, forward, gates, mend, receipts, undo, waits
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.state import Instance
from pawlflow.kernel.system import starting, tell
from pawlflow.kernel.units import Unit
from pawlflow.model import inputs
from pawlflow.model.events import InstancePaused, InstanceUnpaused
from pawlflow.model.operate import DiscardInput, RedriveInput, RemoveInstance
from pawlflow.model.reviews import SettleReview
from pawlflow.model.system import Continue, SystemInput


def decide(draft: Draft, incoming: inputs.Input, rules: int) -> Rejected | None:
    """Apply one input to the draft. A refusal comes before the first event, or not at all."""
    state = draft.state
    refused = not_there(state, incoming) or decide_input(draft, incoming, rules)
    if refused is None:
        forward.advance(draft)
        if state.closing is not None:
            undo.wind_down(draft)
        if state.listened or state.slot or state.rate or state.parent:
            tell.tell_others(draft)
    return refused


def not_there(state: Instance, incoming: inputs.Input) -> Rejected | None:
    """Only a start may come before there is an instance, and nothing after it is closed."""
    if isinstance(incoming, inputs.StartInstance):
        return None if state.created is None else Rejected("instance.exists", state.cell.key)
    if state.created is None:
        return Rejected("instance.unknown", state.cell.key)
    return None if state.closed is None else Rejected("instance.closed", state.cell.key)


def decide_input(  # noqa: C901  # one table
    draft: Draft, incoming: inputs.Input, rules: int
) -> Rejected | None:
    """One input, one room."""
    match incoming:
        case inputs.Receipt():
            return receipts.receive(draft, incoming)
        case inputs.Tick():
            return deadlines.tick(draft)
        case inputs.StartInstance():
            return starting.start(draft, incoming, rules)
        case inputs.Signal():
            return waits.receive_signal(draft, incoming)
        case inputs.DeliverEvent():
            return waits.receive_event(draft, incoming)
        case inputs.Approve():
            held = budget_holds(draft, incoming.step)
            return budget.approve(draft, held, incoming) if held else gates.approve(draft, incoming)
        case inputs.Reject():
            held = budget_holds(draft, incoming.step)
            return budget.reject(draft, held, incoming) if held else gates.reject(draft, incoming)
        case inputs.ClaimReview():
            return gates.claim(draft, incoming)
        case inputs.ResumeStep():
            return mend.resume(draft, incoming)
        case inputs.CancelInstance():
            return undo.cancel(draft, incoming)
        case inputs.PauseInstance() | inputs.UnpauseInstance():
            return decide_pause(draft, incoming)
        case inputs.GrantSlot() | inputs.HoldInstance():
            return starting.receive(draft, incoming)
        case Continue():
            return fans.go_on(draft)
        case RedriveInput() | DiscardInput() | RemoveInstance() | SettleReview():
            return Rejected("input.not_for_cells", type(incoming).__name__)
        case _:
            if isinstance(incoming, SystemInput):
                return Rejected("input.misplaced", type(incoming).__name__)
            assert_never(incoming)


def budget_holds(draft: Draft, step: str) -> Unit | None:
    """The unit of this name, if it waits for the budget."""
    unit = draft.state.named(step)
    return unit if unit is not None and unit.held else None


def decide_pause(
    draft: Draft, incoming: inputs.PauseInstance | inputs.UnpauseInstance
) -> Rejected | None:
    """Hold back, or let go, what has not started."""
    state = draft.state
    wanted = isinstance(incoming, inputs.PauseInstance)
    if state.closing is not None:
        return Rejected("instance.stopping", state.cell.key)
    if state.paused == wanted:
        return Rejected("instance.paused" if wanted else "instance.not_paused", state.cell.key)
    event = InstancePaused if wanted else InstanceUnpaused
    draft.emit(event(incoming.by, incoming.comment))
    return None
