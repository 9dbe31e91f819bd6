"""The journals of a PostgreSQL store as they are read back: heads, ends, frames."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from pawlflow.model.ids import Digest
from pawlflow.model.journal import Frame
from pawlflow.store import postgres_errors as errors
from pawlflow.store.check import check_frame, unchained
from pawlflow.store.port import SHARDS, Entry, FrameWrite, ShardHead, StoreError, position
from pawlflow.store.postgres_link import Connection, run
from pawlflow.store.postgres_rows import ints
from pawlflow.store.postgres_url import Where
from pawlflow.store.rows import Row, entry_of, shard_of

FRAMES_PAGE: Final = 64  # frames looked at together


def heads_from(rows: Sequence[Row], shards: Sequence[int], where: Where) -> list[ShardHead]:
    """Where these shards stand."""
    known = {row[0]: shard_of(row) for row in rows}
    missing = [shard for shard in shards if shard not in known]
    if missing:
        raise errors.odd(where, "table shard", f"shards {missing} are missing")
    return [known[shard] for shard in shards]


def check_ends(
    db: Connection, sql: dict[str, str], where: Where, heads: Sequence[ShardHead]
) -> None:
    """The last frame of each journal must lead to its head, and its entries to the frame."""
    begun = [head for head in heads if head.seq]
    if not begun:
        return
    asked = (ints([head.shard for head in begun]), ints([head.seq for head in begun]))
    last = {row[0]: row[1:] for row in run(db, sql["frames_last"], asked)}
    spans = [(shard, range(row[0], row[1] + 1)) for shard, row in last.items()]
    places = [position(shard, seq) for shard, span in spans for seq in span]
    hashes: dict[int, Digest] = dict(run(db, sql["hashes_at"], (ints(places),)))
    for head in begun:
        if head.shard not in last:
            raise gap(where, head.shard, head.seq, "no frame ends there")
        first, end, *rest = last[head.shard]
        found = [hashes.get(position(head.shard, seq)) for seq in range(first, end + 1)]
        leaves = [Entry(0, 0, b"", leaf) for leaf in found if leaf is not None]
        if len(leaves) != len(found):
            raise gap(where, head.shard, first, f"{len(leaves)} entries of {len(found)} are there")
        if (end, rest[2]) != (head.seq, head.hash):
            raise unchained(head.shard, head.seq, "its head says something else")
        check_frame(frame_from(head.shard, (position(head.shard, first), end, *rest), leaves))


def frames_of(
    rows: Callable[..., list[Row]],
    where: Where,
    head: ShardHead,
    after: int = 0,
    at_once: int = FRAMES_PAGE,
) -> Iterator[FrameWrite]:
    """The frames of a shard, up to its head; `rows` asks a statement by its name."""
    shard, seq = head.shard, after
    while seq < head.seq:
        page = [
            row
            for row in rows("frames_on", position(shard, seq + 1), at_once)
            if row[1] <= head.seq
        ]
        if not page:
            raise gap(where, shard, seq + 1, "no frame begins there")
        last: int = page[-1][1]
        span = position(shard, seq + 1), position(shard, last)
        entries = [entry_of(row) for row in rows("entries_on", *span)]
        if len(entries) != last - seq:
            what = f"{len(entries)} entries of {last - seq} are there"
            raise gap(where, shard, seq + 1, what)
        for row in page:
            yield frame_from(shard, row, entries[row[0] // SHARDS - seq - 1 :])
        seq = last


def frame_with(
    rows: Callable[..., list[Row]], where: Where, head: ShardHead, seq: int
) -> FrameWrite | None:
    """The frame of a shard that holds a sequence number; None if it was not written yet."""
    shard = head.shard
    if not 0 < seq <= head.seq:
        return None
    found = rows("frame_with", position(shard, seq), shard)
    if not found or found[0][1] < seq:
        raise gap(where, shard, seq, "no frame holds it")
    place, last = found[0][:2]
    entries = [entry_of(row) for row in rows("entries_on", place, position(shard, last))]
    if len(entries) != last - place // SHARDS + 1:
        raise gap(where, shard, place // SHARDS, f"{len(entries)} entries are there")
    return frame_from(shard, found[0], entries)


def frame_from(shard: int, row: tuple[Any, ...], entries: Sequence[Entry]) -> FrameWrite:
    """A frame from its row, with as many of the entries as it has."""
    place, last, prev, root, hash_, epoch, now = row
    first = place // SHARDS
    frame = Frame(shard=shard, first=first, last=last, prev=prev, root=root, hash=hash_)
    return FrameWrite(frame=frame, epoch=epoch, now=now, entries=entries[: last - first + 1])


def gap(where: Where, shard: int, seq: int, what: str) -> StoreError:
    """A part of the journal is missing."""
    return StoreError(
        "store.gap",
        f"{where.told}: the journal of shard {shard} has a gap at sequence {seq}: {what}; "
        "`pawl doctor` lists the damage; bring a backup back with the tools of PostgreSQL",
    )
