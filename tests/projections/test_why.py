"""What `why` tells: the chain that led here, what comes now, and the next command."""

import pytest

from pawlflow.kernel.evolve import evolve
from pawlflow.model.events import InstanceQueued
from pawlflow.model.inputs import CancelInstance, PauseInstance
from pawlflow.projections.facts import Fact
from pawlflow.projections.outlook import distance, outlook, when
from pawlflow.projections.show import show
from pawlflow.projections.story import Told, unbegun
from pawlflow.projections.why import CHAIN_MAX, shortened, why
from tests.kernel.support import Live, workflow
from tests.projections.kit import NAMES, erased, ran, story_of, told_live, up_to


def texts(name):
    """The chain of an example, in words."""
    return [fact["text"] for fact in why(story_of(name))["because"]]


@pytest.mark.req("R209")
@pytest.mark.parametrize("name", NAMES)
def test_why_has_an_answer_at_every_moment(name):
    """After every turn of every example there is a chain, a now and a hint; erased or not."""
    story, _ = ran(name)

    for at in range(1, len(story.turns) + 1):
        for told_of in (up_to(story, at), erased(up_to(story, at))):
            told = why(told_of, now=3_600_000)
            assert told["state"] == show(told_of)["state"]
            assert told["because"] and all(fact["text"] for fact in told["because"])
            assert told["now"] and told["hint"] == told["hints"][0]
            turns = [fact["turn"] for fact in told["because"]]
            assert turns == sorted(turns) and turns[-1] <= at


@pytest.mark.req("R209")
def test_a_failure_is_named_in_full():
    """Of a failed instance the step, class, code, words and rollback are in the words of now."""
    failed = [ran(name) for name in NAMES if ran(name)[1]["state"] == "failed"]
    assert len(failed) > 50

    for story, actual in failed:
        error, told = show(story)["error"], why(story)
        assert (error["step"] or "instance") in told["now"]
        assert all(error[part] in told["now"] for part in ("class", "code", "message"))
        assert f"rollback {actual['rollback']}" in told["now"]


@pytest.mark.req("R209")
def test_the_chain_of_a_failure_is_causal():
    """Attempts that failed, the failure for good, the undo, the close; nothing else."""
    assert texts("a-failed-undo-stops-the-others") == [
        "scenario started travel v1",
        "visa was ready: car was the last it needed",
        "attempt 1 of visa failed (terminal, effect.failed: stubbed terminal failure), for good",
        "so the instance fails; what was done is undone",
        "compensation began, to undo car, hotel, flight",
        "car was undone",
        "attempt 1 to undo hotel failed (transient, effect.failed: stubbed transient failure); "
        "it is tried again at 1970-01-01T00:01:00.000Z",
        "attempt 2 to undo hotel failed (transient, effect.failed: stubbed transient failure); "
        "it is tried again at 1970-01-01T00:02:00.000Z",
        "hotel could not be undone (transient, effect.failed: stubbed transient failure)",
        "the instance closed as failed, rollback partial",
    ]


@pytest.mark.req("R209")
def test_the_chain_of_a_completed_run_is_its_critical_path():
    """Back from the last step by what held each one up; other branches are left out."""
    shape = workflow(
        "steps: [{name: quick, run: x.y}, {name: slow, run: x.y},"
        " {name: join, run: x.y, dependsOn: [quick, slow]}, {name: side, run: x.y}]"
    )
    live = Live(shape)
    live.start()
    for name in ("side", "quick", "slow", "join"):
        live.ok(name)

    told = why(told_live(live, shape))

    assert [fact["text"] for fact in told["because"]] == [
        "zoe started w v1",
        "slow succeeded on attempt 1",
        "join succeeded on attempt 1",
        "every step was done, so the instance completed",
    ]


