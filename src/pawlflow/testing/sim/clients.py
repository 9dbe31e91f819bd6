"""Clients: they start instances, decide at gates, send signals, and look after what is stuck."""

from collections.abc import Callable
from typing import Final

from pawlflow import requests
from pawlflow.definition import shape
from pawlflow.engine.actions import Accepted
from pawlflow.engine.places import mail_of
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.state import Instance
from pawlflow.kernel.system.schedule import Schedule
from pawlflow.model.batches import AddTargets, BatchVerb, OpenBatch, batch_cell
from pawlflow.model.ids import CellId, Tenant, TimeMs
from pawlflow.model.inputs import (
    CancelInstance,
    Input,
    PauseInstance,
    StartInstance,
    UnpauseInstance,
)
from pawlflow.model.journal import Disposition
from pawlflow.model.operate import RedriveInput
from pawlflow.model.payload import Payload
from pawlflow.model.policies import PublishPolicy, RetirePolicy
from pawlflow.model.records import read
from pawlflow.model.timed import PauseSchedule, UnpauseSchedule
from pawlflow.store.port import Found, position
from pawlflow.testing.sim.asking import Asking
from pawlflow.testing.sim.cluster import Cluster
from pawlflow.testing.sim.flows import TENANTS, Flow, Planned
from pawlflow.testing.sim.language import POLICIES
from pawlflow.testing.sim.serving import Serving
from pawlflow.testing.sim.shadows import Shadow
from pawlflow.testing.sim.world import EPOCH

STORM_MS: Final = 3_000  # between two looks
CALM_MS: Final = 10_000
DEAD_MAX: Final = 100
VERBS: Final[tuple[BatchVerb, ...]] = ("cancel", "pause", "unpause", "resume", "retry", "signal")
BACK_MS: Final = 600_000  # how far a backfill goes
LATE_MS: Final = 25_000  # a definition that is published late


Then = Callable[[], None]


