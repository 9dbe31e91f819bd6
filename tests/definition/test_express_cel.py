"""Against CEL itself: typed expressions, made up by Hypothesis, mean the same in both.

The oracle is cel-cpp (`cel_expr_python`). Left out of what is made up, because here we differ on
purpose (docs/expressions.md, "Differences from CEL"):

- missing members and indexes outside a list are null, not errors;
- int and double mix in arithmetic, and compare exactly where cel-cpp rounds integers to doubles;
- infinity and NaN are errors, so doubles stay small here and are divided by constants only;
- map keys are strings; maps are gone through in key order (cel-cpp: in any order);
- `int()` and `double()` take decimal text only, and no bool;
- `has(x['y'])`, which CEL does not know.
"""

import pytest
from cel_expr_python import cel
from cel_expr_python.ext import ext_strings
from express_kit import is_same
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.definition.express import ExpressionError, compile_expression

FAILED = "failed"
ORACLE = cel.NewEnv(variables={"input": cel.Type.DYN}, extensions=[ext_strings.ExtStrings()])
INT_MAX = 2**63 - 1
TEXT = "abzAZ09 é😀_-"


def ours(source, scope):
    """What we make of it."""
    try:
        expression = compile_expression(source, roots=frozenset({"input"}))
        return expression.evaluate([scope] * len(expression.refs))
    except ExpressionError:
        return FAILED


def theirs(source, scope):
    """What CEL makes of it; run-time errors come back as a value."""
    try:
        value = ORACLE.compile(source, disable_check=True).eval(data={"input": scope})
    except RuntimeError:
        return FAILED
    return FAILED if value.type() == cel.Type.ERROR else plain(value.plain_value())


def plain(value):
    """Bytes as bytes; everything else as it is."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    return bytes(value) if isinstance(value, bytearray) else value


def made(template, *parts):
    """An expression with other expressions in its holes, in brackets."""
    return st.tuples(*parts).map(lambda found: template.format(*(f"({p})" for p in found)))


def grown(leaf, *branches):
    """Leaves first, so that Hypothesis shrinks towards them."""
    return st.one_of(leaf, *branches)


def quoted(text):
    """A string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def kinds(depth):
    """Strategies for expressions of each type, nested up to this depth."""
    if depth == 0:
        return LEAVES
    below = kinds(depth - 1)
    ints, doubles, texts, bools, lists = below.values()
    return {
        "int": grown(
            ints,
            *(made(f"{{}} {sign} {{}}", ints, ints) for sign in "+-*/%"),
            made("-{}", ints),
            made("size({})", texts),
            made("{}.size()", lists),
            made("{} ? {} : {}", bools, ints, ints),
            made("int({})", doubles),
            made("int(string({}))", ints),
        ),
        "double": grown(
            doubles,
            *(made(f"{{}} {sign} {{}}", doubles, doubles) for sign in "+-*"),
            made("{} / 4.0", doubles),
            made("-{}", doubles),
            made("double(string({}))", doubles),
        ),
        "text": grown(
            texts,
            made("{} + {}", texts, texts),
            *(made("string({})", kind) for kind in (ints, doubles, bools, texts)),
            made("{}.lowerAscii()", texts),
            made("{}.upperAscii()", texts),
        ),
        "bool": truths(*below.values()),
        "list": grown(
            lists,
            made("[{}, {}]", ints, ints),
            made("{} + {}", lists, lists),
            made("{}.map(x, x - {})", lists, ints),
            made("{}.map(x, x > {}, [x])", lists, ints),
            made("{}.filter(x, x != {})", lists, ints),
        ),
    }


def truths(ints, doubles, texts, bools, lists):
    """Expressions that give a bool, of parts one level below."""
    order = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    like = st.one_of(*(st.tuples(kind, kind) for kind in (ints, doubles, texts, bools)))
    compared = st.tuples(order, like).map(lambda f: f"({f[1][0]}) {f[0]} ({f[1][1]})")
    unlike = st.tuples(st.sampled_from(["==", "!=", "+", "<", "&&"]), ints, texts)
    return grown(
        bools,
        compared,
        unlike.map(lambda f: f"({f[1]}) {f[0]} ({f[2]})"),
        made("!{}", bools),
        made("{} && {}", bools, bools),
        made("{} || {} || {}", bools, bools, bools),
        made("{} == {}", lists, lists),
        made("{} in {}", ints, lists),
        made("{} in {}", texts, lists),
        made("{}.contains({})", texts, texts),
        made("{}.startsWith({})", texts, texts),
        made("{}.endsWith({})", texts, texts),
        made("{}.all(x, x > {})", lists, ints),
        made("{}.exists(x, {} / x > 0)", lists, ints),
        made("{}.exists_one(x, x > {})", lists, ints),
        made("input.m.exists(k, k == {})", texts),
    )


