"""The world around an engine under test: scripted answers, users' functions, and what was called.

Scripted services do each call once, however often they are told of it: they know it by its id, as
a good service knows a key. Users' functions are called as often as the engine asks.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from heapq import heappop, heappush
from typing import Any, Final, Protocol
from uuid import UUID

from pawlflow.definition.plan import StepPlan
from pawlflow.effects.runner import Job, Runner
from pawlflow.model.ids import NO_ITEM, CellId, Digest, StepKey, TimeMs
from pawlflow.model.inputs import Receipt
from pawlflow.model.intents import Call, Intent, Stop
from pawlflow.testing.answers import Fail, Ok, Real, Script, receipts_of, span_ms

ANYBODY: Final = "*"


class Called:
    """One attempt that the engine asked for."""

    def __init__(self, call: Call, at: datetime) -> None:
        self.name: str = (call.role or call.target) if call.by_agent else call.target
        self.step: str = call.step
        self.item = None if call.item == NO_ITEM else call.item
        self.attempt = call.attempt
        self.key = str(UUID(bytes=bytes(call.key)))  # the same over retries and restarts
        self.arguments: Any = call.params.value
        self.feedback = list(call.feedback)
        self.undo = call.direction == "undo"
        self.workflow: str = call.cell.workflow
        self.instance: str = call.cell.key
        self.tenant: str = call.cell.tenant
        self.at = at  # virtual time
        self.times = 0  # carried out; more than once only after a crash

    @property
    def names(self) -> Iterator[str]:
        """The names it goes by, the most exact first."""
        undo = "undo/" if self.undo else ""
        if self.item is not None:
            yield f"{undo}{self.step}[{self.item}]"
        yield f"{undo}{self.step}"
        yield self.name

    def __repr__(self) -> str:
        undo = "undo of " if self.undo else ""
        item = "" if self.item is None else f"[{self.item}]"
        what = f"{undo}{self.step}{item}#{self.attempt}"
        return f"<{what} of {self.instance}: {self.name}({self.arguments!r})>"


class Entry:
    """Something on the agenda."""

    __slots__ = ("dead", "fire")

    def __init__(self, fire: Callable[[], None]) -> None:
        self.fire = fire
        self.dead = False


class Agenda:
    """What the world does later, in virtual time."""

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, Entry]] = []
        self.count = 0

    def add(self, at: int, fire: Callable[[], None]) -> Entry:
        """Do this then, behind what is there for the same instant."""
        self.count += 1
        entry = Entry(fire)
        heappush(self.heap, (at, self.count, entry))
        return entry

    def next_at(self) -> int | None:
        """When there is something to do."""
        while self.heap and self.heap[0][2].dead:
            heappop(self.heap)
        return self.heap[0][0] if self.heap else None

    def fire(self, now: int) -> None:
        """Do everything that is due."""
        while (at := self.next_at()) is not None and at <= now:
            heappop(self.heap)[2].fire()


class Engine(Protocol):
    """What the world needs of the engine it is around."""

    def send(self, cell: CellId, receipt: Receipt) -> None:
        """Bring a receipt back, until it is acknowledged."""
        ...

    def stir(self) -> None:
        """Something happened."""
        ...

    @property
    def now_ms(self) -> TimeMs:
        """The virtual time."""
        ...

    @property
    def now(self) -> datetime:
        """The virtual time, by the calendar."""
        ...


class Given:
    """The answer to one call."""

    __slots__ = ("entry", "receipts", "stopped")

    def __init__(self, receipts: Sequence[Receipt]) -> None:
        self.receipts = receipts
        self.entry: Entry | None = None  # on the agenda, as long as it is to come
        self.stopped = False


class World:
    """Scripts by name, every call so far, and what is still to come. A crash does not touch it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.scripts: dict[str, Script] = {}
        self.called: dict[Digest, Called] = {}
        self.keys: dict[Digest, StepKey] = {}
        self.given: dict[Digest, Given] = {}
        self.real: set[Digest] = set()  # calls that a script leaves to the registered function
        self.agenda = Agenda()

    def note(self, call: Call) -> Called:
        """Remember a call."""
        found = self.called.get(call.id)
        if found is None:
            found = self.called[call.id] = Called(call, self.engine.now)
            self.keys[call.id] = call.key
        return found

    def lost(self) -> dict[StepKey, TimeMs]:
        """What functions may have been at when their process died: each has its time again."""
        now = self.engine.now_ms
        return {key: now for each, key in self.keys.items() if each not in self.given}

    def script_for(self, called: Called) -> Script | None:
        """The script that a call is for: by item, step, effect or role, or the one for all."""
        return next(filter(None, map(self.scripts.get, (*called.names, ANYBODY))), None)

    def targets_of(self, step: StepPlan) -> Iterator[str]:
        """What of a step is scripted under the name of the step."""
        plain = [name.partition("[")[0] for name in self.scripts]
        if step.name in plain:
            yield step.target
        if step.undo is not None and f"undo/{step.name}" in plain:
            yield step.undo.target

    def takes(self, call: Call) -> bool:
        """Is this call answered by a script? Told again, it is answered once all the same."""
        called = self.note(call)
        if call.id in self.given:
            return True
        script = self.script_for(called)
        if script is None or call.id in self.real:
            return False
        who = (called.tenant, called.instance, next(called.names))
        answer = script.next(who, called)
        if isinstance(answer, Real):
            self.real.add(call.id)
            return False
        called.times += 1
        self.answer(call, answer if isinstance(answer, Ok | Fail) else None)
        return True

    def answer(self, call: Call, answer: Ok | Fail | None) -> None:
        """Answer now, later, or never."""
        given = self.given[call.id] = Given(() if answer is None else receipts_of(call, answer))
        if answer is None:
            return
        after = span_ms(answer.after)
        if after == 0:
            self.deliver(call, given)
        else:
            at = self.engine.now_ms + after
            given.entry = self.agenda.add(at, partial(self.deliver, call, given))

    def deliver(self, call: Call, given: Given) -> None:
        """Bring the answer to whoever asked."""
        given.entry = None
        for receipt in given.receipts:
            self.engine.send(call.cell, receipt)

    def stop(self, intent: Stop) -> bool:
        """An attempt that is no longer wanted settles at once; if it was cancelled, for good."""
        call = intent.call
        given = self.given.get(call.id)
        if given is None:
            return False
        if not given.stopped:
            given.stopped = True
            if given.entry is not None and intent.reason == "cancel":
                given.entry.dead = True
            settled = Receipt(call.key, call.attempt, "cancelled")
            self.engine.send(call.cell, settled)
        return True


