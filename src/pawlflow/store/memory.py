"""The reference store: plain dicts, every promise of the port, and nothing that lasts.

Handles that share one `Memory` are nodes that share one database.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from msgspec.structs import replace

from pawlflow.model.ids import Digest, InstanceId, Tenant
from pawlflow.store import port
from pawlflow.store.check import (
    REFUSALS_MAX,
    check_heads,
    check_taken,
    genesis,
    image_of,
    later_of,
    moved,
    wrong,
)
from pawlflow.store.find import find
from pawlflow.store.memory_index import Index, Ordered
from pawlflow.store.memory_removal import Kept, Retaining, check_all, remove_all
from pawlflow.store.removal import listed_under


class Memory:
    """The rows of one store, which several handles may share."""

    def __init__(self) -> None:
        self.shards = {shard: genesis(shard) for shard in range(port.SHARDS)}
        self.frames: dict[int, list[port.FrameWrite]] = {shard: [] for shard in range(port.SHARDS)}
        self.cells: dict[port.Ref, port.Head] = {}
        self.refs: Ordered[int] = Ordered()
        self.addresses: dict[port.Address, port.Ref] = {}
        self.turns: dict[port.Ref, list[port.Entry]] = {}
        self.due: Ordered[tuple[int, int]] = Ordered()
        self.calls: Ordered[int] = Ordered()
        self.index = Index(self.cells, self.addresses)
        self.dispositions: dict[Tenant, list[port.Found]] = {}
        self.reviews: dict[tuple[port.Ref, str], port.Review] = {}
        self.published: dict[tuple[Tenant, str, int], port.Published] = {}
        self.definitions: dict[Digest, bytes] = {}
        self.blobs: dict[bytes, bytes] = {}
        self.mentions: dict[port.Ref, dict[bytes, None]] = {}
        self.snapshots: dict[port.Ref, port.Snapshot] = {}
        self.mailbox: dict[int, port.Mail] = {}
        self.waiting: Ordered[int] = Ordered()
        self.keys: dict[tuple[Tenant, str], int] = {}
        self.refusals: dict[int, port.Taken] = {}
        self.mail_last = 0
        self.kept = Kept()


class MemoryStore(Retaining):
    """A handle on a Memory; see `port.Store` for what each method promises."""

    def __init__(self, shared: Memory | None = None) -> None:
        self.shared, self._closed = shared or Memory(), False

    @property
    def memory(self) -> Memory:
        """The rows, while this handle is open."""
        if self._closed:
            raise port.StoreError("store.closed", "this store is closed: open it again")
        return self.shared

    def claim(self, shards: Sequence[int] | None = None) -> list[port.ShardHead]:
        """Raise the epochs of these shards (all)."""
        memory = self.memory
        for shard in range(port.SHARDS) if shards is None else shards:
            head = memory.shards[shard]
            memory.shards[shard] = replace(head, epoch=head.epoch + 1)
        return self.heads(range(port.SHARDS) if shards is None else shards)

    def heads(self, shards: Sequence[int]) -> list[port.ShardHead]:
        """Where these shards stand."""
        return [self.memory.shards[shard] for shard in shards]

    def append(self, batch: port.Batch) -> None:
        """Check everything first; from there on nothing can fail."""
        memory = self.memory
        heads = moved(batch, memory.shards)
        wait = memory.mailbox
        shards = {t.id: wait[t.id].shard if t.id in wait else None for t in batch.taken}
        check_taken(shards, batch)
        check_heads(batch)
        tenants = _check_entries(memory, batch)
        check_all(memory, batch)
        _check_heads(memory, batch)
        remove_all(memory, batch)
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

    def post(self, mail: Sequence[port.Mail]) -> list[int]:
        """Put mail at the end of the mailbox."""
        return [_post(self.memory, each) for each in mail]

    def mail(self, shards: Sequence[int], after: int, limit: int) -> list[port.Mail]:
        """Mail of these shards, oldest first."""
        memory, wanted = self.memory, set(shards)
        found = (memory.mailbox[mail] for mail in memory.waiting.after(after))
        return list(islice((mail for mail in found if mail.shard in wanted), limit))

    def mail_lines(self, shards: Sequence[int], after: int, limit: int) -> list[tuple[int, Tenant]]:
        """Whose mail it is."""
        return [(mail.id, mail.cell.tenant) for mail in self.mail(shards, after, limit)]

    def mail_by_id(self, shards: Sequence[int], ids: Sequence[int]) -> list[port.Mail]:
        """Mail by its ids."""
        found = (self.memory.mailbox.get(mail) for mail in sorted(set(ids)))
        return [mail for mail in found if mail is not None and mail.shard in shards]

    def posted(self, tenant: Tenant, prefix: str, most: int) -> int:
        """Count keys that begin so."""
        keys = (key for whose, key in self.memory.keys if whose == tenant)
        return len(list(islice((key for key in keys if key.startswith(prefix)), most)))

    def answer(self, mail: int) -> port.Taken | None:
        """What became of mail."""
        memory = self.memory
        if mail in memory.mailbox or not 0 < mail <= memory.mail_last:
            return None
        return memory.refusals.get(mail, port.Taken(mail))

    def load(self, cells: Sequence[port.Address]) -> dict[port.Address, port.CellImage]:
        """Cells from their snapshots on."""
        memory = self.memory
        refs = {cell: memory.addresses[cell] for cell in cells if cell in memory.addresses}
        return {cell: _image(memory, ref, memory.snapshots.get(ref)) for cell, ref in refs.items()}

    def story(self, cell: port.Address, after: int = 0) -> port.CellImage | None:
        """A cell with every turn, or those after a number."""
        ref = self.memory.addresses.get(cell)
        if ref is None or after <= 0:
            return None if ref is None else _image(self.memory, ref, None)
        head, turns = self.memory.cells[ref], self.memory.turns.get(ref, [])[after:]
        return later_of(head, turns, after, _blobs(self.memory, ref) if turns else {})

    def definitions(self, hashes: Sequence[Digest]) -> dict[Digest, bytes]:
        """The definitions that are known."""
        known = self.memory.definitions
        return {digest: known[digest] for digest in hashes if digest in known}

    def published(self, tenant: Tenant) -> list[port.Published]:
        """By name, newest first."""
        rows = [row for row in self.memory.published.values() if row.tenant == tenant]
        return sorted(rows, key=lambda row: (row.name, -row.version))

    def due(
        self, shards: Sequence[int], after: tuple[int, port.Ref], limit: int
    ) -> list[port.Head]:
        """Cells with a deadline, earliest first."""
        return self._cells((ref for _, ref in self.memory.due.after(after)), shards, limit)

    def in_flight(self, shards: Sequence[int], after: port.Ref, limit: int) -> list[port.Head]:
        """Cells with calls in flight, by ref."""
        return self._cells(self.memory.calls.after(after), shards, limit)

    def _cells(
        self, refs: Iterable[port.Ref], shards: Sequence[int], limit: int
    ) -> list[port.Head]:
        wanted, cells = set(shards), self.memory.cells
        return list(islice((cells[ref] for ref in refs if cells[ref].shard in wanted), limit))

    def instances(self, wanted: port.Filter) -> list[port.Head]:
        """Instances of a tenant, newest first."""
        return find(self.memory.index, wanted)

    def attributes(self, refs: Sequence[port.Ref]) -> dict[port.Ref, dict[str, port.Scalar]]:
        """What instances may be found by."""
        known = self.memory.index.attributes
        return {ref: known[ref] for ref in refs if ref in known}

    def attribute_names(self, tenant: Tenant) -> list[str]:
        """What instances of a tenant may be found by."""
        return self.memory.index.names(tenant)

    def systems(self, tenant: Tenant, kind: str, before: str, limit: int) -> list[port.Head]:
        """System cells of a kind by key, highest first."""
        memory = self.memory
        keys = islice(memory.index.keys_of(tenant, kind, before), limit)
        return [memory.cells[memory.addresses[tenant, InstanceId(key)]] for key in keys]

    def reviews(self, tenant: Tenant) -> list[port.Review]:
        """Open reviews, oldest first."""
        rows = [row for row in self.memory.reviews.values() if row.cell.tenant == tenant]
        return sorted(rows, key=lambda row: (row.since, row.ref, row.step))

    def dispositions(self, tenant: Tenant, limit: int) -> list[port.Found]:
        """Refused and dead inputs, newest first."""
        return list(islice(reversed(self.memory.dispositions.get(tenant, [])), limit))

    def frames(self, shard: int) -> Iterator[port.FrameWrite]:
        """The frames of a shard."""
        return iter(tuple(self.memory.frames[shard]))

    def refs(self) -> Iterator[port.Head]:
        """Every cell, by ref."""
        return iter([self.memory.cells[ref] for ref in self.memory.refs.keys])

    def facts(self) -> dict[str, Any]:
        """Nothing to tell but what it is."""
        return {"kind": "memory", "path": None, "version": None, "size": None, "owner": None}

    def close(self) -> None:
        """Let go of the rows; they live as long as somebody shares them."""
        self._closed = True


def _check_entries(memory: Memory, batch: port.Batch) -> dict[port.Entry, Tenant | None]:
    """Turns go on where the cell's turns end. Gives the tenants of the dispositions."""
    ends: dict[port.Ref, int] = {}
    tenants: dict[port.Entry, Tenant | None] = {}
    for written in batch.frames:
        for entry in written.entries:
            if entry.number == 0:
                tenants[entry] = listed_under(entry)
                continue
            end = ends.get(entry.ref, len(memory.turns.get(entry.ref, ())))
            if entry.number != end + 1:
                raise wrong(f"turn {entry.number} of cell {entry.ref} comes after turn {end}")
            ends[entry.ref] = entry.number
    return tenants


