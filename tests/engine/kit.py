"""A shard core in the hand: memory store, a clock that stands still, every action visible."""

from collections.abc import Callable
from typing import Any

from pawlflow import requests
from pawlflow.definition.canonical import definition_bytes, hash_of_bytes
from pawlflow.definition.load import load_workflows
from pawlflow.definition.plan import plan_of
from pawlflow.engine.actions import Action, Append, Notify, Publish, Reply, Stopped
from pawlflow.engine.cells import Hot
from pawlflow.engine.drivers import Engine
from pawlflow.engine.shard import Limits, Shards
from pawlflow.model.ids import CellId, InstanceId, Tenant, TimeMs, WorkflowName
from pawlflow.model.inputs import Input, Receipt, StartInstance
from pawlflow.model.intents import Call, Stop
from pawlflow.model.payload import Payload
from pawlflow.store.memory import MemoryStore
from pawlflow.store.port import Store, StoreError

CHAIN = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: chain}
spec:
  steps:
    - {name: a, run: do.a}
    - {name: b, run: do.b, dependsOn: [a]}
  output: {b: "${ steps.b }"}
"""


class Clock:
    """Time when the test says so; chance that counts."""

    def __init__(self) -> None:
        self.time = TimeMs(1_000_000)
        self.watch = 0.0
        self.asked = 0

    def now(self) -> TimeMs:
        return self.time

    def stopwatch(self) -> float:
        return self.watch

    def entropy(self) -> bytes:
        self.asked += 1
        return self.asked.to_bytes(16, "big")


class Bench:
    """An engine whose every action is written down; tests may answer commits themselves."""

    def __init__(self, store: Store | None = None, *, hot: Hot | None = None, **more: Any) -> None:
        self.store = store or MemoryStore()
        self.clock = Clock()
        self.published: list[Publish] = []
        self.replies: dict[int, Any] = {}
        self.turns: list[Any] = []
        self.trouble: list[Stopped] = []
        self.appended: list[Append] = []
        self.fail: Callable[[Append], StoreError | None] | None = None
        self.tokens = 0
        self.core = Shards(
            self.store.claim(), self.clock, hot=hot, limits=more.get("limits") or Limits()
        )
        self.engine = Tapped(self)

    def publish(self, action: Publish) -> None:
        self.published.append(action)

    def notify(self, action: Notify) -> None:
        self.turns += action.turns

    def stopped(self, action: Stopped) -> None:
        self.trouble.append(action)

    def load(self, text: str, tenant: str = "default") -> None:
        """Publish workflows."""
        workflows, findings = load_workflows(text, "kit.yaml")
        assert workflows, findings
        for workflow in workflows:
            self.ask(requests.registry_cell(tenant), requests.publish(workflow, tenant, "kit"))

    def ask(self, cell: CellId, incoming: Input) -> Any:
        """Hand in an input, pump, and give its answer."""
        token = self.hand(cell, incoming)
        self.engine.drain()
        return self.replies.get(token)

    def hand(self, cell: CellId, incoming: Input) -> int:
        """Hand in an input and let it wait."""
        self.tokens += 1
        self.core.submit(cell, incoming, self.tokens)
        return self.tokens

    def start(self, key: str, text: str = CHAIN, tenant: str = "default", **data: Any) -> CellId:
        """A start, handed in but not pumped; the workflow must be loaded."""
        cell, begin = starting(key, text, tenant, data)
        self.hand(cell, begin)
        return cell

    def calls(self) -> list[Call]:
        """Every call published so far."""
        found = [each for action in self.published for each in action.intents]
        return [each for each in found if isinstance(each, Call)]

    def stops(self) -> list[Stop]:
        """Every stop published so far."""
        found = [each for action in self.published for each in action.intents]
        return [each for each in found if isinstance(each, Stop)]

    def settle_stopped(self) -> None:
        """Every attempt that was stopped says that it is over."""
        for call in (stop.call for stop in self.stops()):
            self.core.submit(call.cell, Receipt(call.key, call.attempt, "cancelled"))
        self.engine.drain()

    def ok(self, call: Call, value: Any = None) -> None:
        """Answer a call, not pumped."""
        result = Payload.of(value, call.cell.tenant)
        self.core.submit(call.cell, Receipt(call.key, call.attempt, "ok", result))

    def state(self, cell: CellId) -> str:
        """The state of an instance, as the store knows it."""
        image = self.store.load([(cell.tenant, cell.key)])[cell.tenant, cell.key]
        return image.head.state


class Tapped(Engine):
    """The engine, with a tap on its commits."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.core, bench.store, bench.clock, bench)
        self.bench = bench
        self.reply = self.keep

    def keep(self, reply: Reply) -> None:
        self.bench.replies[reply.token] = reply.outcome

    def perform(self, action: Action) -> None:
        if isinstance(action, Append):
            self.bench.appended.append(action)
        super().perform(action)

    def append(self, action: Append) -> StoreError | None:
        fault = self.bench.fail(action) if self.bench.fail else None
        return super().append(action) if fault is None else fault


def starting(key: str, text: str, tenant: str, data: Any) -> tuple[CellId, StartInstance]:
    """The start of the first workflow in a text."""
    workflows, _ = load_workflows(text, "kit.yaml")
    raw = definition_bytes(workflows[0])
    plan = plan_of(raw)
    cell = CellId(Tenant(tenant), WorkflowName(plan.workflow), InstanceId(key))
    return cell, StartInstance(hash_of_bytes(raw), Payload.of(data, Tenant(tenant)), "kit")
