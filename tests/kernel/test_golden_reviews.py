"""Golden journals of decisions: work sent back, approvals that are void, escalations that climb."""

import pytest

from tests.kernel.golden_runs import check_bytes, check_run

PLAYED = [
    "a-correction-voids-the-approval",
    "a-guarded-fan-is-approved-item-by-item",
    "an-expired-gate-climbs-the-ladder",
    "changes-run-a-whole-fan-again",
    "changes-void-the-approval-of-what-runs-again",
    "each-run-of-a-revised-step-is-undone",
    "only-the-present-rung-or-a-higher-one-acts",
    "parameters-that-come-out-otherwise-void-the-approval",
    "the-items-of-an-earlier-fan-are-undone-with-their-own-list",
    "what-changed-while-somebody-looked-is-asked-again",
]


@pytest.mark.req("R223", "R11", "R204", "R135")
@pytest.mark.parametrize("name", PLAYED)
def test_a_golden_journal_verifies_from_its_bytes_alone(name):
    """Every turn is decided again to the same bytes."""
    check_bytes(name)


@pytest.mark.parametrize("name", PLAYED)
def test_a_run_still_gives_its_golden_journal(name, golden):
    """A change of behaviour must be guarded by `rules`; then this journal stays as it is."""
    check_run(name, golden, rules=2)
