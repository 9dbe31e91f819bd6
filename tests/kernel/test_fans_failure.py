"""forEach: what becomes of items that fail, of expressions that do, and of humans who are asked."""

import pytest

from pawlflow.model.inputs import CancelInstance, ResumeStep
from pawlflow.projections.units import error_of
from tests.kernel.support import Live, payload, refused
from tests.kernel.test_fans import fanned, statuses


@pytest.mark.req("R97", "R98", "R215")
@pytest.mark.parametrize(
    ("policy", "state", "whole", "others"),
    [
        ("abort", "failed", "failed", ["cancelled", "cancelled"]),
        ("compensate", "failed", "failed", ["cancelled", "cancelled"]),
        ("skip", "completed", "succeeded", ["succeeded", "succeeded"]),
    ],
)
def test_an_item_that_fails_follows_on_failure(policy, state, whole, others):
    """Abort and compensate fail the step with its item; skip leaves a null."""
    live = fanned(f"limit: 2, onFailure: {policy}")

    live.fail("a[0]", "terminal")
    if policy == "skip":
        live.ok("a[1]", 1)
        live.ok("a[2]", 2)
        assert live.cell.state.result_of(0) == [None, 1, 2]
    else:
        assert live.state == "running"
        live.settle("a[1]")

    assert live.state == state
    assert live.status("a") == whole
    assert statuses(live, "a[1]", "a[2]") == others


@pytest.mark.req("R100", "R215")
def test_an_item_is_retried_by_itself_and_the_error_has_its_attempts():
    """The step's attempts are the sum of its items'; the error's are those of the item."""
    live = fanned("retryPolicy: {maxRetries: 2, backoff: 5s}")
    for at in (5_000, 10_000):
        live.fail("a[1]", "transient")
        live.tick(at)
    live.ok("a[0]")

    live.fail("a[1]", "transient")
    live.settle("a[2]")

    error = error_of(live.cell.state)
    assert error is not None
    assert (error["step"], error["attempts"], error["class"]) == ("a", 3, "transient")
    assert live.cell.state.unit(0).attempt == 5
    assert live.published().count("WorkflowStepFailed") == 2  # the item's, and with it the step's


@pytest.mark.req("R103", "R104")
def test_an_item_is_corrected_by_itself():
    """With its own findings, its own budget, and a key of its own for the new round."""
    live = fanned("maxCorrectionAttempts: 1")

    live.fail("a[1]", "validation", findings=["too long"])

    first, again = [call for call in live.calls if call.item == 1]
    assert (again.feedback, again.round, again.attempt) == (("too long",), 2, 2)
    assert first.key != again.key
    live.ok("a[1]")
    assert live.cell.state.unit(0).feedback == 1
    live.fail("a[0]", "validation")
    live.fail("a[0]", "validation")
    assert live.status("a[0]") == "failed"


@pytest.mark.req("R133", "R215")
@pytest.mark.parametrize(
    ("act", "called"),
    [
        (ResumeStep("a[1]", "ann", "resume"), ({"v": 2}, None, 1)),
        (ResumeStep("a[1]", "ann", "retry", params=payload({"v": 20})), ({"v": 20}, None, 2)),
        (ResumeStep("a[1]", "ann", "reassign", role="Expert"), ({"v": 2}, "Expert", 1)),
    ],
    ids=lambda value: getattr(value, "how", None),
)
def test_an_escalated_item_is_let_go_on_by_its_name(act, called):
    """The other items go on meanwhile; nobody else can be resumed."""
    live = fanned("onFailure: escalate, limit: 2")
    live.fail("a[1]", "terminal")
    live.ok("a[0]")
    assert live.started[-1] == "a[2]#1"
    assert statuses(live, "a", "a[1]") == ["running", "escalated"]
    for name in ("a", "a[0]", "a[2]"):
        assert refused(live.submit(ResumeStep(name, "ann", "resume"))) == "step.not_escalated"
    for name in ("a[3]", "a[01]", "a[", "a[]", "a[1]x", f"a[{'9' * 5000}]", "b[0]", "a[\uff11]"):
        assert refused(live.submit(ResumeStep(name, "ann", "resume"))) == "step.unknown"

    live.submit(act)

    call = live.call("a[1]")
    assert (call.params.value, call.role, call.round) == called
    live.ok("a[2]")
    assert live.state == "running"
    live.ok("a[1]")
    assert live.state == "completed"


