"""A saga: two bookings are made, the third is refused, and the two are given back.

Run it twice: the second time nothing is booked, for the trip with this id has been made.
"""

import asyncio
import sqlite3
from pathlib import Path

from pawlflow import Context, Pawl, Terminal, Transient, WorkflowFailed

pawl = Pawl("sqlite:///trip.db")
pawl.load(Path(__file__).with_name("trip.yaml"))


@pawl.effect("flight.book")
async def book_flight(who: str, city: str, ctx: Context) -> dict:
    if ctx.attempt == 1:
        raise Transient("the airline does not answer")  # tried again, as its retryPolicy says
    print(f"attempt {ctx.attempt}: a seat to {city} for {who}")
    return {"seat": "12A"}


@pawl.effect("flight.cancel")
async def cancel_flight(who: str, result: dict) -> None:  # an undo without `with`
    print(f"undo: seat {result['seat']} of {who} is free again")


@pawl.effect("hotel.book")
def book_hotel(who: str, ctx: Context) -> dict:  # a plain function runs in a thread
    with sqlite3.connect("hotel.db") as hotel:
        hotel.execute("CREATE TABLE IF NOT EXISTS booking (key TEXT PRIMARY KEY, guest TEXT)")
        hotel.execute("INSERT OR IGNORE INTO booking VALUES (?, ?)", (ctx.key, who))
    print(f"a room for {who}")
    return {"room": ctx.key}


@pawl.effect("hotel.cancel")
def cancel_hotel(room: str) -> None:  # an undo with `with`
    with sqlite3.connect("hotel.db") as hotel:
        hotel.execute("DELETE FROM booking WHERE key = ?", (room,))
    print("undo: the room is free again")


@pawl.effect("car.rent")
async def rent_car(city: str) -> dict:
    raise Terminal(f"no cars left in {city}")  # no use trying again


@pawl.effect("car.return")
async def return_car() -> None:
    print("never called: there was no car")


async def main() -> None:
    async with pawl:
        run = await pawl.start("trip", {"who": "zoe", "city": "Oslo"}, id="trip-1")
        try:
            print(await run.result(timeout="1m"))
        except WorkflowFailed as failed:
            print(f"{failed.step} failed after {failed.attempts} attempt ({failed.failure_class})")
            print(f"{failed.state}, rollback {failed.rollback}: {failed.code}")


asyncio.run(main())
