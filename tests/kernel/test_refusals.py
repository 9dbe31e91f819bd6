"""Inputs the kernel refuses: each with a stable code, and each without a trace."""

import pytest

from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.state import key_of
from pawlflow.kernel.step import step
from pawlflow.model.inputs import (
    Approve,
    CancelInstance,
    DeliverEvent,
    PauseInstance,
    Receipt,
    Reject,
    ResumeStep,
    Signal,
    StartInstance,
    Tick,
    UnpauseInstance,
)
from pawlflow.model.journal import Stamps
from pawlflow.model.operate import DiscardInput, RedriveInput
from tests.kernel.support import Live, payload, refused

CHAIN = """
timeout: 1h
failurePolicy: compensate
steps:
  - {name: a, run: x.a, timeout: 1m, undo: {run: x.undo}}
  - {name: gate, approval: {role: Boss, quorum: 2, notBy: requester, expires: 1h}, dependsOn: [a]}
  - {name: b, run: x.b, dependsOn: [gate], timeout: 1m, undo: {run: x.undo}}
"""


def at_gate() -> Live:
    live = Live(CHAIN)
    live.start()
    live.ok("a", {"id": 1})
    return live


@pytest.mark.parametrize(
    ("incoming", "code"),
    [
        (Approve("nope", "ann", "Boss"), "step.unknown"),
        (Reject("nope", "ann", "Boss"), "step.unknown"),
        (Approve("a", "ann", "Boss"), "approval.not_open"),
        (Approve("b", "ann", "Boss"), "approval.not_open"),
        (Approve("gate", "ann", "Clerk"), "approval.wrong_role"),
        (Reject("gate", "ann", None), "approval.wrong_role"),
        (Approve("gate", "zoe", "Boss"), "approval.by_requester"),
        (ResumeStep("nope", "ann", "resume"), "step.unknown"),
        (ResumeStep("gate", "ann", "resume"), "step.not_escalated"),
        (ResumeStep("b", "ann", "resume"), "step.not_escalated"),
        (UnpauseInstance("ann"), "instance.not_paused"),
        (DeliverEvent("e", payload(1)), "event.not_awaited"),
        (Tick(), "timer.not_due"),
        (Receipt(b"x" * 16, 1, "ok"), "receipt.unknown"),
        (DiscardInput(7, "ann"), "input.not_for_cells"),
        (RedriveInput(7, payload(b""), "ann"), "input.not_for_cells"),
    ],
)
def test_what_does_not_fit_the_moment_is_refused(incoming, code):
    """Wrong step, wrong role, wrong person, wrong time: nothing changes."""
    live = at_gate()
    before = live.cell.head

    assert refused(live.submit(incoming)) == code
    assert live.cell.head == before


def test_a_quorum_counts_people():
    """The same person twice is one approval."""
    live = at_gate()
    live.submit(Approve("gate", "ann", "Boss"))

    assert refused(live.submit(Approve("gate", "ann", "Boss"))) == "approval.duplicate"
    live.submit(Approve("gate", "bob", "Boss"))
    assert live.status("gate") == "succeeded"


@pytest.mark.req("R93", "R130")
def test_an_instance_starts_once_and_closes_once():
    """A second start is a conflict; before the first and after the close there is nothing."""
    live = Live(CHAIN)
    assert refused(live.tick(0)) == "instance.unknown"

    start = StartInstance(live.plan.definition, payload(None), "zoe")
    live.submit(start)
    assert refused(live.submit(start)) == "instance.exists"

    live.fail("a")
    assert live.state == "failed"
    assert refused(live.submit(start)) == "instance.exists"
    assert refused(live.submit(CancelInstance("ann"))) == "instance.closed"


def test_a_start_needs_its_definition_and_its_entropy():
    """The plan must be the one asked for, and keys need sixteen random bytes."""
    live = Live(CHAIN)
    foreign = StartInstance(b"x" * 32, payload(None), "zoe")
    assert refused(live.submit(foreign)) == "definition.unknown"

    start = StartInstance(live.plan.definition, payload(None), "zoe")
    short = step(live.cell, start, Stamps(0, 1, b"short"))
    assert isinstance(short, Rejected)
    assert short.code == "entropy.short"


