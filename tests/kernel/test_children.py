"""Child workflows: a step that is an instance of its own."""

import pytest

from pawlflow.model.inputs import (
    CancelInstance,
    PauseInstance,
    ResumeStep,
    UnpauseInstance,
)
from pawlflow.projections.units import error_of
from tests.kernel.support import Live, payload, refused, sent

PARENT = "steps:\n  - {name: c, workflow: kid, with: {x: '${ input.x }'}%s}\noutput: '${ steps.c }'"


def parent(more: str = "", spec: str = "") -> Live:
    """An instance that waits for its child."""
    live = Live(spec + PARENT % (f", {more}" if more else ""))
    live.start({"x": 7})
    return live


# One child, seen from its parent


@pytest.mark.req("R92", "R215")
def test_a_child_is_asked_for_and_awaited():
    """With the step's parameters as input, by whoever started the parent."""
    live = Live("maxParallel: 1\n" + PARENT % "")

    ((key, asked),) = sent(live.start({"x": 7}, by="zoe"))

    assert (key, asked.name, asked.input.value, asked.by) == ("$registry", "kid", {"x": 7}, "zoe")
    who = asked.parent
    assert (who.workflow, who.key, who.attempt, who.step) == ("w", "i-1", 1, "c")
    assert asked.child.startswith("c.")
    assert who.step_key.hex() not in asked.child
    assert (live.state, live.status("c")) == ("waiting", "waiting")
    assert live.published()[-1] == "WorkflowStepWaiting"


@pytest.mark.req("R92")
def test_the_output_of_a_child_is_the_result_of_its_step():
    """And a duplicate of it changes nothing."""
    live = parent()
    child = live.child("c")

    live.closed(child, {"y": 1})

    assert (live.state, live.cell.state.output.value) == ("completed", {"y": 1})
    assert refused(live.closed(child, {"y": 2})) == "instance.closed"


@pytest.mark.req("R92", "R101")
@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("transient", "backoff"),
        ("external", "backoff"),
        ("agent", "backoff"),
        ("timeout", "failed"),
        ("validation", "failed"),
        ("governance", "failed"),
        ("terminal", "failed"),
    ],
)
def test_a_child_fails_with_the_class_of_what_failed_it(kind, status):
    """So its step is retried, or not, as any other."""
    live = parent("retryPolicy: {maxRetries: 1}, maxCorrectionAttempts: 3")

    live.closed(live.child("c"), kind=kind)

    assert live.status("c") == status
    error = error_of(live.cell.state)
    assert error is None or (error["class"], error["code"]) == (kind, "effect.failed")


@pytest.mark.req("R92", "R100")
def test_a_retry_is_another_child():
    """With the same input, and an id of its own."""
    live = parent("retryPolicy: {maxRetries: 1}")
    first = live.child("c")
    live.closed(first, kind="transient")

    live.tick(1_000)

    second = live.child("c")
    assert second.child != first.child
    assert (second.input, second.parent.attempt) == (first.input, 2)
    assert second.parent.step_key == first.parent.step_key
    assert refused(live.closed(first, kind="terminal")) == "receipt.not_awaited"
    live.closed(second, "done")
    assert live.state == "completed"


@pytest.mark.req("R92", "R106")
@pytest.mark.parametrize(
    ("more", "status"),
    [
        ("onTimeout: fail", "failed"),
        ("onTimeout: escalate", "escalated"),
        ("onTimeout: retry, retryPolicy: {maxRetries: 1}", "backoff"),
    ],
)
def test_the_timeout_of_the_step_tells_the_child_to_stop(more, status):
    """What the child says after that changes nothing."""
    live = parent(f"timeout: 5s, {more}")
    child = live.child("c")

    live.tick(5_000)

    assert [stop.child for stop in live.unwanted] == [child.child]
    assert live.unwanted[0].by == "engine"
    assert live.status("c") == status
    live.closed(child, kind="terminal")
    assert live.status("c") == status
    closed = "instance.closed" if status == "failed" else "receipt.not_awaited"
    assert refused(live.closed(child, kind="terminal")) == closed


@pytest.mark.req("R92")
def test_a_late_success_of_an_earlier_child_settles_the_step():
    """The one that runs by then is no longer wanted."""
    live = parent("timeout: 5s, onTimeout: retry, retryPolicy: {maxRetries: 2}")
    first = live.child("c")
    live.tick(5_000)
    live.tick(6_000)
    second = live.child("c")

    live.closed(first, "late")

    assert [stop.child for stop in live.unwanted] == [first.child, second.child]
    assert (live.state, live.status("c")) == ("running", "succeeded")
    live.closed(second, kind="terminal")
    assert (live.state, live.cell.state.output.value) == ("completed", "late")


def test_a_late_success_during_back_off_spares_the_next_child():
    """Nobody runs then, so nobody is told to stop."""
    live = parent("timeout: 5s, onTimeout: retry, retryPolicy: {maxRetries: 2}")
    live.tick(5_000)

    live.closed(live.child("c"), "late")

    assert live.state == "completed"
    assert len(live.children) == len(live.unwanted) == 1


