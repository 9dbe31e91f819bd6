"""The jobs of a worker: each command from its claim to its completion."""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec

from pawlflow.bus.port import Bus, BusError, Consumer, Message
from pawlflow.effects import receipts
from pawlflow.effects.context import Context
from pawlflow.effects.registry import Executor
from pawlflow.engine.clock import SystemClock
from pawlflow.model.failure import Failure
from pawlflow.model.ids import (
    NO_ITEM,
    CellId,
    Digest,
    DurationMs,
    InstanceId,
    StepName,
    Tenant,
    WorkflowName,
)
from pawlflow.model.inputs import Receipt
from pawlflow.model.intents import UNPINNED, Call
from pawlflow.model.payload import Payload
from pawlflow.services import protocol
from pawlflow.services.signing import ExecutorKey, Said, sign
from pawlflow.worker_memory import Memory

log = logging.getLogger("pawl.worker")
ACK_S: Final = 10.0  # in which a sign of life is due
LOOK_S: Final = 1.0  # between two looks whether the stream is there
ASK_S: Final = 2.0  # for the engine to answer
LATER_S: Final = 2.0
OPENING_MAX: Final = 10  # tries to have the stream and the consumer, before giving up
OPENING_S: Final = 0.2
FINAL: Final = ("terminal", "governance")  # failures that no other attempt will mend


class Job:
    """A command that is being carried out."""

    def __init__(self, call: Call, instance: str) -> None:
        self.call = call
        self.instance = instance  # as the header names it
        self.step_id = Context(call, lambda: None).key
        self.told = receipts.Told(call)
        self.task: asyncio.Task[Any] | None = None


