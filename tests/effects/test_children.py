"""Child workflows and many items from Python, on real files, over a restart."""

import asyncio
from collections import Counter

import pytest

from pawlflow import NoExecutor, Pawl, Terminal, WorkflowFailed
from pawlflow.projections.proof import verify_store
from tests.effects.kit import run, written

PARENT = """
  steps:
    - {name: one, workflow: kid, with: {x: 1}}
    - {name: many, workflow: kid, forEach: "${ input.l }", with: {x: "${ item }"}, dependsOn: [one]}
  output: {one: "${ steps.one }", many: "${ steps.many }"}
"""
KID = """
  steps:
    - {name: k, run: x.double, with: {n: "${ input.x }"}}
  output: "${ steps.k }"
"""


def double(pawl):
    """Let an engine carry out the one effect of the children."""
    pawl.effect("x.double")(lambda n: 2 * n)


@pytest.mark.req("R92", "R215")
def test_a_parents_result_is_made_of_those_of_its_children(engine, tmp_path):
    """One child, and one for each item; each is an instance of its own, seen from its parent."""
    paths = [written(tmp_path, "parent", PARENT), written(tmp_path, "kid", KID)]

    async def main():
        async with engine() as pawl:
            pawl.load(*paths)
            double(pawl)
            started = await pawl.start("parent", {"l": [2, 3, 4]}, id="p-1")
            result = await started.result(timeout="30s")
            shown = started.show()
            kid = pawl.run(shown["children"][1]["id"])
            return result, shown, await kid.result(), kid.show()

    result, shown, of_kid, kid = run(main())

    assert result == {"one": 2, "many": [4, 6, 8]}
    steps = [(child["step"], child["state"]) for child in shown["children"]]
    assert steps[0] == ("one", "completed")
    assert sorted(steps[1:]) == [(f"many[{n}]", "completed") for n in range(3)]
    assert shown["steps"]["many"]["items"]["done"] == 3
    assert (of_kid, kid["parent"]["id"]) == (2 * kid["input"]["x"], "p-1")


@pytest.mark.req("R92")
def test_a_child_that_is_missing_fails_its_step_with_the_way_out(engine, tmp_path):
    """The failure names the workflow and what publishes it; the start was not refused for it."""
    path = written(tmp_path, "parent", PARENT)

    async def main():
        async with engine() as pawl:
            pawl.load(path)
            started = await pawl.start("parent", {"l": []})
            with pytest.raises(WorkflowFailed) as failed:
                await started.result(timeout="30s")
            return failed.value, started.show()

    failed, shown = run(main())

    assert (failed.step, failed.code) == ("one", "child.unknown")
    assert "no workflow kid is published" in shown["error"]["message"]
    assert all(word in shown["error"]["message"] for word in ("pawl apply", "load"))
    assert [child["state"] for child in shown["children"]] == [None]


@pytest.mark.req("R92")
def test_a_child_may_be_added_while_its_parent_runs(engine, tmp_path):
    """It is published at once, not with the next start."""
    parent = written(
        tmp_path,
        "parent",
        """
  steps:
    - {name: first, run: x.first}
    - {name: then, workflow: kid, with: {x: 4}, dependsOn: [first]}
  output: "${ steps.then }"
""",
    )
    kid = written(tmp_path, "kid", KID)

    async def main():
        going, goes = asyncio.Event(), asyncio.Event()
        async with engine() as pawl:
            pawl.load(parent)
            double(pawl)

            @pawl.effect("x.first")
            async def first():
                going.set()
                await goes.wait()

            started = await pawl.start("parent")
            await going.wait()
            pawl.load(kid)
            await pawl.publishing
            goes.set()
            return await started.result(timeout="30s")

    assert run(main()) == 8


