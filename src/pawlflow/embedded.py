"""`Pawl`: an engine in this process.

A store, the shards it owns, and the functions that carry out effects. Leaving it loses nothing;
entering it again goes on with everything that was in flight.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Literal, Self, TypeVar

import msgspec

from pawlflow import requests
from pawlflow.acts import Acts, refusal
from pawlflow.app import DEFAULT_URL, engine_on, open_store, pokes_of, second_handle
from pawlflow.children import published_plan, with_children
from pawlflow.definition.canonical import definition_bytes
from pawlflow.definition.plan import Plan, plan_of
from pawlflow.definition.shape import Schedule, Workflow
from pawlflow.driving import InlineDriver, ThreadDriver
from pawlflow.effects.registry import Registry
from pawlflow.effects.runner import CONCURRENCY, Runner
from pawlflow.engine.actions import Notify, Publish, Stopped
from pawlflow.engine.admission import admit_start
from pawlflow.engine.clock import SystemClock, time_ordered_id
from pawlflow.engine.shard import Limits
from pawlflow.files import load_path
from pawlflow.kernel.draft import Rejected
from pawlflow.model.codec import CodecError
from pawlflow.model.ids import CellId, Digest, InstanceId, Tenant
from pawlflow.model.inputs import Receipt, StartInstance
from pawlflow.model.payload import PayloadError
from pawlflow.moments import Moment, moment_of
from pawlflow.operations import Operations
from pawlflow.runs import NOTHING, Closed, Run, closed_by
from pawlflow.store.port import Address, Store, StoreError
from pawlflow.trouble import NoExecutor, NotFound, PawlError

F = TypeVar("F", bound=Callable[..., Any])
SAME = ("definition.same", "schedule.same")  # published before, and nothing changed


class Pawl(Acts, Operations):
    """An engine in this process: `async with Pawl("sqlite:///pawl.db") as pawl: ...`."""

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
        self.url = url
        self.tenant = Tenant(tenant)
        self.driver_kind = driver
        self.limits = limits
        self.by = by  # who publishes and starts, if nobody else is named
        self.registry = Registry()
        self.concurrency = concurrency
        self.workflows: dict[str, tuple[Workflow, Plan]] = {}
        self.unpublished: dict[str, Workflow] = {}
        self.unscheduled: list[Schedule] = []
        self.publishing: asyncio.Future[None] | None = None
        self.carried: set[Digest] = set()  # definitions whose every effect has an executor
        self.lent: set[tuple[Tenant, Digest]] = set()  # whose children other tenants know
        self.closing: dict[Address, list[asyncio.Future[Closed]]] = {}
        self.changing: dict[Address, list[asyncio.Future[None]]] = {}
        self.trouble: Stopped | None = None
        self.store: Store | None = None

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
        self.driver: InlineDriver = made(engine, loop)
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

    # What workflows consist of

    def load(self, *paths: str | Path) -> list[str]:
        """Read workflows and schedules from files and folders; published when the engine runs."""
        loaded = [each for path in paths for each in load_path(Path(path))]
        found = [workflow for each in loaded for workflow in each.workflows]
        for workflow in found:
            self.add(workflow)
        self.unscheduled += [schedule for each in loaded for schedule in each.schedules]
        return [workflow.name for workflow in found]

    def add(self, workflow: Workflow) -> None:
        """Make a workflow known under its name."""
        self.workflows[workflow.name] = (workflow, plan_of(definition_bytes(workflow)))
        self.unpublished[workflow.name] = workflow
        self.carried.clear()  # it may be the child of another
        self.lent.clear()
        if self.store is not None:
            self.publish_soon()

    def effect(self, name: str) -> Callable[[F], F]:
        """Let a function carry out an effect: `@pawl.effect("git.checkout")`."""

        def register(fn: F) -> F:
            self.registry.add(name, fn)
            self.offered()
            return fn

        return register

    def agent(self, role: str) -> Callable[[F], F]:
        """Let a function do the tasks of an agent's role: `@pawl.agent("technical-writer")`."""

        def register(fn: F) -> F:
            self.registry.add_agent(role, fn)
            self.offered()
            return fn

        return register

    def register(self, *found: Callable[..., Any] | ModuleType) -> list[str]:
        """Register steps, or every step of a module, under their own names."""
        names: list[str] = []
        for each in found:
            if isinstance(each, ModuleType):
                names += self.registry.add_module(each)
            else:
                name = getattr(each, "name", each.__name__)
                self.registry.add(name, each)
                names.append(name)
        self.offered()
        return names

    def offered(self) -> None:
        """Calls that waited for an executor may have one now."""
        if self.store is not None:
            self.runner.registered()

    def publish_soon(self) -> None:
        """Publish what waits, together with what is added in this moment: a child, say."""
        if self.publishing is None:
            self.publishing = asyncio.ensure_future(self.publish_waiting())

    async def publish_waiting(self) -> None:
        """Publish until nothing waits."""
        try:
            while self.unpublished or self.unscheduled:
                waiting, self.unpublished = self.unpublished, {}
                await self.publish_all(waiting)
        finally:
            self.publishing = None

    async def publish_all(self, waiting: dict[str, Workflow]) -> None:
        """Publish what was loaded and is not known to the store yet."""
        cell = requests.registry_cell(self.tenant)
        futures = [
            self.driver.submit(cell, requests.publish(workflow, self.tenant, self.by))
            for workflow in waiting.values()
        ]
        beside, self.unscheduled = self.unscheduled, []
        futures += [
            self.driver.submit(cell, requests.publish_schedule(schedule, self.tenant, self.by))
            for schedule in beside
        ]
        for future in futures:
            outcome = await future
            if isinstance(outcome, Rejected) and outcome.code not in SAME:
                raise refusal(outcome)

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

    async def plan_for(self, workflow: str | Workflow) -> Plan:
        """The plan of a workflow that was loaded, or that the store knows."""
        if isinstance(workflow, Workflow):
            if self.workflows.get(workflow.name, (None,))[0] is not workflow:
                self.add(workflow)
            workflow = workflow.name
        if self.unpublished:
            self.publish_soon()
        if self.publishing is not None:
            await asyncio.shield(self.publishing)
        found = self.known_plan(workflow)
        if found is not None:
            return found
        names = ", ".join(sorted(self.workflows)) or "none"
        raise NotFound("workflow.unknown", f"no workflow {workflow!r}; loaded are: {names}")

    def known_plan(self, name: str) -> Plan | None:
        """The plan of a workflow that was loaded, or that the store knows."""
        if name in self.workflows:
            return self.workflows[name][1]
        return published_plan(self.reader, self.tenant, name)

    async def lend_children(self, plan: Plan, tenant: Tenant) -> None:
        """Let another tenant's registry know the children of a workflow that was loaded here."""
        if (tenant, plan.definition) in self.lent:
            return
        wanted = [each.workflow for each in with_children(plan, self.known_plan)[1:]]
        known = [self.workflows[name][0] for name in wanted if name in self.workflows]
        cell = requests.registry_cell(tenant)
        for workflow in known:
            outcome = await self.driver.submit(cell, requests.publish(workflow, tenant, self.by))
            if isinstance(outcome, Rejected) and outcome.code not in SAME:
                raise refusal(outcome)
        self.lent.add((tenant, plan.definition))

    def refuse_orphans(self, plan: Plan) -> None:
        """Name the effects that nobody could carry out, before anything starts."""
        steps = [step for each in with_children(plan, self.known_plan) for step in each.steps]
        missing = [
            each.target
            for each in steps
            if each.attempted and not self.registry.knows(each.target, by_agent=each.by_agent)
        ]
        missing += [
            each.undo.target
            for each in steps
            if each.undo and not self.registry.knows(each.undo.target, by_agent=each.undo.by_agent)
        ]
        if missing:
            raise NoExecutor(plan.workflow, sorted(set(missing)))
        self.carried.add(plan.definition)

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
