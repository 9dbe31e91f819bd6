"""Cells of one tenant that talk to each other: instances and system cells, by sends alone."""

from collections import deque
from typing import Any

from pawlflow.definition.canonical import definition_bytes
from pawlflow.definition.plan import Plan, compile_plan
from pawlflow.definition.shape import Workflow
from pawlflow.engine.system.schedules import admit_times
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.replay import fold
from pawlflow.kernel.snapshot import state_bytes, state_from_bytes
from pawlflow.kernel.state import Instance
from pawlflow.kernel.step import Cell, Stepped, new_cell, step
from pawlflow.kernel.summary import instance_state
from pawlflow.kernel.system.registry import schedule_of, trigger_of
from pawlflow.model.codec import hash_of
from pawlflow.model.ids import CellId, InstanceId, TimeMs, WorkflowName
from pawlflow.model.inputs import Input, Receipt, StartInstance
from pawlflow.model.intents import Call
from pawlflow.model.journal import Stamps, payloads_of
from pawlflow.model.system import (
    EmitEvent,
    PublishDefinition,
    is_system,
    registry_cell,
    topic_cell,
)
from pawlflow.projections.verify import verify
from tests.kernel.support import TENANT, payload, workflow


def named(name: str, spec: str) -> Workflow:
    """A workflow of this name, from the YAML of its spec."""
    shape = workflow(spec)
    return type(shape)(**{f: getattr(shape, f) for f in shape.__struct_fields__} | {"name": name})


class Cells:
    """A tenant in memory: every cell with its journal, and what was sent in between."""

    def __init__(self, *definitions: Workflow, rules: int = 0) -> None:
        self.rules = rules  # 0: those of the definition
        self.shapes = {shape.name: shape for shape in definitions}
        self.plans = {plan.definition: plan for plan in map(compile_plan, definitions)}
        self.cells: dict[CellId, Cell] = {}
        self.journal: dict[CellId, list[Stepped]] = {}
        self.log: list[tuple[CellId, Stepped]] = []  # all turns, in order
        self.refused: list[tuple[str, str]] = []  # of what was sent: key and code
        self.payloads: dict[bytes, bytes] = {}
        self.calls: list[Call] = []
        self.now = 0

    def submit(self, cell: CellId, incoming: Input) -> Stepped | Rejected:
        """One input from outside, and all that follows from it by sends, in order."""
        outcome = self.step(cell, incoming)
        queue = deque([outcome])
        while queue:
            stepped = queue.popleft()
            for send in stepped.turn.sends if isinstance(stepped, Stepped) else ():
                key = InstanceId(send.key)
                follows = self.step(
                    CellId(cell.tenant, WorkflowName(send.workflow), key), send.input
                )
                if isinstance(follows, Rejected):
                    self.refused.append((key, follows.code))
                queue.append(follows)
        return outcome

    def step(self, cell: CellId, incoming: Input) -> Stepped | Rejected:
        """One input, one turn, journalled."""
        if cell not in self.cells:
            plan = self.plan_for(cell, incoming)
            if plan is None and not is_system(cell.workflow):
                return Rejected("instance.unknown", cell.key)
            self.cells[cell] = new_cell(cell, plan)
        if is_system(cell.workflow):
            admitted = admit_times(self.cells[cell].state, incoming, TimeMs(self.now))
            if isinstance(admitted, Rejected):
                return admitted
            incoming = admitted
        turns = self.journal.setdefault(cell, [])
        entropy = hash_of("test", cell.key, len(turns))[:16]
        stamps = Stamps(TimeMs(self.now), len(self.log) + 1, entropy)
        outcome = step(self.cells[cell], incoming, stamps, self.rules)
        if isinstance(outcome, Stepped):
            turns.append(outcome)
            self.log.append((cell, outcome))
            self.calls += [each for each in outcome.intents if isinstance(each, Call)]
            kept = {p.addr: p.data for p in payloads_of(outcome.turn) if p.data is not None}
            self.payloads |= kept
        return outcome

    def plan_for(self, cell: CellId, incoming: Input) -> Plan | None:
        """What a new cell is made with; only a start makes an instance."""
        if is_system(cell.workflow) or not isinstance(incoming, StartInstance):
            return None
        return self.plans[incoming.definition]

    # From outside

    def start(self, name: str, key: str, value: Any = None, by: str = "zoe") -> Stepped | Rejected:
        """Start an instance."""
        plan = compile_plan(self.shapes[WorkflowName(name)])
        start = StartInstance(plan.definition, payload(value), by)
        return self.submit(instance(name, key), start)

    def publish(self, shape: Workflow, by: str = "ops") -> Stepped | Rejected:
        """Publish a definition."""
        plan = compile_plan(shape)
        self.plans[plan.definition] = plan
        data = payload(definition_bytes(shape))
        event, condition = trigger_of(shape)
        return self.submit(
            registry_cell(TENANT),
            PublishDefinition(
                *(shape.name, shape.version, plan.definition, data, event, condition, by),
                schedule_of(shape),
            ),
        )

    def emit(self, event: str, value: Any, origin: str = "") -> Stepped | Rejected:
        """Emit an event."""
        return self.submit(topic_cell(TENANT, event), EmitEvent(payload(value), "out", origin))

    def ok(self, key: str, step_name: str, value: Any = None) -> Stepped | Rejected:
        """The newest attempt of a step succeeded."""
        calls = [c for c in self.calls if (c.cell.key, c.step) == (key, step_name)]
        return self.submit(
            calls[-1].cell, Receipt(calls[-1].key, calls[-1].attempt, "ok", payload(value))
        )

    # Looking

    def instances(self) -> dict[str, str]:
        """Every instance with its state."""
        return {
            id_.key: instance_state(cell.state)
            for id_, cell in self.cells.items()
            if isinstance(cell.state, Instance)
        }

    def state(self, cell: CellId) -> Any:
        """The state of a cell."""
        return self.cells[cell].state

    def assert_replays(self) -> None:
        """Every cell: decided again, folded, and written and read back, it is the same."""
        for id_, cell in self.cells.items():
            if self.journal[id_]:
                plan = cell.state.plan if isinstance(cell.state, Instance) else None
                assert_replays(id_, plan, cell, self.journal[id_], self.payloads)