@pytest.mark.parametrize(
    "incoming",
    [
        CancelInstance("ann"),
        PauseInstance("ann"),
        Signal("e", payload(1), "ann"),
    ],
)
def test_once_the_outcome_is_decided_nothing_may_interfere(incoming):
    """Compensation cannot be cancelled, paused or signalled."""
    live = at_gate()
    live.submit(CancelInstance("ann"))
    assert live.state == "compensating"

    assert refused(live.submit(incoming)) == "instance.stopping"


def test_a_thousand_signals_are_kept_and_no_more():
    """The bound has a name, and what is over it is refused, not lost in silence."""
    live = at_gate()
    for n in range(1_000):
        live.submit(Signal("e", payload(n), "ann"))

    assert refused(live.submit(Signal("e", payload(1_000), "ann"))) == "signal.too_many"


def escalated(spec: str) -> Live:
    live = Live(f"timeout: 1h\nsteps:\n  - {{name: a, {spec}, onFailure: escalate}}")
    live.start({"zero": 0})
    return live


@pytest.mark.req("R133")
def test_a_step_without_input_cannot_be_resumed_until_it_has_one():
    """Its `with` has no value: a human may give one, and then it runs."""
    live = escalated("run: x.a, timeout: 1m, with: '${ 1 / input.zero }'")
    assert live.state == "escalated"

    assert refused(live.submit(ResumeStep("a", "ann", "resume"))) == "step.no_input"
    live.submit(ResumeStep("a", "ann", "retry", params=payload({"n": 1})))

    assert live.call("a").params.value == {"n": 1}
    assert live.call("a").round == 1  # the first round there ever was


def test_a_step_whose_condition_failed_gets_its_input_when_it_is_resumed():
    """`when` had no value, so `with` was never evaluated; a human's word replaces the condition."""
    live = escalated("run: x.a, timeout: 1m, when: 1 / input.zero, with: {n: 2}")

    live.submit(ResumeStep("a", "ann", "resume"))

    assert live.call("a").params.value == {"n": 2}


def test_resuming_needs_what_its_kind_needs():
    """Reassigning needs a role; a gate has no input to edit."""
    live = escalated("run: x.a, timeout: 1m")
    live.fail("a")
    assert refused(live.submit(ResumeStep("a", "ann", "reassign"))) == "role.missing"

    gate = escalated("approval: {role: Boss, expires: 1m, onReject: fail}")
    gate.submit(Reject("a", "ann", "Boss"))
    edited = ResumeStep("a", "ann", "retry", params=payload({}))
    assert refused(gate.submit(edited)) == "step.takes_no_input"
    gate.submit(ResumeStep("a", "ann", "reassign", role="Chief"))
    assert refused(gate.submit(Approve("a", "ann", "Boss"))) == "approval.wrong_role"
    gate.submit(Approve("a", "ann", "Chief"))
    assert gate.state == "completed"


def test_a_receipt_of_an_attempt_that_was_never_made_is_refused():
    """Attempts count from one to the newest."""
    live = Live(CHAIN)
    live.start()
    key = key_of(live.cell.state, live.cell.state.unit(0), "do")

    for attempt in (0, -1, 2):
        assert refused(live.submit(Receipt(key, attempt, "ok"))) == "receipt.not_awaited"
    assert refused(live.submit(Receipt(key, 2, "failed"))) == "receipt.not_awaited"


def test_an_undo_is_settled_once_and_only_while_it_runs():
    """Receipts of undos that are over, or not this attempt's failure, change nothing."""
    live = Live(CHAIN)
    live.start()
    live.ok("a")
    live.submit(CancelInstance("ann"))

    for attempt in (0, 2):
        never = Receipt(live.call("undo/a").key, attempt, "ok")
        assert refused(live.submit(never)) == "receipt.not_awaited"
    assert refused(live.fail("undo/a", attempt=3)) == "receipt.not_awaited"
    live.ok("undo/a")
    assert live.state == "cancelled"


def test_a_late_failure_of_an_undo_that_is_tried_again_is_refused():
    """A failure settles its own attempt alone."""
    live = Live(
        "timeout: 1h\nfailurePolicy: compensate\nsteps:\n"
        "  - {name: a, run: x.a, undo: {run: x.u, retryPolicy: {maxRetries: 1}}}\n"
        "  - {name: b, sleep: 1m}"
    )
    live.start()
    live.ok("a")
    live.submit(CancelInstance("ann"))
    live.fail("undo/a", "transient")
    live.tick(1_000)

    assert live.started[-1] == "undo/a#2"
    assert refused(live.fail("undo/a", attempt=1)) == "receipt.not_awaited"
