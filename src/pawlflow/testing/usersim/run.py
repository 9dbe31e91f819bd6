"""A run: one seed from the first start until nothing more can happen, and what must hold then."""

import traceback
from collections import Counter
from collections.abc import Sequence

import msgspec

from pawlflow import requests
from pawlflow.engine.actions import Accepted, Stopped
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.summary import instance_state
from pawlflow.model.ids import CellId
from pawlflow.model.inputs import Receipt, StartInstance
from pawlflow.store.memory import Memory
from pawlflow.store.port import Batch
from pawlflow.testing.sim.asking import Asking
from pawlflow.testing.sim.bus import Bus
from pawlflow.testing.sim.chance import Dice
from pawlflow.testing.sim.core import Bench, Core
from pawlflow.testing.sim.faults import Fired
from pawlflow.testing.sim.store import SimStore
from pawlflow.testing.sim.world import Violated
from pawlflow.testing.usersim.clockwork import (
    Clockwork,
    Line,
    Nodes,
    ToldFaults,
    engine_setup,
    look_ms,
)
from pawlflow.testing.usersim.ended import Run
from pawlflow.testing.usersim.hands import Hands
from pawlflow.testing.usersim.invariants import Broken, Invariant
from pawlflow.testing.usersim.lives import PROMISES, Life, waits_for
from pawlflow.testing.usersim.people import People
from pawlflow.testing.usersim.telling import Teller
from pawlflow.testing.usersim.watch import Watch
from pawlflow.testing.usersim.workload import (
    SPREAD_MS,
    TENANT,
    Setup,
    UnfitInputError,
    Workload,
    numbers_of,
)

PATIENCE_MS = 3 * 86_400_000  # after the storm, beside what the workflow itself may take


class Violation(msgspec.Struct, frozen=True):
    """What did not hold: a promise of the engine, or an invariant of the user."""

    invariant: str
    at: int
    instance: str
    why: str
    values: tuple[tuple[str, str], ...] = ()
    built_in: bool = False


class Outcome(msgspec.Struct, kw_only=True):
    """How a run went."""

    setup: Setup
    violation: Violation | None
    trace: str  # a hash of everything that happened
    fired: list[Fired]
    faults: Counter[str]
    outcomes: Counter[str]  # of attempts
    ends: Counter[str]  # of instances
    waits: Counter[str]  # what those that did not end wait for
    simulated_ms: int
    turns: int
    story: list[Line]


class BrokenError(Exception):
    """An invariant of the user does not hold."""

    def __init__(self, broken: Broken, run: Run) -> None:
        self.broken = broken
        self.run = run
        super().__init__(broken.why)


