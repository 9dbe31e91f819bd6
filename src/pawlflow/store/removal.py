"""Removal: what every store checks of a batch that removes cells, and reads of one that is gone."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from pawlflow.definition.canonical import definition_from_bytes
from pawlflow.definition.shape import Retention
from pawlflow.model.codec import CodecError
from pawlflow.model.ids import Tenant, TimeMs
from pawlflow.model.journal import Disposition
from pawlflow.model.operate import RemoveInstance
from pawlflow.model.records import read
from pawlflow.store.check import wrong
from pawlflow.store.port import SHARDS, Batch, Entry, Head, Ref

REMOVED: Final = "removed"  # the kind of a disposition that removed its cell
OUTCOMES: Final = ("completed", "failed", "cancelled")
Rule = tuple[bytes, str, int]  # a definition, an outcome, and for how long such instances are kept


def disposed_in(entry: Entry) -> Disposition:
    """What an entry with number 0 says. Raises StoreError if it is none."""
    try:
        disposed: Disposition = read(Disposition, entry.data, {})
    except CodecError as trouble:
        raise wrong(f"an entry with number 0 is no disposition: {trouble}") from trouble
    return disposed


def listed_under(entry: Entry) -> Tenant | None:
    """Whose disposition this is; None for one that removed its cell: nobody was refused anything.

    Its cell may never have come into being, so it says so itself.
    """
    disposed = disposed_in(entry)
    return None if disposed.kind == REMOVED else disposed.cell.tenant


def check_removed(batch: Batch) -> None:
    """Each cell that goes has its one entry that says so, and there is no other of its kind."""
    heads = {head.ref: head for head in batch.removed}
    told: dict[Ref, int] = {}
    for written in batch.frames:
        for entry in written.entries if heads else (e for e in written.entries if not e.number):
            head = heads.get(entry.ref)
            if _is_fact_of(head, entry, written.frame.shard):
                told[entry.ref] = told.get(entry.ref, 0) + 1
    if len(heads) != len(batch.removed) or told != dict.fromkeys(heads, 1):
        raise wrong("a cell is removed, and not one entry says so")
    if heads and not heads.keys().isdisjoint(_moved(batch)):
        raise wrong("a cell is removed that the batch writes to")


def _is_fact_of(head: Head | None, entry: Entry, shard: int) -> bool:
    """Does this entry remove a cell, and may it? A removed cell has no other in the batch."""
    disposed = disposed_in(entry) if entry.number == 0 else None
    if disposed is None or disposed.kind != REMOVED:
        if head is not None:
            raise wrong(f"cell {entry.ref} is removed, and has another entry in the batch")
        return False
    if head is None or disposed.cell != head.cell or entry.ref % SHARDS != shard:
        raise wrong(f"an entry removes cell {entry.ref}, and the batch does not")
    asked = disposed.input
    if not isinstance(asked, RemoveInstance) or (asked.turn, asked.hash) != (head.turn, head.hash):
        raise wrong(f"cell {entry.ref} is removed by an entry of another history")
    return True


def _moved(batch: Batch) -> Iterator[Ref]:
    yield from (head.ref for head in batch.heads)
    yield from (each.ref for each in (*batch.reviews, *batch.blobs, *batch.snapshots))
    yield from (ref for ref, _ in batch.expiring)


def other_history(head: Head) -> str:
    """Why a cell is not removed: it is another one than its head says, or gone."""
    return f"cell {head.ref} is removed, and is not as its head says"


def rules_of(definitions: Iterable[tuple[bytes, bytes]]) -> Iterator[Rule]:
    """How long instances of these definitions are kept, for those who closed before it counted."""
    for digest, data in definitions:
        try:
            rule = definition_from_bytes(data).retention or Retention()
        except (CodecError, msgspec.ValidationError):  # `pawl doctor` tells; its instances stay
            continue
        for outcome in OUTCOMES:
            kept = rule.until(outcome, TimeMs(0))
            if kept is not None:
                yield digest, outcome, kept
