"""Hostile expressions: whatever is written or passed in, an evaluation ends soon and in order."""

import gc
import sys

import pytest

from pawlflow.definition.express import (
    COST_MAX,
    DEPTH_MAX,
    SOURCE_MAX,
    ExpressionError,
    compile_expression,
    compile_template,
)

ROOTS = frozenset({"input"})


def outcome(source, value=None):
    """The value of an expression over `input`, or the code of its error."""
    try:
        expression = compile_expression(source, roots=ROOTS)
        return expression.evaluate([value] * len(expression.refs))
    except ExpressionError as error:
        return error.code


DEEP = [
    "(" * 8_000 + ")" * 8_000,
    "(" * DEPTH_MAX + "1" + ")" * DEPTH_MAX,
    "[" * 8_000,
    "{'a':" * 3_000,
    "size(" * 3_000,
    "input[" * 2_000,
    "1+(" * 5_000,
    "true||true&&1<1+1*(" * 800,
    "input" + ".size()" * 2_000,
    "(" * 30 + "input" + (".size()" * 30 + ")") * 30,
    "input" + "[input]" * 2_000,
    "input" + ".map(x, x)" * 1_000,
]


@pytest.mark.req("R67")
@pytest.mark.parametrize("source", DEEP, ids=lambda source: source[:20])
def test_deep_nesting_is_refused_before_it_is_followed(source):
    """Never a RecursionError, whichever construct is nested."""
    assert outcome(source) == "expression.too_deep"


LONG = [
    ("!" * 16_000 + "true", True),
    ("-" * 16_001 + "1", -1),
    ("-" * 16_000 + "input", 5),
    ("input" + ".a" * 8_000, "expression.type"),
    ("1" + "+1" * 8_000, 8_001),
    ("true" + "&&true" * 2_700, True),
    ("false" + "?1:false" * 2_000 + "?1:2", 2),
    ("[" + "1," * 8_000 + "]", [1] * 8_000),
    ("input" + " == 5" * 3_000, False),
    ("1" + " " * 16_000, 1),
    ("'" + "a" * 16_000 + "'", "a" * 16_000),
    ("// " + "c" * 16_000 + "\n1", 1),
    ("(" * (DEPTH_MAX - 1) + "7" + ")" * (DEPTH_MAX - 1), 7),
]


@pytest.mark.parametrize(("source", "result"), LONG, ids=lambda part: str(part)[:12])
def test_long_flat_text_is_no_nesting(source, result):
    """Chains of one operator or of members are loops, however long."""
    assert outcome(source, 5) == result


TOO_LONG = [
    "1" * (SOURCE_MAX + 1),
    "${" + " " * SOURCE_MAX + "1}",
    "(" * 100_000,
    "'" * 1_000_000,
]


@pytest.mark.parametrize("source", TOO_LONG, ids=lambda source: source[:10])
def test_text_beyond_the_limit_is_not_read(source):
    """16 KiB for an expression, braces or not."""
    assert outcome(source) == "expression.too_long"


def test_long_text_around_expressions_is_fine():
    """The limit is for expressions; a template's text may be as long as a document."""
    template = compile_template("x" * 100_000 + "${ input }", roots=ROOTS)
    assert template.evaluate([1]) == "x" * 100_000 + "1"


ENDLESS = [
    ("input.map(a, input.map(b, input.map(c, a + b + c)))", [1] * 1_000),
    ("input.all(a, input.all(b, input.all(c, true || a == b)))", [1] * 1_000),
    ("input.exists(a, 1 / 0 > 0 || input.exists(b, input.exists(c, false)))", [1] * 1_000),
    ("input.map(a, input + input)", [1] * 10_000),
    ("input.map(a, input == input)", [[1] * 1_000] * 1_000),
    ("input.map(a, a in input)", list(range(2_000))),
    ("input.map(a, a + a + a + a)", ["x" * 1_000_000] * 9),
    ("input.map(a, a == a + '')", ["x" * 1_000_000] * 9),
    ("input.map(a, a < a + '')", ["x" * 1_000_000] * 99),
    ("input.map(a, a.contains('y'))", ["x" * 1_000_000] * 99),
    ("input.map(a, a.lowerAscii())", ["x" * 1_000_000] * 99),
    ("input.map(a, string(a))", [b"x" * 1_000_000] * 99),
    ("input.map(a, a.matches('(x*)*y'))", ["x" * 100_000] * 99),
    ("input.map(a, a.matches(a))", ["(a|b){99}"] * 9_999),
    ("input.map(a, int(a))", ["0" * 1_000_000] * 99),
    ("input.map(a, double(a))", ["0" * 1_000_000] * 99),
    ("{'k': input}.map(k, input.map(i, {'k': input} == {'k': input}))", [{"a": 1}] * 2_000),
]


@pytest.mark.req("R67")
@pytest.mark.parametrize(("source", "value"), ENDLESS, ids=[source for source, _ in ENDLESS])
def test_expensive_expressions_run_out_of_budget(source, value):
    """Loops, copies, comparisons, conversions and patterns are all on the meter."""
    assert outcome(source, value) == "expression.cost"


def test_a_budget_cannot_be_absorbed():
    """`|| true` saves no expression that has spent everything."""
    assert outcome("input.all(a, true) || true", [1] * COST_MAX) == "expression.cost"


def test_a_template_has_one_budget():
    """Many expressions in one template share it."""
    part = "${ input.all(a, a == 1) }"
    template = compile_template([part] * 10, roots=ROOTS)
    assert template.cost([[1] * 1_000]) == 10 * 1_000 * 4
    with pytest.raises(ExpressionError) as caught:
        template.evaluate([[1] * 100_000])
    assert (caught.value.code, caught.value.path) == ("expression.cost", (2,))


def nested(depth):
    """A list in a list in a list."""
    value = []
    for _ in range(depth):
        value = [value]
    return value


def test_deep_values_are_compared_without_recursion():
    """Data may be nested deeper than the interpreter's stack."""
    deep = sys.getrecursionlimit() * 3
    expression = compile_expression("input.a == input.b", roots=ROOTS)
    assert expression.evaluate([{"a": nested(deep), "b": nested(deep)}]) is True
    assert expression.evaluate([{"a": nested(deep), "b": nested(deep + 1)}]) is False
    gc.collect()


def test_deep_values_do_not_become_text():
    """The JSON encoder recurses, so what is too deep is refused before."""
    template = compile_template("<${ input }>", roots=ROOTS)
    assert template.evaluate([nested(100)]) == "<" + "[" * 101 + "]" * 101 + ">"
    with pytest.raises(ExpressionError) as caught:
        template.evaluate([nested(5_000)])
    assert caught.value.code == "expression.too_deep"


def test_shared_values_are_paid_for_before_they_are_written():
    """A thousand mentions of one text are a thousand texts in JSON."""
    template = compile_template("<${ input.map(i, input) }>", roots=ROOTS)
    with pytest.raises(ExpressionError) as caught:
        template.evaluate([[{"k" * 50_000: "v" * 50_000}] * 60])
    assert caught.value.code == "expression.cost"


def test_deep_templates_are_refused():
    """A template nests as deep as an expression may."""
    with pytest.raises(ExpressionError) as caught:
        compile_template(nested(100_000), roots=ROOTS)
    assert caught.value.code == "expression.too_deep"
    assert caught.value.path == (0,) * DEPTH_MAX
    assert compile_template(nested(DEPTH_MAX - 1), roots=ROOTS).constant
