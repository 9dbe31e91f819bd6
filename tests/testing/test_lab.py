"""Labs: a real engine, in virtual time. These tests use the fixtures of the plugin themselves."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from pawlflow import Context, Correctable, Terminal, Transient, WorkflowFailed
from pawlflow.testing import Fail, Hang, Lab, Ok, Real, StillWaiting, assert_replays
from tests.testing.lab_kit import GATED, ORDER, PARENT, workflow

pytestmark = pytest.mark.req("R198")
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def seconds(calls):
    """When calls were made, in virtual seconds."""
    return [(each.at - BEGAN).total_seconds() for each in calls]


async def test_retries_back_off_in_virtual_time(pawl):
    """Each attempt is made at its time, to the millisecond; the run ends with the first success."""
    pawl.add(ORDER)
    pawl.script("card.charge", [Fail.transient(), Fail.transient(), Fail.transient(), {"id": 7}])

    run = await pawl.start("order", {"amount": 12}, id="o-1")
    await pawl.skip("1m")

    assert await run.result() == {"id": 7}
    assert seconds(pawl.calls("charge")) == [0, 1, 3, 7]
    assert [each.attempt for each in pawl.calls()] == [1, 2, 3, 4]
    assert {each.key for each in pawl.calls()} == {pawl.calls()[0].key}
    assert pawl.calls("card.charge")[0].arguments == {"amount": 12}
    assert (pawl.now, pawl.elapsed) == (BEGAN + timedelta(minutes=1), timedelta(minutes=1))
    assert_replays(run)


async def test_a_result_that_cannot_come_says_what_it_waits_for(pawl):
    """Nothing waits for real: the error names the wait, and the acts that would end it."""
    pawl.add(GATED)
    pawl.script("parcel.ship", {})
    run = await pawl.start("gated", id="g-1")

    with pytest.raises(StillWaiting) as waiting:
        await run.result()
    await pawl.approve("g-1", "gate", by="zoe", role="boss")

    said = str(waiting.value)
    assert waiting.value.code == "lab.waiting"
    assert "gate waits for approval by boss" in said
    assert 'approve("g-1", "gate", by=NAME, role="boss"), or reject()' in said
    assert 'skip("1d"), to the next deadline' in said
    assert await run.result() is None


async def test_the_error_names_what_a_child_waits_for(pawl):
    """The acts are those of the child, and so is the deadline."""
    pawl.add(PARENT)
    pawl.add(GATED)
    pawl.script("parcel.ship", {})
    run = await pawl.start("parent", id="p-1")
    [child] = run.show()["children"]

    with pytest.raises(StillWaiting) as waiting:
        await run.result()
    await pawl.approve(child["id"], "gate", by="zoe", role="boss")

    assert f'approve("{child["id"]}", "gate"' in str(waiting.value)
    assert 'skip("1d")' in str(waiting.value)
    await run.result()
    assert_replays(run)


@pytest.mark.parametrize(
    ("step", "act", "said"),
    [
        ("name: a, wait: {event: paid}", None, 'signal("r-1", "paid", DATA), or emit()'),
        ("name: a, run: x, onFailure: escalate", None, 'resume("r-1", "a", by=NAME)'),
        ("name: a, sleep: 3d", "pause", 'unpause("r-1", by=NAME)'),
        ("name: a, sleep: 3d", None, 'skip("3d"), to the next deadline'),
    ],
    ids=["event", "escalation", "paused", "timer"],
)
async def test_every_wait_has_a_way_on(step, act, said, pawl):
    """Whatever a run waits for, the error says how to go on."""
    pawl.add(workflow("waits", steps=(step,)))
    pawl.script("x", Fail.terminal())
    run = await pawl.start("waits", id="r-1")
    if act is not None:
        await getattr(pawl, act)("r-1", by="zoe")

    with pytest.raises(StillWaiting) as waiting:
        await run.result()

    assert said in str(waiting.value)


async def test_a_skip_fires_every_deadline_in_order(pawl):
    """Three sleeps of different runs, and what follows each, in the order of time."""
    for name, span in (("late", "3d"), ("soon", "1d"), ("between", "36h")):
        steps = (f"name: nap, sleep: {span}", f"name: {name}, run: tell, dependsOn: [nap]")
        pawl.add(workflow(name, steps=steps))
    pawl.script("tell", {})
    for name in ("late", "soon", "between"):
        await pawl.start(name)

    await pawl.skip("30h")
    first = [each.step for each in pawl.calls()]
    await pawl.skip("10d")

    assert first == ["soon"]
    assert [(each.step, each.at - BEGAN) for each in pawl.calls()] == [
        ("soon", timedelta(days=1)),
        ("between", timedelta(hours=36)),
        ("late", timedelta(days=3)),
    ]


@pytest.mark.parametrize(
    ("answer", "attempts", "state"),
    [
        (Ok({}, after="119s"), [0], "completed"),
        (Ok({}, after="2m"), [0], "completed"),  # done at the instant counts as done
        (Ok({}, after="121s"), [0], "failed"),
        (Hang(), [0], "failed"),
        (Fail.transient(after="10s"), [0, 11, 23, 37], "failed"),
    ],
    ids=["in-time", "just-in-time", "late", "hangs", "fails-late"],
)
async def test_answers_take_virtual_time(answer, attempts, state, pawl):
    """A script may take its time, or never answer; the step's timeout is in virtual time too."""
    pawl.add(ORDER)
    pawl.script("charge", answer)
    run = await pawl.start("order", {"amount": 1})

    await pawl.skip("1h")

    assert run.show()["state"] == state
    assert seconds(pawl.calls()) == attempts


