"""The library of an engine: its workflows, and the functions that carry them out."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from inspect import getclosurevars
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol, TypeGuard, TypeVar

from pawlflow import requests
from pawlflow.acts import Door, refusal
from pawlflow.children import orphans_of, published_plan, steps_of, unknown_to, with_children
from pawlflow.definition.canonical import definition_bytes
from pawlflow.definition.plan import Plan, plan_of
from pawlflow.definition.shape import Policy, Schedule, Workflow
from pawlflow.effects.refs import FlowError
from pawlflow.effects.registry import Registry
from pawlflow.effects.runner import Runner
from pawlflow.effects.steps import Step
from pawlflow.effects.words import where_of
from pawlflow.errors import cause_of
from pawlflow.files import load_path
from pawlflow.flows.flow import Brought, Flow, Traced
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import Digest, Tenant
from pawlflow.store.port import Address, Store
from pawlflow.trouble import NoExecutor, NotFound, PawlError

F = TypeVar("F", bound=Callable[..., Any])
log = logging.getLogger("pawl.effects")
SAME: Final = ("definition.same", "schedule.same", "policy.same")  # published before, as it is


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
        self.tenant = requests.tenant_name(tenant)
        self.by = by  # who publishes and starts, if nobody else is named
        self.store: Store | None = None  # as long as the engine runs
        self.registry = Registry()
        self.workflows: dict[str, tuple[Workflow, Plan]] = {}
        self.builders: dict[str, Flow[..., Any]] = {}  # whose plans are made of their input
        self.unpublished: dict[str, Workflow] = {}
        self.unscheduled: list[Schedule] = []
        self.unruled: list[Policy] = []
        self.publishing: asyncio.Future[None] | None = None
        self.carried: set[tuple[Tenant, Digest]] = set()  # whose every effect has an executor
        self.lent: set[tuple[Tenant, Digest]] = set()  # whose children other tenants know

    def load(self, *paths: str | Path) -> list[str]:
        """Read workflows, schedules and policies from files and folders.

        They are published when the engine runs: at once, or as soon as it does.
        """
        loaded = [each for path in paths for each in load_path(Path(path))]
        found = [workflow for each in loaded for workflow in each.workflows]
        for workflow in found:
            self.add(workflow)
        self.unscheduled += [schedule for each in loaded for schedule in each.schedules]
        self.unruled += [ruled.policy for each in loaded for ruled in each.policies]
        if self.unruled and self.store is not None:
            self.publish_soon()
        return [workflow.name for workflow in found]

    def add(self, workflow: "Workflow | Runnable") -> None:
        """Make a workflow known under its name; a flow brings its functions and its children."""
        if is_built(workflow):
            self.builders[workflow.name] = workflow
            self.take_steps(workflow)
        elif isinstance(workflow, Workflow):
            self.know(workflow)
        else:
            refuse_unless_runnable(workflow)
            made = workflow.workflow
            self.take_along(workflow.brought())
            self.know(made)

    def named(self, workflow: "str | Workflow | Runnable") -> "str | Workflow | Runnable":
        """A flow that is built from its input has no plan under its name: the flow itself."""
        return self.builders.get(workflow, workflow) if isinstance(workflow, str) else workflow

    def know(self, workflow: Workflow) -> None:
        """Make one workflow known; it is published as soon as the engine runs."""
        self.workflows[workflow.name] = (workflow, plan_of(definition_bytes(workflow)))
        self.unpublished[workflow.name] = workflow
        self.carried.clear()  # it may be the child of another
        self.lent.clear()
        if self.store is not None:
            self.publish_soon()

    def take_along(self, brought: Brought) -> None:
        """Register the functions of a flow and its children's, and make these known.

        Nothing is, if one of the names is another function's.
        """
        children, steps = brought_along(brought)
        self.registry.refuse_taken(steps)
        for step in steps:
            self.registry.add(step.name, step, traced=True)
        for child in children:
            if self.workflows.get(child.name, (None,))[0] is not child.workflow:
                self.know(child.workflow)
        self.offered()

    def take_steps(self, flow: Flow[..., Any]) -> None:
        """Register the functions that a flow which is built from its input may come to.

        These are the steps that it sees where it is written, and what the flows there bring. A name
        that is another's is left to it: whether it is needed is known only when the flow is built.
        """
        for step in steps_seen(flow):
            if self.registry.free_for(step):
                self.registry.add(step.name, step, traced=True)
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
                self.add(each)
            elif callable(each):
                name = getattr(each, "name", None) or getattr(each, "__name__", None)
                if name is None:
                    message = f"{each!r} has no name: register it with @pawl.effect(NAME)"
                    raise PawlError("workflow.kind", message)
                self.registry.add(name, each)
                names.append(name)
            else:
                message = f"{each!r} is no function, flow or module: there is nothing to register"
                raise PawlError("workflow.kind", message)
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
            while self.unpublished or self.unscheduled or self.unruled:
                waiting, self.unpublished = self.unpublished, {}
                await self.publish_all(waiting)
        finally:
            self.publishing = None

    async def publish_all(self, waiting: dict[str, Workflow]) -> None:
        """Publish what was loaded and is not known to the store yet."""
        cell, rules = requests.registry_cell(self.tenant), requests.policies_cell(self.tenant)
        ruled, self.unruled = sorted(self.unruled, key=lambda each: each.version), []
        futures = [  # policies first: before anything that they govern
            self.driver.submit(rules, requests.publish_policy(policy, self.tenant, self.by))
            for policy in ruled
        ]
        futures += [
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
                why = f"{outcome.detail}: {cause_of(outcome.code)} [{outcome.code}]"
                raise refusal(Rejected(outcome.code, why))

    async def plan_for(
        self, workflow: "str | Workflow | Runnable", tenant: Tenant | None = None
    ) -> Plan:
        """The plan of a workflow that was loaded, or that was published here or by the tenant."""
        if not isinstance(workflow, str):
            refuse_unless_runnable(workflow)
            made = workflow if isinstance(workflow, Workflow) else workflow.workflow
            if self.workflows.get(made.name, (None,))[0] is not made:
                self.add(workflow)
            workflow = made.name
        if self.unpublished:
            self.publish_soon()
        if self.publishing is not None:
            await asyncio.shield(self.publishing)
        found = self.known_plan(workflow, self.owner_of(workflow, tenant or self.tenant))
        if found is not None:
            return found
        names = ", ".join(sorted(self.workflows)) or "none"
        raise NotFound("workflow.unknown", f"no workflow {workflow!r}; loaded are: {names}")

    def kept_plan(self, flow: Flow[..., Any], value: Any, address: Address) -> Plan | None:
        """The plan that an instance of a flow which is built from its input has, if it exists.

        It may have been started by another process, so its functions are looked for: the flow is
        built once more, for them alone, and what it sees is taken too.
        """
        known = self.reader.load([address]).get(address)
        if known is None or not known.head.definition:
            return None
        try:
            self.take_along(flow.built(value).brought)
        except Exception as error:  # noqa: BLE001  # users' code; the instance needs no new plan
            log.debug("%s is not built again: %s", flow.name, error)
        self.take_steps(flow)
        digest = Digest(known.head.definition)
        return plan_of(self.reader.definitions([digest])[digest])

    async def built_plan(self, flow: Flow[..., Any], value: Any) -> Plan:
        """The plan of a flow that is built from its input: once, when the instance starts.

        It is published before the start, so that the instance finds it whatever becomes of the
        function; an instance that exists keeps the plan that it has.
        """
        traced = built(flow, value)
        self.take_along(traced.brought)
        plan = plan_of(definition_bytes(traced.workflow))
        if self.publishing is not None:
            await asyncio.shield(self.publishing)
        asked = requests.publish(traced.workflow, self.tenant, self.by)
        outcome = await self.driver.submit(requests.registry_cell(self.tenant), asked)
        if isinstance(outcome, Rejected) and outcome.code not in SAME:
            raise refusal(outcome)
        return plan

    def owner_of(self, name: str, tenant: Tenant) -> Tenant:
        """Whose workflow a name means when a tenant starts it: the engine's, or else their own."""
        ours = tenant == self.tenant or self.known_plan(name, self.tenant) is not None
        return self.tenant if ours else tenant

    def known_plan(self, name: str, owner: Tenant) -> Plan | None:
        """The plan of a workflow, or of a child of one: loaded, or published.

        What belongs to another tenant than the engine's is looked for there first.
        """
        theirs = None if owner == self.tenant else published_plan(self.reader, owner, name)
        if theirs is not None:
            return theirs
        if name in self.workflows:
            return self.workflows[name][1]
        return published_plan(self.reader, self.tenant, name)

    async def lend_children(self, plan: Plan, tenant: Tenant, owner: Tenant) -> None:
        """Let another tenant's registry know the children that are known here.

        What they have under that name is left to them, unless a workflow that is loaded here
        brings a child that is loaded here.
        """
        if (tenant, plan.definition) in self.lent:
            return
        wanted = with_children(plan, partial(self.known_plan, owner=owner))[1:]
        loaded = self.workflows if owner == self.tenant else {}
        known = [loaded[each.workflow][0] for each in wanted if each.workflow in loaded]
        rest = [each for each in wanted if each.workflow not in loaded]
        known += unknown_to(self.reader, tenant, rest)
        cell = requests.registry_cell(tenant)
        for workflow in known:
            outcome = await self.driver.submit(cell, requests.publish(workflow, tenant, self.by))
            if isinstance(outcome, Rejected) and outcome.code not in SAME:
                raise refusal(outcome)
        self.lent.add((tenant, plan.definition))

    def refuse_orphans(self, plan: Plan, owner: Tenant) -> None:
        """Name the effects that nobody could carry out, before anything starts."""
        steps = steps_of(plan, partial(self.known_plan, owner=owner))
        missing = orphans_of(steps, self.registry.knows)
        if missing:
            raise NoExecutor(plan.workflow, missing)
        self.carried.add((owner, plan.definition))


