"""Driving in a lab: the engine works when there is something to do, and no clock ever wakes it.

It dies where it is told to, and goes on from what is durable. Starts, and what scripted services
said, are handed in again if they were not acknowledged, as whoever sent them would; all else comes
by mail, which is neither lost nor doubled.
"""

import asyncio
from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from pawlflow.driving import Answer, InlineDriver
from pawlflow.engine.actions import Accepted, Append, Reply
from pawlflow.engine.drivers import Engine, StoreAction
from pawlflow.engine.places import mail_of
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import CellId
from pawlflow.model.inputs import Input, Receipt, StartInstance
from pawlflow.store.port import Store
from pawlflow.testing.world import is_inside

Side = Literal["before", "after"]


class CrashPoint(msgspec.Struct, frozen=True):
    """Where the engine is to die: before or after a commit, counted from 1."""

    commit: int
    side: Side


class Commit(msgspec.Struct, frozen=True):
    """One commit: the turns in it, by cell and number."""

    turns: tuple[tuple[str, int], ...]

    def told(self) -> str:
        """Which turns those are, in words; of many, the first."""
        named = [f"turn {number} of {key}" for key, number in self.turns]
        more = f" and {len(named) - 2} more" if len(named) > 3 else ""
        return ", ".join(named[:2] if more else named) + more


class Crashing:
    """What was committed, and where to die, once."""

    def __init__(self, point: CrashPoint | None) -> None:
        self.point = point
        self.commits: list[Commit] = []
        self.crashed: Commit | None = None

    def die_if_here(self, side: Side) -> None:
        """Is this where to die? Once is enough."""
        if self.point == CrashPoint(len(self.commits), side):
            self.point, self.crashed = None, self.commits[-1]
            raise CrashNow


class CrashNow(BaseException):
    """The engine dies here."""


class Home(Protocol):
    """The lab that an engine is driven in."""

    store: Store | None

    def restart(self) -> None:
        """Drop what is in memory and go on from what is durable."""
        ...

    def stir(self) -> None:
        """Something happened."""
        ...

    async def calm(self, patience: float) -> bool:
        """Wait until nothing more can happen now."""
        ...


class LabDriver(InlineDriver):
    """The engine on an event loop, in virtual time."""

    def __init__(
        self,
        engine: Engine,
        loop: asyncio.AbstractEventLoop,
        home: Home,
        patience: float,
        crashing: Crashing,
    ) -> None:
        super().__init__(engine, loop)
        self.home = home
        self.patience = patience  # real seconds that an act waits for functions
        self.sent: dict[int, tuple[CellId, Input, int]] = {}  # handed in, not acknowledged
        self.mailed: dict[int, tuple[CellId, Answer]] = {}
        self.crashing = crashing
        self.held = False  # functions that wake up now come first
        engine.carry = self.carry

    def submit(
        self, cell: CellId, incoming: Input, size: int = 0, *, fresh: bool = False
    ) -> Answer:
        """Hand in an input. Done once it is durable or refused, and all that it led to is done."""
        if isinstance(incoming, StartInstance):
            answer = super().submit(cell, incoming, size)
            self.sent[self.tokens] = (cell, incoming, size)
        else:
            answer = self.mail(cell, incoming)
        if is_inside(self.home):  # a function that acts must not wait for itself
            return answer
        return self.loop.create_task(self.calmly(answer))

    async def calmly(self, answer: Answer) -> Accepted | Rejected:
        """The answer, and then quiet."""
        outcome = await answer
        await self.home.calm(self.patience)
        return outcome

    def send(self, cell: CellId, receipt: Receipt) -> None:
        """Hand in what a service says; it says so again until that is acknowledged."""
        self.tokens += 1
        self.sent[self.tokens] = (cell, receipt, 0)
        self.engine.core.submit(cell, receipt, self.tokens)
        self.kick()

    def mail(self, cell: CellId, incoming: Input) -> Answer:
        """Put an input into the mailbox, as a second terminal does."""
        assert self.home.store is not None
        [number] = self.home.store.post([mail_of(cell, incoming)])
        answer: Answer = self.loop.create_future()
        self.mailed[number] = (cell, answer)
        self.poke()
        return answer

    def kick(self) -> None:
        """Let the engine work, after everything that is ready on the loop now."""
        self.home.stir()
        if not self.held:
            super().kick()

    def hold(self) -> None:
        """Let the engine wait for a moment."""
        self.held = True

    def release(self) -> None:
        """Let it go on."""
        self.held = False
        self.poke()

    def run(self) -> None:
        """Work until there is nothing to do now."""
        self.scheduled = None
        try:
            wake = self.engine.pump()
        except CrashNow:
            self.home.restart()
            return
        self.read_answers()
        if wake is not None and wake <= self.engine.clock.now():
            self.kick()
        self.home.stir()

    def read_answers(self) -> None:
        """What became of mail."""
        store = self.home.store
        for number, (cell, answer) in list(self.mailed.items()) if store is not None else ():
            assert store is not None
            stopped = self.engine.core.stopped
            taken = store.answer(number)
            if taken is None and stopped is None:
                continue
            del self.mailed[number]
            if answer.done():
                continue
            if stopped is not None:
                answer.set_result(Rejected(stopped.code, stopped.message))
            elif taken is not None and taken.code:
                answer.set_result(Rejected(taken.code, taken.detail))
            else:
                answer.set_result(Accepted(cell.key, 0))

    def answer(self, reply: Reply) -> None:
        """What was sent is acknowledged, or refused for good."""
        self.sent.pop(reply.token, None)
        if reply.token in self.waiting:
            super().answer(reply)

    def carry(self, action: StoreAction) -> None:
        """Do what is asked of the store, unless this is where to die."""
        if not isinstance(action, Append):
            self.engine.ask(action)()
            return
        commit = commit_of(action)
        if commit.turns:
            self.crashing.commits.append(commit)
            self.crashing.die_if_here("before")
        told: Callable[[], None] = self.engine.ask(action)
        if commit.turns:
            self.crashing.die_if_here("after")
        told()

    def take_over(self, engine: Engine) -> None:
        """Another engine, on the same store: hand in again what was not acknowledged."""
        if self.scheduled is not None:
            self.scheduled.cancel()
            self.scheduled = None
        self.engine = engine
        engine.reply = self.answer
        engine.carry = self.carry
        for token, (cell, incoming, size) in self.sent.items():
            engine.core.submit(cell, incoming, token, size)
        self.poke()

    async def close(self) -> None:
        """Stop; whoever still waits is told nothing more."""
        self.drop()

    def drop(self) -> None:
        """Stop at once."""
        for future in (*self.waiting.values(), *(answer for _, answer in self.mailed.values())):
            future.cancel()
        self.waiting, self.mailed, self.sent = {}, {}, {}
        self.held = True
        if self.scheduled is not None:
            self.scheduled.cancel()
        self.scheduled = None


def commit_of(action: Append) -> Commit:
    """The turns of a batch, in order; what is only refused is none."""
    keys = {head.ref: head.cell.key for head in action.batch.heads}
    entries = (entry for frame in action.batch.frames for entry in frame.entries if entry.number)
    return Commit(tuple((str(keys[entry.ref]), entry.number) for entry in entries))
