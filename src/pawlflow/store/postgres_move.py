"""A PostgreSQL store as one side of a move."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

import psycopg

from pawlflow.model.codec import decode
from pawlflow.store import postgres_errors as errors
from pawlflow.store.check import genesis
from pawlflow.store.marks import IDENTITY, MARK, ORIGIN, Mark, Origin, kept, mark_from, origin_from
from pawlflow.store.moves import BYTES_MAX, HEAVY, ROWS_MAX, Row, Side, checked, fenced
from pawlflow.store.port import SHARDS, FrameWrite, ShardHead
from pawlflow.store.postgres_find import search_key
from pawlflow.store.postgres_journal import frames_of, heads_from
from pawlflow.store.postgres_link import connect, run
from pawlflow.store.postgres_rows import (
    blobs,
    heard,
    in_schema,
    ints,
    ints_or_null,
    said,
    sql_of,
    texts,
)
from pawlflow.store.postgres_schema import bring_up
from pawlflow.store.postgres_url import where_of
from pawlflow.store.postgres_write import entry_values, frame_values
from pawlflow.store.rows import FOLDER, statements

Packed = Callable[[Sequence[Any]], Any]
EVERY: Final = range(SHARDS)
FRAMES_PAGE: Final = 16  # of a shard, read together; there may be pages of all shards at a time
GONE: Final = ("08", "57P")  # what states of a lost server begin with


def words(values: Sequence[str | None]) -> bytes:
    """What people say, as it is kept here."""
    return blobs([said(value) for value in values])


# How the columns of a part are packed.
COLUMNS: Final[dict[str, tuple[Packed, ...]]] = {
    "definitions": (blobs, blobs),
    "published": (texts, texts, ints, blobs, ints),
    "blobs": (blobs, blobs),
    "mentions": (ints, blobs),
    "cells": (
        *(ints, texts, texts, texts, ints, ints, blobs, blobs, ints, texts, texts, ints),
        *(ints_or_null, ints_or_null, ints_or_null, ints, ints),
    ),
    "reviews": (
        *(ints, texts, texts, texts, texts, texts, words),
        *(ints, ints_or_null, blobs, words),
    ),
    "snapshots": (ints, ints, blobs, blobs, blobs),
    "expiries": (ints, ints),
    "removed": (texts, texts, ints, ints),
    "mail": (ints, ints, texts, texts, texts, blobs, blobs, words),
    "refusals": (ints, ints, words, words),
    "dispositions": (texts, ints, ints),
}


@lru_cache(8)
def move_sql(schema: str) -> dict[str, str]:
    """What a move asks, for the tables of a schema."""
    found = statements((FOLDER / "postgres_move.sql").read_text())
    return sql_of(schema) | {
        name: in_schema(sql.rstrip(";"), schema) for name, sql in found.items()
    }


class PostgresSide:
    """See `moves.Side` for what each method promises."""

    kind = "postgres"
    keeps_numbers = True

    def __init__(self, url: str) -> None:
        """Connect, make the schema if it is missing."""
        self._where = where_of(url)
        self.told = self._where.told
        self._sql = move_sql(self._where.schema)
        with self._troubled("connecting"):
            self._db = connect(self._where)
        try:
            bring_up(self._db, self._where)
        except BaseException:
            self._db.close()
            raise

    def same(self, other: Side) -> bool:
        """Have both one name? A store that was moved before can be told from another for sure."""
        if not isinstance(other, PostgresSide):
            return False
        mine = self.fact(IDENTITY)
        return self.told == other.told or (mine is not None and mine == other.fact(IDENTITY))

    # Marks

    def hold(self) -> None:
        """Is it free? Whoever comes later is fenced when the mark is put."""
        with self._troubled("looking for its owner"):
            self._refuse_owned()

    def _refuse_owned(self) -> None:
        found = run(self._db, self._sql["node_alive"])
        if found:
            raise errors.owned(self._where, found[0][1])

    def identity(self, *, make: bool = True) -> str:
        """What this store is known by."""
        if not make:
            return self.fact(IDENTITY) or ""
        with self._writing("naming it"):
            found = self.fact(IDENTITY)
            if found is None:
                found = secrets.token_hex(8)
                self._run("meta_put", IDENTITY, found)
            return found

    def mark(self) -> Mark | None:
        """What it says about a move."""
        return mark_from(self.fact(MARK))

    def origin(self) -> Origin | None:
        """Where it was moved from."""
        return origin_from(self.fact(ORIGIN))

    def put_mark(self, mark: Mark | None, was: Mark | None) -> None:
        """Fence whoever owned it, and let a trigger refuse mail, whoever brings it."""
        with self._writing("marking it"):
            self._run("shards_held", ints(EVERY))
            if self.mark() != was:
                raise fenced(self.told)
            if mark is not None:
                self._refuse_owned()
                self._run("shards_fence")
            self._guard(mark)

    def _guard(self, mark: Mark | None) -> None:
        self._run("guard_drop")
        if mark is None:
            self._run("guard_forget")
            self._run("meta_drop", MARK)
            return
        self._run("meta_put", MARK, kept(mark))
        self._run("guard_function")
        self._run("guard_put")

    def fact(self, name: str) -> str | None:
        """What the store says about itself."""
        found: dict[str, str] = dict(self._rows("meta"))
        return found.get(name)

    # Reading

    def sizes(self) -> dict[str, int]:
        """How much there is."""
        with self._troubled("reading its tables"):
            cursor = self._db.execute(self._sql["sizes"].encode(), binary=True)
            names = [each.name for each in cursor.description or ()]
            return dict(zip(names, cursor.fetchall()[0], strict=True))

    def shards(self) -> list[ShardHead]:
        """Where every shard stands."""
        return heads_from(self._rows("shards", ints(EVERY)), EVERY, self._where)

    def mail_last(self) -> int:
        """The highest number that mail was ever given."""
        return int(self._rows("mail_last")[0][0])

    def search_count(self) -> int:
        """Ways to find instances."""
        return int(self._rows("search_count")[0][0])

    def turns_loose(self) -> int:
        """Turns that do not lead to the one before them."""
        return int(self._rows("turns_loose")[0][0])

    def frames(self, shard: int, after: int) -> Iterator[FrameWrite]:
        """The frames of a shard from behind a sequence on."""
        [head] = heads_from(self._rows("shards", ints([shard])), [shard], self._where)
        return frames_of(self._paged, self._where, head, after, FRAMES_PAGE)

    def page(self, part: str, after: Row) -> list[Row]:
        """The next rows by key; of large ones as many as may be held."""
        limit = ROWS_MAX
        if part in HEAVY:
            total, limit = 0, 0
            for (size,) in self._paged(f"{part}_heavy", *after, ROWS_MAX):
                total, limit = total + size, limit + 1
                if total > BYTES_MAX:
                    break
        if not limit:
            return []
        return [plain(part, row) for row in self._paged(f"{part}_page", *after, limit)]

    # Writing

    def write_frames(self, frames: Sequence[FrameWrite], mark: Mark) -> None:
        """Add frames and entries as an owner would; heads and dispositions come later."""
        entries, ends = entry_values(frames)
        with self._filling("copying into table entry", mark):
            self._run("frames_write", *frame_values(frames))
            self._run("entries_write", *entries[:7])
            self._run("ends_write", ints(list(ends)), ints(list(ends.values())))

    def write_page(self, part: str, rows: Sequence[Row], mark: Mark) -> None:
        """Add rows, all in one statement."""
        with self._filling(f"copying {part}", mark):
            if part == "attributes":
                self._write_attributes(rows)
            elif rows:
                columns = zip(*rows, strict=True)
                packed = [
                    pack(list(each)) for pack, each in zip(COLUMNS[part], columns, strict=True)
                ]
                self._run(f"{part}_write", *packed)

    def _write_attributes(self, rows: Sequence[Row]) -> None:
        refs, data = ints([row[0] for row in rows]), blobs([row[3] for row in rows])
        self._run("attributes_add", refs, data)
        ways = [
            (tenant, name, *search_key(value), at, ref)
            for ref, tenant, at, values in rows
            for name, value in decode(values).items()
        ]
        if ways:
            tenants, names, kinds, numbers, starts, at, found = zip(*ways, strict=True)
            texts_ = texts(tenants), texts(names), ints(kinds), texts(numbers), blobs(starts)
            self._run("search_add", *texts_, ints(at), ints(found))

    def settle(self, heads: Sequence[ShardHead], mail_last: int, mark: Mark) -> None:
        """Let shards stand where others do."""
        with self._filling("settling table shard", mark):
            self._run(
                "shards_settle",
                ints([head.shard for head in heads]),
                ints([head.epoch for head in heads]),
                ints([head.seq for head in heads]),
                blobs([head.hash for head in heads]),
                blobs([head.batch for head in heads]),
                ints([head.now for head in heads]),
            )
            self._run("pulses_drop")
            self._run("mail_put_last", mail_last)
            self._run("numbers_put")

    def release(self, mark: Mark, origin: Origin) -> None:
        """Let it be used."""
        with self._filling("letting it go", mark):
            self._run("meta_put", ORIGIN, kept(origin))
            self._guard(None)

    def clear(self, mark: Mark | None) -> None:
        """Take away all that was copied."""
        with self._writing("emptying it"):
            self._run("tables_clear")
            hashes = blobs([genesis(shard).hash for shard in EVERY])
            self._run("shards_clear", ints(EVERY), hashes)
            self._guard(mark)

    def close(self) -> None:
        """Hang up."""
        self._db.close()

    def _run(self, name: str, *values: Any) -> list[Row]:
        return run(self._db, self._sql[name], values)

    def _rows(self, name: str, *values: Any) -> list[Row]:
        with self._troubled(f"asking {name}"):
            return self._run(name, *values)

    def _paged(self, name: str, *values: Any) -> list[Row]:
        """The same by an index, however little is known of tables that are this new."""
        with self._troubled(f"asking {name}"), self._db.transaction():
            self._run("plainly")
            return self._run(name, *values)

    @contextmanager
    def _filling(self, place: str, mark: Mark) -> Iterator[None]:
        """A transaction of who fills the store now; with it goes how far the copy is."""
        with self._writing(place):
            held = mark_from(next(iter(self._run("meta_held", MARK)), (None,))[0])
            if held is None or held.run != mark.run:
                raise fenced(self.told)
            self._run("meta_put", MARK, kept(mark))
            yield

    @contextmanager
    def _writing(self, place: str) -> Iterator[None]:
        """A transaction: all of it durable at the end, or nothing of it."""
        with self._troubled(place), self._db.transaction():
            self._db.execute(b"SET LOCAL synchronous_commit = on")
            self._run("mover")
            self._run("plainly")
            yield

    @contextmanager
    def _troubled(self, place: str) -> Iterator[None]:
        """Errors of the server in our words."""
        try:
            yield
        except psycopg.Error as trouble:
            if trouble.sqlstate is None or trouble.sqlstate.startswith(GONE):
                raise errors.unreachable(trouble, self._where) from trouble
            raise errors.told(trouble, self._where, place) from trouble


def plain(part: str, row: Row) -> Row:
    """A row as every store has it."""
    if part == "cells":
        return (*checked(row)[:16], int(row[16]))
    if part == "reviews":
        return (*row[:6], heard(row[6]), *row[7:10], heard(row[10]))
    if part == "mail":
        return (*row[:7], heard(row[7]))
    if part == "refusals":
        return (*row[:2], heard(row[2]), heard(row[3]))
    return row