@pytest.mark.req("R92", "R209")
def test_a_missing_child_can_be_loaded_and_its_step_tried_again(engine, tmp_path):
    """With onFailure: escalate a human publishes what was missing, and another child starts."""
    parent = written(
        tmp_path,
        "parent",
        """
  steps: [{name: one, workflow: kid, with: {x: 3}, onFailure: escalate}]
  output: "${ steps.one }"
""",
    )
    kid = written(tmp_path, "kid", KID)

    async def main():
        async with engine() as pawl:
            pawl.load(parent)
            double(pawl)
            started = await pawl.start("parent", id="p-1")
            async for event in started.events():
                if event["eventType"] == "WorkflowEscalated":
                    break
            pawl.load(kid)
            await pawl.publishing
            await pawl.retry("p-1", "one", by="ann")
            return await started.result(timeout="30s"), started.show()["children"]

    result, children = run(main())

    assert result == 6
    states = [(child["attempt"], child["state"]) for child in children]
    assert states == [(1, None), (2, "completed")]


@pytest.mark.req("R92")
def test_a_child_for_whom_nobody_works_is_told_before_the_start(engine, tmp_path):
    """The effects of children are looked at too, as far down as they are known."""
    paths = [written(tmp_path, "parent", PARENT), written(tmp_path, "kid", KID)]

    async def main():
        async with engine() as pawl:
            pawl.load(*paths)
            with pytest.raises(NoExecutor) as refused:
                await pawl.start("parent", {"l": []})
            double(pawl)
            started = await pawl.start("parent", {"l": []})
            return refused.value.effects, await started.result(timeout="30s")

    assert run(main()) == (["x.double"], {"one": 2, "many": []})


@pytest.mark.req("R92")
def test_another_tenants_children_are_known_to_them(engine, tmp_path):
    """A start for another tenant publishes there what was loaded here: theirs is the child."""
    paths = [written(tmp_path, "parent", PARENT), written(tmp_path, "kid", KID)]

    async def main():
        async with engine() as pawl:
            pawl.load(*paths)
            double(pawl)
            runs = [
                await pawl.start("parent", {"l": [5]}, id=f"p-{n}", tenant="acme") for n in (1, 2)
            ]
            results = [await each.result(timeout="30s") for each in runs]
            kid = runs[0].show()["children"][0]["id"]
            return results, pawl.run(kid, tenant="acme").show()["tenant"]

    results, tenant = run(main())

    assert results == [{"one": 2, "many": [10]}] * 2
    assert tenant == "acme"


@pytest.mark.req("R92")
def test_a_cancel_reaches_the_functions_of_children(engine, tmp_path):
    """The parent is cancelled once its children are, and they say who did it."""
    paths = [written(tmp_path, "parent", PARENT), written(tmp_path, "kid", KID)]
    cancelled = []

    async def main():
        began = asyncio.Event()
        async with engine() as pawl:
            pawl.load(*paths)

            @pawl.effect("x.double")
            async def slow(n, ctx):
                began.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    cancelled.append(ctx.cancelled)

            started = await pawl.start("parent", {"l": []}, id="p-1")
            await began.wait()
            await pawl.cancel("p-1", by="ann")
            with pytest.raises(WorkflowFailed) as failed:
                await started.result(timeout="30s")
            [child] = started.show()["children"]
            return failed.value.state, child["state"], pawl.run(child["id"]).history()[-1]

    state, of_child, last = run(main())

    assert (state, of_child, cancelled) == ("cancelled", "cancelled", [True])
    assert (last["eventType"], last["payload"]["by"]) == ("WorkflowInstanceCancelled", "ann")


@pytest.mark.req("R84", "R215")
def test_a_function_knows_which_item_it_is_for(engine, tmp_path):
    """`ctx.item` counts from 0; a step without forEach has none."""
    path = written(
        tmp_path,
        "fan",
        """
  steps:
    - {name: each, run: x.who, forEach: "${ input.l }"}
    - {name: alone, run: x.who, dependsOn: [each]}
  output: {each: "${ steps.each }", alone: "${ steps.alone }"}
""",
    )

    async def main():
        async with engine() as pawl:
            pawl.load(path)
            pawl.effect("x.who")(lambda ctx: [ctx.step, ctx.item])
            started = await pawl.start("fan", {"l": ["a", "b"]})
            return await started.result(timeout="30s")

    assert run(main()) == {"each": [["each", 0], ["each", 1]], "alone": ["alone", None]}


