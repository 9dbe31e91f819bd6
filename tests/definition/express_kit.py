"""What the tests of the expression language share: a scope, and how it is bound."""

from pawlflow.definition.express import ExpressionError, compile_expression

ROOTS = frozenset({"input", "steps", "item", "index", "instance", "event"})
INPUT = {
    "repo": "pawl",
    "n": 7,
    "half": 0.5,
    "big": 2**64 - 1,
    "yes": True,
    "none": None,
    "list": [1, 2, 3],
    "map": {"b": 1, "a": 2},
    "texts": ["x", "y"],
    "bytes": b"\xff",
    "a-b": "dash",
}
STEPS = {"build": [{"image": "i0"}, {"image": "i1"}], "a-b": {"ok": True}, "idle": None}


def values_of(refs, scope):
    """Values parallel to refs, as the kernel binds them: steps one by one when named."""
    return [scope[ref[0]] if len(ref) == 1 else scope["steps"].get(ref[1]) for ref in refs]


def calculate(source, *, roots=ROOTS, fallback=None, **scope):
    """The value of an expression, or the code of the error it ends with."""
    bound = {"input": INPUT, "steps": STEPS, "event": {"tag": "v1"}, **scope}
    try:
        expression = compile_expression(source, roots=roots, fallback=fallback)
        return expression.evaluate(values_of(expression.refs, bound))
    except ExpressionError as error:
        return error.code


def is_same(left, right):
    """Equal and of one type, all the way down: 1, 1.0 and True are three values."""
    return repr(left) == repr(right)
