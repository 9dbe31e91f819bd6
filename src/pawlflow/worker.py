"""`Worker`: a service on NATS that keeps the idempotency contract.

It claims a command by its step id, asks the engine whether it is still wanted, carries it out,
remembers what came of it, and tells. A command that comes again is told again, not done again.
"""

import asyncio
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from uuid import uuid1

import msgspec

from pawlflow.app import connect_bus
from pawlflow.bus.port import Bus
from pawlflow.effects.context import Context as Context
from pawlflow.effects.context import Correctable as Correctable
from pawlflow.effects.context import Terminal as Terminal
from pawlflow.effects.context import Transient as Transient
from pawlflow.effects.registry import Executor, executor_of
from pawlflow.model.trouble import PawlError as PawlError
from pawlflow.services import protocol
from pawlflow.services.gateway import Nats as Nats
from pawlflow.services.signing import ExecutorKey, Said, sign
from pawlflow.store.postgres_url import is_postgres
from pawlflow.worker_hearing import Hearing
from pawlflow.worker_jobs import Jobs
from pawlflow.worker_memory import Memory, SqliteMemory

__all__ = [
    *("Context", "Correctable", "Nats", "PawlError", "Terminal", "Transient"),
    *("Worker", "publish_step_completion"),
]
F = TypeVar("F", bound=Callable[..., Any])
NATS: Final = "PAWL_NATS"
KEY: Final = "PAWL_EXECUTOR_KEY"
NOWHERE: Final = "nats://127.0.0.1:4222"
TELL_S: Final = 5.0  # for the engine to keep what it is told


class Worker:
    """A service: `worker = Worker(nats="nats://...", service="refdata")`.

    `nats` is a URL (default: PAWL_NATS), or a client of nats-py; `memory` a SQLite file that all
    workers of the service on this machine share, or `postgresql://...` for those on several; `key`
    an executor's key (default: PAWL_EXECUTOR_KEY), with which completions are signed. At most
    `concurrency` functions run at a time. With `batches=False` commands come one by one.
    """

    def __init__(
        self,
        nats: Any = None,
        service: str = "",
        *,
        memory: str | None = None,
        key: str | None = None,
        concurrency: int = 100,
        batches: bool = True,
    ) -> None:
        self.nats = nats or os.environ.get(NATS) or NOWHERE
        self.service = service
        self.memory_url = memory or f"sqlite:///.pawl/worker-{service}.db"
        self.key = key_of(key)
        self.concurrency = concurrency
        self.batches = batches
        self.executors: dict[str, Executor] = {}
        self.hearing: Hearing | None = None

    def command(self, subject: str) -> Callable[[F], F]:
        """Let a function carry out a command: `@worker.command("refdata.v1.party.save")`."""
        if not protocol.is_command(subject) or not subject.startswith(f"{self.service}."):
            message = f"{subject!r} is no command: {self.service or 'SERVICE'}.v1.RESOURCE.ACTION"
            raise PawlError("worker.command", message)
        if subject in self.executors:
            raise PawlError("worker.command", f"{subject} has a function already")

        def register(fn: F) -> F:
            self.executors[subject] = executor_of(subject, fn)
            return fn

        return register

    async def open(self) -> Self:
        """Take commands from now on; `close` is for you to call."""
        if not self.executors:
            message = f"the worker {self.service} has no function: @worker.command(SUBJECT)"
            raise PawlError("worker.command", message)
        memory = await asyncio.to_thread(memory_at, self.memory_url)
        try:
            bus: Bus = await connect_bus(self.nats, f"pawl-worker-{self.service}")
        except PawlError:
            memory.close()
            raise
        owner = f"{os.getpid()}-{uuid1().hex}"
        jobs = Jobs(bus, memory, self.executors, owner, self.concurrency)
        jobs.key = self.key
        self.hearing = Hearing(bus, jobs, self.service, batched=self.batches)
        await self.hearing.open()
        return self

    async def close(self) -> None:
        """Stop. What is under way is finished, or comes again to somebody else."""
        if self.hearing is not None:
            await self.hearing.close()
            self.hearing = None

    async def run(self) -> None:
        """Work until cancelled."""
        async with self:
            await asyncio.Event().wait()

    async def signal(
        self, instance: str, event: str, data: Any = None, *, tenant: str = "default"
    ) -> None:
        """Tell one instance that something happened; it is in its journal when this returns.

        Raises PawlError: if no engine answers, tell it again later; a second time is harmless.
        """
        await self.say(protocol.SIGNAL, {"instance_id": instance, "event": event}, data, tenant)

    async def emit(self, event: str, data: Any = None, *, tenant: str = "default") -> None:
        """Tell everybody who waits for an event, or is started by it. Raises PawlError."""
        await self.say(protocol.EMIT, {"event": event}, data, tenant)

    async def say(self, subject: str, about: dict[str, Any], data: Any, tenant: str) -> None:
        """Ask the engine to keep something. Raises PawlError if it refuses, or is not there."""
        if self.hearing is None:
            raise PawlError("worker.closed", "the worker is not open: `async with worker:` first")
        asked = {"tenant_id": tenant, "by": self.service, **about, "data": data}
        told = await self.hearing.bus.ask(subject, msgspec.json.encode(asked), TELL_S)
        error = msgspec.json.decode(told).get("error")
        if error is not None:
            raise PawlError(error["code"], error["message"])

    async def __aenter__(self) -> Self:
        """Take commands from now on."""
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        await self.close()