@pytest.mark.req("R92", "R133")
def test_a_human_may_start_another_child_with_other_input():
    """It has another key: the answer of the first is a late one."""
    live = parent("onFailure: escalate")
    first = live.child("c")
    live.closed(first, kind="terminal")

    live.submit(ResumeStep("c", "ann", "retry", params=payload({"x": 8})))

    second = live.child("c")
    assert second.input.value == {"x": 8}
    assert second.parent.step_key != first.parent.step_key
    assert second.child != first.child


@pytest.mark.req("R91")
def test_a_paused_parent_starts_no_child():
    """What it has started goes on, and may close during the pause."""
    live = Live("steps:\n  - {name: a, run: x.a}\n  - {name: c, workflow: kid, dependsOn: [a]}")
    live.start()
    live.submit(PauseInstance("ann"))
    live.ok("a")
    assert (live.children, live.status("c")) == ([], "ready")

    live.submit(UnpauseInstance("ann"))
    live.submit(PauseInstance("ann"))
    live.closed(live.child("c"), 1)

    assert live.state == "completed"


@pytest.mark.req("R92", "R112", "R90")
def test_a_cancel_waits_for_the_child_before_the_first_undo():
    """However long its own compensation takes; a step timeout no longer counts."""
    live = Live(
        "failurePolicy: compensate\nsteps:\n  - {name: a, run: x.a, undo: {run: x.u}}\n"
        "  - {name: c, workflow: kid, dependsOn: [a], timeout: 5s}"
    )
    live.start()
    live.ok("a")

    live.submit(CancelInstance("ann"))
    assert [stop.by for stop in live.unwanted] == ["ann"]
    assert refused(live.tick(60_000)) == "timer.not_due"
    assert live.started == ["a#1"]

    live.closed(live.child("c"), kind="terminal")
    assert live.started[-1] == "undo/a#1"
    live.ok("undo/a")
    assert (live.state, live.status("c")) == ("cancelled", "cancelled")


@pytest.mark.req("R92", "R113")
def test_a_child_that_completes_while_it_is_told_to_stop_has_completed():
    """Its step succeeded, so it is undone, where it has an undo."""
    live = parent("undo: {run: x.u, with: {y: '${ result.y }'}}", "failurePolicy: compensate\n")
    live.submit(CancelInstance("ann"))

    live.closed(live.child("c"), {"y": 1})

    assert live.call("undo/c").params.value == {"y": 1}
    live.ok("undo/c")
    assert (live.state, live.status("c")) == ("cancelled", "succeeded")


@pytest.mark.req("R98", "R92")
def test_a_step_that_fails_stops_the_children_of_other_steps():
    """Abort waits for them as for any attempt, and tells each once."""
    live = Live(
        "steps:\n  - {name: a, run: x.a}\n"
        "  - {name: c, workflow: kid, timeout: 5s, onTimeout: retry,"
        " retryPolicy: {maxRetries: 1}}"
    )
    live.start()
    first = live.child("c")
    live.tick(5_000)
    live.tick(6_000)
    live.fail("a", "terminal")
    assert live.state == "waiting"

    live.closed(first, "late")
    assert live.state == "running"
    live.closed(live.child("c"), kind="terminal")

    assert live.state == "failed"
    assert len({stop.child for stop in live.unwanted}) == len(live.unwanted) == 2


@pytest.mark.req("R92", "R215")
def test_children_of_items_have_ids_and_results_of_their_own():
    """As many at a time as `limit` says, though maxParallel does not count them."""
    live = Live(
        "maxParallel: 1\nsteps:\n  - {name: c, workflow: kid, forEach: input.l, limit: 2,"
        " with: {x: '${ item }'}, onFailure: skip}\noutput: '${ steps.c }'"
    )
    live.start({"l": [1, 2, 3]})
    assert [child.parent.step for child in live.children] == ["c[0]", "c[1]"]
    assert (live.state, live.status("c")) == ("waiting", "waiting")

    live.closed(live.child("c[1]"), kind="terminal")
    live.closed(live.child("c[0]"), "one")
    assert live.child("c[2]").input.value == {"x": 3}
    live.closed(live.child("c[2]"), "three")

    assert live.cell.state.output.value == ["one", None, "three"]
    assert live.cell.state.unit(0).attempt == 3
    assert len({child.child for child in live.children}) == 3


@pytest.mark.req("R107", "R92")
def test_the_workflows_timeout_stops_the_child():
    """And waits for it: what the child does is undone before what the parent did."""
    live = parent("timeout: 2h", "timeout: 1h\n")

    live.tick(3_600_000)
    assert len(live.unwanted) == 1
    live.closed(live.child("c"), kind="terminal")

    error = error_of(live.cell.state)
    assert (live.state, live.now) == ("failed", 3_600_000)
    assert error is not None
    assert (error["step"], error["code"]) == (None, "workflow.timeout")
