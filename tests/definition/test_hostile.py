"""Hostile and surprising files: refused on the first event that shows it, with its place."""

import pytest
from check_kit import HEAD, assert_one, errors, marked, spec, steps

from pawlflow.definition.finding import RefusedError
from pawlflow.definition.load import load_text, load_workflows
from pawlflow.definition.read import API_LIMITS, DEPTH_MAX, Limits, plain, read_yaml
from pawlflow.definition.report import FINDINGS_MAX, Report

REFUSED = [
    ("a: §&x 1", "yaml.alias", "&x", "write the value out"),
    ("a: §*x", "yaml.alias", "*x", "write the value out"),
    ("§*x : 1", "yaml.alias", "*x", "write the value out"),
    ("a: §!!str 1", "yaml.tag", "tag:yaml.org,2002:str", "quotes"),
    ("a: §!python/object:os.system {}", "yaml.tag", "!python/object", "remove the tag"),
    ("a: §! x", "yaml.tag", "!", "remove the tag"),
    ("a: 1\n§a: 2", "yaml.duplicate_key", "'a'", "remove one"),
    ('a: 1\n§"a": 2', "yaml.duplicate_key", "line 1", "remove one"),
    ("§<<: {a: 1}", "yaml.merge", "<<", "write the fields out"),
    ("§1: x", "yaml.key", "key 1 ", 'write "1"'),
    ("§true: x", "yaml.key", "key true ", 'write "true"'),
    ("§[a]: x", "yaml.key", "list or mapping", "text as key"),
    ("? §{a: b}\n: c", "yaml.key", "list or mapping", "text as key"),
    ("?§ \n: x", "yaml.key", "an empty key", "name before the colon"),
    ("a: §.nan", "yaml.number", ".nan", "quotes"),
    ("a: §-.INF", "yaml.number", "-.INF", "quotes"),
    ("a: §1e999", "yaml.number", "1e999", "quotes"),
    ("a: §18446744073709551616", "yaml.number", "64 bits", "quotes"),
    ("a: §-9223372036854775809", "yaml.number", "64 bits", "quotes"),
    ("a: §" + "9" * 5_000, "yaml.number", "5,000 digits", "quotes"),
    ("a: §0x" + "f" * 17, "yaml.number", "64 bits", "quotes"),
    ('a: §"x\\0"', "yaml.control", "U+0000", "leave it out"),
    ('a: §"\\e[2J"', "yaml.control", "U+001B", "leave it out"),
    ("a: b§\u0007", "yaml.control", "U+0007", "remove it"),
    ("a: x§\ud800", "yaml.control", "U+D800", "remove it"),
    ("a: x§\ufeff", "yaml.control", "U+FEFF", "remove it"),
    ("a: x§\x85b: 1", "yaml.line_break", "U+0085", "\\u0085 in double quotes"),
    ("# a\r\nb: 'x§\u2028y'", "yaml.line_break", "U+2028", "\\u2028 in double quotes"),
    ('{"a": "x§\u2029y"}', "yaml.line_break", "U+2029", "\\u2029 in double quotes"),
    ("a: 1 # b§\u2028c: 1\u2028", "yaml.line_break", "U+2028", "end the line as usual"),
    ("a: [1\nb§: 2", "yaml.syntax", "not YAML", "brackets"),
    ("a: b§: c", "yaml.syntax", "mapping values", "quotes"),
    ("a:\n§\tb: 1", "yaml.syntax", "cannot start", "spaces"),
    ("a: §@b", "yaml.syntax", "cannot start", "quotes"),
    ("§", "yaml.empty", "no document", "apiVersion"),
    ("§# only a comment\n---\n", "yaml.empty", "no document", "apiVersion"),
]


@pytest.mark.req("R63")
@pytest.mark.parametrize(("text", "code", "name", "hint"), REFUSED)
def test_what_yaml_allows_and_we_do_not(text, code, name, hint):
    """One finding, at the place, that says what to write instead."""
    assert_one(yaml_errors(marked(text)[0]), text, code, name, hint)


def yaml_errors(text):
    return [found for found in errors(text) if found.code.startswith("yaml.")]


@pytest.mark.req("R63")
def test_line_breaks_of_unicode_are_read_when_they_are_escaped():
    """As texts they are kept as they are, and lines are counted without them."""
    text = '{"a": "x\\u0085y\\u2028z\\u2029", "b": "\\N\\L\\P"}'
    (node,) = read_yaml(text, "x.json", Report())
    assert plain(node) == {"a": "x\x85y\u2028z\u2029", "b": "\x85\u2028\u2029"}
    assert node.place_of("b").line == 1


@pytest.mark.req("R63")
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_only_ends_of_lines_count_lines(end):
    """The finding stands in the line that an editor shows."""
    (found,) = yaml_errors(f"a: 1{end}b: 2{end}c: x\u2028y")
    assert (found.line, found.column) == (3, 5)


def test_json_pairs_of_escapes_are_one_character():
    """Beyond U+FFFF JSON writes two escapes; read as YAML they mean the same."""
    (node,) = read_yaml('{"a": "\\ud83d\\ude00!"}', "x.json", Report())
    assert plain(node) == {"a": "\U0001f600!"}


