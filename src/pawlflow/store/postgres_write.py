"""The hot path: a batch as one statement, and its values as arrays."""

from collections.abc import Sequence
from typing import Any

from pawlflow.model.codec import encode
from pawlflow.model.ids import Digest, TimeMs
from pawlflow.store.check import check_heads, moved, wrong
from pawlflow.store.port import (
    SHARDS,
    Batch,
    FrameWrite,
    Head,
    Mail,
    Ref,
    Review,
    Scalar,
    ShardHead,
    Taken,
    position,
)
from pawlflow.store.postgres_find import search_key
from pawlflow.store.postgres_removal import removal_values
from pawlflow.store.postgres_rows import blobs, ints, ints_or_null, said, shifted, texts
from pawlflow.store.removal import check_removed, listed_under

Values = tuple[Any, ...]
Known = dict[Ref, dict[str, Scalar]]


class Flush:
    """One statement that is made of several, and what it is given."""

    def __init__(self, sql: dict[str, str]) -> None:
        self.sql = sql
        self.calls: list[str] = []
        self.beside: list[str] = []
        self.values: list[Any] = []

    def call(self, name: str, values: Values) -> None:
        """Call one of our functions; they are called in this order."""
        self.calls.append(shifted(self.sql[name], len(self.values)))
        self.values += values

    def first(self, name: str, values: Values) -> None:
        """Call one of our functions before all others."""
        self.calls.insert(0, shifted(self.sql[name], len(self.values)))
        self.values += values

    def add(self, name: str, values: Values) -> None:
        """Let a statement run in the same go; it touches no table that another one touches."""
        self.beside.append(f"_{len(self.beside)} AS ({shifted(self.sql[name], len(self.values))})")
        self.values += values

    def signed(self, node: str | None, link: bytes | None) -> list[Any]:
        """The values, with who sends them, and through which connection."""
        return [self.values[0], node, link, *self.values[3:]]

    def text(self) -> str:
        """The whole statement."""
        before = f"WITH {', '.join(self.beside)} " if self.beside else ""
        return f"{before}SELECT {', '.join(self.calls)}"


def flush_of(sql: dict[str, str], batch: Batch, attributes: Known | None = None) -> Flush:
    """A batch as a statement; with what the cells that it removes are found by.

    What can be told without the store is checked here.

    Raises StoreError if the batch does not fit together.
    """
    frames = {written.frame.shard: written for written in batch.frames}
    moved(batch, {fence.shard: _claimed(fence, frames) for fence in batch.fences})
    check_heads(batch)
    check_removed(batch)
    if len({taken.id for taken in batch.taken}) != len(batch.taken):
        raise wrong("mail is taken twice")
    flush = Flush(sql)
    fences = batch.fences
    fenced = (
        ints([fence.shard for fence in fences]),
        ints([fence.epoch for fence in fences]),
        ints([fence.seq for fence in fences]),
    )
    entries, ends = entry_values(batch.frames)
    fresh = {e.ref for written in batch.frames for e in written.entries if e.number == 1}
    heads = (*_cells(batch, fresh), *_pulses(batch.heads, ends, fresh))
    flush.call(
        "append", (batch.id, None, None, *fenced, *frame_values(batch.frames), *entries, *heads)
    )
    if batch.removed:
        flush.first("remove", removal_values(batch, attributes or {}))
    if batch.taken:
        flush.call("take", (fenced[0], *_taken(batch.taken)))
    if batch.mail:
        flush.call("post", mail_values(batch.mail))
    _add_rows(flush, batch)
    return flush


def _claimed(fence: Any, frames: dict[int, FrameWrite]) -> ShardHead:
    """A shard as its fence says it stands; whether it does, the store knows."""
    written = frames.get(fence.shard)
    chain = Digest(b"") if written is None else written.frame.prev
    now = TimeMs(0) if written is None else written.now
    return ShardHead(
        shard=fence.shard, epoch=fence.epoch, seq=fence.seq, hash=chain, batch=b"", now=now
    )


def frame_values(frames: Sequence[FrameWrite]) -> Values:
    """Frames, as `append` takes them."""
    plain = [written.frame for written in frames]
    return (
        ints([frame.shard for frame in plain]),
        ints([frame.first for frame in plain]),
        ints([frame.last for frame in plain]),
        blobs([frame.prev for frame in plain]),
        blobs([frame.root for frame in plain]),
        blobs([frame.hash for frame in plain]),
        ints([written.epoch for written in frames]),
        ints([written.now for written in frames]),
    )


def entry_values(frames: Sequence[FrameWrite]) -> tuple[Values, dict[Ref, int]]:
    """Entries and dispositions, and the place of each cell's last turn among the entries."""
    ends: dict[Ref, int] = {}
    places: list[int] = []
    before: list[int | None] = []
    disposed: list[int] = []
    tenants: list[str] = []
    for written in frames:
        place = position(written.frame.shard, written.frame.first)
        for entry in written.entries:
            places.append(place)
            if entry.number:
                before.append(0 if entry.number == 1 else ends.get(entry.ref))
                ends[entry.ref] = place
            else:
                before.append(0)
                if (tenant := listed_under(entry)) is not None:
                    disposed.append(place)
                    tenants.append(tenant)
            place += SHARDS
    entries = [entry for written in frames for entry in written.entries]
    values = (
        ints(places),
        ints_or_null(before),
        ints([entry.ref for entry in entries]),
        ints([entry.number for entry in entries]),
        blobs([entry.data for entry in entries]),
        blobs([entry.hash for entry in entries]),
        blobs([entry.beside for entry in entries]),
        ints(disposed),
        texts(tenants),
    )
    return values, ends


