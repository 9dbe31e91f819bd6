"""Guards: an approval holds for exactly what was shown, once, and for no other call."""

import pytest

from pawlflow.kernel.heads import questions_changed
from pawlflow.model.ids import StepName
from pawlflow.model.inputs import Approve, CancelInstance, Reject, ResumeStep
from pawlflow.model.reviews import ApprovalParts, GateBound, approval_digest
from tests.kernel.support import Live, names, payload, refused

RELEASE = """
timeout: 1d
steps:
  - {name: gate, approval: {role: Boss, expires: 1h, guards: [promote]}, show: {env: prod}}
  - {name: build, run: ci.build, timeout: 1h}
  - name: promote
    run: deploy.promote
    dependsOn: [gate, build]
    with: {image: "${ steps.build.image }", env: prod}
    retryPolicy: {maxRetries: 1, backoff: 1s}
    onFailure: escalate
    timeout: 1m
  - {name: notes, run: docs.write, dependsOn: [gate], timeout: 1m}
"""


def released() -> Live:
    """Built, then approved: what was shown is what runs."""
    live = Live(RELEASE)
    live.start()
    live.ok("build", {"image": "i1"})
    live.submit(Approve("gate", "zoe", "Boss"))  # stale: it was asked before the build was done
    live.submit(Approve("gate", "ann", "Boss"))
    return live


def asked(live: Live):
    """What the gate asks now."""
    unit = live.cell.state.named("gate")
    return unit.guarded.value, None if unit.shown is None else unit.shown.value


def bound(live: Live) -> dict[str, bytes]:
    """The digests of the last grant."""
    events = [event for turn in live.turns for event in turn.turn.events]
    return [event for event in events if isinstance(event, GateBound)][-1].digests.value


@pytest.mark.req("R204")
def test_the_gate_shows_what_would_be_called_and_the_grant_is_bound_to_it():
    """By the digest of effect, parameters, step, item, round, definition and policy."""
    live = released()

    parts = ApprovalParts(
        "deploy.promote",
        payload({"image": "i1", "env": "prod"}),
        StepName("promote"),
        -1,
        1,
        live.plan.definition,
    )
    assert asked(live)[0] == {
        "promote": {"round": 1, "params": {"image": "i1", "env": "prod"}},
    }
    assert bound(live) == {"promote": approval_digest(parts)}
    assert live.status("promote") == "running"


def test_a_digest_is_what_it_always_was():
    """Journals hold it, so it can never change."""
    parts = ApprovalParts("pay.charge", payload({"n": 1}), StepName("charge"), 2, 3, bytes(32))

    known = "39ac96068668bcfa5cd281efb0eb7a87711475ebe2b6e4b1f0e599eaf6309fa3"
    assert approval_digest(parts).hex() == known


@pytest.mark.req("R204")
def test_a_vote_for_what_is_no_longer_so_is_kept_and_void():
    """It is on the record, the gate asks again, and says what has changed since."""
    live = Live(RELEASE)
    live.start()
    live.ok("build", {"image": "i1"})
    live.now = 5_000

    done = live.submit(Approve("gate", "ann", "Boss"))

    assert names(done) == ["GateVoted", "GateVoided", "StepReady", "StepWaiting"]
    shown = asked(live)[1]
    assert shown == {
        "env": "prod",
        "changed": [{"step": "promote", "path": "/image", "was": None, "now": "i1"}],
    }
    [(step, question)] = questions_changed(live.cell.state)
    assert (step, question.kind, question.since) == ("gate", "approval", 5_000)
    assert question.show.value == shown
    assert live.cell.state.named("gate").votes == ()


