"""Planted bugs in the store: fences, epochs, mail."""

from typing import Any, Final

from msgspec.structs import replace

from pawlflow.store import check, memory
from pawlflow.store.fair_mail import FairMail
from pawlflow.store.memory import MemoryStore
from pawlflow.store.port import SHARDS, CellImage, ShardHead, Taken
from pawlflow.testing.sim.patching import Change, real


def no_fencing() -> list[Change]:
    """An owner of an older epoch may write, if it is up to date."""
    old = real(memory, "moved")

    def moved(batch: Any, heads: Any) -> Any:
        fences = [replace(fence, epoch=heads[fence.shard].epoch) for fence in batch.fences]
        frames = [replace(each, epoch=heads[each.frame.shard].epoch) for each in batch.frames]
        return old(replace(batch, fences=fences, frames=frames), heads)

    return [(memory, "moved", moved)]


def epoch_stays() -> list[Change]:
    """A claim does not raise the epoch."""

    def claim(self: MemoryStore, shards: Any = None) -> Any:
        return self.heads(range(SHARDS) if shards is None else shards)

    return [(MemoryStore, "claim", claim)]


def mail_read_is_taken() -> list[Change]:
    """Mail is gone when it is read, not when what it asked for is durable."""
    read, old = MemoryStore.mail, real(memory, "_take")

    def take(rows: Any, taken: Any) -> None:
        if taken.id in rows.mailbox:
            old(rows, taken)

    def mail(self: MemoryStore, *where: Any) -> Any:
        found = read(self, *where)
        for row in found:
            take(self.memory, Taken(row.id))
        return found

    nothing: Any = lambda *_: None  # noqa: E731
    return [(MemoryStore, "mail", mail), (memory, "check_taken", nothing), (memory, "_take", take)]


def mail_stays() -> list[Change]:
    """Consumed mail stays in the mailbox."""
    return [(memory, "_take", lambda *_: None)]


def torn_read() -> list[Change]:
    """A cell is read without a look at its chain."""

    def image_of(head: Any, snapshot: Any, turns: Any, blobs: Any) -> Any:
        return CellImage(head=head, snapshot=snapshot, entries=turns, blobs=blobs)

    return [(memory, "image_of", image_of)]


def sequence_unchecked() -> list[Change]:
    """A frame may begin anywhere, and be chained to anything."""

    def extended(head: ShardHead, written: Any) -> ShardHead:
        frame = written.frame
        return replace(head, seq=frame.last, hash=frame.hash, now=written.now)

    old = real(memory, "moved")

    def moved(batch: Any, heads: Any) -> Any:
        fences = [replace(fence, seq=heads[fence.shard].seq) for fence in batch.fences]
        return old(replace(batch, fences=fences), heads)

    return [(check, "_extended", extended), (memory, "moved", moved)]


def turn_forgotten() -> list[Change]:
    """Of a tenant with several letters the last is passed over when tenants take turns."""
    old = FairMail.look

    def look(self: FairMail, shards: Any) -> None:
        old(self, shards)
        for line in self.lines.values():
            if len(line) > 1:
                line.pop()

    return [(FairMail, "look", look)]


STORE_BUGS: Final = (
    ("no-fencing", "an older epoch may write", no_fencing),
    ("epoch-stays", "a claim does not raise the epoch", epoch_stays),
    ("mail-read-is-taken", "mail is acknowledged before the commit", mail_read_is_taken),
    ("mail-stays", "consumed mail is not deleted", mail_stays),
    ("turn-forgotten", "mail is passed over when tenants take turns", turn_forgotten),
    ("torn-read", "a torn cell is read as if it were whole", torn_read),
    ("sequence-unchecked", "the place of a frame is not checked", sequence_unchecked),
)
