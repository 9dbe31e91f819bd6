"""Waits: sleeps, events and signals. Open without a worker, settled by time or by what comes in.

Emitting an event is here as well: it opens and is done in one breath.
"""

from typing import Final

from pawlflow.kernel import children, gates, mend
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.units import Unit
from pawlflow.kernel.values import evaluate_truth
from pawlflow.model import events as ev
from pawlflow.model.failure import Failure
from pawlflow.model.ids import TimeMs
from pawlflow.model.inputs import DeliverEvent, Signal
from pawlflow.model.payload import Payload
from pawlflow.model.system import TOPIC, EmitEvent, topic_key

SIGNALS_MAX: Final = 1_000  # kept for waits still to open; more is somebody's mistake


def open_wait(draft: Draft, unit: Unit) -> None:
    """Open a sleep, a wait or a gate, or emit an event."""
    plan = draft.state.plan.steps[unit.step]
    until = None if plan.span_ms is None else TimeMs(draft.now + plan.span_ms)
    match plan.kind:
        case "sleep":
            draft.emit(ev.StepWaiting(unit.step, unit.item, "timer", until))
        case "wait":
            draft.emit(ev.StepWaiting(unit.step, unit.item, "event", until))
            take_kept_signal(draft, unit)
        case "emit":
            emit_event(draft, unit)
        case "workflow":
            children.open_child(draft, unit, until)
        case _:
            gates.open_gate(draft, unit, until)


def emit_event(draft: Draft, unit: Unit) -> None:
    """Give the event to its topic; it does not come back to this instance."""
    assert unit.params is not None, "an emit without data was not made ready"
    draft.emit(ev.StepSucceeded(unit.step, unit.item, 0, unit.params))
    state = draft.state
    emitted = EmitEvent(unit.params, state.by, state.cell.key)
    draft.send(TOPIC, topic_key(state.plan.steps[unit.step].event), emitted)


def take_kept_signal(draft: Draft, unit: Unit) -> None:
    """A signal may have come before the wait opened; the oldest that matches is taken."""
    event = draft.state.plan.steps[unit.step].event
    for kept in list(draft.state.signals.values()):
        if kept.event == event and offer(draft, unit, kept.number, kept.data):
            return


def receive_signal(draft: Draft, incoming: Signal) -> Rejected | None:
    """Give the signal to the first open wait that matches, or keep it for one still to open."""
    state = draft.state
    if state.closing is not None:
        return Rejected("instance.stopping", state.cell.key)
    open_ = map(state.unit, state.listening.get(incoming.event, ()))
    taker = next((unit for unit in open_ if matches_wait(draft, unit, incoming.data)), None)
    if taker is None and len(state.signals) >= SIGNALS_MAX:
        return Rejected("signal.too_many", f"{SIGNALS_MAX} signals are kept already")
    draft.emit(ev.SignalReceived(incoming.event, incoming.data, incoming.by))
    if taker is not None:
        offer(draft, taker, state.signals_seen, incoming.data)
    return None


def offer(draft: Draft, unit: Unit, number: int, data: Payload) -> bool:
    """Offer a kept signal to an open wait, and say whether it was taken.

    One that breaks the wait's `match` is taken too: kept, it would break it again on every resume.
    """
    matches = matches_wait(draft, unit, data)
    if matches is False:
        return False
    draft.emit(ev.SignalTaken(number, unit.step, unit.item))
    if isinstance(matches, Failure):
        mend.give_up(draft, unit, 0, matches)
    else:
        draft.emit(ev.StepSucceeded(unit.step, unit.item, 0, data))
    return True


def receive_event(draft: Draft, incoming: DeliverEvent) -> Rejected | None:
    """A broadcast reaches every open wait that matches, and is not kept."""
    state = draft.state
    for step in list(state.listening.get(incoming.event, ())):
        if state.closing is not None:
            break
        unit = state.unit(step)
        matches = matches_wait(draft, unit, incoming.data)
        if isinstance(matches, Failure):
            mend.give_up(draft, unit, 0, matches)
        elif matches:
            draft.emit(ev.EventDelivered(incoming.event, incoming.data, step, unit.item))
            draft.emit(ev.StepSucceeded(step, unit.item, 0, incoming.data))
    return None if draft.events else Rejected("event.not_awaited", incoming.event)


def matches_wait(draft: Draft, unit: Unit, data: Payload) -> bool | Failure:
    """Is this the event the wait is for?"""
    plan = draft.state.plan.steps[unit.step]
    if plan.match is None:
        return True
    return evaluate_truth(draft, plan.match, f"match of {plan.name}", {"event": data.value})
