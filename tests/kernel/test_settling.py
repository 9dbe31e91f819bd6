"""Attempts that are no longer wanted: the close, and the first undo, wait until they are over."""

import pytest

from pawlflow.kernel.draft import calls_open, open_intents
from pawlflow.kernel.snapshot import state_bytes
from pawlflow.kernel.units import UNDO_DONE
from pawlflow.model.failure import failure_of
from pawlflow.model.inputs import CancelInstance, Receipt, ResumeStep
from pawlflow.model.intents import Call, Stop
from tests.kernel.policies_kit import answer, asked, judge
from tests.kernel.support import Live, names, payload, refused

SLOW = """
failurePolicy: compensate
steps:
  - {name: a, run: x.a, undo: {run: x.u}}
  - {name: b, run: x.b, dependsOn: [a], timeout: 1s, grace: 5s, undo: {run: x.u}MORE}
"""
pytestmark = pytest.mark.req("R106", "R112", "R113")


def timed_out(more: str = "", rules: int = 0) -> Live:
    """Its second step has run out of time."""
    live = Live(SLOW.replace("MORE", more), rules=rules)
    live.start()
    live.ok("a")
    live.tick(1_000)
    return live


def test_the_first_undo_waits_for_an_attempt_that_timed_out():
    """It is told to stop, and may still be at work: nothing is undone beside it."""
    live = timed_out()
    assert (live.status("b"), live.state) == ("failed", "running")
    assert live.started == ["a#1", "b#1"]

    assert names(live.settle("b"))[0] == "AttemptEnded"

    assert live.started[-1] == "undo/a#1"
    live.ok("undo/a")
    assert (live.state, live.cell.state.rollback) == ("failed", "full")


def test_what_it_did_after_all_is_undone_first():
    """A success in the grace is a late one: it was done last."""
    live = timed_out()

    assert names(live.ok("b", "late"))[:2] == ["LateSuccess", "AttemptEnded"]

    assert live.started[-1] == "undo/b#1"
    assert live.call("undo/b").params.value["result"] == "late"
    live.ok("undo/b")
    assert live.started[-1] == "undo/a#1"


def test_a_failure_of_its_own_is_an_end_too():
    """Whatever it says, it is over."""
    live = timed_out()

    live.fail("b", "terminal")

    assert live.started[-1] == "undo/a#1"


def test_the_grace_ends_by_itself_and_not_before():
    """Who ignores the stop is waited for no longer than that."""
    live = timed_out()
    assert refused(live.tick(5_999)) == "timer.not_due"

    assert names(live.tick(6_000))[0] == "AttemptEnded"

    assert live.started[-1] == "undo/a#1"
    live.ok("b", "too late for the grace")
    live.ok("undo/a")
    assert live.started[-1] == "undo/b#1"


def test_an_abort_closes_when_it_is_over():
    """There is nothing to undo, but the end of an instance is the end of its work."""
    live = timed_out(", onFailure: abort")
    assert live.state == "running"

    live.settle("b")

    assert (live.state, live.cell.state.rollback) == ("failed", "none")


def test_a_completed_instance_has_nothing_at_work_either():
    """The step was skipped; its attempt is waited for before the end, not before."""
    live = timed_out(", onFailure: skip")
    assert (live.status("b"), live.state) == ("skipped", "running")

    live.settle("b")

    assert live.state == "completed"


def test_a_cancel_waits_for_attempts_that_timed_out_before():
    """With a retry in between: both attempts, each until it is over."""
    live = timed_out(", onTimeout: retry, retryPolicy: {maxRetries: 3, backoff: 1s}")
    live.tick(2_000)
    assert live.started[-1] == "b#2"
    live.submit(CancelInstance("ann"))

    live.settle("b")
    assert live.started[-1] == "b#2"
    live.tick(6_000)

    assert live.started[-1] == "undo/a#1"


def test_an_attempt_that_was_overtaken_is_waited_for():
    """The first succeeded after all; the second is told to stop."""
    live = timed_out(", onTimeout: retry, retryPolicy: {maxRetries: 3, backoff: 1s}")
    first = live.call("b")
    live.tick(2_000)
    live.submit(Receipt(first.key, 1, "ok", payload("first")))
    assert (live.status("b"), live.state) == ("succeeded", "running")

    live.settle("b")

    assert live.state == "completed"