@pytest.mark.req("R209")
@pytest.mark.parametrize(
    ("name", "now", "hint"),
    [
        (
            "half-a-quorum-leaves-the-gate-open",
            "gate waits for approval by ReleaseManager, 1 of 2 given (ann), since ",
            "pawl review approve {id}/gate --by NAME --role ReleaseManager",
        ),
        (
            "waiting-for-an-event-is-running",
            "passenger waits for the event passenger.arrived since ",
            "pawl signal {id} passenger.arrived --data '{{...}}'",
        ),
        (
            "an-expired-gate-that-nobody-decides-stays-escalated",
            "gate waits for a human's decision since ",
            "pawl resume {id} gate --by NAME",
        ),
        (
            "a-retry-held-by-a-pause-is-assigning-task",
            "ann paused it at 1970-01-01T00:01:30.000Z: nothing new starts; drive is ready",
            "pawl unpause {id} --by NAME",
        ),
        (
            "an-undo-in-flight-is-compensating",
            "attempt 1 to undo insure has run since 1970-01-01T00:01:00.000Z; still to be undone",
            "pawl watch {id}",
        ),
        (
            "awaiting-agent-goes-before-assigning-task",
            "attempt 1 of wash (car.wash) has run since ",
            "pawl watch {id}",
        ),
        (
            "a-rejected-gate-cancels-by-default",
            "ann rejected gate, which cancelled the instance; rollback none",
            "pawl show {id}",
        ),
        (
            "a-cancel-stops-everything-and-undoes-nothing",
            "ann cancelled it; rollback none",
            "pawl show {id}",
        ),
        (
            "a-completed-run-publishes-its-life-in-order",
            "it completed after 5s: 2 of its steps done",
            "pawl show {id}",
        ),
        (
            "a-failed-undo-stops-the-others",
            "visa failed after 1 attempt (terminal, effect.failed: stubbed terminal failure)",
            "undo hotel by hand; see undo_error in: pawl show {id} --json",
        ),
        (
            "for-the-workflow-timeout-skip-means-abort",
            "the instance itself failed (timeout, workflow.timeout: the workflow took too long)",
            "find out what took so long, or raise the timeout; see error in: pawl show {id} --json",
        ),
    ],
)
def test_now_and_next_fit_the_state(name, now, hint):
    """What it waits for or why it ended, and the exact next command."""
    told = why(story_of(name))

    assert told["now"].startswith(now)
    assert told["hint"] == hint.format(id=name)


@pytest.mark.req("R209")
def test_a_back_off_tells_when_it_is_tried_again():
    """The next attempt, its time, how far that is, and why it is needed."""
    story = up_to(story_of("attempts-are-max-retries-plus-one"), 2)

    told = why(story, now=400)

    assert told["now"] == (
        "rate backs off: attempt 2 is due at 1970-01-01T00:00:01.000Z (in 600ms), "
        "after transient, effect.failed: stubbed transient failure"
    )


def test_a_reassigned_gate_asks_its_new_role():
    """The hint names the role that may decide now, not the one in the definition."""
    story = story_of("an-expired-gate-may-be-reassigned-to-another-role")
    (asked,) = (at for at in range(1, len(story.turns)) if len(open_roles(story, at)) == 2)

    told = why(up_to(story, asked))

    _, role = open_roles(story, asked)
    assert told["hint"].endswith(f"--role {role}")
    assert f"approval by {role} since" in told["now"]


def open_roles(story, at):
    """The roles a gate has asked by then, each once."""
    waits = [wait for turn in range(1, at + 1) for wait in show(story, turn)["waiting"]]
    return list(dict.fromkeys(wait["role"] for wait in waits if wait["kind"] == "approval"))


def test_a_cancelled_wait_is_explained_when_time_was_up():
    """If the workflow's own time ends it, the chain tells what it had been waiting for."""
    told = texts("the-workflow-timeout-runs-on-while-escalated")

    assert any("a human must decide" in text for text in told)
    assert any("while these were open: pay (escalated)" in text for text in told)


def test_an_instance_that_stops_waits_for_its_attempts():
    """After a cancel, running attempts are told to stop, and are given some grace."""
    shape = workflow("steps: [{name: a, run: x.y}, {name: b, run: x.z}]")
    live = Live(shape)
    live.start()
    live.now = 1_000
    live.submit(CancelInstance("ann"))

    told = why(told_live(live, shape))

    assert told["now"] == (
        "it stops, and waits for the attempts of a, b to end, "
        "at most until 1970-01-01T00:00:31.000Z"
    )


