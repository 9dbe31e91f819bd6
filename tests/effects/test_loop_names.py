"""Names of checkpoints that became quite different ones."""

import pytest

from pawlflow import Transient, WorkflowFailed, loop
from tests.effects.kit import run
from tests.effects.loop_kit import AGAIN, result_of


def renamed_altogether(strict=False, fails=()):
    """A loop whose later attempts have one name that is not like the old one at all."""

    @loop(retry=AGAIN, strict=strict)
    async def work(ctx):
        if ctx.attempt == 1:
            await ctx.do("plan", str)
            raise Transient("again")
        await ctx.do("outline", lambda: "new")
        if ctx.attempt in fails:
            raise Transient("and again")
        return "done"

    return work


@pytest.mark.req("R220")
def test_a_name_that_is_not_like_the_old_one_is_reported_too(engine):
    """The only old one and the only new one belong together."""

    async def main():
        async with engine() as pawl:
            started = await pawl.start(renamed_altogether())
            assert await started.result(timeout="20s") == "done"
            with pytest.raises(WorkflowFailed) as failed:
                await result_of(pawl, renamed_altogether(strict=True))
            return started.show()["steps"]["work"], failed.value

    shown, failed = run(main())
    assert (shown["warnings"], shown["attempts"]) == (1, 2)
    said = "'plan' was kept and never asked for; new is 'outline'"
    assert shown["ladder"][-1]["log"] == [f"warning: {said}"]
    assert (failed.failure_class, said in str(failed)) == ("terminal", True)


@pytest.mark.req("R220")
def test_an_attempt_that_fails_leaves_word_of_what_was_new(engine):
    """The next one finds the new name kept, and knows only that the old one is not asked for."""

    async def main():
        async with engine() as pawl:
            started = await pawl.start(renamed_altogether(fails=[2]))
            assert await started.result(timeout="20s") == "done"
            return [each.get("log") for each in started.show()["steps"]["work"]["ladder"]]

    first, second, third = run(main())
    assert not first
    assert second == ["new in this run: 'outline'; kept and not asked for so far: 'plan'"]
    assert third == ["warning: 'plan' was kept and never asked for"]
