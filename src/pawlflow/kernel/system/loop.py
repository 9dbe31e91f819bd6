"""Loops: the checkpoints of one call, each kept once under its name.

The first who brings a name decides what it holds. An attempt that was taken for lost and the one
that follows it may both be at work: whoever comes second is told so, and goes on with what is kept.
"""

from typing import Final

from pawlflow.kernel.refused import Rejected
from pawlflow.kernel.system import System, SystemDraft, misplaced
from pawlflow.model.checkpoints import (
    CheckpointKept,
    CloseLoop,
    KeepCheckpoint,
    LoopClosed,
    LoopOpened,
)
from pawlflow.model.ids import CellId, TimeMs
from pawlflow.model.inputs import Input
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record

FORMAT: Final = 1
CHECKPOINTS_MAX: Final = 100_000  # of one loop: what fits into one cell's memory


class Checkpoint(Record, frozen=True, gc=False):
    """What is kept under a name, since when, and by which attempt."""

    name: str
    at: TimeMs
    attempt: int
    result: Payload | None  # None once the loop is closed: then its turn alone has it


class Loop(System):
    """The checkpoints of one call, in the order they were kept."""

    __slots__ = ("closed", "kept", "origin")

    def __init__(self, cell: CellId) -> None:
        super().__init__(cell)
        self.origin: LoopOpened | None = None
        self.closed: TimeMs | None = None
        self.kept: dict[str, Checkpoint] = {}


def decide(draft: SystemDraft[Loop], incoming: Input) -> Rejected | None:
    """Apply one input to the draft. A refusal comes before the first event, or not at all."""
    match incoming:
        case KeepCheckpoint():
            return keep(draft, incoming)
        case CloseLoop():
            return close(draft)
        case _:
            return misplaced(draft.state, incoming)


def keep(draft: SystemDraft[Loop], asked: KeepCheckpoint) -> Rejected | None:
    """Keep a result, unless there is one of this name. It costs the same, however many are."""
    state = draft.state
    if state.closed is not None:
        return Rejected("loop.closed", asked.step)
    if asked.name in state.kept:
        return Rejected("checkpoint.kept", asked.name)
    if len(state.kept) >= CHECKPOINTS_MAX:
        return Rejected("checkpoint.too_many", f"{CHECKPOINTS_MAX} checkpoints of one loop")
    if state.origin is None:
        place = (asked.step, asked.item, asked.round)
        draft.emit(LoopOpened(asked.workflow, asked.key, *place))
    draft.emit(CheckpointKept(asked.name, asked.result, asked.attempt))
    return None


def close(draft: SystemDraft[Loop]) -> Rejected | None:
    """Nobody comes back to this loop."""
    state = draft.state
    if state.origin is None or state.closed is not None:
        return Rejected("continue.nothing", state.cell.key)
    draft.emit(LoopClosed())
    return None


# Evolve


def on_opened(state: Loop, event: LoopOpened) -> None:
    """Whose it is."""
    state.origin = event


def on_kept(state: Loop, event: CheckpointKept) -> None:
    """One result more."""
    state.kept[event.name] = Checkpoint(event.name, state.now, event.attempt, event.result)


def on_closed(state: Loop, _: LoopClosed) -> None:
    """What was kept is history: of the results only their names are at hand."""
    state.closed = state.now
    state.kept = {
        name: Checkpoint(name, each.at, each.attempt, None) for name, each in state.kept.items()
    }


# What is written


class LoopFacts(Record, frozen=True):
    """The facts of a loop, in order."""

    format: int
    turn: int
    now: TimeMs
    rules: int
    origin: LoopOpened | None
    closed: TimeMs | None
    kept: tuple[Checkpoint, ...]


def facts_of(state: Loop) -> LoopFacts:
    """All that a state is rebuilt from."""
    kept = tuple(state.kept.values())
    return LoopFacts(FORMAT, state.turn, state.now, state.rules, state.origin, state.closed, kept)


def from_facts(found: LoopFacts, cell: CellId) -> Loop:
    """The state these are the facts of."""
    state = Loop(cell)
    state.origin, state.closed = found.origin, found.closed
    state.kept = {each.name: each for each in found.kept}
    return state
