"""The library of an engine: its workflows, and the functions that carry them out."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol, TypeGuard, TypeVar

from pawlflow import requests
from pawlflow.acts import Door, refusal
from pawlflow.children import published_plan, with_children
from pawlflow.definition.canonical import definition_bytes
from pawlflow.definition.plan import Plan, plan_of
from pawlflow.definition.shape import Schedule, Workflow
from pawlflow.effects.registry import Registry
from pawlflow.effects.runner import Runner
from pawlflow.files import load_path
from pawlflow.flows.flow import Brought, Flow
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import Digest, Tenant
from pawlflow.store.port import Address, Store
from pawlflow.trouble import NoExecutor, NotFound

F = TypeVar("F", bound=Callable[..., Any])
SAME: Final = ("definition.same", "schedule.same")  # published before, and nothing changed


class Runnable(Protocol):
    """A workflow that is written in Python: a flow, or a loop by itself."""

    name: str

    @property
    def workflow(self) -> Workflow:
        """The workflow it stands for."""
        ...

    def brought(self) -> Brought:
        """The functions it needs, and the flows that are its children."""
        ...


class Library:
    """What an engine can run. It may be filled before the engine runs, and while it does."""

    driver: Door
    reader: Store
    runner: Runner

    def __init__(self, tenant: str, by: str) -> None:
        self.tenant = Tenant(tenant)
        self.by = by  # who publishes and starts, if nobody else is named
        self.store: Store | None = None  # as long as the engine runs
        self.registry = Registry()
        self.workflows: dict[str, tuple[Workflow, Plan]] = {}
        self.unpublished: dict[str, Workflow] = {}
        self.unscheduled: list[Schedule] = []
        self.publishing: asyncio.Future[None] | None = None
        self.carried: set[Digest] = set()  # definitions whose every effect has an executor
        self.lent: set[tuple[Tenant, Digest]] = set()  # whose children other tenants know

    def load(self, *paths: str | Path) -> list[str]:
        """Read workflows and schedules from files and folders; published when the engine runs."""
        loaded = [each for path in paths for each in load_path(Path(path))]
        found = [workflow for each in loaded for workflow in each.workflows]
        for workflow in found:
            self.add(workflow)
        self.unscheduled += [schedule for each in loaded for schedule in each.schedules]
        return [workflow.name for workflow in found]

    def add(self, workflow: "Workflow | Runnable") -> None:
        """Make a workflow known under its name; a flow brings its functions and its children."""
        if not isinstance(workflow, Workflow):
            self.take_along(workflow.brought())
            workflow = workflow.workflow
        self.workflows[workflow.name] = (workflow, plan_of(definition_bytes(workflow)))
        self.unpublished[workflow.name] = workflow
        self.carried.clear()  # it may be the child of another
        self.lent.clear()
        if self.store is not None:
            self.publish_soon()

    def take_along(self, brought: Brought) -> None:
        """Register the functions of a flow, and add the flows that are its children."""
        for step in brought.functions.values():
            self.registry.add(step.name, step, traced=True)
        for child in brought.children.values():
            if self.workflows.get(child.name, (None,))[0] is not child.workflow:
                self.add(child)
        self.offered()

    def effect(self, name: str, *, pool: str | None = None) -> Callable[[F], F]:
        """Let a function carry out an effect: `@pawl.effect("git.checkout")`.

        With `pool="process"` a plain function runs in a process of its own.
        """

        def register(fn: F) -> F:
            self.registry.add(name, fn, pool)
            self.offered()
            return fn

        return register

    def agent(self, role: str, *, pool: str | None = None) -> Callable[[F], F]:
        """Let a function do the tasks of an agent's role: `@pawl.agent("technical-writer")`."""

        def register(fn: F) -> F:
            self.registry.add_agent(role, fn, pool)
            self.offered()
            return fn

        return register

    def register(self, *found: "Callable[..., Any] | ModuleType | Runnable") -> list[str]:
        """Register steps and flows, or all that a module has, under their own names."""
        names: list[str] = []
        for each in found:
            if isinstance(each, ModuleType):
                names += self.registry.add_module(each)
                flows = flows_in(each)
                names += [flow.name for flow in flows]
                for flow in flows:
                    self.add(flow)
            elif is_runnable(each):
                names.append(each.name)
                if not is_built(each):
                    self.add(each)
            elif callable(each):
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

    async def plan_for(self, workflow: "str | Workflow | Runnable") -> Plan:
        """The plan of a workflow that was loaded, or that the store knows."""
        if not isinstance(workflow, str):
            made = workflow if isinstance(workflow, Workflow) else workflow.workflow
            if self.workflows.get(made.name, (None,))[0] is not made:
                self.add(workflow)
            workflow = made.name
        if self.unpublished:
            self.publish_soon()
        if self.publishing is not None:
            await asyncio.shield(self.publishing)
        found = self.known_plan(workflow)
        if found is not None:
            return found
        names = ", ".join(sorted(self.workflows)) or "none"
        raise NotFound("workflow.unknown", f"no workflow {workflow!r}; loaded are: {names}")

    async def built_plan(self, flow: Flow[..., Any], value: Any, address: Address) -> Plan:
        """The plan of a flow that is built from its input: once, when the instance starts.

        It is published before the start, so that the instance finds it whatever becomes of the
        function; an instance that exists keeps the plan that it has.
        """
        known = self.reader.load([address]).get(address)
        if known is not None and known.head.definition:
            digest = Digest(known.head.definition)
            return plan_of(self.reader.definitions([digest])[digest])
        traced = flow.built(value)
        self.take_along(traced.brought)
        plan = plan_of(definition_bytes(traced.workflow))
        if self.publishing is not None:
            await asyncio.shield(self.publishing)
        asked = requests.publish(traced.workflow, self.tenant, self.by)
        outcome = await self.driver.submit(requests.registry_cell(self.tenant), asked)
        if isinstance(outcome, Rejected) and outcome.code not in SAME:
            raise refusal(outcome)
        return plan

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


def flows_in(module: ModuleType) -> list[Runnable]:
    """The flows that a module has; those that are built from their input only when started."""
    found = {id(each): each for each in vars(module).values() if is_runnable(each)}
    return [each for each in found.values() if not is_built(each)]


def is_runnable(what: object) -> TypeGuard[Runnable]:
    """Is this a workflow written in Python?"""
    return hasattr(type(what), "workflow") and hasattr(type(what), "brought")


def is_built(what: object) -> TypeGuard[Flow[..., Any]]:
    """Is this a flow whose plan is made of its input?"""
    return isinstance(what, Flow) and what.build
