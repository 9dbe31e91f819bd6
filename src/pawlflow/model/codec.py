"""Canonical CBOR: the one byte form of a value, and the hashes over it.

The form is RFC 8949, 4.2.1 (core deterministic encoding) without tags: text keys in the order of
their bytes, shortest heads and floats, definite lengths, no NaN or infinity, 64-bit integers. It
can never change once journals exist (docs/journal.md).

cbor2's encoder costs about three times as much as this writer, because it sorts and encodes the
keys of every map anew. Here the keys of a map, in the order they came, are looked up as one shape.
"""

from bisect import bisect_left
from collections.abc import Callable
from hashlib import sha256
from math import isfinite
from struct import Struct
from typing import Any, Final, Never

import cbor2

BYTES_MAX: Final = 16 * 1024 * 1024  # of one document: the largest payload
DEPTH_MAX: Final = 64  # containers inside each other; keeps recursion far from Python's limit
INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**64 - 1
SHAPES_MAX: Final = 1024  # remembered map shapes; the table starts afresh when it is full
SHAPE_KEYS_MAX: Final = 16  # wider maps are data keyed by data: they seldom come twice
SHAPE_BYTES_MAX: Final = 512  # of one shape's keys; so the whole table stays below 8 MiB
SELF_DESCRIBED: Final = b"\xd9\xd9\xf7"  # tag 55799 (RFC 8949, 3.4.6)

Put = Callable[[bytes], None]
Writer = Callable[[Any, Put, int], None]
Shape = tuple[bytes, tuple[tuple[str, bytes], ...]]


class CodecError(Exception):
    """A value without a canonical form, or bytes that are not one. `code` is stable."""

    def __init__(self, code: str, detail: str, path: str = "") -> None:
        super().__init__(f"{detail}, at {path}" if path else detail)
        self.code = code
        self.detail = detail
        self.path = path

    def inside(self, step: object) -> "CodecError":
        """Return the same trouble as seen from the container that holds it under `step`."""
        return CodecError(self.code, self.detail, f"[{step!r}]{self.path}")


def encode(value: object) -> bytes:
    """Return the canonical bytes of a value; raises CodecError if it has none."""
    parts: list[bytes] = []
    try:
        WRITERS[type(value)](value, parts.append, 0)
    except KeyError:
        raise _no_form(value) from None
    return b"".join(parts)


def decode(data: bytes, bytes_max: int = BYTES_MAX) -> Any:
    """Return the value of canonical bytes. Raises CodecError, and nothing else, for any others."""
    if len(data) > bytes_max:
        raise CodecError("codec.too_large", f"{len(data)} bytes; at most {bytes_max} are read")
    try:
        value = cbor2.loads(data, max_depth=DEPTH_MAX, semantic_decoders=_NO_TAGS)
        # cbor2 forgives long heads, key order, duplicate keys and trailing bytes. A value has one
        # canonical form, so writing it again finds whatever was forgiven.
        canonical = encode(value)
    except (CodecError, cbor2.CBORError, MemoryError, RecursionError) as trouble:
        raise _not_canonical(str(trouble.__cause__ or trouble)) from trouble
    if canonical != data:
        at = _first_difference(canonical, data)
        raise _not_canonical(f"byte {at} would be written otherwise")
    return value


def decode_trusted(data: bytes) -> Any:
    """Return the value of bytes that `encode` made here, or that `decode` has already accepted.

    Four times faster than `decode`, and safe only behind it: it forgives and follows all that
    `decode` refuses.
    """
    return cbor2.loads(data)


def hash_of(domain: str, *parts: object) -> bytes:
    """Return the sha256 of `[domain, part...]`; the domain keeps the kinds of hashes apart."""
    return sha256(encode((domain, *parts))).digest()


def self_described(value: object) -> bytes:
    """Return a document as AgentOS stores and hashes it: our bytes behind the mark of CBOR."""
    return SELF_DESCRIBED + encode(value)


def head(major: int, argument: int) -> bytes:
    """Return the shortest head of an item: its major type with a length, or with its number."""
    if argument < 1 << 8:
        return _SHORT[major << 8 | argument]
    major <<= 5
    if argument < 1 << 16:
        return _PACK_16(major | 25, argument)
    if argument < 1 << 32:
        return _PACK_32(major | 26, argument)
    return _PACK_64(major | 27, argument)


def _write_null(_value: None, put: Put, _depth: int) -> None:
    put(b"\xf6")


def _write_bool(value: bool, put: Put, _depth: int) -> None:  # noqa: FBT001
    put(b"\xf5" if value else b"\xf4")


def _write_int(value: int, put: Put, _depth: int) -> None:
    put(INTS[value] if -256 <= value < 1024 else integer(value))


def integer(value: int) -> bytes:
    """Return an integer's bytes, of any permitted size; `INTS` holds those of the small ones."""
    if 0 <= value <= INT_MAX:
        return head(0, value)
    if INT_MIN <= value < 0:
        return head(1, -1 - value)
    raise CodecError("codec.range", f"an integer of {value.bit_length()} bits; 64 are kept")


