"""The scenario runner: a workflow's test, in virtual time.

`actual` is told from the journal's bytes alone, never from what the host remembers.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from pawlflow.definition.canonical import definition_bytes
from pawlflow.definition.finding import Finding
from pawlflow.engine.admission import admit_start
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.plan import Plan, UnsupportedError, plan_of
from pawlflow.kernel.publish import published
from pawlflow.kernel.replay import apply_turn, read_turn
from pawlflow.kernel.state import Instance
from pawlflow.kernel.summary import error_of, instance_state, lens, step_status, step_undo
from pawlflow.model.events import Event, StepStarted, UndoStarted
from pawlflow.model.failure import failure_of
from pawlflow.model.ids import INSTANCE_ID, CellId, InstanceId, StepName, Tenant
from pawlflow.model.inputs import (
    Approve,
    CancelInstance,
    DeliverEvent,
    Input,
    PauseInstance,
    Receipt,
    Reject,
    ResumeStep,
    Signal,
    UnpauseInstance,
)
from pawlflow.model.intents import Call
from pawlflow.model.payload import Payload
from pawlflow.model.system import EmitEvent, topic_cell
from pawlflow.store.memory import Memory, MemoryStore
from pawlflow.store.sqlite import SqliteStore
from pawlflow.testing.compare import Mismatch, compare, duration_text
from pawlflow.testing.host import THEN_SCRIPT, Crash, Host, Planned
from pawlflow.testing.journals import journal_of
from pawlflow.testing.scenario import Action, Answer, Scenario

TENANT: Final = Tenant("default")
HostOn = Callable[[CellId, Plan, Callable[[Call], Planned | None], Crash | None], Host]
TOPICS_SINCE_RULES: Final = 2  # before them a broadcast came straight to the instance
AT_ONCE: Final = Answer(ok={})  # what a step without a stub answers


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a scenario went."""

    name: str
    file: str
    failures: list[Mismatch]
    actual: dict[str, Any]
    turns: int
    open_steps: dict[str, str] = {}  # where a run that did not close stands
    failure: dict[str, Any] | None = None  # what decided that the instance failed
    refused: list[str] = []  # what the engine refused of the script, where nothing was expected
    journal: bytes = b""
    crashes: int = 0
    sampled: bool = False  # only some of the crash points were tried

    @property
    def passed(self) -> bool:
        """Did everything expected hold?"""
        return not self.failures


class InvalidScenarioError(Exception):
    """The scenario cannot be run as written."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(finding.message)


def run_scenario(
    scenario: Scenario, crash: Crash | None = None, host: HostOn | None = None
) -> Result:
    """Run it once. Raises InvalidScenarioError if the file asks for what cannot be.

    It runs on the real shard over a memory store; `host` may put it on another store.
    """
    play = Play(scenario, plan_started(scenario), crash, host or on_memory)
    play.run()
    play.host.finish()
    actual = told_by(play.host)
    failures = [*play.surprises, *compare(scenario.expect, actual)]
    difference = play.host.verify()
    if difference is not None:
        text = f"turn {difference.turn}: {difference.where}"
        failures.append(
            Mismatch("replay", difference.recorded, difference.derived, f"replay differs at {text}")
        )
    return Result(
        name=scenario.name,
        file=scenario.file,
        failures=failures,
        actual=actual,
        turns=len(play.host.journal),
        open_steps=still_open(play.host.state),
        failure=error_of(play.host.state),
        refused=play.refused,
        journal=journal_of(play.host, scenario.workflows[0]),
    )


def on_memory(
    cell: CellId, plan: Plan, answer: Callable[[Call], Planned | None], crash: Crash | None
) -> Host:
    """A host on a new store in memory; a crash leaves the store, not the engine."""
    shared = Memory()
    return Host(cell, plan, answer, crash, lambda: MemoryStore(shared))


def on_file(path: Path) -> HostOn:
    """Hosts on a new SQLite file each."""

    def host(
        cell: CellId, plan: Plan, answer: Callable[[Call], Planned | None], crash: Crash | None
    ) -> Host:
        for old in path.parent.glob(path.name + "*"):
            old.unlink()
        return Host(cell, plan, answer, crash, lambda: SqliteStore(path))

    return host


def still_open(state: Instance) -> dict[str, str]:
    """The open steps of an instance that did not close."""
    return {
        state.plan.steps[step].name: step_status(state, step)
        for step in sorted(state.open)
        if state.closed is None
    }


def plan_started(scenario: Scenario) -> Plan:
    """The plan of the workflow that is started."""
    try:
        return plan_of(definition_bytes(scenario.workflows[0]))
    except UnsupportedError as error:
        hint = "take it out, or use a version that runs it"
        where = ("workflow", "definition")
        raise invalid(scenario, where, error.code, str(error), hint) from error


def invalid(
    scenario: Scenario, fields: tuple[str, ...], code: str, message: str, hint: str
) -> InvalidScenarioError:
    """An error at the first of these fields that is written."""
    places = [scenario.places[field] for field in fields if field in scenario.places]
    place = places[0] if places else scenario.place
    return InvalidScenarioError(
        Finding(
            file=place.file,
            line=place.line,
            column=place.column,
            severity="error",
            code=code,
            message=message,
            hint=hint,
        )
    )


def instance_id(name: str) -> InstanceId:
    """The scenario's name, where it can be an id."""
    return InstanceId(name if INSTANCE_ID.match(name) else "scenario")


