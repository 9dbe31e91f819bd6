"""The runner: carries out calls with functions of this process, and brings their receipts back.

It is told of a call only after the commit that asked for it. It may be told again, after a restart
or a silence: a call that is being carried out is not begun twice.
"""

import asyncio
import logging
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context as ContextVars
from contextvars import copy_context
from functools import partial
from pathlib import PurePath
from typing import Any, Final

import msgspec

from pawlflow.effects.context import Cancelled, Context, Correctable, Terminal, Transient
from pawlflow.effects.registry import BindError, Executor, Registry
from pawlflow.model.codec import CodecError
from pawlflow.model.failure import FailureClass, failure_of
from pawlflow.model.ids import CellId, Digest
from pawlflow.model.inputs import Receipt
from pawlflow.model.intents import Call, Intent, Stop
from pawlflow.model.payload import Payload, PayloadError

CONCURRENCY: Final = 1_000  # attempts of this process at a time
THREADS: Final = 32  # of them, plain functions
log = logging.getLogger("pawl.effects")


class Job:
    """A call being carried out."""

    __slots__ = ("beats", "call", "context", "executor", "lost", "stopped", "task", "timer")

    def __init__(self, call: Call, executor: Executor) -> None:
        self.call = call
        self.executor = executor
        self.context: Context | None = None  # made for functions that ask for one
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.stopped: str | None = None
        self.beats = 0
        self.lost = False  # taken for lost, and said so

    def beat(self) -> None:
        """A sign of life, from whatever thread."""
        self.beats += 1

    def stop(self, reason: str) -> None:
        """Tell the function that it is no longer wanted.

        A thread cannot be stopped: it is told, and what it did is heard when it ends.
        """
        self.stopped = reason
        if self.context is not None:
            self.context.cancelled = True
        if self.task is not None and self.executor.is_async:
            self.task.cancel()


