"""Evolve: apply one event to the state. Total, and the only code that changes a state.

An event is applied by the one function `on_...` that takes it, here or in another of the `ROOMS`:
it trusts the event, and costs O(1 + out-degree). Time is the time of the turn, which `begin_turn`
sets first.
"""

from collections.abc import Callable, Iterator, Mapping
from heapq import heapify
from typing import Any, Final, Literal, get_args

from pawlflow.definition.rules import UNDOING_RULES
from pawlflow.kernel import evolve_again as again
from pawlflow.kernel import evolve_steps as steps
from pawlflow.kernel import units as status
from pawlflow.kernel.counters import set_undo_until, set_until
from pawlflow.kernel.state import RANK_INSTANCE, Instance, State, arm, key_of
from pawlflow.kernel.system import batch, loop, policies, rate, registry, schedule, slots, topic
from pawlflow.kernel.units import Closing, Kept, Unit
from pawlflow.model import events as ev
from pawlflow.model.failure import Failure
from pawlflow.model.ids import TimeMs
from pawlflow.model.journal import Stamps

Handler = Callable[[Any, Any], None]  # of a state and an event


def evolve(state: State, event: ev.Event) -> None:
    """Apply one event."""
    EVOLVE[type(event)](state, event)


def begin_turn(state: State, stamps: Stamps) -> None:
    """Set the time of the turn. What the last turn left unlooked at was settled by it."""
    state.turn += 1
    state.now = stamps.now
    if isinstance(state, Instance):
        if state.fresh or state.filling:
            state.fresh.clear()
            state.filling.clear()
        state.loosened = False
        if state.asked:
            state.asked.clear()
        if state.listened:
            state.listened.clear()


# Instance


def on_created(state: Instance, event: ev.InstanceCreated) -> None:
    state.rules = event.rules
    state.nonce = event.nonce
    state.input = event.input
    state.by = event.by
    state.slot = event.slot
    state.rate = event.rate
    state.start_at = event.start_at
    state.search = event.search
    if event.start_at is not None:
        arm(state, event.start_at, RANK_INSTANCE, -1)
    state.parent = event.parent
    state.created = state.now


def on_due(state: Instance, _: ev.InstanceDue) -> None:
    state.start_at = None


def on_granted(state: Instance, _: ev.InstanceGranted) -> None:
    state.granted = True


def on_queued(state: Instance, _: ev.InstanceQueued) -> None:
    state.queued = True


def on_started(state: Instance, _: ev.InstanceStarted) -> None:
    state.started = state.now
    state.fresh = list(state.plan.roots)
    heapify(state.fresh)
    if state.plan.timeout_ms is not None:
        arm(state, TimeMs(state.now + state.plan.timeout_ms), RANK_INSTANCE, -1)


def on_paused(state: Instance, _: ev.InstancePaused) -> None:
    state.paused = True


def on_unpaused(state: Instance, _: ev.InstanceUnpaused) -> None:
    state.paused = False
    state.loosened = True  # what was given back in the meantime


def on_stopping(state: Instance, event: ev.InstanceStopping) -> None:
    said = (event.outcome, event.step, event.failure, event.by, event.compensate, event.item)
    state.closing = Closing(*said)
    state.fresh.clear()
    state.filling.clear()
    for place in state.open:
        unit = state.unit(place)
        if unit.status == status.RUNNING:
            set_until(state, unit, TimeMs(state.now + state.plan.steps[unit.step].grace_ms))
        elif unit.wait == "child":
            unit.until = None  # it is told to stop, and takes the time it needs


def on_compensating(state: Instance, _: ev.CompensationStarted) -> None:
    state.compensating = True


def on_completed(state: Instance, event: ev.InstanceCompleted) -> None:
    state.output = event.output
    close(state, "completed")


def on_stopped(state: Instance, event: ev.InstanceFailed | ev.InstanceCancelled) -> None:
    state.rollback = event.rollback
    close(state, "failed" if isinstance(event, ev.InstanceFailed) else "cancelled")


def close(state: Instance, outcome: Literal["completed", "failed", "cancelled"]) -> None:
    """Steps never touched are cancelled by this alone: their number must not cost a turn."""
    state.outcome = outcome
    state.closed = state.now
    state.counts[status.CANCELLED] += state.counts[status.PENDING]
    state.counts[status.PENDING] = 0
    state.deadlines.clear()
    state.signals.clear()


# Signals


def on_signal(state: Instance, event: ev.SignalReceived) -> None:
    state.signals_seen += 1
    number = state.signals_seen
    state.signals[number] = Kept(number, event.event, event.data)


def on_signal_taken(state: Instance, event: ev.SignalTaken) -> None:
    del state.signals[event.number]


def on_delivered(_: Instance, __: ev.EventDelivered) -> None:
    """The success of the wait, which follows, says it all."""


# Undo


Undoing = ev.UndoStarted | ev.UndoBackedOff | ev.UndoDone | ev.UndoFailed


def undone(state: Instance, event: Undoing) -> Unit:
    """What is undone: the last run of a step or item, or one that was put aside."""
    place = (event.step, event.item)
    return state.of_round(*place, event.round) if event.round else state.at(*place)


def on_undo_started(state: Instance, event: ev.UndoStarted) -> None:
    unit = undone(state, event)
    take_off(state, unit)
    unit.undo = status.UNDO_RUNNING
    unit.undo_attempt = event.attempt
    unit.undo_params = event.params
    state.undoing[unit.place] = None
    key_of(state, unit, "undo")
    undo = state.plan.steps[unit.step].undo
    span = undo.span_ms if undo else None
    set_undo_until(state, unit, None if span is None else TimeMs(state.now + span))


def take_off(state: Instance, unit: Unit) -> None:
    """Its undo has begun, or cannot: it is no longer on the list. The last one always goes."""
    if unit.undo == status.UNDO_PENDING:
        state.undo_list.pop()
    if unit.late is not None and state.rules >= UNDOING_RULES:
        state.asked.append(unit.place)  # a human need no longer see to it
    if state.done.pop(unit.place, None) is not None:
        state.items[unit.place] = unit


def on_undo_backed_off(state: Instance, event: ev.UndoBackedOff) -> None:
    unit = undone(state, event)
    unit.undo = status.UNDO_BACKOFF
    unit.undo_failure = event.failure
    unit.undo_retries += 1
    set_undo_until(state, unit, event.retry_at)


def on_undo_done(state: Instance, event: ev.UndoDone) -> None:
    end_undo(state, undone(state, event), status.UNDO_DONE, None)


def on_undo_failed(state: Instance, event: ev.UndoFailed) -> None:
    state.undone_failed += 1
    end_undo(state, undone(state, event), status.UNDO_FAILED, event.failure)


def end_undo(state: Instance, unit: Unit, undo: int, failure: Failure | None) -> None:
    """The next one may be undone."""
    take_off(state, unit)
    unit.undo = undo
    unit.undo_failure = failure
    state.undoing.pop(unit.place, None)
    set_undo_until(state, unit, None)


def handlers(*rooms: Mapping[str, Any]) -> Iterator[tuple[type, Handler]]:
    """Every function `on_...` of these rooms, by the event that its signature says it takes."""
    named = [each for room in rooms for each in room.items()]
    for function in (made for name, made in named if name.startswith("on_")):
        _, event, _ = function.__annotations__.values()
        yield from ((kind, function) for kind in get_args(event) or (event,))


ROOMS: Final = (steps, again, slots, rate, batch, loop, schedule, topic, registry, policies)
EVOLVE: Final = dict(handlers(globals(), *map(vars, ROOMS)))