def test_a_backslash_that_is_escaped_begins_no_pair():
    """What follows it is half of a pair, and refused; after an escaped one there may be a pair."""
    found = errors('{"a": "\\\\ud83d\\ude00"}')
    assert [(f.code, f.line) for f in found] == [("yaml.syntax", 1)]
    (node,) = read_yaml('{"a": "\\\\\\ud83d\\ude00"}', "x.json", Report())
    assert plain(node) == {"a": "\\\U0001f600"}


def test_an_escape_that_is_no_character_is_refused():
    """Half of a pair is none; the hint says what is."""
    found = errors('a: "\\ud83d"')
    assert [f.code for f in found] == ["yaml.syntax"]
    assert "write the character itself" in found[0].hint


def test_bytes_that_are_not_utf8_are_refused_at_their_place():
    """Latin-1 umlauts, UTF-16 and cut characters."""
    assert [(f.line, f.column, f.code) for f in errors(b"a: 1\nb: \xfc")] == [
        (2, 4, "yaml.not_utf8")
    ]
    assert [f.code for f in errors("a: 1".encode("utf-16"))] == ["yaml.not_utf8"]


BOMB = "a: &a [x]\n" + "".join(
    f"{x}: &{x} [{f'*{y},' * 9}]\n" for x, y in zip("bcdefgh", "abcdefg", strict=True)
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (BOMB, "yaml.alias"),
        ("[" * 10_000, "yaml.depth"),
        ("{a: " * 10_000, "yaml.depth"),
        ("- " * 10_000 + "x", "yaml.depth"),
        ("? " * 10_000 + "x", "yaml.depth"),
        ("".join(" " * i + "a:\n" for i in range(100)), "yaml.depth"),
        ("x: " + "y" * 20_000_000, "yaml.too_large"),
        (b"x: " + b"y" * 20_000_000, "yaml.too_large"),
        ("x: '" + "y" * (1 << 20) + "z'", "yaml.scalar_too_long"),
        ("[" + "*a," * 500_000, "yaml.alias"),
        ("- &a b\n" * 500_000, "yaml.alias"),
        ("k: 1\n" * 500_000, "yaml.duplicate_key"),
        ("---\na\n" * 5_000, "yaml.too_many_documents"),
    ],
)
def test_bombs_are_refused(text, code):
    """Depth, size, aliases: refused where they are seen, long before they are built."""
    found = errors(text)
    assert found[0].code == code
    assert len(found) <= FINDINGS_MAX


def test_depth_is_allowed_up_to_its_limit():
    """The limit itself still reads; one level more does not."""
    assert [f.code for f in errors("[" * DEPTH_MAX + "]" * DEPTH_MAX)] == ["field.type"]
    assert [f.code for f in errors("[" * (DEPTH_MAX + 1))] == ["yaml.depth"]


def test_limits_are_arguments():
    """The API reads less than the command line; each limit can be set."""
    report = Report()
    assert read_yaml("[a, b, c]", "f", report, limits=Limits(nodes_max=3)) == []
    assert report.findings[0].code == "yaml.too_many_nodes"
    text = steps(*(f"{{name: s{i}, run: e.x, timeout: 1m}}" for i in range(2_001)))
    assert [f.code for f in load_workflows(text, "f", limits=API_LIMITS)[1]] == ["steps.too_many"]


def test_mistakes_of_reading_do_not_hide_the_rest():
    """After a duplicate key the file is still checked; after an alias it would be guesswork."""
    found = errors(steps("{name: a, name: b, runn: e.x}"))
    assert [f.code for f in found] == ["yaml.duplicate_key", "field.unknown"]
    assert [f.code for f in errors(steps("{<<: *base, runn: e.x}"))] == ["yaml.merge", "yaml.alias"]


def test_what_follows_from_a_mistake_of_reading_is_not_said():
    """A number that was refused is nothing; that nothing is then no priority either."""
    text = steps("{name: a, run: e.x, priority: .nan}")
    assert [f.code for f in errors(text)] == ["yaml.number"]


def test_a_broken_file_gives_no_workflow():
    """Not even the part of it that could be read."""
    text = HEAD + spec("steps: [{name: a, run: e.x}]").removeprefix(HEAD) + "---\na: 1\na: 2\n"
    assert load_workflows(text, "f")[0] == []


def test_a_report_has_an_end():
    """Two hundred errors are enough, and the last line says that there were more."""
    found = load_workflows(steps(*["{name: a, runn: e.x}"] * 300), "f")[1]
    assert len([f for f in found if f.severity == "error"]) == FINDINGS_MAX
    assert found[-1].code == "report.full"


def test_warnings_have_an_end_but_stop_nothing():
    """A big workflow without timeouts is still a workflow."""
    lines = [f"{{name: s{i}, run: e.x}}" for i in range(300)]
    workflows, found = load_workflows(steps(*lines), "f")
    assert len(workflows[0].steps) == 300
    assert found[-1].code == "report.full"
    assert "102 more warnings" in found[-1].message


def test_load_text_raises_with_all_findings():
    """For callers that only want documents: all or nothing."""
    with pytest.raises(RefusedError, match=r"f:1:4: .*alias") as caught:
        load_text("a: *x\n---\nb: &y 1", "f")
    assert [f.line for f in caught.value.findings] == [1, 3]
    assert [(d.kind, d.place.line) for d in load_text(HEAD + "spec: {}", "f")] == [("Workflow", 1)]
