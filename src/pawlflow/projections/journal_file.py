"""Journal files: a journal outside any database, whole and verifiable by itself.

A file is a sequence of CBOR byte strings. Each wraps one canonical document: a definition, a frame
with its turns and the payloads that lie beside them, or a part of a frame: some of its entries,
each with the proof that it is in there. Reading checks everything that can be checked without
deciding again: heads, sequence, chains, Merkle roots, proofs, addresses.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from pawlflow.model.beside import Beside
from pawlflow.model.codec import CodecError, decode, head
from pawlflow.model.ids import CellId, Digest
from pawlflow.model.journal import (
    Disposition,
    disposition_hash,
    frame_of,
    instance_genesis,
    shard_genesis,
    turn_hash,
)
from pawlflow.model.payload import PayloadError, verified
from pawlflow.model.records import Record, read, write
from pawlflow.projections.inclusion import root_over, sealed_by

DOCUMENT_BYTES_MAX: Final = 1 << 30  # a frame holds many turns, each with payloads of its own


class DefinitionRecord(Record, frozen=True, tag="definition"):
    """A definition that turns of this file were decided under, as canonical bytes."""

    data: bytes


class TurnEntry(Record, frozen=True, tag="turn"):
    """A turn in a frame, with the cell it belongs to."""

    cell: CellId
    data: bytes
    payloads: tuple[Beside, ...] = ()


class DispositionEntry(Record, frozen=True, tag="disposed"):
    """A disposition in a frame."""

    cell: CellId
    data: bytes
    payloads: tuple[Beside, ...] = ()


Entry = TurnEntry | DispositionEntry


class FrameRecord(Record, frozen=True, tag="frame"):
    """A frame with all that belongs to it."""

    shard: int
    first: int
    last: int
    prev: Digest
    root: Digest
    hash: Digest
    entries: tuple[TurnEntry | DispositionEntry, ...]


class Proven(Record, frozen=True):
    """An entry at its place in a frame, and the hashes that lead from it to the root."""

    index: int
    entry: TurnEntry | DispositionEntry
    path: tuple[Digest, ...] = ()


class PartRecord(Record, frozen=True, tag="part"):
    """A frame of which only some entries are shown."""

    shard: int
    first: int
    last: int
    prev: Digest
    root: Digest
    hash: Digest
    entries: tuple[Proven, ...]


class JournalError(Exception):
    """A journal that is not what was written. `at` is the sequence number, or the byte."""

    def __init__(self, code: str, at: int, message: str) -> None:
        self.code = code
        self.at = at
        super().__init__(f"{message} (at {at})")


class Journal(msgspec.Struct):
    """A journal that was read and found whole."""

    definitions: list[bytes]
    turns: dict[CellId, list[tuple[bytes, Digest]]]
    dispositions: list[Disposition]
    payloads: dict[bytes, bytes]
    shard: int
    last: int
    head: Digest
    parts: list[PartRecord] = []  # without their entries, to be held against a store


def write_journal(records: Iterable[DefinitionRecord | FrameRecord | PartRecord]) -> bytes:
    """The bytes of a file."""
    return b"".join(head(2, len(data)) + data for data in map(write, records))


def seal(
    shard: int,
    prev: Digest,
    first: int,
    entries: Iterable[tuple[Entry, Digest]],
) -> FrameRecord:
    """A frame over entries and their hashes."""
    kept = list(entries)
    frame = frame_of(shard, prev, first, [leaf for _, leaf in kept])
    return FrameRecord(
        frame.shard,
        frame.first,
        frame.last,
        frame.prev,
        frame.root,
        frame.hash,
        tuple(entry for entry, _ in kept),
    )


def read_journal(data: bytes) -> Journal:
    """Read a file of one shard. Raises JournalError at the first thing that is not right."""
    journal = Journal([], {}, [], {}, -1, 0, Digest(b""), [])
    for at, document in documents(data):
        try:
            decoded = decode(document, DOCUMENT_BYTES_MAX)
            record = read(DefinitionRecord | FrameRecord | PartRecord, decoded, {})
        except CodecError as error:
            raise JournalError("journal.unreadable", at, str(error)) from error
        if isinstance(record, DefinitionRecord):
            journal.definitions.append(record.data)
        elif isinstance(record, PartRecord):
            admit_part(journal, record)
        else:
            admit_frame(journal, record)
    return journal


def documents(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The documents of a file with their positions."""
    at = 0
    while at < len(data):
        size, start = string_head(data, at)
        if start + size > len(data):
            raise JournalError("journal.truncated", at, "the file ends inside a document")
        yield at, data[start : start + size]
        at = start + size


