"""How the reference store removes cells: where their entries lie, and who else mentions a blob."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from typing import Any

from msgspec.structs import replace

from pawlflow.store import port
from pawlflow.store.check import wrong
from pawlflow.store.memory_index import Ordered
from pawlflow.store.removal import check_removed, other_history


class Kept:
    """What must be known to remove a cell, and what is known of those that are gone."""

    def __init__(self) -> None:
        self.places: dict[port.Ref, list[int]] = {}  # of a cell's entries, as sequences
        self.mentioned: dict[bytes, dict[port.Ref, None]] = {}  # by whom
        self.until: dict[port.Ref, int] = {}
        self.expiring: Ordered[tuple[int, int]] = Ordered()
        self.facts: dict[port.Address, tuple[int, int]] = {}  # shard and sequence

    def note(self, batch: port.Batch) -> None:
        """A batch was written."""
        gone = {head.ref: (head.cell.tenant, head.cell.key) for head in batch.removed}
        for written in batch.frames:
            for seq, entry in enumerate(written.entries, written.frame.first):
                self.places.setdefault(entry.ref, []).append(seq)
                if entry.ref in gone:
                    self.facts[gone[entry.ref]] = (written.frame.shard, seq)
        for blob in batch.blobs:
            self.mentioned.setdefault(blob.addr, {})[blob.ref] = None
        for ref, until in batch.expiring:
            self.forget(ref)
            self.until[ref] = until
            self.expiring.add((until, ref))

    def forget(self, ref: port.Ref) -> None:
        """A cell is kept for ever, or no longer."""
        until = self.until.pop(ref, None)
        if until is not None:
            self.expiring.remove((until, ref))


def check_all(memory: Any, batch: port.Batch) -> None:
    """May these cells be removed? Each must be there, as its head says."""
    check_removed(batch)
    for head in batch.removed:
        known = memory.cells.get(head.ref)
        if known is None or (known.cell, known.hash) != (head.cell, head.hash):
            raise wrong(other_history(head))


def remove_all(memory: Any, batch: port.Batch) -> None:
    """Let cells go, and know what the batch brings; from here on nothing can fail."""
    for head in batch.removed:
        remove(memory, memory.cells.pop(head.ref))
    memory.kept.note(batch)


def remove(memory: Any, head: port.Head) -> None:
    """Take out all that a cell can be asked for, and the bytes of its entries."""
    ref, kept = head.ref, memory.kept
    memory.refs.remove(ref)
    del memory.addresses[head.cell.tenant, head.cell.key]
    memory.turns.pop(ref, None)
    memory.snapshots.pop(ref, None)
    if head.due_at is not None:
        memory.due.remove((head.due_at, ref))
    if head.calls:
        memory.calls.remove(ref)
    memory.index.drop(head)
    for key in [key for key in memory.reviews if key[0] == ref]:
        del memory.reviews[key]
    for addr in memory.mentions.pop(ref, ()):
        kept.mentioned[addr].pop(ref)
        if not kept.mentioned[addr]:
            del kept.mentioned[addr], memory.blobs[addr]
    kept.forget(ref)
    for seq in kept.places[ref]:
        clear(memory, head.ref % port.SHARDS, seq)
    line = memory.dispositions.get(head.cell.tenant, [])
    line[:] = [found for found in line if found.entry.ref != ref]


def clear(memory: Any, shard: int, seq: int) -> None:
    """Take the bytes out of an entry; its hash stays, and with it every chain and proof."""
    frames = memory.frames[shard]
    at = bisect_right(frames, seq, key=lambda written: written.frame.first) - 1
    written = frames[at]
    entries = list(written.entries)
    place = seq - written.frame.first
    entries[place] = replace(entries[place], data=b"", beside=b"")
    frames[at] = replace(written, entries=tuple(entries))


class Retaining:
    """The part of a handle that is about cells that go, and are gone."""

    memory: Any

    def expiring(
        self, shards: Sequence[int], after: tuple[int, port.Ref], limit: int
    ) -> list[port.Kept]:
        """Closed cells by until when they are kept."""
        wanted, cells, line = set(shards), self.memory.cells, self.memory.kept.expiring
        found = ((at, cells[ref]) for at, ref in line.after(after))
        return list(islice((each for each in found if each[1].shard in wanted), limit))

    def removed(self, cell: port.Address) -> port.Found | None:
        """What says that a cell was removed."""
        place = self.memory.kept.facts.get(cell)
        return None if place is None else self._at(*place)

    def beside(self, ref: port.Ref) -> list[port.Found]:
        """The dispositions of a cell."""
        places = self.memory.kept.places.get(ref, ())
        found = (self._at(ref % port.SHARDS, seq) for seq in places)
        return [each for each in found if each.entry.number == 0]

    def frame(self, shard: int, seq: int) -> port.FrameWrite | None:
        """The frame that holds a sequence number."""
        frames: list[port.FrameWrite] = self.memory.frames[shard]
        at = bisect_right(frames, seq, key=lambda written: written.frame.first) - 1
        return frames[at] if at >= 0 and frames[at].frame.last >= seq else None

    def _at(self, shard: int, seq: int) -> port.Found:
        written = self.frame(shard, seq)
        assert written is not None
        entry = written.entries[seq - written.frame.first]
        return port.Found(shard=shard, seq=seq, entry=entry)