class Play:
    """One run of a scenario: the host, the stubs behind it, and the script in front."""

    def __init__(self, scenario: Scenario, plan: Plan, crash: Crash | None, host: HostOn) -> None:
        self.scenario = scenario
        self.plan = plan
        self.surprises: list[Mismatch] = []
        self.refused: list[str] = []
        self.unreached = list(scenario.script)
        cell = CellId(TENANT, plan.workflow, instance_id(scenario.name))
        self.host = host(cell, plan, self.answer, crash)

    def run(self) -> None:
        """Start, and let everything happen."""
        scenario = self.scenario
        start = admit_start(self.plan, scenario.input, tenant=TENANT, by=scenario.by)
        if isinstance(start, Rejected):
            message = f"the input does not fit the workflow: {start.detail}"
            hint = "give what the workflow's `input` schema asks for"
            raise invalid(scenario, ("input", "workflow", "definition"), start.code, message, hint)
        for action in scenario.script:
            self.host.schedule(action.at_ms, THEN_SCRIPT, partial(self.perform, action))
        for workflow in scenario.workflows:
            self.host.know(workflow)
        self.host.submit(start)
        self.host.run()
        for action in self.unreached:
            if action.refused is not None:
                raise self.too_late(action)

    def perform(self, action: Action) -> None:
        """Act from outside, and see whether the engine agrees."""
        self.unreached.remove(action)
        refusal = self.submit(action)
        refused = refusal is not None
        said = f"refused ({refusal.code})" if refusal is not None and refused else "accepted"
        where = f"script: {action.verb} at {duration_text(action.at_ms)} (line {action.place.line})"
        if action.refused is None and refused:
            self.refused.append(f"{where} was {said}")
        elif action.refused is not None and action.refused != refused:
            wanted = "refused" if action.refused else "accepted"
            message = f"{where}: expected {wanted}, was {said}"
            self.surprises.append(Mismatch(where, wanted, said, message))

    def submit(self, action: Action) -> Rejected | None:
        """Bring an action to its cell: an event to its topic, which accepts it, heard or not."""
        incoming = input_of(action)
        if not isinstance(incoming, DeliverEvent):
            return self.host.submit(incoming)
        if self.host.rules >= TOPICS_SINCE_RULES:
            emitted = EmitEvent(incoming.data, action.by, "")
            self.host.deliver(topic_cell(TENANT, incoming.event), emitted)
        else:
            self.host.submit(incoming)
        return None

    def too_late(self, action: Action) -> InvalidScenarioError:
        """`refused` on an entry that is never reached says nothing: the file is wrong."""
        place = action.place
        return InvalidScenarioError(
            Finding(
                file=place.file,
                line=place.line,
                column=place.column,
                severity="error",
                code="scenario.unreached",
                message=f"{action.verb} expects an answer, but the instance is closed before it",
                hint="take `refused` away, or let it happen earlier",
            )
        )

    def answer(self, call: Call) -> Planned | None:
        """What the stubs say to a call: answers in order, the last repeats."""
        name = call.step if call.direction == "do" else f"undo/{call.step}"
        stubs = self.scenario.stubs.get(name) or (AT_ONCE,)
        stub = stubs[min(call.attempt, len(stubs)) - 1]
        if stub.hang:
            return None
        receipt = receipt_of(call, stub)
        return Planned(stub.after_ms, (receipt, receipt) if stub.twice else (receipt,))


