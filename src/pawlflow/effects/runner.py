"""The runner: carries out calls with functions of this process, and brings their receipts back.

It is told of a call only after the commit that asked for it. It may be told again, after a restart
or a silence: a call that is being carried out is not begun twice.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context as ContextVars
from contextvars import copy_context
from functools import partial
from operator import is_
from typing import Any, Final

from pawlflow.effects import receipts
from pawlflow.effects.context import Context
from pawlflow.effects.interrupts import called, is_for_all
from pawlflow.effects.lines import Lines, Places
from pawlflow.effects.orphans import Orphans
from pawlflow.effects.processes import Errand, Place, Processes
from pawlflow.effects.progress import Keeper
from pawlflow.effects.registry import Executor, Registry
from pawlflow.effects.secrets import Hidden
from pawlflow.model.ids import CellId, Digest
from pawlflow.model.inputs import Receipt
from pawlflow.model.intents import Call, Intent, Stop

CONCURRENCY: Final = 1_000  # attempts of this process at a time
THREADS: Final = 32  # of them, plain functions
LATER_MAX: Final = 100_000  # calls that others complete, and that are known here
WAITING_MAX: Final = 10_000  # calls that are known here; more come from the journal
Resolve = Callable[[Call], Awaitable[tuple[Any, Hidden]]]  # parameters with their secrets in them


class Job:
    """A call being carried out."""

    __slots__ = (
        *("beats", "call", "executor", "kill", "places", "stopped", "task", "timer", "told"),
    )

    def __init__(self, call: Call, executor: Executor, places: Places | None = None) -> None:
        self.call = call
        self.executor = executor
        self.places = places  # it has one of these
        self.told = receipts.Told(call)
        self.kill: Callable[[], None] | None = None  # of one that runs in a process of its own
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.stopped = False
        self.beats = 0

    def beat(self) -> None:
        """A sign of life, from whatever thread."""
        self.beats += 1

    def stop(self) -> None:
        """Tell the function that it is no longer wanted, once: it may be putting things in order.

        A thread cannot be stopped: it is told, and what it did is heard when it ends.
        """
        if self.stopped:
            return
        self.stopped = True
        if self.told.context is not None:
            self.told.context.cancelled = True
        if self.kill is not None:
            self.kill()
        elif self.task is not None and self.executor.is_async:
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
        processes: int | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        self.registry = registry
        self.deliver = deliver
        self.concurrency = concurrency
        self.resolve = resolve
        self.keeper: Keeper | None = None  # of the checkpoints of loops
        self.processes = Processes(processes)
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="pawl-step")
        self.jobs: dict[Digest, Job] = {}
        self.later: OrderedDict[Digest, None] = OrderedDict()  # others complete these
        every = Places(concurrency)
        kinds = (every, Places(threads, every), Places(self.processes.count, every))
        self.line = Lines(WAITING_MAX, kinds)
        self.orphans = Orphans()  # calls that nobody here can carry out
        self.workers: set[asyncio.Task[None]] = set()
        self.idle: list[asyncio.Future[None]] = []
        self.calling = False  # a worker was called, and has not come yet
        self.alone = True  # no other process carries out calls of this store
        self.eager = 1  # workers that are called together: twice as many while the line is not done
        self.closed = False

    def publish(self, intents: Sequence[Intent]) -> None:
        """Begin calls, and stop those that are no longer wanted."""
        self.eager = self.eager if len(self.line) else 1
        for intent in intents:
            if isinstance(intent, Stop):
                self.stop(intent)
            elif intent.id in self.jobs:
                continue
            elif (executor := self.registry.find(intent)) is None:
                self.orphans.add(intent)
            else:
                self.line.put(intent, kind_of(executor))
        self.begin()

    def begin(self) -> None:
        """Call a worker, soon. One that does not have to wait for anything does the whole line."""
        if self.line and not self.calling and not self.closed:
            self.calling = True
            asyncio.get_running_loop().call_soon(self.call_worker)

    def call_worker(self) -> None:
        """Wake a worker or make one; more, if those who came have to wait for something."""
        self.calling = False
        if self.closed or not self.line.is_ready():
            return
        called = 0
        while self.idle and called < self.eager:
            waiting = self.idle.pop()
            if not waiting.done():
                waiting.set_result(None)
                called += 1
        while called < self.eager and len(self.workers) < self.concurrency:
            worker = asyncio.get_running_loop().create_task(self.work())
            self.workers.add(worker)
            worker.add_done_callback(self.workers.discard)
            called += 1
        self.eager = max(1, min(2 * self.eager, len(self.line)))

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
        while (call := self.line.take()) is not None:
            executor = self.registry.find(call)
            if executor is None:
                self.orphans.add(call)
                continue
            places = self.line.places[kind_of(executor)]
            places.take(call.cell.tenant)
            job = self.jobs[call.id] = Job(call, executor, places)
            job.task = task
            if call.heartbeat_ms is not None:
                self.watch(job, call.heartbeat_ms, 0)
            return job
        return None

    def stop(self, intent: Stop) -> None:
        """A call is no longer wanted. One that had not begun is settled at once.

        One that somebody else completes is not, nor one that timed out and that another node may
        have at work: perhaps they answer.
        """
        call = intent.call
        self.orphans.drop(call)
        job = self.jobs.get(call.id)
        if job is None:
            asked = self.line.discard(call.id) or intent.reason == "cancel" or self.alone
            if asked and call.id not in self.later:
                self.deliver(call.cell, Receipt(call.key, call.attempt, "cancelled"), 0)
            return
        job.stop()

    def abandon(self, gone: Callable[[CellId], bool]) -> None:
        """Stop what others carry out from now on, and say nothing about it.

        Of what was stopped before, they are told by mail.
        """
        self.orphans.take(call for call in self.orphans.values() if gone(call.cell))
        self.line.abandon(gone)
        for job in [each for each in self.jobs.values() if gone(each.call.cell)]:
            if not job.stopped:  # else nobody calls it again: what became of it is for them
                del self.jobs[job.call.id]
                job.stop()

    def registered(self) -> None:
        """Executors were added: calls that nobody could carry out may have found one."""
        orphans = self.orphans.values()
        self.publish(self.orphans.take(call for call in orphans if self.registry.find(call)))

    def watch(self, job: Job, span_ms: int, beats: int) -> None:
        """Expect a sign of life within the span, again and again."""
        loop = asyncio.get_running_loop()
        job.timer = loop.call_later(span_ms / 1000, self.look, job, span_ms, beats)

    def look(self, job: Job, span_ms: int, beats: int) -> None:
        """Was there a sign of life? If not, the attempt is taken for lost."""
        if job.stopped or self.jobs.get(job.call.id) is not job:
            return
        if job.beats > beats:
            self.watch(job, span_ms, job.beats)
            return
        message = f"no heartbeat of {job.call.step} for {span_ms} ms"
        receipt = receipts.failed(job.told, "timeout", "heartbeat.lost", message)
        self.deliver(job.call.cell, receipt, 0)
        job.stop()

    async def carry_out(self, job: Job, task: asyncio.Task[None]) -> None:
        """One attempt, from its arguments to its receipt."""
        receipt: Receipt | None = None
        try:
            receipt = await self.attempt(job)
        except asyncio.CancelledError:
            if self.closed:
                raise
            if not job.stopped:  # something that the function waited for was cancelled
                said = "CancelledError: something that it waited for was cancelled"
                receipt = receipts.failed(job.told, "agent", "effect.raised", said)
            else:
                task.uncancel()
                receipt = receipts.cancelled(job.told)
        finally:
            job.task = None
            if job.places is not None:
                job.places.leave(job.call.cell.tenant)
        self.settle(job, receipt)

    async def attempt(self, job: Job) -> Receipt | None:
        """Call the function; what it raises chooses the class of the failure."""
        call, executor, told = job.call, job.executor, job.told
        try:
            params = None
            if b"$secret" in (call.params.data or b"") and self.resolve is not None:
                params, told.hidden = await self.resolve(call)
            if executor.takes_ctx:
                told.context = self.context_of(job)
            arguments = executor.arguments(call, told.context, params)
            if executor.is_async:
                result = await executor.fn(**arguments)
            elif executor.place is not None:
                result = await self.in_process(job, executor.place, arguments)
            else:
                result = await self.in_thread(executor, arguments)
            return receipts.succeeded(told, result)
        except BaseException as error:  # users' code raises anything
            if is_for_all(error):
                raise
            return receipts.raised(told, error)

    def context_of(self, job: Job) -> Context:
        """What the function may know of its attempt."""
        context = job.executor.context(job.call, job.beat, self)
        context.hide(job.told.hidden)
        return context

    async def in_thread(self, executor: Executor, arguments: dict[str, Any]) -> Any:
        """Run a plain function in a thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.pool, partial(called, executor.fn, (), arguments))

    async def in_process(self, job: Job, place: Place, arguments: dict[str, Any]) -> Any:
        """Run a plain function in a process of its own; stopping kills it."""
        arguments.pop("ctx", None)  # it gets one over there
        errand = Errand(job.call, place, arguments, job.told.context, job.beat)
        job.kill = partial(self.processes.kill, errand)
        return await self.processes.run(errand)

    def settle(self, job: Job, receipt: Receipt | None) -> None:
        """Give the place free and bring the receipt back, once."""
        if self.jobs.get(job.call.id) is not job:  # it was abandoned, and perhaps begun again
            return
        del self.jobs[job.call.id]
        if job.timer is not None:
            job.timer.cancel()
        if receipt is None and not self.closed:
            self.later[job.call.id] = None
            if len(self.later) > LATER_MAX:
                self.later.popitem(last=False)
        # Once it is closed a success is all that counts: the rest is offered again.
        if receipt is not None and (not self.closed or receipt.outcome == "ok"):
            data = receipt.result.data if receipt.result is not None else None
            self.deliver(job.call.cell, receipt, len(data or b""))

    async def close(self) -> None:
        """Stop carrying out. What was in flight is offered again when the engine comes back."""
        self.closed = True
        for job in self.jobs.values():
            if job.told.context is not None:
                job.told.context.cancelled = True
        workers = list(self.workers)
        for worker in workers:
            worker.cancel()
        if workers:
            await asyncio.wait(workers, timeout=CLOSING_S)
        self.pool.shutdown(wait=False, cancel_futures=True)
        self.processes.close()


def kind_of(executor: Executor) -> int:
    """Where a function runs: on the loop, in a thread, in a process of its own."""
    return 0 if executor.is_async else 1 if executor.place is None else 2


def changed(before: ContextVars) -> bool:
    """Does the present context differ from this one?"""
    now = copy_context()
    same = map(is_, now.values(), map(before.get, now))  # often asked: no generator of ours
    return len(now) != len(before) or not all(same)


CLOSING_S: Final = 5.0  # for functions to notice that they are cancelled
