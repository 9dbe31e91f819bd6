"""Regular expressions: the same verdicts as `re` and RE2, in steps that grow with the text."""

import re

import pytest
from cel_expr_python import cel
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.definition.express import ExpressionError, compile_expression
from pawlflow.definition.express.regex import MEMORY_MAX, Regex

FAILED = "failed"
RE2 = cel.NewEnv(variables={"t": cel.Type.STRING, "p": cel.Type.STRING}).compile("t.matches(p)")


def found(pattern, text):
    """Our verdict."""
    try:
        return Regex(pattern).search(text)
    except ExpressionError as error:
        assert error.code == "expression.regex"
        return FAILED


def re2(pattern, text):
    """The verdict of RE2, the engine of CEL."""
    value = RE2.eval(data={"t": text, "p": pattern})
    return FAILED if value.type() == cel.Type.ERROR else value.value()


CHARS = st.sampled_from("ab1_ \n-")
ATOMS = st.one_of(
    CHARS.map(re.escape),
    st.sampled_from([".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", r"\n", r"\x61", "é"]),
    st.sampled_from(["[ab]", "[^a]", "[a-z0-9]", r"[^\w\n]", r"[\d_-]", "[]a]", "[^]a]"]),
    st.sampled_from(["^", r"\A", r"\b", r"\B", "$"]),
)
QUANTIFIERS = st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?", "??", "{1,2}?"])


def larger(parts):
    """Patterns made of patterns."""
    group = parts.map(lambda part: f"(?:{part})")
    return st.one_of(
        st.lists(parts, max_size=4).map("".join),
        st.lists(parts, min_size=2, max_size=3).map("|".join).map(lambda part: f"({part})"),
        st.tuples(group, QUANTIFIERS).map("".join),
        parts.map(lambda part: f"(?s:{part})"),
        parts.map(lambda part: f"(?m:{part})"),
        parts.map(lambda part: f"(?i:{part})"),
    )


PATTERNS = st.recursive(ATOMS, larger, max_leaves=8)
TEXTS = st.text("abAB1_ \n-é", max_size=12)


@given(PATTERNS, TEXTS)
def test_verdicts_are_those_of_re2(pattern, text):
    r"""RE2 is what CEL prescribes. It looks between the bytes of `é` for `\B`, we do not."""
    if r"\B" in pattern:
        text = text.replace("é", "")
    assert found(pattern, text) == re2(pattern, text)


@given(PATTERNS, TEXTS)
def test_verdicts_are_those_of_python(pattern, text):
    r"""Where the two dialects agree: `$` of RE2 is the end of the text, Python's `\Z`."""
    if "(?m:" not in pattern and text:  # Python before 3.14: no \B in an empty text
        python = pattern.replace("$", r"\Z")
        assert found(pattern, text) == bool(re.search(python, text, re.ASCII))


@given(st.text("ab01{},()[]|*+?^$\\.:-xdQzbiPsm<>_", max_size=10), TEXTS)
def test_nonsense_is_refused_or_means_what_re2_says(pattern, text):
    """Whatever is written: our verdict is RE2's, unless we refuse the pattern."""
    verdict = found(pattern, text)
    assert verdict in (FAILED, re2(pattern, text))