def test_an_undo_that_timed_out_is_waited_for_before_the_close():
    """Under `continue` the next undo waits as well: one at a time."""
    live = Live(
        "failurePolicy: compensate\nonUndoFailure: continue\nsteps:\n"
        "  - {name: a, run: x.a, undo: {run: x.u}}\n"
        "  - {name: b, run: x.b, dependsOn: [a], undo: {run: x.u, timeout: 1s}, grace: 5s}\n"
        "  - {name: c, run: x.c, dependsOn: [b]}"
    )
    live.start()
    live.ok("a")
    live.ok("b")
    live.fail("c")
    live.tick(1_000)
    assert live.started[-1] == "undo/b#1"

    live.settle("undo/b")
    assert live.started[-1] == "undo/a#1"
    live.ok("undo/a")

    assert (live.state, live.cell.state.rollback) == ("failed", "partial")


def test_an_undo_that_was_overtaken_is_waited_for():
    """Its first attempt timed out, and then had done it."""
    live = Live(
        "failurePolicy: compensate\nsteps:\n"
        "  - {name: a, run: x.a, undo: {run: x.u, timeout: 1s, retryPolicy: {maxRetries: 2}},"
        " onTimeout: retry, grace: 5s}\n"
        "  - {name: c, run: x.c, dependsOn: [a]}"
    )
    live.start()
    live.ok("a")
    live.fail("c")
    live.tick(1_000)
    live.tick(2_000)
    assert live.started[-1] == "undo/a#2"

    live.ok("undo/a", attempt=1)
    assert (live.cell.state.named("a").undo == UNDO_DONE, live.state) == (True, "compensating")
    live.settle("undo/a")

    assert (live.state, live.cell.state.rollback) == ("failed", "full")


def test_a_child_that_timed_out_takes_the_time_it_needs():
    """Its own compensation may take days: the grace is for executors."""
    live = Live(
        "failurePolicy: compensate\nsteps:\n  - {name: a, run: x.a, undo: {run: x.u}}\n"
        "  - {name: c, workflow: kid, dependsOn: [a], timeout: 5s}"
    )
    live.start()
    live.ok("a")
    live.tick(5_000)
    assert live.status("c") == "failed"
    assert refused(live.tick(10_000_000)) == "timer.not_due"
    assert calls_open(live.cell.state) == 0

    live.closed(live.child("c"), kind="terminal")

    assert live.started[-1] == "undo/a#1"


def test_both_children_of_a_step_are_waited_for():
    """The first timed out, the second is stopped with its parent; the first answers after all."""
    live = Live(
        "failurePolicy: compensate\nsteps:\n  - {name: a, run: x.a, undo: {run: x.u}}\n"
        "  - {name: c, workflow: kid, dependsOn: [a], timeout: 5s, onTimeout: retry,"
        " retryPolicy: {maxRetries: 1}}"
    )
    live.start()
    live.ok("a")
    first = live.child("c")
    live.tick(5_000)
    live.tick(6_000)
    live.submit(CancelInstance("ann"))
    live.closed(first, "late")
    assert live.started == ["a#1"]

    live.closed(live.child("c"), kind="terminal")

    assert live.started[-1] == "undo/a#1"


def test_an_answer_of_the_policies_ends_no_attempt():
    """A question has a number of its own, which may be that of an attempt."""
    live = Live(
        "steps: [{name: b, run: x.b, timeout: 1s, onTimeout: retry, policy: {action: go},"
        " retryPolicy: {maxRetries: 3, backoff: 1s}}]"
    )
    live.start()
    [first] = asked(live)
    judge(live, answer())
    live.tick(1_000)
    live.tick(2_000)
    assert (len(asked(live)), len(live.cell.state.left)) == (2, 1)
    judge(live, answer())

    live.submit(Receipt(first.key, first.attempt, "ok", payload(answer())))

    assert (live.started[-1], len(live.cell.state.left)) == ("b#2", 1)


@pytest.mark.req("R12", "R143")
@pytest.mark.parametrize("edited", [False, True])
def test_what_was_left_is_told_again_after_a_crash(edited):
    """The stop of the same call, though another round is at work."""
    live = timed_out(", onTimeout: escalate")
    if edited:
        live.submit(ResumeStep("b", "ann", "retry", params=payload({"other": 1})))
    [told] = live.stops

    again = open_intents(live.reread().cell.state)

    assert state_bytes(live.reread().cell.state) == state_bytes(live.cell.state)
    [stop] = [each for each in again if isinstance(each, Stop)]
    assert (stop.reason, named(stop.call)) == ("timeout", named(told.call))
    assert len(again) == calls_open(live.cell.state) == 1 + edited
    assert [each.id for each in again if isinstance(each, Call)] == [
        each.id for each in live.calls[2:]
    ]


