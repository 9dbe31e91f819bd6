"""The scenario runner: a workflow's test, in virtual time.

`actual` is told from the journal's bytes alone, never from what the host remembers.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from pawlflow import requests
from pawlflow.definition.canonical import definition_bytes
from pawlflow.definition.fields import duration_text
from pawlflow.definition.finding import Finding
from pawlflow.definition.plan import Plan, plan_of
from pawlflow.engine.admission import admit_start
from pawlflow.kernel.children import child_id
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.evolve import undone
from pawlflow.kernel.replay import apply_turn, read_turn
from pawlflow.kernel.state import Instance
from pawlflow.kernel.summary import instance_state
from pawlflow.kernel.units import STATUS_NAMES
from pawlflow.model.events import Event, StepStarted, UndoStarted
from pawlflow.model.ids import INSTANCE_ID, NO_ITEM, CellId, InstanceId, Tenant
from pawlflow.model.inputs import DeliverEvent
from pawlflow.model.intents import Call
from pawlflow.model.policies import PublishPolicy, RetirePolicy
from pawlflow.model.system import EmitEvent, topic_cell
from pawlflow.policing import judged
from pawlflow.projections.budgets import budget_told
from pawlflow.projections.lenses import lens
from pawlflow.projections.publish import published
from pawlflow.projections.units import (
    error_of,
    named_units,
    status_of,
    undo_attempts,
    undo_of,
)
from pawlflow.store.memory import Memory, MemoryStore
from pawlflow.store.sqlite import SqliteStore
from pawlflow.testing.acting import input_of, receipt_of
from pawlflow.testing.compare import Mismatch, compare
from pawlflow.testing.host import THEN_SCRIPT, Crash, Host, Planned
from pawlflow.testing.journals import journal_of
from pawlflow.testing.scenario import Action, Answer, Scenario
from pawlflow.testing.scenario_policies import first_of_each
from pawlflow.testing.stand_ins import STAND_IN as STAND_IN
from pawlflow.testing.stand_ins import stand_ins as stand_ins

TENANT: Final = Tenant("default")
HostOn = Callable[[CellId, Plan, Callable[[Call], Planned | None], Crash | None], Host]
TOPICS_SINCE_RULES: Final = 2  # before them a broadcast came straight to the instance
ITEM: Final = re.compile(r"\[[0-9]+\]")
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
        state.name_of(unit): STATUS_NAMES[unit.status]
        for unit in map(state.unit, sorted(state.open))
        if state.closed is None
    }


def plan_started(scenario: Scenario) -> Plan:
    """The plan of the workflow that is started."""
    return plan_of(definition_bytes(scenario.workflows[0]))


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
        self.asked: dict[str, int] = {}  # how often each stub was asked; a child may run again
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
        for policy in first_of_each(scenario.policies):
            made = requests.publish_policy(policy, TENANT, "scenario")
            self.host.deliver(requests.policies_cell(TENANT), made)
        for workflow in (*scenario.workflows, *stand_ins(scenario.workflows)):
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
        if action.step is not None and "/" in action.step:
            return self.submit_to_child(action, *action.step.rsplit("/", 1))
        incoming = input_of(action, TENANT)
        if isinstance(incoming, PublishPolicy):
            wanted = (incoming.name, incoming.version)
            found = next(p for p in self.scenario.policies if (p.name, p.version) == wanted)
            incoming = requests.publish_policy(found, TENANT, action.by)
        if isinstance(incoming, PublishPolicy | RetirePolicy):
            return self.host.deliver(requests.policies_cell(TENANT), incoming)
        if not isinstance(incoming, DeliverEvent):
            return self.host.submit(incoming)
        if self.host.rules >= TOPICS_SINCE_RULES:
            emitted = EmitEvent(incoming.data, action.by, "")
            self.host.deliver(topic_cell(TENANT, incoming.event), emitted)
        else:
            self.host.submit(incoming)
        return None

    def submit_to_child(self, action: Action, path: str, step: str) -> Rejected | None:
        """Bring an action to a step of a child, such as `ship/gate` or `each[1]/gate`."""
        state: Instance | None = self.host.state
        for name in path.split("/"):
            unit = None if state is None else state.named(name)
            if state is None or unit is None or unit.attempt == 0:
                return Rejected("step.unknown", action.step or "")
            state = self.host.state_of(child_id(state, unit))
        cell = None if state is None else state.cell
        if cell is None:
            return Rejected("instance.unknown", path)
        return self.host.submit(input_of(msgspec.structs.replace(action, step=step), TENANT), cell)

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
        if call.direction == "ask":
            return Planned(0, (judged(call, self.host.in_force()),))
        path = self.host.path_of(call.cell)
        item = "" if call.item == NO_ITEM else f"[{call.item}]"
        stands_in = call.target == STAND_IN
        name = path.removesuffix("/") if stands_in else f"{path}{call.step}{item}"
        undo = "undo/" if call.direction == "undo" else ""
        stubs = next(filter(None, map(self.scenario.stubs.get, spellings(undo, name))), (AT_ONCE,))
        asked = self.asked[undo + name] = self.asked.get(undo + name, 0) + 1
        stub = stubs[min(asked, len(stubs)) - 1]
        if stub.hang:
            return None
        receipt = receipt_of(call, stub)
        return Planned(stub.after_ms, (receipt, receipt) if stub.twice else (receipt,))


def spellings(undo: str, name: str) -> Iterator[str]:
    """The names under which a stub may stand, the most exact first: items may be left out."""
    whole, _, last = name.rpartition("/")
    before = f"{whole}/" if whole else ""
    for path in dict.fromkeys((before, ITEM.sub("", before))):
        yield f"{undo}{path}{last}"
        yield f"{undo}{path}{ITEM.sub('', last)}"


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
        "steps": {name: status_of(state, unit) for name, unit in named_units(state)},
        "undo": {name: undo_of(state, unit) for name, unit in named_units(state)},
        "attempts": attempts_of(state),
        "order": list(params),
        "events": events,
        "lens": lens(state),
        "elapsed_ms": end - (state.started or 0),
        "output": None if state.output is None else state.output.value,
        "error": None if error is None else error["step"],
        "feedback": {
            name: unit.feedback
            for name, unit in named_units(state)
            if state.plan.steps[unit.step].attempted
        },
        "params": params,
        "spent": {name: told["spent"] for name, told in budget_told(state).items()},
    }


def recorded(host: Host, state: Instance) -> Iterator[Event]:
    """Every event of the journal, after `state` has seen it."""
    for data, _ in host.journal:
        yield from apply_turn(state, read_turn(data, host.payloads))


def called(state: Instance, event: Event) -> dict[str, Any]:
    """The attempt that the event started, if any, with what it was called with."""
    if isinstance(event, StepStarted):
        unit = state.at(event.step, event.item)
        params = unit.params
        return {f"{state.name_of(unit)}#{event.attempt}": None if params is None else params.value}
    if isinstance(event, UndoStarted):
        unit = undone(state, event)
        return {f"undo/{state.name_of(unit)}#{undo_attempts(state, unit)}": event.params.value}
    return {}


def attempts_of(state: Instance) -> dict[str, int]:
    """How often each step was started, and each undo."""
    counts: dict[str, int] = {}
    for name, unit in named_units(state):
        plan = state.plan.steps[unit.step]
        if plan.attempted:
            counts[name] = unit.attempt
        if plan.undo is not None:
            counts[f"undo/{name}"] = undo_attempts(state, unit)
    return counts
