"""Canonical CBOR: one byte form per value, and nothing else is read."""

import json
import re
from enum import IntEnum, StrEnum
from pathlib import Path

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.model import codec
from pawlflow.model.codec import CodecError, decode, decode_trusted, encode

GOLDEN = Path(__file__).parent.parent / "golden" / "cbor.vectors.txt"

scalars = (
    st.none()
    | st.booleans()
    | st.integers(codec.INT_MIN, codec.INT_MAX)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(allow_nan=False, allow_infinity=False, width=16)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
    | st.text()
    | st.binary()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30
)


def vectors():
    """Yield (bytes, value) of each golden line; h'..' stands for a byte string."""
    for line in GOLDEN.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            hexed, shown = line.split("\t")
            shown = re.sub(r"h'([0-9a-f]*)'", r'{"$bytes": "\1"}', shown)
            yield pytest.param(bytes.fromhex(hexed), json.loads(shown, object_hook=unwrapped))


def unwrapped(value):
    return bytes.fromhex(value["$bytes"]) if "$bytes" in value else value


def refused(data):
    """Return the error of bytes that must not be read."""
    with pytest.raises(CodecError) as caught:
        decode(data)
    return caught.value


# Writing


@pytest.mark.req("R5", "R6")
@pytest.mark.parametrize(("data", "value"), list(vectors()))
def test_golden_vectors_hold_both_ways(data, value):
    """The bytes of a value can never change; -0.0 is not 0.0 and true is not 1."""
    assert encode(value) == data
    assert repr(sorted_keys(decode(data))) == repr(sorted_keys(value))


def sorted_keys(value):
    if isinstance(value, dict):
        return {key: sorted_keys(value[key]) for key in sorted(value)}
    return [sorted_keys(each) for each in value] if isinstance(value, list) else value


def test_golden_vectors_are_many():
    """Every width of every kind has its line."""
    assert len(list(vectors())) >= 100


@pytest.mark.req("R5")
@given(values)
def test_bytes_are_those_of_another_implementation(value):
    """On permitted values the writer equals cbor2's canonical encoder."""
    assert encode(value) == cbor2.dumps(value, canonical=True)


@pytest.mark.req("R5")
@given(values)
def test_what_is_written_reads_back(value):
    """Decoding inverts encoding, floats and booleans to the bit."""
    data = encode(value)
    assert decode(data) == value
    assert encode(decode(data)) == data
    assert decode_trusted(data) == value


@pytest.mark.req("R7")
@given(st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=20), st.randoms())
def test_the_order_of_insertion_leaves_no_trace(value, chance):
    """Maps sort by canonical key."""
    items = list(value.items())
    chance.shuffle(items)
    assert encode(dict(items)) == encode(value)


def test_tuples_are_lists():
    """A tuple has the bytes of the list with the same items."""
    assert encode((1, ("a", b"b"))) == encode([1, ["a", b"b"]])


@pytest.mark.parametrize("size", [23, 24, 255, 256, 65_535, 65_536])
def test_lengths_take_the_shortest_head(size):
    """Each width of a length, for each kind that has one."""
    wide_map = {f"{number:05}": None for number in range(size)}
    for value in ("x" * size, b"x" * size, [None] * size, wide_map):
        assert encode(value) == cbor2.dumps(value, canonical=True)
        assert decode(encode(value)) == value


class Colour(StrEnum):
    """A text that is not plainly one."""

    RED = "red"


class Level(IntEnum):
    """An integer that is not plainly one."""

    LOW = 1


REFUSED = [
    (float("nan"), "codec.range", ""),
    (float("inf"), "codec.range", ""),
    ([float("-inf")], "codec.range", "[0]"),
    (2**64, "codec.range", ""),
    ({"a": [0, -(2**63) - 1]}, "codec.range", "['a'][1]"),
    ("\ud800", "codec.text", ""),
    ({"a": {"\udfff": 1}}, "codec.text", "['a']"),
    ({1: "one"}, "codec.type", ""),
    ({None: 1}, "codec.type", ""),
    ({b"k": 1}, "codec.type", ""),
    ({1, 2}, "codec.type", ""),
    ({"a": [1, {"b": {3}}]}, "codec.type", "['a'][1]['b']"),
    (bytearray(b"x"), "codec.type", ""),
    (1j, "codec.type", ""),
    (Level.LOW, "codec.type", ""),
    ([Colour.RED], "codec.type", "[0]"),
    (cbor2.CBORTag(1, 0), "codec.type", ""),
    (cbor2.undefined, "codec.type", ""),
]


