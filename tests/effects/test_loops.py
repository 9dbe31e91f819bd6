"""Loops: checkpoints are kept once, found by name after a crash, and reported where lost."""

import asyncio
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pawlflow import (
    Cancelled,
    Correctable,
    Pawl,
    Transient,
    WorkflowFailed,
    flow,
    loop,
    step,
)
from tests.effects.kit import run, written
from tests.effects.loop_kit import AGAIN, World, result_of


@pytest.mark.req("R220")
def test_a_loop_by_itself_is_a_workflow(engine):
    """Its input is its arguments, its output its result; every function runs once."""
    world = World()

    @loop
    async def research(ctx, topic: str, rounds: int = 2) -> dict:
        plan = await ctx.do("plan", world.does("plan"), topic)
        found = []
        for n in range(1, rounds + 1):
            with ctx.scope(f"round-{n}"):
                found.append(await ctx.do("search", world.does(f"search-{n}"), plan))
        a, b = await ctx.all(ctx.do("a", world.does("a", 1)), ctx.do("b", world.does("b", 2)))
        more = await ctx.all({"c": world.does("c", 3), "d": ctx.do("dd", world.does("d", 4))})
        return {"topic": topic, "found": found, "sum": [a, b, more["c"], more["d"]]}

    async def main():
        async with engine() as pawl:
            started = await pawl.start(research, {"topic": "tides"})
            return await started.result(timeout="20s"), started.show()

    result, shown = run(main())
    assert result["topic"] == "tides"
    assert result["found"] == [{"of": "search-1"}, {"of": "search-2"}]
    assert result["sum"] == [1, 2, 3, 4]
    assert set(world.ran.values()) == {1}
    assert (shown["workflow"], list(shown["steps"])) == ("research", ["research"])
    assert research.workflow.output == "${ steps.research }"


@pytest.mark.req("R220")
def test_a_retry_goes_on_after_the_last_checkpoint(engine):
    """What was kept is not run again, and is the same value as the first time."""
    world, seen = World(), []

    @loop(retry=AGAIN)
    async def work(ctx):
        seen.append(await ctx.do("first", world.does("first", (1, {"two": 2}))))
        if ctx.attempt == 1:
            raise Transient("the lights went out")
        seen.append(await ctx.do("second", world.does("second")))
        return ctx.attempt

    async def main():
        async with engine() as pawl:
            return await result_of(pawl, work)

    assert run(main()) == 2
    assert world.ran == {"first": 1, "second": 1}
    assert seen[0] == seen[1] == [1, {"two": 2}]  # a tuple is a list at once, not after a crash


@pytest.mark.req("R220")
def test_a_checkpoint_that_raises_keeps_nothing(engine):
    """The attempt fails as any other does; the next one runs that function again."""
    world = World()

    def flaky():
        world.ran["flaky"] += 1
        if world.ran["flaky"] < 3:
            raise Transient("not yet")
        return "now"

    @loop(retry=AGAIN)
    async def work(ctx):
        await ctx.do("sure", world.does("sure"))
        return await ctx.do("flaky", flaky)

    async def main():
        async with engine() as pawl:
            return await result_of(pawl, work)

    assert run(main()) == "now"
    assert world.ran == {"sure": 1, "flaky": 3}


@pytest.mark.req("R220")
def test_an_engine_that_comes_back_resumes_a_loop(tmp_path):
    """The same attempt is offered again, and finds what it had kept."""
    world, url = World(), f"sqlite:///{tmp_path}/pawl.db"
    held = asyncio.Event

    def made(reached, forever):
        @loop
        async def work(ctx):
            keys.append(ctx.key_of("last"))
            first = await ctx.do("first", world.does("first", ctx.attempt))
            if forever:
                reached.set()
                await held().wait()
            return [first, await ctx.do("last", world.does("last"))]

        return work

    keys = []

    async def begin():
        reached = asyncio.Event()
        async with Pawl(url) as pawl:
            await pawl.start(made(reached, forever=True), {}, id="w-1")
            await reached.wait()

    async def go_on():
        async with Pawl(url) as pawl:
            pawl.register(made(None, forever=False))
            return await pawl.run("w-1").result(timeout="20s")

    run(begin())
    assert run(go_on()) == [1, {"of": "last"}]
    assert world.ran == {"first": 1, "last": 1}
    assert keys[0] == keys[1]


