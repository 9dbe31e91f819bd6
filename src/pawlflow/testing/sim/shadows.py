"""Shadows: every cell as its durable turns alone tell it, decided a second time as they come.

A shadow is always exactly as far as the journal. What a core believes is held against it.
"""

from functools import lru_cache

from msgspec.structs import replace

from pawlflow.definition.canonical import definition_from_bytes
from pawlflow.definition.plan import Plan, plan_of
from pawlflow.engine.admission import admit
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.state import Instance
from pawlflow.kernel.step import Cell, new_cell, step
from pawlflow.model.ids import CellId, Digest, TimeMs
from pawlflow.model.inputs import Input, Receipt, StartInstance
from pawlflow.model.journal import Stamps, Turn
from pawlflow.model.records import write
from pawlflow.model.timed import BackfillSchedule, SetSchedule
from pawlflow.projections.verify import verify_turn
from pawlflow.store.memory import Memory
from pawlflow.store.port import Address, Head, Ref
from pawlflow.testing.sim.audit import Audit, Report
from pawlflow.testing.sim.audit_events import read_on

ENTROPY = bytes(16)
NEWS_MS = 120_000  # how long a core may not know of a definition that another node published


class Shadow:
    """One cell, as the journal tells it."""

    __slots__ = ("audit", "cell", "id", "inputs", "lists", "plan", "quarantined", "ref")

    def __init__(
        self, id_: CellId, ref: Ref, plan: Plan | None, lists: dict[int, str], report: Report
    ) -> None:
        self.id = id_
        self.ref = ref
        self.plan = plan
        self.cell: Cell = new_cell(id_, plan)
        self.lists = lists
        self.audit = None if plan is None else Audit(id_, plan, lists, report)
        self.inputs: list[Input] = []
        self.quarantined = False

    def advance(self, turn: Turn, data: bytes) -> str | None:
        """One more turn; what is wrong with it, if it is not what the kernel decides again."""
        found = verify_turn(self.cell, turn, data, self.cell.state.turn + 1)
        if found is not None:
            return f"turn {found.turn}, {found.where}: {found.recorded} is now {found.derived}"
        self.inputs.append(turn.input)
        state = self.cell.state
        if self.audit is not None and isinstance(state, Instance):
            read_on(self.audit, turn)
            self.audit.money.settle(state.spent, state.reserved)
        elif not turn.events:
            return f"turn {turn.number} says nothing"
        return None


class Shadows:
    """All cells of a store."""

    def __init__(self, memory: Memory, report: Report) -> None:
        self.memory = memory
        self.report = report
        self.refs: dict[Ref, Shadow] = {}
        self.addresses: dict[Address, Shadow] = {}
        self.published: dict[Digest, int] = {}  # when a definition became known
        self.now = 0

    def of(self, head: Head) -> Shadow:
        """The shadow of a cell, made at its first turn."""
        shadow = self.refs.get(head.ref)
        if shadow is None:
            definition = Digest(head.definition)
            plan = self.plan(definition) if definition else None
            lists = lists_of(self.memory.definitions[definition]) if definition else {}
            shadow = Shadow(head.cell, head.ref, plan, lists, self.report)
            self.refs[head.ref] = shadow
            self.addresses[head.cell.tenant, head.cell.key] = shadow
        return shadow

    def plan(self, definition: Digest) -> Plan:
        """A plan that is durable."""
        return plan_of(self.memory.definitions[definition])

    def refuses(self, cell: CellId, incoming: Input) -> bool:
        """Would the durable state refuse this input? If not, the shadow is spoilt: report it."""
        shadow = self.addresses.get((cell.tenant, cell.key))
        if shadow is None:
            return self.refuses_new(cell, incoming)
        return shadow.quarantined or refused_by(shadow.cell, incoming)

    def refuses_new(self, cell: CellId, incoming: Input) -> bool:
        """The same, of a cell that does not exist."""
        if cell.workflow.startswith("$"):
            return refused_by(new_cell(cell, None), incoming)
        if not isinstance(incoming, StartInstance):
            return True
        since = self.published.get(incoming.definition)
        if since is None or since > self.now - NEWS_MS:
            return True
        plan = self.plan(incoming.definition)
        return refused_by(new_cell(CellId(cell.tenant, plan.workflow, cell.key), plan), incoming)


@lru_cache(256)
def lists_of(definition: bytes) -> dict[int, str]:
    """The forEach of every step that has one, as it is written."""
    steps = definition_from_bytes(definition).steps
    return {i: step.for_each for i, step in enumerate(steps) if step.for_each is not None}


def refused_by(cell: Cell, incoming: Input) -> bool:
    """Does this state refuse it?"""
    stamps = Stamps(TimeMs(cell.state.now), 0, ENTROPY)
    admitted = admit(cell, incoming, stamps.now)
    if isinstance(admitted, Rejected):
        return True
    return isinstance(step(cell, admitted, stamps), Rejected)


def same(one: Input, other: Input) -> bool:
    """The same input? Admission may have turned a receipt into a failure."""
    if isinstance(one, Receipt) and isinstance(other, Receipt):
        return (one.key, one.attempt) == (other.key, other.attempt)
    return type(one) is type(other) and write(asked(one)) == write(asked(other))


def asked(incoming: Input) -> Input:
    """An input without the times that admission has put into it."""
    match incoming:
        case SetSchedule():
            return replace(incoming, next=None)
        case BackfillSchedule():
            return replace(incoming, due=(), rest=None)
        case _:
            return incoming