@pytest.mark.req("R12", "R143")
def test_an_overtaken_attempt_keeps_its_name_though_its_step_goes_back_a_round():
    """The first round succeeded after all, so what is undone is what that was asked."""
    live = timed_out(", onTimeout: escalate")
    first = live.call("b")
    live.submit(ResumeStep("b", "ann", "retry", params=payload({"other": 1})))
    second = live.call("b")
    live.submit(Receipt(first.key, 1, "ok", payload("late")))

    [stop] = open_intents(live.reread().cell.state)

    assert isinstance(stop, Stop)
    assert named(stop.call) == named(second)


def test_an_item_that_was_overtaken_is_told_again():
    """Of an item that is done little is kept."""
    live = Live(
        "steps: [{name: a, run: x.a, forEach: input.l, with: {v: '${ item }'}, timeout: 1s,"
        " onTimeout: retry, retryPolicy: {maxRetries: 1, backoff: 1s}, grace: 1h}]"
    )
    live.start({"l": ["p"]})
    first = live.call("a[0]")
    live.tick(1_000)
    live.tick(2_000)
    live.submit(Receipt(first.key, 1, "ok", payload("P")))

    [stop] = open_intents(live.reread().cell.state)

    assert isinstance(stop, Stop)
    assert named(stop.call) == named(live.call("a[0]"))
    live.settle("a[0]")
    assert live.state == "completed"


def named(call: Call) -> tuple:
    """What a call is found by."""
    place = (call.step, call.item, call.round, call.direction, call.target)
    return call.id, call.key, call.attempt, *place


def test_the_workflows_timeout_does_not_fail_what_is_done_but_for_the_close():
    """All steps are over: nothing is left that could take too long."""
    live = Live(
        "timeout: 10s\nsteps: [{name: a, run: x.a, timeout: 1s, onFailure: skip, grace: 30s}]"
    )
    live.start()
    live.tick(1_000)
    assert refused(live.tick(10_000)) == "timer.not_due"

    live.tick(31_000)

    assert live.state == "completed"


def test_an_attempt_without_a_heartbeat_may_be_at_work():
    """It is given up as if its time were over, and waited for in the same way."""
    live = Live(
        "failurePolicy: compensate\nsteps:\n  - {name: a, run: x.a, undo: {run: x.u}}\n"
        "  - {name: b, run: x.b, dependsOn: [a], heartbeat: 1s}"
    )
    live.start()
    live.ok("a")
    call = live.call("b")
    lost = failure_of("timeout", "heartbeat.lost", "no heartbeat", tenant=live.id.tenant)
    live.submit(Receipt(call.key, 1, "failed", failure=lost))
    assert (live.status("b"), live.started[-1]) == ("failed", "b#1")

    live.settle("b")

    assert live.started[-1] == "undo/a#1"


def test_what_a_tick_ends_is_ended_alone():
    """A deadline behind it may be held back: whoever holds it back looks at the first one only."""
    live = timed_out(", onTimeout: retry, retryPolicy: {maxRetries: 3, backoff: 4500ms}")
    live.tick(5_500)
    assert live.started[-1] == "b#2"

    assert names(live.tick(9_000)) == ["AttemptEnded"]
    assert names(live.tick(9_000)) == ["AttemptLeft", "StepBackedOff"]


@pytest.mark.req("R110")
def test_many_that_time_out_again_and_again_cost_no_scan():
    """The heap of deadlines stays about as long as what is waited for."""
    live = Live(
        "steps: [{name: a, run: x.a, timeout: 1s, grace: 1h, onTimeout: retry,"
        " retryPolicy: {maxRetries: 400, backoff: 1s}}]"
    )
    live.start()
    for second in range(1, 601):
        live.tick(second * 1_000)

    left = len(live.cell.state.left)
    assert left == 300
    assert len(live.cell.state.deadlines) <= 64 + 2 * (left + 1) + 1


@pytest.mark.req("R11")
def test_before_these_rules_nobody_waited():
    """Instances under way go on as they began."""
    live = timed_out(rules=4)
    assert live.started[-1] == "undo/a#1"
    assert refused(live.settle("b")) == "receipt.not_awaited"