NAMES = ["a", "b", "c", "d", "e"]


@pytest.mark.req("R220")
@settings(max_examples=30, deadline=None)
@given(st.permutations(NAMES), st.permutations(NAMES), st.integers(0, 5), st.integers(0, 5))
def test_reordering_is_fine(first, second, crash, again):
    """Whatever order the names are asked for in, each runs once and holds its own result."""
    world = World()
    orders = {1: (first, crash), 2: (second, again), 3: (sorted(first, key=str), 9)}

    @loop(retry=AGAIN)
    async def work(ctx):
        order, until = orders[min(ctx.attempt, 3)]
        found = {}
        for number, name in enumerate(order):
            if number == until:
                raise Transient("again")
            found[name] = await ctx.do(name, world.does(name, name.upper()))
        return found

    async def main():
        async with Pawl("memory:") as pawl:
            started = await pawl.start(work)
            return await started.result(timeout="20s"), started.show()

    result, shown = run(main())
    assert result == {name: name.upper() for name in NAMES}
    assert world.ran == dict.fromkeys(NAMES, 1)
    assert shown["steps"]["work"]["warnings"] == 0


def renamed(strict=False):
    """A loop whose second attempt is newer code: one name is another, one is gone."""

    @loop(retry=AGAIN, strict=strict)
    async def work(ctx):
        if ctx.attempt == 1:
            await ctx.do("plan", str)
            with ctx.scope("round-1"):
                await ctx.do("serach", str)
                await ctx.do("count", str)
            raise Transient("again")
        await ctx.do("plan", str)
        with ctx.scope("round-1"):
            return await ctx.do("search", lambda: "new")

    return work


@pytest.mark.req("R220")
def test_a_renamed_checkpoint_is_reported_by_name(engine):
    """The step succeeds with a warning for each, and the log says what the new name is."""

    async def main():
        async with engine() as pawl:
            started = await pawl.start(renamed())
            assert await started.result(timeout="20s") == "new"
            return started.show()["steps"]["work"]

    shown = run(main())
    assert shown["warnings"] == 2
    assert shown["ladder"][-1]["log"] == [
        "warning: 'round-1/serach' was kept and never asked for; new is 'round-1/search'",
        "warning: 'round-1/count' was kept and never asked for",
    ]


@pytest.mark.req("R220")
def test_a_strict_loop_fails_where_a_checkpoint_was_renamed(engine):
    """For good, with the names."""

    async def main():
        async with engine() as pawl:
            with pytest.raises(WorkflowFailed) as failed:
                await result_of(pawl, renamed(strict=True))
            return failed.value

    failed = run(main())
    assert failed.failure_class == "terminal"
    assert "'round-1/serach' was kept and never asked for; new is 'round-1/search'" in str(failed)


def test_a_result_that_cannot_be_kept_is_named(engine):
    """For good: no retry will make it one that can."""

    @loop(retry=AGAIN)
    async def work(ctx):
        await ctx.do("open", threading.Lock)

    async def main():
        async with engine() as pawl:
            with pytest.raises(WorkflowFailed) as failed:
                await result_of(pawl, work)
            return failed.value

    failed = run(main())
    assert failed.failure_class == "terminal"
    assert "the result of checkpoint 'open' cannot be kept" in str(failed)


