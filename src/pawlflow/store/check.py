"""What every store checks on both sides: a batch before it is written, a cell after it is read."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pawlflow.model.ids import CellId, TimeMs
from pawlflow.model.journal import frame_of, instance_genesis, shard_genesis, turn_hash
from pawlflow.store.port import (
    Batch,
    CellImage,
    Entry,
    Fence,
    FrameWrite,
    Head,
    ShardHead,
    Snapshot,
    StoreConflictError,
    StoreError,
)

REFUSALS_MAX: Final = 10_000  # answers kept for senders that ask late (port: `answer`)


def genesis(shard: int) -> ShardHead:
    """Where a shard stands before anybody has owned it."""
    return ShardHead(
        shard=shard, epoch=0, seq=0, hash=shard_genesis(shard), batch=b"", now=TimeMs(0)
    )


def moved(batch: Batch, heads: Mapping[int, ShardHead]) -> list[ShardHead]:
    """Where the fenced shards stand after this batch, if they stand where its fences say.

    Every fenced shard remembers the batch, so that an unknown outcome can be looked up even where
    mail was acknowledged and nothing written. Raises StoreConflictError if a fence is stale, and
    StoreError if the batch does not fit together: then its author is wrong.
    """
    stale = [fence.shard for fence in batch.fences if not _holds(fence, heads)]
    if stale:
        raise StoreConflictError(stale)
    after = {fence.shard: _marked(heads[fence.shard], batch.id) for fence in batch.fences}
    if len(after) != len(batch.fences):
        raise wrong("two fences are for one shard")
    framed = {written.frame.shard for written in batch.frames}
    if len(framed) != len(batch.frames) or not framed <= after.keys():
        raise wrong("a frame has no fence of its own")
    for written in batch.frames:
        after[written.frame.shard] = _extended(after[written.frame.shard], written)
    return list(after.values())


def _holds(fence: Fence, heads: Mapping[int, ShardHead]) -> bool:
    head = heads.get(fence.shard)
    return head is not None and (head.epoch, head.seq) == (fence.epoch, fence.seq)


def _marked(head: ShardHead, batch: bytes) -> ShardHead:
    return ShardHead(
        shard=head.shard,
        epoch=head.epoch,
        seq=head.seq,
        hash=head.hash,
        batch=batch,
        now=head.now,
    )


def _extended(head: ShardHead, written: FrameWrite) -> ShardHead:
    """The head after one more frame; it must follow on the last one, and be whole."""
    frame = written.frame
    place = f"the frame of shard {frame.shard} from {frame.first} to {frame.last}"
    if frame.first != head.seq + 1 or frame.prev != head.hash:
        raise wrong(f"{place} does not follow on sequence {head.seq}")
    if not written.entries or len(written.entries) != frame.last - frame.first + 1:
        raise wrong(f"{place} has {len(written.entries)} entries")
    if written.epoch != head.epoch:
        raise wrong(f"{place} is of epoch {written.epoch}, its fence of {head.epoch}")
    if written.now < head.now:
        raise wrong(f"{place} is of {written.now}, before {head.now}: time went back")
    return ShardHead(
        shard=head.shard,
        epoch=head.epoch,
        seq=frame.last,
        hash=frame.hash,
        batch=head.batch,
        now=written.now,
    )


def check_heads(batch: Batch) -> None:
    """Every turn moves the head of its cell, and a head says what the last turn says.

    Only a new cell has attributes: it is found by them from its first turn on.
    """
    last = {
        entry.ref: entry for written in batch.frames for entry in written.entries if entry.number
    }
    heads = {head.ref: head for head in batch.heads}
    if len(heads) != len(batch.heads):
        raise wrong("two heads are of one cell")
    for ref, entry in last.items():
        head = heads.get(ref)
        if head is None or (head.turn, head.hash) != (entry.number, entry.hash):
            raise wrong(f"turn {entry.number} of cell {ref} is not what its head says")
    if not batch.attributes:
        return
    described = {each.ref for each in batch.attributes}
    entries = (entry for written in batch.frames for entry in written.entries)
    if len(described) != len(batch.attributes) or not described <= {
        entry.ref for entry in entries if entry.number == 1
    }:
        raise wrong("a cell that is not new has attributes, or a new one has them twice")


def check_taken(wanted: Mapping[int, int | None], batch: Batch) -> None:
    """Mail that a batch takes must wait in one of the fenced shards; given are the shards by id."""
    owned = {fence.shard for fence in batch.fences}
    if len(wanted) != len(batch.taken):
        raise wrong("mail is taken twice")
    for mail, shard in wanted.items():
        if shard is None:
            raise wrong(f"mail {mail} is taken, but does not wait")
        if shard not in owned:
            raise wrong(f"mail {mail} is of shard {shard}, which has no fence")


def wrong(what: str) -> StoreError:
    """The batch cannot be written by anybody: a fault of the engine, not of the store."""
    return StoreError(
        "store.batch", f"the batch does not fit together: {what}; nothing was written"
    )


def image_of(
    head: Head, snapshot: Snapshot | None, turns: Sequence[Entry], blobs: dict[bytes, bytes]
) -> CellImage:
    """A cell as it was read, if its turns lead from the snapshot (or nothing) to its head."""
    number, chain = 0, instance_genesis(head.cell)
    if snapshot is not None:
        number, chain = snapshot.turn, snapshot.hash
    for turn in turns:
        number += 1
        if turn.number != number:
            raise damaged(head.cell, head.shard, f"turn {number} is missing")
        chain = turn_hash(chain, turn.data)
        if turn.hash != chain:
            raise damaged(head.cell, head.shard, f"turn {number} does not give the hash it carries")
    if number != head.turn or chain != head.hash:
        raise damaged(
            head.cell, head.shard, f"turns end at {number}, where its row says {head.turn}"
        )
    return CellImage(head=head, snapshot=snapshot, entries=turns, blobs=blobs)


def later_of(
    head: Head, turns: Sequence[Entry], after: int, blobs: dict[bytes, bytes]
) -> CellImage:
    """What came after a turn, if it leads to the head; whether it follows is for who has that."""
    for number, turn in enumerate(turns, after + 1):
        if turn.number != number:
            raise damaged(head.cell, head.shard, f"turn {number} is missing")
    if turns and (turns[-1].number, turns[-1].hash) != (head.turn, head.hash):
        ends = turns[-1].number
        raise damaged(head.cell, head.shard, f"turns end at {ends}, where its row says {head.turn}")
    return CellImage(head=head, snapshot=None, entries=turns, blobs=blobs)


def check_chain(frames: Iterable[FrameWrite]) -> None:
    """The frames of a shard from its beginning must each follow on the one before."""
    seq, chain = 0, None
    for written in frames:
        frame = written.frame
        if frame.first != seq + 1 or frame.prev != (chain or shard_genesis(frame.shard)):
            raise unchained(frame.shard, frame.first, f"it does not follow on {seq}")
        check_frame(written)
        seq, chain = frame.last, frame.hash


def check_frame(written: FrameWrite) -> None:
    """A frame must be what its entries give."""
    frame = written.frame
    leaves = [entry.hash for entry in written.entries]
    if frame_of(frame.shard, frame.prev, frame.first, leaves) != frame:
        raise unchained(frame.shard, frame.first, "its entries give another hash")


def unchained(shard: int, seq: int, what: str) -> StoreError:
    """A shard's journal is not the one that was written."""
    return StoreError(
        "store.chain",
        f"the journal of shard {shard} is broken at sequence {seq}: {what}; "
        "`pawl doctor` lists the damage, `pawl restore` brings a backup back",
    )


def damaged(cell: CellId, shard: int, what: str) -> StoreError:
    """A cell cannot be read any more as it was written."""
    return StoreError(
        "store.damaged",
        f"cell {cell.tenant}/{cell.workflow}/{cell.key} of shard {shard}: {what}; "
        "`pawl doctor` lists the damage, `pawl restore` brings a backup back",
    )


def mask_of(shards: Iterable[int]) -> int:
    """A set of shards as the bits of one number, so that one statement serves every set."""
    mask = 0
    for shard in shards:
        mask |= 1 << shard
    return mask
