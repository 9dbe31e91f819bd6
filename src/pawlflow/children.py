"""Children: the workflows that a workflow starts as its steps, as far as they are known."""

from collections.abc import Callable

from pawlflow.definition.plan import Plan, plan_of
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


def published_plan(store: Store, tenant: Tenant, name: str) -> Plan | None:
    """The plan of the newest workflow that was published under a name."""
    for known in store.published(tenant):
        if known.name == name:
            return plan_of(store.definitions([known.definition])[known.definition])
    return None
