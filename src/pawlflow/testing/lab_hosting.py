"""A real engine under test, in virtual time.

Everything is the engine of production: the shard, the kernel, the store, the runner. Only time is
virtual. It stands still while anything can happen, and moves when the test says so.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Final, Self

from pawlflow.alerts import Alerts
from pawlflow.app import engine_on, second_handle
from pawlflow.children import steps_of
from pawlflow.definition.plan import Plan
from pawlflow.effects.runner import CONCURRENCY, Runner
from pawlflow.embedded import Pawl
from pawlflow.engine.clock import Clock
from pawlflow.engine.drivers import Engine
from pawlflow.engine.shard import Limits
from pawlflow.model.ids import CellId, Tenant, TimeMs
from pawlflow.model.inputs import Receipt
from pawlflow.moments import Moment, moment_of
from pawlflow.retaining import Retainer, gone
from pawlflow.runs import NOTHING, Closed
from pawlflow.secrets import Source
from pawlflow.store.port import SHARDS, Address
from pawlflow.testing import lab_parts as parts
from pawlflow.testing.answers import Hang, Script, Span, span_ms
from pawlflow.testing.host import VirtualClock
from pawlflow.testing.lab_driver import Commit, Crashing, CrashPoint, LabDriver
from pawlflow.testing.lab_trouble import LabError, StillWaiting, functions_told, waiting_told
from pawlflow.testing.world import DOING, Called, LabRunner, World, is_inside
from pawlflow.trouble import NoExecutor

NOW: Final = "2026-01-01T00:00Z"  # a Thursday; every lab begins here unless it is told otherwise
PATIENCE_S: Final = 10.0  # real seconds that functions may run before a lab calls them stuck
ACT_PATIENCE_S: Final = 1.0  # the same, before an act returns without them
ROUNDS: Final = 3  # of the loop in which nothing stirs, before it counts as quiet
WAKING_ROUNDS: Final = 10  # of the loop, for functions that wake up to end before time is up
TURNS_MAX: Final = 100_000  # at one instant: more than that never ends


class HostedLab(Pawl):
    """An engine under test."""

    driver: LabDriver
    runner: LabRunner
    clock: VirtualClock
    runner_kind: ClassVar[type[Runner]] = LabRunner
    alerts_kind: ClassVar[type[Alerts]] = parts.LabAlerts
    retainer_kind: ClassVar[type[Retainer]] = parts.LabRetainer

    def __init__(  # noqa: PLR0913  # what a lab may be told
        self,
        url: str = "memory:",
        *,
        now: Moment = NOW,
        tenant: str = "default",
        concurrency: int = CONCURRENCY,
        limits: Limits | None = None,
        by: str = "python",
        secrets: Source = None,
        processes: int | None = None,
        patience: float = PATIENCE_S,
        crash: CrashPoint | None = None,
    ) -> None:
        super().__init__(
            url,
            tenant=tenant,
            concurrency=concurrency,
            limits=limits,
            by=by,
            secrets=secrets,
            processes=processes,
        )
        self.began_ms = moment_of(now, TimeMs(0))
        self.clock = VirtualClock("lab")
        self.clock.time = self.began_ms
        self.patience = patience
        self.crashing = Crashing(crash)
        self.world = World(self)
        self.lab_registry = parts.LabRegistry()
        self.registry = self.lab_registry
        self.entered = 0
        self.stirred = asyncio.Event()

    # Coming and going

    async def __aenter__(self) -> Self:
        """Begin. Entered again inside, it is the same lab."""
        if self.entered == 0:
            await self.open()
        self.entered += 1
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End. What is still open is left as it is."""
        self.entered = max(0, self.entered - 1)
        if self.entered == 0:
            await self.close()

    async def open(self) -> Self:
        """Begin; `close` is for you to call."""
        self.stirred = asyncio.Event()
        return await super().open()

    def new_clock(self) -> Clock:
        """Time that passes when the test says so; never back behind what a store has seen."""
        assert self.store is not None
        seen = max(head.now for head in self.store.heads(range(SHARDS)))
        self.clock.time = TimeMs(max(self.clock.time, seen))
        self.began_ms = self.clock.time
        return self.clock

    def new_runner(self) -> Runner:
        """Functions for real, scripts from the world."""
        runner = super().new_runner()
        assert isinstance(runner, LabRunner)
        runner.join(self.world)
        return runner

    def new_driver(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> LabDriver:
        """An engine that no clock wakes."""
        patience = min(ACT_PATIENCE_S, self.patience)
        return LabDriver(engine, loop, self, patience, self.crashing)

    # Time

    @property
    def now_ms(self) -> TimeMs:
        """The virtual time, in milliseconds since 1970."""
        return self.clock.time

    @property
    def now(self) -> datetime:
        """The virtual time."""
        return datetime.fromtimestamp(self.clock.time / 1000, UTC)

    @property
    def elapsed(self) -> timedelta:
        """The virtual time since the lab began."""
        return timedelta(milliseconds=self.clock.time - self.began_ms)

    async def skip(self, span: Span) -> None:
        """Let time pass: every deadline fires in order, and all work settles in between."""
        self.refuse_outside()
        await self.advance(self.clock.time + span_ms(span))

    async def skip_to(self, moment: Moment) -> None:
        """Let time pass until then: `"2026-11-15T06:00Z"`, or a datetime."""
        self.refuse_outside()
        at = moment_of(moment, self.clock.time)
        if at < self.clock.time:
            raise ValueError(f"{moment!r} is past: it is {self.now.isoformat()}")
        await self.advance(at)

    async def idle(self) -> None:
        """Wait until nothing more can happen at this moment. Time stands still."""
        self.refuse_outside()
        if self.publishing is not None:
            await asyncio.shield(self.publishing)
        if not await self.calm(self.patience):
            raise LabError("lab.stuck", functions_told(self.runner.busy(), self.patience))
        self.refuse_if_stopped()

    async def sleep(self, span: Span | None = None) -> None:
        """Inside a function: take that long, in virtual time. Without a span: until cancelled."""
        doing = DOING.get()
        if doing is None or not is_inside(self):
            message = "sleep() is for functions that this lab carries out; a test uses skip()"
            raise LabError("lab.misused", message)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        wake = None
        if span is not None:
            at = self.clock.time + span_ms(span)
            wake = self.world.agenda.add(at, partial(parts.wake_up, future))
        doing.sleeping += 1
        self.stir()
        try:
            await future
        finally:
            doing.sleeping -= 1
            if wake is not None:
                wake.dead = True

    async def advance(self, target: int, enough: Callable[[], bool] = lambda: False) -> None:
        """Go from deadline to deadline until then, or until it is enough."""
        await self.idle()
        while not enough():
            await parts.let_go(self.retention.retainer, self.idle)
            at = self.next_at()
            if at is None or at > target:
                self.clock.time = TimeMs(max(self.clock.time, target))
                self.driver.poke()
                await self.idle()
                return
            self.clock.time = TimeMs(max(self.clock.time, at))
            await self.wake_functions()
            self.driver.poke()
            await self.idle()

    async def wake_functions(self) -> None:
        """What is done at an instant counts as done; only then time is up."""
        self.driver.hold()
        self.world.agenda.fire(self.clock.time)
        for _ in range(WAKING_ROUNDS):
            await asyncio.sleep(0)
            if not self.runner.busy():
                break
        self.driver.release()

    def next_at(self) -> int | None:
        """When something will happen by itself."""
        core = self.driver.engine.core
        over = parts.over_at(self.retention.retainer)
        times = (self.world.agenda.next_at(), core.next_wake(), over)
        return min((at for at in times if at is not None), default=None)

    # Quiet

    def stir(self) -> None:
        """Something happened."""
        self.stirred.set()

    async def calm(self, patience: float) -> bool:
        """Wait until nothing can happen now. False: functions still run after real seconds."""
        turns, rounds = len(self.commits), 0
        while rounds < ROUNDS and self.is_open():
            self.stirred.clear()
            if self.driver.scheduled is None and not self.runner.begins() and self.runner.busy():
                try:
                    async with asyncio.timeout(patience):
                        await self.stirred.wait()
                except TimeoutError:
                    return False
            await asyncio.sleep(0)
            rounds = 0 if self.is_open() and self.stirs() else rounds + 1
            if len(self.commits) - turns > TURNS_MAX:
                message = f"{TURNS_MAX:,} commits at {self.now.isoformat()}, and no end: does a "
                raise LabError("lab.stuck", f"{message}workflow start itself, or retry at once?")
        return True

    def is_open(self) -> bool:
        """Is there an engine?"""
        return self.store is not None

    def stirs(self) -> bool:
        """Is anything going on?"""
        active = self.driver.scheduled is not None or self.runner.begins()
        return active or self.stirred.is_set() or bool(self.runner.busy())

    # Runs

    async def closed(self, address: Address, seconds: float | None) -> Closed:
        """Never waits for real. Seconds are virtual: time moves on until it is closed, or then."""
        if is_inside(self):  # a function that waits for another run
            return await super().closed(address, seconds)
        self.refuse_outside()
        await self.idle()
        if self.reader.load([address]).get(address) is None:
            raise gone(self.reader, *address)
        if seconds is not None:
            target = self.clock.time + round(seconds * 1000)
            await self.advance(target, lambda: self.has_closed(address))
        if self.has_closed(address):
            return Closed(NOTHING)
        if seconds is not None:
            raise TimeoutError
        raise self.still_waiting(address)

    async def changed(self, address: Address, turn: int) -> None:
        """Never waits for real: if nothing comes, nothing will."""
        if is_inside(self):
            return await super().changed(address, turn)
        await self.idle()
        found = self.reader.story(address, turn)
        if found is None or found.head.turn <= turn:
            raise self.still_waiting(address)
        return None

    def has_closed(self, address: Address) -> bool:
        """Is this instance closed?"""
        return self.reader.load([address])[address].head.closed_at is not None

    def still_waiting(self, address: Address) -> StillWaiting:
        """What an instance waits for, and how to go on."""
        orphans = [call.target for call in self.runner.orphans.values()]
        answer_at = self.world.agenda.next_at()
        to_come = [] if answer_at is None else [answer_at]
        text = waiting_told(self.reader, address, self.clock.time, to_come, orphans)
        return StillWaiting("lab.waiting", text)

    # The world

    def send(self, cell: CellId, receipt: Receipt) -> None:
        """A scripted service answers."""
        self.driver.send(cell, receipt)
        self.watched.settled(receipt.key)

    def script(
        self,
        name: str,
        answers: Any = None,
        *,
        after: Span | None = None,
        hang: bool = False,
        each: bool = False,
    ) -> None:
        """Let the calls of an effect, a role, a step or an item be answered by a script.

        A value is a success; a list is for one call after the other, and its last repeats. With
        `after` each answer takes that long in virtual time. With `each` every step and item of
        every run reads the list from its beginning.
        """
        self.world.scripts[name] = Script(name, Hang() if hang else answers, after=after, each=each)
        self.lab_registry.scripted.add(name)
        self.carried.clear()
        self.offered()

    def unscript(self, name: str) -> None:
        """Let the registered function carry this out again."""
        if self.world.scripts.pop(name, None) is None:
            known = ", ".join(self.world.scripts) or "nothing"
            raise LabError("lab.misused", f"{name!r} is not scripted; scripted is: {known}")
        self.lab_registry.scripted.discard(name)
        self.carried.clear()

    def calls(self, name: str | None = None) -> list[Called]:
        """Every attempt so far, in order: all, or those of an effect, a role, a step or an item."""
        found = self.world.called.values()
        return [each for each in found if name is None or name in each.names]

    def refuse_orphans(self, plan: Plan, owner: Tenant) -> None:
        """Name what neither a function nor a script carries out, before anything starts."""
        before = set(self.lab_registry.scripted)
        steps = steps_of(plan, partial(self.known_plan, owner=owner))
        self.lab_registry.scripted |= {
            name for step in steps for name in self.world.targets_of(step)
        }
        try:
            super().refuse_orphans(plan, owner)
        except NoExecutor as error:
            error.add_note('or let a script answer: lab.script(NAME, {"some": "result"})')
            raise
        finally:
            self.lab_registry.scripted = before

    # Crashes

    async def crash(self) -> None:
        """Drop the engine, and all that is in memory, and go on from what is durable."""
        self.refuse_outside()
        self.restart()
        await self.calm(ACT_PATIENCE_S)

    def restart(self) -> None:
        """A new engine on the same store. What functions were at has its time again, no more."""
        old = self.store
        assert old is not None
        self.runner.drop()
        self.store = second_handle(old)
        old.close()
        engine = engine_on(self.store, self, clock=self.clock, limits=self.limits)
        engine.core.took_over = dict.fromkeys(engine.core.heads, TimeMs(0))
        engine.core.begun.update(self.world.lost())
        runner = self.new_runner()
        assert isinstance(runner, LabRunner)
        self.runner = runner
        self.join_runner()
        self.driver.take_over(engine)

    @property
    def commits(self) -> list[Commit]:
        """Every commit so far, with the turns in it; one that a crash kept from happening too."""
        return self.crashing.commits

    @property
    def crashed(self) -> Commit | None:
        """The commit at which this lab crashed as it was told to."""
        return self.crashing.crashed

    def refuse_outside(self) -> None:
        """A lab must be entered."""
        if self.store is None:
            message = "this lab is not open: write `async with Lab() as lab:`"
            raise LabError("lab.misused", message)
        if is_inside(self):
            message = "a function of a lab cannot move its time; sleep() lets it take time"
            raise LabError("lab.misused", message)
