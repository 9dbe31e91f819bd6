"""Cells of a PostgreSQL store, read in one round trip and at one moment."""

from collections.abc import Sequence
from typing import Final

from pawlflow.store.check import image_of, later_of
from pawlflow.store.port import Address, CellImage, Entry, Head, Ref, Snapshot
from pawlflow.store.postgres_link import Connection
from pawlflow.store.postgres_rows import asked
from pawlflow.store.rows import Row, entry_of, head_of

TURN_MAX: Final = 2**62  # nobody has so many; a larger number would be none for the server
Parts = tuple[
    list[Head], dict[Ref, Snapshot], dict[Ref, list[Entry]], dict[Ref, dict[bytes, bytes]]
]


def load_cells(
    db: Connection, sql: dict[str, str], cells: Sequence[Address]
) -> tuple[dict[Address, CellImage], list[Address]]:
    """Cells from their snapshots on; and those whose snapshot is not of their history."""
    heads, kept, turns, beside = parts_of(db, sql, cells, None)
    found: dict[Address, CellImage] = {}
    stale: list[Address] = []
    for head in heads:
        address = (head.cell.tenant, head.cell.key)
        snapshot, entries = kept.get(head.ref), turns.get(head.ref, [])
        if snapshot is None:
            found[address] = image_of(head, None, entries, beside.get(head.ref, {}))
        elif entries and (entries[0].number, entries[0].hash) == (snapshot.turn, snapshot.hash):
            found[address] = image_of(head, snapshot, entries[1:], beside.get(head.ref, {}))
        else:
            stale.append(address)
    return found, stale


def load_story(db: Connection, sql: dict[str, str], cell: Address, after: int) -> CellImage | None:
    """A cell with every turn, or those after a number."""
    first = min(max(after, 0), TURN_MAX) + 1
    heads, _, turns, beside = parts_of(db, sql, [cell], first)
    if not heads:
        return None
    [head] = heads
    entries, payloads = turns.get(head.ref, []), beside.get(head.ref, {})
    if after <= 0:
        return image_of(head, None, entries, payloads)
    return later_of(head, entries, after, payloads if entries else {})


def parts_of(
    db: Connection, sql: dict[str, str], cells: Sequence[Address], first: int | None
) -> Parts:
    """All that cells are made of; their turns from a number on, or from the state that was kept."""
    known = asked(cells)
    with db.pipeline():
        db.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        db.execute(sql["plainly"].encode())
        heads = db.execute(sql["heads_by_address"].encode(), known, binary=True)
        kept = db.execute(sql["snapshots_of"].encode(), known, binary=True)
        turns = db.execute(sql["turns_back"].encode(), (*known, first), binary=True)
        large = db.execute(sql["blobs_of"].encode(), known, binary=True)
        db.execute(b"COMMIT")
    entries: dict[Ref, list[Entry]] = {}
    for row in turns:
        entries.setdefault(row[0], []).append(entry_of(row))
    payloads: dict[Ref, dict[bytes, bytes]] = {}
    for ref, addr, data in large:
        payloads.setdefault(ref, {})[addr] = data
    states = {row[0]: snapshot_from(row) for row in kept}
    return [head_of(row) for row in heads], states, entries, payloads


def snapshot_from(row: Row) -> Snapshot:
    """A snapshot from its row."""
    ref, turn, hash_, data, beside = row
    return Snapshot(ref=ref, turn=turn, hash=hash_, data=data, beside=beside)
