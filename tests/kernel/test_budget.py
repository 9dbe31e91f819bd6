"""Budgets: reserved by an attempt, settled by its success, given back by its failure."""

import pytest

from pawlflow.kernel.budget import LOOKED_AT_MAX, taken
from pawlflow.kernel.heads import questions_changed
from pawlflow.kernel.snapshot import state_bytes
from pawlflow.kernel.state import MICROS_MAX
from pawlflow.model.budgets import Amount
from pawlflow.model.events import StepSucceeded
from pawlflow.model.inputs import (
    Approve,
    CancelInstance,
    Receipt,
    Reject,
)
from tests.kernel.support import Live, payload

TWO = """
budget: {usd: {soft: 0.5, hard: 1}}
steps:
  - {name: a, run: x.a, cost: {usd: 0.4}}
  - {name: b, run: x.b, cost: {usd: 0.4}}
  - {name: c, run: x.c, cost: {usd: 0.4}}
"""


def live(text=TWO):
    made = Live(text)
    made.start({})
    return made


def succeeded(made, step, **usage):
    """Answer the newest call of a step, saying what it cost."""
    call = made.call(step)
    said = payload(usage) if usage else None
    return made.submit(Receipt(call.key, call.attempt, "ok", payload({}), usage=said))


def names(made):
    return [type(event).__name__ for stepped in made.turns for event in stepped.turn.events]


@pytest.mark.req("R205")
def test_what_would_pass_the_hard_limit_stays_ready_and_asks():
    """Two attempts fit; the third is held, and a review shows what it needs."""
    made = live()
    state = made.cell.state

    assert made.started == ["a#1", "b#1"]
    assert (made.status("c"), state.unit(2).held) == ("ready", True)
    assert state.reserved == {"usd": 800_000}
    [(step, question)] = questions_changed(state)
    assert (step, question.kind) == ("c", "budget")
    assert question.show.value == {
        "unit": "usd",
        "limit": 1.0,
        "spent": 0.0,
        "reserved": 0.8,
        "needed": 1.2,
    }
    assert names(made).count("BudgetWarned") == 1


@pytest.mark.req("R205")
def test_a_success_settles_what_it_truly_cost():
    """What was not spent is free for others; without a word, all that was reserved is spent."""
    made = live()
    succeeded(made, "a", usd=0.1)
    assert made.started == ["a#1", "b#1", "c#1"]
    succeeded(made, "b")
    succeeded(made, "c")
    assert made.cell.state.spent == {"usd": 900_000}
    assert made.state == "completed"


@pytest.mark.req("R205")
def test_a_failure_gives_back_what_it_reserved():
    """A retry reserves anew, and what waited may come first."""
    made = live(TWO.replace("x.a,", "x.a, retryPolicy: {maxRetries: 1},"))
    made.fail("a", "transient")
    assert made.started == ["a#1", "b#1", "c#1"]
    made.tick(1_000)
    assert made.cell.state.unit(0).held
    assert made.started == ["a#1", "b#1", "c#1"]


def test_a_cancel_ends_what_is_held_too():
    """Nothing is reserved once all have settled."""
    made = live()
    made.submit(CancelInstance("ann"))
    for step in ("a", "b"):
        call = made.call(step)
        made.submit(Receipt(call.key, call.attempt, "cancelled"))
    assert made.state == "cancelled"
    assert not any(made.cell.state.reserved.values())


def test_what_is_held_and_spent_survives_being_read_again():
    """From a snapshot and from the journal alike."""
    made = live()
    succeeded(made, "a", usd=0.4)
    again = made.reread().cell.state
    assert state_bytes(again) == state_bytes(made.cell.state)
    assert (again.held, again.spent) == (made.cell.state.held, made.cell.state.spent)


def test_without_a_limit_a_cost_is_only_a_number():
    """And amounts add up exactly: a tenth, ten times, is one."""
    tenth = "budget: {usd: {hard: 1}}\nsteps:\n" + "\n".join(
        f"  - {{name: s{i}, run: x.s, cost: {{usd: 0.1, tokens: 5}}}}" for i in range(11)
    )
    made = live(tenth)
    assert len(made.started) == 10
    assert made.cell.state.unit(10).held


@pytest.mark.req("R214")
def test_higher_priority_goes_first_among_the_ready():
    """When places are few; equals go in the order they became ready."""
    made = live(
        """
maxParallel: 1
steps:
  - {name: a, run: x.a}
  - {name: b, run: x.b, priority: 5}
  - {name: c, run: x.c, priority: 5}
  - {name: d, run: x.d, priority: 9}
"""
    )
    for name in ("d", "b", "c", "a"):
        assert made.started[-1] == f"{name}#1"
        made.ok(name)
    assert made.state == "completed"


# What an attempt says that it cost


@pytest.mark.req("R205")
def test_what_is_not_said_costs_what_was_reserved():
    """Of two units of account an executor may know only one."""
    made = live(
        """
budget: {usd: {hard: 1}, tokens: {hard: 1000}}
steps: [{name: a, run: x.a, cost: {usd: 0.4, tokens: 300}}]
"""
    )
    succeeded(made, "a", usd=0.1, eur=5)
    assert made.cell.state.spent == {"usd": 100_000, "tokens": 300_000_000}
    [done] = [event for event in made.turns[-1].turn.events if isinstance(event, StepSucceeded)]
    assert done.usage == (Amount("eur", 5_000_000), Amount("usd", 100_000))


