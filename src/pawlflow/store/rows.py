"""What the rows of any database stand for, and statements by name."""

import re
from pathlib import Path
from typing import Any, Final

from pawlflow.model.ids import CellId
from pawlflow.store.check import damaged
from pawlflow.store.port import (
    SHARDS,
    Entry,
    Found,
    Head,
    Kept,
    Mail,
    Review,
    ShardHead,
)

Row = tuple[Any, ...]

FOLDER: Final = Path(__file__).parent / "sql"
_NAMED: Final = re.compile(r"^-- (\w+): (?:.*\n)(?:-- .*\n)*((?:(?!--).*\n?)+)", re.MULTILINE)


def statements(text: str) -> dict[str, str]:
    """The statements of a file of ours by their names; `-- name: what for` stands above each."""
    return {name: sql.strip() for name, sql in _NAMED.findall(text)}


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


def due_head_of(row: Row) -> Head:
    """A head that was found by a deadline, which stands behind it."""
    head = head_of(row)
    if head.due_at != row[-1]:
        raise damaged(head.cell, head.shard, "its deadline is not the one it is found by")
    return head


def calling_head_of(row: Row) -> Head:
    """A head that was found by its calls."""
    head = head_of(row)
    if not head.calls:
        raise damaged(head.cell, head.shard, "it is found by its calls, and has none")
    return head


def shard_of(row: Row) -> ShardHead:
    """A shard's head from its row."""
    shard, epoch, seq, hash_, batch, now = row
    return ShardHead(shard=shard, epoch=epoch, seq=seq, hash=hash_, batch=batch, now=now)


def entry_of(row: Row) -> Entry:
    """An entry from its row."""
    return Entry(*row)


def found_of(row: Row) -> Found:
    """An entry with its place, from its row."""
    return Found(shard=row[0] % SHARDS, seq=row[0] // SHARDS, entry=entry_of(row[1:]))


def kept_of(row: Row) -> Kept:
    """A closed cell, and until when it is kept."""
    return row[0], head_of(row[1:])


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


def mail_of(row: Row) -> Mail:
    """Mail from its row."""
    id_, shard, tenant, workflow, name, input_, beside, key = row
    cell = CellId(tenant, workflow, name)
    return Mail(id=id_, shard=shard, cell=cell, input=input_, beside=beside, key=key)
