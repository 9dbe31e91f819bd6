"""A command as a worker has it: read from what came, and told as a completion."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from pawlflow.bus.port import Letter, Message
from pawlflow.effects import receipts
from pawlflow.effects.headers import uuid_text
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
from pawlflow.model.payload import Payload, nothing
from pawlflow.services import protocol
from pawlflow.services.signing import ExecutorKey, Said, sign

FINAL: Final = ("terminal", "governance")  # failures that no other attempt will mend


class Origin:
    """A message whose commands are not all settled: it is acknowledged when they are."""

    __slots__ = ("batched", "left", "message")

    def __init__(self, message: Message, count: int, *, batched: bool) -> None:
        self.message = message
        self.left = count
        self.batched = batched


class Job:
    """A command that waits for its turn, is carried out, or is told of."""

    __slots__ = (
        *("call", "claimed", "completion", "instance", "kept", "ok", "origins"),
        *("step_id", "task", "told", "wanted"),
    )

    def __init__(self, call: Call, instance: str, step_id: str) -> None:
        self.call = call
        self.instance = instance  # as the header names it
        self.step_id = step_id
        self.told = receipts.Told(call)
        self.task: asyncio.Task[Any] | None = None
        self.origins: list[Origin] = []
        self.claimed = False
        self.wanted: bool | None = True  # None: nobody knows
        self.completion: bytes | None = None
        self.kept = False  # is that so for good?
        self.ok = False

    @property
    def batched(self) -> bool:
        """Did it come in a batch? Then it is told in one."""
        return self.origins[0].batched

    @property
    def letter(self) -> Letter:
        """What is told of it."""
        assert self.completion is not None
        headers = {protocol.TENANT: self.call.cell.tenant}
        return Letter(protocol.COMPLETED, self.completion, headers)

    def asked(self) -> dict[str, str]:
        """The question whether it is still wanted."""
        return {
            "tenant_id": self.call.cell.tenant,
            "step_id": self.step_id,
            "workflow_instance_id": self.instance,
        }


class Told(Protocol):
    """A command as it came: a message, or a part of one."""

    @property
    def subject(self) -> str:
        """Which command."""
        ...

    @property
    def data(self) -> bytes:
        """Its parameters."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """What is said about it."""
        ...


def job_of(told: Told) -> Job | None:
    """A command from its headers and body; None if it is none."""
    headers = told.headers
    key = protocol.step_key_of(headers.get(protocol.STEP_ID, ""))
    instance, attempt = headers.get(protocol.INSTANCE_ID), headers.get(protocol.ATTEMPT, "1")
    try:
        params = msgspec.json.decode(told.data) if told.data else {}
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
        step=StepName(told.subject.rpartition(".")[2]),
        item=NO_ITEM,
        round=1,
        by_agent=False,
        target=told.subject,
        role=None,
        params=nothing("map", tenant) if params == {} else Payload.of(params, tenant),
        feedback=protocol.feedback_in(headers),
        timeout_ms=None,
        heartbeat_ms=None,
        grace_ms=DurationMs(0),
    )
    return Job(call, instance, uuid_text(key))


def receipt_of(job: Job, task: asyncio.Task[Any]) -> Receipt:
    """What became of it; what the function raised chooses the class of the failure."""
    if task.cancelled():
        return receipts.cancelled(job.told)
    error = task.exception()
    if error is not None:
        return receipts.raised(job.told, error)
    receipt = receipts.succeeded(job.told, task.result())
    assert receipt is not None, "only endpoints answer later"
    return receipt


def completion_of(job: Job, receipt: Receipt, key: ExecutorKey | None) -> bytes:
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
        if failure and failure.findings:
            said["findings"] = failure.findings
    if receipt.log is not None:
        said["log"] = receipt.log.value
    if key is not None:
        about = Said(tenant, job.instance, job.step_id, attempt, said["outcome"], result)
        said |= {"key_id": key.id, "signature": sign(about, key.private)}
    return msgspec.json.encode(said)


def too_large(job: Job, size: int) -> Receipt:
    """The receipt of a result that no bus would take."""
    message = f"it was carried out, but its result ({size:,} bytes) is larger than NATS takes"
    return receipts.failed(job.told, "terminal", "nats.too_large", message)


def unwritten(job: Job, error: Exception) -> Receipt:
    """The receipt of a result that cannot be told."""
    message = f"it was carried out, but its result cannot be told: {error}"
    return receipts.failed(job.told, "terminal", "result.unserialisable", message)


def is_kept(receipt: Receipt) -> bool:
    """Is this so for good? Then the command is not carried out again."""
    return receipt.outcome == "ok" or is_final(receipt.failure)


def is_final(failure: Failure | None) -> bool:
    """Is this a failure for good?"""
    return failure is not None and failure.kind in FINAL


def outcome_of(receipt: Receipt) -> str:
    """The word of the protocol."""
    if receipt.outcome != "ok":
        return "failed"
    return "completed_with_warnings" if receipt.warnings else "completed"
