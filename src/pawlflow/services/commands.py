"""Commands: calls that are carried out by services. They go out after their commit, again if lost.

Nothing here is durable: the journal knows what is in flight, and offers it again after a restart or
a silence. What is offered again is the same command: the same step id, the same attempt. So only so
many are kept while a server is away, tenants in turn; the rest comes from the journal afterwards.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

from pawlflow.bus.port import Bus, BusError
from pawlflow.effects.lines import Again, Lines
from pawlflow.model.ids import CellId, StepKey
from pawlflow.model.intents import Call, Intent, Stop
from pawlflow.services import protocol

log = logging.getLogger("pawl.nats")
AT_ONCE: Final = 256  # commands on their way at a time
WAITING_MAX: Final = 10_000  # commands that wait for the server here
REMEMBERED: Final = 100_000  # places of commands that were answered: duplicates come soon


class Commands:
    """The commands of one connection that were not answered yet."""

    def __init__(
        self,
        bus: Bus,
        trace_of: Callable[[CellId], str],
        refuse: Callable[[Call, BusError], None],
        again: Again,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self.bus = bus
        self.trace_of = trace_of
        self.refuse = refuse  # a command that no bus will ever take
        self.offer_again = again
        self.unsent = Lines(waiting_max, name=lambda call: call.key)
        self.unsent.again = again
        self.going: dict[StepKey, Call] = {}  # on their way to the server
        self.sent: dict[StepKey, int] = {}  # and not answered: which attempt
        self.places: OrderedDict[StepKey, CellId] = OrderedDict()
        self.subjects: set[str] = set()  # that a stream keeps
        self.sending: asyncio.Task[None] | None = None
        self.saying: set[asyncio.Task[None]] = set()  # what is no longer wanted
        self.closed = False

    def publish(self, intents: Sequence[Intent]) -> None:
        """Let commands out, and say which are no longer wanted."""
        for intent in intents:
            if isinstance(intent, Stop):
                self.stop(intent.call)
            elif not self.has_gone(intent):
                self.unsent.put(intent)
                self.remember(intent)
        self.begin()

    def has_gone(self, call: Call) -> bool:
        """Was it sent, and came along only because others of its cell were asked for?"""
        on_its_way = self.going.get(call.key)
        if on_its_way is not None:
            return on_its_way.attempt == call.attempt
        asked = (call.cell.tenant, call.cell.key) in self.unsent.asked
        return asked and self.sent.get(call.key) == call.attempt

    def remember(self, call: Call) -> None:
        """Which instance a step id belongs to."""
        self.places[call.key] = call.cell
        self.places.move_to_end(call.key)
        if len(self.places) > REMEMBERED:
            gone, _ = self.places.popitem(last=False)
            self.sent.pop(gone, None)

    def stop(self, call: Call) -> None:
        """Tell whoever works on it that it is no longer wanted."""
        self.settled(call.key)
        self.remember(call)
        task = asyncio.ensure_future(self.send_cancel(call))
        self.saying.add(task)
        task.add_done_callback(self.saying.discard)

    async def send_cancel(self, call: Call) -> None:
        """A hint: an executor that does not hear it is heard of later, or never."""
        subject = f"{protocol.CANCEL}{UUID(bytes=bytes(call.key))}"
        try:
            await self.bus.send(subject, b"", protocol.headers_of(call, self.trace_of(call.cell)))
        except BusError as error:
            log.debug("a cancel was not sent: %s", error)

    def attempt_of(self, key: StepKey) -> int | None:
        """Which attempt of a step was let out last, if it is not answered."""
        call = self.going.get(key) or self.unsent.get(key)
        return self.sent.get(key) if call is None else call.attempt

    def settled(self, key: StepKey) -> None:
        """A command needs no more sending."""
        self.sent.pop(key, None)
        self.going.pop(key, None)
        self.unsent.discard(key)

    def abandon(self, gone: Callable[[CellId], bool]) -> None:
        """Other nodes look after the commands of these cells now."""
        self.unsent.abandon(gone)
        known = [key for key, cell in self.places.items() if gone(cell)]
        for key in known:
            self.settled(key)

    def again(self) -> None:
        """Whatever was sent may be lost: the journal knows what is not answered."""
        self.sent.clear()
        self.offer_again(None)

    def begin(self) -> None:
        """Send what is to be sent, unless that is under way."""
        if self.closed or (self.sending is not None and not self.sending.done()):
            return
        self.unsent.ask()
        if len(self.unsent):
            self.sending = asyncio.ensure_future(self.send_all())

    async def send_all(self) -> None:
        """Send until nothing is left, or the bus is unwell: then it is tried again later."""
        while len(self.unsent) and not self.closed:
            while len(self.going) < AT_ONCE and (call := self.unsent.take()) is not None:
                self.going[call.key] = call
            if not await self.send_some(list(self.going.values())):
                return

    async def send_some(self, calls: Sequence[Call]) -> bool:
        """Send these; what did not go waits again. False if the bus is unwell."""
        try:
            await self.keep({call.target for call in calls} - self.subjects)
            sent = await asyncio.gather(*(self.send_one(call) for call in calls))
            failed = next((error for error in sent if error is not None), None)
        except BusError as error:
            failed = error
        finally:
            left, self.going = self.going, {}
            for key, call in left.items():
                if key not in self.unsent:  # a later attempt may wait by now
                    self.unsent.put(call)
        if failed is not None:
            log.warning("%d commands wait, and are sent later: %s", len(self.unsent), failed)
        return failed is None

    async def keep(self, new: set[str]) -> None:
        """Have a stream for these subjects; one of somebody else is as good."""
        if not new:
            return
        try:
            await self.bus.keep(protocol.commands_stream(tuple(sorted(new))))
        except BusError as error:
            if error.code != "nats.overlap":
                raise
            log.info("another stream keeps %s", ", ".join(sorted(new)))
        self.subjects |= new

    async def send_one(self, call: Call) -> BusError | None:
        """Send one command; a stream has it unless something is given."""
        headers = protocol.headers_of(call, self.trace_of(call.cell))
        try:
            await self.bus.publish(call.target, protocol.body_of(call), headers)
        except BusError as error:
            if error.code != "nats.too_large":
                return error
            self.settled(call.key)
            self.refuse(call, error)
            return None
        if self.going.get(call.key) is call:  # else it was answered, or stopped, meanwhile
            del self.going[call.key]
            self.sent[call.key] = call.attempt
        return None

    async def look(self) -> bool:
        """Is there still a stream? If it had to be made anew, what it held is lost."""
        if not self.subjects:
            return False
        try:
            return await self.bus.keep(protocol.commands_stream(tuple(sorted(self.subjects))))
        except BusError as error:
            if error.code == "nats.overlap":
                return False
            raise

    async def close(self) -> None:
        """Send no more. What was not sent is offered again when the engine comes back."""
        self.closed = True
        if self.sending is not None:
            self.sending.cancel()
            await asyncio.wait([self.sending])
        if self.saying:
            await asyncio.wait(self.saying)
