"""`Pawl`: an engine in this process.

A store, the shards it owns, and the functions that carry out effects. Leaving it loses nothing;
entering it again goes on with everything that was in flight.
"""

import asyncio
from types import TracebackType
from typing import Any, Literal, Self

import msgspec

from pawlflow import requests
from pawlflow.acts import Acts, refusal
from pawlflow.app import DEFAULT_URL, engine_on, open_store, pokes_of, second_handle
from pawlflow.definition.plan import Plan
from pawlflow.definition.shape import Workflow
from pawlflow.driving import InlineDriver, ThreadDriver
from pawlflow.effects.runner import CONCURRENCY, Runner
from pawlflow.engine.actions import Notify, Publish, Stopped
from pawlflow.engine.admission import admit_start
from pawlflow.engine.clock import SystemClock, time_ordered_id
from pawlflow.engine.shard import Limits
from pawlflow.kernel.draft import Rejected
from pawlflow.library import Library
from pawlflow.model.codec import CodecError
from pawlflow.model.ids import CellId, InstanceId, Tenant
from pawlflow.model.inputs import Receipt, StartInstance
from pawlflow.model.payload import PayloadError
from pawlflow.moments import Moment, moment_of
from pawlflow.operations import Operations
from pawlflow.runs import NOTHING, Closed, Run, closed_by
from pawlflow.store.port import Address, StoreError
from pawlflow.trouble import NotFound, PawlError