class Runner:
    """Carries out calls on an event loop, in as many tasks as there are calls that wait."""

    def __init__(
        self,
        registry: Registry,
        deliver: Callable[[CellId, Receipt, int], None],
        *,
        concurrency: int = CONCURRENCY,
        threads: int = THREADS,
    ) -> None:
        self.registry = registry
        self.deliver = deliver
        self.concurrency = concurrency
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="pawl-step")
        self.jobs: dict[Digest, Job] = {}
        self.line: deque[Call] = deque()
        self.lined: set[Digest] = set()
        self.orphans: dict[Digest, Call] = {}  # calls that nobody here can carry out
        self.workers: set[asyncio.Task[None]] = set()
        self.idle: list[asyncio.Future[None]] = []
        self.calling = False  # a worker was called, and has not come yet
        self.closed = False

    def publish(self, intents: Sequence[Intent]) -> None:
        """Begin calls, and stop those that are no longer wanted."""
        for intent in intents:
            if isinstance(intent, Stop):
                self.stop(intent)
            elif intent.id not in self.jobs and intent.id not in self.lined:
                self.lined.add(intent.id)
                self.line.append(intent)
        self.begin()

    def begin(self) -> None:
        """Call a worker, soon. One that does not have to wait for anything does the whole line."""
        if self.line and not self.calling and not self.closed:
            self.calling = True
            asyncio.get_running_loop().call_soon(self.call_worker)

    def call_worker(self) -> None:
        """Wake a worker, or make one."""
        self.calling = False
        if not self.line or self.closed:
            return
        while self.idle:
            waiting = self.idle.pop()
            if not waiting.done():
                waiting.set_result(None)
                return
        if len(self.workers) < self.concurrency:
            worker = asyncio.get_running_loop().create_task(self.work())
            self.workers.add(worker)
            worker.add_done_callback(self.workers.discard)

    async def work(self) -> None:
        """A worker: carry out the calls in line, one after the other, and wait for more.

        It calls the next worker before each function: should that one wait, the line goes on. A
        function that changes the task's context variables is the last of its worker, so that none
        sees what another has set.
        """
        task = asyncio.current_task()
        assert task is not None
        context = copy_context()
        while not self.closed:
            job = self.next_job(task)
            if job is None:
                await self.wait_for_work(task)
                continue
            self.begin()
            await self.carry_out(job, task)
            if changed(context):
                self.begin()
                return

    async def wait_for_work(self, task: asyncio.Task[None]) -> None:
        """Until somebody calls. A cancellation that comes too late for its call ends nothing."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.idle.append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if self.closed:
                raise
            task.uncancel()

    def next_job(self, task: asyncio.Task[None]) -> Job | None:
        """The next call that somebody here can carry out."""
        while self.line:
            call = self.line.popleft()
            if call.id not in self.lined:  # stopped before it began
                continue
            self.lined.discard(call.id)
            executor = self.registry.find(call)
            if executor is None:
                self.orphans[call.id] = call
                log.warning("no executor for %s (%s/%s)", call.target, call.cell.key, call.step)
                continue
            job = self.jobs[call.id] = Job(call, executor)
            job.task = task
            if call.heartbeat_ms is not None:
                self.watch(job, call.heartbeat_ms, 0)
            return job
        return None

    def stop(self, intent: Stop) -> None:
        """A call is no longer wanted. One that had not begun is settled at once."""
        call = intent.call
        self.orphans.pop(call.id, None)
        job = self.jobs.get(call.id)
        if job is None:
            self.lined.discard(call.id)
            if intent.reason == "cancel":
                self.deliver(call.cell, Receipt(call.key, call.attempt, "cancelled"), 0)
            return
        job.stop(intent.reason)

    def registered(self) -> None:
        """Executors were added: calls that nobody could carry out may have found one."""
        orphans, self.orphans = self.orphans, {}
        self.publish(list(orphans.values()))

    def watch(self, job: Job, span_ms: int, beats: int) -> None:
        """Expect a sign of life within the span, again and again."""
        loop = asyncio.get_running_loop()
        job.timer = loop.call_later(span_ms / 1000, self.look, job, span_ms, beats)

    def look(self, job: Job, span_ms: int, beats: int) -> None:
        """Was there a sign of life? If not, the attempt is taken for lost."""
        if job.call.id not in self.jobs:
            return
        if job.beats > beats:
            self.watch(job, span_ms, job.beats)
            return
        message = f"no heartbeat of {job.call.step} for {span_ms} ms"
        job.lost = True
        self.deliver(job.call.cell, failed(job.call, "timeout", "heartbeat.lost", message), 0)
        job.stop("timeout")

    async def carry_out(self, job: Job, task: asyncio.Task[None]) -> None:
        """One attempt, from its arguments to its receipt."""
        receipt: Receipt | None = None
        try:
            receipt = await self.attempt(job)
        except asyncio.CancelledError:
            if self.closed:
                raise
            if job.stopped is None:  # something that the function waited for was cancelled
                said = "CancelledError: something that it waited for was cancelled"
                receipt = failed(job.call, "agent", "effect.raised", said, job.context)
            else:
                task.uncancel()
            if job.stopped == "cancel":
                usage = usage_of(job.call, job.context)
                receipt = Receipt(job.call.key, job.call.attempt, "cancelled", usage=usage)
        finally:
            job.task = None
        self.settle(job, receipt)

    async def attempt(self, job: Job) -> Receipt:
        """Call the function; what it raises chooses the class of the failure."""
        call, executor = job.call, job.executor
        if executor.takes_ctx:
            job.context = Context(call, job.beat)
        context = job.context
        try:
            arguments = executor.arguments(call, context)
            if executor.is_async:
                result = await executor.fn(**arguments)
            else:
                result = await self.in_thread(executor, arguments)
            return succeeded(call, context, result)
        except BindError as error:
            return failed(call, "terminal", "effect.arguments", words_of(error), context)
        except Transient as error:
            return failed(call, "transient", "effect.transient", words_of(error), context)
        except Terminal as error:
            return failed(call, "terminal", "effect.terminal", words_of(error), context)
        except Correctable as error:
            code, said = "effect.correctable", words_of(error)
            return failed(call, "validation", code, said, context, findings=error.findings)
        except Cancelled:
            return Receipt(call.key, call.attempt, "cancelled", usage=usage_of(call, context))
        except (Exception, GeneratorExit) as error:  # noqa: BLE001  # users' code raises anything
            trace = "".join(traceback.format_exception(error))
            log.warning("%s of %s raised:\n%s", call.step, call.cell.key, trace)
            said = f"{type(error).__name__}: {words_of(error)}{where_of(error)}"
            return failed(call, "agent", "effect.raised", said, context)

    async def in_thread(self, executor: Executor, arguments: dict[str, Any]) -> Any:
        """Run a plain function in a thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.pool, partial(called, executor.fn, arguments))

    def settle(self, job: Job, receipt: Receipt | None) -> None:
        """Give the place free and bring the receipt back, once."""
        if self.jobs.pop(job.call.id, None) is None:
            return
        if job.timer is not None:
            job.timer.cancel()
        late = job.lost and receipt is not None and receipt.outcome != "ok"  # said already
        if receipt is not None and not late and not self.closed:
            data = receipt.result.data if receipt.result is not None else None
            self.deliver(job.call.cell, receipt, len(data or b""))

    async def close(self) -> None:
        """Stop carrying out. What was in flight is offered again when the engine comes back."""
        self.closed = True
        for job in self.jobs.values():
            if job.context is not None:
                job.context.cancelled = True
        workers = list(self.workers)
        for worker in workers:
            worker.cancel()
        if workers:
            await asyncio.wait(workers, timeout=CLOSING_S)
        self.pool.shutdown(wait=False, cancel_futures=True)


