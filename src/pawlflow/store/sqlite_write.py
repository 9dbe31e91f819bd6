"""The hot path: a batch as rows, inside a transaction that somebody else opens and commits."""

from collections.abc import Sequence
from pathlib import Path

import apsw

from pawlflow.store import marks
from pawlflow.store.check import REFUSALS_MAX, check_heads, check_taken, mask_of, moved, wrong
from pawlflow.store.port import (
    SHARDS,
    Batch,
    FrameWrite,
    Mail,
    Ref,
    Review,
    Reviewed,
    Taken,
    position,
)
from pawlflow.store.rows import Row, shard_of
from pawlflow.store.sqlite_find import write_attributes
from pawlflow.store.sqlite_removal import remove_cells, write_expiry
from pawlflow.store.sqlite_rows import (
    SQL,
    cell_row,
    disposition_row,
    entry_row,
    frame_row,
    mail_row,
    review_row,
)

Places = dict[Ref, int]  # where an entry of a cell lies among all


def write_batch(db: apsw.Connection, batch: Batch) -> None:
    """Write everything a batch holds, if its fences stand and it fits together."""
    fenced = mask_of(fence.shard for fence in batch.fences)
    found = db.execute(SQL["shards_fenced"], (fenced,))
    heads = moved(batch, {row[0]: shard_of(row) for row in found})
    check_heads(batch)
    remove_cells(db, batch)
    db.executemany(
        SQL["shard_move"],
        [(head.seq, head.hash, head.batch, head.now, head.shard) for head in heads],
    )
    ends, disposed = write_journal(db, batch.frames)
    _write_heads(db, batch, ends)
    if batch.expiring or batch.removed:
        write_expiry(db, batch, disposed)
    if batch.taken:
        _write_taken(db, batch)
    if batch.mail:
        db.executemany(SQL["mail_add"], map(mail_row, batch.mail)).fetchall()
    _write_rows(db, batch)


def write_journal(db: apsw.Connection, frames: Sequence[FrameWrite]) -> tuple[Places, Places]:
    """Append frames and entries. Gives the places of each cell's last turn and disposition."""
    if not frames:
        return {}, {}
    at: int = (db.execute(SQL["entry_last"]).get or 0) + 1
    ends: Places = {}
    disposed: Places = {}
    frame_rows: list[Row] = []
    entry_rows: list[Row] = []
    for written in frames:
        frame_rows.append(frame_row(written, at))
        place = position(written.frame.shard, written.frame.first)
        for entry in written.entries:
            ref, number = entry.ref, entry.number
            if number:
                prev = 0 if number == 1 else ends.get(ref)
                entry_rows.append(entry_row(at, prev, entry))
                ends[ref] = at
            else:
                entry_rows.append(disposition_row(at, place, entry))
                disposed[ref] = at
            at += 1
            place += SHARDS
    db.executemany(SQL["frame_add"], frame_rows)
    db.executemany(SQL["entry_add"], entry_rows)
    return ends, disposed


def _write_heads(db: apsw.Connection, batch: Batch, ends: dict[Ref, int]) -> None:
    heads, steady = batch.heads, batch.steady
    if not heads:
        return
    db.executemany(SQL["cell_put"], [cell_row(head) for head in heads if head.ref not in steady])
    pulses = [(h.ref, ends[h.ref], h.due_at, h.calls) for h in heads if h.ref in ends]
    db.executemany(SQL["pulse_put"], pulses)
    for head in heads if len(pulses) < len(heads) else ():
        if head.ref not in ends:
            row = (head.ref, head.due_at, head.calls)
            if db.execute(SQL["pulse_touch"], row).get is None:
                raise wrong(f"cell {head.ref} has a head and no turn")


def _write_taken(db: apsw.Connection, batch: Batch) -> None:
    """Consume mail, and keep what its senders are to be told."""
    shards: dict[int, int | None] = dict.fromkeys(taken.id for taken in batch.taken)
    shards.update(db.executemany(SQL["mail_take"], [(mail,) for mail in shards]))
    check_taken(shards, batch)
    refused = [(taken.id, taken.code, taken.detail) for taken in batch.taken if taken.code]
    if refused:
        db.executemany(SQL["refusal_add"], refused)
        db.execute(SQL["refusal_prune"], (REFUSALS_MAX,))


def _write_rows(db: apsw.Connection, batch: Batch) -> None:
    """What is found by a key of its own; most batches have none of it."""
    for review in batch.reviews:
        _write_review(db, review)
    if batch.attributes:
        write_attributes(db, batch)
    if batch.published:
        rows = batch.published
        db.executemany(
            SQL["published_put"],
            [(row.tenant, row.name, row.version, row.definition, row.at) for row in rows],
        )
    if batch.definitions:
        db.executemany(SQL["definition_add"], batch.definitions)
    if batch.blobs:
        db.executemany(SQL["blob_add"], [(blob.addr, blob.data) for blob in batch.blobs])
        db.executemany(SQL["mention_add"], [(blob.ref, blob.addr) for blob in batch.blobs])
    if batch.snapshots:
        rows_ = [(row.ref, row.turn, row.hash, row.data, row.beside) for row in batch.snapshots]
        db.executemany(SQL["snapshot_put"], rows_)


def _write_review(db: apsw.Connection, review: Review | Reviewed) -> None:
    if isinstance(review, Reviewed):
        db.execute(SQL["review_drop"], (review.ref, review.step))
    else:
        db.execute(SQL["review_put"], review_row(review))


def write_mail(db: apsw.Connection, mail: Sequence[Mail]) -> list[int]:
    """Put mail into the mailbox; mail with a key that still waits keeps its id."""
    ids: list[int] = []
    for each in mail:
        row = db.execute(SQL["mail_add"], mail_row(each)).get
        if row is None:
            row = db.execute(SQL["mail_by_key"], (each.cell.tenant, each.key)).get
        ids.append(row)
    return ids


def read_answer(db: apsw.Connection, mail: int) -> Taken | None:
    """What became of mail: None while it waits, and for ids that were never given."""
    if db.execute(SQL["mail_waits"], (mail,)).get is not None:
        return None
    refusal = db.execute(SQL["refusal"], (mail,)).fetchone()
    if refusal is not None:
        return Taken(*refusal)
    last = db.execute(SQL["mail_last"]).get or 0
    return Taken(mail) if 0 < mail <= last else None


def refuse_moved(path: Path, db: apsw.Connection) -> None:
    """Raise StoreError if the store was moved, or is being filled by a move."""
    marks.refuse_moved(str(path), db.execute(SQL["meta"], (marks.MARK,)).get)
