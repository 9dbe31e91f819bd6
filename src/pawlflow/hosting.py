"""Hosting: an engine in this process, on the event loop of whoever opens it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

from pawlflow import requests
from pawlflow.acts import Acts, refusal
from pawlflow.alerts import Alerts
from pawlflow.app import (
    DEFAULT_URL,
    Poked,
    connect_bus,
    engine_on,
    look_ms,
    open_store,
    pokes_of,
    second_handle,
)
from pawlflow.awaiting import Awaiting
from pawlflow.completing import Completing
from pawlflow.definition.plan import Plan
from pawlflow.definition.shape import Workflow
from pawlflow.driving import InlineDriver, driver_of
from pawlflow.effects.runner import CONCURRENCY, Runner
from pawlflow.effects.secrets import Secrets
from pawlflow.endpoints import Endpoints
from pawlflow.engine.actions import Notify, Publish, Stopped
from pawlflow.engine.clock import Clock, SystemClock
from pawlflow.engine.drivers import Engine
from pawlflow.engine.shard import Limits
from pawlflow.keeping import Checkpoints
from pawlflow.kernel.draft import Rejected
from pawlflow.library import Library, Runnable, is_built
from pawlflow.model.ids import CellId, Digest, InstanceId, Tenant
from pawlflow.model.inputs import Receipt
from pawlflow.model.intents import POLICY, Call
from pawlflow.moments import Moment, moment_of
from pawlflow.operations import Operations
from pawlflow.policing import Judge
from pawlflow.readmodels import ReadModelWorker, follow
from pawlflow.resolving import Resolving
from pawlflow.retaining import Retainer, Retention, gone
from pawlflow.runs import Run
from pawlflow.secrets import Source, secrets_of
from pawlflow.services.gateway import Given, Services
from pawlflow.starts import Many, Order, Started, key_for, start_all, start_each, start_of
from pawlflow.store.port import StoreError
from pawlflow.trouble import PawlError


class NotOpen:
    """What stands where the parts of an engine will be."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        message = "the engine is not open: `async with pawl:`, or `await pawl.open()` first"
        raise PawlError("engine.not_open", message)


NOT_OPEN: Any = NotOpen()


