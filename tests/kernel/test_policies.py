"""Policies, as the kernel sees them: a question before every attempt, and what an answer does."""

import pytest

from pawlflow.kernel.draft import calls_open, open_intents
from pawlflow.kernel.heads import question_of
from pawlflow.kernel.policies import CLEARED_MS_MAX
from pawlflow.kernel.snapshot import state_bytes, state_from_bytes
from pawlflow.kernel.step import Stepped
from pawlflow.kernel.summary import instance_state
from pawlflow.model.inputs import (
    Approve,
    CancelInstance,
    PauseInstance,
    Receipt,
    Reject,
    ResumeStep,
    UnpauseInstance,
)
from pawlflow.model.intents import POLICY
from tests.kernel.policies_kit import PAY, answer, asked, done, governed, judge
from tests.kernel.support import failure, payload

ASKS = answer("approval", gate=["Boss", 1, 1_000, False], show={"why": "much"})


@pytest.mark.req("R125")
def test_the_policies_are_asked_before_the_attempt():
    """The step is ready meanwhile; the request says who would do what, and nobody else is told."""
    live = governed(PAY + ", with: {amount: 5}, priority: 3, cost: {usd: 0.5}}")
    [call] = live.calls

    assert (call.target, call.direction, call.attempt, call.timeout_ms) == (POLICY, "ask", 1, None)
    request = call.params.value
    assert (request["action"], request["resource"]) == ("pay", {"to": "bob"})
    assert request["principal"] == {"type": "User", "id": "zoe"}
    assert request["context"]["params"] == {"amount": 5}
    assert request["context"]["cost"] == {"usd": 500_000}
    assert (instance_state(live.cell.state), calls_open(live.cell.state)) == ("running", 1)
    assert open_intents(live.cell.state) == [call]

    judge(live, answer())

    assert done(live) == [1]
    assert calls_open(live.cell.state) == 1


@pytest.mark.req("R125", "R11")
def test_whoever_reads_the_state_back_asks_the_same_question():
    """From a snapshot as from the turns: the same call, under the same key."""
    live = governed(PAY + "}")
    again = state_from_bytes(state_bytes(live.cell.state), live.id, live.plan, live.payloads)

    assert open_intents(again) == open_intents(live.cell.state) != []
    assert calls_open(again) == 1


@pytest.mark.req("R36", "R11")
def test_an_answer_counts_once():
    """A duplicate, one to another question, and one that comes too late change nothing."""
    live = governed(PAY + "}")
    assert judge(live, answer(), attempt=2).code == "receipt.not_awaited"
    judge(live, answer())

    assert judge(live, answer("deny")).code == "receipt.not_awaited"
    live.ok("pay")
    assert judge(live, answer("deny")).code in ("receipt.not_awaited", "instance.closed")
    assert instance_state(live.cell.state) == "completed"


@pytest.mark.req("R126", "R136")
def test_a_denial_fails_the_step_at_once():
    """Class governance, no attempt, no retry; the failure says why."""
    live = governed(PAY + ", retryPolicy: {maxRetries: 5}}")

    judge(live, answer("deny", code="policy.denied"))

    unit = live.cell.state.unit(0)
    assert (unit.failure.kind, unit.failure.code) == ("governance", "policy.denied")
    assert unit.failure.message == "as it is"
    assert (done(live), instance_state(live.cell.state)) == ([], "failed")


UNREADABLE = [
    (None, "nobody could ask the policies"),
    ({"decision": "maybe"}, "cannot be read"),
    ({"decision": "allow", "code": "", "reason": ""}, "cannot be read"),
    ("yes", "cannot be read"),
]


@pytest.mark.req("R126")
@pytest.mark.parametrize(("said", "why"), UNREADABLE)
def test_what_cannot_be_read_is_a_denial(said, why):
    """Fail closed: nothing is allowed by mistake."""
    live = governed(PAY + "}")

    judge(live, said)

    unit = live.cell.state.unit(0)
    assert (unit.failure.kind, unit.failure.code) == ("governance", "policy.unavailable")
    assert why in unit.failure.message
    assert done(live) == []


@pytest.mark.req("R126")
@pytest.mark.parametrize("outcome", ["failed", "cancelled"])
def test_who_cannot_answer_denies(outcome):
    """An executor that broke says no, in its own words."""
    live = governed(PAY + ", onFailure: escalate}")
    call = asked(live)[-1]
    why = failure("agent", "cedar fell over") if outcome == "failed" else None
    live.submit(Receipt(call.key, 1, outcome, failure=why))

    unit = live.cell.state.unit(0)
    assert unit.failure.message == ("cedar fell over" if why else "nobody could ask the policies")
    shown = question_of(live.cell.state, unit).show.value
    assert shown["policy"]["decision"] == "deny"  # a human sees what was decided


