"""The order of ../order.yaml, with functions for its effects: `python python/order.py`."""

import asyncio

from pawlflow import Pawl

pawl = Pawl("sqlite:///shop.db")
pawl.load("order.yaml")


@pawl.effect("stock.reserve")
async def reserve(sku):
    return {"hold": f"one {sku}"}


@pawl.effect("card.charge")
async def charge(amount, hold):
    return {"charge": f"{amount} for {hold}"}


@pawl.effect("stock.release")
@pawl.effect("card.refund")
async def undo(**what):
    print("undone:", what)


async def main():
    async with pawl:
        run = await pawl.start("order", {"sku": "mug", "amount": 12}, id="order-1")
        print(await run.result(timeout="1m"))


asyncio.run(main())
