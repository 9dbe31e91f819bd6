"""Moving a store: the same journal bytes in another place, instances in flight included.

Both stores are marked before the first row is copied, and the target's mark says how far the copy
is. So there is never a moment at which both may be used, and whoever is killed goes on from there.
"""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from heapq import merge
from itertools import chain, zip_longest
from typing import Any, Final

import msgspec

from pawlflow.engine.clock import Clock
from pawlflow.model.codec import decode, encode
from pawlflow.model.trouble import PawlError
from pawlflow.store.check import check_frame
from pawlflow.store.marks import READY, Mark, Origin, refused
from pawlflow.store.moves import BYTES_MAX, FRAMES, PARTS, ROWS_MAX, Row, Side
from pawlflow.store.port import SHARDS, FrameWrite

SETTLE: Final = "settle"
# In this order: what a mark says is being copied decides where an interrupted move goes on.
STAGES: Final = ("definitions", "published", "blobs", "mentions", FRAMES, *list(PARTS)[4:], SETTLE)
Progress = Callable[[int, int], object]


class MoveError(PawlError):
    """A move that cannot be made, or was not made well. `code` is stable."""


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    source: str
    target: str
    sizes: dict[str, int]
    resumed: bool = False
    already: bool = False  # it had ended before


def move(source: Side, target: Side, clock: Clock, progress: Progress | None = None) -> Moved:
    """Carry a store to another place, or go on with it; verified when this returns."""
    plan = agreed(source, target)
    if plan == "already":
        return Moved(source=source.told, target=target.told, sizes=target.sizes(), already=True)
    source.hold()
    target.hold()
    mark = marked(source, target, clock)
    sizes = source.sizes()
    told = Told(progress, 2 * work_of(sizes))
    told.by(done_before(sizes, target, mark))
    mark = copied(source, target, mark, told)
    if mark.part != READY:
        verify(source, target, told)
        mark = at(mark, READY, ())
        target.write_page("dispositions", (), mark)
    ours = source.mark()
    assert ours is not None
    source.put_mark(msgspec.structs.replace(ours, done=True), ours)
    origin = Origin(move=mark.move, source=mark.source, other=mark.other, at=clock.now())
    target.release(mark, origin)
    return Moved(source=source.told, target=target.told, sizes=sizes, resumed=plan == "resumed")


