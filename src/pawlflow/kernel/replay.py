"""Replay: the journal tells the state. Recorded events are applied, and nothing is decided."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pawlflow.definition.plan import Plan
from pawlflow.kernel.evolve import begin_turn, evolve
from pawlflow.kernel.state import State
from pawlflow.kernel.step import Cell, new_cell
from pawlflow.kernel.system import System
from pawlflow.model.codec import CodecError
from pawlflow.model.events import Event
from pawlflow.model.ids import CellId
from pawlflow.model.journal import TURN_FORMAT, Turn, turn_hash
from pawlflow.model.records import reader_for


def read_turn(data: bytes, payloads: Mapping[bytes, bytes]) -> Turn:
    """A turn from its bytes. Raises CodecError."""
    turn: Turn = READ_TURN(data, payloads)
    if turn.format != TURN_FORMAT:
        raise CodecError("codec.record", f"turn format {turn.format}; {TURN_FORMAT} is known")
    return turn


READ_TURN: Final = reader_for(Turn)


def fold(
    cell: CellId,
    plan: Plan | None,
    journal: Iterable[bytes],
    payloads: Mapping[bytes, bytes],
) -> Cell:
    """The cell after these turns."""
    live = new_cell(cell, plan)
    for data in journal:
        turn = read_turn(data, payloads)
        for _ in apply_turn(live.state, turn):
            pass
        live.head = turn_hash(live.head, data)
    return live


def apply_turn(state: State, turn: Turn) -> Iterator[Event]:
    """Let a recorded turn have happened; each event is given just after the state has seen it."""
    begin_turn(state, turn.stamps)
    if isinstance(state, System):
        state.rules = turn.rules
    for event in turn.events:
        evolve(state, event)
        yield event
