"""The engine as a process: `python -m examples.ores.engine`, with PAWL_DB and PAWL_NATS."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from examples.ores.flows import bundle_publish
from pawlflow import Pawl

FLOWS = Path(__file__).parent / "flows"


def engine() -> Pawl:
    """An engine that knows the four workflows; who carries them out is not its affair."""
    pawl = Pawl(os.environ["PAWL_DB"], nats=os.environ["PAWL_NATS"], driver="thread")
    pawl.load(*sorted(FLOWS.glob("*.yaml")))
    pawl.register(bundle_publish)
    return pawl


async def main() -> None:
    """Work until SIGTERM; whoever comes next goes on."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with engine():
        print("engine: ready", file=sys.stderr, flush=True)
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(main())