class Doing:
    """A function of the user that runs now."""

    __slots__ = ("called", "engine", "sleeping")

    def __init__(self, called: Called, engine: Engine) -> None:
        self.called = called
        self.engine = engine
        self.sleeping = 0  # of its tasks, in virtual time


DOING: Final[ContextVar[Doing | None]] = ContextVar("pawl_lab_doing", default=None)


def is_inside(engine: object) -> bool:
    """Is this said by a function that the engine itself carries out?"""
    doing = DOING.get()
    return doing is not None and doing.engine is engine


class LabRunner(Runner):
    """Users' functions run for real; scripted calls are the world's. Heartbeats in virtual time."""

    world: World
    doing: dict[Digest, Doing]

    def join(self, world: World) -> None:
        """Be part of a world."""
        self.world = world
        self.doing = {}

    def publish(self, intents: Sequence[Intent]) -> None:
        """Begin calls, and stop those that are no longer wanted."""
        super().publish([each for each in intents if not self.is_scripted(each)])

    def is_scripted(self, intent: Intent) -> bool:
        """Does the world see to this?"""
        if isinstance(intent, Stop):
            return self.world.stop(intent)
        return intent.id not in self.jobs and self.world.takes(intent)

    async def carry_out(self, job: Job, task: asyncio.Task[None]) -> None:
        """One attempt, noted."""
        called = self.world.note(job.call)
        called.times += 1
        doing = self.doing[job.call.id] = Doing(called, self.world.engine)
        self.world.engine.stir()
        token = DOING.set(doing)
        try:
            await super().carry_out(job, task)
        finally:
            DOING.reset(token)
            self.doing.pop(job.call.id, None)
            self.world.engine.stir()

    def watch(self, job: Job, span_ms: int, beats: int) -> None:
        """Expect a sign of life within the span, in virtual time."""
        at = self.world.engine.now_ms + span_ms
        self.world.agenda.add(at, partial(self.look, job, span_ms, beats))

    def busy(self) -> list[Called]:
        """The functions that run now, those that sleep in virtual time left out."""
        running = [self.doing.get(each) for each in self.jobs]
        return [each.called for each in running if each is not None and not each.sleeping]

    def begins(self) -> bool:
        """Is there a call that has not begun, and could?"""
        return self.calling or self.line.is_ready()

    def registered(self) -> None:
        """Functions or scripts were added: calls that nobody could carry out may have found one."""
        orphans = self.orphans.values()
        self.publish(self.orphans.take(each for each in orphans if self.has_somebody(each)))

    def has_somebody(self, call: Call) -> bool:
        """Is there a function or a script for this?"""
        scripted = self.world.script_for(self.world.note(call)) is not None
        return scripted or self.registry.find(call) is not None

    def drop(self) -> None:
        """The process is gone: nothing that it did comes back."""
        self.closed = True
        for job in self.jobs.values():
            job.stop()
        self.jobs.clear()
        for worker in self.workers:
            worker.cancel()
        self.pool.shutdown(wait=False, cancel_futures=True)
        self.processes.close()