BIG = """
  steps:
    - {name: item, run: x.item, forEach: "${ input.items }", limit: 64, with: {n: "${ item }"}}
    - {name: kids, workflow: kid, forEach: "${ input.kids }", limit: 20, with: {x: "${ item }"}}
  output: {items: "${ size(steps.item) }", last: "${ steps.item[1999] }", kids: "${ steps.kids }"}
"""


class Work:
    """What was carried out, over several engines; it can be stopped half-way."""

    def __init__(self, folder):
        self.paths = [written(folder, "big", BIG), written(folder, "kid", KID)]
        self.url = f"sqlite:///{folder}/pawl.db"
        self.done = Counter()
        self.keys = {}

    def engine(self, stop, after):
        """An engine whose functions, once so many are done, hang until it is left."""
        pawl = Pawl(self.url)
        pawl.load(*self.paths)

        async def count(kind, n, ctx):
            self.keys.setdefault((kind, n), set()).add(ctx.key)
            if self.done.total() >= after:
                stop.set()
                await asyncio.Event().wait()
            self.done[kind, n] += 1

        @pawl.effect("x.item")
        async def item(n, ctx):
            await count("item", n, ctx)
            return n

        @pawl.effect("x.double")
        async def kid_double(n, ctx):
            await count("kid", n, ctx)
            return 2 * n

        return pawl

    async def half(self):
        """Begin, and leave in the middle."""
        stop = asyncio.Event()
        async with self.engine(stop, after=700) as pawl:
            given = {"items": list(range(2_000)), "kids": list(range(50))}
            started = await pawl.start("big", given, id="b-1")
            await stop.wait()
            return started.show()

    async def rest(self):
        """Enter again, and see it through."""
        async with self.engine(asyncio.Event(), after=10**9) as pawl:
            again = pawl.run("b-1")
            result = await again.result(timeout="100s")
            return result, again.show(), verify_store(pawl.reader)


@pytest.mark.req("R84", "R92", "R215")
@pytest.mark.timeout(120)
def test_two_thousand_items_and_fifty_children_survive_a_restart(tmp_path):
    """Left half-way and entered again: every item once, every child once, and all of it the same.

    The engine is left while items and children are in flight. An attempt that was under way is
    made again under its key; nothing that was done is done twice.
    """
    work = Work(tmp_path)

    half = run(work.half())
    result, shown, report = run(work.rest())

    assert half["state"] == "running"
    assert 0 < half["steps"]["item"]["items"]["done"] < 2_000
    assert result == {"items": 2_000, "last": 1_999, "kids": [2 * n for n in range(50)]}
    assert len(work.done) == 2_050 and set(work.done.values()) == {1}
    assert all(len(each) == 1 for each in work.keys.values())
    assert shown["steps"]["item"]["items"]["done"] == 2_000
    assert shown["children_total"] == 50
    assert {child["state"] for child in shown["children"]} == {"completed"}
    assert shown["progress"] == {"done": 2_052, "total": 2_052}
    assert report.differences == []
    assert report.instances == 51


@pytest.mark.req("R92")
def test_a_child_that_fails_fails_its_parent_by_its_name(engine, tmp_path):
    """What is raised in the child is the failure of the parent's step."""
    paths = [written(tmp_path, "parent", PARENT), written(tmp_path, "kid", KID)]

    async def main():
        async with engine() as pawl:
            pawl.load(*paths)

            @pawl.effect("x.double")
            def broken(n):
                raise Terminal("no numbers today")

            started = await pawl.start("parent", {"l": []})
            with pytest.raises(WorkflowFailed) as failed:
                await started.result(timeout="30s")
            return failed.value, started.show()

    failed, shown = run(main())

    assert (failed.step, failed.failure_class) == ("one", "terminal")
    assert shown["error"]["message"] == "no numbers today"
    assert [child["state"] for child in shown["children"]] == ["failed"]