@pytest.mark.req("R204")
def test_a_plain_retry_is_covered_and_an_edited_one_is_not():
    """The attempt is not in the digest; the parameters and the round are."""
    live = released()
    live.fail("promote", "transient")
    live.tick(live.now + 1_000)
    assert live.started.count("promote#2") == 1

    live.fail("promote", "terminal")
    done = live.submit(ResumeStep("promote", "zoe", "retry", params=payload({"image": "i2"})))

    assert names(done)[:3] == ["StepResumed", "GateVoided", "StepBarred"]
    assert live.status("promote") == "ready"
    assert "promote#3" not in live.started
    assert {(c["path"], c["was"], c["now"]) for c in asked(live)[1]["changed"]} == {
        ("/env", "prod", None),
        ("/image", "i1", "i2"),
        ("round", 1, 2),
    }

    live.submit(Approve("gate", "ann", "Boss"))
    assert live.calls[-1].params.value == {"image": "i2"}


def test_others_behind_the_gate_are_not_held_up():
    """A void approval bars the one step whose call has changed, and no other."""
    live = Live(RELEASE)
    live.start()
    live.submit(Approve("gate", "ann", "Boss"))
    assert live.status("notes") == "running"

    live.ok("build", {"image": "i1"})

    assert (live.status("gate"), live.status("promote")) == ("waiting", "ready")
    live.ok("notes")
    assert live.status("notes") == "succeeded"
    assert refused(live.submit(ResumeStep("promote", "zoe", "resume"))) == "step.not_escalated"


@pytest.mark.req("R130", "R204")
def test_a_gate_that_asks_again_may_be_rejected_or_expire():
    """Nothing of the first grant is left."""
    live = Live(RELEASE)
    live.start()
    live.submit(Approve("gate", "ann", "Boss"))
    live.ok("build", {"image": "i1"})

    live.submit(Reject("gate", "ann", "Boss"))

    assert (live.status("gate"), live.status("promote")) == ("failed", "cancelled")
    assert live.state in ("cancelled", "running")


def test_a_step_that_is_barred_is_cancelled_like_any_other():
    """It stands in no line, and leaves none."""
    live = Live(RELEASE)
    live.start()
    live.submit(Approve("gate", "ann", "Boss"))
    live.ok("build", {"image": "i1"})
    live.ok("notes")

    live.submit(CancelInstance("zoe"))

    assert (live.state, live.status("promote")) == ("cancelled", "cancelled")
    assert live.reread().state == "cancelled"


FAN = """
timeout: 1d
steps:
  - {name: gate, approval: {expires: 1h, guards: [ship]}}
  - name: ship
    run: parcel.send
    dependsOn: [gate]
    forEach: input.to
    limit: 1
    with: {to: "${ item }"}
    timeout: 1m
"""


@pytest.mark.req("R204")
def test_every_item_has_its_own_digest():
    """All are approved together, and each is held against its own."""
    live = Live(FAN)
    live.start({"to": ["ann", "bob"]})

    live.submit(Approve("gate", "zoe", None))

    assert sorted(bound(live)) == ["ship[0]", "ship[1]"]
    assert asked(live)[0]["ship[1]"] == {"round": 1, "params": {"to": "bob"}}
    live.ok("ship[0]")
    assert live.calls[-1].params.value == {"to": "bob"}


UNRELATED = """
timeout: 1d
steps:
  - {name: gate, approval: {expires: 1h, guards: [pay]}, when: input.ask}
  - name: pay
    run: bank.pay
    with: {sum: "${ input.n / input.by }"}
    onFailure: escalate
    timeout: 1m
"""


@pytest.mark.parametrize(("ask", "status"), [(True, "ready"), (False, "running")])
def test_a_guarded_step_waits_for_its_gate_whatever_it_depends_on(ask, status):
    """A guard that does not guard would be worse than a step that waits."""
    live = Live(UNRELATED)

    live.start({"ask": ask, "n": 4, "by": 2})

    assert live.status("pay") == status


def test_parameters_that_have_no_value_are_asked_about_as_unknown():
    """Who approves sees null, and is asked again once there is something to see."""
    live = Live(UNRELATED)
    live.start({"ask": True, "n": 4, "by": 0})
    assert live.status("pay") == "escalated"

    live.submit(Approve("gate", "ann", None))
    live.submit(ResumeStep("pay", "zoe", "retry", params=payload({"sum": 2})))

    assert live.status("pay") == "ready"
    live.submit(Approve("gate", "ann", None))
    assert live.calls[-1].params.value == {"sum": 2}


