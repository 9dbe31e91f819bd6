"""Templates by example: what `${ }` gives alone, in text, in maps and in lists."""

import pytest
from express_kit import INPUT, ROOTS, is_same, values_of

from pawlflow.definition.express import ExpressionError, compile_template

TEMPLATES = [
    ("plain", "plain"),
    (7, 7),
    ("", ""),
    ("${ input.n }", 7),
    ("${input.list}", [1, 2, 3]),
    ("n=${ input.n }!", "n=7!"),
    (" ${ input.n }", " 7"),
    ("${ input.n }${ input.half }", "70.5"),
    ("<${ input.none }>", "<null>"),
    ("<${ input.map }>", '<{"a":2,"b":1}>'),
    ("<${ [1.5, 'é', null, true, {}] }>", '<[1.5,"é",null,true,{}]>'),
    ("<${ b'abc' }>", "<abc>"),
    ("$${ input.n }", "${ input.n }"),
    ("$$${ input.n }", "$${ input.n }"),
    ("a$${b}${ input.n }", "a${b}7"),
    ("${ {'a': {'}': 1}} }", {"a": {"}": 1}}),
    ("costs $5 or {5}", "costs $5 or {5}"),
    ({"${k}": ["${ input.n }", {"c": 1}]}, {"${k}": [7, {"c": 1}]}),
    ({"token": {"$secret": "${x}"}}, {"token": {"$secret": "${x}"}}),
    ({"$secret": "${ input.n }", "b": 1}, {"$secret": 7, "b": 1}),
    ("<${ input.bytes }>", "expression.convert"),
    ("<${ [input.bytes] }>", "expression.convert"),
    ("${ input.n", "expression.syntax"),
    (["${ inputs.n }"], "expression.unknown_name"),
]


@pytest.mark.parametrize(("template", "result"), TEMPLATES)
def test_templates_fill_in_values(template, result):
    """One expression keeps its type; text around it makes text; keys and secrets stay."""
    try:
        compiled = compile_template(template, roots=ROOTS)
        value = compiled.evaluate(values_of(compiled.refs, {"input": INPUT}))
    except ExpressionError as error:
        value = error.code
    assert is_same(value, result)


def test_a_template_knows_whether_it_is_constant():
    """Without an expression there is nothing to evaluate; an escaped one is text."""
    assert compile_template({"a": ["x", 1, "$${ y }"]}, roots=ROOTS).constant
    assert not compile_template({"a": ["x", "${ 1 }"]}, roots=ROOTS).constant


def test_a_template_lists_where_it_reads():
    """Each ref with the path of its string and the offset in it."""
    template = compile_template(
        {"a": "${ input.x }", "b": ["t ${ steps.build } ${ input.y }"]}, roots=ROOTS
    )
    assert template.refs == (("input",), ("steps", "build"))
    assert template.ref_places == ((("a",), 3), (("b", 0), 11))


def test_a_template_error_names_its_string():
    """Check time: path and offset. Run time: path."""
    with pytest.raises(ExpressionError) as checked:
        compile_template({"a": [1, "n ${ 1 + } "]}, roots=ROOTS)
    assert (checked.value.path, checked.value.offset) == (("a", 1), 9)
    template = compile_template({"a": {"b": "${ 1 / input }"}}, roots=ROOTS)
    with pytest.raises(ExpressionError) as caught:
        template.evaluate([0])
    assert (caught.value.path, caught.value.code) == (("a", "b"), "expression.divide_by_zero")


def test_results_of_a_template_are_apart():
    """Filling in does not touch the template or an earlier result."""
    template = compile_template({"a": "${ input }", "b": 1}, roots=ROOTS)
    first, second = template.evaluate([1]), template.evaluate([2])
    assert (first, second) == ({"a": 1, "b": 1}, {"a": 2, "b": 1})