def test_an_item_still_to_come_is_known_but_not_escalated():
    """It has a name, though nobody has looked at it."""
    live = fanned("onFailure: escalate, limit: 1")

    assert refused(live.submit(ResumeStep("a[2]", "ann", "resume"))) == "step.not_escalated"


def test_an_instance_with_nothing_but_escalated_items_is_escalated():
    """And so is its step."""
    live = fanned("onFailure: escalate", items=(1, 2))

    live.fail("a[0]", "terminal")
    live.fail("a[1]", "terminal")

    assert (live.state, live.status("a")) == ("escalated", "escalated")


@pytest.mark.req("R106", "R215")
def test_an_item_times_out_by_itself():
    """The clock of each counts from its own start."""
    live = fanned("timeout: 10s, limit: 1, onFailure: skip")
    live.now = 4_000
    live.ok("a[0]")

    live.tick(10_000)
    assert live.status("a[1]") == "running"
    live.tick(14_000)

    assert statuses(live, "a[1]", "a[2]") == ["skipped", "running"]
    assert [stop.reason for stop in live.stops] == ["timeout"]


# Expressions


@pytest.mark.req("R215")
@pytest.mark.parametrize(
    ("items", "code"),
    [
        ("text", "expression.not_list"),
        ({"a": 1}, "expression.not_list"),
        (7, "expression.not_list"),
        (None, "expression.not_list"),
    ],
)
def test_for_each_needs_a_list(items, code):
    """What is none fails the step, class terminal, before anything began."""
    live = fanned(items=items)

    error = error_of(live.cell.state)
    assert error is not None
    assert (error["step"], error["class"], error["code"]) == ("a", "terminal", code)
    assert error["attempts"] == 0
    assert "a gave" in error["message"]
    assert live.calls == []


@pytest.mark.req("R215")
@pytest.mark.parametrize("field", ["with: {v: '${ 1 / item }'}", "when: 1 / item == 1"])
def test_an_expression_that_fails_for_one_item_fails_that_item(field):
    """By onFailure, which may skip it; the others are not touched."""
    spec = f"{{name: a, run: x.a, forEach: input.l, onFailure: skip, {field}}}"
    live = Live(f"steps:\n  - {spec}")
    live.start({"l": [1, 0, 1]})

    assert statuses(live, "a[0]", "a[1]", "a[2]") == ["running", "skipped", "running"]
    assert live.started == ["a[0]#1", "a[2]#1"]


def test_an_item_without_parameters_may_be_given_some_by_a_human():
    """Its expression fails again, so a plain resume is refused."""
    live = Live(
        "steps:\n  - {name: a, run: x.a, forEach: input.l, onFailure: escalate,"
        " with: {v: '${ item + 1 }'}}"
    )
    live.start({"l": [1, "x"]})
    assert live.status("a[1]") == "escalated"

    assert refused(live.submit(ResumeStep("a[1]", "ann", "resume"))) == "step.no_input"
    live.submit(ResumeStep("a[1]", "ann", "retry", params=payload({"v": 9})))

    assert live.call("a[1]").params.value == {"v": 9}


def test_a_step_whose_list_is_none_cannot_be_resumed():
    """A human can only cancel: the list will be none again, and it takes no other input."""
    live = fanned("onFailure: escalate", items=7)
    assert live.status("a") == "escalated"

    assert refused(live.submit(ResumeStep("a", "ann", "resume"))) == "step.no_input"
    other = ResumeStep("a", "ann", "retry", params=payload({"v": 1}))
    assert refused(live.submit(other)) == "step.no_input"
    live.submit(CancelInstance("ann"))
    assert live.state == "cancelled"


def test_a_step_whose_condition_failed_runs_its_items_when_resumed():
    """A human decides that it shall run: over its items, as ever, in the role they name."""
    live = fanned("onFailure: escalate, when: 1 / input.zero == 1, limit: 1", items=(5, 6))
    assert live.status("a") == "escalated"
    other = ResumeStep("a", "ann", "retry", params=payload({"v": 1}))
    assert refused(live.submit(other)) == "step.takes_no_input"

    live.submit(ResumeStep("a", "ann", "reassign", role="Expert"))
    live.ok("a[0]")

    assert [call.role for call in live.calls] == ["Expert", "Expert"]
    live.ok("a[1]")
    assert live.state == "completed"


def test_items_are_found_again_after_a_crash():
    """The list is never written: it follows from what is."""
    live = fanned("limit: 1", items=tuple("pqr")).reread()
    live.ok("a[0]")

    live = live.reread()
    live.ok("a[1]")

    assert live.call("a[2]").params.value == {"v": "r"}
