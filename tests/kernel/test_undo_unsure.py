"""What may have been done: it failed and was stopped, it runs again, or it succeeded too late."""

import pytest

from pawlflow.kernel.snapshot import state_bytes, state_from_bytes
from pawlflow.kernel.waits import SIGNALS_MAX
from pawlflow.model.inputs import (
    Approve,
    CancelInstance,
    PauseInstance,
    Reject,
    ResumeStep,
    Signal,
)
from pawlflow.projections.verify import verify
from tests.kernel.support import Live, payload, refused

COMPENSATES = "timeout: 1h\nfailurePolicy: compensate\nsteps:\n"
UNSURE = "undoOnFailure: true, undo: {run: x.u, with: {v: '${ result.v }', n: '${ item }'}}"
PLAIN = "undoOnFailure: true, undo: {run: x.u, with: {v: '${ result.v }'}}"
DRAFT = COMPENSATES + (
    f"  - {{name: d, agent: Writer, timeout: 5m, retryPolicy: {{maxRetries: 1}}, {PLAIN}}}\n"
    "  - {name: g, approval: {role: R, expires: 1h, onReject: changes}, dependsOn: [d]}\n"
)
ITEMS = COMPENSATES + (
    "  - {name: a, run: x.a, timeout: 1m, forEach: input.bills, retryPolicy: {maxRetries: 1},\n"
    f"     {UNSURE}}}\n"
)


def undone(live: Live) -> list[object]:
    """Let every undo succeed; what each was given, in order."""
    found = []
    while live.state == "compensating":
        call = live.calls[-1]
        assert call.direction == "undo"
        found.append(call.params.value)
        live.ok(f"undo/{call.step}" + (f"[{call.item}]" if call.item >= 0 else ""))
    assert verify(live.id, live.plan, live.journal(), live.payloads) is None
    return found


@pytest.mark.req("R117", "R120")
def test_items_that_failed_are_undone_though_they_were_to_be_tried_again():
    """Each by itself; the one at its first attempt has not failed, and the step is none of them."""
    live = Live(ITEMS)
    live.start({"bills": [10, 20, 30]})
    live.fail("a[0]", "transient")
    live.ok("a[1]", {"v": 2})

    live.submit(CancelInstance("ann"))
    live.settle("a[2]")

    assert undone(live) == [{"v": None, "n": 10}, {"v": 2, "n": 20}]
    assert (live.state, live.cell.state.rollback) == ("cancelled", "full")


@pytest.mark.req("R117")
def test_what_was_never_attempted_is_not_undone():
    """It failed before there was an attempt: its parameters, or its list, could not be made."""
    live = Live(
        COMPENSATES
        + f"  - {{name: a, run: x.a, onFailure: escalate, with: {{n: '${{ 1 / 0 }}'}}, {PLAIN}}}\n"
        f"  - {{name: b, run: x.b, onFailure: escalate, forEach: '1 / 0', {PLAIN}}}"
    )
    live.start()
    assert (live.status("a"), live.status("b")) == ("escalated", "escalated")

    live.submit(CancelInstance("ann"))

    assert live.calls == []
    assert (live.state, live.cell.state.rollback) == ("cancelled", "full")


@pytest.mark.req("R117", "R120")
def test_an_item_that_was_escalated_is_undone_and_its_step_is_not():
    """A step with items counts their attempts, and has none of its own."""
    live = Live(ITEMS.replace("retryPolicy: {maxRetries: 1}", "onFailure: escalate"))
    live.start({"bills": [10]})
    live.fail("a[0]")
    assert (live.status("a[0]"), live.cell.state.unit(0).attempt) == ("escalated", 1)

    live.submit(CancelInstance("ann"))

    assert undone(live) == [{"v": None, "n": 10}]


@pytest.mark.req("R117")
def test_a_run_that_was_sent_back_and_has_not_begun_is_not_undone():
    """The comment of a human is no failure of an attempt."""
    live = Live(DRAFT)
    live.start()
    live.ok("d", {"v": 1})
    live.submit(PauseInstance("ann"))
    live.submit(Reject("g", "ann", "R", payload("better")))
    assert live.status("d") == "correcting"

    live.submit(CancelInstance("ann"))

    assert undone(live) == [{"v": 1}]


@pytest.mark.req("R117", "R120")
@pytest.mark.parametrize("again", [False, True], ids=["in back-off", "at its next attempt"])
def test_a_run_again_that_failed_is_undone_beside_the_first(again):
    """Each with its own result, also after a crash and from a snapshot."""
    live = Live(DRAFT)
    live.start()
    live.ok("d", {"v": 1})
    live.submit(Reject("g", "ann", "R", payload("better")))
    live.fail("d", "transient")
    if again:
        live.tick(1_000)
        assert live.started[-1] == "d#3"
    data = state_bytes(live.cell.state)
    live.cell.state = state_from_bytes(data, live.id, live.plan, live.payloads)

    live.submit(CancelInstance("ann"))
    if again:
        live.settle("d")
    live = live.reread()

    assert undone(live) == [{"v": None}, {"v": 1}]


@pytest.mark.req("R117")
def test_a_correction_that_was_to_begin_is_undone_for_what_it_corrects():
    """A result that was refused had been made all the same."""
    live = Live(
        COMPENSATES + f"  - {{name: a, run: x.a, timeout: 1m, maxCorrectionAttempts: 1, {PLAIN}}}"
    )
    live.start()
    live.submit(PauseInstance("ann"))
    live.fail("a", "validation")
    assert live.status("a") == "correcting"

    live.submit(CancelInstance("ann"))

    assert undone(live) == [{"v": None}]


