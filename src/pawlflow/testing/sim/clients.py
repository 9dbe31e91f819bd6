"""Clients: they start instances, decide at gates, send signals, and look after what is stuck."""

from collections.abc import Iterator
from typing import Final

from pawlflow.engine import requests
from pawlflow.engine.actions import Accepted
from pawlflow.engine.places import mail_of
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.state import ESCALATED, WAITING, Instance
from pawlflow.model.ids import CellId, RoleName, StepName, Tenant
from pawlflow.model.inputs import (
    Approve,
    CancelInstance,
    Input,
    PauseInstance,
    Reject,
    ResumeStep,
    StartInstance,
    UnpauseInstance,
)
from pawlflow.model.journal import Disposition
from pawlflow.model.operate import RedriveInput
from pawlflow.model.payload import Payload
from pawlflow.model.records import read
from pawlflow.store.port import Found, position
from pawlflow.testing.sim.asking import Asking
from pawlflow.testing.sim.cluster import Cluster
from pawlflow.testing.sim.flows import TENANTS, Flow, Planned
from pawlflow.testing.sim.shadows import Shadow

PEOPLE: Final = ("ann", "bob", "eve")
STORM_MS: Final = 3_000  # between two looks
CALM_MS: Final = 10_000
DEAD_MAX: Final = 100
TRIES_MAX: Final = 6  # of a step with one input: an executor may keep a bad result for its key


