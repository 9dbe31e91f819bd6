"""The reference store: plain dicts, every promise of the port, and nothing that lasts.

Handles that share one `Memory` are nodes that share one database.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from pawlflow.model.ids import Digest, Tenant
from pawlflow.store.check import (
    REFUSALS_MAX,
    check_heads,
    check_taken,
    genesis,
    image_of,
    moved,
    tenant_of,
    wrong,
)
from pawlflow.store.port import (
    SHARDS,
    Address,
    Batch,
    CellImage,
    Entry,
    Filter,
    Found,
    FrameWrite,
    Head,
    Mail,
    Published,
    Ref,
    Review,
    Reviewed,
    ShardHead,
    Snapshot,
    StoreError,
    Taken,
)

Key = TypeVar("Key", int, tuple[int, int])


class Ordered(Generic[Key]):
    """Keys in order. Adding at the end is cheap, anywhere else a memory move."""

    def __init__(self) -> None:
        self.keys: list[Key] = []

    def add(self, key: Key) -> None:
        """Put a key in its place; it must not be there."""
        insort(self.keys, key)

    def remove(self, key: Key) -> None:
        """Take a key out; it must be there."""
        del self.keys[bisect_left(self.keys, key)]

    def after(self, key: Key) -> Iterator[Key]:
        """The keys above this one, rising."""
        return islice(self.keys, bisect_right(self.keys, key), None)

    def before(self, key: Key | None) -> Iterator[Key]:
        """The keys below this one (all), falling."""
        end = len(self.keys) if key is None else bisect_left(self.keys, key)
        return (self.keys[at] for at in range(end - 1, -1, -1))


class Memory:
    """The rows of one store, which several handles may share."""

    def __init__(self) -> None:
        self.shards = {shard: genesis(shard) for shard in range(SHARDS)}
        self.frames: dict[int, list[FrameWrite]] = {shard: [] for shard in range(SHARDS)}
        self.cells: dict[Ref, Head] = {}
        self.refs: Ordered[int] = Ordered()
        self.addresses: dict[Address, Ref] = {}
        self.turns: dict[Ref, list[Entry]] = {}
        self.due: Ordered[tuple[int, int]] = Ordered()
        self.calls: Ordered[int] = Ordered()
        self.instances: dict[Tenant, Ordered[int]] = {}
        self.dispositions: dict[Tenant, list[Found]] = {}
        self.reviews: dict[tuple[Ref, str], Review] = {}
        self.published: dict[tuple[Tenant, str, int], Published] = {}
        self.definitions: dict[Digest, bytes] = {}
        self.blobs: dict[bytes, bytes] = {}
        self.mentions: dict[Ref, dict[bytes, None]] = {}
        self.snapshots: dict[Ref, Snapshot] = {}
        self.mailbox: dict[int, Mail] = {}
        self.waiting: Ordered[int] = Ordered()
        self.keys: dict[tuple[Tenant, str], int] = {}
        self.refusals: dict[int, Taken] = {}
        self.mail_last = 0


class MemoryStore:
    """A handle on a Memory; see `port.Store` for what each method promises."""

    def __init__(self, shared: Memory | None = None) -> None:
        self.shared, self._closed = shared or Memory(), False

    @property
    def memory(self) -> Memory:
        """The rows, while this handle is open."""
        if self._closed:
            raise StoreError("store.closed", "this store is closed: open it again")
        return self.shared

    def claim(self, shards: Sequence[int] | None = None) -> list[ShardHead]:
        """Raise the epochs of these shards (all)."""
        memory = self.memory
        for shard in range(SHARDS) if shards is None else shards:
            head = memory.shards[shard]
            memory.shards[shard] = replace(head, epoch=head.epoch + 1)
        return self.heads(range(SHARDS) if shards is None else shards)

    def heads(self, shards: Sequence[int]) -> list[ShardHead]:
        """Where these shards stand."""
        return [self.memory.shards[shard] for shard in shards]

    def append(self, batch: Batch) -> None:
        """Check everything first; from there on nothing can fail."""
        memory = self.memory
        heads = moved(batch, memory.shards)
        wait = memory.mailbox
        shards = {t.id: wait[t.id].shard if t.id in wait else None for t in batch.taken}
        check_taken(shards, batch)
        check_heads(batch)
        tenants = _check_entries(memory, batch)
        _check_heads(memory, batch)
        memory.shards.update((head.shard, head) for head in heads)
        for written in batch.frames:
            memory.frames[written.frame.shard].append(written)
            _write_entries(memory, written, tenants)
        for head in batch.heads:
            _write_head(memory, head)
        _write_rows(memory, batch)
        for taken in batch.taken:
            _take(memory, taken)
        self.post(batch.mail)

    def post(self, mail: Sequence[Mail]) -> list[int]:
        """Put mail at the end of the mailbox."""
        return [_post(self.memory, each) for each in mail]

    def mail(self, shards: Sequence[int], after: int, limit: int) -> list[Mail]:
        """Mail of these shards, oldest first."""
        memory, wanted = self.memory, set(shards)
        found = (memory.mailbox[mail] for mail in memory.waiting.after(after))
        return list(islice((mail for mail in found if mail.shard in wanted), limit))

    def answer(self, mail: int) -> Taken | None:
        """What became of mail."""
        memory = self.memory
        if mail in memory.mailbox or not 0 < mail <= memory.mail_last:
            return None
        return memory.refusals.get(mail, Taken(mail))

    def load(self, cells: Sequence[Address]) -> dict[Address, CellImage]:
        """Cells from their snapshots on."""
        memory = self.memory
        refs = {cell: memory.addresses[cell] for cell in cells if cell in memory.addresses}
        return {cell: _image(memory, ref, memory.snapshots.get(ref)) for cell, ref in refs.items()}

    def story(self, cell: Address) -> CellImage | None:
        """A cell with every turn."""
        ref = self.memory.addresses.get(cell)
        return None if ref is None else _image(self.memory, ref, None)

    def definitions(self, hashes: Sequence[Digest]) -> dict[Digest, bytes]:
        """The definitions that are known."""
        known = self.memory.definitions
        return {digest: known[digest] for digest in hashes if digest in known}

    def published(self, tenant: Tenant) -> list[Published]:
        """By name, newest first."""
        rows = [row for row in self.memory.published.values() if row.tenant == tenant]
        return sorted(rows, key=lambda row: (row.name, -row.version))

    def due(self, shards: Sequence[int], after: tuple[int, Ref], limit: int) -> list[Head]:
        """Cells with a deadline, earliest first."""
        return self._cells((ref for _, ref in self.memory.due.after(after)), shards, limit)

    def in_flight(self, shards: Sequence[int], after: Ref, limit: int) -> list[Head]:
        """Cells with calls in flight, by ref."""
        return self._cells(self.memory.calls.after(after), shards, limit)

    def _cells(self, refs: Iterable[Ref], shards: Sequence[int], limit: int) -> list[Head]:
        wanted, cells = set(shards), self.memory.cells
        return list(islice((cells[ref] for ref in refs if cells[ref].shard in wanted), limit))

    def instances(self, wanted: Filter) -> list[Head]:
        """Instances of a tenant, newest first."""
        memory = self.memory
        refs = memory.instances.get(wanted.tenant, Ordered[int]()).before(wanted.before)
        rows = (memory.cells[ref] for ref in refs)
        if wanted.states:
            rows = (row for row in rows if row.state in wanted.states)
        if wanted.workflow is not None:
            rows = (row for row in rows if row.cell.workflow == wanted.workflow)
        return list(islice(rows, wanted.limit))

    def reviews(self, tenant: Tenant) -> list[Review]:
        """Open reviews, oldest first."""
        rows = [row for row in self.memory.reviews.values() if row.cell.tenant == tenant]
        return sorted(rows, key=lambda row: (row.since, row.ref, row.step))

    def dispositions(self, tenant: Tenant, limit: int) -> list[Found]:
        """Refused and dead inputs, newest first."""
        return list(islice(reversed(self.memory.dispositions.get(tenant, [])), limit))

    def frames(self, shard: int) -> Iterator[FrameWrite]:
        """The frames of a shard."""
        return iter(tuple(self.memory.frames[shard]))

    def refs(self) -> Iterator[Head]:
        """Every cell, by ref."""
        return iter([self.memory.cells[ref] for ref in self.memory.refs.keys])

    def facts(self) -> dict[str, Any]:
        """Nothing to tell but what it is."""
        return {"kind": "memory", "path": None, "version": None, "size": None, "owner": None}

    def close(self) -> None:
        """Let go of the rows; they live as long as somebody shares them."""
        self._closed = True


def _check_entries(memory: Memory, batch: Batch) -> dict[Entry, Tenant]:
    """Turns go on where the cell's turns end. Gives the tenants of the dispositions."""
    ends: dict[Ref, int] = {}
    tenants: dict[Entry, Tenant] = {}
    for written in batch.frames:
        for entry in written.entries:
            if entry.number == 0:
                tenants[entry] = tenant_of(entry)
                continue
            end = ends.get(entry.ref, len(memory.turns.get(entry.ref, ())))
            if entry.number != end + 1:
                raise wrong(f"turn {entry.number} of cell {entry.ref} comes after turn {end}")
            ends[entry.ref] = entry.number
    return tenants


