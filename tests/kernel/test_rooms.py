"""The rooms: cases where a rule of one meets a rule of another."""

import pytest

from pawlflow.model.inputs import DeliverEvent, Receipt, ResumeStep, Signal
from tests.kernel.support import Live, failure, payload, refused

TWO = """
timeout: 1h
failurePolicy: compensate
steps:
  - {name: a, run: x.a, timeout: 1m, undo: {run: x.undo}, with: {n: "${ input.n }"}}
  - {name: b, run: x.b, timeout: 1m, dependsOn: [a], undo: {run: x.undo}}
"""


def test_the_attempt_that_was_overtaken_is_stopped():
    """A late success of the first attempt settles the step; the second is told to stop."""
    live = Live(
        "timeout: 1h\nsteps: [{name: a, run: x.a, timeout: 1m, onTimeout: retry, "
        "retryPolicy: {maxRetries: 1, backoff: 1s}}]"
    )
    live.start()
    live.tick(60_000)
    live.tick(61_000)
    assert live.started == ["a#1", "a#2"]

    live.ok("a", "late", attempt=1)

    assert [(stop.call.attempt, stop.reason) for stop in live.stops] == [
        (1, "timeout"),
        (2, "cancel"),
    ]
    assert (live.state, live.status("a")) == ("running", "succeeded")
    live.settle("a")
    assert live.state == "completed"


@pytest.mark.req("R16", "R212")
def test_a_value_too_large_to_keep_fails_its_step(monkeypatch):
    """Made by an expression out of shared parts, it is refused before it is written out."""
    monkeypatch.setattr("pawlflow.model.payload.PAYLOAD_BYTES_MAX", 2_000)
    large = Live(
        "timeout: 1h\nsteps: [{name: a, run: x.a, timeout: 1m, "
        "with: '${ input.list.map(i, input.list) }'}]"
    )
    large.start({"list": ["x" * 20] * 20})
    assert large.cell.state.closing.failure.code == "payload.too_large"

    edge = Live(
        "timeout: 1h\nsteps: [{name: a, run: x.a, timeout: 1m, "
        "with: '${ [input.text, input.text] }'}]"
    )
    edge.start({"text": "x" * 999})
    assert edge.cell.state.closing.failure.code == "payload.too_large"


def test_a_broadcast_stops_where_the_instance_stops():
    """The first wait's condition breaks and aborts; the second is not looked at any more."""
    live = Live(
        "timeout: 1h\nsteps:\n"
        "  - {name: a, wait: {event: e, match: '1 / event.n == 1', timeout: 1h}}\n"
        "  - {name: b, wait: {event: e, timeout: 1h}}"
    )
    live.start()

    live.submit(DeliverEvent("e", payload({"n": 0})))

    assert (live.status("a"), live.status("b"), live.state) == ("failed", "cancelled", "failed")


@pytest.mark.req("R34")
def test_a_signal_that_breaks_a_match_does_so_once():
    """It is taken with the failure; after the human's word the next one is looked at."""
    live = Live(
        "timeout: 1h\nsteps:\n"
        "  - {name: w, wait: {event: e, match: event.n + 1 > 1, timeout: 1h}, onFailure: escalate}"
    )
    live.start()
    live.submit(Signal("e", payload({"n": "x"}), "ann"))
    live.submit(Signal("e", payload({"n": 5}), "ann"))
    assert live.status("w") == "escalated"

    live.submit(ResumeStep("w", "ann", "resume"))

    assert live.state == "completed"


@pytest.mark.req("R117")
def test_a_late_success_gives_its_result_to_the_undo_that_was_due_anyway():
    """Listed because its outcome was unknown, the step is undone with what it did in fact."""
    live = Live(
        "timeout: 1h\nfailurePolicy: compensate\nsteps:\n"
        "  - {name: a, run: x.a, timeout: 1s, onFailure: skip, undoOnFailure: true,\n"
        "     undo: {run: x.u, with: {id: '${ result.id }'}}}\n"
        "  - {name: b, run: x.b, timeout: 1m, undo: {run: x.u}}\n"
        "  - {name: c, run: x.c, timeout: 1m, dependsOn: [b]}"
    )
    live.start()
    live.tick(1_000)
    live.ok("b")
    live.fail("c")
    live.ok("a", {"id": 7}, attempt=1)
    live.ok("undo/b")

    assert live.call("undo/a").params.value == {"id": 7}
    live.ok("undo/a")
    assert (live.state, live.cell.state.rollback) == ("failed", "full")


