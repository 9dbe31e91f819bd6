"""Orphans: which reviews of late effects are open, told by what lies beside the turns of a cell."""

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, Final

from pawlflow.kernel.heads import LATE, Question, orphan_of
from pawlflow.kernel.state import Instance
from pawlflow.model.ids import CellId, Tenant
from pawlflow.model.journal import Disposition
from pawlflow.store.port import Head, Ref

SAID: Final = attrgetter("kind", "role", "since", "due_at", "claimed_by")  # of a review
Row = tuple[Tenant, Ref, str]


def row_of(cell: CellId, asked: Question) -> tuple[Any, ...]:
    """What a store keeps of a review."""
    return (cell, *SAID(asked), None if asked.show is None else asked.show.data)


def note_orphans(
    head: Head,
    state: Instance,
    beside: Iterable[tuple[int, Disposition]],
    rows: dict[Row, tuple[Any, ...]],
    asked: dict[Row, int],
) -> None:
    """Open what a late success after the close led to, and close what a human settled later.

    `beside` has the entries about orphans with their places, `asked` the places of the last turns
    that asked.
    """
    for seq, disposed in beside:
        step: str = disposed.detail.value["review"]
        row = (head.cell.tenant, head.ref, step)
        unit = state.named(step.removesuffix(LATE))
        orphan = None if unit is None else orphan_of(state, unit, disposed.at)
        if disposed.kind != "settled" and orphan is not None:
            rows[row] = row_of(head.cell, orphan)
        elif seq > asked.get(row, 0):
            rows.pop(row, None)
