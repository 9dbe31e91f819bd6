"""Read models in a SQLite store: tables and views in the same file, on a connection of their own.

Transactions are short, and nothing waits for a flush: rows and watermark are lost together, and the
journal has both. The engine's own commits are flushed as ever.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw
import msgspec

from pawlflow.store.check import genesis
from pawlflow.store.port import SHARDS, Head, Ref, StoreError, position
from pawlflow.store.rows import FOLDER, Row, head_of, statements
from pawlflow.store.sqlite_errors import odd, told
from pawlflow.store.sqlite_rows import SQL
from pawlflow.store.sqlite_schema import opened
from pawlflow.store.views import InstanceRow, Mark, Page, Rows, Standing, StepRow
from pawlflow.store.views_rows import instance_of, missing, page_of, standing_of, step_of

FORMAT: Final = 1
MADE: Final = (FOLDER / "sqlite_views_1.sql").read_text()
VIEWS: Final = statements((FOLDER / "sqlite_views.sql").read_text())
SWEPT_AT_ONCE: Final = 1_000  # rows


class SqliteReadModels:
    """The read models of a file; see `views.ReadModels` for what each method promises."""

    exclusive = True

    def __init__(self, path: Path, *, make: bool = True, busy_ms: int = 10_000) -> None:
        """Open the file; make tables and views if they are missing, or of another format."""
        self.path = path.absolute()
        self.db = opened(self.path, busy_ms=busy_ms)
        try:
            with self.troubled("opening the read models"):
                self.db.pragma("synchronous", "normal")
            if not self.is_made():
                if not make:
                    raise missing(str(self.path))
                with self.writing("making the read models"):
                    self.make()
        except StoreError:
            self.db.close()
            raise

    def is_made(self) -> bool:
        """Are they there, in the format we know?"""
        with self.troubled("reading the read models"):
            if not self.db.execute(VIEWS["made"]).get:
                return False
            return bool(self.db.execute(VIEWS["format"]).get == FORMAT)

    def make(self) -> None:
        """Make them anew, unless somebody was faster."""
        if self.is_made():
            return
        self.db.execute(VIEWS["drop"])
        self.db.execute(MADE)
        rows = [(shard, genesis(shard).hash, FORMAT) for shard in range(SHARDS)]
        self.db.executemany(VIEWS["mark_add"], rows)

    def standings(self) -> dict[int, Standing]:
        """Every shard."""
        return {row[0]: standing_of(row) for row in self.all("standings")}

    def page(self, shard: int, after: int, entries: int) -> Page | None:
        """Some frames of a shard."""
        rows = self.all("page", position(shard, after + 1), entries)
        with self.troubled("tables frame and entry"):
            return page_of(rows) if rows else None

    def cells(self, refs: Sequence[Ref]) -> dict[Ref, Head]:
        """The cells with these numbers."""
        with self.troubled("reading table cell"):
            asked = [(ref,) for ref in refs]
            heads = [head_of(row) for row in self.db.executemany(SQL["head_at"], asked)]
        return {head.ref: head for head in heads}

    def turns(self, shard: int, generation: int, refs: Sequence[Ref]) -> dict[Ref, int]:
        """As of which turn these are."""
        with self.troubled("reading table read_instance"):
            asked = [(ref, generation) for ref in refs]
            return dict(self.db.executemany(VIEWS["turns"], asked))

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
        with self.writing("writing the read models"):
            if not self.db.execute(VIEWS["mark_move"], moved).fetchall():
                return False
            self.db.executemany(VIEWS["instance_put"], map(msgspec.structs.astuple, instances))
            self.db.executemany(VIEWS["step_put"], map(msgspec.structs.astuple, steps))
            for name in ("gone_steps", "gone_instance"):
                self.db.executemany(VIEWS[name], [(ref,) for ref in gone])
        return True

    def restart(self, shards: Sequence[int]) -> None:
        """Build the rows of these shards again."""
        with self.writing("writing the read models"):
            begun = [(shard, genesis(shard).hash) for shard in shards]
            self.db.executemany(VIEWS["restart"], begun)

    def sweep(self, mark: Mark) -> int:
        """Take away what was left, some at a time."""
        given, count = (mark.shard, mark.generation, SWEPT_AT_ONCE), 0
        for name in ("sweep_steps", "sweep_instances"):
            while True:
                with self.writing("writing the read models"):
                    gone = len(self.db.execute(VIEWS[name], given).fetchall())
                count += gone
                if gone < SWEPT_AT_ONCE:
                    break
        with self.writing("writing the read models"):
            self.db.execute(VIEWS["swept"], (mark.shard, mark.generation))
        return count

    def rows(self, refs: Sequence[Ref]) -> dict[Ref, Rows]:
        """The rows of these instances."""
        found: dict[Ref, Rows] = {}
        with self.troubled("reading the read models"):
            self.db.execute("BEGIN")
            try:
                for ref in refs:
                    instance = self.db.execute(VIEWS["instance"], (ref,)).fetchone()
                    if instance is not None:
                        steps = [step_of(row) for row in self.db.execute(VIEWS["steps"], (ref,))]
                        found[ref] = (instance_of(instance), steps)
            finally:
                self.db.execute("ROLLBACK")
        return found

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
        """Close the file."""
        self.db.close()

    def all(self, name: str, *values: int | str) -> list[Row]:
        """Every row of one statement."""
        with self.troubled(f"reading {name}"):
            return self.db.execute(VIEWS[name], values).fetchall()

    @contextmanager
    def troubled(self, place: str) -> Iterator[None]:
        """Errors of SQLite in the words of the port."""
        try:
            yield
        except apsw.Error as trouble:
            raise told(trouble, self.path, place) from trouble
        except (LookupError, TypeError, ValueError) as trouble:
            raise odd(self.path, place, trouble) from trouble

    @contextmanager
    def writing(self, place: str) -> Iterator[None]:
        """A short transaction."""
        with self.troubled(place):
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.db.execute("COMMIT")
            finally:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
