"""Items of a forEach in every view: counted, named one by one, and never all of very many."""

import msgspec
import pytest

from pawlflow.kernel.step import Stepped
from pawlflow.model.events import StepReady
from pawlflow.model.inputs import CancelInstance
from pawlflow.model.system import Continue
from pawlflow.projections.history import history
from pawlflow.projections.show import show
from pawlflow.projections.story import Telling, tell
from pawlflow.projections.trace import trace
from pawlflow.projections.units import ITEMS_MAX
from pawlflow.projections.why import why
from pawlflow.testing.journals import told
from tests.kernel.support import Live, workflow
from tests.projections.kit import erased, story_of, told_live, up_to

FAN = """
steps:
  - {name: a, run: x.a}
  - name: build
    run: x.build
    dependsOn: [a]
    forEach: "${ input.targets }"
    limit: LIMIT
    onFailure: ON_FAILURE
    with: {t: "${ item }"}
  - {name: z, run: x.z, dependsOn: [build]}
"""


def fanned(size, limit=100, on_failure="escalate"):
    """An instance whose items have just begun, and its definition."""
    shape = workflow(FAN.replace("LIMIT", str(limit)).replace("ON_FAILURE", on_failure))
    live = Live(shape)
    live.start({"targets": list(range(size))})
    live.ok("a")
    while isinstance(live.submit(Continue()), Stepped):
        pass  # a turn looks at a thousand items at most
    return live, shape


def answer(live, item, result=None, kind=None):
    """The executor of an item succeeded, or failed."""
    name = f"build[{item}]"
    return live.ok(name, result) if kind is None else live.fail(name, kind)


@pytest.mark.req("R84", "R184", "R215")
def test_a_step_with_items_says_how_far_they_are():
    """Counts by state, each item in one of them; the step's result is the list once it is done."""
    live, shape = fanned(6, limit=3)
    answer(live, 0, {"image": "i0"})
    answer(live, 1, kind="terminal")

    step = show(told_live(live, shape))["steps"]["build"]

    counts = step["items"]
    assert (counts["total"], counts["done"], counts["running"], counts["waiting"]) == (6, 1, 2, 1)
    assert (counts["escalated"], counts["pending"], counts["shown"]) == (1, 2, 6)
    states = ("done", "running", "waiting", "failed", "skipped", "cancelled", "pending")
    assert sum(counts[name] for name in states) == counts["total"]
    assert (step["state"], step["result"], step["attempts"]) == ("running", None, 4)


@pytest.mark.req("R184")
def test_every_item_is_shown_by_its_name():
    """`build[2]` has a state, attempts, times, a result or an error of its own."""
    live, shape = fanned(3, limit=3)
    live.now = 5_000
    answer(live, 2, {"image": "i2"})
    answer(live, 1, kind="terminal")

    shown = show(told_live(live, shape))

    assert list(shown["steps"]) == ["a", "build", "build[0]", "build[1]", "build[2]", "z"]
    done, broken = shown["steps"]["build[2]"], shown["steps"]["build[1]"]
    assert (done["state"], done["result"], done["attempts"]) == ("succeeded", {"image": "i2"}, 1)
    assert done["ended_at"] == "1970-01-01T00:00:05.000Z"
    assert (broken["state"], broken["error"]["class"]) == ("escalated", "terminal")
    [wait] = shown["waiting"]
    assert (wait["step"], wait["review"]) == ("build[1]", "i-1/build[1]")
    assert wait["hint"] == "pawl resume i-1 'build[1]' --by NAME"


@pytest.mark.req("R84", "R184")
def test_the_result_of_all_items_is_a_list_and_progress_counts_them():
    """Null where an item was skipped; items count from the moment they are known."""
    live, shape = fanned(3, on_failure="skip")
    before = show(up_to(told_live(live, shape), 1))["progress"]
    answer(live, 0, "p")
    answer(live, 1, kind="terminal")
    answer(live, 2, "r")

    shown = show(told_live(live, shape))

    assert (before["done"], before["total"]) == (0, 3)
    assert shown["steps"]["build"]["result"] == ["p", None, "r"]
    assert shown["steps"]["build"]["items"]["skipped"] == 1
    assert shown["progress"] == {"done": 5, "total": 6}
    assert msgspec.json.decode(msgspec.json.encode(shown)) == shown