@pytest.mark.parametrize(
    ("then", "waits"),
    [
        ("abort", "it stops, and waits for the attempts of a"),
        ("skip", "it is done, and waits for attempts of a"),
    ],
)
def test_an_instance_waits_for_what_timed_out_before_it_ends(then, waits):
    """The step is over, its attempt may not be."""
    shape = workflow(f"steps: [{{name: a, run: x.y, timeout: 1s, onFailure: {then}}}]")
    live = Live(shape)
    live.start()
    live.tick(1_000)

    told = why(told_live(live, shape))

    assert told["now"] == f"{waits} to end, at most until 1970-01-01T00:00:31.000Z"


def test_of_many_open_steps_some_are_told_and_all_are_counted():
    """Five are told one by one, those that need a human first."""
    steps = ", ".join(f"{{name: s{n}, run: x.y}}" for n in range(8))
    shape = workflow(f"steps: [{steps}, {{name: gate, approval: {{role: R}}}}]")
    live = Live(shape)
    live.start()

    told = why(told_live(live, shape))

    assert told["now"].startswith("gate waits for approval by R since")
    assert told["now"].endswith("; 4 more steps are open")
    assert told["hint"] == "pawl review approve i-1/gate --by NAME --role R"


def test_a_step_held_by_a_pause_before_it_began():
    """A paused instance whose next step is ready says who paused it."""
    shape = workflow("steps: [{name: a, run: x.y}, {name: b, run: x.z, dependsOn: [a]}]")
    live = Live(shape)
    live.start()
    live.submit(PauseInstance("ann"))
    live.ok("a")

    told = why(told_live(live, shape))

    assert "b is ready, and waits since" in told["now"]
    assert "ann paused the instance" in [fact["text"] for fact in told["because"]]


def test_a_very_long_chain_keeps_its_ends():
    """Where it came from and where it is are told; the middle is counted."""
    facts = [Fact(n, n, "step", 0, f"fact {n}") for n in range(1, 101)]

    kept = shortened(facts)

    assert len(kept) == CHAIN_MAX + 1
    assert (kept[0].text, kept[-1].text) == ("fact 1", "fact 100")
    assert [fact.text for fact in kept if "more" in fact.text] == ["… and 60 more like these …"]
    assert shortened(facts[:CHAIN_MAX]) == facts[:CHAIN_MAX]


def test_before_anything_happened_there_is_still_an_answer():
    """A story without turns has no chain, and says so much."""
    told = why(up_to(story_of("a-sleep-takes-its-time"), 0))

    assert (told["state"], told["because"]) == ("created", [])
    assert told["now"].startswith("the instance has not begun")


def test_a_queued_instance_waits_for_a_slot():
    """Created and held: it waits since then, whatever has come in meanwhile."""
    state = unbegun(story_of("a-sleep-takes-its-time"))
    evolve(state, InstanceQueued(held=True))
    state.created, state.now = 1_000, 5_000

    text, hints = outlook(Told(state), now=5_000)

    assert text == ("the instance waits for a free slot, since 1970-01-01T00:00:01.000Z (4s ago)")
    assert hints == ["pawl watch a-sleep-takes-its-time"]


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0ms"),
        (999, "999ms"),
        (61_000, "1m 1s"),
        (90_061_000, "1d 1h"),
    ],
)
def test_distances_have_two_units(ms, text):
    """Enough to know whether to wait."""
    assert distance(ms) == text
    assert when(ms + 5, 5).endswith(f"({text} ago)" if ms == 0 else f"(in {text})")


@pytest.mark.req("R134", "R209")
def test_a_claim_belongs_to_the_chain_and_to_now():
    """Who said that they look after it, and what is still awaited."""
    story = story_of("a-review-that-is-asked-again-is-claimed-anew")

    gate, escalated = why(up_to(story, 2)), why(up_to(story, 9))

    said = 'ann (ReleaseManager) claimed gate, saying "after lunch"'
    assert gate["because"][-1]["text"] == said
    assert gate["now"].endswith("until 1970-01-01T01:00:00.000Z; ann looks after it")
    assert escalated["because"][-1]["text"] == "ann claimed promote"
    assert escalated["now"].endswith("no route; ann looks after it")
