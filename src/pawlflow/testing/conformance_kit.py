"""A scribe: writes to a store as an engine does, with turns, frames and fences that fit."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from pawlflow.model.ids import CellId, Digest, InstanceId, Tenant, TimeMs, WorkflowName
from pawlflow.model.inputs import Tick
from pawlflow.model.journal import (
    Disposition,
    disposition_hash,
    frame_of,
    instance_genesis,
    turn_hash,
)
from pawlflow.model.operate import RemoveInstance
from pawlflow.model.payload import Payload
from pawlflow.model.records import write
from pawlflow.store.port import (
    Batch,
    Entry,
    Fence,
    FrameWrite,
    Head,
    Mail,
    Ref,
    ShardHead,
    Store,
    StoreError,
    position,
)

ACME = Tenant("acme")


class Scribe:
    """An owner of shards. Stage turns and dispositions, then `commit` them, or make a `batch`."""

    def __init__(self, store: Store, shards: Sequence[int] | None = None) -> None:
        self.store = store
        self.heads = {head.shard: head for head in store.claim(shards)}
        self.cells: dict[Ref, Head] = {}
        self.now = TimeMs(1_000)
        self._staged: dict[int, list[Entry]] = {}
        self._moved: dict[Ref, Head] = {}
        self._batches = 0

    def turn(self, cell: CellId, *, shard: int = 0, data: bytes = b"turn", **facts: Any) -> Head:
        """Stage the next turn of a cell; `facts` are fields of its head."""
        known = next((head for head in self._all() if head.cell == cell), None)
        entries = self._staged.setdefault(shard if known is None else known.shard, [])
        if known is None:
            seq = self.heads[shard].seq + len(entries) + 1
            known = Head(
                ref=position(shard, seq),
                cell=cell,
                shard=shard,
                turn=0,
                hash=instance_genesis(cell),
                definition=b"",
                state="running",
                created_at=self.now,
            )
        sealed = turn_hash(known.hash, data)
        head = replace(known, turn=known.turn + 1, hash=sealed, **facts)
        entries.append(Entry(head.ref, head.turn, data, sealed, b"beside " + data))
        self._moved[head.ref] = head
        return head

    def refuse(self, cell: CellId, *, shard: int = 0, ref: Ref = 0, code: str = "no") -> Entry:
        """Stage a disposition; its cell need not exist."""
        detail = Payload.of(code, cell.tenant)
        refused = Disposition(
            cell=cell, kind="rejected", code=code, detail=detail, input=Tick(), at=self.now
        )
        data = write(refused)
        entry = Entry(ref, 0, data, disposition_hash(data), b"")
        self._staged.setdefault(shard, []).append(entry)
        return entry

    def remove(self, head: Head, **said: Any) -> Entry:
        """Stage what says that a cell is removed; `said` are other facts than those of its head."""
        facts = {"cell": head.cell, "turn": head.turn, "hash": head.hash, "ref": head.ref, **said}
        gone = Disposition(
            cell=facts["cell"],
            kind="removed",
            code="retention.over",
            detail=Payload.of("gone", head.cell.tenant),
            input=RemoveInstance(facts["turn"], facts["hash"], "retention"),
            at=self.now,
        )
        data = write(gone)
        entry = Entry(facts["ref"], 0, data, disposition_hash(data), b"")
        self._staged.setdefault(head.shard, []).append(entry)
        self.cells.pop(head.ref, None)
        return entry

    def batch(self, *, fences: Sequence[int] = (), **rows: Any) -> Batch:
        """What was staged as a batch, with fences for its shards and for those given."""
        self._batches += 1
        fenced = [self.heads[shard] for shard in dict.fromkeys([*self._staged, *fences])]
        return Batch(
            id=self._batches.to_bytes(16, "big"),
            fences=[Fence(head.shard, head.epoch, head.seq) for head in fenced],
            frames=[self._frame(shard) for shard in self._staged],
            heads=[*self._moved.values(), *rows.pop("heads", ())],
            **rows,
        )

    def commit(self, *, fences: Sequence[int] = (), **rows: Any) -> Batch:
        """Append what was staged, and go on from there."""
        batch = self.batch(fences=fences, **rows)
        self.store.append(batch)
        for fence in batch.fences:
            self.heads[fence.shard] = replace(self.heads[fence.shard], batch=batch.id)
        for written in batch.frames:
            self._advance(written)
        self.cells.update(self._moved)
        self.forget()
        return batch

    def forget(self) -> None:
        """Drop what was staged."""
        self._staged, self._moved = {}, {}

    def _all(self) -> list[Head]:
        return [*self._moved.values(), *self.cells.values()]

    def _frame(self, shard: int) -> FrameWrite:
        head, entries = self.heads[shard], self._staged[shard]
        frame = frame_of(shard, head.hash, head.seq + 1, [entry.hash for entry in entries])
        return FrameWrite(frame=frame, epoch=head.epoch, now=self.now, entries=tuple(entries))

    def _advance(self, written: FrameWrite) -> None:
        frame = written.frame
        head: ShardHead = self.heads[frame.shard]
        self.heads[frame.shard] = replace(head, seq=frame.last, hash=frame.hash, now=written.now)


def cell(key: str, *, tenant: str = ACME, workflow: str = "order") -> CellId:
    """A cell by name."""
    return CellId(Tenant(tenant), WorkflowName(workflow), InstanceId(key))


def letter(to: CellId, *, shard: int = 0, key: str | None = None, text: bytes = b"hello") -> Mail:
    """Mail that may be posted."""
    return Mail(shard=shard, cell=to, input=text, beside=b"beside " + text, key=key)


def digest(number: int) -> Digest:
    """Some digest, the same for the same number."""
    return Digest(number.to_bytes(32, "big"))


def refused(code: str, call: Callable[[], object]) -> StoreError:
    """The error with this code that a call must raise."""
    try:
        call()
    except StoreError as trouble:
        assert trouble.code == code, f"{trouble.code} instead of {code}: {trouble}"
        return trouble
    raise AssertionError(f"nothing was refused; {code} was expected")


class StoreTests:
    """How the tests of a store come by it; the author of an adapter gives `open` and `reopen`."""

    _store: Store | None = None

    def open(self) -> Store:
        """Give a new, empty store."""
        raise NotImplementedError

    def reopen(self, store: Store) -> Store:
        """Close a store, and give another handle on what it left behind."""
        raise NotImplementedError

    @property
    def store(self) -> Store:
        """The store of this test, opened when it is first used."""
        if self._store is None:
            self._store = self.open()
        return self._store

    def again(self) -> Store:
        """The store, closed and opened again."""
        self._store = self.reopen(self.store)
        return self._store

    def teardown_method(self) -> None:
        """Give it back; pytest calls this after each test."""
        if self._store is not None:
            self._store.close()
