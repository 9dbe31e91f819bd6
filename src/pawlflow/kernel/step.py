"""Step: the one call the shard makes. One input, one cell, one turn, or a refusal."""

import msgspec

from pawlflow.definition.plan import Plan
from pawlflow.definition.rules import RULES as RULES
from pawlflow.kernel.decide import decide
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.evolve import EVOLVE, begin_turn
from pawlflow.kernel.state import Instance
from pawlflow.kernel.state import State as State
from pawlflow.kernel.system import System, SystemDraft
from pawlflow.kernel.system.kinds import KINDS
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


class Cell:
    """A live cell: its state, and the hash of the turn that led there."""

    __slots__ = ("head", "state")

    def __init__(self, state: State, head: Digest) -> None:
        self.state = state
        self.head = head


class Stepped(msgspec.Struct, frozen=True, gc=False):
    """A turn that was decided: what to journal, and what to do once it is durable."""

    turn: Turn
    data: bytes
    hash: Digest
    intents: tuple[Intent, ...]


def new_cell(cell: CellId, plan: Plan | None) -> Cell:
    """A cell before its first turn. Without a plan it is a system cell."""
    state = KINDS[cell.workflow].new(cell) if plan is None else Instance(cell, plan)
    return Cell(state, instance_genesis(cell))


def step(cell: Cell, incoming: Input, stamps: Stamps, rules: int = 0) -> Stepped | Rejected:
    """Decide one input. If this raises, the live cell is spoilt: drop it and read it again.

    `rules` (0: those of this version) matter only for the first turn; after that an instance is
    decided by its own. A system cell lives for ever: each of its turns is decided by those given.
    """
    state = cell.state
    before = state.turn, state.now, state.rules
    begin_turn(state, stamps)
    draft: Draft | SystemDraft[System]
    if isinstance(state, Instance):
        draft = Draft(state, stamps.entropy)
        refused = decide(draft, incoming, state.rules or rules or state.plan.rules)
    else:
        state.rules = max(state.rules, rules or RULES)
        draft = SystemDraft(state, EVOLVE)
        refused = KINDS[state.cell.workflow].decide(draft, incoming)
    if refused is not None:
        state.turn, state.now, state.rules = before
        return refused
    turn = Turn(
        TURN_FORMAT,
        state.turn,
        state.rules,
        stamps,
        incoming,
        tuple(draft.events),
        tuple(draft.records),
        tuple(draft.sends),
    )
    data = turn_bytes(turn)
    cell.head = turn_hash(cell.head, data)
    return Stepped(turn, data, cell.head, tuple(draft.intents))
