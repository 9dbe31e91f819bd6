"""Listeners: who hears the event of a topic, and how an event finds those it is for.

Waits that say what the event must hold are looked up by that, so an event costs what it matches,
and one look for each way in which waits are told apart.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from heapq import merge
from itertools import islice
from typing import Any, Final

from pawlflow.definition.correlate import correlated, value_at
from pawlflow.definition.express import Expression, ExpressionError, compile_expression
from pawlflow.kernel.system import System
from pawlflow.model.codec import encode
from pawlflow.model.ids import CellId, Digest, InstanceId, StepName, WorkflowName
from pawlflow.model.payload import Payload, address_of
from pawlflow.model.records import Record
from pawlflow.model.system import topic_key

CONDITIONS_MAX: Final = 1_024  # compiled conditions kept; one takes a few kilobytes


class Wait(Record, frozen=True, gc=False):
    """An open wait of an instance."""

    place: int
    workflow: WorkflowName
    key: InstanceId
    step: StepName
    path: str
    value: Payload | None


class Trigger(Record, frozen=True, gc=False):
    """A workflow that the event starts."""

    place: int
    workflow: WorkflowName
    definition: Digest
    condition: str | None


class Relay(Record, frozen=True, gc=False):
    """An event that has not reached everybody yet: those up to `upto`, behind `after`."""

    number: int
    data: Payload
    origin: str
    upto: int
    after: int


class Line:
    """Places of waits in ascending order; those that left are taken out when they are many."""

    __slots__ = ("gone", "places")

    def __init__(self) -> None:
        self.places: list[int] = []
        self.gone = 0


class Topic(System):
    """One event: facts first, then what follows from them."""

    __slots__ = (
        *("any", "by_value", "emitted", "event", "listed", "place", "relays"),
        *("subscribed", "triggers", "waits"),
    )

    def __init__(self, cell: CellId) -> None:
        super().__init__(cell)
        self.event = cell.key.removeprefix(topic_key(""))
        self.emitted = 0
        self.place = 0  # places given out
        self.waits: dict[int, Wait] = {}  # by place
        self.triggers: dict[int, Trigger] = {}  # by place
        self.relays: dict[int, Relay] = {}  # by number; only the first is at work
        # What follows from them.
        self.listed: dict[InstanceId, dict[StepName, int]] = {}  # places of an instance's waits
        self.subscribed: dict[WorkflowName, int] = {}
        self.any = Line()  # waits that any event may match
        self.by_value: dict[str, dict[bytes, Line]] = {}  # path -> address -> waits


def audience(state: Topic, relay: Relay) -> Iterator[Wait | Trigger]:
    """Those who are still to be told, in order of their places."""
    event = relay.data.value
    wanted = {path: address_at(state, event, path) for path in state.by_value}
    lines = [state.by_value[path].get(address) for path, address in wanted.items()]
    told: set[InstanceId] = set()
    for place in places(state, (line for line in (state.any, *lines) if line), relay.after):
        if place > relay.upto:
            return
        trigger = state.triggers.get(place)
        wait = state.waits.get(place)
        if trigger is not None:
            if holds(trigger.condition, event):
                yield trigger
        elif wait is not None and wait.key != relay.origin and wait.key not in told:
            told.add(wait.key)
            if not was_told(state, relay, wait.key, wanted):
                yield wait


def places(state: Topic, lines: Iterable[Line], after: int) -> Iterator[int]:
    """The places of these waits and of all triggers, behind one of them, in order."""
    waits = (islice(line.places, bisect_right(line.places, after), None) for line in lines)
    return merge((place for place in state.triggers if place > after), *waits)


def address_at(state: Topic, event: Any, path: str) -> bytes:
    """What waits for this event are looked up by; nothing stands under the empty address."""
    value = correlated(value_at(event, path))
    return b"" if value is None else address_of(encode(value), state.cell.tenant)


def was_told(state: Topic, relay: Relay, key: InstanceId, wanted: Mapping[str, bytes]) -> bool:
    """Has this instance heard the event on an earlier page, by another of its waits?"""
    if not relay.after:
        return False
    others = (state.waits[place] for place in state.listed[key].values() if place <= relay.after)
    return any(each.value is None or wanted[each.path] == each.value.addr for each in others)


def holds(condition: str | None, event: Any) -> bool:
    """Does this event start the workflow? A condition without a value does not hold."""
    if condition is None:
        return True
    program = compiled(condition)
    if program is None:
        return False
    try:
        return program.evaluate([event] * len(program.refs)) is True
    except ExpressionError:
        return False


@lru_cache(CONDITIONS_MAX)
def compiled(condition: str) -> Expression | None:
    """A condition, compiled. In ioa.dev documents an unknown name is a member of the event."""
    try:
        return compile_expression(condition, roots=frozenset({"event"}), fallback="event")
    except ExpressionError:
        return None


# Coming and going


def enlist(state: Topic, wait: Wait) -> None:
    """Let events find a wait."""
    state.waits[wait.place] = wait
    state.listed.setdefault(wait.key, {})[wait.step] = wait.place
    if wait.value is None:
        line = state.any
    else:
        line = state.by_value.setdefault(wait.path, {}).setdefault(wait.value.addr, Line())
    line.places.append(wait.place)


def drop(state: Topic, key: InstanceId, step: StepName) -> None:
    """The reverse of enlist, if there is such a wait."""
    steps = state.listed.get(key, {})
    place = steps.pop(step, None)
    if place is None:
        return
    if not steps:
        del state.listed[key]
    wait = state.waits.pop(place)
    if wait.value is None:
        leave(state, state.any)
        return
    lines = state.by_value[wait.path]
    if leave(state, lines[wait.value.addr]):
        del lines[wait.value.addr]
        if not lines:
            del state.by_value[wait.path]


def leave(state: Topic, line: Line) -> bool:
    """One wait less in a line; is it empty now? Each place is moved twice at most, on average."""
    line.gone += 1
    if line.gone * 2 > len(line.places):
        line.places = [place for place in line.places if place in state.waits]
        line.gone = 0
    return not line.places