class Jobs:
    """What a worker does with the commands it hears."""

    def __init__(
        self,
        bus: Bus,
        memory: Memory,
        executors: Mapping[str, Executor],
        service: str,
        owner: str,
    ) -> None:
        self.bus = bus
        self.memory = memory
        self.executors = executors
        self.service = service
        self.owner = owner
        self.key: ExecutorKey | None = None
        self.concurrency = 100
        self.clock = SystemClock()
        self.running: dict[str, Job] = {}
        self.looking: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Hear commands, and what is no longer wanted."""
        await asyncio.to_thread(self.memory.forget, self.clock.now())
        for left in reversed(range(OPENING_MAX)):
            try:
                await self.keep()
                break
            except BusError as error:  # another service may have changed the stream meanwhile
                if error.code != "nats.stream" or not left:
                    raise
                await asyncio.sleep(OPENING_S)
        await self.bus.listen(f"{protocol.CANCEL}*", self.cancelled)
        self.looking = asyncio.ensure_future(self.look())

    async def keep(self) -> None:
        """Have the stream and the consumer."""
        subjects = tuple(sorted(self.executors))
        await self.bus.keep(protocol.commands_stream(subjects))
        consumer = Consumer(
            stream=protocol.COMMANDS,
            name=self.service,
            subjects=subjects,
            deliver=f"workflow.v1.deliver.{self.service}",
            ack_s=ACK_S,
            pending_max=self.concurrency,
        )
        await self.bus.take(consumer, self.heard)

    async def look(self) -> None:
        """Again and again: is the stream there?"""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.keep()
            except BusError as error:
                log.warning("%s", error)

    async def cancelled(self, message: Message) -> None:
        """A command is no longer wanted."""
        job = self.running.get(message.subject.removeprefix(protocol.CANCEL))
        if job is None:
            return
        if job.told.context is not None:
            job.told.context.cancelled = True
        if job.task is not None and self.executors[job.call.target].is_async:
            job.task.cancel()

    async def heard(self, message: Message) -> None:
        """One command, or one that comes again."""
        job = job_of(message)
        if job is None:
            log.warning("a message on %s is no command: it is left out", message.subject)
            await message.ack()
            return
        if job.step_id in self.running:  # it comes again while it is carried out
            await message.working()
            return
        self.running[job.step_id] = job
        try:
            await self.carry_through(job, message)
        finally:
            del self.running[job.step_id]

    async def carry_through(self, job: Job, message: Message) -> None:
        """Claim, ask, execute, remember, tell, acknowledge."""
        lease = int(ACK_S * 1000)
        attempt, now = job.call.attempt, self.clock.now()
        claimed = await asyncio.to_thread(
            self.memory.claim, job.step_id, attempt, self.owner, now, lease
        )
        if claimed.kind == "busy":
            await message.later(LATER_S)
            return
        if claimed.completion is not None:
            await self.tell(job, claimed.completion, message)
            return
        wanted = await self.wanted(job)
        if wanted is not True:
            await asyncio.to_thread(self.memory.release, job.step_id)
            await (message.later(LATER_S) if wanted is None else message.ack())
            return
        alive = asyncio.ensure_future(self.stay_alive(job, message))
        try:
            receipt = await self.attempt(job)
        finally:
            alive.cancel()
        completion = self.completion(job, receipt)
        if receipt.outcome == "ok" or is_final(receipt.failure):
            done = receipt.outcome == "ok"
            remember = partial(self.memory.remember, success=done)
            await asyncio.to_thread(remember, job.step_id, attempt, completion)
        else:
            await asyncio.to_thread(self.memory.release, job.step_id)
        await self.tell(job, completion, message)

    async def wanted(self, job: Job) -> bool | None:
        """Does the engine still wait for it? None: it does not answer, so nobody knows."""
        asked = {
            "tenant_id": job.call.cell.tenant,
            "step_id": job.step_id,
            "workflow_instance_id": job.instance,
        }
        try:
            data = await self.bus.ask(protocol.GET_RESULT, msgspec.json.encode(asked), ASK_S)
            answer = msgspec.json.decode(data)
        except (BusError, msgspec.DecodeError) as error:
            log.warning("%s waits: the engine does not answer (%s)", job.step_id, error)
            return None
        if "error" in answer:
            log.warning("%s waits: %s", job.step_id, answer["error"])
            return None
        return not answer.get("found") and answer.get("state") == "open"

    async def stay_alive(self, job: Job, message: Message) -> None:
        """While it is carried out, nobody else should begin."""
        while True:
            await asyncio.sleep(ACK_S / 3)
            await message.working()
            until = self.clock.now() + int(ACK_S * 1000)
            await asyncio.to_thread(self.memory.renew, job.step_id, self.owner, until)

    async def attempt(self, job: Job) -> Receipt:
        """Call the function; what it raises chooses the class of the failure."""
        executor = self.executors[job.call.target]
        job.told.context = Context(job.call, lambda: None)
        job.task = asyncio.ensure_future(called(executor, job))
        try:
            await asyncio.wait([job.task])
        except asyncio.CancelledError:
            job.task.cancel()
            raise
        if job.task.cancelled():
            return receipts.cancelled(job.told)
        error = job.task.exception()
        if error is not None:
            return receipts.raised(job.told, error)
        receipt = receipts.succeeded(job.told, job.task.result())
        assert receipt is not None, "only endpoints answer later"
        return receipt

    def completion(self, job: Job, receipt: Receipt) -> bytes:
        """What is told of it, signed if there is a key."""
        tenant, attempt = job.call.cell.tenant, job.call.attempt
        said: dict[str, Any] = {
            "workflow_instance_id": job.instance,
            "step_id": job.step_id,
            "success": receipt.outcome == "ok",
            "outcome": outcome_of(receipt),
            "attempt": attempt,
        }
        result = ""
        if receipt.result is not None:
            result = said["result_json"] = msgspec.json.encode(receipt.result.value).decode()
        if receipt.outcome != "ok":
            failure = receipt.failure
            said["error_message"] = failure.message if failure else "it was cancelled"
            said["failure_class"] = failure.kind if failure else "transient"
        if receipt.log is not None:
            said["log"] = receipt.log.value
        if self.key is not None:
            about = Said(tenant, job.instance, job.step_id, attempt, said["outcome"], result)
            said |= {"key_id": self.key.id, "signature": sign(about, self.key.private)}
        return msgspec.json.encode(said)

    async def tell(self, job: Job, completion: bytes, message: Message) -> None:
        """Publish; the command is acknowledged only once a stream has what became of it."""
        headers = {protocol.TENANT: job.call.cell.tenant}
        try:
            await self.bus.publish(protocol.COMPLETED, completion, headers)
        except BusError as error:
            log.warning("%s is told later: %s", job.step_id, error)
            await message.later(LATER_S)
            return
        await message.ack()

    async def close(self) -> None:
        """Hear no more; what is under way is finished, for a while."""
        if self.looking is not None:
            self.looking.cancel()
            await asyncio.wait([self.looking])
        await self.bus.close()
        self.memory.close()


async def called(executor: Executor, job: Job) -> Any:
    """The function, with its arguments; a plain one in a thread."""
    arguments = executor.arguments(job.call, job.told.context)
    if executor.is_async:
        return await executor.fn(**arguments)
    return await asyncio.to_thread(executor.fn, **arguments)


def is_final(failure: Failure | None) -> bool:
    """Is this a failure for good?"""
    return failure is not None and failure.kind in FINAL


def outcome_of(receipt: Receipt) -> str:
    """The word of the protocol."""
    if receipt.outcome != "ok":
        return "failed"
    return "completed_with_warnings" if receipt.warnings else "completed"


def job_of(message: Message) -> Job | None:
    """A command from its headers and body; None if it is none."""
    headers = message.headers
    key = protocol.step_key_of(headers.get(protocol.STEP_ID, ""))
    instance, attempt = headers.get(protocol.INSTANCE_ID), headers.get(protocol.ATTEMPT, "1")
    try:
        params = msgspec.json.decode(message.data) if message.data else {}
    except (msgspec.DecodeError, RecursionError):
        return None
    if key is None or not instance or not attempt.isdecimal():
        return None
    tenant = Tenant(headers.get(protocol.TENANT, "default"))
    name = InstanceId(headers.get(protocol.INSTANCE_NAME, instance))
    call = Call(
        Digest(UNPINNED),
        CellId(tenant, WorkflowName(""), name),
        key,
        int(attempt),
        "do",
        step=StepName(message.subject.rpartition(".")[2]),
        item=NO_ITEM,
        round=1,
        by_agent=False,
        target=message.subject,
        role=None,
        params=Payload.of(params, tenant),
        feedback=(),
        timeout_ms=None,
        heartbeat_ms=None,
        grace_ms=DurationMs(0),
    )
    return Job(call, instance)
