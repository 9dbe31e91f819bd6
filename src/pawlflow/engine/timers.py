"""Timers: which cell is due next, and which calls have been silent for too long.

Only the earliest deadlines are in memory; the rest wait in the store's index and are read when
these run out. So a million parked instances cost nothing here, and an idle engine asks nothing.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Final

from pawlflow.model.ids import InstanceId, Tenant
from pawlflow.store.port import Address, Head, Ref

PAGE: Final = 1_000  # deadlines read at a time
HELD_MAX: Final = 8_192  # kept in memory; beyond that the later half is left to the store
FIRST_REOFFER_MS: Final = 30_000
LAST_REOFFER_MS: Final = 600_000
PLACED_MAX: Final = 20_000  # cells whose silence is timed one by one; the others, all together
FOREVER: Final = (1 << 62, 0)
NOTHING_READ: Final = (-1, 0)


class Deadlines:
    """The earliest deadlines of the owned shards, up to a horizon; later ones are in the store."""

    def __init__(self) -> None:
        self.heap: list[tuple[int, Ref, Tenant, InstanceId]] = []
        # What the heap holds, so that a look that was in vain is not noted twice: a cell leaves an
        # entry behind whenever its deadline moves, and all of those would come due for ever after.
        # The truth of an entry: is it later than its row says? Then the store will not bring it.
        self.held: dict[tuple[int, Ref], bool] = {}
        self.late = 0  # of these
        self.horizon: tuple[int, Ref] = NOTHING_READ  # everything up to here is in the heap
        self.reading = False

    def note(self, head: Head) -> None:
        """A cell has a new earliest deadline."""
        if head.due_at is None or (head.due_at, head.ref) > self.horizon:
            return
        self.hold(head, head.due_at)
        if len(self.heap) - self.late > HELD_MAX:
            self.heap.sort()
            # Of rows alone: a horizon at what is held back would pass over what was left before.
            rows = [entry[:2] for entry in self.heap if not self.held[entry[:2]]]
            self.horizon = min(self.horizon, rows[HELD_MAX // 2 - 1])
            self.heap = [e for e in self.heap if e[:2] <= self.horizon or self.held[e[:2]]]
            self.held = {entry[:2]: self.held[entry[:2]] for entry in self.heap}

    def hold(self, head: Head, until: int) -> None:
        """Look at a cell then, be it later than its row says."""
        if (until, head.ref) not in self.held:
            self.held[until, head.ref] = until != head.due_at
            self.late += until != head.due_at
            heappush(self.heap, (until, head.ref, head.cell.tenant, head.cell.key))

    def read(self, found: Iterable[Head], *, stale: bool = False) -> None:
        """The next page of the store's index; a stale one is not all up to its end."""
        page = list(found)
        for head in page:
            assert head.due_at is not None
            self.hold(head, head.due_at)
        self.reading = False
        if not stale:
            last = page[-1] if len(page) >= PAGE else None
            self.horizon = FOREVER if last is None else (last.due_at or 0, last.ref)

    def take_due(self, now: int) -> list[Address]:
        """The cells whose time has come."""
        found: list[Address] = []
        while self.heap and self.heap[0][0] <= now:
            due, ref, tenant, key = heappop(self.heap)
            self.late -= self.held.pop((due, ref))
            found.append((tenant, key))
        return found

    def must_read(self) -> bool:
        """Has the heap nothing up to the horizon, while the store may have something beyond it?"""
        out = not self.heap or self.heap[0][:2] > self.horizon
        return out and self.horizon != FOREVER and not self.reading

    def next_at(self) -> int | None:
        """When to look again."""
        return self.heap[0][0] if self.heap else None


class Reoffers:
    """Calls without a sign of life are offered again: after 30 s, then doubling to 10 minutes.

    One entry per cell, in a bucket per second, so that a cell that goes on costs O(1).
    """

    def __init__(self) -> None:
        self.buckets: dict[int, dict[Address, None]] = {}
        self.seconds: list[int] = []  # a heap of the buckets' times
        self.placed: dict[Address, tuple[int, int]] = {}  # bucket, interval
        self.sweep_at: int | None = None  # all calls in flight are offered again then

    def heard(self, address: Address, now: int, *, calls: int) -> None:
        """The cell did something; if it has calls in flight, their clock starts again."""
        placed = self.placed.get(address)
        if placed is not None:
            if calls and placed == ((now + FIRST_REOFFER_MS) // 1000 + 1, FIRST_REOFFER_MS):
                return  # as most are that go on: it is where it belongs
            del self.placed[address]
            self.buckets[placed[0]].pop(address, None)
        if calls:
            self.place(address, now, FIRST_REOFFER_MS)

    def place(self, address: Address, now: int, interval: int) -> None:
        """Look at this cell again after a while."""
        if len(self.placed) >= PLACED_MAX:
            self.sweep_at = self.sweep_at or now + LAST_REOFFER_MS
            return
        second = (now + interval) // 1000 + 1
        bucket = self.buckets.get(second)
        if bucket is None:
            bucket = self.buckets[second] = {}
            heappush(self.seconds, second)
        bucket[address] = None
        self.placed[address] = (second, interval)

    def take_silent(self, now: int) -> list[Address]:
        """The cells that were silent for too long; each is placed again, twice as far."""
        found: list[Address] = []
        while self.seconds and self.seconds[0] * 1000 <= now:
            bucket = self.buckets.pop(heappop(self.seconds))
            for address in bucket:
                interval = self.placed.pop(address)[1]
                found.append(address)
                self.place(address, now, min(2 * interval, LAST_REOFFER_MS))
        return found

    def next_at(self) -> int | None:
        """When to look again. Empty buckets are dropped on the way."""
        while self.seconds and not self.buckets[self.seconds[0]]:
            del self.buckets[heappop(self.seconds)]
        times = [self.seconds[0] * 1000] if self.seconds else []
        return min([*times, *([self.sweep_at] if self.sweep_at else [])], default=None)