@pytest.mark.req("R8")
@pytest.mark.parametrize(("value", "code", "path"), REFUSED)
def test_values_without_a_form_are_refused(value, code, path):
    """The error has a stable code and says where."""
    with pytest.raises(CodecError) as caught:
        encode(value)
    assert (caught.value.code, caught.value.path) == (code, path)
    assert path in str(caught.value)


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"a": value}])
def test_nesting_has_one_limit_for_writing_and_reading(wrap):
    """64 containers inside each other pass, 65 do not."""
    value = 1
    for _ in range(codec.DEPTH_MAX):
        value = wrap(value)
    assert decode(encode(value)) == value
    with pytest.raises(CodecError) as caught:
        encode(wrap(value))
    assert caught.value.code == "codec.too_deep"
    assert refused(cbor2.dumps(wrap(value))).code == "codec.not_canonical"


def test_a_list_within_itself_is_refused():
    """The limit of depth also ends what has no end, at its first branch."""
    endless = []
    endless += [endless, endless]
    with pytest.raises(CodecError, match="nested deeper than 64"):
        encode(endless)


# Remembered shapes


def test_remembered_shapes_are_bounded():
    """The table of map shapes starts afresh when full, and wide or wordy maps never enter it."""
    for number in range(codec.SHAPES_MAX + 10):
        encode({f"shape {number}": 0})
        assert len(codec._SHAPES) <= codec.SHAPES_MAX
    before = len(codec._SHAPES)
    encode({f"{number}": 0 for number in range(codec.SHAPE_KEYS_MAX + 1)})
    encode({"k" * codec.SHAPE_BYTES_MAX: 0})
    assert len(codec._SHAPES) == before


def test_a_remembered_shape_changes_no_verdict():
    """A key that equals a text is that text, whether or not the shape was seen before."""
    codec._SHAPES.clear()
    first = encode({Colour.RED: 1})
    assert first == encode({"red": 1}) == encode({Colour.RED: 1})


# Reading

NOT_CANONICAL = [
    ("1800", "an integer in two bytes that fits one"),
    ("1817", "the last integer that fits one"),
    ("1900ff", "three bytes for two"),
    ("1a0000ffff", "five bytes for three"),
    ("1b00000000ffffffff", "nine bytes for five"),
    ("3800", "a long negative integer"),
    ("3b8000000000000000", "below -2**63"),
    ("780161", "a long text length"),
    ("580101", "a long bytes length"),
    ("980101", "a long array length"),
    ("b801616101", "a long map length"),
    ("fa3f800000", "single precision for what half keeps"),
    ("fb3ff0000000000000", "double precision for what half keeps"),
    ("fb40f86a0000000000", "double precision for what single keeps"),
    ("f97e00", "NaN"),
    ("fa7fc00000", "NaN in single"),
    ("fb7ff8000000000001", "NaN with a payload"),
    ("f97c00", "infinity"),
    ("f9fc00", "minus infinity"),
    ("9f01ff", "an array of indefinite length"),
    ("bf616101ff", "a map of indefinite length"),
    ("7f6161ff", "text of indefinite length"),
    ("5f4101ff", "bytes of indefinite length"),
    ("a2616201616101", "keys out of order"),
    ("a262616101616201", "a longer key first"),
    ("a2616101616101", "a key twice"),
    ("a2616101616102", "a key twice, with two values"),
    ("a10102", "an integer key"),
    ("a1410102", "a bytes key"),
    ("a1f602", "a null key"),
    ("a18002", "an array key"),
    ("a1a002", "a map key"),
    ("0101", "trailing bytes"),
    ("a0f6", "trailing null"),
    ("f7", "undefined"),
    ("e0", "a simple value"),
    ("f820", "a simple value in two bytes"),
    ("f814", "false in two bytes"),
    ("c11a514b67b0", "a date"),
    ("c074323031332d30332d32315432303a30343a30305a", "a date as text"),
    ("c243010000", "a big integer"),
    ("c48221196ab3", "a decimal fraction"),
    ("d81e820103", "a rational number"),
    ("d82550" + "00" * 16, "a uuid"),
    ("d8236161", "a regular expression"),
    ("d901028101", "a set"),
    ("d9d9f7a0", "the self-describe mark"),
    ("d81c81d81d00", "a list within itself"),
    ("d9010082414102d81900", "a reference to a string"),
    ("db7fffffffffffffff00", "an unknown tag"),
    ("", "nothing"),
    ("18", "a cut head"),
    ("6261", "a cut text"),
    ("8201", "a cut array"),
    ("a16161", "a cut map"),
    ("1c", "a reserved head"),
    ("5c", "a reserved length"),
    ("ff", "a break"),
    ("61ff", "text that is not UTF-8"),
    ("63eda080", "a surrogate in UTF-8"),
    ("62c080", "an overlong zero"),
    ("5bffffffffffffffff", "2**64 bytes promised"),
    ("7b7fffffffffffffff", "2**63 bytes of text promised"),
    ("9bffffffffffffffff", "2**64 items promised"),
    ("bbffffffffffffffff", "2**64 entries promised"),
    ("9a7fffffff", "2**31 items promised"),
]


