"""Types themselves: which are refused, what identifies them, and what holds for all of them."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.model import types
from pawlflow.model.codec import decode, encode
from pawlflow.model.types import (
    SchemaError,
    TypeMismatch,
    canonicalise,
    schema_identity,
    schema_of,
    value_hash,
)

BOOL, INT, NAT, TEXT = {"bool": {}}, {"int": {}}, {"nat": {}}, {"text": {}}
I64_MIN, I64_MAX, U64_MAX = -(2**63), 2**63 - 1, 2**64 - 1


def record(**fields):
    return {"record": fields}


def variant(**cases):
    return {"variant": cases}


def map_of(key, value):
    return {"map": {"key": key, "value": value}}


REFS = {
    "acme/Point@1": record(x=INT, y=INT),
    "acme/Line@1": record(a={"ref": "acme/Point@1"}, b={"ref": "acme/Point@1"}),
    "acme/Alias@1": {"ref": "acme/Point@1"},
}


def test_refs_stand_for_their_types():
    """Also through another ref."""
    line = {"ref": "acme/Line@1"}
    ends = {"a": {"x": 1, "y": 2}, "b": {"x": 3, "y": 4}}
    assert canonicalise(line, ends, REFS) == ends
    with pytest.raises(TypeMismatch, match=r"\$\.b\.y: "):
        canonicalise(line, ends | {"b": {"x": 3, "y": ""}}, REFS)
    assert canonicalise({"ref": "acme/Alias@1"}, {"x": 1, "y": 2}, REFS) == {"x": 1, "y": 2}


def test_an_identity_is_that_of_the_expanded_type():
    """Names of refs and the order of fields do not matter; everything else does."""
    point = schema_identity({"ref": "acme/Point@1"}, REFS)
    assert point == schema_identity({"ref": "acme/Alias@1"}, REFS)
    assert point == schema_identity(record(y=INT, x=INT))
    assert point != schema_identity(record(x=INT, y=NAT))
    assert point != schema_identity(record(x=INT, z=INT))
    expanded = encode(["pawl.schema.1", record(x=INT, y=INT)])
    assert point == sha256(expanded).digest()


@pytest.mark.req("R3")
def test_a_typed_hash_binds_type_and_bytes():
    """Two schemas of the same shape do not collide."""
    whole, natural = schema_of(INT), schema_of(NAT)
    assert encode(whole.canonicalise(1)) == encode(natural.canonicalise(1))
    assert value_hash(whole, 1) != value_hash(natural, 1)
    assert value_hash(whole, 1) != value_hash(whole, 2)
    assert (
        value_hash(whole, 1) == sha256(encode(["pawl.value.1", whole.identity, encode(1)])).digest()
    )


def doubled(levels):
    """Return refs of which each holds the next one twice."""
    pairs = {f"r{n}": record(a={"ref": f"r{n + 1}"}, b={"ref": f"r{n + 1}"}) for n in range(levels)}
    return pairs | {f"r{levels}": INT}


def nested(levels, wrap):
    type_ = INT
    for _ in range(levels):
        type_ = wrap(type_)
    return type_


CHAIN = {f"r{n}": {"ref": f"r{n + 1}"} for n in range(2_000)} | {"r2000": INT}
LOOP = {"a": record(b={"option": {"ref": "b"}}), "b": {"list": {"ref": "a"}}}

BAD_TYPES = [
    ("int", {}, "schema.malformed", ()),
    ({}, {}, "schema.malformed", ()),
    ({"int": {}, "nat": {}}, {}, "schema.malformed", ()),
    ({"int": {"max": 3}}, {}, "schema.malformed", ()),
    ({"float": {}}, {}, "schema.malformed", ()),
    ({1: {}}, {}, "schema.malformed", ()),
    ({"list": "int"}, {}, "schema.malformed", ("list",)),
    ({"record": [INT]}, {}, "schema.malformed", ("record",)),
    ({"record": {1: INT}}, {}, "schema.malformed", ("record",)),
    (record(a=record(b={"float": {}})), {}, "schema.malformed", ("record", "a", "record", "b")),
    ({"variant": {"$tag": INT}}, {}, "schema.malformed", ("variant",)),
    ({"variant": {"": INT}}, {}, "schema.malformed", ("variant",)),
    ({"map": {"key": TEXT}}, {}, "schema.malformed", ("map",)),
    ({"map": [TEXT, INT]}, {}, "schema.malformed", ("map",)),
    (map_of(BOOL, INT), {}, "schema.key_type", ("map", "key")),
    (map_of({"list": INT}, INT), {}, "schema.key_type", ("map", "key")),
    ({"ref": "acme/Gone@1"}, {}, "schema.unknown_ref", ()),
    ({"ref": ["acme/Gone@1"]}, {}, "schema.unknown_ref", ()),
    ({"ref": "a"}, {"a": {"ref": "a"}}, "schema.recursive", ()),
    ({"ref": "a"}, LOOP, "schema.recursive", ("record", "b", "option", "list")),
    ({"ref": "r0"}, CHAIN, "schema.too_large", ()),
]


@pytest.mark.parametrize(("type_", "refs", "code", "path"), BAD_TYPES)
def test_bad_types_are_refused(type_, refs, code, path):
    """Before any value comes, with the place inside the type."""
    with pytest.raises(SchemaError) as caught:
        schema_of(type_, refs)
    assert (caught.value.code, caught.value.path) == (code, path)


def test_types_that_double_are_refused():
    """A few hundred bytes of refs could stand for 2**40 fields."""
    assert schema_of({"ref": "r0"}, doubled(8))
    with pytest.raises(SchemaError, match="at most 10000 parts"):
        schema_of({"ref": "r0"}, doubled(40))


@pytest.mark.parametrize(
    ("wrap", "value_of", "steps"),
    [
        (lambda inner: {"list": inner}, lambda value: [value], 1),
        (lambda inner: record(a=inner), lambda value: {"a": value}, 2),
        (lambda inner: variant(a=inner), lambda value: {"a": value}, 2),
        (lambda inner: map_of(INT, inner), lambda value: [[1, value]], 2),
    ],
)
def test_the_deepest_types_still_have_identities_and_values(wrap, value_of, steps):
    """What the type language lets pass, the codec can write."""
    levels = types.STEPS_MAX // steps
    schema = schema_of(nested(levels, wrap))
    value = 1
    for _ in range(levels):
        value = value_of(value)
    canonical = schema.canonicalise(value)
    assert decode(encode(canonical)) == canonical
    with pytest.raises(SchemaError, match="60 steps inward"):
        schema_of(nested(levels + 1, wrap))


# All of it

LEAVES = {
    "bool": st.booleans(),
    "int": st.integers(I64_MIN, I64_MAX),
    "nat": st.integers(0, U64_MAX),
    "text": st.text(),
    "bytes": st.binary(),
    "uuid": st.uuids().map(str),
    "hash": st.binary(min_size=32, max_size=32).map(lambda raw: "sha256:" + raw.hex()),
    "dec128": st.decimals(
        allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9
    ).map(str),
    "unit": st.none(),
}
KEYS = st.sampled_from(types.KEY_TYPES)
leaf_types = st.sampled_from(sorted(LEAVES)).map(lambda name: {name: {}})
all_types = st.recursive(
    leaf_types,
    lambda inner: (
        st.builds(lambda item: {"list": item}, inner)
        | st.builds(lambda item: {"set": item}, inner)
        | st.builds(lambda item: {"option": item}, inner)
        | st.builds(lambda key, item: map_of({key: {}}, item), KEYS, inner)
        | st.dictionaries(st.sampled_from("abcd"), inner).map(lambda fields: record(**fields))
        | st.dictionaries(st.sampled_from("abcd"), inner, min_size=1).map(
            lambda cases: variant(**cases)
        )
    ),
    max_leaves=8,
)


def values_of(type_):
    """Return the strategy of all values of a type."""
    [(form, body)] = type_.items()
    if form in LEAVES:
        return LEAVES[form]
    if form in ("list", "set"):
        return st.lists(values_of(body), max_size=4)
    if form == "option":
        return st.none() | values_of(body)
    if form == "map":
        keys = values_of(body["key"])
        return st.dictionaries(keys, values_of(body["value"]), max_size=4)
    if form == "record":
        return st.fixed_dictionaries({name: values_of(inner) for name, inner in body.items()})
    return st.one_of(
        *(st.builds(lambda v, t=tag: {t: v}, values_of(inner)) for tag, inner in body.items())
    )


@pytest.mark.req("R2", "R3", "R4")
@given(st.data())
def test_canonical_values_are_fixed_points(data):
    """Canonicalising again changes nothing, and what is read back is what was stored."""
    schema = schema_of(data.draw(all_types))
    once = schema.canonicalise(data.draw(values_of(schema.type)))
    assert schema.canonicalise(once) == once
    again = decode(encode(once))
    assert again == once
    assert repr(again) == repr(once), "the order of fields and keys is that of the bytes"


@given(all_types, st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_any_value_is_canonical_or_a_mismatch(type_, value):
    """No other exception comes out."""
    try:
        stored = canonicalise(type_, value)
    except TypeMismatch as trouble:
        assert trouble.code.startswith("type.")
    else:
        assert decode(encode(stored)) == stored
