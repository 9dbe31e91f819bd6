"""An approval: a release waits for its tests, and then for a human who did not ask for it."""

import asyncio
from pathlib import Path

from pawlflow import Pawl, Refused

pawl = Pawl("sqlite:///release.db")
pawl.load(Path(__file__).with_name("release.yaml"))


@pawl.effect("ci.build")
async def build(repo: str) -> dict:
    return {"image": f"{repo}:7"}


@pawl.effect("deploy.promote")
async def promote(image: str) -> str:
    return image


async def decide(id: str) -> None:
    try:
        await pawl.approve(id, "gate", by="zoe", role="ReleaseManager")
    except Refused as refused:
        print(f"zoe: {refused.code}")
    await pawl.approve(id, "gate", by="ann", role="ReleaseManager", comment="fine")


async def main() -> None:
    async with pawl:
        run = await pawl.start("release", {"repo": "shop"}, by="zoe")
        await pawl.signal(run.id, "tests.passed", {"image": "shop:7", "count": 212})
        async for event in run.events():  # those still to come too, until it is closed
            if event["eventType"] == "ApprovalRequested":
                print(f"to look at: {event['payload']['show']}")
                await decide(run.id)
        print(await run.result())
        gate = run.show()["steps"]["gate"]
        print(f"gate {gate['state']}: {gate['result']}")


asyncio.run(main())
