"""forEach and child workflows by real engines, on real files."""

import asyncio
from collections import Counter

import apsw
import pytest

from pawlflow import Pawl, Terminal, WorkflowFailed
from pawlflow.model.codec import BYTES_MAX
from pawlflow.projections.proof import verify_store
from tests.effects.kit import run, written

SQUARES = """
  steps:
    - {name: a, run: square, forEach: input.items, limit: 50, with: {n: "${ item }"}}
  output: "${ steps.a }"
"""
PARENT = """
  steps:
    - {name: c, workflow: kid, forEach: input.items, limit: 100, with: {n: "${ item }"}}
  output: "${ steps.c }"
"""
KID = """
  input: {type: object, required: [n], properties: {n: {type: integer}}}
  steps:
    - {name: k, run: square, with: {n: "${ input.n }"}}
  output: "${ steps.k }"
"""


async def square(n):
    """What every test here has done."""
    return n * n


@pytest.mark.req("R215")
def test_each_item_is_carried_out_and_its_result_kept(engine, tmp_path):
    """No more at a time than `limit`, whatever the engine."""
    running, most = 0, 0

    async def watched(n):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return n * n

    async def main():
        async with engine() as pawl:
            pawl.load(written(tmp_path, "squares", SQUARES))
            pawl.effect("square")(watched)
            started = await pawl.start("squares", {"items": list(range(400))})
            return await started.result(timeout="60s")

    assert run(main()) == [n * n for n in range(400)]
    assert 1 < most <= 50


@pytest.mark.req("R39", "R215")
def test_items_go_on_where_an_engine_left_off(tmp_path):
    """What was in flight is offered again; what was done is not done again."""
    done = Counter()
    url = f"sqlite:///{tmp_path}/pawl.db"

    async def first():
        async with Pawl(url) as pawl:
            pawl.load(written(tmp_path, "squares", SQUARES))
            enough = asyncio.Event()

            @pawl.effect("square")
            async def some(n):
                done[n] += 1
                if n >= 120:  # these are under way when the engine leaves
                    enough.set()
                    await asyncio.Event().wait()
                return n * n

            await pawl.start("squares", {"items": list(range(200))}, id="s")
            await enough.wait()

    async def second():
        async with Pawl(url) as pawl:

            @pawl.effect("square")
            async def rest(n):
                done[n] += 1
                return n * n

            return await pawl.run("s").result(timeout="60s")

    run(first())
    assert run(second()) == [n * n for n in range(200)]
    assert all(done[n] == 1 for n in range(100))
    assert set(done) == set(range(200))


@pytest.mark.req("R211")
def test_a_state_larger_than_a_document_is_read_again(tmp_path):
    """A thousand results of forty thousand bytes; a snapshot holds at least half of them."""
    url, size = f"sqlite:///{tmp_path}/pawl.db", 40_000
    spec = SQUARES.replace(
        "  output:", "    - {name: z, wait: {event: go}, dependsOn: [a]}\n  output:"
    )
    spec = spec.replace('"${ steps.a }"', '"${ size(steps.a) }"')

    async def first():
        async with Pawl(url) as pawl:
            pawl.load(written(tmp_path, "large", spec))
            pawl.effect("square")(lambda n: f"{n:0{size}}")
            started = await pawl.start("large", {"items": list(range(1_000))}, id="l")
            async for event in started.events():
                if event["eventType"] == "WorkflowStepWaiting":
                    break

    async def second():
        async with Pawl(url) as pawl:
            await pawl.signal("l", "go", {})
            return await pawl.run("l").result(timeout="60s")

    run(first())
    kept = largest_snapshot(tmp_path / "pawl.db")
    assert kept > BYTES_MAX
    assert run(second()) == 1_000


def largest_snapshot(path):
    """How many bytes the largest snapshot of a store takes, with what lies beside it."""
    with apsw.Connection(str(path)) as db:
        return db.execute("select max(length(data) + length(beside)) from snapshot").fetchone()[0]


# Children


@pytest.mark.req("R92", "R215")
def test_a_thousand_children_of_one_step(tmp_path):
    """A hundred at a time; each is an instance, and each is what its journal says."""
    url = f"sqlite:///{tmp_path}/pawl.db"

    async def main():
        async with Pawl(url) as pawl:
            pawl.load(written(tmp_path, "parent", PARENT))
            pawl.load(written(tmp_path, "kid", KID))
            pawl.effect("square")(square)
            started = await pawl.start("parent", {"items": list(range(1_000))}, id="p")
            output = await started.result(timeout="100s")
            states = Counter(row["state"] for row in pawl.list(limit=2_000))
            return output, states, verify_store(pawl.reader)

    output, states, verdict = run(main())

    assert output == [n * n for n in range(1_000)]
    assert states == {"completed": 1_001}
    assert verdict.differences == []


