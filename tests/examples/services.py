"""The services of the example, each a process of its own; what they import is paid for once.

`python -m tests.examples.services NAME...` says which are ready. They end when its input does, or
with it, however it ends.
"""

import asyncio
import importlib
import os
import sys
import threading

import nats
import psycopg

import pawlflow.app
import pawlflow.bus.nats
import pawlflow.worker_postgres

IMPORTED = (nats, psycopg, pawlflow.app, pawlflow.bus.nats, pawlflow.worker_postgres)


def serve(name: str, parent: int) -> None:
    """Be one service, as long as there is a parent."""
    threading.Thread(target=lambda: os._exit(len(os.read(parent, 1))), daemon=True).start()
    module = importlib.import_module(f"examples.ores.services.{name}")
    asyncio.run(module.main() if hasattr(module, "main") else alone(module.worker))


async def alone(worker: object) -> None:
    """A service that has commands and nothing beside them."""
    async with worker:
        os.write(1, f"{worker.service}: ready\n".encode())
        await asyncio.Event().wait()


def main() -> None:
    """Fork a process for each service; all of them read a pipe that only this one can write."""
    parent, alive = os.pipe()
    children = []
    for name in sys.argv[1:]:
        child = os.fork()
        if child == 0:
            os.close(alive)
            serve(name, parent)
            os._exit(1)
        children.append(child)
    sys.stdin.read()
    os.close(alive)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
