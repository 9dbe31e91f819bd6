"""What `trace` tells: which turn caused which, and by what identity."""

import json

import pytest

from pawlflow.projections.trace import trace
from tests.kernel.support import Live, workflow
from tests.projections.kit import NAMES, erased, ran, story_of, told_live


@pytest.mark.req("R182")
@pytest.mark.parametrize("name", NAMES)
def test_receipts_are_tied_to_their_calls_by_intent(name):
    """Every receipt names an intent that the turn which caused it asked for, by the same key.

    A child has no intent: its answer is tied to the turn that asked for it by its id.
    """
    story, _ = ran(name)
    told = trace(story)

    for entry in told:
        asked = told[(entry["caused_by"] or 1) - 1]
        if entry["input"]["kind"] == "receipt" and entry["origin"] is not None:
            child = {(c["id"], c["step"], c["attempt"]) for c in asked["children"]}
            answer = entry["input"]
            assert (entry["origin"]["id"], answer["step"], answer["attempt"]) in child
        elif entry["input"]["kind"] == "receipt":
            calls = asked["calls"]
            answered = [c for c in calls if c["intent"] == entry["input"]["intent"]]
            assert [(c["key"], c["attempt"], c["step"]) for c in answered] == [
                tuple(entry["input"][field] for field in ("key", "attempt", "step"))
            ]


@pytest.mark.req("R182")
@pytest.mark.parametrize("name", NAMES)
def test_every_turn_is_told_once_and_after_its_cause(name):
    """One entry for each turn; a cause is earlier; the published names are those of the run."""
    story, actual = ran(name)
    told = trace(story)

    assert [entry["turn"] for entry in told] == list(range(1, len(story.turns) + 1))
    assert [entry["hash"] for entry in told] == [sealed.hex() for _, sealed in story.turns]
    assert all(entry["caused_by"] is None or entry["caused_by"] < entry["turn"] for entry in told)
    names = [name for entry in told for event in entry["events"] for name in event["published"]]
    assert names == actual["events"]
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize("name", NAMES)
def test_a_tick_is_caused_by_the_turn_that_set_the_clock(name):
    """No tick of any example is left without a cause."""
    story, _ = ran(name)

    ticks = [entry for entry in trace(story) if entry["input"]["kind"] == "tick"]

    assert all(entry["caused_by"] is not None for entry in ticks)


@pytest.mark.parametrize("name", NAMES[::7])
def test_a_trace_needs_no_values(name):
    """Erasing changes nothing but the words of a policy: all else is made of identities."""
    story, _ = ran(name)
    told, without = trace(story), trace(erased(story))

    for before, after in zip(told, without, strict=True):
        for event, left in zip(before["events"], after["events"], strict=True):
            if "why" in event:
                assert (event.pop("why") is None, left.pop("why")) == (False, None)
    assert without == told


def test_people_and_events_come_from_outside():
    """A decision has a name and no cause within; a signal tells its event."""
    told = trace(story_of("a-granted-deployment-waits-for-its-health"))

    inputs = {entry["input"]["kind"]: entry for entry in told}

    assert inputs["approve"]["input"]["by"] == "ann"
    assert inputs["approve"]["caused_by"] is None
    assert inputs["signal"]["input"]["event"] == "health.reported"


def test_an_undo_is_a_call_of_its_own():
    """It has its own effect, key and intent, and says which way it goes."""
    told = trace(story_of("undo-runs-last-completed-first"))

    calls = [call for entry in told for call in entry["calls"]]
    undone = [call for call in calls if call["direction"] == "undo"]

    assert undone
    assert len({call["key"] for call in calls}) == len(calls)
    assert all(call["effect"] for call in undone)


def test_the_grace_of_a_stopped_attempt_is_set_by_the_stop():
    """An executor that does not answer is given up by a tick that the stop caused."""
    shape = workflow("steps: [{name: a, run: x.y}, {name: b, run: x.z}]")
    live = Live(shape)
    live.start()
    live.fail("a")
    live.tick(30_000)

    told = trace(told_live(live, shape))

    assert [entry["caused_by"] for entry in told] == [None, 1, 2]
    (stop,) = told[1]["stops"]
    assert stop == {"intent": told[0]["calls"][1]["intent"], "reason": "cancel"}
