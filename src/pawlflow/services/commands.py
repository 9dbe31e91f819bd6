"""Commands: calls that are carried out by services. They go out after their commit, again if lost.

Nothing here is durable: the journal knows what is in flight, and offers it again after a restart or
a silence. What is offered again is the same command: the same step id, the same attempt.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

from pawlflow.bus.port import Bus, BusError
from pawlflow.model.ids import CellId, StepKey
from pawlflow.model.intents import Call, Intent, Stop
from pawlflow.services import protocol

log = logging.getLogger("pawl.nats")
AT_ONCE: Final = 256  # commands on their way at a time
REMEMBERED: Final = 100_000  # places of commands that were answered: duplicates come soon


class Commands:
    """The commands of one connection that were not answered yet."""

    def __init__(
        self,
        bus: Bus,
        trace_of: Callable[[CellId], str],
        refuse: Callable[[Call, BusError], None],
    ) -> None:
        self.bus = bus
        self.trace_of = trace_of
        self.refuse = refuse  # a command that no bus will ever take
        self.open: dict[StepKey, Call] = {}
        self.unsent: dict[StepKey, Call] = {}
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
            else:
                self.open[intent.key] = self.unsent[intent.key] = intent
                self.remember(intent)
        self.begin()

    def remember(self, call: Call) -> None:
        """Which instance a step id belongs to."""
        self.places[call.key] = call.cell
        self.places.move_to_end(call.key)
        if len(self.places) > REMEMBERED:
            self.places.popitem(last=False)

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

    def settled(self, key: StepKey) -> None:
        """A command needs no more sending."""
        self.open.pop(key, None)
        self.unsent.pop(key, None)

    def again(self) -> None:
        """Whatever was sent may be lost."""
        self.unsent = dict(self.open)
        self.begin()

    def begin(self) -> None:
        """Send what is to be sent, unless that is under way."""
        if self.unsent and not self.closed and (self.sending is None or self.sending.done()):
            self.sending = asyncio.ensure_future(self.send_all())

    async def send_all(self) -> None:
        """Send until nothing is left, or the bus is unwell: then it is tried again later."""
        while self.unsent:
            calls = list(self.unsent.values())[:AT_ONCE]
            try:
                await self.keep({call.target for call in calls} - self.subjects)
            except BusError as error:
                log.warning("commands wait: %s", error)
                return
            sent = await asyncio.gather(*(self.send_one(call) for call in calls))
            if not all(sent):
                return

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

    async def send_one(self, call: Call) -> bool:
        """Send one command; a stream has it if this is true."""
        headers = protocol.headers_of(call, self.trace_of(call.cell))
        try:
            await self.bus.publish(call.target, protocol.body_of(call), headers)
        except BusError as error:
            if error.code == "nats.too_large":
                self.settled(call.key)
                self.refuse(call, error)
                return True
            log.warning("%s of %s is sent again later: %s", call.step, call.cell.key, error)
            return False
        if self.unsent.get(call.key) is call:
            del self.unsent[call.key]
        return True

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
