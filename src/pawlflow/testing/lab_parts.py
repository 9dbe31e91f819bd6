"""Parts of a lab: who counts as an executor, how orphans are told, and who wakes up when."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from pawlflow.alerts import Alerts
from pawlflow.effects.registry import Registry
from pawlflow.model.ids import Tenant
from pawlflow.retaining import Retainer


class LabRegistry(Registry):
    """Functions by name; what is scripted needs none."""

    def __init__(self) -> None:
        super().__init__()
        self.scripted: set[str] = set()

    def add(
        self, name: str, fn: Callable[..., Any], pool: str | None = None, *, traced: bool = False
    ) -> None:
        """As an engine does; what a test registers by itself may stand for the real function."""
        if not traced:
            self.effects.pop(name, None)
        super().add(name, fn, pool, traced=traced)

    def add_agent(self, role: str, fn: Callable[..., Any], pool: str | None = None) -> None:
        """The same for roles."""
        self.agents.pop(role, None)
        super().add_agent(role, fn, pool)

    def knows(self, target: str, *, by_agent: bool) -> bool:
        """Is there somebody for this, or a script?"""
        covered = target in self.scripted or "*" in self.scripted
        return covered or super().knows(target, by_agent=by_agent)


class LabAlerts(Alerts):
    """Tells at once what an engine would tell together with what comes a moment later."""

    def soon(self, tenant: Tenant) -> None:
        """Tell."""
        self.changed[tenant] = None
        if self.timer is None:
            self.timer = asyncio.get_running_loop().call_later(0, self.tell)


def wake_up(future: asyncio.Future[None]) -> None:
    """The sleep of a function is over, unless it was cancelled."""
    if not future.done():
        future.set_result(None)


class LabRetainer(Retainer):
    """Lets instances go when the test lets their time pass: no clock wakes it."""

    def plan(self) -> None:
        """The lab looks at the time."""


async def let_go(retainer: Retainer | None, idle: Callable[[], Awaitable[None]]) -> None:
    """Remove the instances whose time is over."""
    if retainer is not None and retainer.is_due():
        await retainer.sweep(rest=lambda _: asyncio.sleep(0))
        await idle()


def over_at(retainer: Retainer | None) -> int | None:
    """When the time of the next instance is over."""
    return None if retainer is None else retainer.next_at
