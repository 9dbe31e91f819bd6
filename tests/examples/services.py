"""The services of the example, each a process of its own; what they import is paid for once.

`python -m tests.examples.services NAME...` says which are ready. They end when its input does.
"""

import asyncio
import importlib
import os
import signal
import sys

import nats
import psycopg

import pawlflow.app
import pawlflow.bus.nats
import pawlflow.worker_postgres

IMPORTED = (nats, psycopg, pawlflow.app, pawlflow.bus.nats, pawlflow.worker_postgres)


def serve(name: str) -> None:
    """Be one service, until somebody ends it."""
    os.setpgid(0, 0)
    module = importlib.import_module(f"examples.ores.services.{name}")
    asyncio.run(module.main() if hasattr(module, "main") else alone(module.worker))


async def alone(worker: object) -> None:
    """A service that has commands and nothing beside them."""
    async with worker:
        os.write(1, f"{worker.service}: ready\n".encode())
        await asyncio.Event().wait()


def main() -> None:
    """Fork a process for each service."""
    children = []
    for name in sys.argv[1:]:
        child = os.fork()
        if child == 0:
            serve(name)
            os._exit(0)
        children.append(child)
    sys.stdin.read()
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
