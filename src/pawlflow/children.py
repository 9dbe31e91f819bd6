"""Children: the workflows that a workflow starts as its steps, as far as they are known."""

from collections.abc import Callable, Sequence

from pawlflow.definition.canonical import definition_from_bytes
from pawlflow.definition.plan import Plan, StepPlan, plan_of
from pawlflow.definition.shape import Workflow
from pawlflow.model.ids import Tenant
from pawlflow.store.port import Store

Find = Callable[[str], Plan | None]  # the plan of a workflow by its name


def with_children(plan: Plan, find: Find) -> list[Plan]:
    """A plan, and those of the children it may come to, each once. Unknown ones are left out.

    A child that nobody knows yet may be published before it is needed.
    """
    found: dict[str, Plan] = {plan.workflow: plan}
    rest = [plan]
    while rest:
        for step in rest.pop().steps:
            name = step.target
            if step.kind == "workflow" and name not in found:
                child = find(name)
                if child is not None:
                    found[name] = child
                    rest.append(child)
    return list(found.values())


def steps_of(plan: Plan, find: Find) -> list[StepPlan]:
    """The steps of a plan and of its children, as far as they are known."""
    return [step for each in with_children(plan, find) for step in each.steps]


def orphans_of(steps: Sequence[StepPlan], knows: Callable[..., bool]) -> list[str]:
    """The effects of steps, and of their undos, that nobody carries out."""
    asked = [(each.target, each.by_agent) for each in steps if each.attempted]
    asked += [(each.undo.target, each.undo.by_agent) for each in steps if each.undo]
    return sorted({target for target, by_agent in asked if not knows(target, by_agent=by_agent)})


def published_plan(store: Store, tenant: Tenant, name: str) -> Plan | None:
    """The plan of the newest workflow that was published under a name."""
    for known in store.published(tenant):
        if known.name == name:
            return plan_of(store.definitions([known.definition])[known.definition])
    return None


def unknown_to(store: Store, tenant: Tenant, plans: Sequence[Plan]) -> list[Workflow]:
    """Those of some published workflows under whose name a tenant has none."""
    taken = {each.name for each in store.published(tenant)} if plans else set()
    wanted = [each.definition for each in plans if each.workflow not in taken]
    texts = store.definitions(wanted)
    return [definition_from_bytes(texts[each]) for each in wanted]
