"""Where a value of a JSON file stands, against the values themselves."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pawlflow.importing.json_places import index_of, path_text

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=4)
VALUES = st.recursive(
    SCALARS | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=20,
)


def paths(value, path=()):
    """Every path of a value, with what is there."""
    yield path, value
    entries = value.items() if isinstance(value, dict) else ()
    entries = enumerate(value) if isinstance(value, list) else entries
    for key, inner in entries:
        yield from paths(inner, (*path, key))


@given(VALUES, st.sampled_from([None, 0, 2]), st.booleans())
def test_every_path_leads_to_its_value(value, indent, ascii_only):
    """However the file is laid out: what begins there is the value, and nothing else."""
    text = " " + json.dumps(value, indent=indent, ensure_ascii=ascii_only) + "\n"

    for path, inner in paths(value):
        found, _ = json.JSONDecoder().raw_decode(text, index_of(text, path))
        assert found == inner


def test_what_is_missing_stands_where_it_would_be():
    """The nearest value around it: a place to look at, never an error."""
    text = '{"a": [1, {"b": 2}], "n": %s}' % ("9" * 5_000)

    assert index_of(text, ("x", 3)) == 0
    assert text[index_of(text, ("a", 5)) :].startswith("[1")
    assert text[index_of(text, ("a", 1, "c")) :].startswith('{"b"')
    assert text[index_of(text, ("a", "k")) :].startswith("[1")
    assert text[index_of(text, ("a", 0, 0)) :].startswith("1,")
    assert text[index_of(text, ("n",)) :].startswith("999")


def test_the_last_of_two_keys_counts():
    """As for everybody who reads JSON."""
    text = '{"a": 1, "b": {}, "a": 2}'

    assert text[index_of(text, ("a",))] == "2"


def test_a_path_is_written_as_people_write_it():
    """Keys that are no words stand in quotes."""
    assert path_text(()) == "$"
    assert (
        path_text(("workflow", "tasks", 3, "a b", "é")) == '$.workflow.tasks[3]["a b"]["\\u00e9"]'
    )
