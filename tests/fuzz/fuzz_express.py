"""Fuzzing expressions: any text over any value ends in a value or an ExpressionError, twice alike.

As a script, with coverage feedback: `python tests/fuzz/fuzz_express.py -atheris_runs=50000`.
"""

import math
import sys

import atheris

with atheris.instrument_imports(include=["pawlflow.definition.express"]):
    from pawlflow.definition.express import (
        COST_MAX,
        Expression,
        ExpressionError,
        Template,
        compile_expression,
        compile_template,
    )

ROOTS = frozenset({"input", "steps", "item", "event"})
WORDS = (
    *("input", "steps", "x", "tag", "1", "0", "2.5", "9223372036854775807", "'a'", "b'c'", "null"),
    *("true", "in", "size(", "has(", "int(", "string(", "double(", ".a", ".map(x,", ".all(x,"),
    *(".exists(x,", ".filter(x,", ".matches('", "(a|b)*", "[^a-z]+", "')", "[", "]", "{", "}"),
    *("(", ")", ",", ":", "?", "+", "-", "*", "/", "%", "!", "<", "==", "&&", "||", "${", "$${"),
    *("'", '"""', "\\", "//", "\n", "\x00", "é", "\ud800", ".", "`", "r'", "if"),
)


def fuzz(source, value):
    """The invariants, for an expression with and without fallback, and for a template."""
    for fallback in (None, "event"):
        check(lambda: compile_expression(source, roots=ROOTS, fallback=fallback), value)  # noqa: B023
    check(lambda: compile_template([source, {"k": f"x{source}y"}], roots=ROOTS), value)


def check(compile_it, value):
    """Compile twice, evaluate each: all four outcomes are the same."""
    first, second = outcome(compile_it), outcome(compile_it)
    if isinstance(first, Expression | Template) and isinstance(second, Expression | Template):
        values = [value] * len(first.refs)
        before = repr(value)
        results = [outcome(each.evaluate, values) for each in (first, first, second)]
        assert repr(results[0]) == repr(results[1]) == repr(results[2])
        assert repr(value) == before
        assert all_finite(results[0])
        spent = outcome(first.cost, values)
        assert isinstance(spent, tuple) or 0 <= spent <= COST_MAX
    else:
        assert first == second


def outcome(act, *arguments):
    """What a call gives, or the whole of the ExpressionError it raises."""
    try:
        return act(*arguments)
    except ExpressionError as error:
        assert error.code.startswith("expression.")
        assert error.message
        return (error.code, error.message, error.offset, error.hint, error.path)


def all_finite(value):
    """Whether no infinity and no NaN is anywhere in a value."""
    if isinstance(value, list | tuple | dict):
        return all(map(all_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)


def main():
    """Let atheris choose the words and the value."""

    def run(data):
        provider = atheris.FuzzedDataProvider(data)
        value = consume_value(provider, 3)
        words = [
            WORDS[provider.ConsumeIntInRange(0, len(WORDS) - 1)]
            for _ in range(provider.ConsumeIntInRange(0, 24))
        ]
        fuzz("".join(words) + provider.ConsumeUnicode(16), value)

    atheris.Setup(sys.argv, run)
    atheris.Fuzz()


def consume_value(provider, depth):
    """A JSON-like value out of fuzzed bytes."""
    match provider.ConsumeIntInRange(0, 8 if depth else 5):
        case 0:
            return None
        case 1:
            return provider.ConsumeBool()
        case 2:
            return provider.ConsumeIntInRange(-(2**63), 2**64 - 1)
        case 3:
            return provider.ConsumeRegularFloat()
        case 4:
            return provider.ConsumeUnicode(8)
        case 5:
            return provider.ConsumeBytes(8)
        case 6:
            return [consume_value(provider, depth - 1) for _ in range(3)]
        case _:
            keys = ["a", "tag", provider.ConsumeUnicode(4)]
            return {key: consume_value(provider, depth - 1) for key in keys}


if __name__ == "__main__":
    main()
