"""Ending tasks that talk to a bus."""

import asyncio
from collections.abc import Collection
from typing import Any, Final

AGAIN_S: Final = 0.1  # before a cancel is said again


async def ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel these until they have ended: a client may swallow a cancel while it flushes."""
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_S)
