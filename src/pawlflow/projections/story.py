"""The story of an instance: its journal from the first turn on, and the ways to walk it.

Nothing here decides anything or reads a value, so a story can be told after its values are erased.
"""

from collections.abc import Iterator

import msgspec

from pawlflow.definition.plan import plan_of
from pawlflow.kernel.evolve import undone
from pawlflow.kernel.replay import apply_turn, read_turn
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import FANNED, RUNNING, WAITING, Unit, is_open
from pawlflow.model.events import (
    AttemptEnded,
    AttemptLeft,
    Event,
    InstancePaused,
    LateSuccess,
    UndoBackedOff,
    UndoDone,
    UndoFailed,
    UndoStarted,
)
from pawlflow.model.ids import NO_ITEM, CellId, Digest, InstanceId, StepKey, TimeMs
from pawlflow.model.inputs import Receipt
from pawlflow.model.journal import Turn
from pawlflow.model.payload import Payload
from pawlflow.model.reviews import GateVoided
from pawlflow.model.system import StartChild


class Story(msgspec.Struct, frozen=True):
    """All that is needed to tell of one instance."""

    cell: CellId
    definition: bytes  # canonical, as the instance was started under
    turns: list[tuple[bytes, Digest]]
    payloads: dict[bytes, bytes]  # what is missing here was erased


class NoSuchTurnError(LookupError):
    """A turn was asked for that the instance does not have."""

    code = "turn.unknown"


def state_at(story: Story, at: int | None = None) -> Instance:
    """The state after a turn, or after the last. Raises NoSuchTurnError."""
    state = unbegun(story)
    for _, _, seen in walk(story, at):
        state = seen
    return state


def check_turn(story: Story, at: int | None) -> None:
    """Refuse a turn outside the story, naming those it has."""
    if at is not None and not 0 < at <= len(story.turns):
        known = f"1 to {len(story.turns)}" if story.turns else "none"
        raise NoSuchTurnError(f"instance {story.cell.key!r} has no turn {at}; it has {known}")


def unbegun(story: Story) -> Instance:
    """The state before the first turn."""
    return Instance(story.cell, plan_of(story.definition))


def sealed_turns(story: Story) -> Iterator[tuple[Turn, Digest]]:
    """Every turn with its hash."""
    for data, sealed in story.turns:
        yield read_turn(data, story.payloads), sealed


def walk(story: Story, until: int | None = None) -> Iterator[tuple[Turn, Event, Instance]]:
    """Every event with its turn, and the state that has just seen it. The state goes on changing.

    Ends after turn `until`. Raises NoSuchTurnError.
    """
    check_turn(story, until)
    state = unbegun(story)
    for data, _ in story.turns[:until]:
        turn = read_turn(data, story.payloads)
        for event in apply_turn(state, turn):
            yield turn, event, state


class Child(msgspec.Struct):
    """An instance that a step asked for."""

    step: str  # as people call it: `build`, or `build[2]`
    workflow: str
    id: InstanceId
    attempt: int
    turn: int  # that asked for it
    heard: str | None = None  # what it answered: completed or failed; None if nothing yet


class Told(msgspec.Struct):
    """A state, and what a state does not keep: times, and children by their ids."""

    state: Instance
    opened: dict[int, TimeMs] = {}  # by place: when it was first started, or its wait first opened
    since: dict[int, TimeMs] = {}  # when its present status began
    undo_since: dict[int, TimeMs] = {}
    settled: dict[int, int] = {}  # in which order steps and items were settled
    children: dict[InstanceId, Child] = {}
    logs: dict[int, list[Payload]] = {}  # by place: what its attempts wrote, in order
    undo_logs: dict[int, list[Payload]] = {}
    paused_by: str = ""
    paused_at: TimeMs = TimeMs(0)
    driven: bool = True  # does a process own the store, as far as anybody knows?

    @property
    def id(self) -> str:
        """The instance's name."""
        return self.state.cell.key


def tell(story: Story, at: int | None = None) -> Told:
    """The state after a turn, or after the last, with its times. Raises NoSuchTurnError."""
    check_turn(story, at)
    return Telling(story).tell(story, at)


class Telling:
    """Tells a story as it grows: each call takes the turns that came since."""

    def __init__(self, story: Story) -> None:
        self.told = Told(unbegun(story))
        self.seen: dict[int, tuple[int, int]] = {}  # status and undo, by place
        self.asked: dict[tuple[StepKey, int], Child] = {}  # children not heard of yet
        self.count = 0  # how often something was settled

    def tell(self, story: Story, at: int | None = None) -> Told:
        """All that is known after a turn, or after the last there is."""
        state = self.told.state
        for data, _ in story.turns[state.turn : at]:
            turn = read_turn(data, story.payloads)
            if isinstance(turn.input, Receipt) and turn.input.log is not None:
                self.tell_log(turn.input.key, turn.input.log)
            for event in apply_turn(state, turn):
                self.tell_event(event)
            self.tell_children(turn)
        return self.told

    def tell_log(self, key: StepKey, lines: Payload) -> None:
        """Note what an attempt wrote."""
        found = self.told.state.keys.get(key)
        if found is not None:
            logs = self.told.logs if found.direction == "do" else self.told.undo_logs
            place = self.told.state.of_round(found.step, found.item, found.round).place
            logs.setdefault(place, []).append(lines)

    def tell_event(self, event: Event) -> None:
        """Note what an event changed."""
        told, state = self.told, self.told.state
        if isinstance(event, InstancePaused):
            told.paused_by, told.paused_at = event.by, state.now
        unit = unit_of(state, event)
        if unit is None:
            return
        place, before = unit.place, self.seen.get(unit.place, (-1, -1))
        if unit.status != before[0]:
            told.since[place] = state.now
            if unit.status in (RUNNING, WAITING, FANNED):
                told.opened.setdefault(place, state.now)
            elif not is_open(unit.status):
                told.settled.pop(place, None)  # a step may be done again
                told.settled[place] = self.count = self.count + 1
        if unit.undo != before[1]:
            told.undo_since[place] = state.now
        self.seen[place] = (unit.status, unit.undo)

    def tell_children(self, turn: Turn) -> None:
        """Note whom a turn asked for, and whom it heard of."""
        if isinstance(turn.input, Receipt):
            answers = self.asked.pop((turn.input.key, turn.input.attempt), None)
            if answers is not None:
                answers.heard = "completed" if turn.input.outcome == "ok" else "failed"
        for send in turn.sends:
            if isinstance(send.input, StartChild):
                made = child_of(send.input, turn.number)
                parent = send.input.parent
                self.told.children[made.id] = self.asked[parent.step_key, parent.attempt] = made


def child_of(asked: StartChild, turn: int) -> Child:
    """The child that a turn asked for."""
    parent = asked.parent
    return Child(parent.step, asked.name, asked.child, parent.attempt, turn)


def unit_of(state: Instance, event: Event) -> Unit | None:
    """The step or item that an event is about, just after the state has seen it."""
    if isinstance(event, UndoStarted | UndoBackedOff | UndoDone | UndoFailed):
        return undone(state, event)
    if isinstance(event, LateSuccess | AttemptLeft | AttemptEnded):
        return state.of_round(event.step, event.item, event.round)
    if isinstance(event, GateVoided):  # its item is that of the cause
        return state.unit(event.step)
    step: int = getattr(event, "step", -1)
    return None if step < 0 else state.at(step, getattr(event, "item", NO_ITEM))