@pytest.mark.parametrize(
    ("answers", "states"),
    [
        ({"n": 1}, ["succeeded"]),
        ([{"n": 1}], ["succeeded"]),
        (Transient("no"), ["failed"]),
        (ValueError, ["failed"]),
        (Terminal("no"), ["failed"]),
        (lambda call: {"n": call.arguments["n"]}, ["succeeded"]),
        ([lambda _: Fail.terminal(), {"n": 1}], ["failed", "succeeded"]),
        ([Real, Terminal], ["succeeded", "failed"]),
        (Ok({"n": 1}, twice=True, usage={"usd": 1}), ["succeeded"]),
    ],
)
async def test_a_script_takes_whatever_means_an_answer(answers, states, pawl):
    """Values, failures, exceptions, functions, and the real function in the middle."""
    pawl.add(workflow("plain", steps=("name: a, run: x, with: {n: 1}, onFailure: abort",)))

    @pawl.effect("x")
    async def real(n):
        return {"n": n}

    pawl.script("x", answers)
    runs = [await pawl.start("plain") for _ in states]

    assert [run.show()["steps"]["a"]["state"] for run in runs] == states


async def test_a_script_is_read_by_all_or_by_each(pawl):
    """By default one list for all calls in order; with each=True every item has its own."""
    steps = ("name: a, run: x, forEach: '${ [1, 2] }'", "name: b, run: y, forEach: '${ [1, 2] }'")
    pawl.add(workflow("fan", "output: '${ [steps.a, steps.b] }'", steps=steps))
    pawl.script("x", ["first", "second"])
    pawl.script("y", ["first", "second"], each=True)

    run = await pawl.start("fan")

    assert await run.result() == [["first", "second"], ["first", "first"]]


async def test_agents_are_scripted_by_their_role(pawl):
    """A correction is another round, with the findings as feedback; a role is a name like any."""
    step = "name: write, agent: writer, action: Write, maxCorrectionAttempts: 1"
    pawl.add(workflow("notes", "output: '${ steps.write }'", steps=(step,)))
    pawl.script("writer", [Correctable(["no title"]), {"title": "June"}])

    run = await pawl.start("notes")

    assert await run.result() == {"title": "June"}
    assert [each.feedback for each in pawl.calls("writer")] == [[], ["no title"]]


async def test_functions_run_for_real(pawl):
    """`async def` and `def` alike, with their context; what they raise is what it means."""
    pawl.add(workflow("two", steps=("name: a, run: a", "name: b, run: b, dependsOn: [a]")))
    seen = []

    @pawl.effect("a")
    async def a(ctx: Context):
        await asyncio.sleep(0.001)
        seen.append((ctx.key, ctx.attempt))

    @pawl.effect("b")
    def b(ctx: Context):
        seen.append((ctx.key, ctx.attempt))
        raise Terminal("no")

    run = await pawl.start("two")

    with pytest.raises(WorkflowFailed, match="no"):
        await run.result()
    assert seen == [(each.key, each.attempt) for each in pawl.calls()]
    assert [each.times for each in pawl.calls()] == [1, 1]


