"""`Pawl`: an engine in this process, with real functions on real files."""

import asyncio
import threading
from collections import Counter

import pytest

from pawlflow import (
    Conflict,
    Correctable,
    DefinitionError,
    NoExecutor,
    NotFound,
    Pawl,
    Refused,
    Terminal,
    Transient,
    WorkflowFailed,
)
from pawlflow.projections.proof import verify_store
from tests.effects.kit import run, written


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