def built(flow: Flow[..., Any], value: Any) -> Traced:
    """A flow, built from its input. Raises PawlError, whatever its function raises."""
    try:
        return flow.built(value)
    except PawlError:
        raise
    except Exception as error:
        message = f"{flow.name} cannot be built of this input: {type(error).__name__}: {error}"
        raise FlowError("flow.raised", f"{message}{where_of(error)}", flow.where) from error


def brought_along(brought: Brought) -> tuple[list[Runnable], list[Step[..., Any]]]:
    """The children of a flow and theirs, each once, and the functions of all.

    A flow may be its own child, or the child of one.
    """
    children: dict[int, Runnable] = {}
    steps = list(brought.functions.values())
    waiting = list(brought.children.values())
    while waiting:
        child = waiting.pop()
        if id(child) not in children:
            children[id(child)] = child
            steps += child.brought().functions.values()
            waiting += child.brought().children.values()
    return list(children.values()), steps


def steps_seen(flow: Flow[..., Any]) -> list[Step[..., Any]]:
    """The steps that a flow's function can name, and those of the flows that it can name."""
    seen = {**flow.fn.__globals__, **getclosurevars(flow.fn).nonlocals}
    found: list[Step[..., Any]] = []
    for each in list(seen.values()):
        if isinstance(each, Step):
            found.append(each)
        elif isinstance(each, Flow) and not each.build:
            with suppress(PawlError):  # one that cannot be read has nothing in flight
                found += brought_along(each.brought())[1]
    return found


def refuse_unless_runnable(what: object) -> None:
    """Refuse what cannot be started, and say what can."""
    if isinstance(what, Workflow) or is_runnable(what):
        return
    if isinstance(what, Step):
        name = what.__name__
        way_out = (
            f"{name} is a step, and only a workflow is started: wrap it in a @flow, "
            f"`@flow def just_{name}(request): return {name}(request)`"
        )
    else:
        way_out = (
            f"{what!r} is no workflow: give a @flow, a @loop, or the name of one that is loaded"
        )
    raise PawlError("workflow.kind", way_out)


def flows_in(module: ModuleType) -> list[Runnable]:
    """The flows that a module has."""
    return list({id(each): each for each in vars(module).values() if is_runnable(each)}.values())


def is_runnable(what: object) -> TypeGuard[Runnable]:
    """Is this a workflow written in Python?"""
    return hasattr(type(what), "workflow") and hasattr(type(what), "brought")


def is_built(what: object) -> TypeGuard[Flow[..., Any]]:
    """Is this a flow whose plan is made of its input?"""
    return isinstance(what, Flow) and what.build