def nothing() -> None:
    """What follows most requests."""


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
        self.serving = Serving(cluster.world, self.ask)
        self.batches = 0
        self.schedules: list[shape.Schedule] = []

    def begin(self) -> None:
        """Publish, start, and look around from time to time."""
        early = self.world.faults.fires("client.early", "-", "starts before publishing")
        for tenant in dict.fromkeys(each.cell.tenant for each in self.planned):
            for flow in self.flows:
                self.publish(tenant, flow, early=early)
            for beside in self.schedules:
                asked = requests.publish_schedule(beside, tenant, "ann")
                self.ask(f"publish:{tenant}/{beside.name}", requests.registry_cell(tenant), asked)
            if "policies" in self.cluster.bench.setup.rooms:
                self.govern(tenant)
        for plan in self.planned:
            self.world.after(plan.at, lambda p=plan: self.start(p))  # type: ignore[misc]
        self.world.after(STORM_MS, self.look)

    def publish(self, tenant: Tenant, flow: Flow, *, early: bool) -> None:
        """Make a definition known; a late one when somebody may have asked for it already."""
        asked = requests.publish(flow.workflow, tenant, "ann")
        cell = requests.registry_cell(tenant)
        name = f"publish:{tenant}/{flow.workflow.name}"
        wait = self.world.dice.between(name, 0, 20_000 if early else 0)
        wait += LATE_MS if flow.late else 0
        self.world.after(wait, lambda: self.ask(name, cell, asked))

    def govern(self, tenant: Tenant) -> None:
        """Policies come and go, one change after the other."""
        cell, wait = requests.policies_cell(tenant), 0
        for number, (name, version) in enumerate(POLICIES):
            site = f"govern:{tenant}/{number}"
            wait += self.world.dice.between(site, 0, 40_000)
            text = Payload.of(f"{name} {version}", tenant)
            published = PublishPolicy(name, version, text, "ann")
            asked = published if version else RetirePolicy(name, "ann")
            self.world.after(wait, lambda s=site, a=asked: self.ask(s, cell, a))  # type: ignore[misc]

    def start(self, plan: Planned) -> None:
        """Start an instance; a nervous client does so twice."""
        cell = plan.cell
        at = TimeMs(EPOCH + plan.at + plan.later_ms) if plan.later_ms else None
        given = Payload.of(plan.input, cell.tenant)
        wanted = StartInstance(plan.flow.definition, given, "ann", start_at=at)
        name = f"start:{cell.tenant}/{cell.key}"
        self.ask(name, cell, wanted)
        if self.world.faults.fires("client.twice", name, "starts twice"):
            self.ask(f"{name}:twice", cell, wanted)
        if self.world.faults.fires("client.regret", name, "is cancelled at once"):
            wait = self.world.dice.between(f"regret:{name}", 1, 400)
            cancel = CancelInstance("ann")
            self.world.after(wait, lambda: self.ask(f"regret:{name}", cell, cancel))

    def ask(self, name: str, cell: CellId, incoming: Input, then: Then = nothing) -> None:
        """Ask until there is an answer; one request of a name at a time."""
        if name in self.waiting:
            return
        self.waiting[name] = None
        asking = Asking(self.cluster, cell, incoming, name)

        def done(outcome: Accepted | Rejected) -> None:
            del self.waiting[name]
            said = outcome.code if isinstance(outcome, Rejected) else "ok"
            self.world.tell(f"{name}: {said}")
            then()
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
            if self.world.faults.fires("client.batch", tenant, "one act on many"):
                self.begin_batch(tenant)
        self.look_at_schedules(calm=calm)
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
        for i, incoming in enumerate(self.serving.needs(name, shadow, state)):
            self.ask(f"serve:{name}:{type(incoming).__name__}:{i}", cell, incoming)

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

    # Many at once

    def begin_batch(self, tenant: Tenant) -> None:
        """One act on some instances; the targets come in two pages, and one is not there."""
        self.batches += 1
        id_, dice = f"b{self.batches}", self.world.dice
        verb = dice.pick(f"batch:{tenant}", VERBS)
        data = Payload.of({"n": 1}, tenant) if verb in ("signal", "retry") else None
        event = "ping" if verb == "signal" else ""
        asked = OpenBatch(verb, "some", "eve", event=event, given=data)
        shadows = self.cluster.bench.monitors.shadows.refs.values()
        known = [s.id for s in shadows if s.id.tenant == tenant and s.plan is not None]
        chosen = [cell for cell in known if dice.roll(f"target:{tenant}") < 0.5]
        targets = [[cell.workflow, cell.key] for cell in chosen]
        pages = [targets[:2], [*targets[1:], ["w0", "nobody"]]]  # one is meant twice
        cell = batch_cell(tenant, id_)
        last = AddTargets(Payload.of(pages[1], tenant), complete=True)
        first = AddTargets(Payload.of(pages[0], tenant), complete=False)
        steps: list[tuple[str, Input]] = [("open", asked), ("first", first), ("last", last)]
        self.go_on(f"batch:{tenant}/{id_}", cell, steps)

    def go_on(self, name: str, cell: CellId, steps: list[tuple[str, Input]]) -> None:
        """One request after the other."""
        if steps:
            (what, incoming), rest = steps[0], steps[1:]
            then = lambda: self.go_on(name, cell, rest)  # noqa: E731
            self.ask(f"{name}:{what}", cell, incoming, then)

    def look_at_schedules(self, *, calm: bool) -> None:
        """Hold them, let them go on, catch up; after the storm nothing more begins by itself."""
        faults = self.world.faults
        for shadow in list(self.cluster.bench.monitors.shadows.refs.values()):
            state = shadow.cell.state
            if not isinstance(state, Schedule) or state.job is None:
                continue
            name, held = f"{shadow.id.tenant}/{shadow.id.key}", state.paused_by is not None
            if calm and not held:
                self.ask(f"hold:{name}", shadow.id, PauseSchedule("ann"))
            if faults.fires("client.hold", name, "is held, or let go"):
                turned = UnpauseSchedule("eve") if held else PauseSchedule("eve")
                self.ask(f"turn:{name}", shadow.id, turned)
            if faults.fires("client.backfill", name, "its past is made up for"):
                last = TimeMs(state.now)
                first = TimeMs(last - self.world.dice.between(f"back:{name}", 0, BACK_MS))
                self.ask(f"fill:{name}", shadow.id, requests.backfill(first, last, "eve"))
