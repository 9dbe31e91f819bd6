"""What a worker hears: commands that come alone, and commands in batches."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from pawlflow.bus.port import Bus, BusError, Consumer, Message
from pawlflow.services import batches, protocol
from pawlflow.services.batches import Enclosed
from pawlflow.services.ending import ended
from pawlflow.services.protocol import ProtocolError, is_command
from pawlflow.worker_commands import Job, Origin, job_of
from pawlflow.worker_jobs import ACK_S, LATER_S, Jobs

log = logging.getLogger("pawl.worker")
LOOK_S: Final = 1.0  # between two looks whether the stream is there
OPENING_MAX: Final = 10  # tries to have the stream and the consumer, before giving up
OPENING_S: Final = 0.2
BATCHES_MAX: Final = 64  # brought to all workers of a service and not acknowledged yet


class Hearing:
    """The ears of a worker. What they hear lines up with its jobs."""

    def __init__(self, bus: Bus, jobs: Jobs, service: str, *, batched: bool) -> None:
        self.bus = bus
        self.jobs = jobs
        self.service = service
        self.batched = batched  # may commands come in batches?
        self.looking: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Hear commands, and what is no longer wanted."""
        await self.jobs.open()
        for left in reversed(range(OPENING_MAX)):
            try:
                await self.keep()
                break
            except BusError as error:  # another service may have changed the stream meanwhile
                if error.code != "nats.stream" or not left:
                    raise
                await asyncio.sleep(OPENING_S)
        await self.bus.listen(f"{protocol.CANCEL}*", self.jobs.cancelled)
        self.looking = asyncio.ensure_future(self.look())

    async def keep(self) -> None:
        """Have the streams and the consumers. Without the one for batches all goes on."""
        subjects = tuple(sorted(self.jobs.executors))
        await self.bus.keep(protocol.commands_stream(subjects))
        alone = Consumer(
            stream=protocol.COMMANDS,
            name=self.service,
            subjects=subjects,
            deliver=f"workflow.v1.deliver.{self.service}",
            ack_s=ACK_S,
            pending_max=self.jobs.concurrency,
        )
        await self.bus.take(alone, self.heard)
        if not self.batched:
            return
        try:
            await self.bus.keep(batches.BATCHES)
            await self.bus.take(batch_consumer(self.service, subjects), self.heard_batches)
        except BusError as error:
            log.warning("commands come one by one: %s", error)

    async def look(self) -> None:
        """Again and again: is the stream there?"""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.keep()
            except BusError as error:
                log.warning("%s", error)

    async def heard(self, messages: Sequence[Message]) -> None:
        """Commands, each in a message of its own."""
        for message in messages:
            job = job_of(message)
            if job is None:
                log.warning("a message on %s is no command: it is left out", message.subject)
                await message.ack()
                continue
            await self.jobs.line_up(job, Origin(message, 1, batched=False))
        self.jobs.begin()

    async def heard_batches(self, messages: Sequence[Message]) -> None:
        """Commands in batches."""
        for message in messages:
            try:
                parts = batches.unpacked(message.data)
            except ProtocolError as error:
                log.warning("a message on %s is left out: %s", message.subject, error)
                await message.ack()
                continue
            origin = Origin(message, len(parts), batched=True)
            self.jobs.origins.add(origin)
            jobs = [job_of(part) if is_command(part.subject) else None for part in parts]
            strange = [part for part, job in zip(parts, jobs, strict=True) if self.strange(job)]
            for job in jobs:
                if job is not None and not self.strange(job):
                    await self.jobs.line_up(job, origin)
            lost = jobs.count(None)
            if lost or not parts:
                log.warning("%d parts of a batch are no commands: they are left out", lost)
                await self.jobs.settled(origin, lost)
            if strange:
                self.jobs.errand(self.hand_on(origin, strange))
        self.jobs.begin()

    def strange(self, job: Job | None) -> bool:
        """Is this a command that nobody carries out here?"""
        return job is not None and job.call.target not in self.jobs.executors

    async def hand_on(self, origin: Origin, parts: Sequence[Enclosed]) -> None:
        """Send alone what is in a batch and not ours: somebody else may carry it out."""
        log.warning("%d commands of a batch are not known here: they go on alone", len(parts))
        subjects = tuple(sorted({part.subject for part in parts}))
        while not self.jobs.closed:
            try:
                await self.keep_commands(subjects)
                await self.bus.publish_all([part.alone for part in parts])
            except BusError as error:
                log.warning("that is tried again: %s", error)
                await asyncio.sleep(LATER_S)
            else:
                await self.jobs.settled(origin, len(parts))
                return

    async def keep_commands(self, subjects: tuple[str, ...]) -> None:
        """Have a stream for these; one of somebody else is as good. Raises BusError."""
        try:
            await self.bus.keep(protocol.commands_stream(subjects))
        except BusError as error:
            if error.code != "nats.overlap":
                raise

    async def close(self) -> None:
        """Hear no more; what is under way is finished, for a while. The rest goes to others."""
        self.jobs.closed = True
        if self.looking is not None:
            await ended([self.looking])
        await self.bus.hush()
        await self.jobs.close()
        await self.bus.close()


def batch_consumer(service: str, commands: Sequence[str] = ()) -> Consumer:
    """The consumer for batches that all workers of a service share; it says what they do."""
    return Consumer(
        stream=batches.BATCHES.name,
        name=service,
        subjects=(f"{batches.BATCH}{service}",),
        deliver=f"workflow.v1.deliver-batches.{service}",
        ack_s=ACK_S,
        pending_max=BATCHES_MAX,
        about={batches.COMMANDS_ABOUT: " ".join(commands)},
    )