@pytest.mark.req("R127", "R204")
def test_an_approval_is_asked_for_and_bound_to_what_was_asked():
    """A review like any other; after the grant the policies are asked once more, people are not."""
    live = governed(PAY + "}")
    judge(live, ASKS)
    question = question_of(live.cell.state, live.cell.state.unit(0))
    assert (question.kind, question.role, question.due_at) == ("approval", "Boss", 1_000)
    assert question.show.value == {"why": "much"}
    assert instance_state(live.cell.state) == "waiting"

    assert live.submit(Approve("pay", "ann", "Clerk")).code == "approval.wrong_role"
    live.submit(Approve("pay", "ann", "Boss"))
    assert (len(asked(live)), done(live)) == (2, [])
    judge(live, ASKS)

    assert done(live) == [1]
    assert question_of(live.cell.state, live.cell.state.unit(0)) is None


@pytest.mark.req("R204")
def test_other_policies_void_a_grant():
    """The digest has their hash in it: people are asked again."""
    live = governed(PAY + "}")
    judge(live, ASKS)
    live.submit(Approve("pay", "ann", "Boss"))

    judge(live, ASKS | {"hash": b"i" * 32})

    assert (done(live), instance_state(live.cell.state)) == ([], "waiting")


@pytest.mark.req("R139")
def test_who_started_it_may_be_barred():
    """By the policy's own word."""
    live = governed(PAY + "}")
    judge(live, answer("approval", gate=["Boss", 1, None, True]))

    assert live.submit(Approve("pay", "zoe", "Boss")).code == "approval.by_requester"
    assert live.submit(Reject("pay", "zoe", "Boss")).code == "approval.by_requester"


def test_an_approval_without_a_gate_is_a_denial():
    """An answer that asks nobody in particular opens nothing."""
    live = governed(PAY + "}")

    judge(live, answer("approval"))

    assert instance_state(live.cell.state) == "failed"


@pytest.mark.req("R132")
def test_an_expired_approval_escalates_and_may_be_asked_again():
    """Never granted by itself."""
    live = governed(PAY + "}")
    judge(live, ASKS)
    live.tick(1_000)
    shown = question_of(live.cell.state, live.cell.state.unit(0)).show.value
    assert (shown["code"], shown["policy"]["decision"]) == ("approval.expired", "approval")

    live.submit(ResumeStep("pay", "eve", "resume"))
    judge(live, ASKS)

    assert question_of(live.cell.state, live.cell.state.unit(0)).due_at == 2_000


def test_a_reassigned_agent_does_not_change_who_agrees():
    """The role of a policy is its own; that of the step is whose task it is."""
    step = "{name: write, agent: writer, policy: {action: w}, onFailure: escalate}"
    live = governed(step)
    judge(live, answer("deny"))
    live.submit(ResumeStep("write", "eve", "reassign", "editor"))
    assert asked(live)[-1].params.value["principal"] == {"type": "Agent", "id": "editor"}

    judge(live, ASKS)

    assert live.submit(Approve("write", "ann", "editor")).code == "approval.wrong_role"
    assert isinstance(live.submit(Approve("write", "ann", "Boss")), Stepped)


@pytest.mark.req("R125")
def test_an_answer_does_not_keep():
    """What begins more than a minute after its answer asks again: policies may have changed."""
    for late, questions in ((CLEARED_MS_MAX, 1), (CLEARED_MS_MAX + 1, 2)):
        live = governed(PAY + "}")
        live.submit(PauseInstance("ann"))
        judge(live, answer())
        live.now = late
        live.submit(UnpauseInstance("ann"))

        assert (len(asked(live)), len(done(live))) == (questions, 2 - questions)


@pytest.mark.req("R125")
def test_a_place_in_line_is_kept_while_policies_are_asked():
    """Others go on meanwhile; who was first is first again."""
    other = "{name: other, run: x.other}"
    live = governed(PAY + "}", other, "{name: last, run: x.last}", spec="maxParallel: 1")
    assert [call.step for call in live.calls] == ["pay", "other"]
    judge(live, answer())

    live.ok("other")

    assert [call.step for call in live.calls] == ["pay", "other", "pay"]


