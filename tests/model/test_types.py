"""The type language of spec 002: what a type admits, and the one form each value has."""

import pytest

from pawlflow.model.types import TypeMismatch, canonicalise, schema_of, value_hash

BOOL, INT, NAT, DEC128 = {"bool": {}}, {"int": {}}, {"nat": {}}, {"dec128": {}}
BYTES, TEXT, TIME, DURATION = {"bytes": {}}, {"text": {}}, {"time": {}}, {"duration": {}}
HASH, UUID, UNIT = {"hash": {}}, {"uuid": {}}, {"unit": {}}
DIGEST = "sha256:" + "0f" * 32
ID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
I64_MIN, I64_MAX, U64_MAX = -(2**63), 2**63 - 1, 2**64 - 1


def record(**fields):
    return {"record": fields}


def variant(**cases):
    return {"variant": cases}


def map_of(key, value):
    return {"map": {"key": key, "value": value}}


def mismatch(type_, value):
    """Return the error of a value that its type does not admit."""
    with pytest.raises(TypeMismatch) as caught:
        canonicalise(type_, value)
    return caught.value


# Primitives

ADMITTED = [
    (BOOL, True, True),
    (BOOL, False, False),
    (INT, I64_MIN, I64_MIN),
    (INT, I64_MAX, I64_MAX),
    (NAT, 0, 0),
    (NAT, U64_MAX, U64_MAX),
    (TIME, 1_700_000_000_000_000_000, 1_700_000_000_000_000_000),
    (TIME, U64_MAX, U64_MAX),
    (DURATION, -1, -1),
    (TEXT, "", ""),
    (TEXT, "grün 水", "grün 水"),
    (BYTES, b"\x00\xff", b"\x00\xff"),
    (BYTES, "AP8=", b"\x00\xff"),
    (BYTES, "", b""),
    (HASH, DIGEST, DIGEST),
    (UUID, ID, ID),
    (UUID, ID.upper(), ID),
    (DEC128, "0", "0"),
    (DEC128, "+1.50", "1.50"),
    (DEC128, "-0.0", "-0.0"),
    (DEC128, "007.5", "7.5"),
    (DEC128, "1e2", "1E+2"),
    (DEC128, "9" * 34, "9" * 34),
    (DEC128, "9." + "9" * 33 + "E6144", "9." + "9" * 33 + "E+6144"),
    (DEC128, "1e-6176", "1E-6176"),
    (UNIT, None, {}),
    (UNIT, {}, {}),
]


@pytest.mark.req("R8")
@pytest.mark.parametrize(("type_", "value", "stored"), ADMITTED)
def test_primitives_admit(type_, value, stored):
    """The edge of every range, and every accepted spelling."""
    result = canonicalise(type_, value)
    assert result == stored
    assert type(result) is type(stored)


REFUSED = [
    (BOOL, 1, "type.mismatch"),
    (BOOL, "true", "type.mismatch"),
    (INT, True, "type.mismatch"),
    (INT, 1.0, "type.mismatch"),
    (INT, "1", "type.mismatch"),
    (INT, None, "type.mismatch"),
    (INT, I64_MIN - 1, "type.range"),
    (INT, I64_MAX + 1, "type.range"),
    (NAT, -1, "type.range"),
    (NAT, U64_MAX + 1, "type.range"),
    (TIME, -1, "type.range"),
    (DURATION, I64_MAX + 1, "type.range"),
    (TEXT, b"x", "type.mismatch"),
    (TEXT, "a\ud800", "type.format"),
    (BYTES, "AP8", "type.format"),
    (BYTES, "AP9=", "type.format"),
    (BYTES, "A P8=", "type.format"),
    (BYTES, "ÄÄÄÄ", "type.format"),
    (BYTES, [0], "type.mismatch"),
    (HASH, "0f" * 32, "type.format"),
    (HASH, DIGEST + "\n", "type.format"),
    (HASH, DIGEST.replace("f", "F"), "type.format"),
    (HASH, DIGEST[:-1], "type.format"),
    (HASH, b"\x00" * 32, "type.mismatch"),
    (UUID, ID.replace("-", ""), "type.format"),
    (UUID, "{" + ID + "}", "type.format"),
    (UUID, ID + "\n", "type.format"),
    (UUID, 7, "type.mismatch"),
    (DEC128, "", "type.format"),
    (DEC128, "1.", "type.format"),
    (DEC128, ".5", "type.format"),
    (DEC128, "1_000", "type.format"),
    (DEC128, "NaN", "type.format"),
    (DEC128, "Infinity", "type.format"),
    (DEC128, "\u0661", "type.format"),
    (DEC128, "1e100000", "type.format"),
    (DEC128, "1" * 35, "type.range"),
    (DEC128, "1e6145", "type.range"),
    (DEC128, "1e-6177", "type.range"),
    (DEC128, 1.5, "type.mismatch"),
    (UNIT, 0, "type.mismatch"),
    (UNIT, [], "type.mismatch"),
]


