"""Records: the generated writers, held against a plain encoder and against cbor2."""

from typing import Any, Literal

import cbor2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields as struct_fields

from pawlflow.model.codec import INT_MAX, INT_MIN, CodecError, decode, encode
from pawlflow.model.events import Event
from pawlflow.model.ids import Digest, TimeMs
from pawlflow.model.inputs import Input
from pawlflow.model.intents import IntentRecord
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record, array_head, read, reader_for, write, writer_for


class Cause(Record, frozen=True):
    """A record without a tag, inside others."""

    kind: Literal["soft", "hard"]
    detail: Payload | None


class Opened(Record, frozen=True, tag="test.opened"):
    """Every kind of field."""

    step: int
    at: TimeMs
    held: bool
    mode: Literal[0, 1, "x"]
    by: str
    key: Digest
    params: Payload
    role: str | None
    until: TimeMs | None
    result: Payload | None
    cause: Cause | None
    path: tuple[str, ...]
    span: tuple[int, bytes]
    counts: tuple[int | None, ...] | None = None


class Idle(Record, frozen=True, tag="test.idle"):
    """A record without fields."""


class Batch(Record, frozen=True, tag="test.batch"):
    """Records inside records."""

    first: Cause
    one: Opened | Idle
    maybe: Opened | Idle | None
    many: tuple[Opened | Idle, ...]


Any3 = Opened | Idle | Batch

ints = st.integers(INT_MIN, INT_MAX) | st.integers(-300, 1100)
texts = st.text() | st.text("x", min_size=250, max_size=260)
blobs = st.binary() | st.binary(min_size=250, max_size=260)
payloads = st.binary(min_size=33, max_size=33).map(lambda addr: Payload(addr, addr[:3]))
causes = st.builds(Cause, st.sampled_from(["soft", "hard"]), st.none() | payloads)
opened = st.builds(
    Opened,
    step=ints,
    at=ints,
    mode=st.sampled_from([0, 1, "x"]),
    by=texts,
    key=blobs,
    params=payloads,
    role=st.none() | texts,
    until=st.none() | ints,
    result=st.none() | payloads,
    cause=st.none() | causes,
    path=st.lists(texts, max_size=3).map(tuple),
    span=st.tuples(ints, blobs),
    counts=st.none() | st.lists(st.none() | ints).map(tuple),
)
ones = opened | st.just(Idle())
batches = st.builds(Batch, causes, ones, st.none() | ones, st.lists(ones, max_size=3).map(tuple))
records = opened | st.just(Idle()) | batches


def plain(value: Any) -> Any:
    """Return the array that a record stands for."""
    if isinstance(value, Payload):
        return value.addr
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, msgspec.Struct):
        tag = [] if value.__struct_config__.tag is None else [value.__struct_config__.tag]
        fields = [(field.default, getattr(value, field.name)) for field in struct_fields(value)]
        while fields and fields[-1][0] == fields[-1][1]:  # trailing defaults are left out
            fields.pop()
        return tag + [plain(each) for _, each in fields]
    return value


def sample(**changes) -> Opened:
    fields = {
        "step": 3,
        "at": TimeMs(1_700_000_000_000),
        "held": True,
        "mode": 0,
        "by": "ann",
        "key": Digest(b"k" * 32),
        "params": Payload(b"a" * 33, None),
        "role": None,
        "until": None,
        "result": None,
        "cause": None,
        "path": (),
        "span": (1, b""),
    }
    return Opened(**(fields | changes))


@pytest.mark.req("R5")
@given(records)
def test_generated_writers_write_canonical_cbor(record):
    """Byte for byte what the codec and what cbor2 make of the plain array."""
    data = write(record)
    assert data == cbor2.dumps(plain(record), canonical=True)
    assert data == encode(plain(record))


@given(records)
def test_records_read_back_equal(record):
    """From bytes and from decoded arrays, by type and by union."""
    data = write(record)
    assert read(Any3, data, {}) == record
    assert read(type(record), decode(data), {}) == record
    assert write(reader_for(Any3)(data, {})) == data


