"""Takers: which services take their commands in batches, as far as the bus server knows now.

A worker that takes batches has a consumer for them, and says there which commands it carries out.
The server knows whether anybody listens to it: so nothing has to be taken back by a worker that was
killed, and what is believed wrongly is believed for a second.
"""

import asyncio
import logging
from collections.abc import Iterable

from pawlflow.bus.port import Bus, BusError
from pawlflow.services import batches

log = logging.getLogger("pawl.nats")
NOTHING: frozenset[str] = frozenset()


class Takers:
    """The services of one connection, and the commands that each takes in batches."""

    def __init__(self, bus: Bus, *, wanted: bool) -> None:
        self.bus = bus
        self.wanted = wanted
        self.known: dict[str, frozenset[str]] = {}

    def takes(self, target: str) -> bool:
        """Does somebody take this command in batches?"""
        return target in self.known.get(service_of(target), NOTHING)

    async def learn(self, targets: Iterable[str]) -> None:
        """Ask about services that were not asked about yet."""
        if not self.wanted:
            return
        for service in {service_of(each) for each in targets} - self.known.keys():
            self.known[service] = await self.ask(service) or NOTHING

    async def look(self) -> frozenset[str]:
        """Ask about all again; gives the commands that are taken no longer."""
        before = dict(self.known)
        answers = await asyncio.gather(*(self.ask(service) for service in before))
        gone: set[str] = set()
        for (service, taken), now in zip(before.items(), answers, strict=True):
            if now is not None:
                self.known[service] = now
                gone |= taken - now
        return frozenset(gone)

    async def ask(self, service: str) -> frozenset[str] | None:
        """The commands that a service takes in batches now; None if the server does not say."""
        try:
            about = await self.bus.taker(batches.BATCHES.name, service)
        except BusError as error:
            log.info("whether %s takes batches is not known: %s", service, error)
            return None
        return frozenset((about or {}).get(batches.COMMANDS_ABOUT, "").split())


def service_of(target: str) -> str:
    """Whose command it is."""
    return target.partition(".")[0]
