"""An order as a flow, the example of the front page: `python python/order.py`."""

import asyncio

from pawlflow import Pawl, Retry, flow, step


@step(timeout="30s", undo="release")
async def reserve(sku: str) -> dict:
    return {"hold": f"one {sku}"}


@step
async def release(result: dict) -> None:
    print(f"released {result['hold']}")


@step(timeout="30s", retry=Retry(max=2, initial="1s"))
async def charge(amount: int, hold: str) -> dict:
    return {"receipt": f"{amount} for {hold}"}


@flow(timeout="1h", failure_policy="compensate")
def order(sku, amount):
    held = reserve(sku)
    paid = charge(amount, held.hold)
    return {"receipt": paid.receipt}


async def main() -> None:
    async with Pawl("sqlite:///shop.db") as pawl:
        run = await pawl.start(order, {"sku": "mug", "amount": 12}, id="order-1")
        print(await run.result(timeout="1m"))


asyncio.run(main())