async def test_a_function_may_take_virtual_time(pawl):
    """`sleep` inside a function: time passes it by, and ends it with its timeout or heartbeat."""
    steps = ("name: a, run: slow, timeout: 2m", "name: b, run: silent, heartbeat: 30s")
    pawl.add(workflow("two", steps=steps))
    woke = []

    @pawl.effect("slow")
    async def slow():
        await pawl.sleep("2m")
        woke.append(pawl.elapsed)

    @pawl.effect("silent")
    async def silent():
        await pawl.sleep()

    run = await pawl.start("two", id="t-1")
    await pawl.skip("31s")
    early = run.show()["steps"]
    await pawl.skip("1h")

    assert early["a"]["state"] == "cancelled"  # b was lost, and the instance failed
    assert early["b"]["error"]["code"] == "heartbeat.lost"
    assert woke == []
    pawl.script("silent", {})
    again = await pawl.start("two", id="t-2")
    await pawl.skip("2m")
    assert again.show()["steps"]["a"]["state"] == "succeeded"  # at its very deadline
    assert woke == [timedelta(hours=1, seconds=151)]


async def test_schedules_fire_in_virtual_time(pawl_options, pawl):
    """Three days are three runs, each named by its time, in order."""
    found = workflow("daily", "trigger: {schedule: '0 6 * * *'}", steps=("name: a, run: x",))
    pawl.add(found)
    pawl.script("x", {})

    await pawl.skip("3d")

    times = [f"daily.2026-01-0{day}T06:00Z" for day in (1, 2, 3)]
    assert [each.instance for each in pawl.calls()] == times
    assert pawl.calls()[0].at.isoformat() == "2026-01-01T06:00:00+00:00"


async def test_result_with_a_timeout_moves_time(pawl):
    """As much as is needed, and no more; after it the run is still open."""
    pawl.add(workflow("nap", steps=("name: a, sleep: 10m",)))
    run = await pawl.start("nap")

    with pytest.raises(TimeoutError, match="is still waiting after 9m"):
        await run.result(timeout="9m")
    assert pawl.elapsed == timedelta(minutes=9)
    await run.result(timeout="3d")
    assert pawl.elapsed == timedelta(minutes=10)


async def test_acts_are_those_of_the_engine(pawl):
    """Signals, events, many starts and an act on many: each has settled when it returns."""
    pawl.add(workflow("waits", steps=("name: a, wait: {event: paid}", "name: b, wait: {event: x}")))
    started = await pawl.start_many("waits", [("w-1", {}), ("w-2", {}), ("w-3", {})])

    await pawl.signal("w-1", "paid", {"n": 1})
    await pawl.signal("w-1", "x")
    await pawl.emit("paid", {"n": 2})
    told = await pawl.batch("cancel", where="state == 'waiting'", by="zoe")

    assert [each.run.show()["state"] for each in started] == ["completed", "cancelled", "cancelled"]
    assert told["done"] == 2
    assert [each["id"] for each in pawl.list(state="completed")] == ["w-1"]


async def test_events_end_with_the_run_or_say_what_is_waited_for(pawl):
    """A stream of events never hangs either."""
    pawl.add(GATED)
    pawl.script("*", {})
    run = await pawl.start("gated", id="g-1")
    seen = []

    with pytest.raises(StillWaiting):
        async for event in run.events():
            seen += [event]
    await pawl.reject("g-1", "gate", by="zoe", role="boss")

    assert seen[-1]["eventType"] == "ApprovalRequested"
    assert [e["eventType"] async for e in run.events()][-1] == "WorkflowInstanceCancelled"


async def test_two_labs_at_once_have_each_their_time(pawl):
    """A function of one may act on another; each clock is its own."""
    async with Lab(now="2030-06-01T00:00Z") as other:
        other.add(workflow("there", steps=("name: a, sleep: 1h",)))
        pawl.add(workflow("here", steps=("name: a, run: call",)))

        @pawl.effect("call")
        async def call():
            run = await other.start("there", id="t-1")
            return {"id": run.id}

        run = await pawl.start("here")
        await other.skip("1h")

        assert run.show()["state"] == "completed"
        assert other.run("t-1").show()["state"] == "completed"
        assert (pawl.elapsed, other.elapsed) == (timedelta(0), timedelta(hours=1))
        assert other.now == datetime(2030, 6, 1, 1, tzinfo=UTC)


async def test_a_function_of_the_test_may_stand_for_the_real_one(pawl):
    """Whereas an engine refuses a second function, for its instances would reach it."""
    pawl.add(ORDER)

    @pawl.effect("card.charge")
    async def charge():
        return {"id": 1}

    @pawl.effect("card.charge")
    async def instead():
        return {"id": 2}

    run = await pawl.start("order", {"amount": 12}, id="o-1")
    assert await run.result() == {"id": 2}
