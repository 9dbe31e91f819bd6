"""A client of the engine: it speaks JSON over NATS, and knows nothing of services."""

import asyncio
import json
from types import TracebackType
from typing import Any, Self
from uuid import NAMESPACE_URL, uuid5

import nats


class RefusedError(Exception):
    """The engine said no, and why."""


class Client:
    """Requests and replies, as docs/nats.md has them."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def __aenter__(self) -> Self:
        self.connection = await nats.connect(self.url)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.connection.close()

    async def ask(self, subject: str, **asked: Any) -> Any:
        """Ask the engine; while none is there, ask again."""
        data = json.dumps(asked).encode()
        for pause in (*[0.1] * 300, None):
            try:
                answer = await self.connection.request(subject, data, timeout=5)
                break
            except (nats.errors.NoRespondersError, nats.errors.TimeoutError):
                if pause is None:
                    raise
                await asyncio.sleep(pause)
        told = json.loads(answer.data)
        if "error" in told:
            raise RefusedError(f"{told['error']['code']}: {told['error']['message']}")
        return told

    async def start(self, workflow: str, request: Any, correlation: str) -> str:
        """Start an instance, one for each correlation id of ours: its id is made of that."""
        key = str(uuid5(NAMESPACE_URL, f"{workflow}/{correlation}"))
        about = {"type": workflow, "correlation_id": correlation, "instance_id": key}
        told = await self.ask("workflow.v1.start", **about, request_json=json.dumps(request))
        return str(told["instance_id"])

    async def closed(self, instance: str, workflow: str) -> dict[str, Any]:
        """The instance, once it is closed."""
        while True:
            listed = await self.ask("workflow.v1.instances.list", type=workflow)
            [row] = [each for each in listed["items"] if each["id"] == instance]
            if row["closed_at"] is not None:
                return dict(row)
            await asyncio.sleep(0.05)

    async def steps(self, instance: str) -> list[dict[str, Any]]:
        """The steps of an instance, undone ones too, as the engine's tables have them."""
        told = await self.ask("workflow.v1.instances.steps", instance_id=instance)
        return list(told["items"])
