"""Unknown names in expressions: each is reported, once, where it is first written."""

import pytest
from check_kit import all_marked, errors, spec, step, steps

from pawlflow.definition.express import ExpressionError
from pawlflow.definition.express.compile import compile_node
from pawlflow.definition.express.parse import parse_source
from pawlflow.definition.express.scope import Scope, Table

UNKNOWN_NAMES = [
    ("with: {a: '${ §inputt.a } ${ §inptu.b }'}", ["inputt", "inptu"]),
    ("with: {a: '${ §inputt.a + §inptu.b }'}", ["inputt", "inptu"]),
    ("with: {a: '${ §inputt.a + inputt.b }'}", ["inputt"]),
    ("with: {a: '${ input.l.map(x, x + §y + §z) }'}", ["y", "z"]),
    ("when: '${ §inputt.a == §inptu.b }'", ["inputt", "inptu"]),
    ("when: '§inputt.a ? §inptu.b : §nope'", ["inputt", "inptu", "nope"]),
    ("when: steps.my-§long-name.x && §inptu", ["long", "inptu"]),
    (
        "when: '!(§inputt in [§inptu, {\"k\": §nope}][§there])'",
        ["inputt", "inptu", "nope", "there"],
    ),
    ("when: has(§inputt.a) && size(§inptu) > -§nope", ["inputt", "inptu", "nope"]),
]


@pytest.mark.req("R66")
@pytest.mark.parametrize(("field", "names"), UNKNOWN_NAMES)
def test_every_unknown_name_of_an_expression_is_reported_once(field, names):
    """Each where it is first written; a step's name with hyphens is one mistake."""
    text = step(f"run: e.x, {field}") if "with" in field else steps_of_one(field)
    text, places = all_marked(text)
    found = errors(text)
    assert [(each.line, each.column) for each in found] == places
    assert {each.code for each in found} == {"expression.unknown_name"}
    assert [each.message.split("'")[1] for each in found] == names


def steps_of_one(field: str) -> str:
    return spec(f"steps:\n- name: a\n  run: e.x\n  timeout: 1m\n  {field}")


def test_an_unknown_name_does_not_hide_what_else_is_wrong():
    """Nor the other way round; and a hint for one name is none for another."""
    text = steps(
        "{name: a-b, sleep: 1s}",
        "{name: c, run: e.c, timeout: 1m, dependsOn: [a-b],"
        " with: {x: '${ steps.a-b.x } ${ inputt } ${ nope() } ${ later }'}}",
    )
    found = errors(text)
    assert [each.code.removeprefix("expression.") for each in found] == [
        "unknown_name",
        "unknown_name",
        "unknown_function",
        "unknown_name",
    ]
    assert "steps['a-b']" in found[0].hint
    assert "did you mean 'input'?" in found[1].hint


WITH_FUNCTIONS = [
    ("§sze(§inputt) > §inptu", ["unknown_function", "unknown_name", "unknown_name"]),
    ("§inputt.§mpa(x, x + y) == §inptu", ["unknown_name", "unknown_function", "unknown_name"]),
    (
        "§sze(1) + sze(2) + §siz(3) > §inptu",
        ["unknown_function", "unknown_function", "unknown_name"],
    ),
    ("§inputt.a + [§size(1, 2), inptu]", ["unknown_name", "arguments"]),
]


@pytest.mark.parametrize(("source", "codes"), WITH_FUNCTIONS)
def test_an_unknown_function_hides_no_name(source, codes):
    """Nor is the variable of a macro that is misspelt taken for a name."""
    text = steps_of_one(f"when: '{source}'")
    text, places = all_marked(text)
    found = errors(text)
    assert [(each.line, each.column) for each in found] == places
    assert [each.code.removeprefix("expression.") for each in found] == codes


def test_an_unknown_name_hides_no_unknown_step():
    """Each with a suggestion of its own; a part of a name with hyphens is no step."""
    text = spec(
        "steps:\n"
        "- {name: first, sleep: 1s}\n"
        "- {name: last, sleep: 1s}\n"
        "- name: a\n"
        "  run: e.x\n"
        "  timeout: 1m\n"
        "  dependsOn: [first]\n"
        "  when: §inputt.a + steps.§frist.x > steps.first.y + steps.my-§long.z + steps.§last.y\n"
        "  with: {a: '${ §inptu } ${ steps.§fisrt.x }'}"
    )
    text, places = all_marked(text)
    found = sorted(errors(text), key=lambda each: (each.line, each.column))
    assert [(each.line, each.column) for each in found] == places
    assert [each.code.removeprefix("expression.") for each in found] == [
        *("unknown_name", "unknown_step", "unknown_name", "not_ancestor"),
        *("unknown_name", "unknown_step"),
    ]
    for i, name in ((0, "input"), (1, "first"), (4, "input"), (5, "first")):
        assert f"did you mean {name!r}?" in found[i].hint


def test_who_compiles_without_a_report_is_told_the_first_at_once():
    """`pawl sim` and the match of a wait compile parts of expressions by themselves."""
    table = Table(frozenset({"input"}), None)
    with pytest.raises(ExpressionError, match="'nope' is not a name") as refused:
        compile_node(parse_source("nope + never"), Scope(table))
    assert (refused.value.offset, refused.value.more) == (0, [])
    with pytest.raises(ExpressionError, match="no function 'nope'"):
        compile_node(parse_source("nope(never)"), Scope(table))


def test_very_many_unknown_names_are_not_all_told():
    """A hostile text has any number of them."""
    text = " ".join(f"${{ x{i} }}" for i in range(1_000))
    found = errors(step(f"run: e.x, with: {{a: '{text}'}}"))
    assert len([each for each in found if each.code == "expression.unknown_name"]) == 200
