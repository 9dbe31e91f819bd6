"""The simulator's world with a story for users, faults that are told in it, and patient cores."""

from collections import Counter
from collections.abc import Callable
from heapq import heappop
from typing import Final

import msgspec

from pawlflow.engine.drivers import SAFETY_MS
from pawlflow.testing.sim.chance import Dice
from pawlflow.testing.sim.cluster import Cluster
from pawlflow.testing.sim.core import Core
from pawlflow.testing.sim.faults import Faults
from pawlflow.testing.sim.setup import KNOBS
from pawlflow.testing.sim.setup import Setup as EngineSetup
from pawlflow.testing.sim.world import Violated, World
from pawlflow.testing.usersim.kinds import KINDS
from pawlflow.testing.usersim.workload import LOOKS, Setup

EVENTS_MAX: Final = 400_000  # a run that needs more goes round in circles


class Line(msgspec.Struct, frozen=True):
    """One line of a story."""

    at: int  # virtual milliseconds
    who: str  # an instance or a node
    text: str
    fault: bool = False


class Clockwork(World):
    """The scheduler; it runs until nothing is planned any more."""

    lines: list[Line] | None = None

    def tell(self, text: str) -> None:
        """Put something on the record that is no part of the story."""
        self.trace.update(f"{self.now} {text}\n".encode())

    def say(self, who: str, text: str, *, fault: bool = False) -> None:
        """Something that a user would want to read."""
        if self.lines is not None:
            self.lines.append(Line(self.now, who, text, fault))

    def run(self, until: int) -> None:
        """Let time pass until nothing more can happen, or until a moment."""
        heap = self.heap
        while heap and heap[0][0] <= until:
            at, _, what = heappop(heap)
            self.now = self.faults.now = at
            self.done += 1
            if self.done > EVENTS_MAX:
                why = f"{EVENTS_MAX:,} things happened, and it is not over: it goes in circles"
                raise Violated("ends", self.now, "-", why)
            what()


class ToldFaults(Faults):
    """Faults that are counted by kind and told in the story."""

    world: Clockwork
    counts: Counter[str]

    def __init__(self, dice: Dice, rates: dict[str, float], allowed: frozenset[str] | None) -> None:
        super().__init__(dice, rates, allowed)
        self.counts = Counter()

    def fires(self, kind: str, key: str, words: str = "") -> bool:
        """Does this kind of fault strike this thing?"""
        hit = super().fires(kind, key, words)
        if hit:
            self.counts[kind] += 1
            if self.world.lines is not None:
                who, text = struck(kind, key)
                self.world.say(who, text, fault=True)
        return hit


def struck(kind: str, key: str) -> tuple[str, str]:
    """Whom a fault strikes, and how, in words."""
    told = KINDS[kind].told
    group = kind.partition(".")[0]
    if group == "bus":
        what, _, rest = key.partition(":")
        who, attempt = called(rest.partition(":")[0])
        noun = {"call": "the call of", "stop": "the stop of", "receipt": "the answer of"}[what]
        return who, f"{noun} {attempt} {told}"
    if group in ("exec", "undo"):
        who, attempt = called(key)
        return who, f"{attempt} {told}"
    if group in ("people", "client"):
        name = key.rpartition(":")[2].partition("/")[2] or key
        who, _, step = name.rpartition("@")
        return (who, f"{step}: {told}") if who else (step, told)
    return key.rpartition(":")[2].partition("@")[0] if "@" in key else key, told


def called(name: str) -> tuple[str, str]:
    """The instance and the attempt of a call's name, as people write them."""
    cell, step, direction, _, attempt = name.rsplit(".", 4)
    undo = "undo/" if direction == "undo" else ""
    return cell.partition("/")[2], f"{undo}{step}#{attempt}"


class PatientCore(Core):
    """A core that looks at its mailbox when there is mail: hours without any cost nothing."""

    def set_timer(self) -> None:
        """Wake at the next deadline."""
        wake, now = self.shards.next_wake(), self.host.clock.now()
        waits = [] if wake is None else [max(1, wake - now)]
        if self.bench.store.memory.mailbox:
            waits.append(SAFETY_MS)
        self.timer += 1
        number = self.timer
        if waits:
            self.world.after(min(waits), lambda: self.wake(number))


class Nodes(Cluster):
    """The cluster; its weather has the measure of the workflow."""

    make = PatientCore
    look_ms = 2_000
    done: Callable[[], bool] = lambda: False

    def look(self) -> None:
        """What happens to nodes now; nothing more once there is nothing left to disturb."""
        faults = self.world.faults
        if faults.healed or self.done():
            return
        for node in self.nodes:
            if node.up and not node.asleep:
                self.trouble(node)
        if faults.fires("store.full", "the store"):
            wait = self.world.dice.between("full", 1_000, 20_000)
            self.bench.store.full_until = self.world.now + wait
        self.world.after(self.look_ms, self.look)

    def poke(self, shard: int) -> None:
        """Tell the owner that there is mail; if that is lost, it looks by itself in the end."""
        core = self.owner[shard]
        lost = self.world.faults.fires("poke.lost", core.host.name)
        wait = SAFETY_MS if lost else 1
        self.world.after(wait, lambda: self.knock(shard))

    def knock(self, shard: int) -> None:
        """Whoever owns the shard by then hears it."""
        core = self.owner[shard]
        core.host.when_awake(core.poke)


def engine_setup(setup: Setup) -> EngineSetup:
    """The same for the simulator of the engine: its limits are those of production but for few."""
    knobs = {name: choices[-1] for name, choices in KNOBS.items()}
    knobs |= {"slow_ms": setup.slow_ms, "turns": setup.turns, "hot_cells": setup.hot_cells}
    return EngineSetup(
        seed=setup.seed,
        nodes=setup.nodes,
        tenants=1,
        flows=1,
        instances=setup.instances,
        places=1,
        storm_ms=setup.storm_ms,
        rates=setup.rates,
        knobs=knobs,
    )


def look_ms(setup: Setup) -> int:
    """Between two looks at the weather."""
    return max(1_000, setup.storm_ms // LOOKS)
