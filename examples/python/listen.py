"""Hand every event of a trip on as a CloudEvent, to whatever takes them."""

import asyncio
from pathlib import Path

from pawlflow import Pawl, Terminal

pawl = Pawl("memory:")
pawl.load(Path(__file__).with_name("trip.yaml"))


@pawl.effect("flight.book")
@pawl.effect("hotel.book")
async def book(**what: object) -> dict:
    return {"booked": what}


@pawl.effect("car.return")
@pawl.effect("flight.cancel")
@pawl.effect("hotel.cancel")
async def cancel(**what: object) -> None:
    pass


@pawl.effect("car.rent")
async def rent_car(city: str) -> dict:
    raise Terminal(f"no cars left in {city}")


def hand_on(event: dict) -> None:
    about = event["data"].get("step", event["subject"])
    print(int(event["sequence"]), event["type"], about)


async def main() -> None:
    async with pawl:
        run = await pawl.start("trip", {"who": "zoe", "city": "Oslo"}, id="trip-1")
        async for event in run.events(cloudevents=True):
            hand_on(event)


asyncio.run(main())