def test_the_sample_has_known_bytes():
    """A tag, then the fields in order."""
    head = "8e" + "6b746573742e6f70656e6564"
    body = "031b0000018bcfe56800f50063616e6e" + "5820" + "6b" * 32 + "5821" + "61" * 33
    assert write(sample()).hex() == head + body + "f6f6f6f6" + "80" + "820140"
    assert write(sample(counts=(1, None))).hex()[:2] == "8f"
    assert write(sample(counts=(1, None))).hex().endswith("820140" + "8201f6")


class Young(Record, frozen=True, tag="test.grown"):
    """A record as it was first."""

    step: int
    note: str | None = None


class Grown(Record, frozen=True, tag="test.grown"):
    """The same record after two fields were appended."""

    step: int
    note: str | None = None
    count: int = 0
    path: tuple[str, ...] = ()


@pytest.mark.req("R223")
@given(ints, st.none() | texts)
def test_a_field_appended_later_changes_no_bytes_written_before(step, note):
    """Old bytes read as the grown record, and that writes the same bytes again."""
    data = write(Young(step, note))

    assert read(Grown, data, {}) == Grown(step, note)
    assert write(Grown(step, note)) == data
    with pytest.raises(CodecError):
        read(Young, write(Grown(step, note, count=1)), {})


@pytest.mark.parametrize("kind", [Event, Input, IntentRecord], ids=["event", "input", "intent"])
def test_every_record_of_the_journal_can_be_written(kind):
    """No field has a type that a writer does not know."""
    for struct in kind.__args__:
        assert writer_for(struct) is writer_for(struct)


# Payloads


def test_a_payload_is_read_with_its_bytes_beside_it():
    """What is not there was erased."""
    here, gone = Payload(b"h" * 33, encode({"a": 1})), Payload(b"g" * 33, None)
    record = sample(params=here, result=gone)
    again = read(Opened, write(record), {here.addr: here.data})
    assert again.params.value == {"a": 1}
    assert again.result.data is None


@pytest.mark.parametrize("addr", [b"short", "a" * 33, 5, [1]])
def test_an_address_has_its_size(addr):
    """33 bytes, and nothing else, name a payload."""
    with pytest.raises(CodecError, match="a payload is named by 33 bytes"):
        read(Cause, ["soft", addr], {})


# Growing


class OpenedBefore(Record, frozen=True, tag="grown"):
    """A record as an older version knew it."""

    step: int


class OpenedSince(Record, frozen=True, tag="grown"):
    """The same record with a field appended."""

    step: int
    note: str | None = None


@pytest.mark.req("R5")
def test_appended_fields_read_from_shorter_arrays():
    """Old journals stay readable."""
    assert read(OpenedSince, write(OpenedBefore(3)), {}) == OpenedSince(3, None)


@pytest.mark.req("R5")
@pytest.mark.parametrize(
    ("kind", "array"),
    [
        (OpenedBefore, ["grown", 3, None]),
        (OpenedBefore | Idle, ["grown", 3, None]),
        (Idle, ["test.idle", None]),
        (Batch, ["test.batch", ["soft", None, None], ["test.idle"], None, []]),
    ],
)
def test_longer_arrays_are_refused(kind, array):
    """What a newer version appended is never dropped in silence, not even deep inside."""
    with pytest.raises(CodecError, match="at most length") as caught:
        read(kind, encode(array), {})
    assert caught.value.code == "codec.record"


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (["grown"], "at least length"),
        (["other", 3], "Invalid value 'other' - at `$[0]`"),
        (["grown", "3"], "Expected `int`, got `str` - at `$[1]`"),
        (["grown", 3.0], "Expected `int`, got `float`"),
        (["grown", True], "Expected `int`, got `bool`"),
        ({"step": 3}, "Expected `array`, got `object`"),
        (None, "Expected `array`, got `null`"),
    ],
)
def test_other_arrays_are_refused(array, says):
    """Nothing is coerced."""
    with pytest.raises(CodecError) as caught:
        read(OpenedBefore, encode(array), {})
    assert says in str(caught.value)


