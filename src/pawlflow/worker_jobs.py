"""The jobs of a worker: each command from its claim to its completion.

Commands wait in one line, whether they came alone or in batches. What is there at a time is claimed
in one transaction, and what is done at a time is remembered in one, so that a busy worker flushes
once for hundreds. Nobody waits for more to come.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from pawlflow.bus.port import Bus, BusError, Message
from pawlflow.effects.context import Context
from pawlflow.effects.registry import Executor
from pawlflow.engine.clock import SystemClock
from pawlflow.services import batches, protocol
from pawlflow.services.ending import ended
from pawlflow.services.signing import ExecutorKey
from pawlflow.worker_commands import (
    Job,
    Origin,
    completion_of,
    is_kept,
    receipt_of,
    too_large,
    unwritten,
)
from pawlflow.worker_memory import Claim, Done, Memory

log = logging.getLogger("pawl.worker")
T = TypeVar("T")
ACK_S: Final = 10.0  # in which a sign of life is due
LEASE_MS: Final = int(ACK_S * 1000)
ASK_S: Final = 2.0  # for the engine to answer
LATER_S: Final = 2.0
FINISH_S: Final = 5.0  # for what is under way when the worker is stopped
CLAIMS_MAX: Final = 500  # in a transaction, so that others get their turn


class Jobs:
    """What a worker does with the commands it hears."""

    def __init__(
        self,
        bus: Bus,
        memory: Memory,
        executors: Mapping[str, Executor],
        owner: str,
        concurrency: int,
    ) -> None:
        self.bus = bus
        self.memory = memory
        self.executors = executors
        self.owner = owner
        self.key: ExecutorKey | None = None
        self.concurrency = concurrency
        self.clock = SystemClock()
        self.running: dict[str, Job] = {}  # all that are known of, by step id
        self.origins: set[Origin] = set()
        self.waiting: deque[Job] = deque()
        self.at_work = 0  # claimed, and not ended
        self.done: list[Job] = []
        self.claiming: asyncio.Task[None] | None = None
        self.settling: asyncio.Task[None] | None = None
        self.errands: set[asyncio.Task[None]] = set()
        self.living: asyncio.Task[None] | None = None
        self.closed = False  # nothing new is begun
        self.gone = False  # nothing is told any more
        self.loop = asyncio.get_running_loop()
        # The memory never waits for functions: a claim that is not renewed in time is lost.
        self.head = ThreadPoolExecutor(1, "pawl-memory")
        self.hands = ThreadPoolExecutor(concurrency, "pawl-worker")

    async def open(self) -> None:
        """Forget what is too old, and be ready."""
        await in_thread(self.head, self.memory.forget, self.clock.now())
        self.living = asyncio.ensure_future(self.stay_alive())

    # The line

    async def cancelled(self, message: Message) -> None:
        """A command is no longer wanted."""
        job = self.running.get(message.subject.removeprefix(protocol.CANCEL))
        attempt = (message.headers or {}).get(protocol.ATTEMPT)
        if job is None or attempt not in (None, str(job.call.attempt)):
            return
        if job.told.context is not None:
            job.told.context.cancelled = True
        if job.task is not None and self.executors[job.call.target].is_async:
            job.task.cancel()

    async def line_up(self, job: Job, origin: Origin) -> None:
        """Let a command wait for its turn. One that is here already counts once."""
        self.origins.add(origin)
        known = self.running.get(job.step_id)
        if known is None:
            job.origins = [origin]
            self.running[job.step_id] = job
            self.waiting.append(job)
        elif known.call.attempt == job.call.attempt:
            known.origins.append(origin)
        else:
            await self.put_off(job, origin)

    async def put_off(self, job: Job, origin: Origin) -> None:
        """Not now: a message goes back, what is in a batch waits here."""
        if origin.batched:
            self.loop.call_later(LATER_S, self.again, job, origin)
        else:
            self.origins.discard(origin)
            await origin.message.later(LATER_S)

    def again(self, job: Job, origin: Origin) -> None:
        """What was put off is tried again, as if it had just come."""

        async def come() -> None:
            await self.line_up(Job(job.call, job.instance, job.step_id), origin)
            self.begin()

        if not self.closed:
            self.errand(come())

    # Claiming and asking

    def begin(self) -> None:
        """Take on what waits, unless that is under way, as far as there is room."""
        if self.waiting and not self.closed and (self.claiming is None or self.claiming.done()):
            self.claiming = asyncio.ensure_future(self.claim_all())

    async def claim_all(self) -> None:
        """Claim what waits, as much as may be carried out at a time."""
        while self.waiting and not self.closed and self.at_work < self.concurrency:
            count = min(len(self.waiting), self.concurrency - self.at_work, CLAIMS_MAX)
            jobs = [self.waiting.popleft() for _ in range(count)]
            claims = [Claim(job.step_id, job.call.attempt) for job in jobs]
            self.at_work += count
            try:
                now = self.clock.now()
                answers = await in_thread(
                    self.head, self.memory.claim, claims, self.owner, now, LEASE_MS
                )
            except Exception:  # of whatever keeps the memory
                log.exception("%d commands wait: the memory does not answer", count)
                self.at_work -= count
                await self.drop_all(jobs)
                continue
            mine: list[Job] = []
            for job, answer in zip(jobs, answers, strict=True):
                if answer.kind == "mine":
                    job.claimed = True
                    mine.append(job)
                    continue
                self.at_work -= 1
                if answer.completion is None:
                    await self.drop_all([job])
                else:
                    job.completion = answer.completion
                    self.ended(job)
            if mine:
                self.errand(self.execute_all(mine))

    async def drop_all(self, jobs: Iterable[Job]) -> None:
        """Put off jobs that were lined up."""
        for job in jobs:
            self.running.pop(job.step_id, None)
            for origin in job.origins:
                await self.put_off(job, origin)

    async def execute_all(self, jobs: Sequence[Job]) -> None:
        """Carry out what is still wanted."""
        together = [job for job in jobs if job.batched]
        if together:
            await self.ask_all(together)
        alone = [job for job in jobs if not job.batched]
        if alone:
            await asyncio.gather(*(self.ask(job) for job in alone))
        for job in jobs:
            if job.wanted and not self.closed:
                self.execute(job)
                continue
            if job.wanted:
                job.wanted = None  # by somebody else, for this worker goes
            self.at_work -= 1
            self.ended(job)
        self.begin()

    async def ask(self, job: Job) -> None:
        """Does the engine still wait for it? If it does not answer, nobody knows."""
        answer = await self.answer(protocol.GET_RESULT, job.asked())
        job.wanted = None
        if answer is not None:
            job.wanted = not answer.get("found") and answer.get("state") == "open"

    async def ask_all(self, jobs: Sequence[Job]) -> None:
        """The same for several at a time."""
        answer = await self.answer(batches.ARE_OPEN, {"steps": [job.asked() for job in jobs]})
        told = None if answer is None else answer.get("open")
        known = told if isinstance(told, list) and len(told) == len(jobs) else [None] * len(jobs)
        for job, open_ in zip(jobs, known, strict=True):
            job.wanted = None if open_ is None else bool(open_)

    async def answer(self, subject: str, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        """What the engine says; None if it says nothing that can be used."""
        try:
            data = await self.bus.ask(subject, msgspec.json.encode(asked), ASK_S)
            answer = msgspec.json.decode(data, type=dict[str, Any])
        except (BusError, msgspec.DecodeError) as error:
            log.warning("commands wait: the engine does not answer (%s)", error)
            return None
        if "error" in answer:
            log.warning("commands wait: %s", answer["error"])
            return None
        return answer

    # Carrying out and telling

    def execute(self, job: Job) -> None:
        """Call the function."""
        job.told.context = Context(job.call, lambda: None)
        job.task = self.loop.create_task(self.called(self.executors[job.call.target], job))
        job.task.add_done_callback(partial(self.executed, job))

    async def called(self, executor: Executor, job: Job) -> Any:
        """The function, with its arguments; a plain one in a thread."""
        arguments = executor.arguments(job.call, job.told.context)
        if executor.is_async:
            return await executor.fn(**arguments)
        return await in_thread(self.hands, executor.fn, **arguments)

    def executed(self, job: Job, task: asyncio.Task[Any]) -> None:
        """It has ended, however."""
        self.at_work -= 1
        if self.gone or (self.closed and task.cancelled()):
            return  # the worker is gone: somebody else carries it out
        try:
            receipt = receipt_of(job, task)
            completion = completion_of(job, receipt, self.key)
        except Exception as error:  # noqa: BLE001  # of a result that nobody can write, say
            receipt = unwritten(job, error)
            completion = completion_of(job, receipt, self.key)
        if len(completion) + batches.ENVELOPE > self.bus.bytes_max:
            receipt = too_large(job, len(completion))
            completion = completion_of(job, receipt, self.key)
        job.completion, job.kept = completion, is_kept(receipt)
        job.ok = receipt.outcome == "ok"
        self.ended(job)
        self.begin()

    def ended(self, job: Job) -> None:
        """It is to be remembered and told, or given back."""
        self.done.append(job)
        if self.settling is None or self.settling.done():
            self.settling = asyncio.ensure_future(self.settle_all())

    async def settle_all(self) -> None:
        """Remember what is done, together; only then it is told."""
        while self.done and not self.gone:
            jobs, self.done = self.done, []
            done = [
                Done(job.step_id, job.call.attempt, job.completion if job.kept else None, job.ok)
                for job in jobs
                if job.claimed
            ]
            try:
                if done:
                    await in_thread(self.head, self.memory.settle, done)
            except Exception:  # of whatever keeps the memory; what was done must not be forgotten
                log.exception("%d commands are done, and cannot be remembered yet", len(done))
                self.done = jobs + self.done
                await asyncio.sleep(LATER_S)
                continue
            self.errand(self.tell(jobs))

    async def tell(self, jobs: Sequence[Job]) -> None:
        """Publish; a command is acknowledged only once a stream has what became of it."""
        told = [job for job in jobs if job.completion is not None]
        letters = [job.letter for job in told if not job.batched]
        shared = [job.letter for job in told if job.batched]
        made = batches.packed(batches.COMPLETED, shared, self.bus.bytes_max)
        letters += [shared[at] for at in made.large]
        try:
            await self.bus.publish_all([*letters, *made.batches])
        except BusError as error:
            log.warning("%d commands are told of later: %s", len(told), error)
            await self.drop_all(jobs)
            return
        for job in jobs:
            if job.completion is None:
                await self.give_back(job)
                continue
            del self.running[job.step_id]
            for origin in job.origins:
                await self.settled(origin, 1)

    async def give_back(self, job: Job) -> None:
        """It was not carried out: it is not wanted, or nobody knows. What came since is new."""
        if job.wanted is not None:
            await self.settled(job.origins.pop(0), 1)
        await self.drop_all([job])

    async def settled(self, origin: Origin, count: int) -> None:
        """So many commands of a message are settled: with the last it is acknowledged."""
        origin.left -= count
        if origin.left <= 0:
            self.origins.discard(origin)
            await origin.message.ack()

    # Staying and going

    async def stay_alive(self) -> None:
        """While commands are carried out, nobody else should begin."""
        while True:
            await asyncio.sleep(ACK_S / 3)
            for origin in list(self.origins):
                await origin.message.working()
            claimed = [job.step_id for job in self.running.values() if job.claimed]
            if not claimed:
                continue
            until = self.clock.now() + LEASE_MS
            try:
                await in_thread(self.head, self.memory.renew, claimed, self.owner, until)
            except Exception:  # of whatever keeps the memory
                log.exception("%d claims could not be renewed", len(claimed))

    def errand(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin with something, and know of it."""
        task = asyncio.ensure_future(work)
        self.errands.add(task)
        task.add_done_callback(self.errands.discard)

    def under_way(self) -> set[asyncio.Task[Any]]:
        """What is not finished."""
        functions = (job.task for job in self.running.values())
        tasks = (*functions, *self.errands, self.claiming, self.settling)
        return {each for each in tasks if each is not None and not each.done()}

    async def close(self) -> None:
        """Begin with nothing more. What is under way is finished, for a while."""
        self.closed = True
        until = self.loop.time() + FINISH_S
        while (tasks := self.under_way()) and self.loop.time() < until:
            left = until - self.loop.time()
            await asyncio.wait(tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if self.living is not None:
            await ended([self.living])
        self.gone = True
        for origin in list(self.origins):
            await origin.message.later(0)
        self.memory.close()
        for pool in (self.head, self.hands):
            pool.shutdown(wait=False, cancel_futures=True)


async def in_thread(pool: ThreadPoolExecutor, fn: Callable[..., T], *args: Any, **named: Any) -> T:
    """Call something in a thread of this pool, in the context of the caller."""
    call = partial(copy_context().run, fn, *args, **named)
    return await asyncio.get_running_loop().run_in_executor(pool, call)
