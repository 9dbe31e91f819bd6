"""Commands: calls that are carried out by services. They go out after their commit, again if lost.

Nothing here is durable: the journal knows what is in flight, and offers it again after a restart or
a silence. What is offered again is the same command: the same step id, the same attempt. It goes
out alone then: a batch may have gone to nobody. So only so many are kept while a server is away,
tenants in turn; the rest comes from the journal afterwards.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from pawlflow.bus.port import Bus, BusError, Letter
from pawlflow.effects.headers import uuid_text
from pawlflow.effects.lines import Again, Lines
from pawlflow.model.ids import CellId, StepKey
from pawlflow.model.intents import Call, Intent, Stop
from pawlflow.services import batches, protocol
from pawlflow.services.ending import ended
from pawlflow.services.takers import Takers, service_of

log = logging.getLogger("pawl.nats")
AT_ONCE: Final = 512  # commands on their way at a time: what a commit may ask for
WAITING_MAX: Final = 10_000  # commands that wait for the server here
REMEMBERED: Final = 100_000  # places of commands that were answered: duplicates come soon


class Commands:
    """The commands of one connection that were not answered yet."""

    def __init__(
        self,
        bus: Bus,
        trace_of: Callable[[CellId], str],
        refuse: Callable[[Call, BusError], None],
        takers: Takers,
        again: Again,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self.bus = bus
        self.trace_of = trace_of
        self.refuse = refuse  # a command that no bus will ever take
        self.takers = takers
        self.offer_again = again
        self.unsent = Lines(waiting_max, name=lambda call: call.key)
        self.unsent.again = again
        self.going: dict[StepKey, Call] = {}  # on their way to the server
        self.sent: dict[StepKey, int] = {}  # and not answered: which attempt
        self.batched: dict[StepKey, str] = {}  # that were sent in a batch: whose command
        self.alone: set[StepKey] = set()  # that must not be sent in a batch
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
                continue
            if self.has_gone(intent):
                continue
            if self.attempt_of(intent.key) == intent.attempt:
                self.alone.add(intent.key)  # there was a silence
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
            oldest, _ = self.places.popitem(last=False)
            self.sent.pop(oldest, None)
            self.batched.pop(oldest, None)
            self.alone.discard(oldest)

    def stop(self, call: Call) -> None:
        """Tell whoever works on it that it is no longer wanted; its next attempt may be."""
        if self.attempt_of(call.key) in (None, call.attempt):
            self.settled(call.key)
        self.remember(call)
        task = asyncio.ensure_future(self.send_cancel(call))
        self.saying.add(task)
        task.add_done_callback(self.saying.discard)

    async def send_cancel(self, call: Call) -> None:
        """A hint: an executor that does not hear it is heard of later, or never."""
        subject = f"{protocol.CANCEL}{uuid_text(call.key)}"
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
        self.batched.pop(key, None)
        self.alone.discard(key)

    def again(self) -> None:
        """Whatever was sent may be lost: the journal knows what is not answered."""
        self.sent.clear()
        self.batched.clear()
        self.offer_again(None)

    def abandon(self, gone: Callable[[CellId], bool]) -> None:
        """Other nodes look after the commands of these cells now."""
        self.unsent.abandon(gone)
        for key in [key for key, cell in self.places.items() if gone(cell)]:
            self.settled(key)

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
            try:
                await self.send_some(list(self.going.values()))
            except BusError as error:
                waiting = len(self.unsent) + len(self.going)
                log.warning("%d commands wait, and are sent later: %s", waiting, error)
                return
            finally:
                left, self.going = self.going, {}
                for key, call in left.items():
                    if key not in self.unsent:  # a later attempt may wait by now
                        self.unsent.put(call)

    async def send_some(self, calls: Sequence[Call]) -> None:
        """Send these, in batches to those who take them."""
        await self.takers.learn({call.target for call in calls})
        shared: list[Call] = []
        single: list[Call] = []
        for call in calls:
            together = call.key not in self.alone and self.takers.takes(call.target)
            (shared if together else single).append(call)
        await self.send_batches(shared)
        await self.send_alone(single)

    async def send_batches(self, calls: Sequence[Call]) -> None:
        """Send these together, those of each service; a stream has them when this returns."""
        if not calls:
            return
        by_service: dict[str, list[Call]] = {}
        for call in calls:
            by_service.setdefault(service_of(call.target), []).append(call)
        letters: list[Letter] = []
        for service, theirs in by_service.items():
            subject, most = f"{batches.BATCH}{service}", self.bus.bytes_max
            made = batches.packed(subject, [self.letter_of(call) for call in theirs], most)
            letters += made.batches
            if made.large:
                self.alone.update(theirs[at].key for at in made.large)
        await self.bus.publish_all(letters)
        for call in calls:
            if call.key not in self.alone:
                self.has_it(call)
                if call.key in self.sent:  # it may have been answered meanwhile
                    self.batched[call.key] = call.target

    async def send_alone(self, calls: Sequence[Call]) -> None:
        """Send these one by one; a stream has them when this returns."""
        await self.keep({call.target for call in calls} - self.subjects)
        letters = [self.letter_of(call) for call in calls]
        try:
            await self.bus.publish_all(letters)
        except BusError as error:
            if error.code != "nats.too_large":
                raise
            for call, letter in zip(calls, letters, strict=True):
                await self.send_one(call, letter)
        for call in calls:
            self.has_it(call)

    async def send_one(self, call: Call, letter: Letter) -> None:
        """Send one command, or refuse it if no bus will ever take it."""
        try:
            await self.bus.publish(*letter)
        except BusError as error:
            if error.code != "nats.too_large":
                raise
            self.settled(call.key)
            self.refuse(call, error)

    def letter_of(self, call: Call) -> Letter:
        """A command as it travels."""
        headers = protocol.headers_of(call, self.trace_of(call.cell))
        return Letter(call.target, protocol.body_of(call), headers)

    def has_it(self, call: Call) -> None:
        """A stream has it; unless it was answered, or stopped, meanwhile, that is remembered."""
        if self.going.get(call.key) is call:
            del self.going[call.key]
            self.sent[call.key] = call.attempt

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

    async def look(self) -> bool:
        """Is there still a stream? If it had to be made anew, what it held is lost.

        What went in batches to somebody who is gone is sent again, alone.
        """
        gone = await self.takers.look()
        unheard = [key for key, target in self.batched.items() if target in gone] if gone else []
        if unheard:
            log.warning("nobody takes batches any more: %d commands are sent again", len(unheard))
            cells = [self.places[key] for key in unheard]
            self.offer_again([(cell.tenant, cell.key) for cell in cells])
        for key in unheard:
            del self.batched[key]
            self.alone.add(key)
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
            await ended([self.sending])
        if self.saying:
            await asyncio.wait(self.saying)