class Hosted(Library, Endpoints, Acts, Completing, Operations, Awaiting):
    """An engine in this process."""

    driver: InlineDriver
    clock: Clock
    watched: Alerts
    checkpoints: Checkpoints
    runner_kind: ClassVar[type[Runner]] = Runner
    alerts_kind: ClassVar[type[Alerts]] = Alerts
    retainer_kind: ClassVar[type[Retainer]] = Retainer

    def __init__(  # noqa: PLR0913  # what may be chosen of an engine
        self,
        url: str = DEFAULT_URL,
        *,
        tenant: str = "default",
        driver: Literal["inline", "thread"] = "inline",
        concurrency: int = CONCURRENCY,
        limits: Limits | None = None,
        by: str = "python",
        secrets: Source = None,
        processes: int | None = None,
        nats: Given = None,
        read_models: bool = False,
        retention: bool | None = None,
        archive: str | Path | None = None,
    ) -> None:
        super().__init__(tenant, by)
        self.url = url
        self.driver_kind = driver
        self.limits = limits
        self.concurrency = concurrency
        self.processes = processes  # at most so many for steps with pool="process"
        self.secrets: Secrets = secrets_of(secrets)
        self.driver = self.reader = self.runner = self.clock = self.watched = NOT_OPEN
        self.closing, self.changing = {}, {}
        self.trouble = None
        self.ended: Callable[[], object] = lambda: None  # is told when nothing more can happen
        self.services = Services(nats)  # who carries out what no function here does
        self.read_models = read_models  # are the rows of the SQL views kept fresh?
        self.following: ReadModelWorker | None = None
        self.retention = Retention(retention, archive)  # instances go when their time is over

    # Coming and going

    async def open(self) -> Self:
        """Own the store, and go on with everything in flight; `close` is for you to call."""
        if self.store is not None:
            raise PawlError("engine.open", "this engine is open already: make another one")
        loop = asyncio.get_running_loop()
        self.store = open_store(self.url)
        self.clock = self.new_clock()
        try:
            engine = self.new_engine()
        except StoreError:
            self.store.close()
            self.store = None
            raise
        self.trouble = None
        self.reader = second_handle(self.store)
        self.registry.secrets = self.secrets
        self.runner = self.new_runner()
        self.driver = self.new_driver(engine, loop)
        self.join_runner()
        self.pokes: Poked | None = None
        try:
            await self.take_part()
            await self.services.open(self, connect_bus)  # before anything is offered
            if self.read_models:
                self.following = follow(self.url)
        except PawlError:
            await self.close()
            raise
        self.pokes = pokes_of(self.store)
        self.driver.safety_ms = look_ms(self.store, self.pokes)
        if self.pokes is not None:
            loop.add_reader(self.pokes.fileno(), self.poked)
        waiting, self.unpublished = self.unpublished, {}
        try:
            await self.publish_all(waiting)
        except PawlError:  # nobody will leave what was never entered
            await self.close()
            raise
        self.watched.know(self.tenant)
        self.driver.poke()
        self.retention.begin(self.new_retainer)
        return self

    async def close(self) -> None:
        """Stop. What is in flight is in the journal, and goes on when somebody opens it again."""
        if self.store is None:
            return
        if self.pokes is not None:
            asyncio.get_running_loop().remove_reader(self.pokes.fileno())
            self.pokes.close()
        if self.publishing is not None:
            await asyncio.wait([self.publishing])
        await self.retention.close()
        await self.services.close()
        await self.runner.close()
        await self.registry.close()
        self.watched.close()
        await self.driver.close()
        if self.following is not None:
            await asyncio.to_thread(self.following.stop)
            self.following = None
        self.wake_all(PawlError("engine.closed", "the engine was closed; the instance goes on"))
        self.reader.close()
        self.store.close()
        self.store = None
        self.driver = self.reader = self.runner = NOT_OPEN

    async def __aenter__(self) -> Self:
        """Own the store, and go on with everything in flight."""
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop. What is in flight is in the journal, and goes on when somebody enters again."""
        await self.close()

    def new_engine(self) -> Engine:
        """Own the store."""
        assert self.store is not None
        return engine_on(self.store, self, clock=self.clock, limits=self.limits)

    async def take_part(self) -> None:
        """Where others share the store, find the own place among them. Here nobody does."""

    def new_clock(self) -> Clock:
        """Where time and chance come from."""
        return SystemClock()

    def new_runner(self) -> Runner:
        """Who carries out calls."""
        return self.runner_kind(
            self.registry,
            self.deliver,
            concurrency=self.concurrency,
            processes=self.processes,
            resolve=Resolving(self.secrets, self.definition_of).resolve,
        )

    def join_runner(self) -> None:
        """What a runner keeps goes to the engine, and what it cannot do is told."""
        self.registry.elsewhere = self.services.knows
        self.registry.add(POLICY, Judge(self.reader).ask)
        self.runner.keeper = self.checkpoints = Checkpoints(self.driver, self.reader)
        self.watched = self.alerts_kind(self.reader, self.driver, self.clock, self.registry)
        self.runner.orphans.watcher = self.watched
        self.runner.line.again = self.driver.offer_again

    def new_driver(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> InlineDriver:
        """Who says when the engine works."""
        return driver_of(self.driver_kind, self.store)(engine, loop)

    def new_retainer(self) -> Retainer:
        """Who lets instances go when their time is over."""
        apart = self.driver_kind == "thread"  # then nobody on the loop waits for a disk
        reader = second_handle(self.reader) if apart else self.reader
        return self.retainer_kind(reader, self.driver, self.clock, apart=apart)

    def poked(self) -> None:
        """Another process says that there is mail."""
        if self.pokes is not None:
            self.pokes.drain()
        self.driver.poke()

    # Starting and acting

    async def start(  # what a start consists of
        self,
        workflow: str | Workflow | Runnable,
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
        workflow = self.named(workflow)
        whose = requests.whose(tenant, self.tenant)
        key = self.key_for(whose, id)
        if is_built(workflow):
            plan = self.kept_plan(workflow, input, (whose, key))
            existing = plan is not None
            plan = plan or await self.built_plan(workflow, input)
        else:
            plan, existing = await self.plan_for(workflow, whose), False
        order = await self.order_of(plan, whose, by, at, existing=existing)
        start = start_of(order, key, input, fresh=id is None)
        outcome = await start.hand_in(self.driver)
        if isinstance(outcome, Rejected):
            raise refusal(outcome)
        return Run(self, whose, key)

    def key_for(self, tenant: Tenant, given: str | None) -> InstanceId:
        """The id of an instance that is to start, a new one if none is given."""
        return key_for(self.clock, tenant, given)

    async def start_many(  # what starts consist of
        self,
        workflow: str | Workflow | Runnable,
        inputs: Many,
        *,
        tenant: str | None = None,
        by: str = "python",
        at: Moment | None = None,
    ) -> Sequence[Started]:
        """Start an instance for each input, or (id, input): an answer for each, in order.

        Hundreds share a commit. What is refused is told in its answer, and stops no other.
        """
        answers = self.starting(workflow, inputs, tenant=tenant, by=by, at=at)
        return [each async for each in answers]

    async def starting(  # what starts consist of
        self,
        workflow: str | Workflow | Runnable,
        inputs: Many,
        *,
        tenant: str | None = None,
        by: str = "python",
        at: Moment | None = None,
    ) -> AsyncIterator[Started]:
        """The same, each answer as it comes: for more starts than anybody wants to keep."""
        whose, workflow = requests.whose(tenant, self.tenant), self.named(workflow)
        if is_built(workflow):
            begin = partial(self.start, workflow, tenant=tenant, by=by, at=at)
            answers = start_each(self, whose, begin, inputs)
        else:
            plan = await self.plan_for(workflow, whose)
            answers = start_all(self, await self.order_of(plan, whose, by, at), inputs)
        async for started in answers:
            yield started

    async def order_of(
        self, plan: Plan, tenant: Tenant, by: str, at: Moment | None, *, existing: bool = False
    ) -> Order:
        """What starts of a plan have in common. Raises NoExecutor, unless it runs already."""
        owner = self.owner_of(plan.workflow, tenant)
        if not existing and (owner, plan.definition) not in self.carried:
            self.refuse_orphans(plan, owner)
        if tenant != self.tenant:
            await self.lend_children(plan, tenant, owner)
        return Order(plan, tenant, by, None if at is None else moment_of(at, self.clock.now()))

    def run(self, id: str, tenant: str | None = None) -> Run:
        """A run that was started before."""
        whose = requests.whose(tenant, self.tenant)
        key = InstanceId(id)
        if not self.reader.load([(whose, key)]):
            raise gone(self.reader, whose, key)
        return Run(self, whose, key)

    # What the engine tells

    def deliver(self, cell: CellId, receipt: Receipt, size: int) -> None:
        """A receipt comes back through the same door as everything else."""
        self.driver.tell(cell, receipt, size)
        self.watched.settled(receipt.key)

    def publish(self, action: Publish) -> None:
        """Effects, after their commit."""
        if action.again:
            for tenant in {each.cell.tenant for each in action.intents if isinstance(each, Call)}:
                self.watched.know(tenant)
        self.runner.publish(self.services.take(action.intents, self.registry))

    def alerts(self, tenant: str | None = None) -> Sequence[dict[str, Any]]:
        """Effects that nobody here can carry out though instances wait for them, since when."""
        return self.watched.told(requests.whose(tenant, self.tenant))

    def definition_of(self, cell: CellId) -> bytes:
        """The definition that an instance runs under, as it is kept."""
        address = (cell.tenant, cell.key)
        live = self.driver.engine.core.hot.cells.get(address)
        head = None if live is None else live.head
        wanted = Digest((head or self.reader.load([address])[address].head).definition)
        return self.reader.definitions([wanted])[wanted]

    def notify(self, action: Notify) -> None:
        """Wake those who wait for an instance."""
        self.checkpoints.notice(action)
        self.retention.notice(action)
        self.wake(action)

    def stopped(self, action: Stopped) -> None:
        """The store failed: whoever waits is told."""
        self.trouble = action
        self.ended()
        self.wake_all(PawlError(action.code, action.message))
