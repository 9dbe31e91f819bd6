"""Driving: when the engine works. It runs on the caller's event loop, and wakes up in time.

With `InlineDriver` so does its store: the lowest latency. `SendingDriver` is the same for a store
on a server: the loop goes on while that commits. `ThreadDriver` gives the store a thread: the loop
never waits for it.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Final, Protocol, TypeVar, cast, runtime_checkable

from pawlflow.engine.actions import Accepted, Append, Reply
from pawlflow.engine.drivers import SAFETY_MS, Engine, StoreAction
from pawlflow.engine.places import shard_of_address
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import CellId
from pawlflow.model.inputs import Input
from pawlflow.store.port import Address, Batch, Mail, StoreError

T = TypeVar("T")
Answer = asyncio.Future[Accepted | Rejected]
ROUNDS: Final = 4  # of the loop between two batches, while tenants meet


class InlineDriver:
    """The engine on an event loop. A commit holds the loop up for as long as it takes."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        self.engine = engine
        self.loop = loop
        self.waiting: dict[int, Answer] = {}
        self.tokens = 0
        self.safety_ms = SAFETY_MS  # between two looks into the mailbox, if nobody pokes
        self.scheduled: asyncio.Handle | None = None
        self.timer: asyncio.TimerHandle | None = None
        engine.reply = self.answer

    def submit(
        self, cell: CellId, incoming: Input, size: int = 0, *, fresh: bool = False
    ) -> Answer:
        """Hand in an input; the future is done once it is durable, or refused."""
        self.tokens += 1
        future = self.waiting[self.tokens] = self.loop.create_future()
        self.engine.core.submit(cell, incoming, self.tokens, size, fresh=fresh)
        self.kick()
        return future

    def tell(self, cell: CellId, incoming: Input, size: int = 0) -> None:
        """Hand in an input whose answer nobody waits for."""
        self.engine.core.submit(cell, incoming, None, size)
        self.kick()

    def offer_again(self, cells: Sequence[Address] | None) -> None:
        """Let the calls of these cells out once more; those of all, if it is not known which."""
        core = self.engine.core
        ours = (cell for cell in cells or () if shard_of_address(cell) in core.heads)
        core.silent |= dict.fromkeys(ours)
        if cells is None:
            core.recover_after, core.recovered = 0, dict.fromkeys(core.heads)
        self.kick()

    def poke(self) -> None:
        """There may be mail."""
        self.engine.core.poked()
        self.kick()

    def kick(self) -> None:
        """Let the engine work, after everything that is ready on the loop now."""
        if self.scheduled is None:
            self.scheduled = self.loop.call_soon(self.run)

    def run(self) -> None:
        """Work, and wake up in time."""
        self.scheduled = None
        wake = self.engine.pump()
        if self.timer is not None:
            self.timer.cancel()
        now = self.engine.clock.now()
        if wake is not None and wake <= now:
            self.give_way(ROUNDS if self.engine.core.is_shared(now) else 0)
            return
        wait = self.safety_ms if wake is None else min(self.safety_ms, max(0, wake - now))
        self.timer = self.loop.call_later(wait / 1000, self.wake)

    def give_way(self, rounds: int) -> None:
        """Go on after so many rounds of the loop.

        A function that wakes up needs a few to bring its receipt, and each would last a batch.
        """
        then = partial(self.give_way, rounds - 1) if rounds else self.run
        self.scheduled = self.loop.call_soon(then)

    def wake(self) -> None:
        """The timer: a deadline, or the safety look at the mailbox."""
        self.timer = None
        self.engine.core.poked()
        self.kick()

    def answer(self, reply: Reply) -> None:
        """Settle a caller's future."""
        future = self.waiting.pop(reply.token)
        if not future.done():
            future.set_result(reply.outcome)

    async def ask(self, work: Callable[[], T]) -> T:
        """Have something done with the store, after all that was asked of it before."""
        return work()

    async def close(self) -> None:
        """Finish what was handed in, then stop."""
        while self.waiting:
            await asyncio.wait(list(self.waiting.values()))
        for handle in (self.scheduled, self.timer):
            if handle is not None:
                handle.cancel()
        self.scheduled = self.timer = None


class Appending(Protocol):
    """A batch that a server is making durable."""

    def fileno(self) -> int:
        """What becomes readable when there is news."""
        ...

    def answered(self) -> bool:
        """Is the outcome known? Waits for nothing."""
        ...

    def end(self) -> None:
        """Wait for the outcome. Raises what `Store.append` raises."""
        ...


