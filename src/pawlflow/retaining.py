"""Retaining: the owner of a store lets instances go whose time is over, a portion at a time.

It looks once when it opens, and then when the next instance's time is over: an engine at rest asks
nothing. What is over goes by the same door as everything else, with a rest after each portion that
is as long as the portion took.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from pawlflow.archiving import Archive
from pawlflow.driving import InlineDriver
from pawlflow.engine.actions import Accepted, Notify
from pawlflow.engine.clock import Clock
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import Digest, Tenant, TimeMs
from pawlflow.projections.removed import absent
from pawlflow.removing import FIRST, Answers, Asked, Due, Removal, due_in, removing
from pawlflow.store.port import Store, StoreError
from pawlflow.trouble import NotFound, PawlError

log = logging.getLogger("pawl.retention")
ARCHIVE: Final = "PAWL_ARCHIVE"
RETENTION: Final = "PAWL_RETENTION"
AGAIN_MS: Final = 3_600_000  # until what could not be removed is looked at again
SLEEP_S_MAX: Final = 3_600.0  # a clock may be set meanwhile; to look at it costs nothing
CLOSING_S_MAX: Final = 10.0  # for the portion under way: another node may have to answer
T = TypeVar("T")


def archive_of(given: str | Path | None) -> Archive | None:
    """The folder that was given, or the one of the environment; None: nothing is archived."""
    folder = given or os.environ.get(ARCHIVE)
    return Archive(folder) if folder else None


def is_wanted(*, given: bool | None) -> bool:
    """Are instances removed at all? As it was given, or as the environment says; else yes."""
    return os.environ.get(RETENTION, "on") != "off" if given is None else given


def gone(store: Store, tenant: Tenant, key: str) -> NotFound:
    """What a caller is told of an instance that is not there, or no longer."""
    why = absent(store, tenant, key)
    return NotFound(why.code, str(why))


class Retainer:
    """Lets instances go in the process that owns their store."""

    def __init__(
        self,
        store: Store,
        driver: InlineDriver,
        clock: Clock,
        *,
        apart: bool = False,
    ) -> None:
        self.store = store
        self.driver = driver
        self.clock = clock
        self.archive: Archive | None = None  # where to keep files of them first
        self.apart = apart  # read and write files on a thread, with a handle of its own
        self.next_at: TimeMs | None = TimeMs(0)  # look: nobody knows yet
        self.timer: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None] | None = None
        self.closing = False

    # When

    def begin(self) -> None:
        """Look, and wake up in time from now on."""
        self.plan()

    def notice(self, action: Notify) -> None:
        """Instances were closed: their time may be over before all others'."""
        for turn in action.turns:
            head = turn.head
            if head.closed_at is None or not head.definition:
                continue
            plan = self.driver.engine.core.plans.known.get(Digest(head.definition))
            rule = None if plan is None else plan.retention
            until = None if rule is None else rule.until(head.state, head.closed_at)
            if until is not None:
                self.look_at(until)

    def look_at(self, time: TimeMs) -> None:
        """Look then, or before."""
        if self.next_at is None or time < self.next_at:
            self.next_at = time
            self.plan()

    def plan(self) -> None:
        """Set the timer; nothing is asked until then, and nothing at all if all are kept."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.next_at is None or self.task is not None or self.closing:
            return
        wait = max(0.0, min(SLEEP_S_MAX, (self.next_at - self.clock.now()) / 1000))
        self.timer = asyncio.get_running_loop().call_later(wait, self.wake)

    def wake(self) -> None:
        """It may be time."""
        self.timer = None
        if self.is_due():
            self.task = asyncio.get_running_loop().create_task(self.work())
        else:
            self.plan()

    def is_due(self) -> bool:
        """Is the time of an instance over, as far as is known?"""
        return self.next_at is not None and self.next_at <= self.clock.now()

    async def work(self) -> None:
        """Remove what is over. Whatever breaks is told, and tried again later."""
        try:
            await self.sweep()
        except (StoreError, PawlError) as error:
            log.warning("instances are kept though their time is over: %s [%s]", error, error.code)
            self.look_at(TimeMs(self.clock.now() + AGAIN_MS))
        finally:
            self.task = None
            self.plan()

    async def close(self) -> None:
        """Stop after the portion under way; whoever owns the store next finds the rest."""
        self.closing = True
        if self.timer is not None:
            self.timer.cancel()
        task = self.task
        if task is not None:  # it may be at work on a thread: a portion is not long
            await asyncio.wait([task], timeout=CLOSING_S_MAX)
            task.cancel()
            await asyncio.wait([task])
        if self.apart:
            self.store.close()

    # What

    async def sweep(self, rest: Callable[[float], Any] = asyncio.sleep) -> list[Removal]:
        """Remove all that is over now, portion by portion; gives what became of each."""
        done: list[Removal] = []
        after, skipped = FIRST, False
        while True:
            began = self.clock.stopwatch()
            self.next_at = None  # who closes from here on says so by itself
            due = await self.doing(lambda after=after: self.look(after))  # type: ignore[misc]
            if due.next_at is not None:
                self.look_at(due.next_at)
            told = await self.let_go(due)
            done += told
            for each in told:
                self.tell(each)
            skipped = skipped or any(each.refused for each in told)
            if due.next_at is None or due.next_at > self.clock.now() or self.closing:
                break
            after = due.last
            await rest(self.clock.stopwatch() - began)
        if skipped:
            self.look_at(TimeMs(self.clock.now() + AGAIN_MS))
        return done

    def look(self, after: tuple[int, int]) -> Due:
        """The next portion."""
        return due_in(self.store, tuple(self.driver.engine.core.heads), self.clock.now(), after)

    async def let_go(self, due: Due) -> list[Removal]:
        """Hand in what a portion needs, step by step."""
        if not due.heads:
            return []
        steps = removing(self.store, due.heads, self.archive)
        answers: Answers | None = None
        while True:
            asked = await self.doing(lambda answers=answers: further(steps, answers))  # type: ignore[misc]
            if not isinstance(asked, Asking):
                return asked
            answers = await self.hand_in(asked.inputs)

    async def hand_in(self, inputs: Asked) -> Sequence[Accepted | Rejected]:
        """All of them at once; each is answered when it is durable."""
        return await asyncio.gather(*[self.driver.submit(*each) for each in inputs])

    async def doing(self, work: Callable[[], T]) -> T:
        """Read, or write files: on the loop, or on a thread where nobody waits for the disk."""
        return await asyncio.to_thread(work) if self.apart else work()

    def tell(self, done: Removal) -> None:
        """One line for each."""
        cell, refused = done.head.cell, done.refused
        if refused is not None:
            said = f"{refused.detail} [{refused.code}]"
            log.warning("%s/%s is kept though its time is over: %s", cell.tenant, cell.key, said)
            return
        kept = f", archived as {done.archive}" if done.archive else ""
        log.info("%s/%s was removed: its time was over%s", cell.tenant, cell.key, kept)


class Retention:
    """What an engine was told about it, and whoever sees to it while the engine is open."""

    def __init__(self, given: bool | None, archive: str | Path | None) -> None:  # noqa: FBT001
        self.wanted = is_wanted(given=given)
        self.archive = archive_of(archive)
        self.retainer: Retainer | None = None

    def begin(self, new: Callable[[], Retainer]) -> None:
        """Let instances go from now on, unless all are to be kept."""
        if self.wanted:
            self.retainer = new()
            self.retainer.archive = self.archive
            self.retainer.begin()

    def look(self) -> None:
        """There are shards that were another node's: what is over there?"""
        if self.retainer is not None:
            self.retainer.look_at(TimeMs(0))

    def notice(self, action: Notify) -> None:
        """Instances may have closed."""
        if self.retainer is not None:
            self.retainer.notice(action)

    async def close(self) -> None:
        """The engine is about to close."""
        if self.retainer is not None:
            await self.retainer.close()
            self.retainer = None


class Asking:
    """What is to be handed in before it goes on."""

    def __init__(self, inputs: Asked) -> None:
        self.inputs = inputs


def further(steps: Any, answers: Answers | None) -> Asking | list[Removal]:
    """The next that is to be handed in, or how it ended."""
    try:
        return Asking(next(steps) if answers is None else steps.send(answers))
    except StopIteration as end:
        removals: list[Removal] = end.value
        return removals
