"""Loops as users write them; a type checker knows what every checkpoint gives."""

from dataclasses import dataclass
from typing import assert_type

from pawlflow import LoopContext, Pawl, Retry, flow, loop, step


@dataclass
class Plan:
    """What is to be looked for."""

    parts: list[str]


def make_plan(topic: str) -> Plan:
    return Plan([topic])


async def search(plan: Plan, n: int) -> dict[str, int]:
    return {plan.parts[0]: n}


@step
def count(words: dict[str, int]) -> int:
    return len(words)


async def charge(ctx: LoopContext, amount: int) -> str:
    return f"{ctx.key} {amount}"


@loop
async def half(ctx: LoopContext, n: int) -> float:
    return n / 2


@loop(retry=Retry(max=2), timeout="5m", strict=True)
async def research(ctx: LoopContext, topic: str, rounds: int = 1) -> dict[str, int]:
    plan = assert_type(await ctx.do("plan", make_plan, topic), Plan)
    with ctx.scope("round-1"):
        found = assert_type(await ctx.do("search", search, plan, n=rounds), dict[str, int])
    assert_type(await ctx.do("count", count, found), int)
    assert_type(await ctx.do("charge", charge, 3), str)
    assert_type(await ctx.do("half", half, 3), float)
    a, b = await ctx.all(ctx.do("a", make_plan, topic), ctx.do("b", search, plan, 1))
    assert_type(a, Plan)
    assert_type(b, dict[str, int])
    assert_type(await ctx.all({"c": ctx.do("c", make_plan, topic)}), dict[str, Plan])
    await ctx.do("plan", make_plan, 3)  #: error
    await ctx.do(make_plan, topic)  #: error
    return found


@flow
def whole(topic: str) -> int:
    return count(research(topic))


async def main() -> None:
    await research("tides")
    await research(LoopContext.offline(kept={"plan": {"parts": []}}), "tides", rounds=2)
    await research(3)  #: error
    async with Pawl("memory:") as pawl:
        await pawl.start(research, {"topic": "tides"})
