"""Awaiting: those who wait until an instance is closed, or has gone on. Nothing stays of them."""

import asyncio
from typing import Any, TypeVar

from pawlflow.driving import InlineDriver
from pawlflow.engine.actions import Notify, Stopped
from pawlflow.retaining import gone
from pawlflow.runs import NOTHING, Closed, closed_by
from pawlflow.store.port import Address
from pawlflow.trouble import PawlError

T = TypeVar("T")
Closing = dict[Address, list[asyncio.Future[Closed]]]
Changing = dict[Address, list[asyncio.Future[None]]]


class Awaiting:
    """What an engine's host knows of those who wait."""

    driver: InlineDriver
    reader: Any
    closing: Closing
    changing: Changing
    trouble: Stopped | None

    def wake(self, action: Notify) -> None:
        """Wake those who wait for these instances."""
        closing, changing = self.closing, self.changing
        if not closing and not changing:
            return
        for turn in action.turns:
            if turn.head.closed_at is None and not changing:
                continue
            address = (turn.cell.tenant, turn.cell.key)
            if turn.head.closed_at is not None and address in closing:
                for future in closing.pop(address):
                    if not future.done():
                        future.set_result(closed_by(turn.stepped.turn.events[-1]))
            for changed in changing.pop(address, ()):
                if not changed.done():
                    changed.set_result(None)

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
                    raise gone(self.reader, *address)
                if found.head.closed_at is not None and not future.done():
                    return Closed(NOTHING)
            if seconds is None:
                return await future
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
