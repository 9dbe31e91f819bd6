"""The cluster: nodes that own shards, fall, sleep, come back, and take over from each other."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from pawlflow.engine.actions import Accepted, Stopped
from pawlflow.engine.places import mail_of, shard_of
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import CellId
from pawlflow.model.inputs import Input
from pawlflow.store.port import SHARDS, Batch
from pawlflow.testing.sim.core import HOUR_MS, Bench, Core
from pawlflow.testing.sim.world import NodeClock, World

LEASE_MS: Final = 5_000  # a node that is silent for longer loses its shards
LOOK_MS: Final = 2_000  # between two looks at the weather


class Posted:
    """The input is in the mailbox, under this number."""

    def __init__(self, mail: int) -> None:
        self.mail = mail


Heard = Callable[[Accepted | Rejected | Posted], None]


class Node:
    """A process: it has a clock, some cores, and a bad day now and then."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.clock = NodeClock(world, name)
        self.cores: list[Core] = []
        self.up = True
        self.asleep = False
        self.waiting: list[Callable[[], None]] = []  # until it wakes up
        self.fallen: Callable[[Node], None] = lambda _: None

    def when_awake(self, what: Callable[[], None]) -> None:
        """Do it now, or when the node wakes up; never, if it is down."""
        if self.asleep:
            self.waiting.append(what)
        elif self.up:
            what()

    def crash(self, why: str) -> None:
        """Lose everything that is in memory."""
        self.world.tell(f"{self.name} falls {why}")
        for core in self.cores:
            core.alive = False
        self.cores = []
        self.waiting = []
        self.up = self.asleep = False
        self.fallen(self)

    def core_of(self, shard: int) -> Core | None:
        """The core that believes it owns this shard; the newest, if there are two."""
        found = (core for core in reversed(self.cores) if core.alive and shard in core.shards.heads)
        return next(found, None)


