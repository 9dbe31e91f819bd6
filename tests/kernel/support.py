"""A live cell for tests: inputs in, turns out, time as an argument."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from pawlflow.definition.load import load_workflows
from pawlflow.definition.plan import compile_plan
from pawlflow.definition.shape import Workflow
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.replay import apply_turn, fold, read_turn
from pawlflow.kernel.step import Stepped, new_cell, step
from pawlflow.kernel.summary import instance_state
from pawlflow.model.events import Event
from pawlflow.model.failure import Failure, failure_of
from pawlflow.model.ids import NO_ITEM, CellId, InstanceId, Tenant, TimeMs, WorkflowName
from pawlflow.model.inputs import Input, Receipt, StartInstance, Tick
from pawlflow.model.intents import Call, Stop
from pawlflow.model.journal import Stamps, payloads_of
from pawlflow.model.payload import Payload
from pawlflow.model.system import StartChild, StopChild
from pawlflow.projections.publish import published
from pawlflow.projections.units import status_of

TENANT = Tenant("acme")
HEADER = "apiVersion: pawl.dev/v1\nkind: Workflow\nmetadata: {name: w}\nspec:\n"


def workflow(spec: str) -> Workflow:
    """A workflow from the YAML of its spec, which must be right."""
    indented = "".join(f"  {line}\n" for line in spec.strip("\n").split("\n"))
    found, findings = load_workflows(HEADER + indented, "test.yaml")
    errors = [finding for finding in findings if finding.severity == "error"]
    assert not errors, errors
    return found[0]


def payload(value: Any) -> Payload:
    """A value of the test's tenant."""
    return Payload.of(value, TENANT)


def failure(kind: str, message: str = "it broke", findings: list[Any] | None = None) -> Failure:
    """A failure of the test's tenant."""
    return failure_of(kind, "effect.failed", message, tenant=TENANT, findings=findings)  # type: ignore[arg-type]


