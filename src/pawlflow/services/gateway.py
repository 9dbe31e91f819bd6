"""The gateway: an engine's side of NATS. Commands out, completions and questions in."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from pawlflow.bus.port import Bus, BusError
from pawlflow.driving import InlineDriver
from pawlflow.effects.registry import Registry
from pawlflow.model.codec import hash_of
from pawlflow.model.failure import failure_of
from pawlflow.model.ids import CellId, Tenant
from pawlflow.model.inputs import Receipt
from pawlflow.model.intents import Call, Intent, Stop
from pawlflow.projections.history import trace_id
from pawlflow.requests import tenant_name
from pawlflow.services import batches, protocol
from pawlflow.services.commands import WAITING_MAX, Commands
from pawlflow.services.completions import Intake, Trust
from pawlflow.services.ending import ended
from pawlflow.services.keys import Keys
from pawlflow.services.places import Names, live_state
from pawlflow.services.questions import Questions
from pawlflow.services.takers import Takers
from pawlflow.store.port import Store

log = logging.getLogger("pawl.nats")
LOOK_S: Final = 1.0  # between two looks whether the streams are there
UNSIGNED: Final = "PAWL_NATS_UNSIGNED"


class Nats(msgspec.Struct, frozen=True):
    """How an engine uses NATS: `Pawl(nats=Nats("nats://...", executor_keys={...}))`."""

    url: str | Mapping[str, str]  # one for all, or one for each tenant: its account decides
    executor_keys: Mapping[str, str] = {}  # public keys by id, beside those that are registered
    unsigned: bool | None = (
        None  # take completions without a signature; None: as the environment says
    )
    batches: bool = True  # send several commands in a message to workers that take that
    waiting_max: int = WAITING_MAX  # commands kept here while the server is away


Given = str | Mapping[str, str] | Nats | None


class Engine(Protocol):
    """What a gateway needs of its engine."""

    tenant: Tenant
    driver: InlineDriver
    reader: Store
    registry: Registry

    def deliver(self, cell: CellId, receipt: Receipt, size: int) -> None:
        """A receipt comes back."""
        ...


class Gateway:
    """One connection: of all tenants, or of one."""

    def __init__(
        self, engine: Any, bus: Bus, trust: Trust, tenant: Tenant | None, options: Nats
    ) -> None:
        self.engine: Engine = engine
        self.bus = bus
        takers, again = Takers(bus, wanted=options.batches), self.engine.driver.offer_again
        most = options.waiting_max
        self.commands = Commands(bus, self.trace_of, self.refuse, takers, again, most)
        names = Names(engine.reader)
        self.intake = Intake(engine, bus, self.commands, names)
        self.questions = Questions(engine, names, self.commands.places)
        self.intake.trust = trust
        self.intake.tenant = self.questions.tenant = tenant
        self.looking: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Have streams, hear completions, answer questions."""
        await self.keep()
        await self.questions.serve(self.bus)
        self.looking = asyncio.ensure_future(self.look())

    async def keep(self) -> bool:
        """Have what is needed on the server; True if something was gone."""
        made = await self.bus.keep(batches.COMPLETIONS)
        made |= await self.bus.keep(protocol.DEAD_LETTERS)
        await self.bus.take(protocol.INTAKE, self.intake.heard)
        await self.bus.take(batches.INTAKE, self.intake.heard_batches)
        return await self.commands.look() or made

    async def look(self) -> None:
        """Again and again: is everything there? What a lost stream held is sent again."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                if await self.keep():
                    log.warning("a stream was gone: commands that are not answered are sent again")
                    self.commands.again()
                self.commands.begin()
            except BusError as error:
                log.warning("%s", error)
            except Exception:
                log.exception("the look at NATS broke")

    def publish(self, intents: Sequence[Intent]) -> None:
        """Let commands out, after their commit."""
        for intent in intents:
            call = intent.call if isinstance(intent, Stop) else intent
            self.intake.seen[call.cell.tenant] = None
        self.commands.publish(intents)

    def trace_of(self, cell: CellId) -> str:
        """The trace that an instance belongs to, as its events name it."""
        state = live_state(self.engine.driver, cell)
        if state is not None:
            return trace_id(state)
        return hash_of("pawl.trace-id.1", cell.tenant, cell.key)[:16].hex()

    def refuse(self, call: Call, error: BusError) -> None:
        """A command that no bus will ever take has failed."""
        failure = failure_of("terminal", error.code, str(error), tenant=call.cell.tenant)
        receipt = Receipt(call.key, call.attempt, "failed", failure=failure)
        self.engine.deliver(call.cell, receipt, 0)

    async def close(self) -> None:
        """Say and hear no more."""
        if self.looking is not None:
            await ended([self.looking])
        await self.commands.close()
        await self.bus.close()


class Services:
    """The gateways of an engine, and which calls are theirs."""

    def __init__(self, given: Given) -> None:
        options = given if isinstance(given, Nats) else None if given is None else Nats(given)
        self.options = options
        self.gateways: dict[Tenant | None, Gateway] = {}

    def knows(self, target: str) -> bool:
        """May an effect without a function here go over NATS?"""
        return self.options is not None and protocol.is_command(target)

    async def open(self, engine: Any, connect: Callable[[str], Awaitable[Bus]]) -> None:
        """Connect. Raises BusError if a server is not there."""
        if self.options is None:
            return
        options, url = self.options, self.options.url
        unsigned = options.unsigned
        if unsigned is None:
            unsigned = os.environ.get(UNSIGNED) == "allow"
        trust = Trust(Keys(engine.reader), dict(options.executor_keys), unsigned=unsigned)
        places: dict[Tenant | None, str] = {None: url} if isinstance(url, str) else {}
        places |= {} if isinstance(url, str) else {tenant_name(who): at for who, at in url.items()}
        for tenant, at in places.items():
            gateway = Gateway(engine, await connect(at), trust, tenant, options)
            self.gateways[tenant] = gateway
            await gateway.open()
        # What a commit let out travels while the next one is made.
        engine.driver.engine.rounds_max = 1

    def take(self, intents: Sequence[Intent], registry: Registry) -> Sequence[Intent]:
        """Let out what is carried out elsewhere; gives what is carried out here."""
        if not self.gateways:
            return intents
        here: list[Intent] = []
        there: dict[Tenant | None, list[Intent]] = {}
        for intent in intents:
            call = intent.call if isinstance(intent, Stop) else intent
            where = self.gateway_of(call, registry)
            if where is None:
                here.append(intent)
            else:
                there.setdefault(where[0], []).append(intent)
        for tenant, theirs in there.items():
            self.gateways[tenant].publish(theirs)
        return here

    def gateway_of(self, call: Call, registry: Registry) -> tuple[Tenant | None] | None:
        """The connection that a call goes over, if it goes over one."""
        if call.by_agent or not protocol.is_command(call.target) or registry.find(call):
            return None
        for tenant in (call.cell.tenant, None):
            if tenant in self.gateways:
                return (tenant,)
        return None

    def abandon(self, gone: Callable[[CellId], bool]) -> None:
        """Other nodes look after these commands now."""
        for gateway in self.gateways.values():
            gateway.commands.abandon(gone)

    async def close(self) -> None:
        """Say and hear no more."""
        gateways, self.gateways = self.gateways, {}
        for gateway in gateways.values():
            await gateway.close()
