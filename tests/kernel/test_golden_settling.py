"""Golden journals since rules 5: attempts that are no longer wanted, and when they are over."""

import pytest

from pawlflow.definition.rules import SETTLING_RULES
from tests.kernel.golden_runs import check_bytes, check_run

PLAYED = [
    "a-late-success-is-undone-before-what-completed-earlier",
    "a-late-success-of-an-undo-counts-while-it-is-retried",
    "a-timed-out-step-may-be-skipped",
    "an-undo-that-times-out-has-failed",
    "on-timeout-retry-follows-the-retry-policy",
    "the-attempt-that-was-overtaken-changes-nothing",
]


@pytest.mark.req("R223", "R11", "R106")
@pytest.mark.parametrize("name", PLAYED)
def test_a_golden_journal_verifies_from_its_bytes_alone(name):
    """Every turn is decided again to the same bytes."""
    check_bytes(name)


@pytest.mark.parametrize("name", PLAYED)
def test_a_run_still_gives_its_golden_journal(name, golden):
    """A change of behaviour must be guarded by `rules`; then this journal stays as it is."""
    check_run(name, golden, rules=SETTLING_RULES)