def _check_heads(memory: Memory, batch: port.Batch) -> None:
    """A cell keeps its address, an address its cell; without a turn its history stays as it is."""
    fresh: dict[port.Address, port.Ref] = {}
    turned = {entry.ref for written in batch.frames for entry in written.entries if entry.number}
    free = {(head.cell.tenant, head.cell.key): head.ref for head in batch.removed}
    for head in batch.heads:
        address = (head.cell.tenant, head.cell.key)
        old = None if address in free else memory.addresses.get(address)
        ref = fresh.setdefault(address, head.ref) if old is None else old
        known = memory.cells.get(head.ref, head)
        if ref != head.ref or known.cell != head.cell:
            raise wrong(f"cell {head.ref} is not the one at {address}")
        if head.ref not in turned and (known is head or known.hash != head.hash):
            raise wrong(f"cell {head.ref} has another last turn than its head says")


def _write_entries(
    memory: Memory, written: port.FrameWrite, tenants: dict[port.Entry, Tenant | None]
) -> None:
    for seq, entry in enumerate(written.entries, written.frame.first):
        if entry.number:
            memory.turns.setdefault(entry.ref, []).append(entry)
        elif (tenant := tenants[entry]) is not None:
            found = port.Found(shard=written.frame.shard, seq=seq, entry=entry)
            memory.dispositions.setdefault(tenant, []).append(found)


