"""Reading: values by YAML 1.2, and the exact place of each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.definition.read import Node, plain, read_yaml
from pawlflow.definition.report import Report
from pawlflow.definition.source import spelling


def read(text) -> Node:
    report = Report()
    nodes = read_yaml(text, "f.yaml", report)
    assert report.findings == []
    return nodes[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("TRUE", True),
        ("~", None),
        ("null", None),
        ("no", "no"),
        ("on", "on"),
        ("yes", "yes"),
        ("12", 12),
        ("+12", 12),
        ("-7", -7),
        ("012", 12),
        ("0o14", 12),
        ("0x1F", 31),
        ("0b1", "0b1"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("1.2.3", "1.2.3"),
        ("-x", "-x"),
        ("2024-01-01", "2024-01-01"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("-1e3", -1000.0),
        ("1e-400", 0.0),
        ("18446744073709551615", 2**64 - 1),
        ("-9223372036854775808", -(2**63)),
        ("'12'", "12"),
        ('"true"', "true"),
        ("'<<'", "<<"),
        ('"a\\tb\\u00e9"', "a\tbé"),
    ],
)
def test_plain_scalars_follow_yaml_1_2(text, value):
    """The core schema: no surprises of YAML 1.1, and quotes make a text."""
    found = plain(read(f"x: {text}"))["x"]
    assert (found, type(found)) == (value, type(value))


def test_json_is_yaml():
    """A JSON file, tabs and escapes included, reads as what it says."""
    assert plain(read('{\n\t"a": [1, 2.5, null, true],\n\t"b\\/": "\\u00fc"\n}')) == {
        "a": [1, 2.5, None, True],
        "b/": "ü",
    }


def test_bytes_and_a_byte_order_mark_are_read():
    """UTF-8 with or without its mark is the same text."""
    assert plain(read("\ufeffx: ü".encode())) == plain(read("x: ü")) == {"x": "ü"}


def test_a_file_may_hold_several_documents():
    """Each comes back as a tree of its own."""
    report = Report()
    assert [plain(node) for node in read_yaml("a: 1\n---\n[b]\n", "f", report)] == [{"a": 1}, ["b"]]


def place(found):
    return found.line, found.column


def test_keys_and_values_know_their_places():
    """Lines and columns count from 1, columns in characters, line ends of any kind."""
    node = read("a:\r\n  - {ü😀: [x]}\n  -\n    'k': ~\r  # tail\n")
    items = node.value["a"].value
    assert place(node.place_of("a")) == (1, 1)
    assert place(node.at(("a", 0, "ü😀", 0)).place) == (2, 11)
    assert place(items[0].place_of("ü😀")) == (2, 6)
    assert place(items[1].place_of("k")) == (4, 5)
    assert place(items[1].value["k"].place) == (4, 10)


def test_a_missing_value_stands_after_its_colon():
    """There is nothing to point at, so we point at where it should be."""
    node = read("a:\nb: 1\n")
    assert place(node.value["a"].place) == (1, 3)


@pytest.mark.parametrize(
    ("text", "letter", "line", "column"),
    [
        ("x: abcX", "X", 1, 7),
        ("x: 'it''s X'", "X", 1, 11),
        ('x: "\\u00e9\\t\\\\ X"', "X", 1, 16),
        ("x: |\n  first\n  then X\n", "X", 3, 8),
        ("x: |-\n\n    first\n      deeper X\n", "X", 4, 14),
        ("x: >2\n   lead\n  X\n", "X", 3, 3),
        ("x: >\n  folded\n  text X\n", "X", 3, 8),
        ("x: plain\n   on two X lines\n", "X", 2, 11),
        ("x: 'it''s\n   on\n\n   X'\n", "X", 4, 4),
        ('x: "on\n   two X"\n', "X", 2, 8),
        ("x: |\n  a\n\n  b\n", "\n\n", 2, 4),
        ("x: |\n  a\n\n  b\n", "\nb", 2, 4),
        ('x: "a\\u00e9\n   X"\n', "X", 2, 4),
        ('x: "on \\\n   two X"\n', "X", 2, 8),
        ('x: "on \\\r\n   \\  two X"\r\n', "X", 2, 11),
        ('x: "on\\\n\n \t\n   two X"\n', "X", 4, 8),
        ('x: "\\ud83d\\ude00 on  \n\n  two\\\n  \\"X\\""\n', "X", 4, 5),
        ('x: "\\ud83d\\ude00\\uD83D\\uDE00 X"', "X", 1, 30),
        ('"\\ud83d\\ude00": 1\nx: "\\\\\\\\ \\ud83d\\ude00X"', "X", 2, 22),
        ('{"\\ud83d\\ude00": "\\ud83d\\ude00", "x": "X"}', "X", 1, 40),
        ("x: 'a\n   \"X'\n", "X", 2, 5),
    ],
)
def test_a_character_inside_a_text_has_its_place(text, letter, line, column):
    """Expressions are texts inside scalars; their errors point at the character."""
    node = read(text).value["x"]
    assert place(node.place_at(node.value.index(letter))) == (line, column)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("x: abc", 1, 7),
        ("x: 'abc'", 1, 8),
        ("x: ''", 1, 4),
        ("x: |\n  abc\n", 2, 6),
        ("x: ab\n  c", 2, 4),
        ("x: >+\n\n", 2, 1),
    ],
)
def test_the_end_of_a_text_has_a_place_too(text, line, column):
    """An expression that stops too early is wrong just behind its last character."""
    node = read(text).value["x"]
    assert place(node.place_at(len(node.value.rstrip("\n")))) == (line, column)


def test_a_finding_behind_two_escapes_of_json_has_its_column():
    """A character beyond U+FFFF is twelve in the file, and is read as one escape of ten."""
    node = read('{"\\ud83d\\ude00": {"\\ud83d\\ude00": 1, "b": 2},\n "c": 3, "\\uD83D\\uDE00!": 4}')
    inner = node.value["😀"]
    assert place(node.place_of("😀")) == (1, 2)
    assert place(inner.place) == (1, 18)
    assert place(inner.place_of("b")) == (1, 38)
    assert place(node.place_of("c")) == (2, 2)
    assert place(node.value["😀!"].place) == (2, 27)


PLAIN = "ab'#:é😀"
SPACES = (" ", "\t", "\n", "\r", "\r\n", "\n\n", "\\\n", "\\\r\n")
ESCAPES = ("\\ ", "\\t", "\\n", '\\"', "\\\\", "\\x41", "\\u00e9", "\\U0001F600", "\\ud83d\\ude00")


@given(st.lists(st.sampled_from([*PLAIN, *SPACES, *ESCAPES]), max_size=12))
def test_every_character_of_a_text_in_double_quotes_has_its_place(parts):
    """However its lines are folded, joined and escaped: libyaml says what they mean."""
    written = "".join(parts).replace("\n", "\n ")
    node = read(f'- "{written}"').value[0]

    where = spelling(node.source.text[node.start : node.end], node.value)

    assert len(where) == (len(node.value) + 1 if node.value else 0)
    assert where == sorted(where)
    raw = node.source.text[node.start : node.end]
    for at, character in zip(where, node.value, strict=False):
        wanted = "\\" + (character if character in PLAIN else " \t\r\n")
        assert raw[at] in wanted


@pytest.mark.parametrize("raw", ["a\nb", "a\n"])
def test_a_text_that_is_not_what_is_written_is_told_as_far_as_it_agrees(raw):
    """Nothing is guessed about what comes behind."""
    assert spelling(raw, "a c") == [0, 1]


def test_an_offset_beyond_the_text_falls_back_to_its_start():
    """A place that does not exist must not raise."""
    node = read("x: |\n  ab\n").value["x"]
    assert place(node.place_at(99)) == (1, 4)
