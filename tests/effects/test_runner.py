"""The runner: real functions, their time, their threads, and what they return."""

import asyncio
import threading
from contextvars import ContextVar

import msgspec
import pytest

from pawlflow import Pawl, PawlError, Step, WorkflowFailed, step
from tests.effects.kit import run, written


@pytest.mark.req("R90")
def test_cancel_reaches_the_function_and_settles(engine, tmp_path):
    """The function sees CancelledError; the instance closes as cancelled."""
    path = written(tmp_path, "long", "  steps: [{name: l, run: long}]\n")
    seen = []

    async def main():
        async with engine() as pawl:
            pawl.load(path)
            begun = asyncio.Event()

            @pawl.effect("long")
            async def long():
                begun.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    seen.append("cancelled")
                    raise

            started = await pawl.start("long")
            await begun.wait()
            await pawl.cancel(started.id, by="ann")
            with pytest.raises(WorkflowFailed) as ended:
                await started.result(timeout="20s")
            return ended.value.state

    assert run(main()) == "cancelled"
    assert seen == ["cancelled"]


@pytest.mark.req("R106")
def test_a_function_that_takes_too_long_is_stopped(engine, tmp_path):
    """The engine's clock decides; the step fails by its own timeout."""
    path = written(tmp_path, "slow", "  steps: [{name: s, run: slow, timeout: 20ms}]\n")

    async def main():
        async with engine() as pawl:
            pawl.load(path)
            pawl.effect("slow")(asyncio.Event().wait)
            with pytest.raises(WorkflowFailed) as failed:
                await (await pawl.start("slow")).result(timeout="20s")
            return failed.value

    failed = run(main())
    assert (failed.step, failed.failure_class) == ("s", "timeout")


def test_a_thread_that_succeeds_too_late_is_still_heard(engine, tmp_path):
    """A thread cannot be stopped: its late success settles the step, no retry is needed."""
    path = written(
        tmp_path,
        "late",
        "  steps:\n    - {name: s, run: slow, timeout: 20ms, onTimeout: retry,\n"
        "       retryPolicy: {maxRetries: 1, backoff: constant, initialDelay: 1h}}\n",
    )
    go = threading.Event()

    async def main():
        async with engine() as pawl:
            pawl.load(path)

            @pawl.effect("slow")
            def slow():
                go.wait(20)
                return "done after all"

            started = await pawl.start("late")
            async for event in started.events():
                if event["eventType"] == "StepRetryScheduled":
                    go.set()
            return started.show()

    shown = run(main())
    assert shown["state"] == "completed"
    assert shown["steps"]["s"]["result"] == "done after all"


def test_an_attempt_without_a_heartbeat_is_taken_for_lost(engine, tmp_path):
    """A function that promised signs of life and gives none is stopped and tried again."""
    path = written(
        tmp_path,
        "beat",
        "  steps:\n    - {name: s, run: quiet, heartbeat: 30ms, onTimeout: retry,\n"
        "       retryPolicy: {maxRetries: 100, backoff: constant, initialDelay: 1ms}}\n",
    )

    async def main():
        async with engine() as pawl:
            pawl.load(path)

            @pawl.effect("quiet")
            async def quiet(ctx):
                if ctx.attempt == 1:
                    await asyncio.Event().wait()
                for _ in range(5):
                    ctx.heartbeat()
                    await asyncio.sleep(0.005)
                return "alive"

            started = await pawl.start("beat")
            await started.result(timeout="20s")
            return started.history()

    names = [event["eventType"] for event in run(main())]
    assert "WorkflowStepTimedOut" in names
    assert names[-1] == "WorkflowInstanceCompleted"


def test_no_more_attempts_run_at_once_than_allowed(engine, tmp_path):
    """Concurrency is bounded; everything still runs."""
    path = written(tmp_path, "one", "  steps: [{name: s, run: busy}]\n")
    now, most = 0, 0

    async def main():
        nonlocal now, most
        async with engine(concurrency=3) as pawl:
            pawl.load(path)

            three = asyncio.Event()

            @pawl.effect("busy")
            async def busy():
                nonlocal now, most
                now += 1
                most = max(most, now)
                if now == 3:
                    three.set()
                await three.wait()
                now -= 1

            runs = await asyncio.gather(*(pawl.start("one") for _ in range(20)))
            for each in runs:
                await each.result(timeout="20s")

    run(main())
    assert most == 3


def test_context_variables_of_one_step_are_not_seen_by_the_next(engine, tmp_path):
    """Workers are used again, what a function has set is not."""
    path = written(tmp_path, "one", "  steps: [{name: s, run: setter}]\n")
    variable: ContextVar[int] = ContextVar("variable", default=0)
    seen = []

    async def main():
        async with engine() as pawl:
            pawl.load(path)

            @pawl.effect("setter")
            async def setter():
                seen.append(variable.get())
                variable.set(1)

            for _ in range(5):
                await (await pawl.start("one")).result(timeout="20s")

    run(main())
    assert seen == [0] * 5


