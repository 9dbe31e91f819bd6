"""A cancel: the function hears of it as a CancelledError, and has its grace to tidy up."""

import asyncio
from pathlib import Path

from pawlflow import Context, Pawl, WorkflowFailed

pawl = Pawl("sqlite:///crawl.db")
pawl.load(Path(__file__).with_name("crawl.yaml"))
reading = asyncio.Event()


@pawl.effect("pages.fetch")
async def fetch(site: str, ctx: Context) -> dict:
    print(f"reading {site}")
    reading.set()
    try:
        await asyncio.sleep(3600)
    finally:
        print(f"closing the connection, cancelled: {ctx.cancelled}")
    return {"pages": 1}


async def main() -> None:
    async with pawl:
        run = await pawl.start("crawl", {"site": "example.org"})
        await reading.wait()
        await pawl.cancel(run.id, by="ann", comment="the wrong site")
        try:
            await run.result(timeout="1m")
        except WorkflowFailed as failed:
            print(f"{failed.state}: {failed.code}")
        print(run.history()[-1]["payload"])


asyncio.run(main())
