"""Checkpoints at the command line: what a loop has kept, and the last of it while it runs."""

import asyncio
import io
import json

import pytest
from rich.console import Console

from pawlflow import Pawl, Retry, Transient, loop
from pawlflow.cli.family import Family
from pawlflow.cli.lines import lines_for
from pawlflow.cli.tree import instance_tree
from pawlflow.projections.reading import story_of
from tests.cli.kit import pawl


@loop(retry=Retry(max=1, initial="1ms"))
async def study(ctx, topic: str) -> str:
    """Two checkpoints in the first attempt, one of which has another name in the second."""
    await ctx.do("plan", lambda: [topic])
    with ctx.scope("round-1"):
        await ctx.do("serach" if ctx.attempt == 1 else "search", lambda: {"n": 1})
    if ctx.attempt == 1:
        raise Transient("again")
    return "done"


@pytest.fixture
def studied(tmp_path) -> str:
    """A file with a loop that is over."""
    url = f"sqlite:///{tmp_path}/pawl.db"

    async def main() -> None:
        async with Pawl(url) as engine:
            run = await engine.start(study, {"topic": "tides"}, id="s-1")
            assert await run.result(timeout="20s") == "done"

    asyncio.run(main())
    return url


@pytest.mark.req("R220", "R71")
def test_a_step_shows_what_its_loop_has_kept(studied):
    """When, under which name, how much and what; and what the attempts warned of."""
    told = pawl("--db", studied, "show", "s-1", "--step", "study").stdout
    lines = [line.split() for line in told.splitlines()]

    assert "3 checkpoints" in told
    kept = [line[1:] for line in lines if len(line) == 5 and line[3] == "B"]
    assert kept == [
        ["plan", "7", "B", '["tides"]'],
        ["round-1/serach", "4", "B", '{"n":1}'],
        ["round-1/search", "4", "B", '{"n":1}'],
    ]
    warning = "warning: 'round-1/serach' was kept and never asked for; new is 'round-1/search'"
    assert ["log", *warning.split()] in lines


@pytest.mark.req("R220", "R71")
def test_the_same_for_programs(studied):
    """`checkpoints` has all of them; with --at those that were kept by then."""
    shown = json.loads(pawl("--db", studied, "show", "s-1", "--step", "study", "--json").stdout)

    assert [(each["name"], each["attempt"]) for each in shown["checkpoints"]] == [
        ("plan", 1),
        ("round-1/serach", 1),
        ("round-1/search", 2),
    ]
    first = shown["checkpoints"][0]
    assert (first["round"], first["bytes"], first["result"]) == (1, 7, ["tides"])
    assert shown["warnings"] == 1
    asked = ("--db", studied, "show", "s-1", "--step", "study", "--json", "--at", "1")
    assert len(json.loads(pawl(*asked).stdout)["checkpoints"]) < 3


def test_a_long_loop_shows_its_end(tmp_path):
    """In words the last fifty; `--json` has the rest."""
    url = f"sqlite:///{tmp_path}/pawl.db"

    @loop
    async def long(ctx):
        await ctx.all(*(ctx.do(f"part-{n}", int) for n in range(60)))

    async def main() -> None:
        async with Pawl(url) as engine:
            await (await engine.start(long, id="l-1")).result(timeout="20s")

    asyncio.run(main())
    told = pawl("--db", url, "show", "l-1", "--step", "long").stdout
    assert "60 checkpoints, the last 50 of them here: --json has all" in told
    assert told.count(" part-") == 50


@pytest.mark.req("R220")
def test_whoever_watches_sees_the_last_checkpoint(tmp_path):
    """A loop that keeps something has moved, though its instance has not."""
    url = f"sqlite:///{tmp_path}/pawl.db"

    async def main() -> None:
        reached, go_on = asyncio.Event(), asyncio.Event()

        @loop
        async def work(ctx):
            await ctx.do("first", int)
            reached.set()
            await go_on.wait()
            await ctx.do("second", int)
            await asyncio.Event().wait()

        async with Pawl(url) as engine:
            run = await engine.start(work, id="w-1")
            await reached.wait()
            family = Family(engine.reader, story_of(engine.reader, run.tenant, run.id))
            before = family.look()
            assert family.look() is None
            address, count = family.open()[-1]
            assert count == 1

            go_on.set()
            await engine.changed(address, count)
            after = family.look()

            assert before["steps"]["work"]["checkpoint"]["name"] == "first"
            assert after["steps"]["work"]["checkpoint"]["name"] == "second"
            assert [line.split("  ")[-1] for line in lines_for(before, after)] == [
                "running, kept second"
            ]
            console = Console(width=120, record=True, file=io.StringIO())
            console.print(instance_tree(after))
            assert "kept second (2)" in console.export_text()

    asyncio.run(main())