class Pawl(Library, Acts, Operations):
    """An engine in this process: `async with Pawl("sqlite:///pawl.db") as pawl: ...`."""

    driver: InlineDriver

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        tenant: str = "default",
        driver: Literal["inline", "thread"] = "inline",
        concurrency: int = CONCURRENCY,
        limits: Limits | None = None,
        by: str = "python",
    ) -> None:
        super().__init__(tenant, by)
        self.url = url
        self.driver_kind = driver
        self.limits = limits
        self.concurrency = concurrency
        self.closing: dict[Address, list[asyncio.Future[Closed]]] = {}
        self.changing: dict[Address, list[asyncio.Future[None]]] = {}
        self.trouble: Stopped | None = None

    # Coming and going

    async def __aenter__(self) -> Self:
        """Own the store, and go on with everything in flight."""
        loop = asyncio.get_running_loop()
        self.store = open_store(self.url)
        self.clock = SystemClock()
        try:
            engine = engine_on(self.store, self, clock=self.clock, limits=self.limits)
        except StoreError:
            self.store.close()
            self.store = None
            raise
        self.reader = second_handle(self.store)
        self.runner = Runner(self.registry, self.deliver, concurrency=self.concurrency)
        made = InlineDriver if self.driver_kind == "inline" else ThreadDriver
        self.driver = made(engine, loop)
        self.pokes = pokes_of(self.store)
        if self.pokes is not None:
            loop.add_reader(self.pokes.fileno(), self.poked)
        waiting, self.unpublished = self.unpublished, {}
        try:
            await self.publish_all(waiting)
        except PawlError:  # nobody will leave what was never entered
            await self.__aexit__(None, None, None)
            raise
        self.driver.poke()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop. What is in flight is in the journal, and goes on when somebody enters again."""
        if self.pokes is not None:
            asyncio.get_running_loop().remove_reader(self.pokes.fileno())
            self.pokes.close()
        if self.publishing is not None:
            await asyncio.wait([self.publishing])
        await self.runner.close()
        await self.driver.close()
        self.reader.close()
        if self.store is not None:
            self.store.close()
        self.store = None

    def poked(self) -> None:
        """Another process says that there is mail."""
        if self.pokes is not None:
            self.pokes.drain()
        self.driver.poke()

    # Starting and acting

    async def start(  # what a start consists of
        self,
        workflow: str | Workflow,
        input: Any = None,  # the word of the documents
        *,
        id: str | None = None,
        tenant: str | None = None,
        by: str = "python",
        at: Moment | None = None,
    ) -> Run:
        """Start an instance; durable when this returns. The same id and input: the same run.

        With `at` it is created now and starts then: `"+10m"`, a time, or a timedelta.
        """
        plan = await self.plan_for(workflow)
        if plan.definition not in self.carried:
            self.refuse_orphans(plan)
        whose = Tenant(tenant or self.tenant)
        if whose != self.tenant:
            await self.lend_children(plan, whose)
        if id is None:
            key = InstanceId(time_ordered_id(self.clock.now(), self.clock.entropy()))
        else:
            key = requests.instance_cell(whose, id).key
        start = begin(plan, {} if input is None else input, whose, by)
        if isinstance(start, Rejected):
            raise refusal(start)
        if at is not None:
            start = msgspec.structs.replace(start, start_at=moment_of(at, self.clock.now()))
        cell = CellId(whose, plan.workflow, key)
        size = len(start.input.data or b"")
        outcome = await self.driver.submit(cell, start, size, fresh=id is None)
        if isinstance(outcome, Rejected):
            raise refusal(outcome)
        return Run(self, whose, key)

    def run(self, id: str, tenant: str | None = None) -> Run:
        """A run that was started before."""
        whose = Tenant(tenant or self.tenant)
        key = InstanceId(id)
        if not self.reader.load([(whose, key)]):
            raise NotFound("instance.unknown", f"no instance {id!r}")
        return Run(self, whose, key)

    # What the engine tells

    def deliver(self, cell: CellId, receipt: Receipt, size: int) -> None:
        """A receipt comes back through the same door as everything else."""
        self.driver.tell(cell, receipt, size)

    def publish(self, action: Publish) -> None:
        """Effects, after their commit."""
        self.runner.publish(action.intents)

    def notify(self, action: Notify) -> None:
        """Wake those who wait for an instance."""
        closing, changing = self.closing, self.changing
        if not closing and not changing:
            return
        for turn in action.turns:
            address = (turn.cell.tenant, turn.cell.key)
            if turn.head.closed_at is not None and address in closing:
                for future in closing.pop(address):
                    if not future.done():
                        future.set_result(closed_by(turn.stepped.turn.events[-1]))
            for changed in changing.pop(address, ()):
                if not changed.done():
                    changed.set_result(None)

    def stopped(self, action: Stopped) -> None:
        """The store failed: whoever waits is told."""
        self.trouble = action
        waiting: list[asyncio.Future[Any]] = []
        for closing in self.closing.values():
            waiting += closing
        for changing in self.changing.values():
            waiting += changing
        for future in waiting:
            if not future.done():
                future.set_exception(PawlError(action.code, action.message))

    def refuse_if_stopped(self) -> None:
        """Nothing more will happen once the store has failed."""
        if self.trouble is not None:
            raise PawlError(self.trouble.code, self.trouble.message)

    async def closed(self, address: Address, seconds: float | None) -> Closed:
        """Wait until an instance is closed."""
        self.refuse_if_stopped()
        future: asyncio.Future[Closed] = asyncio.get_running_loop().create_future()
        self.closing.setdefault(address, []).append(future)
        if not self.driver.engine.core.knows_open(address):
            found = self.reader.load([address]).get(address)
            if found is None:
                raise NotFound("instance.unknown", f"no instance {address[1]!r}")
            if found.head.closed_at is not None and not future.done():
                future.set_result(Closed(NOTHING))
        if seconds is None:
            return await future
        async with asyncio.timeout(seconds):
            return await future

    async def changed(self, address: Address, turn: int) -> None:
        """Wait until an instance has more turns than these."""
        self.refuse_if_stopped()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.changing.setdefault(address, []).append(future)
        found = self.reader.story(address, turn)
        if found is None or found.head.turn <= turn:
            await future


def begin(plan: Plan, value: Any, tenant: Tenant, by: str) -> StartInstance | Rejected:
    """A start whose input can be kept and fits the definition's schema."""
    try:
        return admit_start(plan, value, tenant=tenant, by=by)
    except PayloadError as error:
        return Rejected(error.code, str(error))
    except CodecError:
        pass
    try:
        return admit_start(plan, msgspec.to_builtins(value), tenant=tenant, by=by)
    except (CodecError, TypeError) as error:
        return Rejected("input.unserialisable", str(error))
