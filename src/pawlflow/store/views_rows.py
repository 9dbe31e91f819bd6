"""What the rows of the read models stand for, in any database."""

from collections.abc import Sequence

from pawlflow.store.port import StoreError
from pawlflow.store.rows import Row, entry_of
from pawlflow.store.views import InstanceRow, Mark, Page, Standing, StepRow


def standing_of(row: Row) -> Standing:
    """A shard from its row."""
    shard, generation, seq, hash_, at, swept, end, end_hash = row
    return Standing(Mark(shard, generation, seq, hash_, at, bool(swept)), end, end_hash)


def page_of(rows: Sequence[Row]) -> Page:
    """Frames and entries from their rows: of the first frame what it follows on is told."""
    first, last = rows[0], rows[-1]
    entries = [entry_of(row[5:]) for row in rows]
    if len(entries) != last[1] - first[0] + 1:
        what = f"{len(entries)} entries from {first[0]} to {last[1]} are there"
        raise StoreError(
            "store.gap", f"the journal has a gap: {what}; `pawl doctor` lists the damage"
        )
    return Page(prev=first[2], seq=last[1], hash=last[3], at=last[4], entries=entries)


def instance_of(row: Row) -> InstanceRow:
    """An instance from its row."""
    return InstanceRow(**dict(zip(InstanceRow.__struct_fields__, row, strict=True)))


def step_of(row: Row) -> StepRow:
    """A step from its row."""
    return StepRow(**dict(zip(StepRow.__struct_fields__, row, strict=True)))


def missing(place: str) -> StoreError:
    """Nobody has built the read models, or it was a Pawl with another format of them."""
    message = f"{place} has no read models of this version: `pawl rebuild` makes them"
    return StoreError("views.missing", message)
