"""Archives: all that there is of one cell as a journal file, proven to have been in its store.

The file holds the definition, every turn and disposition with what lies beside them, and for each
the hashes that lead from it to the root of its frame. It can be verified by itself, years after the
store has let go of the bytes; and against the store, whose frames keep their hashes for ever.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from pawlflow.kernel.replay import read_turn
from pawlflow.model.beside import Beside
from pawlflow.model.ids import CellId, Digest
from pawlflow.model.journal import Disposition, payloads_of
from pawlflow.model.operate import RemoveInstance
from pawlflow.model.records import read
from pawlflow.projections.inclusion import merkle_path
from pawlflow.projections.journal_file import (
    DefinitionRecord,
    DispositionEntry,
    Journal,
    JournalError,
    PartRecord,
    Proven,
    TurnEntry,
    write_journal,
)
from pawlflow.projections.kin import TURNS_ALL
from pawlflow.projections.reading import damaged, story_from, take_in
from pawlflow.store.port import SHARDS, CellImage, Entry, FrameWrite, Head, Ref, Store, position

Shown = tuple[int, Entry]  # an entry of a cell, and its sequence number
FRAMES_KEPT = 64  # read once for the cells that share them


class Archivist:
    """Makes archives of cells; frames that several share are read once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.frame = lru_cache(FRAMES_KEPT)(self._frame)

    def archive(self, head: Head) -> bytes:
        """The bytes of an archive. Raises StoreError if the cell is damaged, or another by now."""
        cell = head.cell
        image = self.store.story((cell.tenant, cell.key))
        if image is None or image.head.ref != head.ref or image.head.hash != head.hash:
            raise damaged(cell.key, head.turn, "it has gone on, or was removed")
        wanted = Digest(head.definition)
        definition = self.store.definitions([wanted]).get(wanted, b"") if wanted else b""
        story_from(image, definition)  # every hash and address is checked
        records: list[DefinitionRecord | PartRecord] = []
        if definition:
            records.append(DefinitionRecord(definition))
        records += self.parts(image)
        return write_journal(records)

    def parts(self, image: CellImage) -> Iterator[PartRecord]:
        """The frames that hold entries of a cell, in order, with those and no others."""
        head = image.head
        payloads = dict(image.blobs)
        beside = [(found.seq, found.entry) for found in self.store.beside(head.ref)]
        for entry in (*image.entries, *(entry for _, entry in beside)):
            take_in(payloads, entry, head.cell.tenant)
        turns = [(read_turn(e.data, payloads).stamps.height, e) for e in image.entries]
        written: set[bytes] = set()
        for frame, shown in by_frame(self.frame, head.ref % SHARDS, sorted_by_seq(turns, beside)):
            leaves = [entry.hash for entry in frame.entries]
            proven = []
            for seq, entry in shown:
                index = seq - frame.frame.first
                if frame.entries[index] != entry:
                    raise damaged(head.cell.key, entry.number, f"it is not at {seq} of its shard")
                path = tuple(sibling for _, sibling in merkle_path(leaves, index))
                proven.append(Proven(index, shown_of(head, entry, payloads, written), path))
            yield part_of(frame, proven)

    def _frame(self, shard: int, seq: int) -> FrameWrite:
        found = self.store.frame(shard, seq)
        if found is None:
            raise damaged(f"shard {shard}", seq, "no frame holds it")
        return found


def sorted_by_seq(*lines: Iterable[Shown]) -> list[Shown]:
    """Entries in the order in which they were committed."""
    return sorted((each for line in lines for each in line), key=lambda each: each[0])


def by_frame(
    frame_at: Callable[[int, int], FrameWrite], shard: int, shown: list[Shown]
) -> Iterator[tuple[FrameWrite, list[Shown]]]:
    """Entries by the frame that holds them."""
    left = shown
    while left:
        frame = frame_at(shard, left[0][0])
        inside = [each for each in left if each[0] <= frame.frame.last]
        yield frame, inside
        left = left[len(inside) :]


def shown_of(
    head: Head, entry: Entry, payloads: dict[bytes, bytes], written: set[bytes]
) -> TurnEntry | DispositionEntry:
    """An entry with the payloads it mentions that no earlier one of the file has."""
    if entry.number:
        found = payloads_of(read_turn(entry.data, payloads))
    else:
        found = payloads_of(read(Disposition, entry.data, payloads))
    new = {each.addr: each.data for each in found if each.addr not in written}
    written |= new.keys()
    beside = tuple(Beside(addr, data) for addr, data in new.items() if data is not None)
    made = TurnEntry if entry.number else DispositionEntry
    return made(head.cell, entry.data, beside)


def part_of(written: FrameWrite, proven: list[Proven]) -> PartRecord:
    """A frame with some of its entries."""
    frame = written.frame
    bounds = (frame.shard, frame.first, frame.last, frame.prev, frame.root, frame.hash)
    return PartRecord(*bounds, tuple(proven))


def held_against(store: Store, journal: Journal) -> Iterator[JournalError]:
    """What an archive says that its store does not: frames that are others there."""
    for part in journal.parts:
        found = store.frame(part.shard, part.first)
        if found is None or found.frame.hash != part.hash or found.frame.first != part.first:
            said = f"shard {part.shard} of the store has another frame there"
            yield JournalError("journal.elsewhere", part.first, said)
    for cell, turns in journal.turns.items():
        height = read_turn(turns[0][0], journal.payloads).stamps.height
        if turns[-1][1] != last_of(store, cell, position(journal.shard, height)):
            said = f"the store knows no {cell.key} whose last turn is this one"
            yield JournalError("journal.elsewhere", len(turns), said)


def last_of(store: Store, cell: CellId, ref: Ref) -> Digest | None:
    """The hash of a cell's last turn: as it is, or as the entry says that removed it."""
    here = store.story((cell.tenant, cell.key), TURNS_ALL)
    if here is not None and here.head.ref == ref:
        return here.head.hash
    beside = [found.entry.data for found in store.beside(ref) if found.entry.data]
    said: list[Disposition] = [read(Disposition, data, {}) for data in beside]
    asked = [each.input for each in said if isinstance(each.input, RemoveInstance)]
    return asked[-1].hash if asked else None
