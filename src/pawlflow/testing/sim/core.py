"""A simulated driver of the real shard core: one claim of some shards by one node.

Store calls run one after the other, each with its own delay; between a call and its answer the node
may stop, sleep or lose what it owns.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from pawlflow.engine import outcomes
from pawlflow.engine.actions import (
    Accepted,
    Action,
    Append,
    Forward,
    Load,
    Notify,
    Publish,
    ReadDue,
    ReadHeads,
    ReadInFlight,
    ReadMail,
    Reply,
    Stopped,
)
from pawlflow.engine.cells import Hot
from pawlflow.engine.drivers import SAFETY_MS, Engine
from pawlflow.engine.places import mail_of
from pawlflow.engine.shard import FULL_RETRY_MS, Limits, Shards
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import CellId
from pawlflow.model.inputs import Input
from pawlflow.model.intents import Intent
from pawlflow.store.fair_mail import FairMail
from pawlflow.store.memory import MemoryStore
from pawlflow.store.port import Address, CellImage, ShardHead, StoreConflictError, StoreError
from pawlflow.testing.sim.faults import Faults
from pawlflow.testing.sim.living import (
    check_alive,
    check_bounds,
    check_mail,
    check_queue,
    check_timers,
)
from pawlflow.testing.sim.monitors import Monitors
from pawlflow.testing.sim.setup import Setup
from pawlflow.testing.sim.store import SimStore
from pawlflow.testing.sim.world import NodeClock, World

Answer = Callable[[Accepted | Rejected], None]
StoreAction = Append | Load | ReadHeads | ReadMail | ReadDue | ReadInFlight
SLOW_MS: Final = 2_500
STEPPING_S: Final = 0.008  # less than a slow step takes, see NodeClock
HOUR_MS: Final = 3_600_000  # clocks are never more wrong than that


class Host(Protocol):
    """The node a core runs on."""

    name: str
    clock: NodeClock

    def when_awake(self, what: Callable[[], None]) -> None:
        """Do it now, or when the node wakes up; never, if it is down."""
        ...

    def crash(self, why: str) -> None:
        """Lose everything that is in memory."""
        ...


class Bench(msgspec.Struct, frozen=True):
    """What all cores of a run share."""

    world: World
    setup: Setup
    monitors: Monitors
    store: SimStore
    publish: Callable[[str, Intent], None]
    stopped: Callable[["Core", Stopped], None]


class Core:
    """The real `Shards`, and what is under way for it."""

    def __init__(self, bench: Bench, host: Host, name: str, heads: Sequence[ShardHead]) -> None:
        self.bench = bench
        self.world = bench.world
        self.host = host
        self.name = name
        self.alive = True
        knobs = bench.setup.knobs
        self.shards = Shards(
            heads,
            host.clock,
            hot=Hot(knobs["hot_cells"], knobs["hot_bytes"]),
            limits=Limits(knobs["turns"], knobs["bytes"], STEPPING_S),
            buggify=lambda site: self.world.faults.fires(f"buggify.{site}", self.where()),
        )
        self.mail = FairMail(bench.store.real)
        self.know(heads)
        self.queue: deque[StoreAction] = deque()
        self.busy = False
        self.scheduled = False
        self.timer = 0  # the number of the timer that counts
        self.answers: dict[int, Answer] = {}
        self.tokens = 0

    def is_ready_for(self, shards: Sequence[int]) -> bool:
        """May it gain these? What it holds of them it has lost, and nothing may be under way."""
        if self.busy or self.queue or self.shards.staging is not None:
            return False
        outcomes.lose(self.shards, shards, "they are claimed again")
        return True

    def gain(self, heads: Sequence[ShardHead]) -> None:
        """Shards more."""
        outcomes.gain(self.shards, heads)
        self.know(heads)
        self.kick()

    def know(self, heads: Sequence[ShardHead]) -> None:
        """Of these shards, attempts may have gone down with another engine."""
        if self.bench.setup.knobs["patience"]:
            since = self.host.clock.now()
            self.shards.took_over |= {head.shard: since for head in heads}

    def where(self) -> str:
        """Node and place in its journals: a name that stays when something before it goes."""
        return f"{self.host.name}@{sum(head.seq for head in self.shards.heads.values())}"

    # In

    def submit(self, cell: CellId, incoming: Input, answer: Answer | None) -> None:
        """Hand in an input."""
        token = None
        if answer is not None:
            self.tokens += 1
            token = self.tokens
            self.answers[token] = answer
        self.shards.submit(cell, incoming, token, 100)
        self.kick()

    def poke(self) -> None:
        """There may be mail."""
        self.shards.poked()
        self.kick()

    def kick(self) -> None:
        """Let the core work, after all that happens at this moment."""
        if self.alive and not self.scheduled:
            self.scheduled = True
            self.world.after(0, lambda: self.host.when_awake(self.run))

    def run(self) -> None:
        """Work until there is nothing to do, and wake up in time."""
        self.scheduled = False
        rounds = 0
        while self.alive:
            actions = self.shards.work(self.host.clock.now())
            for action in actions:
                if self.alive:
                    self.perform(action)
            rounds += 1
            if not actions:
                break
            if rounds > 1_000:
                self.bench.monitors.bad("live", None, f"{self.name} works in circles: {actions}")
        if self.alive:
            self.check_awake()
            self.set_timer()

    def check_awake(self) -> None:
        """Going to sleep while there is something to do is a loss until somebody knocks."""
        core = self.shards
        check_queue(self.bench.monitors, core, self.bench.setup)
        if core.staging is None and core.stopped is None and not core.inbox.count and not self.busy:
            check_timers(self.bench.monitors, core)
            check_mail(self.bench.monitors, core)
        if self.is_ready():
            self.bench.monitors.bad("live", None, f"{self.name} sleeps while inputs wait")
        full, now = self.shards.full_until, self.host.clock.now()
        if full is not None and self.shards.staging is None and full > now + FULL_RETRY_MS:
            why = f"{self.name} waits {full - now} ms for room"
            self.bench.monitors.bad("live", None, why)

    def is_ready(self) -> bool:
        """Is there something that could be stepped now?"""
        core = self.shards
        ready = core.inbox.ready.count > 0
        held = core.staging is not None or core.full_until is not None or core.stopped is not None
        return ready and not held and not self.queue

    def set_timer(self) -> None:
        """Wake at the next deadline, or to look at the mailbox."""
        core, now = self.shards, self.host.clock.now()
        wake = core.next_wake()
        wait = SAFETY_MS if wake is None else min(SAFETY_MS, max(1, wake - now))
        self.timer += 1
        number = self.timer
        self.world.after(wait, lambda: self.wake(number))

    def wake(self, number: int) -> None:
        """The timer; an older one no longer counts."""
        if number == self.timer and self.alive:
            self.shards.poked()
            self.kick()

    # Out

    def perform(self, action: Action) -> None:
        """Carry out one action."""
        match action:
            case Publish():
                self.publish(action)
            case Reply():
                self.reply(action)
            case Forward():
                self.forward(action)
            case Notify():
                pass
            case Stopped():
                self.world.tell(f"{self.name} stops {sorted(action.shards)} {action.code}")
                self.bench.stopped(self, action)
            case _:
                self.queue.append(action)
                self.start()

    def publish(self, action: Publish) -> None:
        """Let effects out, one by one; the node may fall in the middle."""
        for intent in action.intents:
            self.bench.monitors.published(intent)
            self.bench.publish(self.name, intent)
            if self.world.faults.fires("crash.publish", self.where()):
                self.host.crash("while it published")
                return

    def reply(self, action: Reply) -> None:
        """Answer a caller."""
        answer = self.answers.pop(action.token)
        self.bench.monitors.replied(self.name, action.token, action.outcome)
        answer(action.outcome)
        if self.world.faults.fires("crash.reply", self.where()):
            self.host.crash("after an answer")

    def forward(self, action: Forward) -> None:
        """Another node owns it: a caller asks again there, anything else goes by mail."""
        if action.token is None:
            self.bench.store.post(self.host.name, mail_of(action.cell, action.input))
        else:
            refused = Rejected("shard.elsewhere", "another node owns it now")
            self.reply(Reply(action.token, refused))

    # The store

    def start(self) -> None:
        """Begin the next store call, when the last one is answered."""
        if self.busy or not self.queue:
            return
        self.busy = True
        action = self.queue.popleft()
        outcomes = ()
        if isinstance(action, Append) and self.shards.staging is not None:
            outcomes = self.shards.staging.outcomes  # type: ignore[assignment]
        where, slow = f"{type(action).__name__}:{self.where()}", self.bench.setup.knobs["slow_ms"]
        wait = self.world.dice.between(f"io:{where}", 0, slow)
        if self.world.faults.fires("store.slow", where):
            wait += self.world.dice.between(f"slow:{where}", 100, SLOW_MS)
        self.world.after(wait, lambda: self.execute(action, outcomes))

    def execute(self, action: StoreAction, outcomes: Sequence[object]) -> None:
        """The call reaches the store; if its node is gone by now, it may have been sent or not."""
        faults, name = self.world.faults, self.where()
        if not self.alive:
            if isinstance(action, Append) and faults.fires("store.lands", name):
                self.bench.store.land(self.name, action.batch, outcomes)  # type: ignore[arg-type]
            return
        if faults.fires("clock.back", name, "its clock is set back"):
            back = self.world.dice.between(f"back:{name}", 1_000, HOUR_MS)
            self.host.clock.skew = max(-HOUR_MS, self.host.clock.skew - back)
            self.world.tell(f"{self.host.name} clock {self.host.clock.skew}")
        if isinstance(action, Append):
            if faults.fires("crash.before", name):
                self.host.crash("before a commit")
                return
            error = self.bench.store.append(self.name, name, action.batch, outcomes)  # type: ignore[arg-type]
            if error is not None:
                self.world.tell(f"{self.name} append: {error.code}")
                self.judge(error)
            if faults.fires("crash.after", name):
                self.host.crash("after a commit")
                return
            touched = [(head.cell.tenant, head.cell.key) for head in action.batch.heads]
            answer = lambda: self.appended(error, touched)  # noqa: E731
        elif faults.fires("store.unread", name):
            self.host.crash("because the store could not be read")
            return
        else:
            answer = self.read(action)
        self.world.after(0, lambda: self.host.when_awake(lambda: self.answer(answer)))

    def judge(self, error: StoreError) -> None:
        """10: only those who lost a shard are fenced."""
        if isinstance(error, StoreConflictError) and self.name not in self.bench.store.coming:
            memory = self.bench.store.memory
            for shard in error.shards:
                head = self.shards.heads.get(shard)
                if head is not None and head.epoch == memory.shards[shard].epoch:
                    why = f"{self.name} is fenced from shard {shard}, which it owns"
                    self.bench.monitors.bad("10", None, why)

    def answer(self, tell: Callable[[], None]) -> None:
        """The store's answer arrives."""
        if not self.alive:
            return
        tell()
        self.busy = False
        self.start()
        self.kick()

    def appended(self, error: StoreError | None, touched: Sequence[Address]) -> None:
        """How the commit went, as far as anybody can tell."""
        self.shards.appended(error, self.host.clock.now())
        if error is None:
            check_alive(self.bench.monitors, self.shards, touched)
            check_bounds(self.bench.monitors, self.shards)

    def read(
        self, action: Load | ReadHeads | ReadMail | ReadDue | ReadInFlight
    ) -> Callable[[], None]:
        """Read now what will be told later."""
        core, store = self.shards, self.bench.store.real
        match action:
            case ReadMail():
                mail = self.mail.read(action.shards, action.after, action.limit)
                return lambda: core.mail_read(mail)
            case ReadDue():
                due = store.due(action.shards, action.after, action.limit)
                return lambda: core.due_read(due)
            case ReadInFlight():
                calls = store.in_flight(action.shards, action.after, action.limit)
                return lambda: core.in_flight_read(calls)
            case ReadHeads():
                heads = store.heads(action.shards)
                return lambda: core.heads_read(heads, self.host.clock.now())
            case Load():
                return self.load(action)

    def load(self, action: Load) -> Callable[[], None]:
        """Cells, and the definitions they run under, read by the real driver."""
        store = Rotting(self.bench.store.real, self.world.faults)
        found = Engine(self.shards, store, self.host.clock, self).load(action)  # type: ignore[arg-type]

        def tell() -> None:
            self.shards.loaded(*found)
            staged = self.shards.staging.touched if self.shards.staging else {}
            read = [each for each in action.cells if each not in staged]
            check_alive(self.bench.monitors, self.shards, read)

        return tell


class Rotting:
    """A store whose snapshots rot now and then: they are caches, and the turns are still there."""

    def __init__(self, real: MemoryStore, faults: Faults) -> None:
        self.story = real.story
        self.definitions = real.definitions
        self.dispositions = real.dispositions
        self.real = real
        self.faults = faults

    def load(self, cells: Sequence[Address]) -> dict[Address, CellImage]:
        """Cells, some from a bad place of the disk."""
        found = self.real.load(cells)
        for (tenant, key), image in found.items():
            kept = image.snapshot
            if kept is not None and self.faults.fires("store.rot", f"{tenant}/{key}", "rots"):
                middle = len(kept.data) // 2
                spoilt = bytes([kept.data[middle] ^ 0x10])
                data = kept.data[:middle] + spoilt + kept.data[middle + 1 :]
                found[tenant, key] = replace(image, snapshot=replace(kept, data=data))
        return found