def test_a_gate_that_shows_no_mapping_keeps_its_words_beside_the_changes():
    """What was to be shown is shown, whatever its type."""
    live = Live(RELEASE.replace("show: {env: prod}", "show: Look well"))
    live.start()
    live.ok("build", {"image": "i1"})

    live.submit(Approve("gate", "ann", "Boss"))

    assert asked(live)[1]["show"] == "Look well"
    assert [c["path"] for c in asked(live)[1]["changed"]] == ["/image"]


def test_what_is_guarded_must_fit_into_a_review():
    """Too much to be shown is too much to be approved: the gate fails."""
    live = Live(
        """
timeout: 1d
steps:
  - {name: gate, approval: {expires: 1h, guards: [load]}}
  - name: load
    run: x.load
    dependsOn: [gate]
    forEach: input.l
    with: {all: "${ input.big }"}
    timeout: 1m
"""
    )
    live.start({"l": list(range(40)), "big": "x" * 1_000_000})

    assert live.status("gate") == "failed"
    assert live.cell.state.named("gate").failure.code == "payload.too_large"


def test_an_open_fan_is_approved_by_the_list_it_runs_on():
    """A list that was found anew, and is shorter, does not void the approval for ever."""
    live = Live(
        """
steps:
  - {name: a, run: x.a}
  - {name: g1, approval: {onReject: changes, revise: [a]}, dependsOn: [a]}
  - name: f
    run: x.f
    forEach: "${ steps.a.list }"
    limit: 1
    with: {v: "${ item }"}
    dependsOn: [a]
  - {name: g2, approval: {guards: [f]}, dependsOn: [a]}
"""
    )
    live.start()
    live.ok("a", {"list": [1, 2, 3]})
    live.submit(Reject("g1", "ann", None))
    live.ok("a", {"list": [9]})

    granted = live.submit(Approve("g2", "bob", None))

    assert names(granted) == ["GateGranted", "GateBound", "StepStarted"]


def test_what_the_budget_held_is_barred_when_its_approval_is_void():
    """Money came back, but the gate asks again: the step waits for that, and for nothing else."""
    live = Live(
        """
budget: {usd: {hard: 1}}
steps:
  - {name: gate, approval: {guards: [p, q]}}
  - {name: a, run: x.a, cost: {usd: 0.8}, onFailure: skip}
  - {name: b, run: x.b}
  - {name: p, run: x.p, dependsOn: [gate], cost: {usd: 0.8}}
  - {name: q, run: x.q, dependsOn: [gate, b], with: {v: "${ steps.b.v }"}}
"""
    )
    live.start()
    live.submit(Approve("gate", "ann", None))
    p = live.cell.state.named("p")
    assert p.held
    live.ok("b", {"v": 1})  # what q would be called with was not what was shown
    assert live.status("gate") == "waiting"

    freed = live.fail("a")

    assert "StepBarred" in names(freed)
    assert (p.held, live.status("p")) == (False, "ready")
    live.submit(Approve("gate", "ann", None))
    assert {"p#1", "q#1"} <= set(live.started)


def test_what_is_done_is_not_asked_about_again():
    """One guarded step has run under the approval; the gate asks again for the other alone."""
    live = Live(
        """
steps:
  - {name: gate, approval: {guards: [p, q]}}
  - {name: b, run: x.b}
  - {name: p, run: x.p, dependsOn: [gate]}
  - {name: q, run: x.q, dependsOn: [gate, b], with: {v: "${ steps.b.v }"}}
"""
    )
    live.start()
    live.submit(Approve("gate", "ann", None))
    live.ok("p")
    live.ok("b", {"v": 1})

    assert live.status("gate") == "waiting"
    assert set(live.cell.state.named("gate").guarded.value) == {"q"}
    live.submit(Approve("gate", "ann", None))
    live.ok("q")
    assert live.state == "completed"
    assert live.started == ["b#1", "p#1", "q#1"]