def test_an_empty_list_has_no_items():
    """The step is done at once, and says so of nothing."""
    live, shape = fanned(0)

    step = show(told_live(live, shape))["steps"]["build"]

    assert (step["state"], step["result"], step["items"]["total"]) == ("succeeded", [], 0)


@pytest.mark.req("R184")
@pytest.mark.parametrize("size", [ITEMS_MAX, ITEMS_MAX + 1])
def test_of_very_many_items_those_are_shown_that_somebody_looks_for(size):
    """Up to a thousand all; of more the open, failed, skipped and escalated ones."""
    live, shape = fanned(size, limit=4, on_failure="escalate")
    answer(live, 0, "done")
    answer(live, 1, kind="terminal")

    shown = show(told_live(live, shape))

    names = [name for name in shown["steps"] if name.startswith("build[")]
    assert shown["steps"]["build"]["items"]["shown"] == len(names)
    if size <= ITEMS_MAX:
        assert len(names) == size
    else:
        assert names == ["build[1]", "build[2]", "build[3]", "build[4]"]


def test_what_a_human_must_decide_goes_before_all_other_items():
    """Even if more than a thousand are open, those are shown and listed as waiting."""
    live, shape = fanned(5_000, limit=2_000)
    answer(live, 1_999, kind="terminal")

    shown = show(told_live(live, shape))

    assert shown["steps"]["build"]["items"]["shown"] == ITEMS_MAX
    assert shown["steps"]["build[1999]"]["state"] == "escalated"
    assert [wait["step"] for wait in shown["waiting"]] == ["build[1999]"]


def test_an_item_that_was_never_looked_at_ends_with_its_instance():
    """Cancelled by the close itself, like a step."""
    live, shape = fanned(3, limit=1)
    live.now = 700
    live.submit(CancelInstance("ann"))
    live.settle("build[0]")

    shown = show(told_live(live, shape))

    assert shown["state"] == "cancelled"
    assert shown["steps"]["build[2]"]["state"] == "cancelled"
    assert shown["steps"]["build[2]"]["ended_at"] == "1970-01-01T00:00:00.700Z"
    assert shown["steps"]["build"]["items"]["cancelled"] == 3


@pytest.mark.req("R209")
def test_an_item_that_failed_is_blamed_by_its_name():
    """`error.step` is the step, as ever; `error.item` the one of it, with its own attempts."""
    shown = show(story_of("a-failed-item-fails-its-step"))
    told_why = why(story_of("a-failed-item-fails-its-step"))

    error = shown["error"]
    assert (error["step"], error["item"], error["attempts"]) == ("build", "build[1]", 1)
    assert "build[1] failed after 1 attempt (terminal" in told_why["now"]
    assert 'see steps["build[1]"].error in' in told_why["hint"]
    texts = [fact["text"] for fact in told_why["because"]]
    assert "build has 3 items, 2 at a time" in texts
    assert texts[-3:] == [
        "with it build failed",
        "so the instance fails; nothing is undone",
        "the instance closed as failed, rollback none",
    ]
    assert not any("build[0]" in text for text in texts)


@pytest.mark.req("R209")
def test_a_fan_that_is_stuck_names_the_items_that_hold_it_up():
    """Where no item can go on by itself, those that wait are named, the rest is counted."""
    live, shape = fanned(9, limit=9)
    for item in range(9):
        answer(live, item, *(("ok",) if item < 2 else ()), kind=None if item < 2 else "terminal")

    told_why = why(told_live(live, shape))

    start = "2 of 9 items of build are done, held up by build[2], build[3], build[4], build[5]"
    assert told_why["now"].startswith(f"{start} and 3 more; build[2] waits for a human's decision")
    assert told_why["now"].endswith("; 2 more steps and items are open")
    assert told_why["hint"] == "pawl resume i-1 'build[2]' --by NAME"