def memory_at(url: str) -> Memory:
    """The memory behind a URL. Raises PawlError."""
    if not is_postgres(url):
        return SqliteMemory(url)
    from pawlflow.worker_postgres import PostgresMemory

    return PostgresMemory(url)


def key_of(given: str | None) -> ExecutorKey | None:
    """The key to sign with, if there is one. Raises PawlError."""
    text = given or os.environ.get(KEY)
    return ExecutorKey.read(text) if text else None


async def publish_step_completion(  # noqa: PLR0913  # what a completion consists of
    nats: Any,
    step_id: str,
    instance_id: str,
    success: bool,  # noqa: FBT001  # the words of the protocol
    result_json: str | None = None,
    error: str | None = None,
    *,
    attempt: int | None = None,
    tenant: str = "default",
    outcome: str | None = None,
    failure_class: str | None = None,
    findings: list[Any] | None = None,
    log: list[Any] | None = None,
    key: str | None = None,
) -> None:
    """Tell what became of a command, by a client of nats-py; a stream has it when this returns.

    With a key (or PAWL_EXECUTOR_KEY) it is signed; `attempt` and `tenant` are those of the command.
    """
    said: dict[str, Any] = {
        "workflow_instance_id": instance_id,
        "step_id": step_id,
        "success": success,
        "result_json": result_json,
        "error_message": error,
        "attempt": attempt,
        "outcome": outcome,
        "failure_class": failure_class,
        "findings": findings,
        "log": log,
    }
    holder = key_of(key)
    if holder is not None:
        said |= signed_by(holder, said, tenant)
    body = {name: value for name, value in said.items() if value is not None}
    data = msgspec.json.encode(body)
    headers = {protocol.TENANT: tenant}
    await nats.jetstream().publish(protocol.COMPLETED, data, headers=headers)


def signed_by(holder: ExecutorKey, said: dict[str, Any], tenant: str) -> dict[str, Any]:
    """What a signature adds to a completion."""
    attempt = said["attempt"] or 1
    told = said["outcome"] or ("completed" if said["success"] else "failed")
    instance, result = said["workflow_instance_id"], said["result_json"] or ""
    about = Said(tenant, instance, said["step_id"], attempt, told, result)
    return {"attempt": attempt, "key_id": holder.id, "signature": sign(about, holder.private)}