@pytest.mark.req("R2", "R4", "R8")
@pytest.mark.parametrize(("type_", "value", "code"), REFUSED)
def test_primitives_refuse(type_, value, code):
    """Out of range, malformed, or of another kind: nothing is coerced."""
    trouble = mismatch(type_, value)
    assert (trouble.code, trouble.path) == (code, "")


def test_an_error_never_repeats_the_value():
    """It tells the kind of what came, so that secrets do not reach logs."""
    secret = "tell nobody"
    for type_ in (INT, BYTES, HASH, UUID, DEC128, UNIT, record(a=INT), variant(a=INT)):
        assert secret not in str(mismatch(type_, secret))


# Records

PERSON = record(name=TEXT, age={"option": NAT}, boss={"option": record(name=TEXT)})


@pytest.mark.req("R2", "R9")
@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ({"name": "a"}, {"age": None, "boss": None, "name": "a"}),
        ({"name": "a", "age": None}, {"age": None, "boss": None, "name": "a"}),
        ({"boss": {"name": "b"}, "name": "a"}, {"age": None, "boss": {"name": "b"}, "name": "a"}),
    ],
)
def test_absent_options_become_null(value, stored):
    """The field is there, and in canonical order."""
    result = canonicalise(PERSON, value)
    assert result == stored
    assert list(result) == ["age", "boss", "name"]


@pytest.mark.req("R2", "R9")
@pytest.mark.parametrize(
    ("value", "code", "path"),
    [
        ({}, "type.missing_field", ".name"),
        ({"age": 3}, "type.missing_field", ".name"),
        ({"name": "a", "nick": "b"}, "type.unknown_field", ".nick"),
        ({"name": "a", "two words": "b"}, "type.unknown_field", "['two words']"),
        ({"name": "a", 1: "b"}, "type.unknown_field", "['1']"),
        ({"name": None}, "type.mismatch", ".name"),
        ({"name": "a", "age": -1}, "type.range", ".age"),
        ({"name": "a", "boss": {"name": 1}}, "type.mismatch", ".boss.name"),
        ([], "type.mismatch", ""),
        (None, "type.mismatch", ""),
    ],
)
def test_records_refuse_unknown_and_missing_fields(value, code, path):
    """And they say which."""
    trouble = mismatch(PERSON, value)
    assert (trouble.code, trouble.path) == (code, path)
    assert str(trouble) == f"${path}: expected {trouble.expected}, got {trouble.got}"


# Variants

OUTCOME = variant(Ok=record(n=INT), Failed=TEXT, Gone=UNIT)


@pytest.mark.req("R3", "R10")
@pytest.mark.parametrize(
    ("value", "tag", "inner"),
    [
        ({"$tag": "Ok", "$value": {"n": 1}}, "Ok", {"n": 1}),
        ({"Ok": {"n": 1}}, "Ok", {"n": 1}),
        ({"$value": "why", "$tag": "Failed"}, "Failed", "why"),
        ({"Failed": "why"}, "Failed", "why"),
        ({"Gone": None}, "Gone", {}),
        ({"$tag": "Gone", "$value": {}}, "Gone", {}),
    ],
)
def test_variants_are_stored_tagged(value, tag, inner):
    """Both spellings give the same value, and so the same hash."""
    assert canonicalise(OUTCOME, value) == {"$tag": tag, "$value": inner}
    schema = schema_of(OUTCOME)
    assert value_hash(schema, value) == value_hash(schema, {tag: inner})


