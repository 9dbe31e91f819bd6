"""`Pawl`: an engine in this process, with real functions on real files."""

import asyncio
import threading
from collections import Counter

import msgspec
import pytest

from pawlflow import (
    Conflict,
    Correctable,
    DefinitionError,
    NoExecutor,
    NotFound,
    Pawl,
    Refused,
    Step,
    Terminal,
    Transient,
    WorkflowFailed,
    step,
)
from pawlflow.projections.proof import verify_store

HEAD = "apiVersion: pawl.dev/v1\nkind: Workflow\nmetadata: {name: NAME}\nspec:\n"
SAGA = """
  failurePolicy: compensate
  steps:
    - name: book
      run: hotel.book
      with: {night: "${ input.night }"}
      undo: {run: hotel.cancel, with: {room: "${ result.room }"}}
    - name: pay
      run: card.pay
      dependsOn: [book]
      retryPolicy: {maxRetries: 2, backoff: constant, initialDelay: 1ms}
  output: {room: "${ steps.book.room }", paid: "${ steps.pay }"}
"""


@pytest.fixture(params=["memory", "inline", "thread"])
def engine(request, tmp_path):
    """A function that makes the engine: in memory, and on a file by both drivers."""

    def make(**more):
        if request.param == "memory":
            return Pawl("memory:", **more)
        return Pawl(f"sqlite:///{tmp_path}/pawl.db", driver=request.param, **more)

    make.kind = request.param
    return make


@pytest.fixture
def saga(tmp_path):
    return written(tmp_path, "saga", SAGA)


def written(folder, name, body):
    """A workflow in a file."""
    path = folder / f"{name}.yaml"
    path.write_text(HEAD.replace("NAME", name) + body)
    return path


def run(coroutine):
    """On a loop of its own, as a program does it."""
    return asyncio.run(coroutine)


def test_a_workflow_runs_to_its_output(engine, saga):
    """Functions are called with what `with` says, and their results go on."""
    seen = []

    async def main():
        async with engine() as pawl:
            pawl.load(saga)

            @pawl.effect("hotel.book")
            async def book(night, ctx):
                seen.append((night, ctx.attempt, ctx.step, ctx.tenant))
                return {"room": 12}

            @pawl.effect("card.pay")
            def pay():  # a plain function runs in a thread
                seen.append(threading.current_thread().name[:9])
                return True

            pawl.effect("hotel.cancel")(lambda room: None)
            started = await pawl.start("saga", {"night": "friday"}, id="s-1")
            return await started.result(timeout="20s"), started.show()

    output, shown = run(main())

    assert output == {"room": 12, "paid": True}
    assert seen == [("friday", 1, "book", "default"), "pawl-step"]
    assert shown["state"] == "completed"


@pytest.mark.req("R102", "R117")
def test_what_a_function_raises_chooses_the_way(engine, saga):
    """Transient is tried again, Terminal is not; the undo gets the result of what it undoes."""
    undone = []
    attempts = []

    async def main():
        async with engine() as pawl:
            pawl.load(saga)
            pawl.effect("hotel.book")(lambda night: {"room": 7})

            @pawl.effect("hotel.cancel")
            def cancel(room):
                undone.append(room)

            @pawl.effect("card.pay")
            async def pay(ctx):
                attempts.append(ctx.key)
                if ctx.attempt < 3:
                    raise Transient("the line is busy")
                raise Terminal("the card was refused")

            started = await pawl.start("saga", {"night": "friday"})
            with pytest.raises(WorkflowFailed) as failed:
                await started.result(timeout="20s")
            return failed.value

    failed = run(main())

    assert (failed.step, failed.failure_class, failed.rollback) == ("pay", "terminal", "full")
    assert failed.attempts == 3
    assert undone == [7]
    assert len(set(attempts)) == 1  # one idempotency key over all retries


@pytest.mark.req("R103")
def test_findings_come_back_as_feedback(engine, tmp_path):
    """Correctable asks for another round; the next attempt is told what was wrong."""
    path = written(
        tmp_path, "write", "  steps: [{name: w, agent: writer, maxCorrectionAttempts: 2}]\n"
    )
    told = []

    async def main():
        async with engine() as pawl:
            pawl.load(path)

            @pawl.agent("writer")
            async def write(ctx):
                told.append(ctx.feedback)
                ctx.log(f"draft {ctx.attempt}")
                if len(told) == 1:
                    raise Correctable(["too long"])
                return "short"

            await (await pawl.start("write")).result(timeout="20s")

    run(main())
    assert told == [[], ["too long"]]


