"""Mistakes in expressions: how each is named, where it is, and the way out."""

import pytest
from express_kit import ROOTS

from pawlflow.definition.express import ExpressionError, compile_expression

REFUSALS = [
    ("", "expression.syntax", 0),
    ("  // nothing", "expression.syntax", 12),
    ("1 +", "expression.syntax", 3),
    ("1 1", "expression.syntax", 2),
    ("(1", "expression.syntax", 2),
    ("[1, 2", "expression.syntax", 5),
    ("{1}", "expression.syntax", 2),
    ("size(1,)", "expression.syntax", 7),
    ("size(1 2)", "expression.syntax", 7),
    ("1 }", "expression.syntax", 2),
    ("${ 1", "expression.syntax", 0),
    ("${ 1 } 2", "expression.syntax", 6),
    ("${ 1 +", "expression.syntax", 6),
    ("input.", "expression.syntax", 6),
    ("input.in", "expression.syntax", 6),
    ("input.1", "expression.syntax", 5),
    ("input = 1", "expression.syntax", 6),
    ("'abc", "expression.syntax", 0),
    ("a & b", "expression.syntax", 2),
    ("1 ? 2", "expression.syntax", 5),
    ("true ? true ? 1 : 2 : 3", "expression.syntax", 12),
    (r"'ab\q'", "expression.syntax", 3),
    (r"'\ud800'", "expression.syntax", 1),
    (r"'\U00110000'", "expression.syntax", 1),
    (r"b'\u0041'", "expression.syntax", 2),
    ("while", "expression.syntax", 0),
    ("[1].map(if, 1)", "expression.syntax", 8),
    ("[1].map(1, 2)", "expression.syntax", 4),
    ("has(input)", "expression.syntax", 0),
    ("[1].map(x, has(x))", "expression.syntax", 11),
    ("has(1)", "expression.syntax", 0),
    ("9223372036854775808", "expression.overflow", 0),
    ("1 + 99999999999999999999999", "expression.overflow", 4),
    ("0x" + "f" * 50, "expression.overflow", 0),
    ("1e999", "expression.overflow", 0),
    ("input.a == inptu.b", "expression.unknown_name", 11),
    ("[1].map(x, y)", "expression.unknown_name", 11),
    ("1 + sizes(input)", "expression.unknown_function", 4),
    ("input.size().sizes()", "expression.unknown_function", 13),
    ("contains('a', 'b')", "expression.unknown_function", 0),
    ("all([1], x)", "expression.unknown_function", 0),
    ("input.n.int()", "expression.unknown_function", 8),
    ("input.has(x)", "expression.unknown_function", 6),
    ("size()", "expression.arguments", 0),
    ("'a'.size(1)", "expression.arguments", 4),
    ("has()", "expression.arguments", 0),
    ("[1].map(x)", "expression.arguments", 4),
    ("{1: 2}", "expression.type", 1),
    ("'a'.matches('(')", "expression.regex", 12),
    ("'a'.matches(1)", "expression.type", 12),
]


@pytest.mark.req("R67")
@pytest.mark.parametrize(("source", "code", "offset"), REFUSALS)
def test_a_bad_expression_is_refused_where_it_is_bad(source, code, offset):
    """A check-time error has a stable code and the offset of the offending token."""
    error = refusal(source)
    assert (error.code, error.offset, error.path) == (code, offset, ())
    assert error.message == str(error)


HINTS = [
    ("inptu.a", "did you mean 'input'?"),
    ("zzz", "known: event, index, input, instance, item, steps"),
    ("[1].map(thing, thign)", "did you mean 'thing'?"),
    ("'a'.startWith('b')", "did you mean 'startsWith'?"),
    ("contains('a', 'b')", "write it after the value, as in x.contains(...)"),
    ("input.string()", "write it before the value, as in string(x)"),
    ("input = 1", "did you mean '=='?"),
    ("${ 1", "write $${ for a literal ${"),
]


@pytest.mark.parametrize(("source", "hint"), HINTS)
def test_a_refusal_names_the_way_out(source, hint):
    """Near names are suggested; without one, all of them are listed."""
    assert refusal(source).hint == hint


def test_run_time_errors_say_what_was_found():
    """The message names operator and kinds; the hint explains the null of a missing member."""
    expression = compile_expression("input.count + 1", roots=ROOTS)
    with pytest.raises(ExpressionError) as caught:
        expression.evaluate([{}])
    assert caught.value.message == (
        "'+' takes two numbers, strings, bytes or lists, not null and int"
    )
    assert "has()" in caught.value.hint
    assert caught.value.offset is None


def refusal(source, **options):
    """The error that checking an expression ends with."""
    with pytest.raises(ExpressionError) as caught:
        compile_expression(source, roots=ROOTS, **options)
    return caught.value


@pytest.mark.parametrize(
    ("source", "hint"),
    [("input.a and input.b", "&&"), ("input.a or input.b", "||"), ("input.a is null", "==")],
)
def test_words_of_other_languages_get_their_cel(source, hint):
    """Whoever thinks in Python is told how it is written here."""
    with pytest.raises(ExpressionError) as found:
        compile_expression(source, roots=frozenset({"input"}))
    assert hint in found.value.hint
