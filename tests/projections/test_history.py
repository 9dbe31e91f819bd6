"""What `history` tells: every published name once, in an envelope that can be traced back."""

import json
from uuid import UUID

import pytest

from pawlflow.model.inputs import CancelInstance
from pawlflow.projections.history import history, input_id
from pawlflow.projections.plain import uuid_told
from pawlflow.projections.story import sealed_turns, state_at
from tests.kernel.support import Live, payload, workflow
from tests.projections.kit import NAMES, erased, ran, story_of, told_live, up_to

FIELDS = {
    *("eventId", "eventType", "schemaVersion", "tenantId", "traceId", "correlationId"),
    *("causationId", "occurredAt", "workflowInstanceId", "sequence", "actor", "payload"),
}


def of_type(story, *names):
    """The envelopes under these names."""
    return [e for e in history(story) if e["eventType"] in names]


@pytest.mark.req("R176")
@pytest.mark.parametrize("name", NAMES)
def test_history_is_what_was_published(name):
    """The same names in the same order as the run tells, numbered from 1."""
    story, actual = ran(name)

    told = history(story)

    assert [e["eventType"] for e in told] == actual["events"]
    assert [e["sequence"] for e in told] == list(range(1, len(told) + 1))


@pytest.mark.req("R176")
@pytest.mark.parametrize("name", NAMES)
def test_every_envelope_is_whole(name):
    """All fields are there, ids are UUIDs of their own, and the payload is plain JSON."""
    story, _ = ran(name)

    told = history(story)

    assert all(e.keys() == FIELDS and e["schemaVersion"] == 1 for e in told)
    assert len({e["eventId"] for e in told}) == len(told)
    assert {UUID(e["eventId"]).version for e in told} == {8}
    assert json.loads(json.dumps(told)) == told


@pytest.mark.req("R176")
@pytest.mark.parametrize("name", NAMES[::7])
def test_envelopes_never_change(name):
    """What was published after a turn is still the beginning of what is told later."""
    story, _ = ran(name)
    whole = history(story)

    for at in range(len(story.turns)):
        early = history(up_to(story, at))
        assert whole[: len(early)] == early


@pytest.mark.req("R177")
@pytest.mark.parametrize("name", NAMES)
def test_every_cause_is_an_earlier_event_or_an_input(name):
    """Following causationId back always ends at something that came in from outside."""
    story, _ = ran(name)
    inputs = {input_id(sealed, turn.input) for turn, sealed in sealed_turns(story)}
    seen = set()

    for envelope in history(story):
        assert envelope["causationId"] in seen | inputs
        assert envelope["correlationId"] == story.cell.key
        seen.add(envelope["eventId"])


@pytest.mark.req("R177")
@pytest.mark.parametrize("name", NAMES)
def test_an_answer_is_caused_by_its_attempt(name):
    """The first event of a receipt's turn names the assignment of the same step and attempt."""
    story, _ = ran(name)
    told = {e["eventId"]: e for e in history(story)}
    asked = ("AgentTaskAssigned", "AgentTaskReassigned", "CompensationTaskAssigned")

    for envelope in told.values():
        if envelope["eventType"] in ("AgentTaskCompleted", "WorkflowStepCompensated"):
            cause = told[envelope["causationId"]]
            assert cause["eventType"] in asked
            about = (envelope["payload"]["step"], envelope["payload"]["attempt"])
            assert (cause["payload"]["step"], cause["payload"]["attempt"]) == about


@pytest.mark.req("R177")
def test_a_retry_is_caused_by_its_schedule():
    """A timer's events name the event that set the clock."""
    story = story_of("attempts-are-max-retries-plus-one")
    scheduled = of_type(story, "StepRetryScheduled")

    _, *retries = of_type(story, "AgentTaskAssigned")

    assert len(retries) == 3
    # The failure and its schedule are one event; its first name stands for both.
    failed = of_type(story, "AgentTaskFailed")[:3]
    assert [r["causationId"] for r in retries] == [f["eventId"] for f in failed]
    assert [s["causationId"] for s in scheduled] == [f["eventId"] for f in failed]
    assert {r["actor"] for r in retries} == {"engine"}


def test_actors_are_who_brought_it_about():
    """The starter, executors, people and the engine's own clock."""
    story = story_of("a-granted-deployment-waits-for-its-health")

    actors = {(e["eventType"], e["actor"]) for e in history(story)}

    assert ("WorkflowInstanceStarted", "zoe") in actors
    assert ("AgentTaskCompleted", "executor") in actors
    assert ("ApprovalGranted", "ann") in actors
    assert ("WorkflowStepCompleted", "engine") in actors  # the sleep