def _write_head(memory: Memory, head: port.Head) -> None:
    """Put a row in place of the one before, and keep what it is found by in order."""
    old = memory.cells.get(head.ref)
    memory.cells[head.ref] = head
    if old is None:
        memory.refs.add(head.ref)
        memory.addresses[head.cell.tenant, head.cell.key] = head.ref
        memory.index.add(head)
    due = None if old is None else old.due_at
    if due != head.due_at:
        if due is not None:
            memory.due.remove((due, head.ref))
        if head.due_at is not None:
            memory.due.add((head.due_at, head.ref))
    called = old is not None and old.calls > 0
    if called != (head.calls > 0):
        (memory.calls.remove if called else memory.calls.add)(head.ref)


def _write_rows(memory: Memory, batch: port.Batch) -> None:
    """Everything that is found by a key of its own."""
    for review in batch.reviews:
        if isinstance(review, port.Reviewed):
            memory.reviews.pop((review.ref, review.step), None)
        else:
            memory.reviews[review.ref, review.step] = review
    for each in batch.attributes:
        memory.index.describe(memory.cells[each.ref], each.values)
    for row in batch.published:
        memory.published[row.tenant, row.name, row.version] = row
    for digest, data in batch.definitions:
        memory.definitions.setdefault(digest, data)
    for blob in batch.blobs:
        memory.blobs.setdefault(blob.addr, blob.data)
        memory.mentions.setdefault(blob.ref, {})[blob.addr] = None
    for snapshot in batch.snapshots:
        memory.snapshots[snapshot.ref] = snapshot


def _take(memory: Memory, taken: port.Taken) -> None:
    """Mail goes, a refusal stays for its sender."""
    mail = memory.mailbox.pop(taken.id)
    memory.waiting.remove(taken.id)
    if mail.key is not None:
        del memory.keys[mail.cell.tenant, mail.key]
    if taken.code:
        memory.refusals[taken.id] = taken
        if len(memory.refusals) > REFUSALS_MAX:
            del memory.refusals[next(iter(memory.refusals))]


def _post(memory: Memory, mail: port.Mail) -> int:
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


def _image(memory: Memory, ref: port.Ref, snapshot: port.Snapshot | None) -> port.CellImage:
    """A cell; a snapshot of another history is only a cache that is not used."""
    turns = memory.turns.get(ref, [])
    if snapshot is not None:
        at = turns[snapshot.turn - 1 : snapshot.turn]
        snapshot = snapshot if [turn.hash for turn in at] == [snapshot.hash] else None
    entries = turns[snapshot.turn :] if snapshot else turns[:]
    return image_of(memory.cells[ref], snapshot, entries, _blobs(memory, ref))


def _blobs(memory: Memory, ref: port.Ref) -> dict[bytes, bytes]:
    """The large payloads that a cell mentions."""
    return {addr: memory.blobs[addr] for addr in memory.mentions.get(ref, ())}