@runtime_checkable
class Sends(Protocol):
    """A store that does not have to be waited for."""

    def append_begin(self, batch: Batch, noticed: Callable[[], object]) -> Appending:
        """Begin to append; `noticed` hears of an answer that another had to wait for."""
        ...


class SendingDriver(InlineDriver):
    """The engine on an event loop, and the loop goes on while a server commits.

    One connection, one thing at a time: what else is asked of the store waits its turn.
    """

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(engine, loop)
        self.store = cast("Sends", engine.store)
        self.sent: Appending | None = None
        self.watched = -1  # the descriptor that the loop looks at
        self.mail: Sequence[Mail] = ()  # in what was sent
        self.asked: deque[StoreAction] = deque()
        engine.carry = self.carry

    def carry(self, action: StoreAction) -> None:
        """Do what is asked of the store, or line it up."""
        if self.sent is not None:
            self.asked.append(action)
        elif isinstance(action, Append):
            self.send(action.batch)
        else:
            self.engine.ask(action)()

    def send(self, batch: Batch) -> None:
        """Let the server begin; a batch that cannot even be sent has its outcome now."""
        try:
            self.sent = self.store.append_begin(batch, self.noticed)
        except StoreError as error:
            self.engine.core.appended(error, self.engine.clock.now())
        else:
            self.mail = batch.mail
            self.watched = self.sent.fileno()
            self.loop.add_reader(self.watched, self.look)

    def look(self) -> None:
        """The server said something; if it was the outcome, go on at once."""
        if self.sent is not None and self.sent.answered():
            self.settle()
            if self.scheduled is not None:
                self.scheduled.cancel()
            self.run()

    def noticed(self) -> None:
        """Somebody used the store beside the engine, so nothing more will come to look at."""
        self.loop.call_soon(self.look)

    def settle(self) -> None:
        """Tell the core what became of the batch, then do what was asked meanwhile."""
        assert self.sent is not None
        sent, self.sent = self.sent, None
        self.loop.remove_reader(self.watched)
        self.engine.guarded(partial(self.tell_outcome, sent))
        while self.asked and self.sent is None:
            self.engine.guarded(partial(self.carry, self.asked.popleft()))

    def tell_outcome(self, sent: Appending) -> None:
        """A commit that is over, well or not."""
        error: StoreError | None = None
        try:
            sent.end()
        except StoreError as trouble:
            error = trouble
        if error is None and self.mail:
            self.engine.mailed(self.mail)
        self.engine.core.appended(error, self.engine.clock.now())

    async def ask(self, work: Callable[[], T]) -> T:
        """Have something done with the store, once the core knows what became of its batch."""
        if self.sent is not None:
            self.settle()
            self.kick()
        return work()

    async def close(self) -> None:
        """Finish what was handed in, then stop."""
        await super().close()
        self.asked.clear()
        if self.sent is not None:
            self.settle()


class ThreadDriver(InlineDriver):
    """The engine on the event loop and its store on a thread: nobody waits for an fsync.

    While a commit is under way the loop goes on with what was published before it.
    """

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(engine, loop)
        self.asked: SimpleQueue[StoreAction | Callable[[], None] | None] = SimpleQueue()
        self.closed = False
        engine.carry = self.asked.put
        self.thread = threading.Thread(target=self.work, name="pawl-store", daemon=True)
        self.thread.start()

    def work(self) -> None:
        """On the thread: do what is asked of the store, one after the other."""
        while (action := self.asked.get()) is not None:
            if callable(action):
                action()
                continue
            try:
                told = self.engine.ask(action)
            except Exception as error:  # noqa: BLE001  # the loop must know
                told = partial(fail, error)
            self.loop.call_soon_threadsafe(self.heard, told)

    async def ask(self, work: Callable[[], T]) -> T:
        """Have something done with the store, after all that was asked of it before."""
        future: Future[T] = Future()

        def do() -> None:
            try:
                future.set_result(work())
            except Exception as error:  # noqa: BLE001  # who asked must know
                future.set_exception(error)

        self.asked.put(do)
        return await asyncio.wrap_future(future)

    def heard(self, told: Callable[[], None]) -> None:
        """On the loop: the store has answered."""
        if not self.closed:
            self.engine.guarded(told)
            self.kick()

    async def close(self) -> None:
        """Finish what was handed in, then stop."""
        await super().close()
        self.asked.put(None)
        await asyncio.to_thread(self.thread.join)
        self.closed = True


def fail(error: Exception) -> None:
    """Let the loop see what broke on the thread."""
    raise error


def driver_of(kind: str, store: object) -> type[InlineDriver]:
    """The driver of this name for a store."""
    if kind == "thread":
        return ThreadDriver
    return SendingDriver if isinstance(store, Sends) else InlineDriver