@pytest.mark.req("R122")
def test_compensation_begins_when_every_attempt_has_settled():
    """Until then the instance is stopping; grace ends what does not answer."""
    live = Live(
        "timeout: 1h\nfailurePolicy: compensate\nsteps:\n"
        "  - {name: a, run: x.a, timeout: 1m, undo: {run: x.u}}\n"
        "  - {name: b, run: x.b, timeout: 10m, grace: 5s}\n"
        "  - {name: c, run: x.c, timeout: 1m, dependsOn: [a]}"
    )
    live.start()
    live.ok("a")
    live.now = 1_000
    live.fail("c")
    assert (live.state, live.started) == ("running", ["a#1", "b#1", "c#1"])
    assert refused(live.tick(5_999)) == "timer.not_due"

    live.tick(6_000)

    assert (live.state, live.status("b")) == ("compensating", "cancelled")
    assert live.started[-1] == "undo/a#1"
    assert live.published()[-3:] == [
        "WorkflowStepCancelled",
        "CompensationStarted",
        "CompensationTaskAssigned",
    ]


@pytest.mark.req("R95")
def test_steps_by_themselves_are_those_that_come_before():
    """A result that merely happens to be there is not seen, and a null one is none."""
    live = Live(
        "timeout: 1h\nsteps:\n"
        "  - {name: a, run: x.a, timeout: 1m}\n"
        "  - {name: n, run: x.n, timeout: 1m, dependsOn: [a]}\n"
        "  - {name: other, run: x.o, timeout: 1m}\n"
        "  - {name: b, run: x.b, timeout: 1m, dependsOn: [a, n], with: '${ steps }'}\n"
        "output: ${ steps.map(name, name) }"
    )
    live.start()
    live.ok("other", 1)
    live.ok("a", 2)
    live.ok("n", None)
    assert live.call("b").params.value == {"a": 2}

    live.ok("b", 3)

    assert live.cell.state.output.value == ["a", "b", "other"]


def test_a_call_carries_its_timeout_and_who_is_to_do_it():
    """What an executor must know besides its parameters."""
    live = Live(
        "timeout: 1h\nfailurePolicy: compensate\nsteps:\n"
        "  - {name: a, agent: Writer, timeout: 1m, heartbeat: 9s, undo: {run: x.u, timeout: 5s}}\n"
        "  - {name: b, run: x.b, grace: 2s, dependsOn: [a]}"
    )
    live.start()
    live.ok("a")
    live.fail("b")

    called = [(call.step, call.by_agent, call.target, call.timeout_ms) for call in live.calls]
    assert called == [
        ("a", True, "Writer", 60_000),
        ("b", False, "x.b", None),
        ("a", False, "x.u", 5_000),
    ]
    clocks = [(call.heartbeat_ms, call.grace_ms) for call in live.calls]
    assert clocks == [(9_000, 30_000), (None, 2_000), (None, 30_000)]


def test_a_signal_of_another_name_is_passed_over():
    """Kept signals are looked through in order; only those of the wait's event count."""
    live = Live(
        "timeout: 1h\nsteps:\n"
        "  - {name: s, sleep: 1s}\n"
        "  - {name: w, wait: {event: e, match: event == 2, timeout: 1h}, dependsOn: [s]}"
    )
    live.start()
    for event, value in (("other", 2), ("e", 1), ("e", 2)):
        live.submit(Signal(event, payload(value), "ann"))

    live.tick(1_000)

    assert live.state == "completed"
    assert live.cell.state.units[1].result.value == 2


def test_an_executor_that_gives_up_counts_as_transient():
    """A receipt `cancelled` that nobody asked for is tried again by the policy."""
    live = Live(
        "timeout: 1h\nsteps: [{name: a, run: x.a, timeout: 1m, retryPolicy: {maxRetries: 1}}]"
    )
    live.start()

    live.settle("a")

    assert live.status("a") == "backoff"
    assert live.cell.state.units[0].failure.code == "attempt.abandoned"


def test_a_failure_with_an_unknown_outcome_is_undone():
    """The work may have been done: it goes on the list although the step failed."""
    live = Live(TWO)
    live.start({"n": 1})
    call = live.call("a")
    why = failure("unknown_outcome")

    live.submit(Receipt(call.key, 1, "failed", failure=why))

    assert live.started == ["a#1", "undo/a#1"]
    assert live.call("undo/a").params.value == {"command": {"n": 1}, "result": None}
