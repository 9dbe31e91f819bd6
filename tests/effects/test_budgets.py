"""Budgets from Python: what functions say that they cost, and who raises a limit."""

import pytest

from pawlflow import Pawl, Refused, Transient
from tests.effects.kit import run, written

BOOKLET = """
  budget: {usd: {hard: 0.9}, tokens: {hard: 100000}}
  steps:
    - {name: outline, run: ask, cost: {usd: 0.6}}
    - name: draft
      run: ask
      dependsOn: [outline]
      cost: {usd: 0.6}
      retryPolicy: {maxRetries: 3, backoff: constant, initialDelay: 1ms}
  output: ${ steps.draft }
"""


@pytest.mark.req("R205", "R163")
def test_functions_say_what_they_cost_and_people_raise_the_limit(engine, tmp_path):
    """A failure that cost something counts; what would pass the limit waits for somebody."""
    path = written(tmp_path, "booklet", BOOKLET)
    asked = []

    async def main():
        async with engine() as pawl:
            pawl.load(path)

            @pawl.effect("ask")
            def ask(ctx):
                asked.append(f"{ctx.step}#{ctx.attempt}")
                ctx.spent(usd=0.1)
                ctx.spent(usd=0.1, tokens=350)
                if ctx.step == "draft" and ctx.attempt == 1:
                    raise Transient("the model is busy")
                return {"spent": ctx.usage}

            booklet = await pawl.start("booklet", id="b-1")
            async for event in booklet.events():
                if event["eventType"] == "BudgetExceeded":
                    break
            assert asked == ["outline#1", "draft#1"]
            shown = booklet.show()
            assert shown["steps"]["draft"]["held"]
            assert shown["budget"]["usd"] == {
                "soft": None,
                "hard": 0.9,
                "spent": 0.4,
                "reserved": 0,
            }
            with pytest.raises(Refused) as low:
                await pawl.approve("b-1", "draft", by="ann", limits={"usd": 0.95})
            assert low.value.code == "budget.too_low"
            with pytest.raises(Refused) as odd:
                await pawl.approve("b-1", "draft", by="ann", limits={"eur": 2})
            assert odd.value.code == "budget.limits"
            await pawl.approve("b-1", "draft", by="ann", limits={"usd": 2}, comment="go on")
            result = await booklet.result(timeout="20s")
            return result, booklet.show()["budget"]

    result, budget = run(main())
    assert result == {"spent": {"usd": 0.2, "tokens": 350}}
    assert asked == ["outline#1", "draft#1", "draft#2"]
    assert budget["usd"] == {"soft": None, "hard": 2, "spent": 0.6, "reserved": 0}
    assert budget["tokens"]["spent"] == 1050


@pytest.mark.parametrize("amount", [-1, "much", None, True, float("nan"), float("inf"), 1e12])
def test_what_is_no_amount_is_refused_where_it_is_said(amount, tmp_path):
    """A slip of the pen in a function is told to the function, at its line."""
    path = written(tmp_path, "slip", "  steps: [{name: s, run: slip, onFailure: skip}]\n")

    async def main():
        async with Pawl("memory:") as pawl:
            pawl.load(path)

            @pawl.effect("slip")
            def slip(ctx):
                ctx.spent(usd=amount)

            started = await pawl.start("slip")
            await started.result(timeout="20s")
            return started.show()["steps"]["s"]["error"]

    error = run(main())
    assert error["code"] == "effect.raised"
    assert error["message"].startswith("ValueError: usd=")
    assert "0 to 1,000,000,000" in error["message"]
