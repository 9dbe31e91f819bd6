"""Alerts: effects that nobody here can carry out. Told in the log, and as an event of the tenant.

The event `pawl.alerts` holds all of them each time something changes, so that the last one is what
is; a second terminal reads it, and a workflow may be triggered by it.
"""

import asyncio
import logging
import os
from typing import Any, Final

from pawlflow import requests
from pawlflow.driving import Answer, InlineDriver
from pawlflow.effects.registry import Registry
from pawlflow.engine.clock import Clock
from pawlflow.model.ids import Digest, StepKey, Tenant, TimeMs
from pawlflow.model.intents import Call
from pawlflow.projections.alerts import EVENT, NO_EXECUTOR, Said, alerts_said
from pawlflow.projections.plain import time_told
from pawlflow.store.port import Store

log = logging.getLogger("pawl.effects")
NOBODY: Final = TimeMs(1 << 60)  # has begun an attempt
FIRST_S: Final = 0.02  # what is found together is told together
AGAIN_S: Final = 1.0  # between two events of a tenant
EFFECTS_MAX: Final = 100  # told of a tenant
EXAMPLES_MAX: Final = 5  # of instances, by their ids

Effect = tuple[Tenant, str, str]  # whose, `run` or `agent`, and its name


class Lack:
    """An effect without an executor, and the calls that wait for one."""

    __slots__ = ("calls", "reason", "since")

    def __init__(self, since: TimeMs | str, reason: str) -> None:
        self.since = since
        self.reason = reason  # if there is a function of that name, why it is not the one
        self.calls: dict[Digest, Call] = {}


class Alerts:
    """What lacks an executor in this process, and who was told."""

    def __init__(
        self,
        reader: Store,
        driver: InlineDriver,
        clock: Clock,
        registry: Registry | None = None,
    ) -> None:
        self.registry = registry
        self.reader = reader
        self.driver = driver
        self.clock = clock
        self.lacks: dict[Effect, Lack] = {}
        self.logged: set[tuple[str, str]] = set()
        self.said: dict[Tenant, Said] = {}  # by whichever process, last
        self.changed: dict[Tenant, None] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.telling: Answer | None = None

    # What the runner finds

    def lost(self, call: Call) -> None:
        """Nobody here can carry this out. Its time does not run meanwhile."""
        effect = effect_of(call)
        lack = self.lacks.get(effect)
        if lack is None:
            self.know(effect[0])
            lack = self.lacks[effect] = Lack(self.since(effect), self.reason(call))
            self.log(call, effect, lack.reason)
        lack.calls[call.id] = call
        self.driver.engine.core.begun[call.key] = NOBODY
        self.soon(effect[0])

    def found(self, call: Call) -> None:
        """Somebody may carry it out now, and has all the time it has; or nobody wants it."""
        effect = effect_of(call)
        lack = self.lacks.get(effect)
        if lack is not None:
            lack.calls.pop(call.id, None)
            if not lack.calls:
                del self.lacks[effect]
        self.driver.engine.core.begun[call.key] = self.clock.now()
        self.soon(effect[0])

    def settled(self, key: StepKey) -> None:
        """An attempt has its receipt: nothing is to be remembered of it."""
        if self.driver.engine.core.begun:
            self.driver.engine.core.begun.pop(key, None)

    def log(self, call: Call, effect: Effect, reason: str) -> None:
        """Once for each effect."""
        _, kind, name = effect
        if (kind, name) not in self.logged:
            self.logged.add((kind, name))
            where = f"@pawl.{'agent' if kind == 'agent' else 'effect'}({name!r})"
            log.error(
                "nobody here carries out %s%s: step %s of %s waits for it, and so will others. "
                "Register a function for it (%s), or see `pawl why %s`",
                *(name, f" ({reason})" if reason else "", call.step, call.cell.key),
                *(where, call.cell.key),
            )

    def reason(self, call: Call) -> str:
        """Why the function of that name is not the one, if there is one."""
        known = {} if self.registry is None or call.by_agent else self.registry.effects
        found = known.get(call.target)
        return "" if found is None else found.misfit(call)

    # What is told

    def know(self, tenant: Tenant) -> None:
        """See what was told of a tenant before; what is no longer so is taken back soon."""
        if tenant not in self.said:
            self.said[tenant] = alerts_said(self.reader, tenant)
            if self.said[tenant].alerts:
                self.soon(tenant)

    def since(self, effect: Effect) -> TimeMs | str:
        """Since when nobody carries it out: another process may have found that before."""
        tenant, kind, name = effect
        for each in self.said[tenant].alerts:
            if (each["kind"], each["effect"]) == (kind, name):
                return str(each["since"])
        return self.clock.now()

    def told(self, tenant: Tenant) -> list[dict[str, Any]]:
        """The alerts of a tenant, as this process knows them."""
        found = [(effect, lack) for effect, lack in self.lacks.items() if effect[0] == tenant]
        return [alert_of(effect, lack) for effect, lack in found[:EFFECTS_MAX]]

    def soon(self, tenant: Tenant) -> None:
        """Tell, together with what comes at the same time."""
        self.changed[tenant] = None
        if self.timer is None:
            known = self.said.get(tenant)
            wait = FIRST_S if known is None or known.process != os.getpid() else AGAIN_S
            self.timer = asyncio.get_running_loop().call_later(wait, self.tell)

    def tell(self) -> None:
        """Tell what has changed. What others told stands until everything in flight was offered."""
        self.timer = None
        waiting, self.changed = self.changed, {}
        for tenant in waiting:
            self.tell_tenant(tenant)

    def tell_tenant(self, tenant: Tenant) -> None:
        """Emit the event, if it says anything new."""
        alerts, core = self.told(tenant), self.driver.engine.core
        said = self.said.get(tenant, Said())
        recovered = core.recover_after is None and not core.recovering and not core.silent
        if not recovered and len(alerts) < len(said.alerts):
            self.soon(tenant)
            return
        if list(said.alerts) == alerts or core.stopped is not None:
            return
        at = time_told(self.clock.now())
        self.said[tenant] = Said(alerts, os.getpid(), at)
        data = {"alerts": alerts, "process": os.getpid(), "at": at}
        cell, event = requests.topic_cell(tenant, EVENT), requests.emit(EVENT, data, tenant, "pawl")
        # With an answer that nobody reads: leaving waits until it is durable.
        self.telling = self.driver.submit(cell, event)

    def close(self) -> None:
        """Tell what is still to be told."""
        if self.timer is not None:
            self.timer.cancel()
            self.tell()
        if self.timer is not None:
            self.timer.cancel()


def effect_of(call: Call) -> Effect:
    """What a call asks for."""
    if call.by_agent:
        return call.cell.tenant, "agent", call.role or call.target
    return call.cell.tenant, "run", call.target


def alert_of(effect: Effect, lack: Lack) -> dict[str, Any]:
    """An alert as it is told."""
    instances = dict.fromkeys(call.cell.key for call in lack.calls.values())
    since = lack.since if isinstance(lack.since, str) else time_told(lack.since)
    return {
        "code": NO_EXECUTOR,
        "kind": effect[1],
        "effect": effect[2],
        "since": since,
        "instances": len(instances),
        "examples": list(instances)[:EXAMPLES_MAX],
        "reason": lack.reason or None,
    }