def test_the_budget_is_asked_after_the_policies():
    """What it held, and lets go, is asked about anew if that took long."""
    spec = "budget: {usd: {hard: 1}}"
    live = governed(PAY + ", cost: {usd: 5}}", spec=spec)
    judge(live, answer())
    assert question_of(live.cell.state, live.cell.state.unit(0)).kind == "budget"

    live.now = CLEARED_MS_MAX + 1
    live.submit(Approve("pay", "ann", None))
    assert (len(asked(live)), done(live)) == (2, [])
    judge(live, answer())

    assert done(live) == [1]


def test_what_was_given_back_lets_a_step_be_asked_about():
    """A step that the budget holds leaves its line while the policies are asked."""
    cheap = "{name: cheap, run: x.cheap, cost: {usd: 1}, onFailure: skip}"
    live = governed(cheap, PAY + ", cost: {usd: 1}}", spec="budget: {usd: {hard: 1}}")
    judge(live, answer())
    assert live.cell.state.unit(1).held
    live.now = CLEARED_MS_MAX + 1

    live.fail("cheap")

    assert (len(asked(live)), live.cell.state.unit(1).held) == (2, False)
    judge(live, answer())
    assert live.started[-1] == "pay#1"


def test_a_question_ends_with_its_instance():
    """Cancelled while it waits for an answer: nothing is left open, and the answer is not heard."""
    live = governed(PAY + "}")

    live.submit(CancelInstance("ann"))

    assert (instance_state(live.cell.state), open_intents(live.cell.state)) == ("cancelled", [])
    assert judge(live, answer()).code in ("instance.closed", "receipt.not_awaited")


def test_a_question_is_not_heard_once_its_instance_stops():
    """Another step is still being stopped."""
    live = governed(PAY + "}", "{name: other, run: x.other}")
    live.submit(CancelInstance("ann"))

    assert judge(live, answer()).code == "receipt.not_awaited"
    assert calls_open(live.cell.state) == 1
    live.settle("other")
    assert instance_state(live.cell.state) == "cancelled"


@pytest.mark.req("R126")
def test_a_resource_that_cannot_be_made_fails_the_step():
    """An expression that breaks asks nobody."""
    live = governed(
        "{name: pay, run: b.p, policy: {action: pay, resource: {n: '${ input.n / 0 }'}}}"
    )

    assert (live.calls, live.cell.state.unit(0).failure.kind) == ([], "terminal")


@pytest.mark.req("R125")
def test_each_item_is_asked_about_by_itself():
    """With its own attributes, under its own name."""
    live = governed(
        "{name: pay, run: b.p, forEach: '[1, 2]', policy: {action: p, resource: {n: '${ item }'}}}"
    )
    requests = [call.params.value for call in asked(live)]
    assert [each["resource"]["n"] for each in requests] == [1, 2]
    assert [each["context"]["item"] for each in requests] == [0, 1]

    first, second = asked(live)
    live.submit(Receipt(second.key, 1, "ok", payload(ASKS)))
    assert live.submit(Approve("pay[0]", "ann", "Boss")).code == "approval.not_open"
    live.submit(Approve("pay[1]", "ann", "Boss"))
    live.submit(Receipt(first.key, 1, "ok", payload(answer())))

    assert [call.item for call in live.calls if call.direction == "do"] == [0]
    again = state_from_bytes(state_bytes(live.cell.state), live.id, live.plan, live.payloads)
    assert open_intents(again) == open_intents(live.cell.state)


@pytest.mark.req("R128")
def test_a_rejection_cancels_unless_the_policy_says_fail():
    """As at any gate; with an item its step has failed."""
    live = governed(PAY + "}")
    judge(live, ASKS)
    live.submit(Reject("pay", "ann", "Boss"))
    assert (instance_state(live.cell.state), live.status("pay")) == ("cancelled", "failed")

    live = governed(PAY + ", onFailure: escalate}")
    judge(live, answer("approval", gate=["Boss", 1, None, False, "fail"]))
    live.submit(Reject("pay", "ann", "Boss"))
    assert instance_state(live.cell.state) == "escalated"


@pytest.mark.req("R128")
def test_an_expired_approval_may_fail_the_step():
    """If the policy says so."""
    live = governed(PAY + "}")
    judge(live, answer("approval", gate=["Boss", 1, 1_000, False, "cancel", "fail"]))

    live.tick(1_000)

    assert instance_state(live.cell.state) == "failed"
    assert live.published()[-3:-1] == ["ApprovalExpired", "WorkflowStepFailed"]


@pytest.mark.req("R126")
def test_what_is_told_from_outside_as_json_is_no_answer():
    """JSON has no bytes: whoever completes the question over NATS or HTTP allows nothing."""
    live = governed(PAY + "}")
    judge(live, answer(hash="aGhoaA=="))

    assert live.state == "failed"
    assert done(live) == []
