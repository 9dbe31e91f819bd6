"""The context of a loop, tried out without an engine: names, scopes, values, functions."""

import asyncio
from dataclasses import dataclass

import pytest

from pawlflow import FlowError, LoopContext, Terminal, loop, step
from pawlflow.effects.secrets import Hidden
from tests.effects.kit import run
from tests.effects.loop_kit import World


@pytest.mark.req("R220")
def test_what_lies_inside_a_whole_checkpoint_is_not_missed():
    """Names inside a function are inside its name; once that is kept, they are not asked for."""
    world = World()

    async def round_(ctx, n):
        found = await ctx.do("search", world.does("search", n))
        return found + await ctx.do("read", world.does("read", 10))

    @loop
    async def work(ctx):
        return await ctx.do("round", round_, 1)

    async def main():
        ctx = LoopContext.offline()
        first = await work(ctx)
        return first, await work(ctx), ctx

    first, second, ctx = run(main())
    assert first == second == 11
    assert world.ran == {"search": 1, "read": 1}
    assert list(ctx.kept) == ["round/search", "round/read", "round"]
    assert ctx.warned == []


@pytest.mark.req("R220")
def test_a_name_stands_for_one_result():
    """Asked for twice in a run, it is refused by name with the way out."""

    @loop
    async def work(ctx):
        for _ in range(2):
            await ctx.do("search", str)

    with pytest.raises(Terminal, match=r"'search' is asked for twice.*ctx\.scope"):
        run(work())


def test_a_checkpoint_that_failed_may_be_tried_again_at_once():
    """Nothing was kept under its name."""
    tries = []

    def flaky():
        tries.append(1)
        if len(tries) < 3:
            raise OSError("no route")
        return "there"

    @loop
    async def work(ctx):
        while True:
            try:
                return await ctx.do("fetch", flaky)
            except OSError:
                continue

    assert run(work()) == "there"
    assert len(tries) == 3


@pytest.mark.parametrize("name", ["", "/", "two\nlines", 7, "x" * 501])
def test_a_name_is_a_text_in_one_line(name):
    """Anything else is refused before anything runs."""
    with pytest.raises(Terminal, match="name"):
        LoopContext.offline().do(name, str)


@dataclass
class Plan:
    """What a function gives."""

    parts: list[str]


def make_plan(topic: str) -> Plan:
    """A plan, as a class of the user's own."""
    return Plan([topic])


def test_a_value_is_what_its_function_says_it_gives():
    """Made from what was kept each time, so the same in the first run and in every other."""

    async def main():
        ctx, seen = LoopContext.offline(), []

        @loop
        async def work(ctx: LoopContext) -> int:
            plan = await ctx.do("plan", make_plan, "tides")
            seen.append(plan)
            plan.parts.append("changed by the loop, and by nobody else")
            return len(plan.parts)

        assert [await work(ctx), await work(ctx)] == [2, 2]
        assert seen[0] == seen[1]
        assert seen[0] is not seen[1]
        assert ctx.kept == {"plan": {"parts": ["tides"]}}

    run(main())


@pytest.mark.req("R220")
def test_of_several_at_a_time_all_come_to_their_end():
    """If one fails the others are kept all the same, so that nothing is done twice."""
    world = World()

    def broken():
        world.ran["broken"] += 1
        raise OSError("no route")

    async def slow():
        await asyncio.sleep(0)
        world.ran["slow"] += 1
        return "kept"

    @loop
    async def work(ctx):
        return await ctx.all(ctx.do("broken", broken), ctx.do("slow", slow))

    async def main():
        ctx = LoopContext.offline()
        for _ in range(2):
            with pytest.raises(OSError, match="no route"):
                await work(ctx)
        assert await ctx.all() == ()
        return ctx.kept

    assert run(main()) == {"slow": "kept"}
    assert world.ran == {"broken": 2, "slow": 1}


