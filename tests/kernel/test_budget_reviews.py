"""Reviews of budgets: who raises a limit, who does not, and what follows."""

import pytest

from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.heads import questions_changed
from pawlflow.kernel.snapshot import state_bytes
from pawlflow.model.inputs import (
    Approve,
    ClaimReview,
    PauseInstance,
    Receipt,
    Reject,
    UnpauseInstance,
)
from tests.kernel.support import Live, failure, payload
from tests.kernel.test_budget import TWO, live, succeeded


@pytest.mark.req("R205")
@pytest.mark.parametrize("limits", [None, {"usd": 1.2}, {"usd": 50}])
def test_a_human_raises_the_limit(limits):
    """To what they say, or to what the attempt needs; it is on the record, and it goes on."""
    made = live()
    said = None if limits is None else payload(limits)
    made.submit(Approve("c", "ann", "Boss", payload("go"), limits=said))
    assert made.started[-1] == "c#1"
    assert made.cell.state.limits == {"usd": round((limits or {"usd": 1.2})["usd"] * 1_000_000)}
    assert not made.cell.state.unit(2).held


@pytest.mark.parametrize("limits", [{"usd": 1.1}, {"eur": 5}, {"usd": "much"}, [1], {"usd": -1}])
def test_a_limit_that_does_not_help_is_refused(limits):
    """And nothing has changed."""
    made = live()
    before = state_bytes(made.cell.state)
    refused = made.submit(Approve("c", "ann", None, None, limits=payload(limits)))
    assert isinstance(refused, Rejected)
    assert refused.code in ("budget.too_low", "budget.limits")
    assert state_bytes(made.cell.state) == before


@pytest.mark.req("R205")
def test_a_human_does_not_raise_it():
    """Then the step fails, class governance, and onFailure decides."""
    made = live(TWO.replace("x.c,", "x.c, onFailure: skip,"))
    made.submit(Reject("c", "ann", None))
    assert made.status("c") == "skipped"
    assert made.cell.state.unit(2).failure.kind == "governance"
    assert not made.cell.state.unit(2).held


@pytest.mark.req("R205")
def test_a_raised_limit_is_only_of_what_has_one():
    """A cost without a limit stays without one, and a soft limit does not become a hard one."""
    made = live(
        """
budget: {usd: {hard: 1}, tokens: {soft: 5}}
steps: [{name: a, run: x.a, cost: {usd: 2, tokens: 9}}]
"""
    )
    refused = made.submit(Approve("a", "ann", None, limits=payload({"tokens": 50})))
    assert refused == Rejected("budget.limits", "give new hard limits, such as {usd: 10}")
    made.submit(Approve("a", "ann", None))
    assert made.cell.state.limits == {"usd": 2_000_000}
    assert made.started == ["a#1"]


def test_no_limit_is_lowered():
    """Raising one while lowering another would hold somebody else."""
    made = live(
        """
budget: {usd: {hard: 1}, tokens: {hard: 500}}
steps: [{name: a, run: x.a, cost: {usd: 2}}]
"""
    )
    refused = made.submit(Approve("a", "ann", None, limits=payload({"usd": 5, "tokens": 499})))
    assert refused == Rejected("budget.too_low", "tokens must be at least 500")
    made.submit(Approve("a", "ann", None, limits=payload({"usd": 5, "tokens": 500})))
    assert made.cell.state.limits == {"usd": 5_000_000, "tokens": 500_000_000}


def test_a_limit_means_nothing_to_a_gate():
    """Somebody who thinks that they raise a budget is told that they do not."""
    made = live("budget: {usd: {hard: 1}}\nsteps: [{name: g, approval: {role: Boss}}]")
    refused = made.submit(Approve("g", "ann", "Boss", limits=payload({"usd": 5})))
    assert isinstance(refused, Rejected)
    assert refused.code == "budget.limits"


@pytest.mark.req("R205")
def test_the_reason_of_a_rejection_is_in_the_failure():
    """Whoever looks at the step later is told who, and why."""
    made = live()
    made.submit(Reject("c", "ann", "Boss", payload("not worth it")))
    failed = made.cell.state.unit(2).failure
    assert (failed.kind, failed.code) == ("governance", "budget.exceeded")
    assert failed.message == "ann did not raise the budget for c: not worth it"


@pytest.mark.req("R205", "R113")
def test_a_step_whose_retry_is_rejected_is_undone_if_its_outcome_is_unknown():
    """An attempt was made; that its retry is not paid for does not make it unmade."""
    made = live(
        """
budget: {usd: {hard: 1}}
steps:
  - name: a
    run: x.a
    cost: {usd: 0.8}
    retryPolicy: {maxRetries: 1}
    onFailure: compensate
    undoOnFailure: true
    undo: {run: x.undo}
"""
    )
    call = made.call("a")
    why = failure("transient")
    made.submit(Receipt(call.key, 1, "failed", failure=why, usage=payload({"usd": 0.8})))
    made.tick(1_000)
    assert made.cell.state.unit(0).held
    made.submit(Reject("a", "ann", None))
    assert made.calls[-1].direction == "undo"
    assert made.published().count("AgentTaskFailed") == 1, "the attempt failed once"


@pytest.mark.req("R205", "R134")
def test_somebody_may_look_after_a_budget():
    """It binds nobody, and ends with the review."""
    made = live()
    assert not isinstance(made.submit(ClaimReview("c", "ann", None)), Rejected)
    assert made.cell.state.unit(2).claimed_by == "ann"
    assert made.submit(ClaimReview("c", "bob", None)).code == "review.held"
    assert made.submit(ClaimReview("a", "bob", None)).code == "review.unknown"
    made.submit(Approve("c", "bob", None))
    assert made.started[-1] == "c#1"


@pytest.mark.req("R205")
def test_a_pause_holds_what_the_budget_lets_go():
    """Given back in the pause, begun after it; approved in the pause, begun after it."""
    made = live()
    made.submit(PauseInstance("ann"))
    succeeded(made, "a", usd=0.1)
    assert made.cell.state.unit(2).held
    assert made.started == ["a#1", "b#1"]
    made.submit(UnpauseInstance("ann"))
    assert made.started == ["a#1", "b#1", "c#1"]


@pytest.mark.req("R205")
def test_items_are_held_and_asked_about_one_by_one():
    """Each has a review of its own, by its own name."""
    made = Live(
        """
budget: {usd: {hard: 1}}
steps: [{name: a, run: x.a, forEach: input.l, cost: {usd: 0.4}}]
"""
    )
    made.start({"l": [1, 2, 3, 4]})
    assert made.started == ["a[0]#1", "a[1]#1"]
    assert [step for step, _ in questions_changed(made.cell.state)] == ["a[2]", "a[3]"]
    made.submit(Approve("a[3]", "ann", None))
    assert made.started[-1] == "a[3]#1"
    again = made.reread().cell.state
    assert state_bytes(again) == state_bytes(made.cell.state)
