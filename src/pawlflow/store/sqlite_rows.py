"""Statements by name, and rows to and from the values of the port."""

import re
from pathlib import Path
from typing import Any, Final

from pawlflow.model.ids import CellId
from pawlflow.store.check import damaged, tenant_of
from pawlflow.store.port import (
    Entry,
    FrameWrite,
    Head,
    Mail,
    Review,
    ShardHead,
    position,
)

Row = tuple[Any, ...]

FOLDER: Final = Path(__file__).parent / "sql"
_NAMED: Final = re.compile(r"^-- (\w+): (?:.*\n)(?:-- .*\n)*((?:(?!--).*\n?)+)", re.MULTILINE)


def statements(text: str) -> dict[str, str]:
    """The statements of a file of ours by their names; `-- name: what for` stands above each."""
    return {name: sql.strip() for name, sql in _NAMED.findall(text)}


SQL: Final = statements((FOLDER / "sqlite.sql").read_text())


def cell_row(head: Head) -> Row:
    """The part of a head that seldom changes, as its row."""
    cell = head.cell
    return (
        head.ref,
        cell.tenant,
        cell.workflow,
        cell.key,
        head.shard,
        head.definition,
        head.version,
        head.state,
        head.rollback,
        head.created_at,
        head.started_at,
        head.closed_at,
        head.quarantined,
    )


def head_of(row: Row) -> Head:
    """A head from its row; without its last turn it is damaged."""
    cell = CellId(row[1], row[2], row[3])
    if row[5] is None:
        raise damaged(cell, row[4], "its last turn is missing")
    return Head(
        ref=row[0],
        cell=cell,
        shard=row[4],
        turn=row[5],
        hash=row[6],
        definition=row[7],
        version=row[8],
        state=row[9],
        rollback=row[10],
        created_at=row[11],
        started_at=row[12],
        closed_at=row[13],
        due_at=row[14],
        calls=row[15],
        quarantined=bool(row[16]),
    )


def shard_of(row: Row) -> ShardHead:
    """A shard's head from its row."""
    shard, epoch, seq, hash_, batch, now = row
    return ShardHead(shard=shard, epoch=epoch, seq=seq, hash=hash_, batch=batch, now=now)


def frame_row(written: FrameWrite, at: int) -> Row:
    """A frame as its row; its entries lie from `at` on."""
    frame = written.frame
    place = position(frame.shard, frame.first)
    return (place, frame.last, at, frame.prev, frame.root, frame.hash, written.epoch, written.now)


def entry_row(at: int, prev: int | None, entry: Entry) -> Row:
    """A turn as its row."""
    return (at, prev, entry.ref, entry.number, entry.data, entry.hash, entry.beside, None, None)


def disposition_row(at: int, place: int, entry: Entry) -> Row:
    """A disposition as its row: no turn comes before it, and it says whose it is."""
    tenant = tenant_of(entry)
    return (at, 0, entry.ref, 0, entry.data, entry.hash, entry.beside, place, tenant)


def entry_of(row: Row) -> Entry:
    """An entry from its row."""
    return Entry(*row)


def review_row(review: Review) -> Row:
    """A review as its row."""
    cell = review.cell
    return (
        review.ref,
        review.step,
        cell.tenant,
        cell.workflow,
        cell.key,
        review.kind,
        review.role,
        review.since,
        review.due_at,
        review.show,
        review.claimed_by,
    )


def review_of(row: Row) -> Review:
    """A review from its row."""
    ref, step, tenant, workflow, key, kind, role, since, due_at, show, claimed_by = row
    return Review(
        ref=ref,
        cell=CellId(tenant, workflow, key),
        step=step,
        kind=kind,
        role=role,
        since=since,
        due_at=due_at,
        show=show,
        claimed_by=claimed_by,
    )


def mail_row(mail: Mail) -> Row:
    """Mail as its row; the store gives the id."""
    cell = mail.cell
    return mail.shard, cell.tenant, cell.workflow, cell.key, mail.input, mail.beside, mail.key


def mail_of(row: Row) -> Mail:
    """Mail from its row."""
    id_, shard, tenant, workflow, name, input_, beside, key = row
    cell = CellId(tenant, workflow, name)
    return Mail(id=id_, shard=shard, cell=cell, input=input_, beside=beside, key=key)
