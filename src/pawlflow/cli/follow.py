"""Following an instance to its end: as the owner of its store, or beside the one who is.

Nothing depends on this process staying: whoever drives the store next goes on where it stops.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any, Final, TypeVar

import msgspec

from pawlflow.app import considerate, open_store, owned_elsewhere
from pawlflow.cli.executors import Executors
from pawlflow.cli.family import Family
from pawlflow.cli.reruns import Reruns
from pawlflow.cli.screen import Screen
from pawlflow.cli.session import CLOSED, Session, head_of
from pawlflow.embedded import Pawl
from pawlflow.model.ids import InstanceId
from pawlflow.projections.kin import Kin
from pawlflow.projections.reading import story_of
from pawlflow.projections.show import show
from pawlflow.runs import Run
from pawlflow.store.port import Store, StoreError
from pawlflow.trouble import NoExecutor

LOOK_S: Final = (0.05, 0.5)  # between two looks at a store that another process writes
BREATH: Final = 5  # looking takes a sixth of the time
BREATH_S_MAX: Final = 2.0  # but nobody waits longer: a look costs only what came since the last one
OWNER_S: Final = 1.0  # between two looks for an owner that may have gone
IDLE_S: Final = 0.25  # between two looks for calls that nobody here can carry out
T = TypeVar("T")
Begin = Callable[[Pawl], Awaitable[Run]]


class Task(msgspec.Struct, frozen=True):
    """What is followed, and by whom its steps are carried out."""

    here: Session
    key: InstanceId
    executors: Executors
    screen: Screen


class OwnedError(Exception):
    """Another process owns the store."""


async def drive(task: Task, begin: Begin, pawl: Pawl) -> dict[str, Any]:
    """Own the store and follow the instance in it. Raises OwnedError before anything began."""
    pawl.registry, pawl.secrets = task.executors, task.executors.secrets
    task.executors.deliver = pawl.deliver
    task.executors.parent_of = lambda cell: Kin(pawl.reader, cell.tenant).parent(cell.key)
    try:
        async with pawl:
            reruns = Reruns(Kin(pawl.reader, task.here.tenant))
            task.executors.calls_before = reruns.calls_before
            return await follow_run(task, pawl, await begin(pawl))
    except StoreError as error:
        if error.code == "store.owned":
            raise OwnedError from error
        raise
    finally:
        if pawl.store is not None:  # it was opened, but is another's
            pawl.store.close()


async def follow_run(task: Task, pawl: Pawl, run: Run) -> dict[str, Any]:
    """Show every move of an instance that this process drives, and of its children."""
    closed = asyncio.ensure_future(pawl.closed((run.tenant, run.id), None))
    family = Family(pawl.reader, story_of(pawl.reader, run.tenant, run.id))
    waiting: set[asyncio.Future[Any]] = {closed}
    try:
        while not task.screen.watched and not closed.done():
            refuse_orphans(pawl, family)
            await asyncio.wait(waiting, timeout=IDLE_S)
        while True:
            shown, took = timed(family.look)
            if shown is not None:
                task.screen.update(shown)
                if shown["state"] in CLOSED:
                    return family.whole()
            await asyncio.wait([closed], timeout=min(BREATH * took, BREATH_S_MAX))
            moved = {asyncio.ensure_future(pawl.changed(*each)) for each in family.open()}
            waiting = {closed, *moved}
            while not any(each.done() for each in waiting):
                refuse_orphans(pawl, family)
                await asyncio.wait(waiting, timeout=IDLE_S, return_when=asyncio.FIRST_COMPLETED)
                if family.awaited or family.begins:
                    break
            if closed.done():
                closed.result()  # raises what stopped the engine
            for change in moved:
                change.cancel()
    finally:
        for each in waiting:
            each.cancel()


def timed(look: Callable[[], T]) -> tuple[T, float]:
    """What was seen, and how long it took to see it."""
    began = time.perf_counter()
    return look(), time.perf_counter() - began


def refuse_orphans(pawl: Pawl, family: Family) -> None:
    """A call of this instance that nobody here can carry out would be waited for in vain."""
    calls = [each for each in pawl.runner.orphans.values() if family.has(each.cell)]
    if calls:
        reason = "; ".join(filter(None, dict.fromkeys(map(pawl.watched.reason, calls))))
        targets = sorted({each.target for each in calls})
        raise NoExecutor(calls[0].cell.workflow, targets, reason)


async def see_through(task: Task) -> dict[str, Any]:
    """Follow until closed, driving the store whenever nobody else does."""
    told = False
    while True:
        try:
            pawl = Pawl(considerate(task.here.url), tenant=task.here.tenant)
            return await drive(task, lambda entered: known_run(task, entered), pawl)
        except OwnedError:
            with closing(open_store(task.here.url)) as store:
                if not owned_elsewhere(store):  # somebody has it for a moment
                    await asyncio.sleep(LOOK_S[0])
                    continue
                if not told:
                    tell_owner(task, store)
                told = True
                shown = await look_on(task, store)
                if shown is not None:
                    return shown


async def known_run(task: Task, pawl: Pawl) -> Run:
    """The run of an instance that exists."""
    head_of(task.here, pawl.reader, task.key)
    return pawl.run(task.key, task.here.tenant)


def tell_owner(task: Task, store: Store) -> None:
    """Say who does the work."""
    facts = store.facts()
    mine = task.executors.effects or task.executors.stubs is not None
    unused = "; --worker and --stubs are for when nobody does" if mine else ""
    task.screen.say(
        f"process {facts['owner']} drives {facts['path']} and carries the steps out{unused}"
    )


async def look_on(task: Task, store: Store) -> dict[str, Any] | None:
    """Look at an instance until it is closed, or until nobody owns its store any more."""
    owned_at, wait = time.monotonic(), LOOK_S[0]
    head_of(task.here, store, task.key)
    family = Family(store, story_of(store, task.here.tenant, task.key))
    while True:
        shown, took = timed(family.look)
        if shown is not None:
            wait = max(LOOK_S[0], min(BREATH * took, BREATH_S_MAX))
            task.screen.update(shown)
            if shown["state"] in CLOSED:
                return family.whole()
        if time.monotonic() - owned_at > OWNER_S:
            owned_at = time.monotonic()
            if store.facts()["owner"] is None:
                return None
        await asyncio.sleep(wait)
        wait = min(max(wait, LOOK_S[1]), 2 * wait)


def shown_now(here: Session, store: Store, key: str) -> dict[str, Any]:
    """The object of `show`."""
    story, kin = story_of(store, here.tenant, InstanceId(key)), Kin(store, here.tenant)
    return show(story, kin=kin)