def _check_heads(memory: Memory, batch: Batch) -> None:
    """A cell keeps its address, an address its cell; without a turn its history stays as it is."""
    fresh: dict[Address, Ref] = {}
    turned = {entry.ref for written in batch.frames for entry in written.entries if entry.number}
    for head in batch.heads:
        address = (head.cell.tenant, head.cell.key)
        ref = memory.addresses.get(address, fresh.setdefault(address, head.ref))
        known = memory.cells.get(head.ref, head)
        if ref != head.ref or known.cell != head.cell:
            raise wrong(f"cell {head.ref} is not the one at {address}")
        if head.ref not in turned and (known is head or known.hash != head.hash):
            raise wrong(f"cell {head.ref} has another last turn than its head says")


def _write_entries(memory: Memory, written: FrameWrite, tenants: dict[Entry, Tenant]) -> None:
    for seq, entry in enumerate(written.entries, written.frame.first):
        if entry.number:
            memory.turns.setdefault(entry.ref, []).append(entry)
        else:
            found = Found(shard=written.frame.shard, seq=seq, entry=entry)
            memory.dispositions.setdefault(tenants[entry], []).append(found)


def _write_head(memory: Memory, head: Head) -> None:
    """Put a row in place of the one before, and keep what it is found by in order."""
    old = memory.cells.get(head.ref)
    memory.cells[head.ref] = head
    if old is None:
        memory.refs.add(head.ref)
        memory.addresses[head.cell.tenant, head.cell.key] = head.ref
        if not head.cell.workflow.startswith("$"):
            memory.instances.setdefault(head.cell.tenant, Ordered()).add(head.ref)
    due = None if old is None else old.due_at
    if due != head.due_at:
        if due is not None:
            memory.due.remove((due, head.ref))
        if head.due_at is not None:
            memory.due.add((head.due_at, head.ref))
    called = old is not None and old.calls > 0
    if called != (head.calls > 0):
        (memory.calls.remove if called else memory.calls.add)(head.ref)


