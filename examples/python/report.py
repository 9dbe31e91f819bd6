"""The steps of a module in an engine of one's own, with its commits on a thread of their own."""

import asyncio
from pathlib import Path

from pawlflow import Pawl

import report_steps


async def main() -> None:
    async with Pawl("sqlite:///report.db", driver="thread") as pawl:
        pawl.load(Path(__file__).with_name("report.yaml"))
        pawl.register(report_steps)
        run = await pawl.start("report", {"month": "May"}, id="report-may")
        report = await run.result(timeout="1m")
        print(f"{report['title']}: {report['body']}")
        print(f"written in {run.show()['steps']['write']['attempts']} rounds")


asyncio.run(main())