class Told:
    """How much is done, told to whoever watches."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress = progress
        self.done = 0
        self.total = total

    def by(self, more: int) -> None:
        """So much more is done."""
        self.done += more
        if self.progress is not None:
            self.progress(self.done, self.total)


# Before


def agreed(source: Side, target: Side) -> str:
    """Can it be moved there? `new`, `resumed` or `already`. Changes nothing, raises PawlError."""
    if source.same(target):
        raise MoveError("move.same", f"{source.told} is moved to itself: name another target")
    ours, theirs, origin = source.mark(), target.mark(), target.origin()
    if ours is not None and ours.role == "target":
        raise refused(source.told, ours)
    if theirs is not None and theirs.role == "source":
        raise refused(target.told, theirs)
    if ours is not None and origin is not None and origin.move == ours.move and ours.done:
        return "already"
    known = ours is not None and theirs is not None and ours.move == theirs.move
    if ours is not None and not known and (ours.done or ours.other != target.told):
        raise refused(source.told, ours)
    if theirs is not None:
        if theirs.source != source.identity(make=False):
            raise not_empty(target, f"holds a part of {theirs.other}, whose move has not ended")
        return "resumed" if known else "new"
    if any(target.sizes().values()):
        raise not_empty(target, "is not empty")
    return "new"


def not_empty(target: Side, what: str) -> MoveError:
    """The target holds something else."""
    return MoveError(
        "move.not_empty",
        f"{target.told} {what}, and was left as it is: name another file, database or schema",
    )


def marked(source: Side, target: Side, clock: Clock) -> Mark:
    """Mark both, the source first: from now on neither is used. Gives how far the target is."""
    before, theirs = source.mark(), target.mark()
    name = clock.entropy().hex()
    ours = before or Mark(role="source", move=name, other=target.told, at=clock.now())
    source.put_mark(ours, before)
    run = clock.entropy().hex()
    if theirs is not None and theirs.move == ours.move:
        mine = msgspec.structs.replace(theirs, run=run)
        target.put_mark(mine, theirs)
        return mine
    mine = Mark(
        role="target",
        move=ours.move,
        other=source.told,
        at=clock.now(),
        source=source.identity(),
        run=run,
    )
    target.put_mark(mine, theirs)
    if theirs is not None:  # of an earlier move of this source, which was given up
        target.clear(mine)
    return mine


# Copying


def copied(source: Side, target: Side, mark: Mark, told: Told) -> Mark:
    """Copy everything that is not there yet; gives what the target says of itself then."""
    if mark.part == READY:
        return mark
    for stage in STAGES[STAGES.index(mark.part or STAGES[0]) :]:
        after = decode(bytes.fromhex(mark.after)) if mark.part == stage and mark.after else None
        if stage == FRAMES:
            mark = copy_frames(source, target, mark, after or [0] * SHARDS, told)
        elif stage == SETTLE:
            mark = at(mark, SETTLE, ())
            target.settle(source.shards(), source.mail_last(), mark)
        else:
            mark = copy_part(source, target, stage, tuple(after or PARTS[stage]), mark, told)
    return mark


def copy_part(source: Side, target: Side, part: str, after: Row, mark: Mark, told: Told) -> Mark:
    """Copy the rows of a part from behind a key on."""
    while rows := source.page(part, after):
        after = rows[-1][: len(after)]
        mark = at(mark, part, after)
        target.write_page(part, rows, mark)
        told.by(len(rows))
    return mark


def copy_frames(source: Side, target: Side, mark: Mark, reached: list[int], told: Told) -> Mark:
    """Copy journals; each frame is checked on its way, for what is damaged is not carried on."""
    page: list[FrameWrite] = []
    entries = size = 0
    for written in chain(in_time(source, target, reached), [None]):
        if written is not None:
            check_frame(written)
            page.append(written)
            entries += len(written.entries)
            size += sum(len(entry.data) + len(entry.beside) for entry in written.entries)
        if page and (written is None or entries >= ROWS_MAX or size >= BYTES_MAX):
            for each in page:
                reached[each.frame.shard] = each.frame.last
            mark = at(mark, FRAMES, reached)
            target.write_frames(page, mark)
            told.by(entries)
            page, entries, size = [], 0, 0
    return mark


def in_time(source: Side, target: Side, reached: Sequence[int]) -> Iterator[FrameWrite]:
    """The frames that are missing: of all shards by their time, where places tell the order."""
    ways = [source.frames(shard, after) for shard, after in enumerate(reached)]
    if target.keeps_numbers:
        return chain.from_iterable(ways)
    return merge(*ways, key=lambda written: written.now)


def at(mark: Mark, part: str, after: Sequence[Any]) -> Mark:
    """A mark that says how far the copy is."""
    return msgspec.structs.replace(mark, part=part, after=encode(list(after)).hex())


def work_of(sizes: dict[str, int]) -> int:
    """How much there is to copy: entries and rows."""
    return sum(count for name, count in sizes.items() if name != FRAMES)


def done_before(sizes: dict[str, int], target: Side, mark: Mark) -> int:
    """How much of it an earlier run has done."""
    if not mark.part or mark.part == READY:
        return 0
    entries = 0
    if mark.part == FRAMES:
        entries = sum(decode(bytes.fromhex(mark.after)))
    elif STAGES.index(mark.part) > STAGES.index(FRAMES):
        entries = sizes["entries"]
    return work_of(target.sizes() | {"entries": entries})


# Verifying


def verify(source: Side, target: Side, told: Told) -> None:
    """Read both stores to their ends, and compare every byte. Raises MoveError."""
    for shard in range(SHARDS):
        for left, right in zip_longest(source.frames(shard, 0), target.frames(shard, 0)):
            if left is None or left != right:
                place = left or right
                assert place is not None
                raise differs(source, target, f"the frame of shard {shard} at {place.frame.first}")
            told.by(len(left.entries))
    for part in PARTS:
        if part == "dispositions" and not target.keeps_numbers:
            if gist(source) != gist(target):
                raise differs(source, target, "a disposition")
            continue
        for left, right in zip_longest(rows_of(source, part), rows_of(target, part)):
            if left != right:
                key = (left or right)[: len(PARTS[part])]
                raise differs(source, target, f"{part} at {key}")
            told.by(1)
    verify_ends(source, target)


def verify_ends(source: Side, target: Side) -> None:
    """Where shards stand, and which numbers come next."""
    for left, right in zip(source.shards(), target.shards(), strict=True):
        same = (left.seq, left.hash, left.batch, left.now)
        if same != (right.seq, right.hash, right.batch, right.now) or left.epoch > right.epoch:
            raise differs(source, target, f"the head of shard {left.shard}")
    if source.mail_last() != target.mail_last():
        raise differs(source, target, "the number of the last mail")
    if source.search_count() != target.search_count():
        raise differs(source, target, "the index of search attributes")
    if target.turns_loose():
        raise differs(source, target, "the order of turns")


def rows_of(side: Side, part: str) -> Iterator[Row]:
    """All rows of a part, a page at a time."""
    after = PARTS[part]
    while rows := side.page(part, after):
        yield from rows
        after = rows[-1][: len(after)]


def gist(side: Side) -> tuple[int, int]:
    """All dispositions in two numbers, whatever order they come in."""
    count = total = 0
    for tenant, _, place in rows_of(side, "dispositions"):
        count += 1
        digest = sha256(encode([tenant, place])).digest()
        total = (total + int.from_bytes(digest)) % (1 << 256)
    return count, total


def differs(source: Side, target: Side, what: str) -> MoveError:
    """The copy is not what was copied."""
    return MoveError(
        "move.differs",
        f"{target.told} is not the same as {source.told}: {what}; it was not let go: empty it with "
        "`pawl move --undo --to URL`, look at the disks, and move again",
    )


# The way back


def undo(source: Side, target: Side | None, clock: Clock, *, force: bool = False) -> str:
    """Let a store that was moved, or was being moved, be used again. Gives what became of it.

    A target that nobody has used is emptied if its copy was not whole, and is marked as moved back
    if it was. Raises PawlError if it has gone on by itself, for then there are two futures.
    """
    ours = source.mark()
    if ours is None or ours.role == "target":
        raise MoveError("move.none", f"{source.told} was not moved: there is nothing to undo")
    source.hold()
    if target is not None:
        retire(source, target, ours, clock, force=force)
    elif ours.done and not force:
        raise MoveError(
            "move.target",
            f"{source.told} was moved to {ours.other}, which may have gone on: name it with --to "
            "URL, so that it can be asked, or say --force if it is gone",
        )
    source.put_mark(None, ours)
    return "undone" if ours.done else "given up"


def retire(source: Side, target: Side, ours: Mark, clock: Clock, *, force: bool) -> None:
    """See to it that the target is not used from now on."""
    theirs, origin = target.mark(), target.origin()
    if theirs is not None and theirs.role == "target" and theirs.move == ours.move:
        target.hold()
        target.clear(None)
        return
    if theirs is not None and theirs.move == ours.move:
        return  # an earlier undo came as far as this
    if not ours.done and theirs is None and not any(target.sizes().values()):
        return  # the move was cut short before the target had heard of it
    if origin is None or origin.move != ours.move:
        raise MoveError("move.target", f"{target.told} is not where {source.told} was moved to")
    target.hold()
    if gone_on(source, target) and not force:
        raise MoveError(
            "move.ahead",
            f"{target.told} has gone on since: what happened there would be lost; move it to a new "
            "place instead, or say --force",
        )
    back = Mark(role="source", move=ours.move, other=source.told, at=clock.now(), done=True)
    target.put_mark(back, theirs)


def gone_on(source: Side, target: Side) -> bool:
    """Has the target something that the source has not?"""
    ends = [(head.seq, head.hash) for head in source.shards()]
    if ends != [(head.seq, head.hash) for head in target.shards()]:
        return True
    return source.mail_last() != target.mail_last()
