"""Step: the one call the shard makes. One input, one cell, one turn, or a refusal."""

from typing import Final

import msgspec

from pawlflow.kernel.decide import decide
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.evolve import begin_turn
from pawlflow.kernel.plan import Plan
from pawlflow.kernel.state import Instance
from pawlflow.model.ids import CellId, Digest
from pawlflow.model.inputs import Input
from pawlflow.model.intents import Intent
from pawlflow.model.journal import (
    TURN_FORMAT,
    Stamps,
    Turn,
    instance_genesis,
    turn_bytes,
    turn_hash,
)

RULES: Final = 1  # what instances started by this version are decided by


class Cell:
    """A live cell: its state, and the hash of the turn that led there."""

    __slots__ = ("head", "state")

    def __init__(self, state: Instance, head: Digest) -> None:
        self.state = state
        self.head = head


class Stepped(msgspec.Struct, frozen=True):
    """A turn that was decided: what to journal, and what to do once it is durable."""

    turn: Turn
    data: bytes
    hash: Digest
    intents: tuple[Intent, ...]


def new_cell(cell: CellId, plan: Plan) -> Cell:
    """A cell before its first turn."""
    return Cell(Instance(cell, plan), instance_genesis(cell))


def step(cell: Cell, incoming: Input, stamps: Stamps, rules: int = RULES) -> Stepped | Rejected:
    """Decide one input. If this raises, the live cell is spoilt: drop it and read it again.

    `rules` matter only for the first turn; after that an instance is decided by its own.
    """
    state = cell.state
    before = state.turn, state.now
    begin_turn(state, stamps)
    draft = Draft(state, stamps.entropy)
    refused = decide(draft, incoming, state.rules or rules)
    if refused is not None:
        state.turn, state.now = before
        return refused
    turn = Turn(
        TURN_FORMAT,
        state.turn,
        state.rules,
        stamps,
        incoming,
        tuple(draft.events),
        tuple(draft.records),
    )
    data = turn_bytes(turn)
    cell.head = turn_hash(cell.head, data)
    return Stepped(turn, data, cell.head, tuple(draft.intents))
