"""A run: one seed from the first start to the last instance closed, under watch all the way."""

from collections import Counter
from typing import Final

import msgspec

from pawlflow.engine import marks
from pawlflow.engine.actions import Stopped
from pawlflow.engine.cells import rebuild
from pawlflow.kernel.replay import fold
from pawlflow.kernel.snapshot import state_bytes
from pawlflow.kernel.state import Instance
from pawlflow.kernel.system.batch import Batch as Many
from pawlflow.kernel.system.listeners import Topic
from pawlflow.kernel.system.rate import Rate
from pawlflow.kernel.system.slots import Slots
from pawlflow.model.ids import CellId
from pawlflow.model.inputs import Receipt
from pawlflow.model.journal import Disposition
from pawlflow.model.records import read
from pawlflow.store.memory import Memory
from pawlflow.store.port import Batch, StoreError
from pawlflow.testing.sim.asking import Asking
from pawlflow.testing.sim.bending import bent
from pawlflow.testing.sim.bus import Bus
from pawlflow.testing.sim.chance import Dice
from pawlflow.testing.sim.clients import DEAD_MAX, Clients
from pawlflow.testing.sim.cluster import Cluster
from pawlflow.testing.sim.core import Bench, Core
from pawlflow.testing.sim.executors import Executors
from pawlflow.testing.sim.faults import Faults, Fired
from pawlflow.testing.sim.flows import TENANTS, flows_of, instances_of
from pawlflow.testing.sim.judge import Judge
from pawlflow.testing.sim.language import schedules_of
from pawlflow.testing.sim.ledger import Ledger
from pawlflow.testing.sim.monitors import Monitors
from pawlflow.testing.sim.setup import PROFILES, Setup
from pawlflow.testing.sim.shadows import Shadow
from pawlflow.testing.sim.store import SimStore
from pawlflow.testing.sim.world import Violated, World

CALM_MS_MAX: Final = 3 * 3_600_000  # after the storm: clocks were an hour ahead, then time for all
CHECK_MS: Final = 5_000
RECEIPT_TRIES_MAX: Final = 40


class Violation(msgspec.Struct, frozen=True):
    """A promise that did not hold."""

    monitor: str
    at: int
    cell: str
    why: str


class Outcome(msgspec.Struct, kw_only=True):
    """How a run went."""

    setup: Setup
    violation: Violation | None
    trace: str  # a hash of everything that happened
    fired: list[Fired]
    marks: dict[str, int]
    simulated_ms: int
    turns: int
    events: int
    story: list[str]


