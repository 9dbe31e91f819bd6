"""The SQLite store: one file, one owner, and any number of processes that read and post."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw

from pawlflow.model.ids import Digest, Tenant
from pawlflow.model.journal import Frame
from pawlflow.store.check import check_chain, check_frame, image_of, later_of, mask_of, unchained
from pawlflow.store.find import find
from pawlflow.store.marks import MARK, mark_from
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
    Kept,
    Mail,
    Published,
    Ref,
    Review,
    Scalar,
    ShardHead,
    Snapshot,
    StoreError,
    Taken,
    position,
)
from pawlflow.store.rows import (
    calling_head_of,
    due_head_of,
    entry_of,
    found_of,
    head_of,
    kept_of,
    review_of,
    shard_of,
)
from pawlflow.store.sqlite_backup import backup
from pawlflow.store.sqlite_copy import Progress
from pawlflow.store.sqlite_errors import gap, odd, told
from pawlflow.store.sqlite_find import SqliteRows, read_attributes
from pawlflow.store.sqlite_owner import Ownership, owner
from pawlflow.store.sqlite_rows import SQL
from pawlflow.store.sqlite_schema import opened
from pawlflow.store.sqlite_sharing import SqliteShared
from pawlflow.store.sqlite_work import Pen
from pawlflow.store.sqlite_write import read_answer, refuse_moved, write_batch, write_mail

T = TypeVar("T")
log = logging.getLogger("pawl.store")
PAGE: Final = 1_000  # cells read at once: between two pages writers may write


class SqliteStore(SqliteShared):
    """A store in a file; see `port.Store` for what each method promises."""

    def __init__(
        self, path: Path, *, busy_ms: int = 5_000, vfs: str | None = None, patient: bool = False
    ) -> None:
        """Open the file, make it if it is missing. Only `claim` makes this process its owner."""
        self.path = path.absolute()
        self._db = opened(self.path, busy_ms=busy_ms, vfs=vfs)
        self._pen = Pen(self.path, patient=patient)

    def claim(self, shards: Sequence[int] | None = None) -> list[ShardHead]:
        """Look at the end of each journal, and raise the epochs.

        It takes the file's lock before; who shares it gets of these what no other has.
        """
        owning = self._owning or Ownership(self.path)
        wanted = range(SHARDS) if shards is None else shards
        try:
            with self._writing("claiming table shard"):
                refuse_moved(self.path, self._db)
                wanted = self._seated(wanted)
                for head in self._heads(wanted):
                    self.check_end(head)
                self._db.executemany(SQL["shard_claim"], [(shard,) for shard in wanted])
        except StoreError:
            if self._owning is None:
                owning.release()
            raise
        self._owning = owning
        return self.heads(wanted)

    def heads(self, shards: Sequence[int]) -> list[ShardHead]:
        """Where these shards stand."""
        with self._reading("table shard"):
            return self._heads(shards)

    def _heads(self, shards: Sequence[int]) -> list[ShardHead]:
        rows = {row[0]: shard_of(row) for row in self._db.execute(SQL["shards"])}
        missing = [shard for shard in shards if shard not in rows]
        if missing:
            raise odd(self.path, "table shard", f"shards {missing} are missing")
        return [rows[shard] for shard in shards]

    def append(self, batch: Batch) -> None:
        """Write a batch in one transaction, with one flush."""
        with self._writing("appending to table entry"):
            write_batch(self._db, batch)

    def post(self, mail: Sequence[Mail]) -> list[int]:
        """Put mail into the mailbox; waits for the owner's transaction, up to `busy_ms`."""
        if not mail:
            return []
        with self._writing("posting to table mailbox"):
            refuse_moved(self.path, self._db)
            return write_mail(self._db, mail)

    def answer(self, mail: int) -> Taken | None:
        """What became of mail."""
        with self._reading("table refusal"):
            return read_answer(self._db, mail)

    def load(self, cells: Sequence[Address]) -> dict[Address, CellImage]:
        """Cells from their snapshots on."""
        with self._reading("table entry"):
            found = {cell: self._head(cell) for cell in cells}
            return {cell: self._load(head) for cell, head in found.items() if head is not None}

    def story(self, cell: Address, after: int = 0) -> CellImage | None:
        """A cell with every turn, or those after a number."""
        with self._reading("table entry"):
            head = self._head(cell)
            if head is None:
                return None
            if after <= 0:
                return image_of(head, None, self._turns(head.ref, 1), self._blobs(head.ref))
            if head.turn <= after:
                return later_of(head, [], after, {})
            return later_of(head, self._turns(head.ref, after + 1), after, self._blobs(head.ref))

    def _head(self, cell: Address) -> Head | None:
        row = self._db.execute(SQL["head_by_address"], cell).fetchone()
        return None if row is None else head_of(row)

    def _load(self, head: Head) -> CellImage:
        """Read on from the snapshot, if it is of this history; it is only a cache."""
        row = self._db.execute(SQL["snapshot_of"], (head.ref,)).fetchone()
        if row is not None:
            ref, turn, hash_, data, beside = row
            snapshot = Snapshot(ref=ref, turn=turn, hash=hash_, data=data, beside=beside)
            turns = self._turns(head.ref, turn)
            if turns and (turns[0].number, turns[0].hash) == (turn, hash_):
                return image_of(head, snapshot, turns[1:], self._blobs(head.ref))
        return image_of(head, None, self._turns(head.ref, 1), self._blobs(head.ref))

    def _turns(self, ref: Ref, first: int) -> list[Entry]:
        """The turns of a cell from a number on; each names the one before it."""
        turns = [entry_of(row) for row in self._db.execute(SQL["turns_back"], (ref, first))]
        turns.reverse()
        return turns

    def _blobs(self, ref: Ref) -> dict[bytes, bytes]:
        return dict(self._db.execute(SQL["blobs_of"], (ref,)))

    def definitions(self, hashes: Sequence[Digest]) -> dict[Digest, bytes]:
        """The definitions that are known."""
        with self._reading("table definition"):
            return dict(self._db.executemany(SQL["definition"], [(digest,) for digest in hashes]))

    def published(self, tenant: Tenant) -> list[Published]:
        """By name, newest first."""
        return [
            Published(tenant=tenant, name=name, version=version, definition=definition, at=at)
            for tenant, name, version, definition, at in self._rows("published", tenant)
        ]

    def due(self, shards: Sequence[int], after: tuple[int, Ref], limit: int) -> list[Head]:
        """Cells with a deadline, earliest first."""
        mask = mask_of(shards)
        rows = self._rows("heads_due_at", *after, mask, limit)
        if len(rows) < limit:
            rows += self._rows("heads_due_after", after[0], mask, limit - len(rows))
        return [due_head_of(row) for row in rows]

    def in_flight(self, shards: Sequence[int], after: Ref, limit: int) -> list[Head]:
        """Cells with calls in flight, by ref."""
        rows = self._rows("heads_in_flight", after, mask_of(shards), limit)
        return [calling_head_of(row) for row in rows]

    def instances(self, wanted: Filter) -> list[Head]:
        """Instances of a tenant, newest first."""
        with self._reading("tables cell and search"):
            return find(SqliteRows(self._db), wanted)

    def attributes(self, refs: Sequence[Ref]) -> dict[Ref, dict[str, Scalar]]:
        """What instances may be found by."""
        with self._reading("table attributes"):
            found = {ref: read_attributes(self._db, ref) for ref in refs}
            return {ref: values for ref, values in found.items() if values is not None}

    def attribute_names(self, tenant: Tenant) -> list[str]:
        """What instances of a tenant may be found by."""
        return [name for (name,) in self._rows("attribute_names", tenant)]

    def systems(self, tenant: Tenant, kind: str, before: str, limit: int) -> list[Head]:
        """System cells of a kind by key, highest first."""
        end = before or f"{kind}{chr(0x10FFFF)}"
        return self._made(head_of, "heads_of_system", tenant, kind, end, kind, limit)

    def reviews(self, tenant: Tenant) -> list[Review]:
        """Open reviews, oldest first."""
        return self._made(review_of, "reviews", tenant)

    def dispositions(self, tenant: Tenant, limit: int) -> list[Found]:
        """Refused and dead inputs, newest first."""
        return self._made(found_of, "dispositions", tenant, limit)

    def beside(self, ref: Ref) -> list[Found]:
        """The dispositions of a cell, oldest first."""
        return self._made(found_of, "beside", ref)

    def removed(self, cell: Address) -> Found | None:
        """What says that a cell was removed."""
        return next(iter(self._made(found_of, "removed", *cell)), None)

    def expiring(self, shards: Sequence[int], after: tuple[int, Ref], limit: int) -> list[Kept]:
        """Closed cells by until when they are kept."""
        mask = mask_of(shards)
        rows = self._rows("expiring_at", *after, mask, limit)
        if len(rows) < limit:
            rows += self._rows("expiring_after", after[0], mask, limit - len(rows))
        return self._all(kept_of, rows)

    def frame(self, shard: int, seq: int) -> FrameWrite | None:
        """The frame that holds a sequence number."""
        with self._reading("tables frame and entry"):
            [head] = self._heads([shard])
            if not 0 < seq <= head.seq:
                return None
            place = (position(shard, seq), SHARDS, shard)
            first = self._db.execute(SQL["frame_last"], place).get
            return self._frame(shard, seq if first is None else first // SHARDS)

    def frames(self, shard: int, after: int = 0) -> Iterator[FrameWrite]:
        """The frames of a shard, up to where it stood when the first was asked for."""
        (head,) = self.heads([shard])
        seq = after
        while seq < head.seq:
            with self._reading("tables frame and entry"):
                written = self._frame(shard, seq + 1)
            yield written
            seq = written.frame.last

    def _frame(self, shard: int, first: int) -> FrameWrite:
        """The frame that begins here, whole."""
        row = self._db.execute(SQL["frame_at"], (position(shard, first),)).fetchone()
        if row is None:
            raise gap(self.path, shard, first, "no frame begins there")
        last, at, prev, root, hash_, epoch, now = row
        size = last - first + 1
        entries = [entry_of(row) for row in self._db.execute(SQL["entries"], (at, at + size))]
        if not entries or len(entries) != size:
            raise gap(self.path, shard, first, f"{len(entries)} entries of {size} are there")
        frame = Frame(shard=shard, first=first, last=last, prev=prev, root=root, hash=hash_)
        return FrameWrite(frame=frame, epoch=epoch, now=now, entries=entries)

    def check_end(self, head: ShardHead) -> None:
        """The last frame must lead to the head, and its entries to the frame."""
        if head.seq == 0:
            return
        end = position(head.shard, head.seq)
        place = self._db.execute(SQL["frame_last"], (end, SHARDS, head.shard)).get
        first = head.seq if place is None else place // SHARDS
        written = self._frame(head.shard, first)
        if (written.frame.last, written.frame.hash) != (head.seq, head.hash):
            raise unchained(head.shard, head.seq, "its head says something else")
        check_frame(written)

    def refs(self) -> Iterator[Head]:
        """Every cell, by ref, a page at a time."""
        after = 0
        while rows := self._rows("heads_after", after, PAGE):
            yield from self._all(head_of, rows)
            after = rows[-1][0]

    def facts(self) -> dict[str, Any]:
        """What the file is."""
        with self._reading("its header"):
            version = self._db.pragma("user_version")
            size = self._db.pragma("page_size") * self._db.pragma("page_count")
            mark = mark_from(self._db.execute(SQL["meta"], (MARK,)).get)
        return {
            "kind": "sqlite",
            "path": str(self.path),
            "version": version,
            "size": size,
            "owner": owner(self.path),
            "nodes": self.nodes(),
            "move": mark,
        }

    def again(self) -> "SqliteStore":
        """Another handle on it, as patient as this one."""
        return SqliteStore(self.path, patient=bool(self.node))

    def backup(self, to: Path, progress: Progress | None = None) -> None:
        """Copy the store into another file while it is at work; durable when this returns."""
        backup(self.path, to.absolute(), progress)

    def quick_check(self) -> list[str]:
        """What SQLite finds wrong with the file at a glance; nothing if all is well."""
        return self._complaints("quick_check")

    def integrity(self) -> list[str]:
        """What is wrong with the file, the heads or the journals, after reading all of it."""
        found = self._complaints("integrity_check")
        if not found:
            found = [f"cell {ref} has no last turn" for (ref,) in self._rows("heads_broken")]
            for shard in range(SHARDS):
                try:
                    check_chain(self.frames(shard))
                except StoreError as trouble:
                    found.append(str(trouble))
        return found

    def _complaints(self, pragma: str) -> list[str]:
        try:
            rows = self._db.execute(f"PRAGMA {pragma}").fetchall()
        except (apsw.CorruptError, apsw.NotADBError) as trouble:
            return [str(trouble)]
        except apsw.Error as trouble:
            raise told(trouble, self.path, "checking it") from trouble
        return [str(text) for (text,) in rows if text != "ok"]

    def close(self) -> None:
        """Close the file, then let the next owner in."""
        try:
            self._db.close()
        except apsw.Error as trouble:  # all that was promised is durable without it
            log.warning("%s could not be closed in order: %r", self.path, trouble)
        finally:
            self._pen.close()
            if self._owning is not None:
                self._owning.release()
                self._owning = None