@pytest.mark.req("R92")
def test_a_child_that_is_refused_fails_its_item(engine, tmp_path):
    """Its input does not fit its schema: the parent is told what the child was told."""

    async def main():
        async with engine() as pawl:
            pawl.load(written(tmp_path, "parent", PARENT))
            pawl.load(written(tmp_path, "kid", KID))
            pawl.effect("square")(square)
            started = await pawl.start("parent", {"items": [1, "two"]})
            with pytest.raises(WorkflowFailed) as failed:
                await started.result(timeout="20s")
            return failed.value

    failed = run(main())

    assert (failed.step, failed.failure_class, failed.code) == ("c", "terminal", "input.invalid")
    assert "two" in str(failed)


@pytest.mark.req("R92", "R94")
def test_a_child_that_nobody_has_loaded_fails_its_step(engine, tmp_path):
    """At once, by name."""

    async def main():
        async with engine() as pawl:
            pawl.load(written(tmp_path, "parent", PARENT))
            started = await pawl.start("parent", {"items": [1]})
            with pytest.raises(WorkflowFailed) as failed:
                await started.result(timeout="20s")
            return failed.value

    failed = run(main())

    assert (failed.step, failed.code) == ("c", "child.unknown")
    assert "kid" in str(failed)


@pytest.mark.req("R92", "R90")
def test_a_cancel_that_comes_at_once_reaches_the_child(engine, tmp_path):
    """However fast it is: a stop takes the way of the start, and never comes before it."""
    wait = "  steps:\n    - {name: w, wait: {event: never}}\n"

    async def main():
        async with engine() as pawl:
            pawl.load(written(tmp_path, "parent", PARENT.replace("limit: 100", "limit: 3")))
            pawl.load(written(tmp_path, "kid", wait))
            states = Counter()
            for number in range(20):
                started = await pawl.start("parent", {"items": [1, 2, 3]}, id=f"p-{number}")
                await pawl.cancel(f"p-{number}", by="ann")
                with pytest.raises(WorkflowFailed):
                    await started.result(timeout="20s")
            states.update(row["state"] for row in pawl.list(limit=1_000))
            return states

    assert run(main()) == {"cancelled": 80}


@pytest.mark.req("R92")
def test_a_family_survives_its_engine(tmp_path):
    """Parent, child and grandchild: another engine goes on, and each hears of the one below."""
    url = f"sqlite:///{tmp_path}/pawl.db"
    top = '  steps:\n    - {name: m, workflow: mid}\n  output: "${ steps.m }"\n'
    mid = '  steps:\n    - {name: l, workflow: low}\n  output: "${ steps.l }"\n'
    low = '  steps:\n    - {name: k, run: square, with: {n: 7}}\n  output: "${ steps.k }"\n'

    async def first():
        async with Pawl(url) as pawl:
            for name, spec in (("top", top), ("mid", mid), ("low", low)):
                pawl.load(written(tmp_path, name, spec))
            begun = asyncio.Event()

            @pawl.effect("square")
            async def never(n):
                begun.set()
                await asyncio.Event().wait()

            await pawl.start("top", id="t")
            await begun.wait()

    async def second():
        async with Pawl(url) as pawl:
            pawl.effect("square")(square)
            return await pawl.run("t").result(timeout="60s")

    run(first())
    assert run(second()) == 49


@pytest.mark.req("R92", "R112")
def test_a_child_undoes_its_work_before_its_parent_does(engine, tmp_path):
    """By real functions, in the order they are called."""
    step = "{name: a, run: do, with: {who: WHO}, undo: {run: undo, with: {who: WHO}}}"
    spec = f"  failurePolicy: compensate\n  steps:\n    - {step}\n"
    told = []

    async def main():
        async with engine() as pawl:
            kid = spec.replace("WHO", "kid") + "    - {name: b, run: fail, dependsOn: [a]}\n"
            parent = (
                spec.replace("WHO", "parent") + "    - {name: c, workflow: kid, dependsOn: [a]}\n"
            )
            pawl.load(written(tmp_path, "kid", kid))
            pawl.load(written(tmp_path, "parent", parent))
            pawl.effect("do")(lambda who: told.append(f"do {who}"))
            pawl.effect("undo")(lambda who: told.append(f"undo {who}"))

            @pawl.effect("fail")
            async def fail():
                raise Terminal("no")

            started = await pawl.start("parent")
            with pytest.raises(WorkflowFailed) as failed:
                await started.result(timeout="20s")
            return failed.value

    failed = run(main())

    assert told == ["do parent", "do kid", "undo kid", "undo parent"]
    assert (failed.step, failed.rollback, failed.attempts) == ("c", "full", 1)