@pytest.mark.req("R220")
def test_a_loop_is_a_step_of_flows_and_of_files(engine, tmp_path):
    """Called in a flow, and named by `run:` in YAML."""
    path = written(
        tmp_path,
        "filed",
        "  steps: [{name: s, run: gather, with: {topic: '${ input.topic }'}}]\n"
        "  output: ${ steps.s }\n",
    )

    @loop(timeout="5m", heartbeat="1m")
    async def gather(ctx, topic):
        return [topic, await ctx.do("n", lambda: 7)]

    @step
    def last(found):
        return found[-1]

    @flow
    def whole(topic):
        return last(gather(topic))

    async def main():
        async with engine() as pawl:
            pawl.load(path)
            pawl.register(gather)
            given = {"topic": "tides"}
            return [await result_of(pawl, "filed", given), await result_of(pawl, whole, "tides")]

    assert run(main()) == [["tides", 7], 7]
    made = whole.workflow.steps[0]
    assert (made.target, made.timeout_ms, made.heartbeat_ms) == ("gather", 300_000, 60_000)


@pytest.mark.req("R220")
def test_a_correction_begins_with_nothing_kept(engine):
    """A new round is another call, with checkpoints of its own; a retry in it keeps them."""
    world = World()

    @loop(max_corrections=1, retry=AGAIN)
    async def draft(ctx):
        text = await ctx.do("write", world.does("write", len(ctx.feedback)))
        if not ctx.feedback:
            raise Correctable(["too short"])
        return text

    async def main():
        async with engine() as pawl:
            return await result_of(pawl, draft)

    assert run(main()) == 1
    assert world.ran == {"write": 2}


@pytest.mark.req("R220", "R65")
def test_a_loop_that_is_no_longer_wanted_is_told(engine):
    """The checkpoint it waits for raises Cancelled; whoever goes on regardless is stopped."""
    seen = []

    @loop
    async def work(ctx):
        begun.set()
        while True:
            try:
                await ctx.do("wait", asyncio.Event().wait)
            except Exception as error:  # noqa: BLE001  # as agents do
                seen.append(type(error))

    async def main():
        nonlocal begun
        begun = asyncio.Event()
        async with engine() as pawl:
            started = await pawl.start(work)
            await begun.wait()
            await pawl.cancel(started.id, by="ann")
            with pytest.raises(WorkflowFailed) as ended:
                await started.result(timeout="20s")
            return ended.value.state

    begun = None
    assert run(main()) == "cancelled"
    assert seen == [Cancelled]


@pytest.mark.req("R220", "R106")
def test_an_attempt_that_took_too_long_is_resumed_by_the_next(engine):
    """It is told, and what it had kept by then is not done again."""
    world, seen = World(), []

    @loop(timeout="100ms", on_timeout="retry", retry=AGAIN)
    async def work(ctx):
        await ctx.do("first", world.does("first"))
        if ctx.attempt == 1:
            try:
                await ctx.do("stuck", asyncio.Event().wait)
            except Cancelled as error:
                seen.append(str(error))
                raise
        return ctx.attempt

    async def main():
        async with engine() as pawl:
            return await result_of(pawl, work)

    assert run(main()) == 2
    assert world.ran == {"first": 1}
    assert seen == ["attempt 1 of work is no longer wanted, before 'stuck'"]


@pytest.mark.req("R220")
def test_each_item_of_a_list_has_checkpoints_of_its_own(engine, tmp_path):
    """A loop under forEach: as many calls, as many keys."""
    path = written(
        tmp_path,
        "many",
        "  steps: [{name: s, run: part, forEach: '${ input.all }', with: {n: '${ item }'}}]\n"
        "  output: ${ steps.s }\n",
    )
    world = World()

    @loop
    async def part(ctx, n):
        return await ctx.do("double", world.does(f"double-{n}", 2 * n))

    async def main():
        async with engine() as pawl:
            pawl.load(path)
            pawl.register(part)
            started = await pawl.start("many", {"all": [1, 2, 3]})
            result = await started.result(timeout="20s")
            return result, [each["result"] for each in started.checkpoints("s[1]")]

    assert run(main()) == ([2, 4, 6], [4])
    assert set(world.ran.values()) == {1}
