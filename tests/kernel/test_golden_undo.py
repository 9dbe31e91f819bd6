"""Golden journals since rules 4: gates that are undone; what failed, was stopped or came late."""

from functools import partial

import pytest

from pawlflow.definition.rules import ASKING_RULES, RULES, UNDOING_RULES
from pawlflow.testing.runner import run_scenario
from tests.kernel.golden_runs import check_bytes, check_run
from tests.kernel.plain_host import PlainHost
from tests.scenarios import scenario_named

PLAYED = [
    "a-failed-re-run-is-undone-without-the-result-of-the-first",
    "a-gate-between-is-undone-for-each-grant",
    "a-gate-may-be-undone-although-it-was-rejected",
    "a-granted-gate-is-undone-in-its-turn",
    "a-late-success-before-compensation-is-undone-in-its-turn",
    "a-skipped-wait-may-be-undone-because-it-timed-out",
    "a-step-in-back-off-is-undone-because-it-failed",
    "a-step-that-was-escalated-is-undone-because-it-timed-out",
    "a-voided-grant-is-undone-though-the-next-answer-is-no",
]
# The same definitions, started by a version that knew no such undo: written by that version.
# What it left as it was.
BEFORE = {
    "a-granted-gate-is-undone-in-its-turn": ("gate", "plain"),
    "a-late-success-before-compensation-is-undone-in-its-turn": ("hotel",),
    "a-step-in-back-off-is-undone-because-it-failed": ("pay", "fee"),
    "a-step-that-was-escalated-is-undone-because-it-timed-out": ("pay",),
    "a-voided-grant-is-undone-though-the-next-answer-is-no": ("gate",),
    "a-wait-may-be-undone-although-it-timed-out": ("paid",),
}
RE_RUN = "a-failed-re-run-is-undone-without-the-result-of-the-first"


@pytest.mark.req("R223", "R11", "R113")
@pytest.mark.parametrize("name", [*PLAYED, *(f"{name}-before" for name in (*BEFORE, RE_RUN))])
def test_a_golden_journal_verifies_from_its_bytes_alone(name):
    """Every turn is decided again to the same bytes."""
    check_bytes(name)


@pytest.mark.parametrize("name", PLAYED)
def test_a_run_still_gives_its_golden_journal(name, golden):
    """A change of behaviour must be guarded by `rules`; then this journal stays as it is."""
    check_run(name, golden, rules=4)


@pytest.mark.req("R11", "R223")
@pytest.mark.parametrize("name", BEFORE)
def test_an_instance_of_before_goes_on_as_it_began(name, golden):
    """Under rules 2 nothing undoes a gate, a wait that failed, or what was stopped or came late."""
    run = run_scenario(scenario_named(name), host=partial(PlainHost, rules=RULES))

    golden(f"journals/{name}-before.journal", run.journal)
    assert run.actual["state"] in ("failed", "cancelled")
    assert {run.actual["undo"].get(step, "none") for step in BEFORE[name]} == {"none"}


@pytest.mark.req("R11", "R223")
def test_a_run_of_before_is_undone_with_what_it_was_then(golden):
    """Under rules 2 a re-run that failed is undone with the result of the run before it."""
    run = run_scenario(scenario_named(RE_RUN), host=partial(PlainHost, rules=RULES))

    golden(f"journals/{RE_RUN}-before.journal", run.journal)
    undone = [run.actual["params"][f"undo/draft#{number}"] for number in (1, 2)]
    assert undone == [{"v": 1}, {"v": 1}]


@pytest.mark.req("R11")
@pytest.mark.parametrize("rules", [RULES, ASKING_RULES])
def test_what_always_was_undone_is_decided_alike(rules):
    """A sleep, a wait, an emit: their undo runs by any rules; of the gate only by the new ones."""
    scenario = scenario_named("what-nobody-executes-may-be-undone-too")

    before = run_scenario(scenario, host=partial(PlainHost, rules=rules)).actual["undo"]
    now = run_scenario(scenario, host=partial(PlainHost, rules=UNDOING_RULES)).actual["undo"]

    assert before == {**now, "gate": "none"}
    assert now["gate"] == "done"
