"""Drivers: they carry out what the shard core asks for, on a real store, and wake it in time.

`Engine` is the machinery both share. `InlineDriver` runs it on the caller's event loop: the lowest
latency. `ThreadDriver` runs it on a thread of its own, so that nobody waits for an fsync.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from pawlflow.engine import outcomes
from pawlflow.engine.actions import (
    Accepted,
    Action,
    Append,
    Load,
    Notify,
    Publish,
    ReadDue,
    ReadHeads,
    ReadInFlight,
    ReadMail,
    Reply,
    Stopped,
)
from pawlflow.engine.cells import is_trusted
from pawlflow.engine.clock import Clock
from pawlflow.engine.marks import reached
from pawlflow.engine.shard import Shards
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import CellId, Digest, TimeMs
from pawlflow.model.inputs import Input
from pawlflow.store.port import Address, CellImage, Store, StoreError

log = logging.getLogger("pawl.engine")
Answer = asyncio.Future[Accepted | Rejected]
ROUNDS_MAX: Final = 16  # before others get the loop: recovery may go on for many seconds
SAFETY_MS: Final = 30_000  # pokes are hints: the mailbox is looked at this often even without one


class Outside(Protocol):
    """Who is told what became durable. Called where the engine runs."""

    def publish(self, action: Publish) -> None:
        """Carry out effects."""
        ...

    def notify(self, action: Notify) -> None:
        """Turns were committed."""
        ...

    def stopped(self, action: Stopped) -> None:
        """The engine can do nothing more."""
        ...


class Engine:
    """The core and its store: one call of `pump` does all that can be done now."""

    def __init__(self, core: Shards, store: Store, clock: Clock, outside: Outside) -> None:
        self.core = core
        self.store = store
        self.clock = clock
        self.outside = outside
        self.reply: Callable[[Reply], None] = lambda _: None
        self.at: Callable[[str], None] | None = None  # labelled points, for crash tests

    def pump(self) -> TimeMs | None:
        """Work; returns when there will be more to do. Never raises for itself.

        Whatever breaks in here is a defect of ours or a store that is unwell: nothing is known to
        be durable any more, so the shards stop, and everybody who waits is told.
        """
        try:
            return self.pump_on()
        except StoreError as error:
            self.broken(error.code, str(error))
        except Exception as error:
            log.exception("the engine broke")
            self.broken("engine.broken", f"{type(error).__name__}: {error}")
        return None

    def broken(self, code: str, message: str) -> None:
        """Stop, and say so."""
        outcomes.stop(self.core, code, message)
        for action in self.core.work(self.clock.now()):
            self.perform(action)

    def pump_on(self) -> TimeMs | None:
        """Work for some rounds; if there is more to do, it is time again at once."""
        for _ in range(ROUNDS_MAX):
            actions = self.core.work(self.clock.now())
            if not actions:
                return self.core.next_wake()
            for action in actions:
                self.perform(action)
        return self.clock.now()

    def drain(self) -> None:
        """Work until there is nothing to do now."""
        while (wake := self.pump()) is not None and wake <= self.clock.now():
            pass

    def perform(self, action: Action) -> None:  # noqa: C901  # one table
        """Carry out one action, and feed the answer back."""
        core, store = self.core, self.store
        match action:
            case Append():
                self.append(action)
            case Publish():
                self.outside.publish(action)
            case Reply():
                self.reply(action)
            case Notify():
                self.outside.notify(action)
            case Load():
                self.load(action)
            case ReadMail():
                core.mail_read(store.mail(action.shards, action.after, action.limit))
            case ReadDue():
                core.due_read(store.due(action.shards, action.after, action.limit))
            case ReadInFlight():
                core.in_flight_read(store.in_flight(action.shards, action.after, action.limit))
            case ReadHeads():
                core.heads_read(store.heads(action.shards), self.clock.now())
            case Stopped():
                self.outside.stopped(action)

    def append(self, action: Append) -> None:
        """Commit, and tell the core how it went."""
        trouble: StoreError | None = None
        try:
            self.store.append(action.batch)
        except StoreError as error:
            trouble = error
        self.core.appended(trouble, self.clock.now())

    def load(self, action: Load) -> None:
        """Read cells, and the definitions they run under."""
        images, broken = self.read_cells(action.cells)
        for address in [each for each, image in images.items() if not is_trusted(image)]:
            reached("snapshot.distrusted")
            whole = self.store.story(address)
            assert whole is not None
            images[address] = whole
        known = self.core.plans.known
        run_under = (Digest(image.head.definition) for image in images.values())
        wanted = [each for each in run_under if each and known.get(each) is None]
        definitions = self.store.definitions(list(dict.fromkeys([*action.definitions, *wanted])))
        self.core.loaded(images, definitions, broken)

    def read_cells(
        self, cells: Sequence[Address]
    ) -> tuple[dict[Address, CellImage], dict[Address, StoreError]]:
        """Cells by address; one that is damaged does not keep the others from being read."""
        try:
            return self.store.load(cells), {}
        except StoreError:
            images: dict[Address, CellImage] = {}
            broken: dict[Address, StoreError] = {}
        for cell in cells:
            try:
                images |= self.store.load([cell])
            except StoreError as error:
                broken[cell] = error
        return images, broken


class InlineDriver:
    """The engine on an event loop. A commit holds the loop up for as long as it takes."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        self.engine = engine
        self.loop = loop
        self.waiting: dict[int, Answer] = {}
        self.tokens = 0
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
            self.kick()
            return
        wait = SAFETY_MS if wake is None else min(SAFETY_MS, max(0, wake - now))
        self.timer = self.loop.call_later(wait / 1000, self.wake)

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

    async def close(self) -> None:
        """Finish what was handed in, then stop."""
        while self.waiting:
            await asyncio.wait(list(self.waiting.values()))
        for handle in (self.scheduled, self.timer):
            if handle is not None:
                handle.cancel()
        self.scheduled = self.timer = None


