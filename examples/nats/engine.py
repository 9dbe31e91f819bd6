"""The engine: it starts one provisioning, and waits until both services have done their part."""

import asyncio
import sys

from pawlflow import Pawl


async def main() -> None:
    """Needs a server (`nats-server -js`), PAWL_NATS_UNSIGNED=allow, and the two services."""
    url = sys.argv[1] if len(sys.argv) > 1 else "nats://127.0.0.1:4222"
    async with Pawl("sqlite:///provision.db", nats=url) as pawl:
        pawl.load("provision.yaml")
        run = await pawl.start("provision-parties", {"name": "Ada", "login": "ada"}, id="ada")
        print(await run.result(timeout="1m"))


if __name__ == "__main__":
    asyncio.run(main())
