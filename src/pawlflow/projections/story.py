"""The story of an instance: its journal from the first turn on, and the ways to walk it.

Nothing here decides anything or reads a value, so a story can be told after its values are erased.
"""

from collections.abc import Iterator

import msgspec

from pawlflow.kernel.plan import plan_of
from pawlflow.kernel.replay import apply_turn, read_turn
from pawlflow.kernel.state import RUNNING, WAITING, Instance
from pawlflow.model.events import Event, InstancePaused
from pawlflow.model.ids import CellId, Digest, TimeMs
from pawlflow.model.journal import Turn


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


class Told(msgspec.Struct):
    """A state, and the times that a state does not keep."""

    state: Instance
    opened: dict[int, TimeMs] = {}  # when a step was first started, or its wait first opened
    since: dict[int, TimeMs] = {}  # when its present status began
    undo_since: dict[int, TimeMs] = {}
    paused_by: str = ""
    paused_at: TimeMs = TimeMs(0)

    @property
    def id(self) -> str:
        """The instance's name."""
        return self.state.cell.key


def tell(story: Story, at: int | None = None) -> Told:
    """The state after a turn, or after the last, with its times. Raises NoSuchTurnError."""
    told = Told(unbegun(story))
    seen: dict[int, tuple[int, int]] = {}
    for _, event, state in walk(story, at):
        told.state = state
        if isinstance(event, InstancePaused):
            told.paused_by, told.paused_at = event.by, state.now
        step: int = getattr(event, "step", -1)
        if step >= 0:
            seen[step] = tell_step(told, step, seen.get(step, (-1, -1)))
    return told


def tell_step(told: Told, step: int, before: tuple[int, int]) -> tuple[int, int]:
    """Note the times of a step that an event was about; give its status and undo."""
    state = told.state
    unit = state.unit(step)
    if unit.status != before[0]:
        told.since[step] = state.now
        if unit.status in (RUNNING, WAITING):
            told.opened.setdefault(step, state.now)
    if unit.undo != before[1]:
        told.undo_since[step] = state.now
    return unit.status, unit.undo
