"""Lines: calls that wait to be let out. Tenants take turns, and only so many are kept.

The journal knows every call that is in flight, so nothing is lost here: a call that finds no room
is forgotten but for its cell, and that is asked for again when there is room. Who has the most
gives way, so that one tenant's hundred thousand calls leave room for another's one.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final

from pawlflow.model.ids import CellId, Digest, StepKey, Tenant, WorkflowName
from pawlflow.model.intents import Call
from pawlflow.store.port import Address

ROOM_BYTES: Final = 4_096  # a call takes the room of as many small ones as its parameters are large
MISSED_MAX: Final = 50_000  # cells that are remembered; beyond that the journal is looked through
ANY: Final = WorkflowName("")  # a cell is known by its tenant and its id
SHARE: Final = 7  # a tenant may hold so many times the places that are free: alone, 7 of 8

Key = tuple[int, Tenant]  # which kind of place a call needs, and whose it is
Name = Digest | StepKey
Again = Callable[[Sequence[Address] | None], None]  # offer the calls of these cells again, or all


class Places:
    """Places in which calls are carried out, so many at a time."""

    def __init__(self, most: int, within: "Places | None" = None) -> None:
        self.most = most
        self.within = within  # each of these takes one of those as well
        self.used = 0
        self.by: dict[Tenant, int] = {}

    def has_room(self, tenant: Tenant) -> bool:
        """May this tenant have one more? The last ones are for those who have few."""
        free = self.most - self.used
        if free <= 0 or self.by.get(tenant, 0) >= SHARE * free:
            return False
        return self.within is None or self.within.has_room(tenant)

    def take(self, tenant: Tenant) -> None:
        """One more is taken."""
        self.used += 1
        self.by[tenant] = self.by.get(tenant, 0) + 1
        if self.within is not None:
            self.within.take(tenant)

    def leave(self, tenant: Tenant) -> None:
        """One is free again."""
        self.used -= 1
        if self.by[tenant] > 1:
            self.by[tenant] -= 1
        else:
            del self.by[tenant]
        if self.within is not None:
            self.within.leave(tenant)


class Lines:
    """Calls that wait, by the place they need and by tenant."""

    def __init__(
        self,
        most: int,
        places: Sequence[Places] = (),
        name: Callable[[Call], Name] = attrgetter("id"),
    ) -> None:
        self.most = most
        self.places = places  # without, there is always one
        self.name = name
        self.again: Again | None = None  # without, nothing is ever forgotten
        self.ring: deque[Key] = deque()
        self.lines: dict[Key, OrderedDict[Name, Call]] = {}
        self.where: dict[Name, Key] = {}
        self.room = 0  # that they take
        self.missed: dict[Tenant, OrderedDict[Address, None]] = {}
        self.missing = 0  # cells
        self.lost = False  # even their cells were too many
        self.asked: set[Address] = set()  # cells whose calls were asked for, and did not come yet

    def __len__(self) -> int:
        return len(self.where)

    def __contains__(self, name: object) -> bool:
        return name in self.where

    def get(self, name: Name) -> Call | None:
        """A call that waits."""
        key = self.where.get(name)
        return None if key is None else self.lines[key][name]

    def put(self, call: Call, place: int = 0) -> None:
        """A call waits. One that is told again takes the place it had."""
        name, key = self.name(call), (place, call.cell.tenant)
        known = self.where.get(name)
        if known is not None:
            self.room -= room_of(self.lines[known][name])
            if known != key:
                del self.lines[known][name]
        line = self.lines.get(key)
        if line is None:
            line = self.lines[key] = OrderedDict()
            self.ring.append(key)
        line[name] = call
        self.where[name] = key
        self.room += room_of(call)
        if self.asked:
            self.asked.discard((call.cell.tenant, call.cell.key))
        while self.room > self.most and self.again is not None:
            self.forget(key)

    def forget(self, key: Key) -> None:
        """Too many wait: the newest of whoever has the most is left to the journal."""
        share = len(self.where) // max(1, len(self.lines))
        if len(self.lines[key]) < share:
            key = max(self.lines, key=lambda each: len(self.lines[each]))
        name, call = self.lines[key].popitem()
        del self.where[name]
        self.room -= room_of(call)
        if self.missing >= MISSED_MAX:
            self.lost = True
            return
        cells = self.missed.setdefault(call.cell.tenant, OrderedDict())
        before = len(cells)
        cells[call.cell.tenant, call.cell.key] = None
        self.missing += len(cells) - before

    def discard(self, name: Name) -> bool:
        """A call need not wait any more; False if it did not."""
        key = self.where.pop(name, None)
        if key is None:
            return False
        self.room -= room_of(self.lines[key].pop(name))
        return True

    def abandon(self, gone: Callable[[CellId], bool]) -> None:
        """Others look after the calls of these cells now."""
        waiting = [item for line in self.lines.values() for item in line.items()]
        for name in [name for name, call in waiting if gone(call.cell)]:
            self.discard(name)
        for tenant, cells in list(self.missed.items()):
            for address in [each for each in cells if gone(CellId(tenant, ANY, each[1]))]:
                del cells[address]
                self.missing -= 1
            if not cells:
                del self.missed[tenant]

    def take(self) -> Call | None:
        """The next call of the next tenant that there is a place for; the caller takes that."""
        if not self.where:  # lines that are empty stay: more is coming, or they go on the way
            return None
        ring, lines, places = self.ring, self.lines, self.places
        for _ in range(len(ring)):
            key = ring[0]
            line = lines[key]
            if not line:  # it goes on the way
                del lines[key]
                ring.popleft()
                continue
            if len(ring) > 1:
                ring.rotate(-1)  # next time it is another's turn
            if places and not places[key[0]].has_room(key[1]):
                continue
            name, call = line.popitem(last=False)
            del self.where[name]
            self.room -= room_of(call)
            if self.missing or self.lost:
                self.ask()
            return call
        return None

    def is_ready(self) -> bool:
        """Is there a call, and a place for it?"""
        return any(
            line and (not self.places or self.places[key[0]].has_room(key[1]))
            for key, line in self.lines.items()
        )

    def ask(self) -> None:
        """There is room again: ask for what was left to the journal, tenants in turn."""
        if self.again is None or self.room > self.most // 2 or (self.asked and self.room):
            return
        if self.missing:
            cells: list[Address] = []
            while self.missed and len(cells) < max(1, self.most // 2):
                tenant = next(iter(self.missed))
                line = self.missed.pop(tenant)
                cells.append(line.popitem(last=False)[0])
                if line:
                    self.missed[tenant] = line
            self.missing -= len(cells)
            self.asked = set(cells)
            self.again(cells)
        elif self.lost:
            self.lost = False
            self.again(None)


def room_of(call: Call) -> int:
    """How much room a call takes."""
    data = call.params.data
    return 1 if data is None else 1 + len(data) // ROOM_BYTES