@pytest.mark.req("R117", "R128")
def test_a_child_that_failed_is_undone_though_another_was_to_begin():
    """As for an executor."""
    live = Live(
        COMPENSATES
        + f"  - {{name: c, workflow: kid, timeout: 1m, retryPolicy: {{maxRetries: 1}}, {PLAIN}}}"
    )
    live.start()
    live.closed(live.child("c"), kind="transient")
    assert live.status("c") == "backoff"

    live.submit(CancelInstance("ann"))

    assert undone(live) == [{"v": None}]


@pytest.mark.req("R117")
def test_a_child_at_its_first_attempt_has_not_failed():
    """It is told to stop, and says that it has."""
    live = Live(COMPENSATES + f"  - {{name: c, workflow: kid, timeout: 1m, {PLAIN}}}")
    live.start()

    live.submit(CancelInstance("ann"))
    live.closed(live.child("c"), kind="terminal")

    assert live.calls == []
    assert (live.state, live.cell.state.rollback) == ("cancelled", "full")


@pytest.mark.req("R34", "R117")
def test_a_wait_in_back_off_is_undone_and_one_that_is_open_again_is_not():
    """Whoever was waited for may have acted; since it opened again nothing has failed."""
    spec = COMPENSATES + (
        "  - {name: w, wait: {event: e, timeout: 1s}, onTimeout: retry,\n"
        f"     retryPolicy: {{maxRetries: 1, backoff: 1m}}, {PLAIN}}}"
    )
    live = Live(spec)
    live.start()
    live.tick(1_000)
    assert live.status("w") == "backoff"
    live.submit(CancelInstance("ann"))
    assert undone(live) == [{"v": None}]

    live = Live(spec)
    live.start()
    live.tick(1_000)
    live.tick(61_000)
    assert live.status("w") == "waiting"
    live.submit(CancelInstance("ann"))
    assert undone(live) == []


@pytest.mark.req("R117")
def test_what_was_rejected_and_escalated_is_undone_and_what_was_granted_then_once():
    """A gate that a human let ask again is as it was before."""
    spec = COMPENSATES + (
        "  - {name: g, approval: {role: R, expires: 1h, onReject: fail}, onFailure: escalate,\n"
        "     undoOnFailure: true, undo: {run: x.u, with: {by: '${ result.by }'}}}\n"
        "  - {name: z, run: x.z, timeout: 1m, dependsOn: [g]}"
    )
    live = Live(spec)
    live.start()
    live.submit(Reject("g", "bob", "R"))
    live.submit(CancelInstance("ann"))
    assert undone(live) == [{"by": None}]

    live = Live(spec)
    live.start()
    live.submit(Reject("g", "bob", "R"))
    live.submit(ResumeStep("g", "ann", "resume"))
    live.submit(Approve("g", "bob", "R"))
    live.fail("z")
    assert undone(live) == [{"by": "bob"}]


@pytest.mark.req("R117", "R120")
def test_a_late_success_of_a_skipped_item_is_undone_in_its_turn():
    """By the time it became known; a duplicate of it says nothing new."""
    live = Live(
        ITEMS.replace("retryPolicy: {maxRetries: 1}", "onFailure: skip").replace(
            "undoOnFailure: true, ", ""
        )
        + "  - {name: z, run: x.z, timeout: 1m, dependsOn: [a]}"
    )
    live.start({"bills": [10, 20]})
    live.fail("a[0]", "timeout")
    live.ok("a[1]", {"v": 2})
    live.ok("a[0]", {"v": 1}, attempt=1)
    assert refused(live.ok("a[0]", {"v": 9}, attempt=1)) == "receipt.not_awaited"
    data = state_bytes(live.cell.state)
    live.cell.state = state_from_bytes(data, live.id, live.plan, live.payloads)

    live.fail("z")

    assert undone(live) == [{"v": 1, "n": 10}, {"v": 2, "n": 20}]


@pytest.mark.req("R117")
def test_a_late_success_is_not_undone_where_nothing_is():
    """With abort the instance ends as it is."""
    live = Live(
        "timeout: 1h\nsteps:\n"
        "  - {name: a, run: x.a, timeout: 1s, onFailure: skip, undo: {run: x.u}}\n"
        "  - {name: z, run: x.z, timeout: 1m}"
    )
    live.start()
    live.tick(1_000)
    live.ok("a", {"v": 1}, attempt=1)

    live.fail("z")

    assert live.started == ["a#1", "z#1"]
    assert (live.state, live.cell.state.rollback) == ("failed", "none")


@pytest.mark.req("R34")
@pytest.mark.parametrize("breaks", [False, True], ids=["matches", "breaks the match"])
def test_a_signal_for_an_open_wait_needs_no_room_among_those_kept(breaks):
    """The cap is for what is kept; it is still there for the next one that has to be."""
    live = Live(
        "timeout: 1h\nsteps:\n"
        "  - {name: w, wait: {event: e, match: event.n + 1 > 1, timeout: 1h}, onFailure: skip}\n"
        "  - {name: v, wait: {event: f, timeout: 1h}}"
    )
    live.start()
    for _ in range(SIGNALS_MAX):
        live.submit(Signal("e", payload({"n": 0}), "ann"))
    assert refused(live.submit(Signal("e", payload({"n": 0}), "ann"))) == "signal.too_many"

    live.submit(Signal("e", payload({"n": "x" if breaks else 5}), "ann"))

    assert live.status("w") == ("skipped" if breaks else "succeeded")
    assert len(live.cell.state.signals) == SIGNALS_MAX
    assert refused(live.submit(Signal("e", payload({"n": 5}), "ann"))) == "signal.too_many"
    live.submit(Signal("f", payload({}), "ann"))
    assert live.state == "completed"