@pytest.mark.req("R220")
def test_scopes_of_concurrent_parts_do_not_mix():
    """Each task has its own."""

    @loop
    async def work(ctx):
        async def part(name):
            with ctx.scope(name):
                await asyncio.sleep(0)
                first = await ctx.do("x", lambda: name)
                with ctx.scope("in"):
                    return first + await ctx.do("x", lambda: name)

        return await ctx.all(part("a"), part("b"))

    async def main():
        ctx = LoopContext.offline()
        return await work(ctx), await work(ctx), sorted(ctx.kept)

    assert run(main()) == (("aa", "bb"), ("aa", "bb"), ["a/in/x", "a/x", "b/in/x", "b/x"])


def test_a_function_that_takes_ctx_gets_the_key_of_its_checkpoint():
    """Stable over attempts, and another for every name: for services that must not do it twice."""
    keys = []

    @step
    def charge(ctx, amount):
        keys.append(ctx.key)
        ctx.log(f"charged {amount}")
        return amount

    async def note(text, *, ctx):
        keys.append(ctx.key)
        return text

    @loop
    async def work(ctx):
        await ctx.do("charge", charge, 7)
        await ctx.do("note", note, "hi")
        assert keys == [ctx.key_of("charge"), ctx.key_of("note")]
        assert len({*keys, ctx.key}) == 3

    async def main():
        ctx = LoopContext.offline()
        await work(ctx)
        return ctx.lines

    assert run(main()) == ["charged 7"]


def test_a_loop_inside_a_loop_shares_its_checkpoints():
    """Given as a function of a checkpoint, its names are inside that one."""

    @loop
    async def inner(ctx, n):
        return await ctx.do("half", lambda: n / 2)

    @loop
    async def outer(ctx):
        return await ctx.do("inner", inner, 4)

    async def main():
        ctx = LoopContext.offline()
        await outer(ctx)
        await ctx.begin()
        return ctx.kept

    assert run(main()) == {"inner/half": 2.0, "inner": 2.0}


def test_a_loop_is_tried_out_with_what_an_earlier_run_kept():
    """Without an engine: nothing, an empty context, or one that remembers."""
    world = World()

    @loop
    async def work(ctx, n):
        return n + await ctx.do("more", world.does("more", 1))

    async def main():
        kept = LoopContext.offline(kept={"more": 10})
        return [await work(1), await work(LoopContext.offline(), 1), await work(kept, n=1)]

    assert run(main()) == [2, 2, 11]
    assert world.ran == {"more": 2}


def test_no_secret_is_kept_in_a_checkpoint():
    """What a function gives is kept without it, and comes back so from the start."""

    @loop
    async def work(ctx):
        ctx.hide(Hidden({"token": "s3cr3t-value"}))
        return await ctx.do("call", lambda: {"header": "Bearer s3cr3t-value"})

    assert run(work()) == {"header": "Bearer [secret token]"}


@pytest.mark.parametrize(
    "made",
    [lambda: loop(lambda ctx: 1), lambda: loop(no_context), lambda: loop(name="x")(no_context)],
)
def test_a_loop_is_an_async_function_with_ctx_in_front(made):
    """Refused where it is defined."""
    with pytest.raises(FlowError) as error:
        made()
    assert error.value.code == "loop.function"


async def no_context(topic):
    """Takes no ctx."""


def test_options_make_another_loop():
    """With all that the first one says, `strict` included."""

    @loop(strict=True, timeout="1m")
    async def work(ctx):
        return None

    other = work.options(timeout="2m", name="again")
    assert (other.strict, other.policy, other.called) == (
        True,
        {"timeout": "2m"},
        {"name": "again"},
    )
    assert work.options(strict=False).strict is False


@pytest.mark.req("R220")
def test_every_checkpoint_is_a_sign_of_life():
    """One when its function begins, one when it is kept, and one when it was kept before."""
    beats = []

    @loop
    async def work(ctx):
        for name in ("a", "b"):
            await ctx.do(name, int)
        return len(beats)

    async def main():
        ctx = LoopContext.offline()
        ctx._beat = lambda: beats.append(1)
        return [await work(ctx), await work(ctx)]

    assert run(main()) == [4, 6]
