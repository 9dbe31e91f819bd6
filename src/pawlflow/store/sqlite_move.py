"""A SQLite store as one side of a move."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import apsw

from pawlflow.model.codec import decode
from pawlflow.store.check import genesis
from pawlflow.store.find import key_of
from pawlflow.store.marks import IDENTITY, MARK, ORIGIN, Mark, Origin, kept, mark_from, origin_from
from pawlflow.store.moves import BYTES_MAX, HEAVY, ROWS_MAX, Row, Side, checked, fenced
from pawlflow.store.port import SHARDS, FrameWrite, ShardHead
from pawlflow.store.rows import FOLDER, statements
from pawlflow.store.sqlite_errors import told, unknown
from pawlflow.store.sqlite_owner import Ownership
from pawlflow.store.sqlite_rows import SQL
from pawlflow.store.sqlite_schema import opened
from pawlflow.store.sqlite_write import write_journal

BUSY_MS: Final = 5_000
MOVE_SQL: Final = statements((FOLDER / "sqlite_move.sql").read_text())


class Journals(Protocol):
    """A handle on the store that reads its journals."""

    def heads(self, shards: Sequence[int]) -> list[ShardHead]:
        """Where these shards stand."""
        ...

    def frames(self, shard: int, after: int = 0) -> Iterator[FrameWrite]:
        """The frames of a shard from behind a sequence on."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