def receipt_of(call: Call, stub: Answer) -> Receipt:
    """A stub's answer as the receipt an executor would send."""
    tenant = call.cell.tenant
    if stub.fail is None:
        return Receipt(call.key, call.attempt, "ok", Payload.of(stub.ok, tenant))
    message = stub.message or f"stubbed {stub.fail} failure"
    failure = failure_of(
        stub.fail, "effect.failed", message, tenant=tenant, findings=list(stub.findings)
    )
    return Receipt(call.key, call.attempt, "failed", failure=failure)


def input_of(action: Action) -> Input:
    """The input behind a line of the script."""
    by, step, event = action.by, StepName(action.step or ""), action.event or ""
    comment = None if action.comment is None else Payload.of(action.comment, TENANT)
    match action.verb:
        case "approve":
            return Approve(step, by, action.role, comment)
        case "reject":
            return Reject(step, by, action.role, comment)
        case "signal":
            return Signal(event, Payload.of(action.data, TENANT), by)
        case "emit":
            return DeliverEvent(event, Payload.of(action.data, TENANT))
        case "cancel":
            return CancelInstance(by, comment)
        case "pause":
            return PauseInstance(by, comment)
        case "unpause":
            return UnpauseInstance(by, comment)
        case "resume" | "reassign" | "retry":
            edited = None if action.with_ is msgspec.UNSET else Payload.of(action.with_, TENANT)
            return ResumeStep(step, by, action.verb, action.to, edited, comment)


def told_by(host: Host) -> dict[str, Any]:
    """Everything a scenario may ask about, told by the journal."""
    state = Instance(host.id, host.plan)
    params: dict[str, Any] = {}
    events: list[str] = []
    for event in recorded(host, state):
        events += published(state, event)
        params |= called(state, event)
    end = host.now if state.closed is None else state.closed
    error = error_of(state)
    return {
        "state": instance_state(state),
        "rollback": state.rollback,
        "steps": {plan.name: step_status(state, plan.index) for plan in host.plan.steps},
        "undo": {plan.name: step_undo(state, plan.index) for plan in host.plan.steps},
        "attempts": attempts_of(state),
        "order": list(params),
        "events": events,
        "lens": lens(state),
        "elapsed_ms": end - (state.started or 0),
        "output": None if state.output is None else state.output.value,
        "error": None if error is None else error["step"],
        "feedback": {
            plan.name: unit.feedback if (unit := state.units[plan.index]) else 0
            for plan in host.plan.steps
            if plan.attempted
        },
        "params": params,
    }


def recorded(host: Host, state: Instance) -> Iterator[Event]:
    """Every event of the journal, after `state` has seen it."""
    for data, _ in host.journal:
        yield from apply_turn(state, read_turn(data, host.payloads))


def called(state: Instance, event: Event) -> dict[str, Any]:
    """The attempt that the event started, if any, with what it was called with."""
    if isinstance(event, StepStarted):
        params = state.unit(event.step).params
        name = f"{state.plan.steps[event.step].name}#{event.attempt}"
        return {name: None if params is None else params.value}
    if isinstance(event, UndoStarted):
        return {f"undo/{state.plan.steps[event.step].name}#{event.attempt}": event.params.value}
    return {}


def attempts_of(state: Instance) -> dict[str, int]:
    """How often each step was started, and each undo."""
    counts: dict[str, int] = {}
    for plan in state.plan.steps:
        unit = state.units[plan.index]
        if plan.attempted:
            counts[plan.name] = 0 if unit is None else unit.attempt
        if plan.undo is not None:
            counts[f"undo/{plan.name}"] = 0 if unit is None else unit.undo_attempt
    return counts
