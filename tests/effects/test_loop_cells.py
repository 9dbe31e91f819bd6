"""What loops leave in the store: who was first counts, and what is over is closed."""

import pytest
from msgspec.structs import replace

from pawlflow import Pawl, Transient, loop
from pawlflow.keeping import Checkpoints, loop_of
from pawlflow.model.ids import StepKey
from pawlflow.model.payload import Payload
from pawlflow.projections.proof import verify_store
from tests.effects.kit import run
from tests.effects.loop_kit import AGAIN, World, result_of


@pytest.mark.req("R220")
def test_the_second_keeper_is_given_what_the_first_one_kept(engine):
    """The door answers a second result of one name with the one that is kept."""

    async def main():

        @loop
        async def work(ctx):
            call = ctx._call
            keeper = ctx._run.keeper
            assert isinstance(keeper, Checkpoints)
            first = await keeper.keep(call, "x", Payload.of("first", call.cell.tenant))
            other = replace(call, attempt=2)
            second = await keeper.keep(other, "x", Payload.of("second", call.cell.tenant))
            return [first.value, second.value, sorted(await keeper.kept(call))]

        async with engine() as pawl:
            assert await result_of(pawl, work) == ["first", "first", ["x"]]

    run(main())


@pytest.mark.req("R220")
def test_a_loop_is_closed_with_its_instance(engine):
    """Its cell remembers names and no values; the store still verifies to the last turn."""

    async def main():
        keys = []

        @loop
        async def work(ctx):
            keys.append(StepKey(bytes(ctx._call.key)))
            await ctx.do("a", lambda: "x" * 1_000)
            return await ctx.do("b", lambda: 1)

        async with engine() as pawl:
            await result_of(pawl, work)
            await pawl.changed((pawl.tenant, f"$loop/{keys[0].hex()}"), 2)
            found = loop_of(pawl.reader, pawl.tenant, keys[0])
            report = verify_store(pawl.reader)
        assert found.closed is not None
        assert {name: each.result for name, each in found.kept.items()} == {"a": None, "b": None}
        assert pawl.checkpoints.open == {}
        assert report.differences == []

    run(main())


@pytest.mark.req("R220")
def test_ten_thousand_checkpoints(tmp_path):
    """A loop may go on for long; resumed, it finds every one of them."""

    async def main():
        world, count = World(), 10_000

        @loop(retry=AGAIN)
        async def work(ctx):
            found = 0
            for n in range(0, count, 500):
                parts = (ctx.do(f"part-{m}", async_one) for m in range(n, n + 500))
                found += sum(await ctx.all(*parts))
            if ctx.attempt == 1:
                raise Transient("again")
            return found

        async def async_one():
            world.ran["one"] += 1
            return 1

        async with Pawl(f"sqlite:///{tmp_path}/pawl.db") as pawl:
            assert await result_of(pawl, work) == count
        assert world.ran == {"one": count}

    run(main())
