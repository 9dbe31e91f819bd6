"""Statements of the PostgreSQL store by name, and arrays in the form the server takes them in.

A flush is thousands of values in some forty arrays. They are packed here, in one go each: to hand
the driver lists took three times as long.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, repeat
from struct import pack
from typing import Any, ClassVar, Final

from psycopg import postgres as types
from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper
from psycopg.pq import Format

from pawlflow.store.port import Address, Mail, Review
from pawlflow.store.rows import FOLDER, Row, mail_of, review_of, statements

_SCHEMA: Final = re.compile(r"\bpawl\.")
_NUMBER: Final = re.compile(r"\$(\d+)")
_NULL: Final = b"\xff\xff\xff\xff"
INT8, BYTEA, TEXT = (types.types[name] for name in ("int8", "bytea", "text"))


@lru_cache(8)
def sql_of(schema: str) -> dict[str, str]:
    """Every statement, for the tables of a schema."""
    found = statements((FOLDER / "postgres.sql").read_text())
    return {name: in_schema(sql.rstrip(";"), schema) for name, sql in found.items()}


def in_schema(sql: str, schema: str) -> str:
    """A text about the tables of `pawl`, about those of another schema."""
    return _SCHEMA.sub(f'"{schema}".', sql)


@lru_cache(256)
def shifted(sql: str, by: int) -> str:
    """A statement that becomes part of another: its values come after so many."""
    return _NUMBER.sub(lambda found: f"${int(found[1]) + by}", sql)


class Ints(bytes):
    """An array of int8."""

    oid: ClassVar = INT8.array_oid


class Blobs(bytes):
    """An array of bytea."""

    oid: ClassVar = BYTEA.array_oid


class Texts(bytes):
    """An array of text."""

    oid: ClassVar = TEXT.array_oid


def ints(values: Sequence[int]) -> Ints:
    """Integers, none of them null."""
    count = len(values)
    flat = chain.from_iterable(zip(repeat(8, count), values, strict=True))
    return Ints(_head(count, INT8.oid, 0) + pack(">" + "iq" * count, *flat))


def ints_or_null(values: Sequence[int | None]) -> Ints:
    """Integers, some of them null."""
    if None not in values:
        return ints(values)  # type: ignore[arg-type]  # none of them is
    parts = [_NULL if value is None else pack(">iq", 8, value) for value in values]
    return Ints(_head(len(parts), INT8.oid, 1) + b"".join(parts))


def blobs(values: Sequence[bytes | None]) -> Blobs:
    """Bytes, some of them null."""
    return Blobs(_head(len(values), BYTEA.oid, 1) + _joined(values))


def texts(values: Iterable[str]) -> Texts:
    """Texts, none of them null."""
    data = [value.encode() for value in values]
    return Texts(_head(len(data), TEXT.oid, 0) + _joined(data))


def _joined(values: Sequence[bytes | None]) -> bytes:
    parts: list[bytes] = []
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            parts.append(len(value).to_bytes(4, "big"))
            parts.append(value)
    return b"".join(parts)


def _head(count: int, oid: int, nulls: int) -> bytes:
    """The beginning of an array: dimensions, nulls, what it holds, how many, from which index."""
    return pack(">iiIii", 1, nulls, oid, count, 1) if count else pack(">iiI", 0, 0, oid)


class _Packed(Dumper):
    """What was packed goes as it is."""

    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        """Nothing is left to do."""
        return bytes(obj)


class _IntsDumper(_Packed):
    oid = Ints.oid


class _BlobsDumper(_Packed):
    oid = Blobs.oid


class _TextsDumper(_Packed):
    oid = Texts.oid


def know_arrays(context: AdaptContext) -> None:
    """Let a connection take them."""
    adapters = context.adapters
    assert adapters is not None
    adapters.register_dumper(Ints, _IntsDumper)
    adapters.register_dumper(Blobs, _BlobsDumper)
    adapters.register_dumper(Texts, _TextsDumper)


def may_be(name: str) -> bool:
    """Can there be something of this name? PostgreSQL keeps no text with a nul in it."""
    if name.isascii():
        return "\0" not in name
    return "\0" not in name and not any("\ud800" <= char <= "\udfff" for char in name)


def asked(cells: Iterable[Address]) -> tuple[Texts, Texts]:
    """The addresses of cells that there may be, as statements take them."""
    found = [(tenant, key) for tenant, key in cells if may_be(tenant) and may_be(key)]
    return texts([tenant for tenant, _ in found]), texts([key for _, key in found])


def said(words: str | None) -> bytes | None:
    """What people say, as it is kept: a text may not hold every character, bytes may."""
    return None if words is None else words.encode()


def heard(words: bytes | None) -> str | None:
    """The same, read."""
    return None if words is None else words.decode()


def review_from(row: Row) -> Review:
    """A review from its row."""
    return review_of((*row[:6], heard(row[6]), *row[7:10], heard(row[10])))


def mail_from(row: Row) -> Mail:
    """Mail from its row."""
    return mail_of((*row[:7], heard(row[7])))
