"""A loop: an agent that reads in rounds, dies in the middle, and goes on where it was."""

import asyncio
import os
import sys

from pawlflow import LoopContext, Pawl, Retry, Transient, loop

SHELVES = {
    "tides": ["The moon pulls the sea.", "Bays make tides higher.", "Wind can delay a tide."],
}


def make_plan(topic: str) -> list[str]:  # a plain function runs in a thread
    print(f"planning {topic}", flush=True)
    return [f"what moves {topic}", f"what changes {topic}", f"what delays {topic}"]


async def search(question: str, topic: str, n: int) -> dict:
    print(f"round {n}: searching {question}", flush=True)
    return {"text": SHELVES[topic][n - 1]}


async def judge(found: dict) -> bool:
    return "tide" in found["text"]


@loop(timeout="10m", heartbeat="1m", retry=Retry(max=2))
async def research(ctx: LoopContext, topic: str) -> dict:
    questions = await ctx.do("plan", make_plan, topic)
    notes = []
    for n, question in enumerate(questions, start=1):
        with ctx.scope(f"round-{n}"):  # names in here are round-1/search, round-2/search, ...
            found = await ctx.do("search", search, question, topic, n)
            if n == 2 and "--power-cut" in sys.argv:
                print("the lights go out", flush=True)
                os._exit(0)
            if await ctx.do("judge", judge, found):
                notes.append(found["text"])
    return {"topic": topic, "notes": notes}


async def charge_card(ctx: LoopContext, amount: int) -> str:
    return f"paid {amount} under {ctx.key}"  # the key of this checkpoint, the same for every try


@loop(retry=Retry(max=3, initial="1ms"))
async def trip(ctx: LoopContext, city: str) -> dict:
    flight, hotel = await ctx.all(
        ctx.do("flight", book, "flight", city),
        ctx.do("hotel", book, "hotel", city),
    )
    extras = await ctx.all({part: ctx.do(part, book, part, city) for part in ("car", "museum")})
    await ctx.do("pay", charge_card, 300)
    if ctx.attempt == 1:
        raise Transient("the connection broke")  # what was booked is not booked again
    return {"booked": [flight, hotel, *extras.values()], "attempts": ctx.attempt}


def book(what: str, city: str) -> str:
    return f"{what} in {city}"


async def try_it_out() -> None:
    kept = {"plan": ["what moves tides"], "round-1/search": {"text": "A tide is a wave."}}
    ctx = LoopContext.offline(kept=kept)
    assert await research(ctx, "tides") == {"topic": "tides", "notes": ["A tide is a wave."]}


async def main() -> None:
    await try_it_out()
    async with Pawl("sqlite:///research.db") as pawl:
        run = await pawl.start(research, {"topic": "tides"}, id="tides-1")
        print(await run.result(timeout="1m"))
        print([kept["name"] for kept in run.checkpoints("research")])
        run = await pawl.start(trip, {"city": "Oslo"}, id="trip-1")
        print(await run.result(timeout="1m"))


if __name__ == "__main__":
    asyncio.run(main())
