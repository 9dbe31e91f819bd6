"""A step that needs a secret: a reference everywhere, a value in the function alone."""

import asyncio
from pathlib import Path

from pawlflow import Context, Pawl

pawl = Pawl("sqlite:///deploy.db", secrets={"registry-token": "tok-5f1e77"})  # as a test would
pawl.load(Path(__file__).with_name("deploy.yaml"))


@pawl.effect("registry.push")
async def push(image: str, token: str, ctx: Context) -> dict:
    ctx.log(f"logged in with {token}")  # a slip: it is taken out
    return {"digest": f"sha256:{len(image)}{len(token)}"}


async def main() -> None:
    async with pawl:
        run = await pawl.start("deploy", {"image": "shop:7"})
        print(await run.result(timeout="1m"))
        attempt = run.show()["steps"]["push"]["ladder"][0]
        print(attempt["input"])
        print(attempt["log"])


asyncio.run(main())
