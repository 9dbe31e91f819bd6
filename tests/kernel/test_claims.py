"""Claims: who looks after a review. Advice to the others, never a lock."""

import pytest

from pawlflow.kernel.heads import questions_changed
from pawlflow.kernel.snapshot import snapshot_payloads, state_bytes, state_from_bytes
from pawlflow.model.inputs import Approve, ClaimReview, PauseInstance, Reject, ResumeStep
from tests.kernel.support import Live, names, payload, refused

GATED = """
timeout: 1d
steps:
  - {name: a, run: x.a, timeout: 1m}
  - {name: gate, approval: {role: Boss, quorum: 2, notBy: requester, expires: 1h}, dependsOn: [a]}
  - {name: b, run: x.b, dependsOn: [gate], timeout: 1m, onFailure: escalate}
"""


def at_gate() -> Live:
    """The gate is open since 10 s."""
    live = Live(GATED)
    live.start()
    live.now = 10_000
    live.ok("a")
    live.now = 20_000
    return live


def escalated() -> Live:
    """A step waits for a human since 30 s."""
    live = at_gate()
    live.submit(Approve("gate", "ann", "Boss"))
    live.submit(Approve("gate", "bob", "Boss"))
    live.now = 30_000
    live.fail("b")
    live.now = 40_000
    return live


def question(live: Live):
    """What the last turn changed about the one review."""
    [(_, asked)] = questions_changed(live.cell.state)
    return asked


@pytest.mark.req("R134", "R186")
def test_a_gate_is_claimed_and_says_by_whom():
    """One event; the review stays what it was, since when and until when."""
    live = at_gate()

    done = live.submit(ClaimReview("gate", "ann", "Boss", payload("after lunch")))

    asked = question(live)
    assert names(done) == ["ReviewClaimed"]
    assert (asked.kind, asked.role, asked.claimed_by) == ("approval", "Boss", "ann")
    assert (asked.since, asked.due_at) == (10_000, 3_610_000)


@pytest.mark.req("R134", "R186")
def test_an_escalation_is_claimed_without_a_role():
    """Whoever mends a step needs no role, so who looks after it needs none."""
    live = escalated()

    live.submit(ClaimReview("b", "eve", None))

    asked = question(live)
    assert (asked.kind, asked.since, asked.claimed_by) == ("escalation", 30_000, "eve")
    assert asked.show.value["message"] == "it broke"


@pytest.mark.parametrize(
    ("incoming", "code"),
    [
        (ClaimReview("nope", "ann", "Boss"), "step.unknown"),
        (ClaimReview("a", "ann", "Boss"), "review.unknown"),
        (ClaimReview("b", "ann", "Boss"), "review.unknown"),
        (ClaimReview("gate", "ann", "Clerk"), "approval.wrong_role"),
        (ClaimReview("gate", "ann", None), "approval.wrong_role"),
        (ClaimReview("gate", "zoe", "Boss"), "approval.by_requester"),
        (ClaimReview("gate", "bob", "Boss"), "approval.duplicate"),
        (ClaimReview("gate", "ann", "Boss"), "review.yours"),
        (ClaimReview("gate", "eve", "Boss"), "review.held"),
    ],
)
@pytest.mark.req("R127", "R134")
def test_a_claim_that_does_not_fit_is_refused(incoming, code):
    """Who could not decide cannot claim; who holds it has it; nobody takes it from them."""
    live = at_gate()
    live.submit(Approve("gate", "bob", "Boss"))
    live.submit(ClaimReview("gate", "ann", "Boss"))
    before = live.cell.head

    outcome = live.submit(incoming)

    assert refused(outcome) == code
    assert live.cell.head == before
    if code == "review.held":
        assert outcome.detail == "gate is claimed by ann"


@pytest.mark.req("R134")
@pytest.mark.parametrize("decision", [Approve, Reject])
def test_somebody_else_may_decide(decision):
    """A claim never blocks a process while its claimer is on holiday."""
    live = at_gate()
    live.submit(Approve("gate", "bob", "Boss"))
    live.submit(ClaimReview("gate", "ann", "Boss"))

    live.submit(decision("gate", "eve", "Boss"))

    assert live.cell.state.unit(1).claimed_by == "ann"  # who looked after it, and who decided
    assert live.status("gate") == ("succeeded" if decision is Approve else "failed")


@pytest.mark.req("R134")
def test_a_vote_ends_the_claim_of_its_voter_alone():
    """Their part is done; the review is open still, for somebody else to look after."""
    live = at_gate()
    live.submit(ClaimReview("gate", "ann", "Boss"))

    live.submit(Approve("gate", "ann", "Boss"))
    assert question(live).claimed_by is None

    live.submit(ClaimReview("gate", "eve", "Boss"))
    assert question(live).claimed_by == "eve"


def test_the_vote_of_another_leaves_a_claim():
    """Half a quorum changes nothing about who looks after the rest."""
    live = at_gate()
    live.submit(ClaimReview("gate", "ann", "Boss"))

    live.submit(Approve("gate", "bob", "Boss"))

    assert live.cell.state.unit(1).claimed_by == "ann"
    assert questions_changed(live.cell.state) == []


@pytest.mark.req("R133", "R134")
def test_a_question_that_is_asked_anew_is_claimed_by_nobody():
    """Expired, it is another question; reassigned, it is for another role, and its row says so."""
    live = at_gate()
    live.submit(ClaimReview("gate", "ann", "Boss"))

    live.tick(3_610_000)
    asked = question(live)
    assert (asked.kind, asked.since, asked.claimed_by) == ("escalation", 3_610_000, None)

    live.submit(ClaimReview("gate", "eve", None))
    live.now = 3_700_000
    live.submit(ResumeStep("gate", "eve", "reassign", role="Chief"))
    asked = question(live)
    assert (asked.kind, asked.role, asked.since) == ("approval", "Chief", 3_700_000)
    assert asked.claimed_by is None
    assert refused(live.submit(ClaimReview("gate", "ann", "Boss"))) == "approval.wrong_role"


def test_a_step_that_goes_on_is_looked_after_by_nobody():
    """Whoever had claimed its escalation has let it go."""
    live = escalated()
    live.submit(ClaimReview("b", "eve", None))

    live.submit(ResumeStep("b", "eve", "resume"))

    assert live.cell.state.unit(2).claimed_by is None
    assert questions_changed(live.cell.state) == [("b", None)]


def test_a_claim_starts_nothing_so_a_pause_does_not_refuse_it():
    """Nothing new starts in a pause; saying who looks after a review is not starting."""
    live = at_gate()
    live.submit(PauseInstance("ann"))

    assert names(live.submit(ClaimReview("gate", "ann", "Boss"))) == ["ReviewClaimed"]


@pytest.mark.req("R57")
def test_a_claim_is_a_fact_of_the_state():
    """Read back from its bytes, the state still knows who, and since when it is asked."""
    live = at_gate()
    live.submit(ClaimReview("gate", "ann", "Boss"))
    state = live.cell.state
    values = {each.addr: each.data for each in snapshot_payloads(state)}

    again = state_from_bytes(state_bytes(state), live.id, live.plan, values)

    assert (again.unit(1).claimed_by, again.unit(1).asked_at) == ("ann", 10_000)
    assert state_bytes(again) == state_bytes(state)