def test_steps_that_never_began_are_named():
    """Each cancellation that the close itself brings carries its own step."""
    shape = workflow(
        "steps: [{name: a, run: x.y}, {name: b, sleep: 1s, dependsOn: [a]},"
        " {name: c, sleep: 1s, dependsOn: [b]}]"
    )
    live = Live(shape)
    live.start()
    live.fail("a")

    told = history(told_live(live, shape))

    assert [e["eventType"] for e in told] == live.published()
    cancelled = [e["payload"] for e in told if e["eventType"] == "WorkflowStepCancelled"]
    assert [payload["step"] for payload in cancelled] == ["b", "c"]
    assert told[-1]["payload"]["error"]["step"] == "a"


def test_a_failure_is_told_whole():
    """Class, code, message and findings, with the step, its attempt and the time of the retry."""
    shape = workflow(
        "steps: [{name: a, run: x.y, retryPolicy: {maxRetries: 1, backoff: 5s}, with: {n: 1}}]"
    )
    live = Live(shape)
    live.start({"k": 1})
    live.fail("a", "transient", findings=["too big"])

    told = {e["eventType"]: e["payload"] for e in history(told_live(live, shape))}

    assert told["WorkflowInstanceCreated"]["input"] == {"k": 1}
    assert told["WorkflowStepReady"] == {"step": "a", "params": {"n": 1}}
    first = {"step": "a", "attempt": 1, "round": 1, "mode": "plain", "effect": "x.y"}
    assert told["AgentTaskAssigned"] == first
    assert told["StepRetryScheduled"] == {
        "step": "a",
        "attempt": 1,
        "failure": {
            "class": "transient",
            "code": "effect.failed",
            "message": "it broke",
            "findings": ["too big"],
        },
        "retry_at": "1970-01-01T00:00:05.000Z",
    }


def test_a_cancel_tells_who_and_why():
    """When the undo begins, and again at the end."""
    shape = workflow(
        "failurePolicy: compensate\nsteps:\n"
        "  - {name: a, run: x.y, undo: {run: x.z}}\n"
        "  - {name: b, sleep: 1h, dependsOn: [a]}"
    )
    live = Live(shape)
    live.start()
    live.ok("a")
    live.submit(CancelInstance("ann", payload("no longer wanted")))
    live.ok("undo/a")

    told = {e["eventType"]: e["payload"] for e in history(told_live(live, shape))}

    who = {"by": "ann", "comment": "no longer wanted"}
    assert told["CompensationStarted"] == {"outcome": "cancelled", "error": None} | who
    assert told["WorkflowInstanceCancelled"] == {"rollback": "full", "error": None} | who


def test_a_decision_tells_who_and_why():
    """By whom, in which role, and what was said."""
    (rejected,) = of_type(story_of("a-rejected-gate-cancels-by-default"), "ApprovalRejected")

    told = rejected["payload"]

    assert (told["step"], told["by"], told["role"]) == ("gate", "ann", "ReleaseManager")
    assert told["comment"] == "not today"


def test_a_gate_tells_whom_it_asks_and_what_it_shows():
    """A listener can show the request without looking anything up."""
    (asked,) = of_type(story_of("an-open-gate-blocks-the-run"), "ApprovalRequested")

    assert asked["payload"]["kind"] == "approval"
    assert asked["payload"]["role"] and asked["payload"]["quorum"] == 1


def test_erased_values_are_null_and_say_so():
    """The envelope stays with all its ids; only what was erased is null."""
    story = story_of("a-failed-undo-stops-the-others")

    whole, bare = history(story), history(erased(story))

    assert [e["eventId"] for e in whole] == [e["eventId"] for e in bare]
    done = next(e["payload"] for e in bare if e["eventType"] == "AgentTaskCompleted")
    assert done["result"] is None and done["erased"] is True
    failed = next(e["payload"] for e in bare if e["eventType"] == "AgentTaskFailed")
    assert failed["failure"]["message"] is None and failed["erased"] is True


@pytest.mark.parametrize("name", NAMES[::7])
def test_no_event_gives_a_key_away(name):
    """Nor the nonce they are made from: who hears events must not be able to answer for others."""
    story, _ = ran(name)

    told = history(story)

    said, state = json.dumps(told), state_at(story)
    assert state.nonce.hex() not in said
    assert not any(key.hex() in said or uuid_told(key) in said for key in state.keys)
    assert {len(e["traceId"]) for e in told} == {32}
    assert len({e["traceId"] for e in told}) == 1
