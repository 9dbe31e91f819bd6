"""Whose turn it is: deficit round robin over tenants, then over the ready cells of a tenant.

A tenant with a hundred thousand inputs waits like one with ten. Of each tenant, what continues work
(receipts, timers, decisions) goes before what begins it, but beginnings always get a share.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import islice, zip_longest
from typing import Final

import msgspec

from pawlflow.model.ids import CellId, Tenant
from pawlflow.model.inputs import Input, StartInstance
from pawlflow.store.port import Address

QUANTUM_TURNS: Final = 8  # half a millisecond that others wait
START_EVERY: Final = 8  # turns of a tenant, one is for a beginning, when there is more to go on
QUANTUM_BYTES: Final = 64 * 1024
ROOM_BYTES: Final = 4_096  # a start takes the room of as many small ones as it is large


class Offer(msgspec.Struct, gc=False):
    """An input on its way to a cell, with whoever waits for the answer."""

    cell: CellId
    address: Address  # of the cell: asked for often
    input: Input
    token: int | None = None  # a caller in this process
    mail: int = 0  # a row of the mailbox
    size: int = 0
    sent: bool = False  # by a turn of the batch it is stepped in


class Line:
    """The ready cells of a tenant, in the order in which they became so."""

    __slots__ = ("begins", "count", "goes_on", "since_start")

    def __init__(self) -> None:
        self.goes_on: OrderedDict[Address, None] = OrderedDict()
        self.begins: OrderedDict[Address, None] = OrderedDict()
        self.count = 0
        self.since_start = 0  # turns that went on with something, while there was more to begin

    def take(self) -> Address:
        """What goes on goes before what begins, but beginnings get a share."""
        self.count -= 1
        if not self.goes_on or (self.begins and self.since_start >= START_EVERY - 1):
            self.since_start = 0
            return self.begins.popitem(last=False)[0]
        if self.begins:
            self.since_start += 1
        return self.goes_on.popitem(last=False)[0]


class Ring:
    """Tenants in a ring, each with its ready cells."""

    def __init__(self) -> None:
        self.ring: deque[Tenant] = deque()
        self.lines: dict[Tenant, Line] = {}
        self.turns = self.bytes = 0  # that the tenant in front was given
        self.count = 0  # of ready cells
        self.tenants = 0  # that have any

    def add(self, address: Address, *, begins: bool) -> None:
        """A cell has something to do."""
        line = self.lines.get(address[0])
        if line is None:
            line = self.lines[address[0]] = Line()
            self.ring.append(address[0])
        cells = line.begins if begins else line.goes_on
        if address not in cells:
            cells[address] = None
            self.count += 1
            self.tenants += not line.count
            line.count += 1

    def take(self) -> Address | None:
        """The next cell; the tenant in front keeps its place until its quantum is used up."""
        while self.count:
            tenant = self.ring[0]
            line = self.lines[tenant]
            if line.count and self.turns < QUANTUM_TURNS and self.bytes < QUANTUM_BYTES:
                self.count -= 1
                self.tenants -= line.count == 1
                return line.take()
            self.turns = self.bytes = 0
            self.ring.popleft()
            if line.count:
                self.ring.append(tenant)
            else:
                del self.lines[tenant]
        self.ring.clear()
        self.lines.clear()
        return None


class Cold:
    """Cells that must be read before they can be stepped, by tenant: reading is fair too."""

    def __init__(self) -> None:
        self.cells: dict[Tenant, dict[Address, None]] = {}

    def add(self, address: Address) -> None:
        """A cell has something to do, and is not live."""
        self.cells.setdefault(address[0], {})[address] = None

    def discard(self, address: Address) -> None:
        """It was read, or has nothing to do any more."""
        cells = self.cells.get(address[0])
        if cells is not None:
            cells.pop(address, None)
            if not cells:
                del self.cells[address[0]]

    def pick(self, most: int) -> list[Address]:
        """The next cells to read: as many of each tenant, as far as they have them."""
        shares = [list(islice(cells, most)) for cells in self.cells.values()]
        mixed = (each for row in zip_longest(*shares) for each in row if each is not None)
        return list(islice(mixed, most))


class Inbox:
    """Everything that waits to be stepped, by cell."""

    def __init__(self) -> None:
        self.waiting: dict[Address, deque[Offer]] = {}
        self.ready = Ring()
        self.cold = Cold()
        self.count = 0
        self.starts = 0  # room that they take
        self.starts_of: dict[Tenant, int] = {}

    def book(self, offer: Offer, sign: int) -> None:
        """A start comes, or goes."""
        room = sign * (1 + offer.size // ROOM_BYTES)
        self.starts += room
        tenant = offer.cell.tenant
        if left := self.starts_of.pop(tenant, 0) + room:
            self.starts_of[tenant] = left

    def put(self, offer: Offer, *, hot: bool, front: bool = False) -> None:
        """Line up an input behind, or before, what waits for the same cell."""
        address = offer.address
        line = self.waiting.get(address)
        if line is None:
            line = self.waiting[address] = deque()
        if front:
            line.appendleft(offer)
        else:
            line.append(offer)
        self.count += 1
        if type(offer.input) is StartInstance:
            self.book(offer, 1)
        if len(line) == 1 and hot and not self.cold.cells:
            self.ready.add(address, begins=type(offer.input) is StartInstance)
        elif len(line) == 1 or front:
            self.place(address, hot=hot)

    def place(self, address: Address, *, hot: bool) -> None:
        """Put a cell where it belongs: among those to be read, or those that are ready."""
        line = self.waiting.get(address)
        if not line:
            return
        if not hot:
            self.cold.add(address)
            return
        self.cold.discard(address)
        self.ready.add(address, begins=isinstance(line[0].input, StartInstance))

    def take(self) -> Offer | None:
        """The next input of the next cell of the next tenant; `place` puts the cell back."""
        ready = self.ready
        while (address := ready.take()) is not None:
            line = self.waiting.get(address)
            if line is None:  # it was taken as ready for something else, or went elsewhere
                continue
            offer = line.popleft()
            if not line:
                del self.waiting[address]
            ready.turns += 1
            ready.bytes += offer.size
            self.count -= 1
            if type(offer.input) is StartInstance:
                self.book(offer, -1)
            return offer
        return None

    def remove(self, gone: Callable[[Address], bool]) -> list[Offer]:
        """Take out all that waits for these cells."""
        found: list[Offer] = []
        for address in [each for each in self.waiting if gone(each)]:
            found += self.waiting.pop(address)
            self.cold.discard(address)
        self.count -= len(found)
        for offer in found:
            if type(offer.input) is StartInstance:
                self.book(offer, -1)
        return found