SPELLINGS = [
    ("", "", True),
    ("a|b|", "x", True),
    ("^(?:a|bc|d)$", "bc", True),
    ("(?i)AbC", "aBc", True),
    ("(?i)[^a]", "A", False),
    ("(?i)straße", "STRAßE", True),
    ("(?i)a(?-i)b", "AB", False),
    ("(a(?i)b)c", "aBC", False),
    ("(?i:a)b", "AB", False),
    ("a(?i)b|c", "C", True),
    ("(?s).", "\n", True),
    ("(?m)^b$", "a\nb\nc", True),
    ("^b$", "a\nb\nc", False),
    ("a$", "a\n", False),
    (r"\bfoo\b", "a foo b", True),
    (r"\Bo", "foo", True),
    (r"\Aa\z", "a", True),
    ("(?P<year>[0-9]{4})", "in 2024", True),
    ("(?<year>[0-9]{4})", "in 24", False),
    ("a{,2}", "a{,2}", True),
    ("a{", "a{", True),
    ("{a", "{a", True),
    ("a{2,1}", "", FAILED),
    ("a{2,0}", "", FAILED),
    ("a{02}", "a{02}", True),
    ("a{0,0}b", "ab", True),
    ("a{1001}", "", FAILED),
    ("a{0}b", "b", True),
    ("a{2,}", "aa", True),
    ("[[:alpha:]]+[[:^digit:]]$", "abc", True),
    ("[[:punct:][:space:]]", "!", True),
    ("[[:^ascii:]]", "aé", True),
    ("[[:^ascii:]]", "a", False),
    ("[[:nope:]]", "", FAILED),
    ("[[:alpha", "", FAILED),
    (r"[\]\-a-c]", "]", True),
    ("[a-]", "-", True),
    ("[b-a]", "", FAILED),
    (r"[a-\d]", "", FAILED),
    (r"[\d-z]", "-", True),
    ("[]", "", FAILED),
    ("[a", "", FAILED),
    (r"[\b]", "", FAILED),
    (r"\x{1F600}", "😀", True),
    (r"\x{110000}", "", FAILED),
    (r"\x{61", "", FAILED),
    (r"\x{}", "", FAILED),
    (r"\x6", "", FAILED),
    (r"\141\07", "a\a", True),
    (r"\1", "", FAILED),
    (r"\8", "", FAILED),
    (r"\é", "", FAILED),
    (r"\t\_", "\t_", True),
    (r"\p", "", FAILED),
    ("\\", "", FAILED),
    ("*a", "", FAILED),
    ("{2}", "", FAILED),
    ("a**", "", FAILED),
    ("a*+", "", FAILED),
    ("a{2}{3}", "", FAILED),
    ("^*", "a", True),
    ("(a*)*b", "aab", True),
    ("(a", "", FAILED),
    ("a)", "", FAILED),
    ("(?=a)", "", FAILED),
    ("(?<=a)", "", FAILED),
    ("(?P<1_a>a)", "", False),
    ("(?P<a-b>a)", "", FAILED),
    ("(?i-s", "", FAILED),
    ("(?i--s)", "", FAILED),
    ("(?U)a+", "a", True),
]


@pytest.mark.parametrize(("pattern", "text", "verdict"), SPELLINGS)
def test_patterns_are_spelled_as_in_re2(pattern, text, verdict):
    """Each construct once, and each way to get it wrong; RE2 agrees on every line."""
    assert found(pattern, text) == verdict
    assert re2(pattern, text) == verdict


UNSUPPORTED = [r"\pL", r"\Qa\E", "(?i)[[:x]"]


@pytest.mark.parametrize("pattern", UNSUPPORTED)
def test_what_needs_unicode_tables_is_refused(pattern):
    """They change with Unicode versions, and a journal must replay for ever."""
    assert found(pattern, "") == FAILED


LARGE = ["a" * 1001, "(a{100}){100}", "((a{1,30}){1,30}){1,30}", "(" * 100 + ")" * 100, "(a|" * 60]
LARGE += ["|".join(["(b{100}){9}"] * 3), "(b{100}){9}" * 3]


@pytest.mark.req("R67")
@pytest.mark.parametrize("pattern", LARGE)
def test_large_patterns_are_refused(pattern):
    """Length, states and nesting of a pattern are bounded."""
    assert found(pattern, "") == FAILED


def steps_taken(regex, text, monkeypatch):
    """How many places of the program a search visits."""
    visited = 0
    follow = Regex.follow

    def counting(self, state, after):
        nonlocal visited
        visited += self.size
        return follow(self, state, after)

    monkeypatch.setattr(Regex, "follow", counting)
    regex.search(text)
    monkeypatch.undo()
    return visited


@pytest.mark.req("R67")
@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a*)*b", "(.*)(.*)(.*)c", "(x+x+)+y"])
def test_patterns_that_blow_up_elsewhere_are_linear(pattern, monkeypatch):
    """At most every place of the program for every character, and mostly remembered."""
    for length in (1_000, 10_000):
        taken = steps_taken(Regex(pattern), "a" * length + "!", monkeypatch)
        assert taken <= 10 * Regex(pattern).size


def test_memory_is_bounded_and_verdicts_do_not_depend_on_it():
    """When there is no more room nothing is remembered, and the search goes on as before."""
    text = "".join("ab"[(i * i // 7) % 2] for i in range(1500))
    full, fresh = Regex("(a|b)*a(a|b){40}c"), Regex("(a|b)*a(a|b){40}c")
    full.room = 0
    assert full.search(text) is fresh.search(text) is False
    assert full.search(text + "a" + "b" * 40 + "c") is True
    assert (len(full.states), full.start.edges) == (0, {})
    assert fresh.room < MEMORY_MAX


@pytest.mark.req("R67")
def test_the_price_of_a_search_is_known_beforehand():
    """Length times states, whatever a pattern remembers from earlier searches."""
    expression = compile_expression("input.matches('(a+)+$')", roots=frozenset({"input"}))
    prices = [expression.cost(["a" * 1000 + "!"]) for _ in range(2)]
    assert prices == [1001 * Regex("(a+)+$").size // 4] * 2
    with pytest.raises(ExpressionError) as caught:
        expression.evaluate(["a" * 10_000_000])
    assert caught.value.code == "expression.cost"