def test_steps_are_plain_functions_that_can_be_registered(engine, tmp_path):
    """`@step` changes nothing about the function; a module's steps are registered together."""

    @step
    async def double(n: int) -> int:
        return 2 * n

    @step(name="math.half")
    def half(n: int) -> float:
        return n / 2

    class Result(msgspec.Struct):
        n: int

    assert isinstance(double, Step)
    assert half(4) == 2
    path = written(
        tmp_path,
        "maths",
        "  steps:\n    - {name: d, run: double, with: {n: 4}}\n"
        "    - {name: h, run: math.half, dependsOn: [d], with: {n: '${ steps.d }'}}\n"
        "    - {name: r, run: wrap, dependsOn: [h]}\n"
        "  output: '${ steps.r.n }'\n",
    )

    async def main():
        assert await double(3) == 6
        async with engine() as pawl:
            pawl.load(path)
            assert pawl.register(double, half) == ["double", "math.half"]
            pawl.effect("wrap")(lambda: Result(n=4))
            return await (await pawl.start("maths")).result(timeout="20s")

    assert run(main()) == 4


@pytest.mark.parametrize(
    ("result", "code"),
    [(object(), "result.unserialisable"), (b"x" * (17 << 20), "payload.too_large")],
    ids=["object", "17 MiB"],
)
@pytest.mark.req("R212")
def test_a_result_that_cannot_be_kept_is_a_terminal_failure(engine, tmp_path, result, code):
    """It is never tried again: the next attempt would return the same."""
    path = written(
        tmp_path, "odd", "  steps: [{name: s, run: odd, retryPolicy: {maxRetries: 5}}]\n"
    )

    async def main():
        async with engine() as pawl:
            pawl.load(path)
            pawl.effect("odd")(lambda: result)
            with pytest.raises(WorkflowFailed) as failed:
                await (await pawl.start("odd")).result(timeout="20s")
            return failed.value

    failed = run(main())
    assert (failed.code, failed.attempts) == (code, 1)


def test_a_thread_that_succeeds_while_it_is_cancelled_is_undone(engine, tmp_path):
    """It cannot be stopped, so its success is waited for, and undone with the rest."""
    path = written(
        tmp_path,
        "stubborn",
        "  failurePolicy: compensate\n  steps:\n"
        "    - {name: s, run: build, undo: {run: tear_down}}\n",
    )
    go, begun, undone = threading.Event(), threading.Event(), []

    async def main():
        async with engine() as pawl:
            pawl.load(path)

            @pawl.effect("build")
            def build(ctx):
                begun.set()
                go.wait(20)
                return {"built": ctx.cancelled}

            @pawl.effect("tear_down")
            def tear_down(result):
                undone.append(result)

            started = await pawl.start("stubborn")
            await asyncio.to_thread(begun.wait, 20)
            await pawl.cancel(started.id, by="ann")
            go.set()
            with pytest.raises(WorkflowFailed) as ended:
                await started.result(timeout="20s")
            return ended.value

    ended = run(main())
    assert (ended.state, ended.rollback) == ("cancelled", "full")
    assert undone == [{"built": True}]


@pytest.mark.req("R43", "R60")
def test_a_large_value_is_kept_once_and_checked_when_it_is_read(tmp_path):
    """A blob beside the journal: the same bytes twice are one row, a changed one is found."""
    path = written(
        tmp_path,
        "large",
        "  steps:\n    - {name: a, run: big}\n    - {name: b, run: big, dependsOn: [a]}\n",
    )
    url = f"sqlite:///{tmp_path}/pawl.db"

    async def main():
        async with Pawl(url) as pawl:
            pawl.load(path)
            pawl.effect("big")(lambda: "x" * 200_000)
            started = await pawl.start("large", id="l-1")
            await started.result(timeout="20s")
            db = pawl.store._db
            count = db.execute("select count(*) from blob").get
            db.execute("update blob set data = zeroblob(length(data))")
            with pytest.raises(PawlError) as damaged:
                started.show()
            return count, damaged.value.code

    assert run(main()) == (1, "journal.damaged")


class UnprintableError(Exception):
    """An exception that cannot even say what it is."""

    def __str__(self) -> str:
        raise ZeroDivisionError


def stops():
    return next(iter([]))


def unprintable():
    raise UnprintableError


async def cancels_itself():
    task = asyncio.create_task(asyncio.sleep(10))
    task.cancel()
    await task


async def quits():
    raise GeneratorExit


@pytest.mark.parametrize("odd", [stops, unprintable, cancels_itself, quits])
def test_whatever_a_function_raises_settles_the_attempt(engine, tmp_path, odd):
    """No exception is odd enough to leave a step running, or to take a worker with it."""
    path = written(tmp_path, "odd", "  steps: [{name: s, run: odd}]\n")

    async def main():
        async with engine(concurrency=1) as pawl:
            pawl.load(path)
            pawl.effect("odd")(odd)
            codes = []
            for _ in range(2):
                with pytest.raises(WorkflowFailed) as failed:
                    await (await pawl.start("odd")).result(timeout="20s")
                codes.append((failed.value.code, failed.value.failure_class))
            return codes

    assert run(main()) == [("effect.raised", "agent")] * 2


def test_a_result_that_holds_itself_is_refused_for_good(engine, tmp_path):
    """It would be the same the next time."""
    body = "  steps: [{name: s, run: knot, retryPolicy: {maxRetries: 3}}]\n"
    path = written(tmp_path, "knot", body)

    async def main():
        async with engine() as pawl:
            pawl.load(path)

            @pawl.effect("knot")
            def knot():
                tied = []
                tied.append(tied)
                return tied

            with pytest.raises(WorkflowFailed) as failed:
                await (await pawl.start("knot")).result(timeout="20s")
            return failed.value.code, failed.value.attempts

    assert run(main()) == ("result.unserialisable", 1)