def _write_rows(memory: Memory, batch: Batch) -> None:
    """Everything that is found by a key of its own."""
    for review in batch.reviews:
        if isinstance(review, Reviewed):
            memory.reviews.pop((review.ref, review.step), None)
        else:
            memory.reviews[review.ref, review.step] = review
    for row in batch.published:
        memory.published[row.tenant, row.name, row.version] = row
    for digest, data in batch.definitions:
        memory.definitions.setdefault(digest, data)
    for blob in batch.blobs:
        memory.blobs.setdefault(blob.addr, blob.data)
        memory.mentions.setdefault(blob.ref, {})[blob.addr] = None
    for snapshot in batch.snapshots:
        memory.snapshots[snapshot.ref] = snapshot


def _take(memory: Memory, taken: Taken) -> None:
    """Mail goes, a refusal stays for its sender."""
    mail = memory.mailbox.pop(taken.id)
    memory.waiting.remove(taken.id)
    if mail.key is not None:
        del memory.keys[mail.cell.tenant, mail.key]
    if taken.code:
        memory.refusals[taken.id] = taken
        if len(memory.refusals) > REFUSALS_MAX:
            del memory.refusals[next(iter(memory.refusals))]


def _post(memory: Memory, mail: Mail) -> int:
    """Give mail its id, or the id of the one with the same key that still waits."""
    key = None if mail.key is None else (mail.cell.tenant, mail.key)
    if key is not None and key in memory.keys:
        return memory.keys[key]
    memory.mail_last += 1
    memory.mailbox[memory.mail_last] = replace(mail, id=memory.mail_last)
    memory.waiting.add(memory.mail_last)
    if key is not None:
        memory.keys[key] = memory.mail_last
    return memory.mail_last


def _image(memory: Memory, ref: Ref, snapshot: Snapshot | None) -> CellImage:
    """A cell; a snapshot of another history is only a cache that is not used."""
    turns = memory.turns.get(ref, [])
    if snapshot is not None:
        at = turns[snapshot.turn - 1 : snapshot.turn]
        snapshot = snapshot if [turn.hash for turn in at] == [snapshot.hash] else None
    entries = turns[snapshot.turn :] if snapshot else turns[:]
    blobs = {addr: memory.blobs[addr] for addr in memory.mentions.get(ref, ())}
    return image_of(memory.cells[ref], snapshot, entries, blobs)