class Clients:
    """Everybody who asks the engine for something."""

    def __init__(self, cluster: Cluster, flows: list[Flow], planned: list[Planned]) -> None:
        self.cluster = cluster
        self.world = cluster.world
        self.flows = flows
        self.planned = planned
        self.waiting: dict[str, None] = {}  # names of requests under way
        self.asked = 0
        self.refused: dict[str, str] = {}

    def begin(self) -> None:
        """Publish, start, and look around from time to time."""
        early = self.world.faults.fires("client.early", "-", "starts before publishing")
        for tenant in dict.fromkeys(each.cell.tenant for each in self.planned):
            for flow in self.flows:
                asked = requests.publish(flow.workflow, tenant, "ann")
                cell = requests.registry_cell(tenant)
                name = f"publish:{tenant}/{flow.workflow.name}"
                wait = self.world.dice.between(name, 0, 20_000 if early else 0)
                self.world.after(wait, lambda n=name, c=cell, i=asked: self.ask(n, c, i))  # type: ignore[misc]
        for plan in self.planned:
            self.world.after(plan.at, lambda p=plan: self.start(p))  # type: ignore[misc]
        self.world.after(STORM_MS, self.look)

    def start(self, plan: Planned) -> None:
        """Start an instance; a nervous client does so twice."""
        cell = plan.cell
        wanted = StartInstance(plan.flow.definition, Payload.of(plan.input, cell.tenant), "ann")
        name = f"start:{cell.tenant}/{cell.key}"
        self.ask(name, cell, wanted)
        if self.world.faults.fires("client.twice", name, "starts twice"):
            self.ask(f"{name}:twice", cell, wanted)
        if self.world.faults.fires("client.regret", name, "is cancelled at once"):
            wait = self.world.dice.between(f"regret:{name}", 1, 400)
            cancel = CancelInstance("ann")
            self.world.after(wait, lambda: self.ask(f"regret:{name}", cell, cancel))

    def ask(self, name: str, cell: CellId, incoming: Input) -> None:
        """Ask until there is an answer; one request of a name at a time."""
        if name in self.waiting:
            return
        self.waiting[name] = None
        asking = Asking(self.cluster, cell, incoming, name)

        def done(outcome: Accepted | Rejected) -> None:
            del self.waiting[name]
            said = outcome.code if isinstance(outcome, Rejected) else "ok"
            self.world.tell(f"{name}: {said}")
            if isinstance(outcome, Rejected) and isinstance(incoming, StartInstance):
                self.refused[name] = outcome.code
                if outcome.code in ("instance.exists", "instance.conflict"):
                    why = f"a start that was asked for again is refused: {outcome.code}"
                    self.cluster.bench.monitors.bad("5", cell, why)

        asking.done = done
        self.asked += 1
        asking.ask()

    # Looking after things

    def look(self) -> None:
        """Serve what waits for somebody, as the journal tells it."""
        calm = self.world.faults.healed
        for shadow in list(self.cluster.bench.monitors.shadows.refs.values()):
            state = shadow.cell.state
            if isinstance(state, Instance) and state.closed is None:
                self.serve(shadow, state, calm=calm)
        for tenant in TENANTS:
            for found in self.cluster.bench.store.real.dispositions(tenant, DEAD_MAX):
                self.redrive(tenant, found)
        self.world.after(CALM_MS if calm else STORM_MS, self.look)

    def serve(self, shadow: Shadow, state: Instance, *, calm: bool) -> None:
        """One instance that may need somebody."""
        name = f"{shadow.id.tenant}/{shadow.id.key}"
        cell = requests.instance_cell(shadow.id.tenant, shadow.id.key)
        faults = self.world.faults
        if faults.fires("client.cancel", name, "is cancelled"):
            self.ask(f"cancel:{name}", cell, CancelInstance("eve"))
        if faults.fires("client.pause", name, "is paused"):
            self.ask(f"pause:{name}", cell, PauseInstance("eve"))
        lazy = not calm and self.world.dice.roll(f"lazy:{name}") < 0.5
        if lazy or shadow.quarantined:
            return
        if state.paused:
            self.ask(f"unpause:{name}", cell, UnpauseInstance("ann"))
        for i, incoming in enumerate(self.needs(name, shadow, state)):
            self.ask(f"serve:{name}:{type(incoming).__name__}:{i}", cell, incoming)

    def needs(self, name: str, shadow: Shadow, state: Instance) -> Iterator[Input]:
        """What an instance waits for, as the inputs that would serve it."""
        for step in sorted(state.open):
            unit, plan = state.unit(step), state.plan.steps[step]
            if unit.status == ESCALATED:
                tired = unit.attempt > TRIES_MAX and plan.takes_input
                yield self.resume(
                    name, plan.name, shadow.id.tenant, edits=plan.takes_input, must=tired
                )
            elif unit.status == WAITING and unit.wait == "approval":
                yield self.decide(f"{name}.{plan.name}", plan.name, plan.gate, unit.role)
            elif unit.status == WAITING and unit.wait == "event":
                data = {"n": state.input.value.get("n", 7)}
                if self.world.faults.fires("client.emit", name, "a broadcast instead of a signal"):
                    topic = requests.topic_cell(shadow.id.tenant, plan.event)
                    data["n"] = self.world.dice.pick(f"emit:{name}", (data["n"], 7))
                    emitted = requests.emit(plan.event, data, shadow.id.tenant, "bob")
                    self.ask(f"emit:{name}.{plan.name}", topic, emitted)
                else:
                    yield requests.signal(plan.event, data, shadow.id.tenant, "bob")

    def resume(
        self, name: str, step: StepName, tenant: Tenant, *, edits: bool, must: bool
    ) -> Input:
        """Let an escalated step go on, with the same input or another."""
        edited = edits and self.world.faults.fires("client.edit", name, "its input is changed")
        if edited or must:
            return ResumeStep(step, "ann", "retry", params=Payload.of({"edited": True}, tenant))
        if edits and self.world.dice.roll(f"reassign:{name}") < 0.3:
            return ResumeStep(step, "ann", "reassign", role=RoleName("Clerk"))
        return ResumeStep(step, "ann", "resume")

    def decide(self, name: str, step: StepName, gate: object, role: RoleName | None) -> Input:
        """Approve or reject, as somebody who may."""
        who = self.world.dice.pick(f"who:{name}", PEOPLE)
        asked = role or getattr(gate, "role", None)
        if self.world.faults.fires("client.reject", name, "is rejected"):
            return Reject(step, who, asked)
        return Approve(step, who, asked)

    def redrive(self, tenant: Tenant, found: Found) -> None:
        """Send a dead letter once more."""
        place = position(found.shard, found.seq)
        name = f"redrive:{place}"
        dead: Disposition = read(
            Disposition, found.entry.data, self.cluster.bench.monitors.payloads
        )
        if dead.kind != "dead" or name in self.refused:
            return
        self.refused[name] = "redriven"
        cell = CellId(tenant, dead.cell.workflow, dead.cell.key)
        mail = mail_of(cell, dead.input)
        original = Payload.of([mail.input, mail.beside], tenant)
        self.ask(name, cell, RedriveInput(place, original, "ann"))
