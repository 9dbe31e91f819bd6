"""Read models in a PostgreSQL store: tables and views in its schema, on their own connection."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Final, TypeVar

import msgspec

from pawlflow.store.check import genesis
from pawlflow.store.port import SHARDS, Head, Ref, position
from pawlflow.store.postgres_link import Connection, Link, one_moment, run
from pawlflow.store.postgres_rows import blobs, in_schema, ints, sql_of, texts
from pawlflow.store.postgres_schema import LOCK
from pawlflow.store.postgres_url import where_of
from pawlflow.store.rows import FOLDER, Row, head_of, statements
from pawlflow.store.views import InstanceRow, Mark, Page, Rows, Standing, StepRow
from pawlflow.store.views_rows import instance_of, missing, page_of, standing_of, step_of

T = TypeVar("T")
FORMAT: Final = 1
SWEPT_AT_ONCE: Final = 5_000  # rows
PUT_AT_ONCE: Final = 200  # rows of one statement: each may hold several values of 64 KiB


@lru_cache(8)
def views_of(schema: str) -> dict[str, str]:
    """Every statement, for the tables of a schema."""
    found = statements((FOLDER / "postgres_views.sql").read_text())
    return {name: in_schema(sql.rstrip(";"), schema) for name, sql in found.items()}


class PostgresReadModels:
    """The read models of a schema; see `views.ReadModels` for what each method promises."""

    exclusive = False

    def __init__(self, url: str, *, make: bool = True) -> None:
        """Connect; make tables and views if they are missing, or of another format."""
        self.where = where_of(url)
        self.sql = views_of(self.where.schema)
        self.cell_sql = sql_of(self.where.schema)
        self.link = Link(self.where, lambda _: None)
        try:
            self.prepare(make=make)
        except BaseException:
            self.close()
            raise

    def prepare(self, *, make: bool) -> None:
        """Find them, or make them if that is wanted."""
        if self.link.read("the read models", self.is_made):
            return
        if not make:
            raise missing(self.where.told)
        self.link.read("making the read models", self.make)

    def is_made(self, db: Connection) -> bool:
        """Are they there, in the format we know?"""
        [(there,)] = run(db, self.sql["made"], (self.where.schema,))
        return bool(there) and run(db, self.sql["format"]) == [(FORMAT,)]

    def make(self, db: Connection) -> None:
        """Make them anew, unless somebody was faster."""
        made = in_schema((FOLDER / "postgres_views_1.sql").read_text(), self.where.schema)
        with db.transaction():
            run(db, self.sql["lock"], (LOCK,))
            if self.is_made(db):
                return
            db.execute(self.sql["drop"].encode())
            db.execute(made.encode())
            run(db, self.sql["marks_add"], (*begun(range(SHARDS)), FORMAT))

    def standings(self) -> dict[int, Standing]:
        """Every shard."""
        return {row[0]: standing_of(row) for row in self.all("standings")}

    def page(self, shard: int, after: int, entries: int) -> Page | None:
        """Some frames of a shard."""
        rows = self.by_index(self.sql["page"], position(shard, after + 1), entries)
        return page_of(rows) if rows else None

    def cells(self, refs: Sequence[Ref]) -> dict[Ref, Head]:
        """The cells with these numbers."""
        rows = self.by_index(self.cell_sql["heads_at"], ints(refs)) if refs else []
        return {head.ref: head for head in map(head_of, rows)}

    def turns(self, shard: int, generation: int, refs: Sequence[Ref]) -> dict[Ref, int]:
        """As of which turn these are."""
        return dict(self.by_index(self.sql["turns"], ints(refs), generation))

    def write(
        self,
        before: Mark,
        after: Mark,
        instances: Sequence[InstanceRow],
        steps: Sequence[StepRow],
        gone: Sequence[Ref] = (),
    ) -> bool:
        """Rows and the watermark in one transaction."""
        moved = (after.seq, after.hash, after.at, before.shard, before.generation, before.seq)

        def work(db: Connection) -> bool:
            if not run(db, self.sql["mark_move"], moved):
                return False
            run(db, self.sql["instances_drop"], (ints([row.ref for row in instances]),))
            self.put(db, "instances_put", instances)
            places = [row.place for row in steps], [row.direction for row in steps]
            old = (ints([row.ref for row in steps]), ints(places[0]), texts(places[1]))
            run(db, self.sql["steps_drop"], old)
            self.put(db, "steps_put", steps)
            if gone:
                run(db, self.sql["gone_steps"], (ints(gone),))
                run(db, self.sql["instances_drop"], (ints(gone),))
            return True

        return self.writing(work)

    def put(self, db: Connection, name: str, rows: Sequence[msgspec.Struct]) -> None:
        """Insert rows, some at a time."""
        for first in range(0, len(rows), PUT_AT_ONCE):
            given = msgspec.json.encode(rows[first : first + PUT_AT_ONCE]).decode()
            run(db, self.sql[name], (given,))

    def restart(self, shards: Sequence[int]) -> None:
        """Build the rows of these shards again."""
        self.writing(lambda db: run(db, self.sql["restart"], begun(shards)))

    def sweep(self, mark: Mark) -> int:
        """Take away what was left, some at a time."""
        given, count = (mark.shard, mark.generation, SWEPT_AT_ONCE), 0
        for name in ("sweep_steps", "sweep_instances"):
            gone = SWEPT_AT_ONCE
            while gone == SWEPT_AT_ONCE:
                gone = len(self.writing(partial(run, sql=self.sql[name], values=given)))
                count += gone
        self.writing(lambda db: run(db, self.sql["swept"], (mark.shard, mark.generation)))
        return count

    def rows(self, refs: Sequence[Ref]) -> dict[Ref, Rows]:
        """The rows of these instances."""

        def work(db: Connection) -> dict[Ref, Rows]:
            with one_moment(db, self.cell_sql["plainly"]):
                found = map(instance_of, run(db, self.sql["instances"], (ints(refs),)))
                rows: dict[Ref, Rows] = {row.ref: (row, []) for row in found}
                for step in map(step_of, run(db, self.sql["steps"], (ints(refs),))):
                    if step.ref in rows:
                        rows[step.ref][1].append(step)
            return rows

        return self.link.read("the read models", work)

    def stray(self) -> str | None:
        """A row that should not be there."""
        for name in ("stray_instance", "stray_step"):
            for (words,) in self.all(name):
                return str(words)
        return None

    def count(self) -> tuple[int, int]:
        """How many rows there are."""
        [(instances, steps)] = self.all("count")
        return instances, steps

    def close(self) -> None:
        """Hang up."""
        self.link.close(lambda _: None)

    def all(self, name: str, *values: Any) -> list[Row]:
        """Every row of one statement."""
        return self.link.read(f"statement {name}", lambda db: run(db, self.sql[name], values))

    def by_index(self, sql: str, *values: Any) -> list[Row]:
        """The same of a statement that must follow an index, however new it is."""

        def work(db: Connection) -> list[Row]:
            with one_moment(db, self.cell_sql["plainly"]):
                return run(db, sql, values)

        return self.link.read("the read models", work)

    def writing(self, work: Callable[[Connection], T]) -> T:
        """A transaction whose answer does not wait for the disk."""

        def whole(db: Connection) -> T:
            with db.transaction():
                run(db, self.sql["lightly"])
                run(db, self.cell_sql["plainly"])
                return work(db)

        return self.link.write("writing the read models", whole)


def begun(shards: Sequence[int]) -> tuple[Any, Any]:
    """Shards, and what their first frames follow on."""
    return ints(list(shards)), blobs([genesis(shard).hash for shard in shards])
