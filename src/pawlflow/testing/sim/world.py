"""The world: one heap of things to come, one time, and a hash of everything that happened.

Time is simulated milliseconds. Every node has a clock of its own on top of it, which may be wrong.
"""

from collections.abc import Callable
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Final

from pawlflow.model.ids import TimeMs
from pawlflow.testing.sim.chance import Dice
from pawlflow.testing.sim.faults import Faults

EPOCH: Final = 1_700_000_000_000  # of the clocks, when a world begins
# A run that needs more goes round in circles. Of 5,000 seeds the longest that ends needs 95,225:
# clocks that jump by an hour make schedules start thirty instances with children at once.
EVENTS_MAX: Final = 100_000


class Violated(Exception):  # noqa: N818  # the word of the trade
    """A promise was broken: which one, when, of which cell, and how."""

    def __init__(self, monitor: str, at: int, cell: str, why: str) -> None:
        self.monitor = monitor
        self.at = at
        self.cell = cell
        self.why = why
        super().__init__(f"monitor {monitor} at {at / 1000:.3f} s, {cell}: {why}")


class World:
    """The scheduler."""

    def __init__(self, dice: Dice, faults: Faults, story: list[str] | None = None) -> None:
        self.dice = dice
        self.faults = faults
        self.now = 0
        self.heap: list[tuple[int, int, Callable[[], None]]] = []
        self.planned = 0
        self.done = 0
        self.trace = blake2b(digest_size=16)
        self.story = story
        self.over = False

    def after(self, delay: int, what: Callable[[], None]) -> None:
        """Plan something, behind all that is planned for the same moment."""
        self.planned += 1
        heappush(self.heap, (self.now + max(0, delay), self.planned, what))

    def tell(self, text: str) -> None:
        """Put something on the record."""
        self.trace.update(f"{self.now} {text}\n".encode())
        if self.story is not None:
            self.story.append(f"{self.now / 1000:10.3f}  {text}")

    def run(self, until: int) -> None:
        """Let time pass, until a moment or until somebody says that it is over."""
        while self.heap and self.heap[0][0] <= until and not self.over:
            at, _, what = heappop(self.heap)
            self.now = self.faults.now = at
            self.done += 1
            if self.done > EVENTS_MAX:
                raise Violated("live", self.now, "-", f"{EVENTS_MAX} events: it goes in circles")
            what()
        if not self.over:
            self.now = self.faults.now = until


class NodeClock:
    """Time and chance as one node sees them."""

    def __init__(self, world: World, node: str) -> None:
        self.world = world
        self.node = node
        self.skew = 0
        self.ticks = 0.0

    def now(self) -> TimeMs:
        """Milliseconds since 1970, by a clock that may be wrong."""
        return TimeMs(EPOCH + self.world.now + self.skew)

    def stopwatch(self) -> float:
        """Seconds that never go back; a step takes a tenth of a millisecond, seldom ten."""
        slow = self.world.dice.roll(f"stopwatch:{self.node}") < 0.02
        self.ticks += 0.010 if slow else 0.0001
        return self.ticks

    def entropy(self) -> bytes:
        """Sixteen bytes."""
        return self.world.dice.bytes(f"entropy:{self.node}")