class Sim:
    """Everything of a run, put together."""

    def __init__(self, setup: Setup, allowed: frozenset[str] | None, *, story: bool) -> None:
        dice = Dice(setup.seed)
        self.setup = setup
        self.profile = PROFILES[setup.profile]
        self.faults = Faults(dice, setup.rates, allowed)
        self.world = World(dice, self.faults, [] if story else None)
        self.ledger = Ledger()
        memory = Memory()
        self.monitors = Monitors(self.world, memory, self.ledger, self.profile)
        self.store = SimStore(self.world, memory, self.monitors, self.told)
        bus = Bus(self.world)
        self.executors = Executors(self.world, bus, self.ledger, self.bring, self.monitors.happened)
        self.executors.dedupe = self.profile.dedupe
        self.executors.rooms = setup.rooms
        self.executors.judge = Judge(setup.seed, self.monitors.shadows).rule
        bench = Bench(
            self.world,
            setup,
            self.monitors,
            self.store,
            self.executors.command,
            self.stopped,
        )
        self.bus = bus
        self.cluster = Cluster(bench, [f"n{i}" for i in range(setup.nodes)])
        flows = flows_of(setup)
        self.planned = instances_of(setup, flows)
        self.clients = Clients(self.cluster, flows, self.planned)
        self.clients.schedules = schedules_of(dice, setup.rooms)
        self.receipts = 0

    def told(self, batch: Batch) -> None:
        """Something was committed."""
        self.cluster.told(batch)

    def stopped(self, core: Core, action: Stopped) -> None:
        """A core gave up shards."""
        self.cluster.stopped(core, action)

    def bring(self, cell: CellId, receipt: Receipt, key: str) -> None:
        """A receipt travels to any node, until one of them has it."""
        self.receipts += 1
        number = self.receipts

        def deliver() -> None:
            asking = Asking(self.cluster, CellId(cell.tenant, "", cell.key), receipt, key)  # type: ignore[arg-type]
            asking.mail_is_enough = True
            asking.tries_max = RECEIPT_TRIES_MAX if self.profile.redelivery else 1
            asking.ask()

        self.world.tell(f"receipt {number} {key} {receipt.outcome}")
        self.bus.send(key, deliver)

    def run(self) -> None:
        """Storm, calm, and a last look at everything."""
        self.cluster.begin()
        self.clients.begin()
        self.world.run(self.setup.storm_ms)
        self.faults.healed = True
        self.world.tell("the storm is over")
        self.cluster.heal()
        self.world.after(CHECK_MS, self.check)
        self.world.run(self.setup.storm_ms + CALM_MS_MAX)
        if not self.world.over:
            self.monitors.bad("live", None, f"after the storm it never came to rest: {self.left()}")
        self.finish()

    def check(self) -> None:
        """Is everything done?"""
        self.world.over = not self.left()
        self.world.after(CHECK_MS, self.check)

    def left(self) -> list[str]:
        """What is not done yet."""
        shadows = self.monitors.shadows
        found = [
            f"{shadow.id.tenant}/{shadow.id.key} is open"
            for shadow in shadows.refs.values()
            if isinstance(shadow.cell.state, Instance) and shadow.cell.state.closed is None
        ]
        for plan in self.planned:
            name = f"start:{plan.cell.tenant}/{plan.cell.key}"
            missing = (plan.cell.tenant, plan.cell.key) not in shadows.addresses
            if missing and name not in self.clients.refused:
                found.append(f"{plan.cell.tenant}/{plan.cell.key} was never started")
        found += [f"mail {number} waits" for number in self.store.memory.mailbox]
        return found

    def finish(self) -> None:
        """Everything is closed: read it all again, from the store, from the beginning."""
        for shadow in self.monitors.shadows.refs.values():
            address = (shadow.id.tenant, shadow.id.key)
            story = self.store.real.story(address)
            assert story is not None
            told = state_bytes(shadow.cell.state)
            journal = [entry.data for entry in story.entries]
            whole = fold(shadow.id, shadow.plan, journal, self.monitors.payloads)
            if state_bytes(whole.state) != told or self.short(shadow) != told:
                why = "replay, snapshot with tail, and live state differ"
                self.monitors.bad("9", shadow.id, why)
            self.finish_system(shadow)
            self.finish_acts(shadow)
        self.monitors.outside.between.finish(self.monitors.shadows.addresses, self.dead())
        for address in self.monitors.started:
            if address not in self.monitors.shadows.addresses:
                self.monitors.bad("5", None, f"{address} was started, and is not there")

    def dead(self) -> set[object]:
        """Cells whose inputs were put aside: a start may be among them."""
        rows = (self.store.real.dispositions(tenant, DEAD_MAX) for tenant in TENANTS)
        letters = (read(Disposition, row.entry.data, {}) for found in rows for row in found)
        return {(letter.cell.tenant, letter.cell.key) for letter in letters}

    def short(self, shadow: Shadow) -> bytes:
        """A state as a core reads it: from its snapshot, if there is one."""
        address = (shadow.id.tenant, shadow.id.key)
        try:
            live = rebuild(self.store.real.load([address])[address], shadow.plan)
        except StoreError as error:
            self.monitors.bad("9", shadow.id, f"cannot be read: {error}")
            return b""
        return b"" if live.cell is None else state_bytes(live.cell.state)

    def finish_system(self, shadow: Shadow) -> None:
        """12: what is closed holds nothing, and waits for nothing."""
        state = shadow.cell.state
        if isinstance(state, Slots) and (state.holders or state.queue):
            self.monitors.bad("12", shadow.id, f"closed instances hold slots: {state.holders}")
        if isinstance(state, Rate) and state.queue:
            self.monitors.bad("12", shadow.id, "closed instances wait for their rate")
        if isinstance(state, Topic) and state.waits:
            self.monitors.bad("12", shadow.id, f"closed instances wait: {state.waits}")
        if isinstance(state, Many) and state.complete and state.closed is None:
            self.monitors.bad("2", shadow.id, f"a batch waits: {state.codes}")

    def finish_acts(self, shadow: Shadow) -> None:
        """2: an act on many reached an instance once, if its batch says that it is done."""
        taken = Counter(getattr(each, "batch", "") for each in shadow.inputs)
        del taken[""]
        tenant = shadow.id.tenant
        for other in self.monitors.shadows.refs.values():
            batch = other.cell.state
            if not isinstance(batch, Many) or other.id.tenant != tenant:
                continue
            done = batch.codes.get(shadow.id.key) == ""
            if taken.pop(batch.id, 0) != done:
                self.monitors.bad("2", shadow.id, f"{batch.id} says {done}, and it is not so")
        if taken:
            self.monitors.bad("2", shadow.id, f"acts of batches that are not there: {taken}")


def run(setup: Setup, allowed: frozenset[str] | None = None, *, story: bool = False) -> Outcome:
    """Run a setup; with `allowed`, exactly these faults strike."""
    seen: Counter[str] = Counter()
    sim = Sim(setup, allowed, story=story)
    violation: Violation | None = None
    marks.listen(seen)
    try:
        with bent(setup, sim.faults):
            sim.run()
    except Violated as found:
        violation = Violation(found.monitor, found.at, found.cell, found.why)
    except Exception as error:  # the core raised: that is a finding, too
        violation = Violation("raised", sim.world.now, "-", f"{type(error).__name__}: {error}")
        if story:
            raise
    finally:
        marks.listen(None)
    return Outcome(
        setup=setup,
        violation=violation,
        trace=sim.world.trace.hexdigest(),
        fired=sim.faults.fired,
        marks=dict(sorted(seen.items())),
        simulated_ms=sim.world.now,
        turns=sim.monitors.turns,
        events=sim.world.done,
        story=sim.world.story or [],
    )
