"""What `show` tells: of every example the truth, at every turn, and also after erasure."""

import re

import msgspec
import pytest

from pawlflow.model.inputs import CancelInstance
from pawlflow.projections.plain import time_told
from pawlflow.projections.show import NoSuchTurnError, show
from pawlflow.projections.story import Story, state_at, walk
from pawlflow.projections.units import error_of
from tests.kernel.support import Live, workflow
from tests.projections.kit import NAMES, erased, ran, story_of, told_live, up_to

FIELDS = {
    *("id", "tenant", "workflow", "version", "definition_hash", "state", "rollback", "lens"),
    *("input", "output", "error", "started_at", "closed_at", "turns", "steps", "waiting"),
}
STEP_FIELDS = {
    *("state", "attempts", "undo", "result", "error", "started_at", "ended_at", "feedback"),
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.mark.req("R181")
@pytest.mark.parametrize("name", NAMES)
def test_show_agrees_with_the_run(name):
    """Whatever a scenario may expect is what `show` says, step by step."""
    story, actual = ran(name)

    shown = show(story)

    for field in ("state", "rollback", "lens", "output"):
        assert shown[field] == actual[field], field
    assert (shown["error"] and shown["error"]["step"]) == actual["error"]
    steps = shown["steps"]
    assert {step: told["state"] for step, told in steps.items()} == actual["steps"]
    assert {step: told["undo"] for step, told in steps.items()} == actual["undo"]
    for step, told in steps.items():
        if told["kind"] != "workflow":  # a scenario leaves the attempts of children to them
            assert told["attempts"] == actual["attempts"].get(step, 0)
        assert told["undo_attempts"] == actual["attempts"].get(f"undo/{step}", 0)
        assert told["feedback"] == actual["feedback"].get(step, 0)


@pytest.mark.parametrize("name", NAMES)
def test_show_has_every_promised_field(name):
    """The object is the one of the interface; additions do not hurt, and all of it is JSON."""
    story, _ = ran(name)

    shown = show(story)

    assert shown.keys() >= FIELDS
    assert all(step.keys() >= STEP_FIELDS for step in shown["steps"].values())
    assert all(wait.keys() >= {"step", "kind", "since", "until"} for wait in shown["waiting"])
    assert shown["error"] == error_of(state_at(story))
    assert msgspec.json.decode(msgspec.json.encode(shown)) == shown


@pytest.mark.parametrize("name", NAMES)
def test_times_are_calendar_times_in_order(name):
    """RFC 3339 in UTC with milliseconds; nothing ends before it starts."""
    shown = show(story_of(name))

    spans = [(shown["started_at"], shown["closed_at"])]
    spans += [(step["started_at"], step["ended_at"]) for step in shown["steps"].values()]
    for start, end in spans:
        assert all(TIME.fullmatch(time) for time in (start, end) if time)
        assert start is None or end is None or start <= end


@pytest.mark.req("R187")
@pytest.mark.parametrize("name", NAMES)
def test_the_past_is_shown_as_it_was(name):
    """After turn `at` means exactly what `show` said when that turn was the last."""
    story, _ = ran(name)

    for at in range(1, len(story.turns) + 1):
        assert show(story, at) == show(up_to(story, at))
    assert show(story, len(story.turns)) == show(story)


@pytest.mark.req("R187")
@pytest.mark.parametrize("at", [0, -1, 4])
def test_a_turn_that_never_was_is_refused_with_the_range(at):
    """The error names the instance, the turn, and the turns there are."""
    story = story_of("a-completed-run-publishes-its-life-in-order")

    with pytest.raises(NoSuchTurnError, match=f"life-in-order' has no turn {at}; it has 1 to 3"):
        show(story, at)
    assert issubclass(NoSuchTurnError, LookupError)


def test_before_its_first_turn_an_instance_is_created():
    """A story without turns can be shown, but has no past."""
    story = up_to(story_of("a-sleep-takes-its-time"), 0)

    shown = show(story)

    assert (shown["state"], shown["turns"], shown["updated_at"]) == ("created", 0, None)
    with pytest.raises(NoSuchTurnError, match="it has none"):
        list(walk(story, 1))


@pytest.mark.parametrize(
    ("name", "step", "kind", "since", "until"),
    [
        ("half-a-quorum-leaves-the-gate-open", "gate", "approval", 0, None),
        ("waiting-for-an-event-is-running", "passenger", "event", 0, None),
        (
            "an-expired-gate-that-nobody-decides-stays-escalated",
            "gate",
            "escalation",
            86_400_000,
            None,
        ),
    ],
)
def test_what_waits_for_the_outside_is_listed(name, step, kind, since, until):
    """Gates, events and escalations, with the time at which this wait began."""
    (wait,) = show(story_of(name))["waiting"]

    told = (wait["step"], wait["kind"], wait["since"], wait["until"])
    assert told == (step, kind, time_told(since), time_told(until))


def test_a_sleep_waits_for_its_time():
    """While it sleeps, the step is listed with the time at which it wakes."""
    shape = workflow("steps: [{name: nap, sleep: 10s}]")
    live = Live(shape)
    live.now = 1_000
    live.start()

    (wait,) = show(told_live(live, shape))["waiting"]

    assert (wait["kind"], wait["until"]) == ("timer", "1970-01-01T00:00:11.000Z")


def test_a_gate_that_is_asked_again_waits_since_then():
    """`since` is of the present wait, `started_at` of the first."""
    name = "an-expired-gate-may-be-reassigned-to-another-role"
    story, found = story_of(name), []

    for at in range(1, len(story.turns) + 1):
        found += [(w["kind"], w["since"], w.get("role")) for w in show(story, at)["waiting"]]

    kinds = [kind for kind, _, _ in found]
    assert kinds[:3] == ["approval", "escalation", "approval"]
    assert found[0][1] < found[1][1] < found[2][1]
    assert found[0][2] != found[2][2]


@pytest.mark.parametrize("at", [1, 2])
def test_running_attempts_wait_for_nobody_outside(at):
    """Neither an attempt in flight nor a back-off is listed as waiting."""
    story = story_of("attempts-are-max-retries-plus-one")

    shown = show(story, at)

    assert shown["waiting"] == []
    assert shown["steps"]["rate"]["state"] == ("running" if at == 1 else "backoff")
    assert (shown["steps"]["rate"]["error"] is None) == (at == 1)


def test_erased_values_are_null_and_named():
    """Erasing takes the values and leaves every state, time and count as it was."""
    story = story_of("a-failed-undo-stops-the-others")
    before, after = show(story), show(erased(story))

    assert after["erased"] and not before["erased"]
    assert after["input"] is None and "input" in after["erased"]
    assert "steps.visa.error" in after["erased"] and "steps.car.result" in after["erased"]
    assert after["error"] == before["error"] | {"message": None, "erased": True}
    assert [s["state"] for s in after["steps"].values()] == [
        s["state"] for s in before["steps"].values()
    ]


def test_a_pause_and_progress_are_told():
    """Paused is a flag beside the state; progress counts what is done or skipped."""
    shown = show(story_of("a-retry-held-by-a-pause-is-assigning-task"))

    assert (shown["state"], shown["paused"], shown["progress"]["done"]) == ("running", True, 0)
    done = show(story_of("when-false-skips-the-step-and-dependents-run"))["progress"]
    assert done["done"] == done["total"]


def test_steps_that_never_began_end_with_their_instance():
    """Cancelled by the close itself: never started, ended when it closed."""
    shape = workflow("steps: [{name: a, sleep: 1s}, {name: b, sleep: 1s, dependsOn: [a]}]")
    live = Live(shape)
    live.start()
    live.now = 500
    live.submit(CancelInstance("ann"))

    step = show(told_live(live, shape))["steps"]["b"]

    assert (step["state"], step["started_at"]) == ("cancelled", None)
    assert step["ended_at"] == "1970-01-01T00:00:00.500Z"


def test_a_time_beyond_the_calendar_is_its_last_moment():
    """A sleep of a million years is shown, not stumbled over."""
    assert time_told(10**17) == "9999-12-31T23:59:59.999Z"
    assert time_told(None) is None


@pytest.mark.parametrize("name", NAMES[::10])
def test_a_story_can_be_walked(name):
    """Each event comes with its turn, and with the state that has just seen it."""
    story, _ = ran(name)
    assert isinstance(story, Story)

    numbers = [(turn.number, state.turn) for turn, _, state in walk(story)]

    assert all(turn == state for turn, state in numbers)
    assert numbers[-1][0] == len(story.turns)