class SqliteSide:
    """See `moves.Side` for what each method promises."""

    kind = "sqlite"
    keeps_numbers = False  # an entry has the number of its place in the file

    def __init__(self, store: Journals, path: Path) -> None:
        """Open the file beside a handle that reads its journals."""
        self._store = store
        self.path = path.absolute()
        self.told = f"sqlite:///{self.path}"
        self._lock: Ownership | None = None
        self._db = opened(self.path, busy_ms=BUSY_MS)
        self._db.pragma("temp_store", "file")

    def same(self, other: Side) -> bool:
        """Are both one file?"""
        return isinstance(other, SqliteSide) and self.path.samefile(other.path)

    # Marks

    def hold(self) -> None:
        """Take the lock of its owner."""
        self._lock = self._lock or Ownership(self.path)

    def identity(self, *, make: bool = True) -> str:
        """What this store is known by."""
        if not make:
            with self._reading("table meta"):
                return self._meta(IDENTITY) or ""
        with self._writing("naming it"):
            found = self._meta(IDENTITY)
            if found is None:
                found = secrets.token_hex(8)
                self._db.execute(SQL["meta_put"], (IDENTITY, found))
            return found

    def mark(self) -> Mark | None:
        """What it says about a move."""
        with self._reading("table meta"):
            return mark_from(self._meta(MARK))

    def origin(self) -> Origin | None:
        """Where it was moved from."""
        with self._reading("table meta"):
            return origin_from(self._meta(ORIGIN))

    def put_mark(self, mark: Mark | None, was: Mark | None) -> None:
        """Whoever claims or posts looks at it in the same transaction."""
        with self._writing("marking it"):
            if mark_from(self._meta(MARK)) != was:
                raise fenced(self.told)
            self._say(mark)

    def _say(self, mark: Mark | None) -> None:
        if mark is None:
            self._db.execute(MOVE_SQL["meta_drop"], (MARK,))
        else:
            self._db.execute(SQL["meta_put"], (MARK, kept(mark)))

    def _meta(self, name: str) -> str | None:
        value: str | None = self._db.execute(SQL["meta"], (name,)).get
        return value

    # Reading

    def sizes(self) -> dict[str, int]:
        """How much there is."""
        with self._reading("its tables"):
            cursor = self._db.execute(MOVE_SQL["sizes"])
            names = [each[0] for each in cursor.description]
            counts: Row = cursor.fetchall()[0]
            return dict(zip(names, counts, strict=True))

    def shards(self) -> list[ShardHead]:
        """Where every shard stands."""
        return self._store.heads(range(SHARDS))

    def mail_last(self) -> int:
        """The highest number that mail was ever given."""
        with self._reading("table mailbox"):
            return self._db.execute(SQL["mail_last"]).get or 0

    def search_count(self) -> int:
        """Ways to find instances."""
        with self._reading("table search"):
            count: int = self._db.execute(MOVE_SQL["search_count"]).get
            return count

    def turns_loose(self) -> int:
        """Turns that do not lead to the one before them."""
        with self._reading("table entry"):
            count: int = self._db.execute(MOVE_SQL["turns_loose"]).get
            return count

    def frames(self, shard: int, after: int) -> Iterator[FrameWrite]:
        """The frames of a shard from behind a sequence on."""
        return self._store.frames(shard, after)

    def page(self, part: str, after: Row) -> list[Row]:
        """The next rows by key; a statement gives them one by one, so what is too much is left."""
        heavy, size = HEAVY.get(part, ()), 0
        rows: list[Row] = []
        with self._reading(f"a page of {part}"):
            for row in self._db.execute(MOVE_SQL[f"{part}_page"], (*after, ROWS_MAX)):
                rows.append(checked(row) if part == "cells" else row)
                size += sum(len(row[column]) for column in heavy)
                if size > BYTES_MAX:
                    break
        return rows

    # Writing

    def write_frames(self, frames: Sequence[FrameWrite], mark: Mark) -> None:
        """Add frames and entries as an owner would; heads come later."""
        with self._writing("copying into table entry"):
            ends, _ = write_journal(self._db, frames)
            pulses = [(ref, at, None, 0) for ref, at in ends.items()]
            self._db.executemany(SQL["pulse_put"], pulses)
            self._say(mark)

    def write_page(self, part: str, rows: Sequence[Row], mark: Mark) -> None:
        """Add rows; a disposition is there with its entry."""
        with self._writing(f"copying {part}"):
            if part != "dispositions":
                self._db.executemany(MOVE_SQL[f"{part}_write"], rows)
            if part == "cells":
                self._db.executemany(MOVE_SQL["pulses_write"], [row[:16] for row in rows])
            if part == "attributes":
                self._db.executemany(SQL["search_add"], search_rows(rows))
            self._say(mark)

    def settle(self, heads: Sequence[ShardHead], mail_last: int, mark: Mark) -> None:
        """Let shards stand where others do."""
        with self._writing("settling table shard"):
            rows = [(h.epoch, h.seq, h.hash, h.batch, h.now, h.shard) for h in heads]
            self._db.executemany(MOVE_SQL["shards_settle"], rows)
            self._db.execute(MOVE_SQL["pulses_drop"])
            self._db.execute(MOVE_SQL["mail_drop_last"])
            self._db.execute(MOVE_SQL["mail_put_last"], (mail_last,))
            self._say(mark)

    def release(self, mark: Mark, origin: Origin) -> None:
        """Let it be used."""
        with self._writing("letting it go"):
            self._say(None)
            self._db.execute(SQL["meta_put"], (ORIGIN, kept(origin)))

    def clear(self, mark: Mark | None) -> None:
        """Take away all that was copied."""
        with self._writing("emptying it"):
            self._db.execute(MOVE_SQL["tables_clear"])
            self._db.execute(MOVE_SQL["mail_drop_last"])
            empty = [(genesis(shard).hash, shard) for shard in range(SHARDS)]
            self._db.executemany(MOVE_SQL["shards_clear"], empty)
            self._say(mark)

    def close(self) -> None:
        """Close the file, and let the next owner in."""
        self._store.close()
        self._db.close()
        if self._lock is not None:
            self._lock.release()

    @contextmanager
    def _reading(self, place: str) -> Iterator[None]:
        try:
            yield
        except apsw.Error as trouble:
            raise told(trouble, self.path, f"reading {place}") from trouble

    @contextmanager
    def _writing(self, place: str) -> Iterator[None]:
        """A transaction: all of it durable at the end, or nothing of it."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except apsw.Error as trouble:
            raise told(trouble, self.path, place) from trouble
        try:
            self._db.execute("COMMIT")
        except apsw.Error as trouble:
            raise unknown(trouble, self.path) from trouble


def search_rows(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """The ways that lead to instances by their attributes."""
    return [
        (tenant, name, *key_of(value), at, ref)
        for ref, tenant, at, data in rows
        for name, value in decode(data).items()
    ]