class Live:
    """One instance, driven by hand."""

    def __init__(
        self,
        definition: Workflow | str,
        key: str = "i-1",
        tenant: Tenant = TENANT,
        rules: int = 0,  # those of its plan
    ) -> None:
        shape = workflow(definition) if isinstance(definition, str) else definition
        self.plan = compile_plan(shape)
        self.id = CellId(tenant, WorkflowName(shape.name), InstanceId(key))
        self.cell = new_cell(self.id, self.plan)
        self.rules = rules
        self.now = 0
        self.turns: list[Stepped] = []
        self.payloads: dict[bytes, bytes] = {}
        self.calls: list[Call] = []  # every call ever made
        self.stops: list[Stop] = []
        self.children: list[StartChild] = []  # every child ever asked for
        self.unwanted: list[StopChild] = []

    # Inputs

    def submit(self, incoming: Input) -> Stepped | Rejected:
        """One input, as the engine would step it."""
        height = len(self.turns) + 1
        entropy = sha256(f"{self.id.key} {height}".encode()).digest()[:16]
        stamps = Stamps(TimeMs(self.now), height, entropy)
        outcome = step(self.cell, incoming, stamps, self.rules)
        if isinstance(outcome, Stepped):
            self.turns.append(outcome)
            self.calls += [intent for intent in outcome.intents if isinstance(intent, Call)]
            self.stops += [intent for intent in outcome.intents if isinstance(intent, Stop)]
            asked = [send.input for send in outcome.turn.sends]
            self.children += [each for each in asked if isinstance(each, StartChild)]
            self.unwanted += [each for each in asked if isinstance(each, StopChild)]
            for beside in payloads_of(outcome.turn):
                if beside.data is not None:
                    self.payloads[beside.addr] = beside.data
        return outcome

    def start(self, value: Any = None, by: str = "zoe") -> Stepped | Rejected:
        """Start it."""
        given = Payload.of(value, self.id.tenant)
        return self.submit(StartInstance(self.plan.definition, given, by))

    def ok(self, name: str, result: Any = None, attempt: int | None = None) -> Stepped | Rejected:
        """The executor of a step (or `undo/STEP`) succeeded."""
        call = self.call(name)
        receipt = Receipt(call.key, attempt or call.attempt, "ok", payload(result))
        return self.submit(receipt)

    def fail(
        self,
        name: str,
        kind: str = "terminal",
        findings: list[Any] | None = None,
        attempt: int | None = None,
    ) -> Stepped | Rejected:
        """The executor of a step failed."""
        call = self.call(name)
        why = failure(kind, findings=findings)
        return self.submit(Receipt(call.key, attempt or call.attempt, "failed", failure=why))

    def settle(self, name: str) -> Stepped | Rejected:
        """The executor of a step has stopped, as it was told to."""
        call = self.call(name)
        return self.submit(Receipt(call.key, call.attempt, "cancelled"))

    def settle_stopped(self) -> None:
        """Every attempt that was told to stop says that it is over, once more if need be."""
        for call in [stop.call for stop in self.stops]:
            self.submit(Receipt(call.key, call.attempt, "cancelled"))

    def closed(self, child: StartChild, result: Any = None, kind: str = "") -> Stepped | Rejected:
        """A child has closed, and says so: with a result, or with a failure of some class."""
        key, attempt = child.parent.step_key, child.parent.attempt
        if kind:
            return self.submit(Receipt(key, attempt, "failed", failure=failure(kind)))
        return self.submit(Receipt(key, attempt, "ok", payload(result)))

    def tick(self, at: int) -> Stepped | Rejected:
        """Time passes, and the timer fires."""
        self.now = at
        return self.submit(Tick())

    # Looking

    def call(self, name: str) -> Call:
        """The newest call of a step, or of `undo/STEP`."""
        return [call for call in self.calls if told(call) == name][-1]

    def child(self, name: str) -> StartChild:
        """The newest child of a step."""
        return [child for child in self.children if child.parent.step == name][-1]

    @property
    def state(self) -> str:
        """The instance state."""
        return instance_state(self.cell.state)

    def status(self, name: str) -> str:
        """A step's status."""
        unit = self.cell.state.named(name)
        assert unit is not None, name
        return status_of(self.cell.state, unit)

    @property
    def started(self) -> list[str]:
        """Every attempt that was asked for, in order."""
        return [f"{told(call)}#{call.attempt}" for call in self.calls]

    def published(self) -> list[str]:
        """All published names so far, told by the journal."""
        cell = new_cell(self.id, self.plan)
        names: list[str] = []
        for event in replayed(cell, self):
            names += published(cell.state, event)
        return names

    def reread(self) -> "Live":
        """The same instance after a crash: from bytes alone."""
        other = Live.__new__(Live)
        other.__dict__.update(self.__dict__)
        other.cell = fold(self.id, self.plan, [turn.data for turn in self.turns], self.payloads)
        return other

    def journal(self) -> list[tuple[bytes, Any]]:
        """What was journalled."""
        return [(turn.data, turn.hash) for turn in self.turns]


def told(call: Call) -> str:
    """What people call the step of a call: `a`, `a[2]`, `undo/a`."""
    item = "" if call.item == NO_ITEM else f"[{call.item}]"
    return f"{'undo/' if call.direction == 'undo' else ''}{call.step}{item}"


def replayed(cell: Any, live: Live) -> Iterable[Event]:
    """Every event, just after `cell` has seen it."""
    for stepped in live.turns:
        yield from apply_turn(cell.state, read_turn(stepped.data, live.payloads))


def sent(stepped: Stepped | Rejected) -> list[tuple[str, Input]]:
    """What a turn sent, with the key of the cell it is for."""
    assert isinstance(stepped, Stepped), stepped
    return [(send.key, send.input) for send in stepped.turn.sends]


def names(stepped: Stepped | Rejected) -> Sequence[str]:
    """The tags of a turn's events."""
    assert isinstance(stepped, Stepped), stepped
    return [type(event).__name__ for event in stepped.turn.events]


def refused(outcome: Stepped | Rejected) -> str:
    """The code of a refusal."""
    assert isinstance(outcome, Rejected), outcome
    return outcome.code