class ThreadDriver:
    """The engine on a thread of its own; answers and effects come back to the event loop."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        self.engine = engine
        self.loop = loop
        self.waiting: dict[int, Answer] = {}
        self.tokens = 0
        self.handed: list[Callable[[], None]] = []  # to the thread
        self.back: list[Callable[[], None]] = []  # to the loop
        self.turn = threading.Condition()
        self.closing = False
        self.outside = engine.outside
        engine.reply = lambda reply: self.back.append(lambda: self.answer(reply))
        engine.outside = self
        self.thread = threading.Thread(target=self.run, name="pawl-shards", daemon=True)
        self.thread.start()

    # On the loop

    def submit(
        self, cell: CellId, incoming: Input, size: int = 0, *, fresh: bool = False
    ) -> Answer:
        """Hand in an input; the future is done once it is durable, or refused."""
        self.tokens += 1
        token = self.tokens
        future = self.waiting[token] = self.loop.create_future()
        self.hand(lambda: self.engine.core.submit(cell, incoming, token, size, fresh=fresh))
        return future

    def tell(self, cell: CellId, incoming: Input, size: int = 0) -> None:
        """Hand in an input whose answer nobody waits for."""
        self.hand(lambda: self.engine.core.submit(cell, incoming, None, size))

    def poke(self) -> None:
        """There may be mail."""
        self.hand(self.engine.core.poked)

    def hand(self, what: Callable[[], None]) -> None:
        """Give the thread something to do."""
        with self.turn:
            self.handed.append(what)
            self.turn.notify()

    def answer(self, reply: Reply) -> None:
        """Settle a caller's future."""
        future = self.waiting.pop(reply.token)
        if not future.done():
            future.set_result(reply.outcome)

    def deliver(self, items: Sequence[Callable[[], None]]) -> None:
        """What the thread has to say, on the loop."""
        for item in items:
            item()

    async def close(self) -> None:
        """Finish what was handed in, then stop."""
        while self.waiting:
            await asyncio.wait(list(self.waiting.values()))
        with self.turn:
            self.closing = True
            self.turn.notify()
        await asyncio.to_thread(self.thread.join)

    # On the thread

    def run(self) -> None:
        """Work, and wait for more."""
        while not self.closing:
            with self.turn:
                handed, self.handed = self.handed, []
            for what in handed:
                what()
            wake = self.engine.pump()
            if self.back:
                items, self.back = self.back, []
                self.loop.call_soon_threadsafe(self.deliver, items)
            self.sleep(wake)

    def sleep(self, wake: TimeMs | None) -> None:
        """Until something is handed in, or it is time."""
        wait = SAFETY_MS if wake is None else min(SAFETY_MS, wake - self.engine.clock.now())
        with self.turn:
            if not self.handed and not self.closing and not self.turn.wait(max(0, wait) / 1000):
                self.engine.core.poked()

    def publish(self, action: Publish) -> None:
        """Effects start on the loop."""
        self.back.append(lambda: self.outside.publish(action))

    def notify(self, action: Notify) -> None:
        """Watchers wait on the loop."""
        self.back.append(lambda: self.outside.notify(action))

    def stopped(self, action: Stopped) -> None:
        """The loop must know."""
        self.back.append(lambda: self.outside.stopped(action))


Driver = InlineDriver | ThreadDriver
