"""The process that `pawl demo` kills: it starts parcels and sees them through.

It knows nothing of its own death: run again it says the same, and goes on where it was.
"""

import asyncio
import sys
from pathlib import Path

from pawlflow.cli import demo_steps
from pawlflow.embedded import Pawl


async def see_through(url: str, workflow: Path, count: int) -> None:
    """Start that many parcels, or find them started, and wait until all are closed."""
    pawl = Pawl(url)
    pawl.load(workflow)
    pawl.register(demo_steps)
    async with pawl:
        runs = [await pawl.start("parcel", {}, id=f"parcel-{n:02}") for n in range(1, count + 1)]
        await asyncio.gather(*(run.result("1m") for run in runs))


if __name__ == "__main__":
    asyncio.run(see_through(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
