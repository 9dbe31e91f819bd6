"""Live cells: rebuilt from what is durable, kept while they are busy, dropped when they are not.

All that a live cell knows is in the journal, so dropping one is always safe. Reading one checks
what was written: the chain of its turns up to the head, and every payload against its address.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable
from typing import Final

from pawlflow.definition.plan import Plan
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.replay import apply_turn, read_turn
from pawlflow.kernel.snapshot import (
    STATE_BYTES_MAX,
    SnapshotError,
    opened_state,
    state_from_bytes,
)
from pawlflow.kernel.step import Cell, new_cell
from pawlflow.model.beside import Besides, besides_bytes
from pawlflow.model.codec import CodecError, decode
from pawlflow.model.ids import CellId, Tenant
from pawlflow.model.journal import turn_hash
from pawlflow.model.payload import Payload, PayloadError, verified
from pawlflow.model.records import read
from pawlflow.store.port import (
    INLINE_BYTES_MAX,
    Address,
    Blob,
    CellImage,
    Head,
    Ref,
    StoreError,
)

CELLS_MAX: Final = 4_096  # live at a time
CELL_BYTES_MAX: Final = 256 * 1024 * 1024  # of what they were read from and have written since
COSTLY_BYTES: Final = 1024 * 1024  # to read such a cell again takes as long as many turns
SPARED_MAX: Final = 64  # of these, kept before others
CELL_OVERHEAD: Final = 4_096  # what a small instance takes in memory beside its bytes


class Live:
    """A cell at work."""

    __slots__ = (
        *("beside", "cell", "head", "id", "ref", "shard", "size", "snapshot_at", "snapshot_size"),
        "trouble",
    )

    def __init__(self, id_: CellId, cell: Cell | None, shard: int, head: Head | None) -> None:
        self.id = id_
        self.cell = cell  # None: there is no such cell yet, or it cannot be read
        self.shard = shard
        self.trouble: Rejected | None = None  # why it cannot be read
        self.head = head  # as last staged; None before its first turn
        self.ref: Ref | None = None if head is None else head.ref
        self.size = CELL_OVERHEAD
        self.snapshot_at = 0  # the size when its bytes were last kept
        self.snapshot_size = 0
        self.beside: set[str] | None = None  # marks of what lies beside its turns; None: not read


class Hot:
    """The live cells, least recently used first, bounded by number and by bytes."""

    def __init__(self, cells_max: int = CELLS_MAX, bytes_max: int = CELL_BYTES_MAX) -> None:
        self.cells: OrderedDict[Address, Live] = OrderedDict()
        self.cells_max = cells_max
        self.bytes_max = bytes_max
        self.bytes = 0

    def get(self, address: Address) -> Live | None:
        """A live cell; asking for it makes it the last to go."""
        live = self.cells.get(address)
        if live is not None:
            self.cells.move_to_end(address)
        return live

    def __contains__(self, address: Address) -> bool:
        return address in self.cells

    def put(self, live: Live) -> None:
        """Keep a cell."""
        address = (live.id.tenant, live.id.key)
        self.drop(address)
        self.cells[address] = live
        self.bytes += live.size

    def grow(self, live: Live, size: int) -> None:
        """A cell has written more."""
        live.size += size
        self.bytes += size

    def drop(self, address: Address) -> None:
        """Forget a cell; it can be read again."""
        live = self.cells.pop(address, None)
        if live is not None:
            self.bytes -= live.size

    def clear(self) -> None:
        """Forget everything."""
        self.cells.clear()
        self.bytes = 0

    def trim(self, pinned: Collection[Address] = ()) -> None:
        """Forget the least recently used until the bounds hold, but not what is pinned.

        Large ones stay as long as the bytes are within theirs: a topic of 100,000 waits, say.
        """
        spared = 0
        while len(self.cells) > self.cells_max or self.bytes > self.bytes_max > 0:
            if len(self.cells) <= max(1, len(pinned)):
                break
            address, live = self.cells.popitem(last=False)
            if address in pinned:
                self.cells[address] = live
            elif live.size > COSTLY_BYTES and self.bytes <= self.bytes_max and spared < SPARED_MAX:
                self.cells[address] = live
                spared += 1
            else:
                self.bytes -= live.size


def rebuild(image: CellImage, plan: Plan | None) -> Live:
    """The live cell behind an image. Raises StoreError, naming the turn, if anything differs."""
    head = image.head
    payloads = dict(image.blobs)
    cell = start_of(image, plan, payloads)
    live = Live(head.cell, cell, head.shard, head)
    if (kept := image.snapshot) is not None:
        live.snapshot_size = len(kept.data) + len(kept.beside)
        live.size = live.snapshot_at = live.size + live.snapshot_size
    for entry in image.entries:
        expected = cell.state.turn + 1
        try:
            take_in(payloads, entry.beside, head.cell.tenant)
            turn = read_turn(entry.data, payloads)
        except (CodecError, PayloadError) as error:
            raise damaged(head, expected, str(error)) from error
        sealed = turn_hash(cell.head, entry.data)
        if sealed != entry.hash or turn.number != expected:
            raise damaged(head, expected, "its hash is not that of what was written")
        for _ in apply_turn(cell.state, turn):
            pass
        cell.head = sealed
        live.size += len(entry.data) + len(entry.beside)
    if (cell.state.turn, cell.head) != (head.turn, head.hash):
        raise damaged(head, cell.state.turn + 1, f"{head.turn} turns were written")
    return live


def start_of(image: CellImage, plan: Plan | None, payloads: dict[bytes, bytes]) -> Cell:
    """The cell the entries are applied to: from its snapshot, or from nothing."""
    head, kept = image.head, image.snapshot
    try:
        for addr, data in image.blobs.items():
            verified(addr, data, head.cell.tenant)
    except (CodecError, PayloadError) as error:
        raise damaged(head, head.turn, str(error)) from error
    if kept is None:
        return new_cell(head.cell, plan)
    opened = opened_state(head.cell, kept.hash, kept.data, kept.beside)
    if opened is None:
        raise damaged(head, kept.turn, "the seal of its snapshot is broken")
    try:
        take_in(payloads, kept.beside, head.cell.tenant)
        state = state_from_bytes(opened, head.cell, plan, payloads)
    except (CodecError, PayloadError, SnapshotError) as error:
        raise damaged(head, kept.turn, f"snapshot: {error}") from error
    return Cell(state, kept.hash)


def is_trusted(image: CellImage) -> bool:
    """May the snapshot be used? It is a cache: if not, the whole story is read instead."""
    cell, kept = image.head.cell, image.snapshot
    return kept is None or opened_state(cell, kept.hash, kept.data, kept.beside) is not None


def damaged(head: Head, turn: int, why: str) -> StoreError:
    """An entry is not what was written."""
    message = (
        f"turn {turn} of {head.cell.tenant}/{head.cell.key} cannot be trusted: {why}; "
        "`pawl doctor` looks at the whole store, `pawl restore` brings back a backup"
    )
    return StoreError("journal.damaged", message)


def take_in(payloads: dict[bytes, bytes], beside: bytes, tenant: Tenant) -> None:
    """Add payloads to a map, each checked against its address."""
    if beside:
        found: Besides = read(Besides, decode(beside, STATE_BYTES_MAX), {})
        for item in found.items:
            verified(item.addr, item.data, tenant)
            payloads[item.addr] = item.data


def put_beside(
    payloads: Iterable[Payload],
    ref: Ref,
    blobs: list[Blob],
    inline_max: int | None = INLINE_BYTES_MAX,
) -> bytes:
    """The small payloads as bytes beside their entry; the large ones become blobs."""
    items: dict[bytes, bytes] = {}
    for payload in payloads:
        data, addr = payload.data, payload.addr
        if data is None or addr in items:
            continue
        if inline_max is not None and len(data) > inline_max:
            blobs.append(Blob(ref, addr, data))
        else:
            items[addr] = data
    return besides_bytes(items) if items else b""