def string_head(data: bytes, at: int) -> tuple[int, int]:
    """The length of the byte string at a position, and where its bytes begin."""
    first, wide = data[at] >> 5, data[at] & 0x1F
    width = {24: 1, 25: 2, 26: 4, 27: 8}.get(wide, 0)
    if first != 2 or (width == 0 and wide > 23):
        raise JournalError("journal.unreadable", at, "expected a byte string")
    if at + 1 + width > len(data):
        raise JournalError("journal.truncated", at, "the file ends inside a head")
    size = int.from_bytes(data[at + 1 : at + 1 + width], "big") if width else wide
    if head(2, size) != data[at : at + 1 + width]:
        raise JournalError("journal.unreadable", at, "a length is not in its shortest form")
    return size, at + 1 + width


def admit_frame(journal: Journal, record: FrameRecord) -> None:
    """Check a frame against all before it, and take in its turns."""
    if not journal.head:
        journal.shard, journal.head = record.shard, shard_genesis(record.shard)
    prev = journal.head
    if record.first != journal.last + 1:
        raise JournalError("journal.gap", record.first, f"sequence {journal.last + 1} is missing")
    if record.prev != prev or record.shard != journal.shard:
        raise JournalError("journal.chain", record.first, "the frame is chained to another one")
    leaves = [
        admit_entry(journal, entry, record.first + i) for i, entry in enumerate(record.entries)
    ]
    frame = frame_of(journal.shard, prev, record.first, leaves)
    if (frame.last, frame.root, frame.hash) != (record.last, record.root, record.hash):
        raise JournalError("journal.hash", record.first, "the frame's hash is not its own")
    journal.last, journal.head = record.last, record.hash


def admit_part(journal: Journal, record: PartRecord) -> None:
    """Check a part of a frame: what is shown of it is in it, at the places that are said."""
    size = record.last - record.first + 1
    if journal.head and (record.shard != journal.shard or record.first <= journal.last):
        raise JournalError(
            "journal.gap", record.first, "parts stand in order, and are of one shard"
        )
    if journal.head and record.first == journal.last + 1 and record.prev != journal.head:
        raise JournalError("journal.chain", record.first, "the frame is chained to another one")
    before = -1
    for proven in record.entries:
        at = record.first + proven.index
        leaf = admit_entry(journal, proven.entry, at)
        shown = root_over(leaf, proven.index, size, proven.path)
        if not before < proven.index < size or shown != record.root:
            raise JournalError("journal.proof", at, "the entry is not proven to be in its frame")
        before = proven.index
    if not record.entries or sealed_by(*bounds(record)) != record.hash:
        raise JournalError("journal.hash", record.first, "the frame's hash is not its own")
    journal.shard, journal.last, journal.head = record.shard, record.last, record.hash
    journal.parts.append(msgspec.structs.replace(record, entries=()))


def bounds(record: PartRecord) -> tuple[Digest, int, int, Digest]:
    """What the hash of a frame is over."""
    return record.prev, record.first, record.last, record.root


def admit_entry(journal: Journal, entry: Entry, at: int) -> Digest:
    """Check what lies beside an entry, and chain the entry itself."""
    try:
        for kept in entry.payloads:
            verified(kept.addr, kept.data, entry.cell.tenant)
            journal.payloads[kept.addr] = kept.data
        if isinstance(entry, DispositionEntry):
            disposed: Disposition = read(Disposition, entry.data, journal.payloads)
            if disposed.cell != entry.cell:
                raise JournalError("journal.entry", at, "a disposition is of another cell")
            journal.dispositions.append(disposed)
            return disposition_hash(entry.data)
    except (CodecError, PayloadError) as error:
        raise JournalError("journal.entry", at, str(error)) from error
    turns = journal.turns.setdefault(entry.cell, [])
    prev = turns[-1][1] if turns else instance_genesis(entry.cell)
    sealed = turn_hash(prev, entry.data)
    turns.append((entry.data, sealed))
    return sealed