class Cluster:
    """All nodes, and who owns which shard."""

    make: type[Core] = Core

    def __init__(self, bench: Bench, names: Sequence[str]) -> None:
        self.bench = bench
        self.world = bench.world
        self.nodes = [Node(bench.world, name) for name in names]
        self.owner: dict[int, Core] = {}
        self.claims = 0
        for node in self.nodes:
            node.fallen = self.fallen

    def begin(self) -> None:
        """Share the shards out, and let the weather come."""
        for i, node in enumerate(self.nodes):
            self.claim(node, range(i, SHARDS, len(self.nodes)))
        self.look()

    # Owning

    def claim(self, node: Node, shards: Sequence[int]) -> None:
        """A node owns these shards from now on; who owned them before will notice."""
        if not shards or not node.up:
            return
        node.cores = [each for each in node.cores if each.alive and each.shards.heads]
        joined = node.cores[-1] if node.cores and self.bench.setup.knobs.get("gains") else None
        if joined is not None and not joined.is_ready_for(shards):  # the store is asked in order
            again = partial(self.claim, node, shards)
            self.world.after(5, partial(node.when_awake, again))
            return
        heads = self.bench.store.real.claim(list(shards))
        self.claims += 1
        name = f"{node.name}.{self.claims}"
        self.world.tell(f"{name} claims {list(shards)}")
        if joined is not None:
            core = joined
            self.bench.monitors.claimed(core.name, heads)
            core.gain(heads)
        else:
            self.bench.monitors.claimed(name, heads)
            core = self.make(self.bench, node, name, heads)
            node.cores.append(core)
        for shard in shards:
            self.owner[shard] = core
        core.kick()

    def owned(self, node: Node) -> list[int]:
        """The shards that are a node's by the last claim."""
        return [shard for shard, core in self.owner.items() if core.host is node]

    def stopped(self, core: Core, action: Stopped) -> None:
        """A core gave up shards, or everything. What is still its node's is claimed again."""
        if action.code != "shard.elsewhere":
            core.alive = False
        lost = [shard for shard in action.shards if self.owner[shard] is core]
        wait = self.world.dice.between(f"reclaim:{core.host.name}", 200, 3_000)
        if lost:
            self.world.after(wait, lambda: self.reclaim(core, lost))

    def reclaim(self, core: Core, shards: Sequence[int]) -> None:
        """Claim again what nobody else has claimed meanwhile."""
        node = next(node for node in self.nodes if node is core.host)
        held = core.shards.heads if core.alive else {}  # it may have gained them meanwhile
        left = [shard for shard in shards if self.owner[shard] is core and shard not in held]
        if node.up and not node.asleep:
            self.claim(node, left)
        elif left:
            self.world.after(1_000, lambda: self.reclaim(core, shards))

    # Weather

    def look(self) -> None:
        """What happens to nodes in these two seconds."""
        faults = self.world.faults
        if faults.healed:
            return
        for node in self.nodes:
            if node.up and not node.asleep:
                self.trouble(node)
        if faults.fires("store.full", "-", "no room in the store"):
            wait = self.world.dice.between("full", 1_000, 20_000)
            self.bench.store.full_until = self.world.now + wait
            self.world.tell(f"store full for {wait}")
        self.world.after(LOOK_MS, self.look)

    def trouble(self, node: Node) -> None:
        """What happens to one node."""
        faults, name = self.world.faults, node.name
        if faults.fires("clock.jump", name, "its clock jumps"):
            node.clock.skew = self.world.dice.between(f"jump:{name}", -HOUR_MS, HOUR_MS)
            self.world.tell(f"{name} clock {node.clock.skew}")
            for core in node.cores:
                core.kick()
        if faults.fires("node.steal", name, "takes shards from the others"):
            self.steal(node)
        if faults.fires("node.crash", name, "falls"):
            node.crash("by itself")
        elif faults.fires("node.pause", name, "sleeps"):
            self.pause(node, self.world.dice.between(f"pause:{name}", 500, 60_000))

    def steal(self, node: Node) -> None:
        """Take about half of what others own, while they are alive and well."""
        mine = self.owned(node)
        theirs = [shard for shard in range(SHARDS) if shard not in mine]
        taken = [s for s in theirs if self.world.dice.roll(f"steal:{node.name}") < 0.5]
        self.claim(node, taken)

    def fallen(self, node: Node) -> None:
        """A node fell: it comes back, or another one takes over first."""
        back = self.world.dice.between(f"restart:{node.name}", 200, 40_000)
        self.world.after(back, lambda: self.restart(node))
        self.world.after(LEASE_MS, lambda: self.take_over(node))

    def restart(self, node: Node) -> None:
        """A new process in the old place: it claims what is still its own, or something."""
        if node.up:
            return
        node.up = True
        self.world.tell(f"{node.name} is back")
        mine = self.owned(node)
        if mine:
            self.claim(node, mine)
        else:
            self.steal(node)

    def pause(self, node: Node, duration: int) -> None:
        """A node sleeps, perhaps for longer than its lease."""
        node.asleep = True
        self.world.tell(f"{node.name} sleeps for {duration}")
        self.world.after(duration, lambda: self.wake(node))
        self.world.after(LEASE_MS, lambda: self.take_over(node))

    def wake(self, node: Node) -> None:
        """It does not know that it slept."""
        if not node.asleep:
            return
        node.asleep = False
        self.world.tell(f"{node.name} wakes")
        waiting, node.waiting = node.waiting, []
        for what in waiting:
            node.when_awake(what)
        for core in node.cores:
            core.kick()

    def take_over(self, node: Node) -> None:
        """The lease is over: another node owns the shards now."""
        if node.up and not node.asleep:
            return
        others = [each for each in self.nodes if each.up and not each.asleep]
        mine = self.owned(node)
        if others and mine:
            heir = others[self.world.dice.between("heir", 0, len(others) - 1)]
            self.claim(heir, mine)

    def heal(self) -> None:
        """The storm is over: everybody is up, awake, and knows the time."""
        self.bench.store.full_until = 0
        for node in self.nodes:
            self.wake(node)
            self.restart(node)
            node.clock.skew = 0
            for core in node.cores:
                core.kick()

    # The doors

    def enter(self, node: Node, cell: CellId, incoming: Input, key: str, heard: Heard) -> None:
        """An input comes to a node: it takes it, or puts it into the owner's mailbox."""
        node.when_awake(lambda: self.enter_awake(node, cell, incoming, key, heard))

    def enter_awake(
        self, node: Node, cell: CellId, incoming: Input, key: str, heard: Heard
    ) -> None:
        """The same, on a node that is there."""
        shard = shard_of(cell)
        core = node.core_of(shard)
        if core is not None:
            core.submit(cell, incoming, heard)
            return
        number = self.bench.store.post(node.name, mail_of(cell, incoming, key))
        if number is not None:
            heard(Posted(number))
        self.poke(shard)

    def poke(self, shard: int) -> None:
        """Tell the owner that there is mail; a hint that may be lost."""
        core = self.owner[shard]
        if not self.world.faults.fires("poke.lost", core.host.name):
            self.world.after(1, lambda: core.host.when_awake(core.poke))

    def told(self, batch: Batch) -> None:
        """A commit has put mail into the boxes of others."""
        for shard in dict.fromkeys(mail.shard for mail in batch.mail):
            self.poke(shard)