def _cells(batch: Batch, fresh: set[Ref]) -> Values:
    heads = [head for head in batch.heads if head.ref not in batch.steady]
    return (
        ints([head.ref in fresh for head in heads]),
        ints([head.ref for head in heads]),
        texts([head.cell.tenant for head in heads]),
        texts([head.cell.workflow for head in heads]),
        texts([head.cell.key for head in heads]),
        ints([head.shard for head in heads]),
        blobs([head.definition for head in heads]),
        ints([head.version for head in heads]),
        texts([head.state for head in heads]),
        texts([head.rollback for head in heads]),
        ints([head.created_at for head in heads]),
        ints_or_null([head.started_at for head in heads]),
        ints_or_null([head.closed_at for head in heads]),
        ints([head.quarantined for head in heads]),
    )


def _pulses(heads: Sequence[Head], ends: dict[Ref, int], fresh: set[Ref]) -> Values:
    """Of cells with a turn, and of those that only changed."""
    turned = [head for head in heads if head.ref in ends]
    touched = [head for head in heads if head.ref not in ends]
    return (
        ints([head.ref in fresh for head in turned]),
        ints([head.ref for head in turned]),
        ints([ends[head.ref] for head in turned]),
        ints_or_null([head.due_at for head in turned]),
        ints([head.calls for head in turned]),
        ints([head.ref for head in touched]),
        ints_or_null([head.due_at for head in touched]),
        ints([head.calls for head in touched]),
    )


def _taken(taken: Sequence[Taken]) -> Values:
    return (
        ints([each.id for each in taken]),
        blobs([said(each.code) for each in taken]),
        blobs([said(each.detail) for each in taken]),
    )


def mail_values(mail: Sequence[Mail]) -> Values:
    """Mail, as `post` takes it."""
    return (
        ints([each.shard for each in mail]),
        texts([each.cell.tenant for each in mail]),
        texts([each.cell.workflow for each in mail]),
        texts([each.cell.key for each in mail]),
        blobs([each.input for each in mail]),
        blobs([each.beside for each in mail]),
        blobs([said(each.key) for each in mail]),
    )


def _add_rows(flush: Flush, batch: Batch) -> None:
    """What is found by a key of its own; most batches have none of it."""
    if batch.reviews:
        _add_reviews(flush, batch)
    if batch.attributes:
        _add_attributes(flush, batch)
    if batch.published:
        last = {(row.tenant, row.name, row.version): row for row in batch.published}
        rows = list(last.values())
        names = (texts([row.tenant for row in rows]), texts([row.name for row in rows]))
        versions = (ints([row.version for row in rows]), blobs([row.definition for row in rows]))
        flush.add("published_put", (*names, *versions, ints([row.at for row in rows])))
    if batch.definitions:
        hashes, data = zip(*batch.definitions, strict=True)
        flush.add("definitions_add", (blobs(hashes), blobs(data)))
    if batch.blobs:
        found = {blob.addr: blob.data for blob in reversed(batch.blobs)}
        flush.add("blobs_add", (blobs(list(found)), blobs(list(found.values()))))
        mentions = (ints([blob.ref for blob in batch.blobs]), blobs([b.addr for b in batch.blobs]))
        flush.add("mentions_add", mentions)
    if batch.expiring:
        refs, untils = zip(*dict(batch.expiring).items(), strict=True)
        flush.add("expiry_put", (ints(refs), ints(untils)))
    if batch.snapshots:
        kept = list({row.ref: row for row in batch.snapshots}.values())
        places = (ints([row.ref for row in kept]), ints([row.turn for row in kept]))
        states = (blobs([row.data for row in kept]), blobs([row.beside for row in kept]))
        flush.add("snapshots_put", (*places, blobs([row.hash for row in kept]), *states))


def _add_reviews(flush: Flush, batch: Batch) -> None:
    """Of several about one step the last counts: a statement may touch a row only once."""
    last = {(each.ref, each.step): each for each in batch.reviews}
    rows = [each for each in last.values() if isinstance(each, Review)]
    gone = [each for each in last.values() if not isinstance(each, Review)]
    if rows:
        values = (
            ints([row.ref for row in rows]),
            texts([row.step for row in rows]),
            texts([row.cell.tenant for row in rows]),
            texts([row.cell.workflow for row in rows]),
            texts([row.cell.key for row in rows]),
            texts([row.kind for row in rows]),
            blobs([said(row.role) for row in rows]),
            ints([row.since for row in rows]),
            ints_or_null([row.due_at for row in rows]),
            blobs([row.show for row in rows]),
            blobs([said(row.claimed_by) for row in rows]),
        )
        flush.add("reviews_put", values)
    if gone:
        flush.add("reviews_drop", (ints([e.ref for e in gone]), texts([e.step for e in gone])))


def _add_attributes(flush: Flush, batch: Batch) -> None:
    """Let new instances be found by what they say of themselves."""
    heads = {head.ref: head for head in batch.heads}
    found = [
        (heads[each.ref], name, *search_key(value))
        for each in batch.attributes
        for name, value in each.values.items()
    ]
    refs = ints([each.ref for each in batch.attributes])
    flush.add("attributes_add", (refs, blobs([encode(each.values) for each in batch.attributes])))
    if found:
        values = (
            texts([head.cell.tenant for head, *_ in found]),
            texts([name for _, name, *_ in found]),
            ints([kind for _, _, kind, *_ in found]),
            texts([number for *_, number, _ in found]),
            blobs([text for *_, text in found]),
            ints([head.created_at for head, *_ in found]),
            ints([head.ref for head, *_ in found]),
        )
        flush.add("search_add", values)
