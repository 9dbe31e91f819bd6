"""The fuzz target of expressions, run briefly by Hypothesis with every test run."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

fuzz_express = pytest.importorskip(
    "fuzz_express", reason="atheris is not installed", exc_type=ImportError
)
WORDS, fuzz = fuzz_express.WORDS, fuzz_express.fuzz

SOURCES = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=24).map("".join),
    st.lists(st.sampled_from(WORDS), max_size=24).map(" ".join),
    st.text(),
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.req("R67")
@settings(max_examples=2_000)
@given(SOURCES, VALUES)
def test_any_text_ends_in_a_value_or_an_expression_error(source, value):
    """Nothing else is ever raised, nothing passed in changes, and twice is the same as once."""
    fuzz(source, value)
