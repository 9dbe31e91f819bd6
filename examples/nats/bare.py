"""A service without the worker library: it answers every command, and keeps its own books."""

import asyncio
import json
import sys

import nats
from nats.aio.msg import Msg
from pawlflow.worker import publish_step_completion


async def main(url: str) -> None:
    """Commands come by a plain subscription."""
    client = await nats.connect(url)

    async def save(command: Msg) -> None:
        headers = command.headers or {}
        step_id, instance_id = headers["X-Workflow-Step-Id"], headers["X-Workflow-Instance-Id"]
        result = json.dumps({"account": f"account-{step_id[:8]}"})
        await publish_step_completion(client, step_id, instance_id, True, result, None)

    await client.subscribe("iam.v1.account.save", queue="iam", cb=save)
    await client.flush()
    print("iam is ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
