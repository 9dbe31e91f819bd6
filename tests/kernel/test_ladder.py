"""The escalation ladder: one rung after another, each with its time."""

import pytest

from pawlflow.kernel.heads import questions_changed
from pawlflow.model.inputs import CancelInstance, ClaimReview, ResumeStep
from tests.kernel.support import Live, names, payload, refused

NIGHTLY = """
timeout: 1d
escalation:
  - {role: OnCall, channel: chat, timeout: 15m}
  - {role: Lead, channel: mail, timeout: 1h}
  - {role: Head}
steps:
  - {name: sync, run: crm.sync, onFailure: escalate, timeout: 1m}
"""
M = 60_000


def escalated(spec: str = NIGHTLY) -> Live:
    """A step that nobody could mend, since 10 s."""
    live = Live(spec)
    live.start()
    live.now = 10_000
    live.fail("sync")
    return live


def question(live: Live):
    """What the last turn asks."""
    [(_, asked)] = questions_changed(live.cell.state)
    return asked


@pytest.mark.req("R135", "R132")
def test_the_first_rung_is_asked_with_all_it_needs():
    """Who, at which level, by which channel, until when, and why."""
    asked = question(escalated())

    assert (asked.kind, asked.role, asked.due_at) == ("escalation", "OnCall", 10_000 + 15 * M)
    assert asked.show.value == {
        "class": "terminal",
        "code": "effect.failed",
        "message": "it broke",
        "attempts": 1,
        "level": 1,
        "channel": "chat",
    }


@pytest.mark.req("R135", "R106")
def test_time_asks_the_next_and_the_last_stays():
    """Each rung once; a claim of the one before ends with it."""
    live = escalated()
    live.submit(ClaimReview("sync", "oli", "OnCall"))

    assert names(live.tick(10_000 + 15 * M)) == ["StepRaised"]
    asked = question(live)
    assert (asked.role, asked.claimed_by, asked.show.value["level"]) == ("Lead", None, 2)
    assert asked.since == 10_000
    live.tick(10_000 + 75 * M)
    asked = question(live)
    assert (asked.role, asked.due_at, asked.show.value["channel"]) == ("Head", None, None)
    assert refused(live.tick(10_000 + 600 * M)) == "timer.not_due"


@pytest.mark.req("R135", "R106")
def test_who_is_asked_late_has_their_time_all_the_same():
    """An engine that was down asks the next rung when it is back, and not the one after it."""
    live = escalated().reread()

    assert names(live.tick(10_000 + 200 * M)) == ["StepRaised"]
    assert (question(live).role, question(live).due_at) == ("Lead", 10_000 + 260 * M)


@pytest.mark.req("R133", "R135")
@pytest.mark.parametrize(
    ("role", "code"),
    [
        ("OnCall", "escalation.wrong_role"),
        ("Janitor", "escalation.wrong_role"),
        ("Lead", None),
        ("Head", None),
        (None, None),
    ],
)
@pytest.mark.parametrize("how", ["resume", "retry", "reassign", "cancel"])
def test_who_acts_in_a_role_stands_on_the_rung_or_above(role, code, how):
    """Without a role an operator acts, whom the ladder does not bind."""
    live = escalated()
    live.tick(10_000 + 15 * M)
    act = (
        CancelInstance("joe", acting=role)
        if how == "cancel"
        else ResumeStep("sync", "joe", how, role="Robots", acting=role)
    )

    outcome = live.submit(act)

    if code is None:
        assert names(outcome)[0] in ("StepResumed", "InstanceStopping")
    else:
        assert refused(outcome) == code
        assert outcome.detail == "sync asks for Lead or Head"


@pytest.mark.req("R135")
def test_a_claim_in_a_role_fits_the_rung_too():
    """Who could not act need not look after it."""
    live = escalated()

    assert refused(live.submit(ClaimReview("sync", "joe", "Janitor"))) == "escalation.wrong_role"
    assert names(live.submit(ClaimReview("sync", "hal", "Head"))) == ["ReviewClaimed"]


@pytest.mark.req("R135", "R133")
def test_each_escalation_begins_at_the_first_rung():
    """What went on has no rung, and no deadline of one."""
    live = escalated()
    live.tick(10_000 + 15 * M)
    live.submit(ResumeStep("sync", "lea", "retry", params=payload({"n": 1}), acting="Lead"))
    assert live.cell.state.named("sync").until == live.now + M

    live.fail("sync")

    assert question(live).role == "OnCall"


def test_a_rung_without_a_time_is_asked_for_ever():
    """Those above it are never asked, though they may act."""
    live = escalated(NIGHTLY.replace(", timeout: 15m", ""))

    assert refused(live.tick(10_000 + 600 * M)) == "timer.not_due"
    assert names(live.submit(ResumeStep("sync", "hal", "resume", acting="Head")))


def test_without_a_ladder_nothing_has_changed():
    """An escalation asks for no role, and waits as long as it takes."""
    bare = "timeout: 1d\nsteps:\n  - {name: sync, run: x.y, onFailure: escalate, timeout: 1m}"
    live = escalated(bare)

    asked = question(live)
    assert (asked.role, asked.due_at, "level" in asked.show.value) == (None, None, False)
    assert names(live.submit(ResumeStep("sync", "joe", "resume", acting="Anybody")))


@pytest.mark.req("R132")
def test_an_expired_gate_shows_what_was_to_be_decided():
    """Whoever is asked now sees what the others saw."""
    live = Live(
        """
timeout: 1d
escalation: [{role: Lead}]
steps:
  - {name: gate, approval: {role: Boss, expires: 1h}, show: {release: 7}}
"""
    )
    live.start()

    live.tick(60 * M)

    asked = question(live)
    assert (asked.role, asked.show.value["shown"]) == ("Lead", {"release": 7})
    assert asked.show.value["code"] == "approval.expired"