def test_bytes_are_not_taken_from_base64():
    """Bytes are bytes; text in their place is no record."""
    array = plain(sample())
    array[6] = "a2tr"
    with pytest.raises(CodecError, match="Expected `bytes`, got `str`"):
        read(Opened, array, {})


@pytest.mark.req("R5")
def test_records_are_read_from_canonical_bytes_only():
    """The array is right, its integer is long."""
    with pytest.raises(CodecError) as caught:
        read(OpenedBefore, bytes.fromhex("826567726f776e1803"), {})
    assert caught.value.code == "codec.not_canonical"


class Loose(msgspec.Struct, frozen=True, array_like=True):
    """Forgives fields it does not know."""

    a: int


class HoldsLoose(Record, frozen=True):
    """Closed itself, open inside."""

    inner: tuple[tuple[Loose, int], ...]


@pytest.mark.parametrize("kind", [Loose, HoldsLoose, HoldsLoose | None])
def test_types_that_forgive_are_not_read(kind):
    """They would drop what they do not know."""
    with pytest.raises(TypeError, match="Loose must be declared forbid_unknown_fields=True"):
        reader_for(kind)


# Values of another type


@pytest.mark.parametrize(
    "changes",
    [
        {"step": "3"},
        {"step": 3.0},
        {"step": 3000.5},
        {"step": -3000.5},
        {"step": None},
        {"held": "yes"},
        {"held": None},
        {"mode": 2},
        {"mode": []},
        {"by": b"ann"},
        {"by": None},
        {"by": "\ud800"},
        {"key": "text"},
        {"key": None},
        {"params": b"a" * 33},
        {"params": None},
        {"cause": Idle()},
        {"path": "text\ud800"},
        {"path": (1,)},
        {"path": None},
        {"span": (1,)},
        {"span": (1, b"", 2)},
    ],
    ids=str,
)
def test_a_field_of_another_type_is_refused(changes):
    """A writer never makes bytes that would not read back."""
    with pytest.raises(CodecError) as caught:
        write(sample(**changes))
    assert caught.value.code == "codec.record"


def test_a_member_outside_the_union_is_refused():
    """Only the types of the union have a place there."""
    with pytest.raises(CodecError, match="a field of Batch"):
        write(Batch(Cause("soft", None), OpenedBefore(1), None, ()))


@pytest.mark.req("R8")
@pytest.mark.parametrize("number", [INT_MAX + 1, INT_MIN - 1])
def test_integers_have_64_bits(number):
    """In records as everywhere."""
    with pytest.raises(CodecError) as caught:
        write(sample(step=number))
    assert caught.value.code == "codec.range"


# Types without a form


class Named(msgspec.Struct, frozen=True):
    """An object, not an array."""

    a: int


class HoldsValue(Record, frozen=True):
    """A free value, which belongs in a payload."""

    value: Any


class HoldsForeign(Record, frozen=True):
    """A class that no writer knows."""

    value: complex


class HoldsEither(Record, frozen=True):
    """A union of scalars."""

    value: int | str


@pytest.mark.parametrize(
    ("struct", "says"),
    [
        (Named, "declare it array_like=True"),
        (HoldsValue, "free values belong in a Payload"),
        (HoldsForeign, "free values belong in a Payload"),
        (HoldsEither, "free values belong in a Payload"),
    ],
)
def test_shapes_that_are_not_fixed_have_no_writer(struct, says):
    """Refused when the writer is made, not when a value comes."""
    with pytest.raises(TypeError, match=says):
        writer_for(struct)


@pytest.mark.parametrize("size", [0, 23, 24, 255, 256, 70_000])
def test_array_heads_are_those_of_arrays(size):
    """The head of an array of any size."""
    assert encode([0] * size) == array_head(size) + b"\x00" * size
