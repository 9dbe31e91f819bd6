"""The shop under test: time is virtual, functions are real, the agent is scripted."""

from datetime import timedelta

import pytest
from shop_steps import BROKEN, Bank

from pawlflow import Context, Correctable, WorkflowFailed
from pawlflow.testing import Fail, Lab, Ok, Real, StillWaiting, assert_replays


async def test_a_small_order_is_shipped(shop: Lab, bank: Bank) -> None:
    """The functions run as they are; every attempt was noted."""
    run = await shop.start("shop", {"card": "4711", "amount": 20}, id="order-1")

    assert (await run.result())["letter"] == "Thank you!"
    assert list(bank.payments.values()) == [20]
    [charged] = shop.calls("card.charge")
    assert charged.arguments == {"card": "4711", "amount": 20}
    assert (charged.attempt, charged.key) == (1, next(iter(bank.payments)))
    assert_replays(run)


async def test_a_large_order_waits_for_the_boss(shop: Lab) -> None:
    """A result that cannot come is an error that says what would help."""
    run = await shop.start("shop", {"card": "4711", "amount": 2000}, id="order-1")

    with pytest.raises(StillWaiting, match="large waits for approval by boss"):
        await run.result()
    await shop.skip("23h")
    await shop.approve("order-1", "large", by="zoe", role="boss")

    assert "parcel" in await run.result()
    assert shop.elapsed == timedelta(hours=23)


async def test_an_order_that_nobody_approves_is_undone(shop: Lab, bank: Bank) -> None:
    """A day passes in no time, and the money is back."""
    run = await shop.start("shop", {"card": "4711", "amount": 2000})
    assert list(bank.payments.values()) == [2000]

    await shop.skip("1d")

    with pytest.raises(WorkflowFailed) as failed:
        await run.result()
    assert (failed.value.step, failed.value.rollback) == ("large", "full")
    assert bank.payments == {}


async def test_a_bank_that_is_down_is_asked_again(shop: Lab) -> None:
    """Two failures from the script, then the real function; the times are exact."""
    shop.script("card.charge", [Fail.transient("down"), Fail.transient("down"), Real()])
    run = await shop.start("shop", {"card": "4711", "amount": 20})

    await shop.skip("3s")

    assert (await run.result())["letter"] == "Thank you!"
    began = shop.now - shop.elapsed
    seconds = [(each.at - began).total_seconds() for each in shop.calls("charge")]
    assert seconds == [0, 1, 3]


@pytest.mark.parametrize(
    ("after", "state"), [("119s", "completed"), ("120s", "completed"), ("121s", "failed")]
)
async def test_a_bank_that_is_slow(shop: Lab, after: str, state: str) -> None:
    """An answer may take its time, in virtual time; the timeout of the step is two minutes."""
    shop.script("card.charge", Ok({"payment": "p-1"}, after=after))
    run = await shop.start("shop", {"card": "4711", "amount": 20})

    await shop.skip("10m")

    assert run.show()["state"] == state


async def test_a_carrier_that_never_answers(shop: Lab, bank: Bank) -> None:
    """The attempt hangs until its timeout, and what was done is undone."""
    shop.script("parcel.ship", hang=True)
    run = await shop.start("shop", {"card": "4711", "amount": 20})

    with pytest.raises(WorkflowFailed, match="failed at ship"):
        await run.result(timeout="2h")

    assert shop.elapsed == timedelta(hours=1)
    assert bank.payments == {}


async def test_a_letter_is_corrected(shop: Lab) -> None:
    """An agent is scripted by its role, and sees the findings in its next round."""
    shop.script("letter-writer", [Correctable(["too short"]), {"text": "Thank you so much!"}])
    run = await shop.start("shop", {"card": "4711", "amount": 20})

    assert (await run.result())["letter"] == "Thank you so much!"
    assert [each.feedback for each in shop.calls("letter-writer")] == [[], ["too short"]]


async def test_a_card_that_does_not_exist(shop: Lab) -> None:
    """What a function raises is what it raises in production."""
    run = await shop.start("shop", {"card": BROKEN, "amount": 20})

    with pytest.raises(WorkflowFailed, match="no such card"):
        await run.result()


async def test_a_carrier_in_virtual_time(shop: Lab) -> None:
    """A function of the test may take virtual time too."""

    @shop.effect("parcel.ship")
    async def slowly(ctx: Context) -> dict[str, str]:
        await shop.sleep("45m")
        return {"parcel": ctx.step}

    run = await shop.start("shop", {"card": "4711", "amount": 20})

    assert await run.result(timeout="2h") == {"parcel": "ship"}
    assert shop.elapsed >= timedelta(minutes=45)