@pytest.mark.req("R5", "R7")
@pytest.mark.parametrize(("data", "why"), NOT_CANONICAL, ids=[why for _, why in NOT_CANONICAL])
def test_other_bytes_are_refused(data, why):
    """Whatever cbor2 would forgive or follow, at the top and inside a container."""
    assert refused(bytes.fromhex(data)).code == "codec.not_canonical", why
    assert refused(bytes.fromhex("81" + data)).code == "codec.not_canonical", why


def test_a_refusal_says_where():
    """The first byte that we would have written otherwise."""
    assert "byte 3 would" in str(refused(bytes.fromhex("8301021803")))
    assert "byte 1 would" in str(refused(bytes.fromhex("0100")))
    assert "tag 28" in str(refused(bytes.fromhex("d81c80")))


HOSTILE = [
    (b"\x81" * 1_000_000 + b"\x00", "a million arrays deep"),
    (b"\xa1\x60" * 500_000 + b"\x00", "half a million maps deep"),
    (b"\xc1" * 1_000_000 + b"\x00", "a million tags deep"),
    (b"\x9f" * 1_000_000, "a million arrays of indefinite length"),
    (b"\xd8\x1c\x82\xd8\x1d\x00\xd8\x1d\x00", "2**64 leaves by two shared references"),
    (
        b"\xd9\x01\x00\x99\xff\xff\x59\xff\xff" + b"x" * 65_535 + b"\xd8\x19\x00" * 65_534,
        "4 GiB by references to one string",
    ),
    (b"\xd8\x23\x79\x27\x10" + b"(a*)*" * 2_000, "a costly regular expression"),
    (b"\xc4\x82\x1b" + b"\xff" * 8 + b"\x01", "a decimal with a vast exponent"),
    (b"\xc2\x5a\x00\x01\x86\xa0" + b"\xff" * 100_000, "an integer of 800,000 bits"),
]


@pytest.mark.req("R5")
@pytest.mark.parametrize(("data", "why"), HOSTILE, ids=[why for _, why in HOSTILE])
def test_hostile_bytes_cost_little(data, why):
    """They are refused, and what they stand for is never built."""
    assert refused(data).code == "codec.not_canonical", why


def test_size_is_checked_before_anything_else():
    """Above the limit nothing is decoded, whatever the bytes are."""
    data = encode("x" * 10)
    assert decode(data, bytes_max=len(data)) == "x" * 10
    with pytest.raises(CodecError) as caught:
        decode(data, bytes_max=len(data) - 1)
    assert caught.value.code == "codec.too_large"


@given(st.binary(max_size=200))
def test_any_bytes_are_canonical_or_refused(data):
    """No other exception, and no second byte form of a value."""
    read_or_refused(data)


@given(values, st.data())
def test_damaged_bytes_are_canonical_or_refused(value, draw):
    """One byte of a real document, changed."""
    data = bytearray(encode(value))
    at = draw.draw(st.integers(0, len(data) - 1))
    data[at] ^= draw.draw(st.integers(1, 255))
    read_or_refused(bytes(data))


def read_or_refused(data):
    try:
        value = decode(data)
    except CodecError as trouble:
        assert trouble.code == "codec.not_canonical"
    else:
        assert encode(value) == data