def _write_float(value: float, put: Put, _depth: int) -> None:
    if not isfinite(value):
        raise CodecError("codec.range", f"float {value}; only finite numbers are kept")
    if abs(value) > _SINGLE_MAX or _SINGLE.unpack(single := _SINGLE.pack(0xFA, value))[1] != value:
        put(_DOUBLE.pack(0xFB, value))
    elif abs(value) > _HALF_MAX or _HALF.unpack(half := _HALF.pack(0xF9, value))[1] != value:
        put(single)
    else:
        put(half)


def _write_text(value: str, put: Put, _depth: int) -> None:
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        raise CodecError("codec.text", "text with a lone surrogate has no UTF-8") from None
    size = len(raw)
    put(TEXT_HEADS[size] if size < 256 else head(3, size))
    put(raw)


def _write_bytes(value: bytes, put: Put, _depth: int) -> None:
    size = len(value)
    put(BYTES_HEADS[size] if size < 256 else head(2, size))
    put(value)


def _write_array(value: list[Any] | tuple[Any, ...], put: Put, depth: int) -> None:
    if depth == DEPTH_MAX:
        raise _too_deep()
    size = len(value)
    put(ARRAY_HEADS[size] if size < 256 else head(4, size))
    depth += 1
    item: object = None
    try:
        for item in value:
            WRITERS[type(item)](item, put, depth)
    except (KeyError, CodecError) as trouble:
        at = next(at for at, each in enumerate(value) if each is item)
        raise _located(trouble, item, at) from None


def _write_map(value: dict[str, Any], put: Put, depth: int) -> None:
    if depth == DEPTH_MAX:
        raise _too_deep()
    names = tuple(value)
    map_head, keys = _SHAPES.get(names) or _shape(names)
    put(map_head)
    depth += 1
    name, item = "", None
    try:
        for name, key in keys:
            put(key)
            item = value[name]
            WRITERS[type(item)](item, put, depth)
    except (KeyError, CodecError) as trouble:
        raise _located(trouble, item, name) from None


def _shape(names: tuple[str, ...]) -> Shape:
    """Return the map head and the keys in canonical order, and remember them if they are few."""
    keys = sorted((_key(name), name) for name in names)
    shape = head(5, len(names)), tuple((name, key) for key, name in keys)
    if len(names) <= SHAPE_KEYS_MAX and sum(len(key) for key, _ in keys) <= SHAPE_BYTES_MAX:
        if len(_SHAPES) >= SHAPES_MAX:
            _SHAPES.clear()
        _SHAPES[names] = shape
    return shape


def _key(name: object) -> bytes:
    # A subclass of str equals its text, so a remembered shape would let it pass: it passes always.
    if not isinstance(name, str):
        raise CodecError("codec.type", f"a map key is {type(name).__name__}; keys are text")
    parts: list[bytes] = []
    _write_text(name, parts.append, 0)
    return b"".join(parts)


def _located(trouble: KeyError | CodecError, item: object, step: int | str) -> CodecError:
    return (trouble if isinstance(trouble, CodecError) else _no_form(item)).inside(step)


def _no_form(value: object) -> CodecError:
    return CodecError("codec.type", f"{type(value).__name__} has no canonical form")


def _too_deep() -> CodecError:
    return CodecError("codec.too_deep", f"nested deeper than {DEPTH_MAX}")


def _not_canonical(why: str) -> CodecError:
    return CodecError("codec.not_canonical", f"not canonical CBOR: {why}")


def _first_difference(canonical: bytes, data: bytes) -> int:
    # By halving: a walk over 16 MiB, byte by byte, would let hostile input buy a second of work.
    return bisect_left(range(len(data)), 1, key=lambda at: canonical[: at + 1] != data[: at + 1])


class _NoTags(dict[int, Any]):
    """The decoders of all tags: there are none.

    cbor2 would follow shared references (tags 28 and 29) and string references (25 and 256): a
    hundred bytes could then name a value that takes 2**64 steps to write again.
    """

    def __missing__(self, tag: int) -> Never:
        raise CodecError("codec.not_canonical", f"tag {tag}")


_NO_TAGS: Final = _NoTags()
_PACK_16: Final = Struct(">BH").pack
_PACK_32: Final = Struct(">BI").pack
_PACK_64: Final = Struct(">BQ").pack
_HALF: Final = Struct(">Be")
_SINGLE: Final = Struct(">Bf")
_DOUBLE: Final = Struct(">Bd")
_HALF_MAX: Final = 65504.0
_SINGLE_MAX: Final = (2 - 2**-23) * 2.0**127
_SHORT: Final = tuple(  # of every major type
    bytes((major << 5 | n,) if n < 24 else (major << 5 | 24, n))
    for major in range(8)
    for n in range(256)
)
# Indexed by the number itself: Python counts negative indexes from the end.
INTS: Final = tuple(integer(number) for number in (*range(1024), *range(-256, 0)))
BYTES_HEADS: Final = _SHORT[2 << 8 : 3 << 8]
TEXT_HEADS: Final = _SHORT[3 << 8 : 4 << 8]
ARRAY_HEADS: Final = _SHORT[4 << 8 : 5 << 8]
_SHAPES: Final[dict[tuple[str, ...], Shape]] = {}
WRITERS: Final[dict[type, Writer]] = {
    str: _write_text,
    int: _write_int,
    dict: _write_map,
    bytes: _write_bytes,
    list: _write_array,
    tuple: _write_array,
    type(None): _write_null,
    bool: _write_bool,
    float: _write_float,
}
