"""Unknown names in expressions: each is reported, once, where it is first written."""

import pytest
from check_kit import errors, marked, spec, step, steps

UNKNOWN_NAMES = [
    ("with: {a: '${ §inputt.a } ${ §inptu.b }'}", ["inputt", "inptu"]),
    ("with: {a: '${ §inputt.a + §inptu.b }'}", ["inputt", "inptu"]),
    ("with: {a: '${ §inputt.a + inputt.b }'}", ["inputt"]),
    ("with: {a: '${ input.l.map(x, x + §y + §z) }'}", ["y", "z"]),
    ("when: '${ §inputt.a == §inptu.b }'", ["inputt", "inptu"]),
    ("when: '§inputt.a ? §inptu.b : §nope'", ["inputt", "inptu", "nope"]),
    ("when: steps.my-§long-name.x && §inptu", ["long", "inptu"]),
]


@pytest.mark.req("R66")
@pytest.mark.parametrize(("field", "names"), UNKNOWN_NAMES)
def test_every_unknown_name_of_an_expression_is_reported_once(field, names):
    """Each where it is first written; a step's name with hyphens is one mistake."""
    text = step(f"run: e.x, {field}") if "with" in field else steps_of_one(field)
    places = []
    while "§" in text:
        text, line, column = marked(text)
        places.append((line, column))
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
    ]
    assert "steps['a-b']" in found[0].hint
    assert "did you mean 'input'?" in found[1].hint


def test_very_many_unknown_names_are_not_all_told():
    """A hostile text has any number of them."""
    text = " ".join(f"${{ x{i} }}" for i in range(1_000))
    found = errors(step(f"run: e.x, with: {{a: '{text}'}}"))
    assert len([each for each in found if each.code == "expression.unknown_name"]) == 200