class UserSim:
    """Everything of a run, put together."""

    def __init__(
        self, work: Workload, setup: Setup, allowed: frozenset[str] | None, *, story: bool
    ) -> None:
        dice = Dice(setup.seed)
        self.work = work
        self.setup = setup
        self.faults = ToldFaults(dice, setup.rates, allowed)
        self.world = self.faults.world = Clockwork(dice, self.faults)
        self.world.lines = [] if story else None
        memory = Memory()
        self.watch = Watch(self.world, memory)
        self.store = SimStore(self.world, memory, self.watch, self.told)
        self.bus = Bus(self.world)
        self.hands = Hands(self.world, self.bus, work, self.watch)
        self.hands.bring = self.bring
        bench = Bench(
            self.world,
            engine_setup(setup),
            self.watch,
            self.store,
            self.hands.command,
            self.stopped,
        )
        self.nodes = Nodes(bench, [f"node{i + 1}" for i in range(setup.nodes)])
        self.nodes.look_ms = look_ms(setup)
        self.nodes.done = self.quiet
        people = People(self.nodes, self.world, work, self.watch)
        self.watch.heard = [*([Teller(self.world).heard] if story else []), people.heard]
        self.unanswered = len(work.publications)
        self.started: dict[CellId, Accepted | Rejected | None] = {}

    def told(self, batch: Batch) -> None:
        """Something was committed."""
        self.nodes.told(batch)

    def stopped(self, core: Core, action: Stopped) -> None:
        """A core gave up shards."""
        self.nodes.stopped(core, action)

    def bring(self, cell: CellId, receipt: Receipt, key: str) -> None:
        """An answer comes to any node, until one of them has it."""
        asking = Asking(self.nodes, CellId(cell.tenant, "", cell.key), receipt, key)  # type: ignore[arg-type]
        asking.mail_is_enough = True
        asking.ask()

    # The run

    def run(self, invariants: Sequence[Invariant]) -> None:
        """Storm, calm, and a last look at everything."""
        self.nodes.begin()
        for asked in self.work.publications:
            name = f"publish:{TENANT}/{asked.name}"
            asking = Asking(self.nodes, requests.registry_cell(TENANT), asked, name)
            asking.done = lambda _: self.published()
            asking.ask()
        self.world.after(self.setup.storm_ms, self.calm)
        patience = 4 * self.work.span_ms + (self.work.plan.timeout_ms or 0) + PATIENCE_MS
        self.world.run(self.setup.storm_ms + patience)
        self.finish(invariants)

    def published(self) -> None:
        """When all definitions are known, the instances are started."""
        self.unanswered -= 1
        if self.unanswered:
            return
        for number in numbers_of(self.setup):
            cell, start = self.work.start(self.world.dice, number)
            self.started[cell] = None
            wait = self.world.dice.between(f"at:{number}", 0, SPREAD_MS)
            self.world.after(wait, lambda c=cell, s=start: self.start(c, s))  # type: ignore[misc]

    def start(self, cell: CellId, start: StartInstance) -> None:
        """Start an instance; a nervous client does so twice."""
        name = f"start:{cell.tenant}/{cell.key}"
        twice = self.faults.fires("client.twice", name)
        for _ in range(2 if twice else 1):
            asking = Asking(self.nodes, cell, start, name)
            asking.done = lambda outcome: self.began(cell, outcome)
            asking.ask()

    def began(self, cell: CellId, outcome: Accepted | Rejected) -> None:
        """A start is answered: accepted, or refused for good."""
        if self.started[cell] is None or isinstance(outcome, Accepted):
            self.started[cell] = outcome
        if isinstance(outcome, Rejected):
            self.world.say(cell.key, f"cannot be started: {outcome.code} {outcome.detail}")

    def quiet(self) -> bool:
        """Is there nothing left that a fault could disturb?"""
        if not self.started or None in self.started.values():
            return False
        return all(life.state.closed is not None for life in self.watch.lives.values())

    def calm(self) -> None:
        """The storm is over: everybody is up, awake, and knows the time."""
        self.faults.healed = True
        self.nodes.heal()

    # The end

    def finish(self, invariants: Sequence[Invariant]) -> None:
        """Nothing more happens: has everything come to its end, and is it a good one?"""
        for cell, outcome in self.started.items():
            life = self.watch.lives.get((cell.tenant, cell.key))
            if isinstance(outcome, Accepted) and life is None:
                self.watch.bad("lost", cell, "its start was acknowledged, and it is not there")
            if outcome is None and life is None:
                self.watch.bad("ends", cell, "its start was never answered")
        if self.watch.memory.mailbox:
            left = len(self.watch.memory.mailbox)
            self.watch.bad("lost", None, f"{left} letters lie in the mailbox, and nobody reads")
        for life in self.watch.lives.values():
            life.check_replay(self.watch.payloads)
            self.check_end(life)
        runs = self.runs()
        for run in runs:
            run.all = runs
        for run in runs:
            self.check_invariants(run, invariants)

    def runs(self) -> list[Run]:
        """The instances that were started, in order; children belong to theirs."""
        found = (life for life in self.watch.lives.values() if life.state.parent is None)
        lives = sorted(found, key=lambda life: (len(life.name), life.name))
        ledger = self.hands.ledger
        return [Run(each, ledger.get(each.cell.key, []), self.watch.payloads) for each in lives]

    def check_end(self, life: Life) -> None:
        """It has ended, or somebody outside is asked for."""
        if life.state.closed is not None or waits_for(life.state):
            return
        units = [life.state.unit(place) for place in sorted(life.state.open)]
        below = any(unit.wait == "child" for unit in units)
        others = [each for each in self.watch.lives.values() if each.state.closed is None]
        asked = any(waits_for(each.state) for each in others if each is not life)
        if asked and (below or life.state.queued or life.state.started is None):
            return
        hung = list(self.hands.hanging.values())
        if hung:
            names = ", ".join(dict.fromkeys(hung))
            self.watch.bad(
                "hangs", life.cell, f"no answer ever comes to {names}: it needs a timeout"
            )
        what = ", ".join(str(life.state.name_of(unit)) for unit in units) or "nothing"
        why = f"it is {instance_state(life.state)}, nothing more can happen, and open are: {what}"
        self.watch.bad("ends", life.cell, why)

    def check_invariants(self, run: Run, invariants: Sequence[Invariant]) -> None:
        """What the user says must hold of every instance that has ended."""
        if run.instance.closed is None:
            return
        for invariant in invariants:
            broken = invariant.broken(run)
            if broken is not None:
                raise BrokenError(broken, run)


def simulate(
    work: Workload,
    setup: Setup,
    invariants: Sequence[Invariant] = (),
    allowed: frozenset[str] | None = None,
    *,
    story: bool = False,
) -> Outcome:
    """Run a setup; with `allowed`, exactly these faults strike. Raises UnfitInputError."""
    sim = UserSim(work, setup, allowed, story=story)
    violation: Violation | None = None
    try:
        sim.run(invariants)
    except BrokenError as found:
        broken, life = found.broken, found.run.life
        end = sim.world.now
        violation = Violation(broken.invariant, end, life.name, broken.why, broken.values)
    except Violated as found:
        name = PROMISES.get(found.monitor, f"monitor {found.monitor}")
        who = found.cell.partition("/")[2] or found.cell
        ours = found.monitor != "hangs"
        violation = Violation(name, found.at, who, found.why, built_in=ours)
    except UnfitInputError:
        raise
    except Exception as error:  # noqa: BLE001  # the engine raised: that is a finding, too
        last = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})"
        violation = Violation(PROMISES["raised"], sim.world.now, "-", why, built_in=True)
    lives = sim.watch.lives.values()
    roots = [life.state for life in lives if life.state.parent is None]
    return Outcome(
        setup=setup,
        violation=violation,
        trace=sim.world.trace.hexdigest(),
        fired=sim.faults.fired,
        faults=sim.faults.counts,
        outcomes=sim.hands.met,
        ends=Counter(instance_state(state) for state in roots),
        waits=Counter(f"{k} of {s}" if s else k for each in roots for s, k in waits_for(each)),
        simulated_ms=sim.world.now,
        turns=sim.watch.turns,
        story=sim.world.lines or [],
    )