def test_a_fan_that_goes_on_is_not_held_up():
    """While an item runs, nothing is blamed."""
    live, shape = fanned(3, limit=2)
    answer(live, 0, kind="terminal")

    now = why(told_live(live, shape))["now"]

    assert "0 of 3 items of build are done; build[0] waits for a human's decision" in now
    assert "held up" not in now


@pytest.mark.req("R209")
def test_the_critical_path_goes_through_the_last_item():
    """Of a step with items the one that was settled last held the rest up."""
    live, shape = fanned(3)
    for item in (2, 0, 1):
        answer(live, item, item)
    live.ok("z")

    texts = [fact["text"] for fact in why(told_live(live, shape))["because"]]

    assert texts == [
        "zoe started w v1",
        "a succeeded on attempt 1",
        "build[1] succeeded on attempt 1",
        "build was done: all of its 3 items were settled",
        "z succeeded on attempt 1",
        "every step was done, so the instance completed",
    ]


def test_the_chain_can_be_that_of_one_item():
    """A review of one item among many is explained by what happened to that one."""
    live, shape = fanned(9, limit=9)
    for item in range(9):
        answer(live, item, kind="terminal")

    texts = [f["text"] for f in why(told_live(live, shape), about="build[7]")["because"]]

    assert [text for text in texts if "build[" in text] == [
        "build[7] was ready",
        "attempt 1 of build[7] failed (terminal, effect.failed: it broke): a human must decide",
    ]


@pytest.mark.req("R182")
def test_a_trace_ties_each_item_to_its_call():
    """Calls, receipts and events carry the item's name, each its own key."""
    live, shape = fanned(2)
    answer(live, 1, "q")
    answer(live, 0, "p")

    entries = trace(told_live(live, shape))

    calls = [call["step"] for entry in entries for call in entry["calls"]]
    assert calls == ["a", "build[0]", "build[1]", "z"]
    assert [entry["input"].get("step") for entry in entries] == [None, "a", "build[1]", "build[0]"]
    assert [entry["caused_by"] for entry in entries] == [None, 1, 2, 2]
    named = [event["step"] for event in entries[1]["events"] if "step" in event]
    assert named == ["a", "build", *["build[0]", "build[1]"] * 2]


def test_published_events_name_the_item():
    """One Ready for each item; step and item in every payload about one."""
    live, shape = fanned(2)
    answer(live, 1, "q")

    envelopes = history(told_live(live, shape))

    ready = [e["payload"] for e in envelopes if e["eventType"] == "WorkflowStepReady"]
    assert [(each["step"], each.get("item")) for each in ready[1:]] == [("build", 0), ("build", 1)]
    done = [e["payload"] for e in envelopes if e["eventType"] == "AgentTaskCompleted"][-1]
    assert (done["step"], done["item"], done["attempt"]) == ("build", 1, 1)


def test_a_journal_in_words_names_items():
    """`build[2]`, and no number beside it."""
    live, _ = fanned(3)
    event = [e for e in live.turns[1].turn.events if isinstance(e, StepReady)][-1]

    assert told(event, live.plan).startswith("step.ready build[2] params=")
    assert "item=" not in told(event, live.plan)


@pytest.mark.req("R187")
def test_a_story_can_be_told_as_it_grows():
    """What is told turn by turn is what is told at once, times and children included."""
    live, shape = fanned(4, limit=2)
    for item in range(4):
        live.now += 1_000
        answer(live, item, item)
    story = told_live(live, shape)
    telling = Telling(up_to(story, 0))

    for turn in range(1, len(story.turns) + 1):
        grown = telling.tell(up_to(story, turn))
        whole = tell(story, turn)
        assert (grown.opened, grown.since, grown.settled) == (
            whole.opened,
            whole.since,
            whole.settled,
        )
        assert grown.state.turn == turn


def test_erased_results_of_items_are_named():
    """The path says which item; the list of the step says that something is gone."""
    live, shape = fanned(2)
    answer(live, 0, {"secret": 1})
    answer(live, 1, {"secret": 2})

    shown = show(erased(told_live(live, shape)))

    assert {"steps.build.result", "steps.build[0].result"} <= set(shown["erased"])
    assert shown["steps"]["build"]["result"] == [None, None]