def assert_replays(
    id_: CellId, plan: Plan | None, live: Cell, turns: list[Stepped], payloads: dict[bytes, bytes]
) -> None:
    """One cell."""
    journal = [(turn.data, turn.hash) for turn in turns]
    assert verify(id_, plan, journal, payloads) is None
    folded = fold(id_, plan, [data for data, _ in journal], payloads)
    data = state_bytes(live.state)
    again = state_from_bytes(data, id_, plan, payloads)
    assert folded.head == live.head
    assert state_bytes(folded.state) == state_bytes(again) == data


def instance(name: str, key: str) -> CellId:
    """The cell of an instance."""
    return CellId(TENANT, WorkflowName(name), InstanceId(key))


class Alone:
    """One system cell, driven by hand: what it sends is only looked at."""

    def __init__(self, cell: CellId) -> None:
        self.id = cell
        self.cell = new_cell(cell, None)
        self.now: int | None = None  # None: the number of its turns
        self.turns: list[Stepped] = []
        self.payloads: dict[bytes, bytes] = {}

    def submit(self, incoming: Input) -> Stepped | Rejected:
        """One input."""
        now = len(self.turns) if self.now is None else self.now
        outcome = step(self.cell, incoming, Stamps(TimeMs(now), len(self.turns) + 1))
        if isinstance(outcome, Stepped):
            self.turns.append(outcome)
            kept = {p.addr: p.data for p in payloads_of(outcome.turn) if p.data is not None}
            self.payloads |= kept
        return outcome

    def assert_replays(self) -> None:
        """It is the same in every way it can be told."""
        assert_replays(self.id, None, self.cell, self.turns, self.payloads)

    def reread(self) -> None:
        """Go on from the bytes of the state."""
        data = state_bytes(self.cell.state)
        self.cell.state = state_from_bytes(data, self.id, None, self.payloads)
