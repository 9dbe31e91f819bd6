"""Golden journals since rules 3: steps that ask the policies, and the cell that knows these."""

from functools import partial

import pytest

from pawlflow.definition.rules import ASKING_RULES, RULES
from pawlflow.model.policies import PublishPolicy, RetirePolicy, policies_cell
from pawlflow.testing.runner import run_scenario
from tests.kernel.golden_runs import check_bytes, check_run
from tests.kernel.plain_host import PlainHost
from tests.kernel.support import TENANT, payload
from tests.kernel.system_kit import Cells
from tests.kernel.test_golden_system import journal_of, text_of
from tests.scenarios import scenario_named

PLAYED = [
    "a-policy-may-ask-for-a-quorum",
    "a-retry-asks-again",
    "items-are-decided-one-by-one",
    "other-policies-void-what-was-agreed",
    "what-a-policy-asks-expires-and-is-asked-again",
    "what-a-policy-asks-may-be-rejected",
    "with-no-policy-in-force-everything-is-allowed",
]
PUBLISHED = "policies-are-published-and-retired"


@pytest.mark.req("R223", "R11", "R125")
@pytest.mark.parametrize("name", [*PLAYED, PUBLISHED])
def test_a_golden_journal_verifies_from_its_bytes_alone(name):
    """Every turn is decided again to the same bytes; nobody asks Cedar again."""
    check_bytes(name)


@pytest.mark.parametrize("name", PLAYED)
def test_a_run_still_gives_its_golden_journal(name, golden):
    """A change of behaviour must be guarded by `rules`; then this journal stays as it is."""
    check_run(name, golden, rules=3)


@pytest.mark.req("R11")
def test_an_instance_of_before_asks_nobody():
    """What was started under rules 2 goes on by them, whatever its steps say of policies."""
    scenario = scenario_named("a-denied-step-aborts-by-default")

    before = run_scenario(scenario, host=partial(PlainHost, rules=RULES))
    now = run_scenario(scenario, host=partial(PlainHost, rules=ASKING_RULES))

    assert (before.actual["state"], before.actual["attempts"]["pay"]) == ("completed", 1)
    assert "PolicyDecisionRecorded" not in before.actual["events"]
    assert (now.actual["state"], now.actual["attempts"]["pay"]) == ("failed", 0)


@pytest.mark.req("R138")
def test_the_cell_of_policies_still_gives_its_golden_journal(golden):
    """Two versions, what is refused in between, and the end of one."""
    cells, cell = Cells(), policies_cell(TENANT)
    for at, asked in enumerate(
        (
            PublishPolicy("rules", 1, payload("permit(principal, action, resource);"), "zoe"),
            PublishPolicy("rules", 1, payload("forbid(principal, action, resource);"), "zoe"),
            PublishPolicy("rules", 2, payload("forbid(principal, action, resource);"), "ann"),
            RetirePolicy("rules", "ann", payload("no longer needed")),
        )
    ):
        cells.now = 1_000 * at
        cells.submit(cell, asked)

    data = journal_of(cells)

    golden(f"journals/{PUBLISHED}.journal", data)
    golden(f"journals/{PUBLISHED}.txt", text_of(data))
