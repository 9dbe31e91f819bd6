"""Golden journals of decisions: work sent back, approvals that are void, escalations that climb."""

from functools import partial

import pytest

from pawlflow.testing.journals import tell_file, verify_file
from pawlflow.testing.runner import run_scenario
from tests.golden_kit import FOLDER
from tests.kernel.plain_host import PlainHost
from tests.scenarios import scenario_named

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
    verdict = verify_file((FOLDER / "journals" / f"{name}.journal").read_bytes())

    assert verdict.difference is None
    assert verdict.turns > 0


@pytest.mark.parametrize("name", PLAYED)
def test_a_run_still_gives_its_golden_journal(name, golden):
    """A change of behaviour must be guarded by `rules`; then this journal stays as it is."""
    data = run_scenario(scenario_named(name), host=partial(PlainHost, rules=2)).journal

    golden(f"journals/{name}.journal", data)
    golden(f"journals/{name}.txt", ("\n".join(tell_file(data)) + "\n").encode())