@pytest.mark.req("R205")
@pytest.mark.parametrize("outcome", ["failed", "cancelled"])
def test_what_a_failure_says_that_it_cost_is_spent(outcome):
    """Its reservation is given back, and the money is gone all the same."""
    made = live(TWO.replace("x.a,", "x.a, onFailure: skip,"))
    call = made.call("a")
    made.submit(Receipt(call.key, call.attempt, outcome, usage=payload({"usd": 0.3})))
    assert made.cell.state.spent == {"usd": 300_000}
    assert names(made).count("BudgetSpent") == 1
    assert made.started == ["a#1", "b#1"], "0.3 and 0.4 leave no room for 0.4"


@pytest.mark.req("R205")
def test_a_late_success_says_what_it_cost_too():
    """Nobody waits for it any more, but it was not for nothing."""
    spec = TWO.replace("x.a,", "x.a, timeout: 1s, onTimeout: fail, onFailure: skip,")
    made = live(spec.replace("hard: 1", "hard: 9"))
    made.tick(1_000)
    succeeded(made, "a", usd=0.2)
    assert made.cell.state.spent == {"usd": 200_000}


@pytest.mark.parametrize(
    "said",
    [
        *("much", ["usd"], {"usd": -1}, {"usd": "much"}, {"usd": True}, {"usd": 1e10}),
        *({"u" * 65: 1}, {f"u{n}": 1 for n in range(33)}),
    ],
)
def test_what_is_no_amount_says_nothing(said):
    """A success then costs what was reserved; nothing is ever refused for it."""
    made = live()
    call = made.call("a")
    made.submit(Receipt(call.key, call.attempt, "ok", payload({}), usage=payload(said)))
    assert made.status("a") == "succeeded"
    assert made.cell.state.spent == {"usd": 400_000}


def test_whatever_is_spent_can_be_written_down():
    """Sums end at 63 bits, however often somebody says a billion."""
    steps = [f"  - {{name: s{n}, run: x.s, cost: {{usd: 1000000000}}}}" for n in range(30)]
    made = live("budget: {usd: {soft: 1}}\nsteps:\n" + "\n".join(steps))
    state = made.cell.state
    state.spent["usd"] = MICROS_MAX - 1
    succeeded(made, "s0", usd=1_000_000_000)
    assert state.spent == {"usd": MICROS_MAX}
    assert taken(state, "usd") == MICROS_MAX
    assert state_bytes(state)


# Who begins when something is given back


@pytest.mark.req("R205", "R214")
def test_what_comes_back_goes_to_the_highest_priority_and_then_to_the_first():
    """Held steps keep their place in line; what has been ready for long is not passed over."""
    made = live(
        """
budget: {usd: {hard: 0.4}}
steps:
  - {name: a, run: x.a, priority: 9, cost: {usd: 0.4}}
  - {name: b, run: x.b, cost: {usd: 0.4}}
  - {name: c, run: x.c, priority: 5, cost: {usd: 0.4}}
  - {name: d, run: x.d, cost: {usd: 0.4}}
  - {name: e, run: x.e, dependsOn: [a], cost: {usd: 0.4}}
"""
    )
    for name in ("a", "c", "b", "d", "e"):
        assert made.started[-1] == f"{name}#1"
        succeeded(made, name, usd=0)
    assert made.state == "completed"


@pytest.mark.req("R205")
def test_a_smaller_one_may_pass_one_that_does_not_fit():
    """Nothing that fits waits for something that does not."""
    made = live(
        """
budget: {usd: {hard: 1}}
steps:
  - {name: a, run: x.a, cost: {usd: 0.9}}
  - {name: big, run: x.b, cost: {usd: 0.9}}
  - {name: small, run: x.c, cost: {usd: 0.2}}
"""
    )
    succeeded(made, "a", usd=0.5)
    assert made.started == ["a#1", "small#1"]
    assert made.cell.state.unit(1).held


def test_of_very_many_that_are_held_a_turn_looks_at_some():
    """What stands behind all of these waits until they are gone; a turn must stay short."""
    many = [f"  - {{name: s{n}, run: x.s, cost: {{usd: 0.9}}}}" for n in range(LOOKED_AT_MAX)]
    made = live(
        "budget: {usd: {hard: 1}}\nsteps:\n  - {name: a, run: x.a, cost: {usd: 0.9}}\n"
        + "\n".join(many)
        + "\n  - {name: small, run: x.s, cost: {usd: 0.2}}\n"
        + "  - {name: other, run: x.s, dependsOn: [a], cost: {usd: 0.2}}"
    )
    succeeded(made, "a", usd=0.5)
    assert made.started == ["a#1", "other#1"]
    made.submit(Reject("s7", "ann", None, payload("no")))
    made.ok("other")
    assert made.state == "failed"


@pytest.mark.req("R205")
def test_a_run_that_overspent_begins_nothing_that_costs_nothing_either():
    """The hard limit pauses and asks, rather than kills."""
    made = live(
        """
budget: {usd: {hard: 1}}
steps: [{name: a, run: x.a}, {name: b, run: x.b, dependsOn: [a]}]
"""
    )
    succeeded(made, "a", usd=1)
    assert made.started == ["a#1", "b#1"]

    made = live(
        """
budget: {usd: {hard: 1}}
steps: [{name: a, run: x.a}, {name: b, run: x.b, dependsOn: [a]}]
"""
    )
    succeeded(made, "a", usd=1.000001)
    assert made.started == ["a#1"]
    made.submit(Approve("b", "ann", None))
    assert made.started == ["a#1", "b#1"]
    assert made.cell.state.limits == {"usd": 1_000_001}


@pytest.mark.req("R205")
def test_a_soft_limit_passed_by_what_it_truly_cost_is_told_at_once():
    """Even if nothing begins any more."""
    made = live("budget: {usd: {soft: 1}}\nsteps: [{name: a, run: x.a}]")
    succeeded(made, "a", usd=3)
    assert names(made)[-2:] == ["BudgetWarned", "InstanceCompleted"]
