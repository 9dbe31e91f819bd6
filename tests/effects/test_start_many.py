"""Many starts at once: an answer for each, hundreds in a commit, and no more memory for more."""

import tracemalloc

import pytest

from pawlflow import Conflict, NoExecutor, NotFound, Pawl, Refused, flow, step
from pawlflow.engine.shard import Limits
from pawlflow.starts import WINDOW
from tests.effects.kit import run, written

STRICT = "  input: {type: object, required: [n]}\n  steps: [{name: a, sleep: 1h}]\n"


def test_an_answer_for_each_in_order(engine, tmp_path):
    """New ones, existing ones, conflicts and inputs that do not fit, each by itself."""
    path = written(tmp_path, "strict", STRICT)

    async def main():
        async with engine() as pawl:
            pawl.load(path)
            await pawl.start("strict", {"n": 1}, id="old")
            given = [
                {"n": 0},
                ("a", {"n": 1}),
                ("old", {"n": 1}),
                ("old", {"n": 2}),
                {"m": 1},
                ("no such id!", {"n": 1}),
                ("a", {"n": 1}),
                (None, {"n": 3}),
            ]
            answers = await pawl.start_many("strict", given, by="zoe")
            shown = answers[1].run.show()
            with pytest.raises(Conflict):
                _ = answers[3].run
            return answers, shown, {each["id"] for each in pawl.list()}

    answers, shown, ids = run(main())
    told = [(each.existing, each.error and each.error.code) for each in answers]
    assert told == [
        (False, None),
        (False, None),
        (True, None),
        (False, "instance.conflict"),
        (False, "input.invalid"),
        (False, "instance.id"),
        (True, None),
        (False, None),
    ]
    assert [each.id for each in answers][1:4] == ["a", "old", "old"]
    assert answers[4].id is None
    assert isinstance(answers[4].error, Refused)
    assert shown["by"] == "zoe"
    assert ids == {"a", "old", answers[0].id, answers[7].id}


def test_what_is_wrong_with_all_of_them_is_raised(tmp_path):
    """An unknown workflow, or one that nobody carries out, starts nothing."""
    path = written(tmp_path, "runs", "  steps: [{name: a, run: nobody}]\n")

    async def main():
        async with Pawl("memory:") as pawl:
            with pytest.raises(NotFound):
                await pawl.start_many("none", [{}])
            pawl.load(path)
            with pytest.raises(NoExecutor):
                await pawl.start_many("runs", [{}, {}])
            return pawl.list()

    assert run(main()) == []


@pytest.mark.req("R152")
def test_hundreds_share_a_commit(tmp_path):
    """2,000 starts take a handful of commits, in order."""
    path = written(tmp_path, "strict", STRICT)

    async def main():
        unhurried = Limits(stepping_s=3_600.0)  # a busy machine must not cut batches short
        async with Pawl(f"sqlite:///{tmp_path}/pawl.db", limits=unhurried) as pawl:
            pawl.load(path)
            await pawl.start("strict", {"n": 0})
            commits, append = [], pawl.store.append

            def counted(batch):
                commits.append(len(batch.heads))
                append(batch)

            pawl.driver.engine.store.append = counted
            answers = await pawl.start_many("strict", ((f"s-{n}", {"n": n}) for n in range(2000)))
            return commits, answers

    commits, answers = run(main())
    assert [each.id for each in answers] == [f"s-{n}" for n in range(2000)]
    assert all(each.error is None for each in answers)
    assert sum(commits) == 2000
    assert max(commits) >= 100


def test_no_more_are_on_their_way_than_a_window(tmp_path):
    """Inputs are taken as answers come: a list of any length needs no more memory."""
    path = written(tmp_path, "strict", STRICT)
    taken, most = 0, 0

    async def main():
        nonlocal taken, most

        def inputs():
            nonlocal taken
            for n in range(3 * WINDOW):
                taken += 1
                yield {"n": n}

        async with Pawl("memory:") as pawl:
            pawl.load(path)
            answered = 0
            async for started in pawl.starting("strict", inputs()):
                assert started.error is None
                answered += 1
                most = max(most, taken - answered)
            return answered

    assert run(main()) == 3 * WINDOW
    assert most <= WINDOW


@pytest.mark.slow
def test_a_hundred_thousand(tmp_path):
    """They are all there, and what is on its way takes some megabytes."""
    path = written(tmp_path, "strict", STRICT)

    async def main():
        async with Pawl(f"sqlite:///{tmp_path}/pawl.db", driver="thread") as pawl:
            pawl.load(path)
            tracemalloc.start()
            count = 0
            async for started in pawl.starting("strict", ({"n": n} for n in range(100_000))):
                assert started.error is None
                count += 1
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return count, peak

    count, peak = run(main())
    assert count == 100_000
    assert peak < 200_000_000


@step
def double(n: int) -> int:
    return 2 * n


@flow(build=True)
def built(request):
    return [double.options(name=f"d{i}")(i) for i in range(request["n"])]


def test_flows_that_are_built_from_their_input_too(engine):
    """Each has a plan of its own."""

    async def main():
        async with engine() as pawl:
            answers = await pawl.start_many(built, [{"n": 1}, ("two", {"n": 2})])
            return [await each.run.result(timeout="20s") for each in answers]

    assert run(main()) == [[0], [0, 2]]


def test_the_blocking_twin_has_it_too(tmp_path):
    """One call, and runs that block."""
    path = written(tmp_path, "adds", "  steps: [{name: a, run: add}]\n  output: '${ steps.a }'\n")
    with Pawl.blocking("memory:") as pawl:
        pawl.load(path)
        pawl.effect("add")(lambda ctx: ctx.instance)
        answers = pawl.start_many("adds", [("x", {}), ("x", {"other": 1}), ("y", {})])
        assert [each.run.result(timeout="20s") for each in answers if not each.error] == ["x", "y"]
        assert isinstance(answers[1].error, Conflict)
        assert [each.id for each in pawl.starting("adds", [("z", {})])] == ["z"]
