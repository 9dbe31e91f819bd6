"""Awaiting: who waits for an instance to change, or to come to its end. Nothing stays of them."""

import asyncio
from typing import Any, TypeVar

from pawlflow.driving import InlineDriver
from pawlflow.engine.actions import Stopped
from pawlflow.runs import NOTHING, Closed
from pawlflow.store.port import Address, Store
from pawlflow.trouble import NotFound, PawlError

T = TypeVar("T")


class Awaiting:
    """Those who wait, by instance."""

    driver: InlineDriver
    reader: Store
    trouble: Stopped | None
    closing: dict[Address, list[asyncio.Future[Closed]]]
    changing: dict[Address, list[asyncio.Future[None]]]

    def wake_all(self, error: PawlError) -> None:
        """Nothing more will come: tell whoever waits for it."""
        closing, self.closing = self.closing, {}
        changing, self.changing = self.changing, {}
        waiting: list[asyncio.Future[Any]] = [each for line in closing.values() for each in line]
        waiting += [each for line in changing.values() for each in line]
        for future in waiting:
            if not future.done():
                future.set_exception(error)
                future.exception()  # who waited may be gone: that is no news for a log

    def refuse_if_stopped(self) -> None:
        """Nothing more will happen once the store has failed."""
        if self.trouble is not None:
            raise PawlError(self.trouble.code, self.trouble.message)

    async def closed(self, address: Address, seconds: float | None) -> Closed:
        """Wait until an instance is closed."""
        self.refuse_if_stopped()
        future: asyncio.Future[Closed] = asyncio.get_running_loop().create_future()
        self.closing.setdefault(address, []).append(future)
        try:
            if not self.driver.engine.core.knows_open(address):
                found = self.reader.load([address]).get(address)
                if found is None:
                    raise NotFound("instance.unknown", f"no instance {address[1]!r}")
                if found.head.closed_at is not None and not future.done():
                    return Closed(NOTHING)
            async with asyncio.timeout(seconds):
                return await future
        finally:
            leave(self.closing, address, future)

    async def changed(self, address: Address, turn: int) -> None:
        """Wait until an instance has more turns than these."""
        self.refuse_if_stopped()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.changing.setdefault(address, []).append(future)
        try:
            found = self.reader.story(address, turn)
            if found is None or found.head.turn <= turn:
                await future
        finally:
            leave(self.changing, address, future)


def leave(
    waiting: dict[Address, list[asyncio.Future[T]]], address: Address, future: asyncio.Future[T]
) -> None:
    """Whoever waited for an instance waits no longer, whatever came of it."""
    line = waiting.get(address, [])
    if future in line:
        line.remove(future)
        if not line:
            del waiting[address]