INTS = st.one_of(st.integers(-9, 9), st.integers(-INT_MAX - 1, INT_MAX))
DOUBLES = st.floats(-1000, 1000, allow_nan=False).map(lambda value: round(value, 3))
TEXTS = st.text(TEXT, max_size=4)
LEAVES = {
    "int": grown(INTS.map(str), st.just("input.i"), st.just("input.l[0]")),
    "double": grown(DOUBLES.map(str), st.just("input.d")),
    "text": grown(TEXTS.map(quoted), st.just("input.s")),
    "bool": st.sampled_from(["true", "false", "input.b", "has(input.s)", "has(input.zz)"]),
    "list": st.sampled_from(["[]", "[1, 2]", "input.l", "[0, input.i]"]),
}
SCOPES = st.fixed_dictionaries(
    {
        "i": INTS,
        "d": DOUBLES,
        "s": TEXTS,
        "b": st.booleans(),
        "l": st.lists(st.integers(-3, 3), min_size=1, max_size=4),
        "m": st.dictionaries(TEXTS, INTS, max_size=3),
    }
)


@pytest.mark.req("R67")
@given(source=st.one_of(*kinds(3).values()), scope=SCOPES)
def test_typed_expressions_mean_what_they_mean_in_cel(source, scope):
    """The same value of the same type, or an error on both sides."""
    assert is_same(ours(source, scope), theirs(source, scope)), source


WORDS = ["1", "2.5", "'a'", "b'x'", "true", "null", "input", "x", "if", "in", "size", "map", "has"]
SIGNS = ["+", "-", "*", "/", "%", "!", "<", "==", "&&", "||", "?", ":", ".", ",", "(", ")"]
SIGNS += ["[", "]", "{", "}"]


@given(st.lists(st.sampled_from(WORDS + SIGNS), min_size=1, max_size=9).map(" ".join))
def test_what_we_can_read_cel_can_read(source):
    """A subset: no text is an expression here and nonsense there."""
    try:
        compile_expression(source, roots=frozenset({"input", "x", "map", "has", "size"}))
    except ExpressionError:
        return
    if "has ( " not in source:
        ORACLE.compile(source, disable_check=True)


LITERALS = [
    *("1", "-1", "0x7f", "-0x10", "01", ".5", "1.5e3", "1E-2", "-9223372036854775808"),
    *("'a\\'b'", '"a\'b"', "'''a\n'b'''", '"""a"b"""', "r'\\d'", 'R"\\d"', "''", '""""""'),
    *("'\\x41\\u00e9\\U0001F600\\101'", "'\\a\\b\\f\\n\\r\\t\\v\\\\\\?\\`'", "b'\\xff\\377é'"),
    *("br'\\n'", "b'''a'''", "'\\8'", "'\\u12'", "'\\ud800'", "'\\U00110000'", "b'\\u00e9'"),
    *("'a\nb'", "'abc", "1.", "0x", "1e", "1.2.3", "9223372036854775808", "1 // c", "[1,]"),
    *("[1, 2][1]", "[1, 2][1.0]", "{'a': 1,}.a", "{'a': 1}['a']", "input.`i`", "input.package"),
    *("true ? 1 : true ? 2 : 3", "true ? true ? 1 : 2 : 3", "--1", "!!true", "1 < 2 == true"),
    *("1 - 1 - 1", "7 / 2 * 2", "-7 % 3", "true || true && false", "1 + 2 * 3 == 7", "-input.i"),
]


@pytest.mark.parametrize("source", LITERALS)
def test_spelling_is_that_of_cel(source):
    """Literals, escapes and precedence, one by one."""
    scope = {"i": 1, "package": 2}
    assert is_same(ours(source, scope), theirs(source, scope))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_are_written_as_cel_writes_them(value):
    """The shortest digits that read back as the same double."""
    assert ours("string(input)", value) == theirs("string(input)", value)