@pytest.mark.req("R10")
@pytest.mark.parametrize(
    ("value", "code", "path"),
    [
        ({"Maybe": 1}, "type.unknown_tag", ".Maybe"),
        ({"$tag": "Maybe", "$value": 1}, "type.unknown_tag", ".Maybe"),
        ({"$tag": "Ok"}, "type.unknown_tag", "['$tag']"),
        ({"$tag": 1, "$value": 1}, "type.mismatch", ""),
        ({"$tag": "Ok", "$value": {"n": 1}, "more": 1}, "type.mismatch", ""),
        ({"Ok": {"n": 1}, "Failed": "why"}, "type.mismatch", ""),
        ({1: 1}, "type.unknown_tag", "['1']"),
        ({}, "type.mismatch", ""),
        ("Gone", "type.mismatch", ""),
        ({"Ok": {"n": "1"}}, "type.mismatch", ".Ok.n"),
    ],
)
def test_variants_refuse(value, code, path):
    """Other tags, and forms that are neither of the two."""
    trouble = mismatch(OUTCOME, value)
    assert (trouble.code, trouble.path) == (code, path)


# Lists, sets, maps, options


def test_lists_keep_their_order():
    """Tuples are lists."""
    assert canonicalise({"list": INT}, (3, 1, 3)) == [3, 1, 3]
    assert mismatch({"list": INT}, [1, 2, "3"]).path == "[2]"
    assert mismatch({"list": INT}, "123").code == "type.mismatch"


@pytest.mark.req("R3")
def test_sets_are_sorted_by_their_bytes_without_duplicates():
    """Shorter first, as canonical bytes are; duplicates by canonical form."""
    assert canonicalise({"set": TEXT}, ["b", "aa", "a", "b"]) == ["a", "b", "aa"]
    assert canonicalise({"set": INT}, [-1, 1000, 1, 1]) == [1, 1000, -1]
    assert canonicalise({"set": UUID}, [ID, ID.upper()]) == [ID]
    assert mismatch({"set": INT}, [1, None]).path == "[1]"


@pytest.mark.req("R7")
@pytest.mark.parametrize(
    ("key", "value", "stored"),
    [
        (TEXT, {"b": 1, "aa": 2, "a": 3}, {"a": 3, "b": 1, "aa": 2}),
        (TEXT, [["b", 1], ["a", 2]], {"a": 2, "b": 1}),
        (UUID, {ID.upper(): 1}, {ID: 1}),
        (HASH, [(DIGEST, 1)], {DIGEST: 1}),
        (INT, [[-1, 1], [1000, 2], [1, 3]], [[1, 3], [1000, 2], [-1, 1]]),
        (INT, {7: 1, 3: 2}, [[3, 2], [7, 1]]),
        (NAT, [[1, 5], [1, 5]], [[1, 5]]),
        (NAT, [], []),
        (TEXT, {}, {}),
    ],
)
def test_maps_are_sorted_by_the_bytes_of_their_keys(key, value, stored):
    """Text keys make a map; others, which durable bytes do not have, a list of pairs."""
    result = canonicalise(map_of(key, INT), value)
    assert result == stored
    assert list(result) == list(stored)


@pytest.mark.req("R7")
@pytest.mark.parametrize(
    ("key", "value", "code", "path"),
    [
        (TEXT, [["a", 1], ["a", 2]], "type.duplicate_key", "[1]"),
        (UUID, {ID: 1, ID.upper(): 2}, "type.duplicate_key", "[1]"),
        (INT, [[1, 1], [2, 2], [1, 3]], "type.duplicate_key", "[2]"),
        (NAT, [[-1, 1]], "type.range", "[0]"),
        (TEXT, {"a": "x"}, "type.mismatch", ".a"),
        (TEXT, {1: 1}, "type.mismatch", "[0]"),
        (TEXT, [["a"]], "type.mismatch", "[0]"),
        (TEXT, [["a", 1], "bc"], "type.mismatch", "[1]"),
        (TEXT, "ab", "type.mismatch", ""),
    ],
)
def test_maps_refuse(key, value, code, path):
    """One key has one value."""
    trouble = mismatch(map_of(key, INT), value)
    assert (trouble.code, trouble.path) == (code, path)


def test_options_are_null_or_their_value():
    """None is null."""
    assert canonicalise({"option": INT}, None) is None
    assert canonicalise({"option": INT}, 3) == 3
    assert mismatch({"option": INT}, "3").code == "type.mismatch"