@pytest.mark.req("R39", "R143")
def test_what_was_in_flight_goes_on_when_the_engine_comes_back(tmp_path, saga):
    """Leaving cancels what runs and settles nothing; entering offers it again, same key."""
    keys = []
    url = f"sqlite:///{tmp_path}/pawl.db"

    async def first():
        reached = asyncio.Event()
        async with Pawl(url) as pawl:
            pawl.load(saga)
            pawl.effect("hotel.cancel")(lambda room: None)
            pawl.effect("card.pay")(lambda: True)

            @pawl.effect("hotel.book")
            async def book(night, ctx):
                keys.append((ctx.key, ctx.attempt))
                reached.set()
                await asyncio.Event().wait()

            await pawl.start("saga", {"night": "friday"}, id="s-1")
            await reached.wait()

    async def second():
        pawl = Pawl(url)
        pawl.effect("hotel.cancel")(lambda room: None)
        pawl.effect("card.pay")(lambda: True)

        @pawl.effect("hotel.book")
        async def book(night, ctx):
            keys.append((ctx.key, ctx.attempt))
            return {"room": 1}

        async with pawl:
            output = await pawl.run("s-1").result(timeout="20s")
            return output, verify_store(pawl.reader)

    run(first())
    output, report = run(second())

    assert output == {"room": 1, "paid": True}
    assert len(keys) == 2
    assert keys[0] == keys[1]
    assert report.differences == []


@pytest.mark.req("R93", "R65", "R94")
def test_starts_are_refused_with_a_reason(engine, saga, tmp_path):
    """Another input under the same id, an unknown name, nobody to carry an effect out."""
    closed = written(
        tmp_path,
        "strict",
        "  input: {type: object, required: [n]}\n  steps: [{name: a, sleep: 1h}]\n",
    )

    async def main():
        async with engine() as pawl:
            pawl.load(saga, closed)
            with pytest.raises(NoExecutor) as orphan:
                await pawl.start("saga", {"night": "friday"})
            assert orphan.value.effects == ["card.pay", "hotel.book", "hotel.cancel"]
            with pytest.raises(NotFound):
                await pawl.start("sagas")
            with pytest.raises(Refused) as invalid:
                await pawl.start("strict", {"m": 1})
            assert invalid.value.code == "input.invalid"
            with pytest.raises(Refused) as unfit:
                await pawl.start("strict", {"n": object()})
            assert unfit.value.code == "input.unserialisable"
            with pytest.raises(Refused) as large:
                await pawl.start("strict", {"n": b"x" * (17 << 20)})
            assert large.value.code == "payload.too_large"
            one = await pawl.start("strict", {"n": 1}, id="same")
            again = await pawl.start("strict", {"n": 1}, id="same")
            assert one.id == again.id
            with pytest.raises(Conflict):
                await pawl.start("strict", {"n": 2}, id="same")
            with pytest.raises(NotFound):
                pawl.run("nobody")
            with pytest.raises(NotFound):
                await pawl.signal("nobody", "go")

    run(main())


def test_a_broken_file_names_the_place(tmp_path):
    """Loading raises with file, line and column."""
    path = written(tmp_path, "bad", "  steps: [{name: a, rum: x}]\n")
    with pytest.raises(DefinitionError, match=r"bad\.yaml:5:"):
        Pawl("memory:").load(path)


@pytest.mark.req("R215", "R67")
def test_signals_and_events_reach_who_waits(engine, tmp_path):
    """A signal is for one instance, an event for all who wait, and for those it starts."""
    waits = written(
        tmp_path, "waits", "  steps: [{name: w, wait: {event: go, match: event.n == input.n}}]\n"
    )
    born = written(
        tmp_path,
        "born",
        "  trigger: {event: go, condition: event.n > 1}\n  steps: [{name: s, run: note}]\n",
    )
    notes = []

    async def main():
        async with engine() as pawl:
            pawl.load(waits, born)
            done = asyncio.Event()

            @pawl.effect("note")
            async def note(ctx):
                notes.append(ctx.instance[:5])
                done.set()

            runs = [await pawl.start("waits", {"n": n}) for n in (1, 2, 3)]
            await pawl.signal(runs[0].id, "go", {"n": 1})
            await pawl.emit("go", {"n": 2})
            await runs[0].result(timeout="20s")
            await runs[1].result(timeout="20s")
            await asyncio.wait_for(done.wait(), 20)
            return [each.show()["state"] for each in runs]

    assert run(main()) == ["completed", "completed", "waiting"]
    assert notes == ["born-"]


@pytest.mark.req("R86", "R214")
def test_instances_with_one_key_queue_up(engine, tmp_path):
    """One at a time per key, the others are queued, visibly."""
    path = written(
        tmp_path,
        "deploy",
        "  concurrency: {key: input.repo, limit: 1}\n  steps: [{name: d, run: go}]\n",
    )
    running = Counter()
    most = Counter()

    async def main():
        async with engine() as pawl:
            pawl.load(path)

            @pawl.effect("go")
            async def go(ctx):
                repo = pawl.run(ctx.instance).show()["input"]["repo"]
                running[repo] += 1
                most[repo] = max(most[repo], running[repo])
                await asyncio.sleep(0)
                running[repo] -= 1

            runs = [await pawl.start("deploy", {"repo": repo}) for repo in "aaabbc"]
            for each in runs:
                await each.result(timeout="20s")

    run(main())
    assert most == {"a": 1, "b": 1, "c": 1}


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
        "       retryPolicy: {maxRetries: 1, backoff: constant, initialDelay: 1ms}}\n",
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
    from contextvars import ContextVar

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
