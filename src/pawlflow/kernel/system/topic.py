"""Topics: one event of one tenant, those who wait for it, the workflows it starts, its way to them.

An event reaches whoever listens at the moment it is emitted, in the order in which they came. A
trigger's condition that has no value does not hold; nothing else is recorded of that. An instance
hears an event once, however many of its waits match; what it does with it is its own decision.
"""

from itertools import islice
from typing import Final

from msgspec.structs import replace

from pawlflow.kernel.refused import Rejected
from pawlflow.kernel.system import SystemDraft, misplaced
from pawlflow.kernel.system.listeners import Relay, Topic, Trigger, Wait, audience, drop, enlist
from pawlflow.model.codec import hash_of
from pawlflow.model.ids import CellId, InstanceId, TimeMs, WorkflowName
from pawlflow.model.inputs import DeliverEvent, Input, StartInstance
from pawlflow.model.records import Record
from pawlflow.model.system import (
    TOPIC,
    TRIGGER,
    AwaitEvent,
    Continue,
    EmitEvent,
    EventEmitted,
    EventRelayed,
    StopAwaiting,
    Subscribe,
    TriggerAdded,
    TriggerRemoved,
    Unsubscribe,
    WaitDropped,
    WaitListed,
)

FORMAT: Final = 1
# Told in one turn: an event with a large audience must not hold up a frame. Part of the rules.
PAGE_MAX: Final = 256
ID_DIGITS: Final = 16  # of a hash, in the id of an instance that an event starts


def decide(draft: SystemDraft[Topic], incoming: Input) -> Rejected | None:
    """Apply one input to the draft. A refusal comes before the first event, or not at all."""
    match incoming:
        case EmitEvent():
            emit(draft, incoming)
            return None
        case AwaitEvent(workflow, key, step, path, value):
            draft.emit(WaitListed(workflow, key, step, path, value))
            return None
        case StopAwaiting():
            return stop_awaiting(draft, incoming)
        case Subscribe(workflow, definition, condition):
            draft.emit(TriggerAdded(workflow, definition, condition))
            return None
        case Unsubscribe():
            return unsubscribe(draft, incoming)
        case Continue():
            return go_on(draft)
        case _:
            return misplaced(draft.state, incoming)


def stop_awaiting(draft: SystemDraft[Topic], incoming: StopAwaiting) -> Rejected | None:
    """A wait leaves."""
    if incoming.step not in draft.state.listed.get(incoming.key, {}):
        return Rejected("wait.unknown", f"{incoming.step} of {incoming.key}")
    draft.emit(WaitDropped(incoming.workflow, incoming.key, incoming.step))
    return None


def unsubscribe(draft: SystemDraft[Topic], incoming: Unsubscribe) -> Rejected | None:
    """A trigger leaves."""
    if incoming.workflow not in draft.state.subscribed:
        return Rejected("trigger.unknown", incoming.workflow)
    draft.emit(TriggerRemoved(incoming.workflow))
    return None


def emit(draft: SystemDraft[Topic], incoming: EmitEvent) -> None:
    """Record the event. It goes out at once, unless one before it is still on its way."""
    state = draft.state
    number = state.emitted + 1
    draft.emit(EventEmitted(number, incoming.data, incoming.by, incoming.origin))
    if len(state.relays) == 1:
        relay_page(draft, state.relays[number])


def go_on(draft: SystemDraft[Topic]) -> Rejected | None:
    """The next page of the first event that has not reached everybody."""
    relay = next(iter(draft.state.relays.values()), None)
    if relay is None:
        return Rejected("continue.nothing", draft.state.cell.key)
    relay_page(draft, relay)
    return None


def relay_page(draft: SystemDraft[Topic], relay: Relay) -> None:
    """Tell the next of those who listen; if more remain, of this event or another, go on later."""
    state = draft.state
    found = list(islice(audience(state, relay), PAGE_MAX + 1))
    page = found[:PAGE_MAX]
    for each in page:
        if isinstance(each, Trigger):
            start = StartInstance(each.definition, relay.data, f"{TRIGGER}{state.event}")
            draft.send(each.workflow, started_key(state, each.workflow), start)
        else:
            draft.send(each.workflow, each.key, DeliverEvent(state.event, relay.data))
    after = page[-1].place if len(found) > PAGE_MAX else 0
    draft.emit(EventRelayed(relay.number, len(page), after))
    if state.relays:
        draft.send(TOPIC, state.cell.key, Continue())


def started_key(state: Topic, workflow: WorkflowName) -> InstanceId:
    """The id of the instance that this turn starts of a workflow: the same in every replay."""
    cell = state.cell
    made = hash_of("pawl.trigger.1", cell.tenant, cell.workflow, cell.key, state.turn, workflow)
    return InstanceId(f"{workflow}-{made.hex()[:ID_DIGITS]}")


# Evolve


def on_listed(state: Topic, event: WaitListed) -> None:
    """The newest wait, in place of an older one of the same step."""
    drop(state, event.key, event.step)
    state.place += 1
    wait = Wait(state.place, event.workflow, event.key, event.step, event.path, event.value)
    enlist(state, wait)


def on_dropped(state: Topic, event: WaitDropped) -> None:
    """One wait less."""
    drop(state, event.key, event.step)


def on_trigger_added(state: Topic, event: TriggerAdded) -> None:
    """A trigger that is changed keeps its place."""
    place = state.subscribed.get(event.workflow)
    if place is None:
        place = state.place = state.place + 1
    state.subscribed[event.workflow] = place
    state.triggers[place] = Trigger(place, event.workflow, event.definition, event.condition)


def on_trigger_removed(state: Topic, event: TriggerRemoved) -> None:
    """One trigger less."""
    del state.triggers[state.subscribed.pop(event.workflow)]


def on_emitted(state: Topic, event: EventEmitted) -> None:
    """On its way to all who are here now."""
    state.emitted = event.number
    state.relays[event.number] = Relay(event.number, event.data, event.origin, state.place, 0)


def on_relayed(state: Topic, event: EventRelayed) -> None:
    """One page further, or at its end."""
    if event.after:
        relay = state.relays[event.number]
        state.relays[event.number] = replace(relay, after=event.after)
    else:
        del state.relays[event.number]


# What is written


class TopicFacts(Record, frozen=True):
    """The facts of a topic, in order."""

    format: int
    turn: int
    now: TimeMs
    rules: int
    emitted: int
    place: int
    waits: tuple[Wait, ...]
    triggers: tuple[Trigger, ...]
    relays: tuple[Relay, ...]


def facts_of(state: Topic) -> TopicFacts:
    """All that a state is rebuilt from."""
    return TopicFacts(
        FORMAT,
        state.turn,
        state.now,
        state.rules,
        state.emitted,
        state.place,
        tuple(state.waits.values()),
        tuple(state.triggers.values()),
        tuple(state.relays.values()),
    )


def from_facts(found: TopicFacts, cell: CellId) -> Topic:
    """The state these are the facts of."""
    state = Topic(cell)
    state.emitted = found.emitted
    state.place = found.place
    for wait in found.waits:
        enlist(state, wait)
    for trigger in found.triggers:
        state.triggers[trigger.place] = trigger
        state.subscribed[trigger.workflow] = trigger.place
    state.relays = {relay.number: relay for relay in found.relays}
    return state
