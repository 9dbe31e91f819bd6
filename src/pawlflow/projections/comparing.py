"""Comparing: are the rows those that the journal gives? Each instance is held against its turns.

Rows may be behind the journal, and somebody may follow it meanwhile: every instance is compared as
of the turn that its row names.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from pawlflow.definition.plan import Plan
from pawlflow.model.ids import Digest
from pawlflow.projections.following import Progress, new_folding
from pawlflow.projections.rows import Place
from pawlflow.store.port import SHARDS, Head, Store, StoreError
from pawlflow.store.views import InstanceRow, Mark, ReadModels, Rows, StepRow, UuidOf

PAGE: Final = 100  # instances whose rows are read together


class Difference(msgspec.Struct, frozen=True):
    """The first thing that is not as the journal gives it."""

    instance: str
    tenant: str
    step: str
    column: str
    kept: Any
    journal: Any

    @property
    def words(self) -> str:
        """The same in a sentence."""
        where = f"{self.instance} {self.step}".rstrip()
        if self.column:
            gives = f"and the journal gives {self.journal!r}"
            return f"{where}: {self.column} is {self.kept!r}, {gives}"
        return f"{where}: {self.kept or self.journal}"


class Compared(msgspec.Struct):
    """What was looked at, and the first difference."""

    instances: int = 0
    steps: int = 0
    behind: int = 0  # entries of the journal that are not in the rows yet
    difference: Difference | None = None


class Comparison:
    """One look at all rows."""

    def __init__(self, store: Store, models: ReadModels, uuid_of: UuidOf) -> None:
        self.store = store
        self.models = models
        self.uuid_of = uuid_of
        self.plans: dict[Digest, Plan] = {}
        self.report = Compared()

    def run(self, progress: Progress | None = None) -> Compared:
        """Every instance, until one differs."""
        standings = self.models.standings()
        marks = {shard: each.mark for shard, each in standings.items()}
        self.report.behind = sum(each.behind for each in standings.values())
        total = self.models.count()[0]
        for heads in pages(self.store):
            rows = self.models.rows([head.ref for head in heads])
            for head in heads:
                found = self.compare(head, rows.get(head.ref), marks[head.ref % SHARDS])
                if found is not None:
                    self.report.difference = found
                    return self.report
            if progress is not None:
                progress(min(self.report.instances, total), total)
        stray = self.models.stray()
        if stray is not None:
            said = "there is a row, and no such thing in the journal"
            self.report.difference = Difference(stray, "", "", "", said, None)
        return self.report

    def compare(self, head: Head, rows: Rows | None, mark: Mark) -> Difference | None:
        """One instance."""
        cell = head.cell
        if rows is None:
            if mark.seq < head.ref // SHARDS:  # its first turn comes after the watermark
                return None
            said = "it has no row, and the watermark is past its first turn"
            return Difference(cell.key, cell.tenant, "", "", None, said)
        kept, steps = rows
        place = Place(head.ref, kept.generation)
        made = self.made(head, kept.turn, place)
        self.report.instances += 1
        self.report.steps += len(steps)
        if made is None:
            return Difference(cell.key, cell.tenant, "", "turn", kept.turn, head.turn)
        return first_of(cell.key, cell.tenant, (kept, steps), made)

    def made(self, head: Head, turn: int, place: Place) -> Rows | None:
        """The rows that the turns of an instance give; None if there are not so many."""
        image = self.store.story((head.cell.tenant, head.cell.key))
        if image is None:
            raise StoreError("cell.lost", f"{head.cell.key} is listed, and not found by its id")
        folding = new_folding(self.store, head, self.uuid_of, self.plans)
        for entry in image.entries[:turn]:
            folding.take(entry)
        return folding.rows(place) if folding.turn == turn else None


def pages(store: Store) -> Iterator[list[Head]]:
    """All instances, some at a time."""
    found = (head for head in store.refs() if not head.cell.workflow.startswith("$"))
    while page := list(islice(found, PAGE)):
        yield page


def first_of(key: str, tenant: str, kept: Rows, made: Rows) -> Difference | None:
    """The first column that differs."""
    column = differs(kept[0], made[0])
    if column:
        values = getattr(kept[0], column), getattr(made[0], column)
        return Difference(key, tenant, "", column, *values)
    left, right = by_place(kept[1]), by_place(made[1])
    for where in sorted(left.keys() | right.keys()):
        row, wanted = left.get(where), right.get(where)
        if wanted is None or row is None:
            name = (row or wanted).name  # type: ignore[union-attr]  # one of them is there
            said = "has a row, and no turn touched it" if row else "a turn touched it, and no row"
            return Difference(key, tenant, name, "", said, None)
        column = differs(row, wanted)
        if column:
            values = getattr(row, column), getattr(wanted, column)
            return Difference(key, tenant, wanted.name, column, *values)
    return None


def by_place(rows: Sequence[StepRow]) -> dict[tuple[int, str], StepRow]:
    """The rows of steps by what they are known by."""
    return {(row.place, row.direction): row for row in rows}


def differs(kept: InstanceRow | StepRow, made: InstanceRow | StepRow) -> str:
    """The first column of two rows that is not the same; the building does not matter."""
    names = (name for name in made.__struct_fields__ if name != "generation")
    return next((name for name in names if getattr(kept, name) != getattr(made, name)), "")