def changed(before: ContextVars) -> bool:
    """Does the present context differ from this one?"""
    now = copy_context()
    return len(now) != len(before) or any(before.get(name) is not now[name] for name in now)


MESSAGE_MAX: Final = 8_000  # characters of what went wrong
CLOSING_S: Final = 5.0  # for functions to notice that they are cancelled


def called(fn: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call a function in a thread. A future cannot carry StopIteration back."""
    try:
        return fn(**arguments)
    except StopIteration as error:
        raise RuntimeError("StopIteration left the function") from error


def words_of(error: BaseException) -> str:
    """What an exception says, if it can."""
    try:
        return str(error)
    except Exception as trouble:  # noqa: BLE001  # its __str__ is users' code, too
        return f"its own text raised {type(trouble).__name__}"


def where_of(error: BaseException) -> str:
    """The line that raised, for whoever reads the failure and not the log."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({PurePath(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""


def succeeded(call: Call, context: Context | None, result: Any) -> Receipt:
    """The receipt of a success; a result that cannot be kept is a failure for good."""
    tenant = call.cell.tenant
    try:
        payload = Payload.of(result, tenant)
    except (CodecError, RecursionError):
        try:
            payload = Payload.of(msgspec.to_builtins(result), tenant)
        except (TypeError, CodecError, RecursionError) as error:
            said = f"the result of {call.step} cannot be kept: {error}"
            return failed(call, "terminal", "result.unserialisable", said, context)
    except PayloadError as error:
        return failed(call, "terminal", error.code, str(error), context)
    kept, usage = log_of(call, context), usage_of(call, context)
    return Receipt(call.key, call.attempt, "ok", payload, log=kept, usage=usage)


def failed(  # the parts of a failure
    call: Call,
    kind: FailureClass,
    code: str,
    message: str,
    context: Context | None = None,
    findings: Any = None,
) -> Receipt:
    """The receipt of a failure. Whatever its words are, they must not keep it from arriving."""
    said = message.encode("utf-8", "replace").decode()[:MESSAGE_MAX]
    tenant = call.cell.tenant
    try:
        failure = failure_of(kind, code, said, tenant=tenant, findings=findings or [])
    except (CodecError, PayloadError):
        told = [repr(each)[:MESSAGE_MAX] for each in findings]
        failure = failure_of(kind, code, said, tenant=tenant, findings=told)
    kept, usage = log_of(call, context), usage_of(call, context)
    return Receipt(call.key, call.attempt, "failed", failure=failure, log=kept, usage=usage)


def log_of(call: Call, context: Context | None) -> Payload | None:
    """The lines a function wrote, if any."""
    if context is None or not context.lines:
        return None
    return Payload.of(context.lines, call.cell.tenant)


def usage_of(call: Call, context: Context | None) -> Payload | None:
    """What a function said that it cost, if anything."""
    if context is None or not context.usage:
        return None
    return Payload.of(context.usage, call.cell.tenant)
