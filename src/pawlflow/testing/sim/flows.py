"""Workflows of a run: small ones, of every kind that the kernel runs, drawn from the seed."""

from typing import Any, Final

import msgspec

from pawlflow.definition.canonical import definition_bytes, hash_of_bytes
from pawlflow.definition.shape import (
    Edge,
    Gate,
    Keyed,
    Retry,
    Step,
    Trigger,
    Undo,
    Wait,
    Workflow,
)
from pawlflow.engine.places import shard_of
from pawlflow.model.ids import CellId, Digest, InstanceId, Tenant, WorkflowName
from pawlflow.model.system import SLOTS, slots_key, topic_cell
from pawlflow.store.port import SHARDS
from pawlflow.testing.sim.chance import Dice
from pawlflow.testing.sim.language import LEAVES, Rooms, child_step, enrich, enrich_step
from pawlflow.testing.sim.setup import Setup

TENANTS: Final = (Tenant("acme"), Tenant("bolt"))
EVENTS: Final = ("ping", "pong")
KINDS: Final = ("run", "run", "run", "run", "agent", "sleep", "wait", "approval", "emit")
HASTE_MS: Final = 300
FAILURES: Final = (None, None, "abort", "skip", "compensate", "escalate")
POLICIES: Final = ("abort", "skip", "compensate", "compensate", "retry")
LATER_MS: Final = (0, 0, 2_000, 40_000, 200_000)
RESULT: Final = {"type": "object", "required": ["ok"]}  # what executors give, unless they fail


class Flow(msgspec.Struct, frozen=True):
    """A definition, as it is published and started."""

    workflow: Workflow
    data: bytes
    definition: Digest
    child: bool = False  # started by others alone
    late: bool = False  # published when somebody may have asked for it already


class Planned(msgspec.Struct, frozen=True):
    """An instance to be started."""

    number: int
    cell: CellId
    flow: Flow
    input: Any
    at: int
    later_ms: int = 0  # it is asked to begin only so long after that


def flows_of(setup: Setup) -> list[Flow]:
    """The definitions of a run: those that clients start, and children of theirs."""
    dice, rooms = Dice(setup.seed), setup.rooms
    found = [flow_of(dice, f"w{i}", rooms) for i in range(setup.flows)]
    if "children" in rooms:
        found += [child_of(dice, name, rooms) for name in ("c0", "c1", "cl")]
    return found


def flow_of(dice: Dice, name: str, rooms: Rooms = ()) -> Flow:
    """A definition with a bit of everything."""
    count = dice.between(f"{name}.steps", 2, 6)
    saga = dice.roll(f"{name}.saga") < 0.3  # a chain of effects that are all undone together
    steps: list[Step] = []
    for i in range(count):
        site = f"{name}.s{i}"
        step = saga_step(dice, site, i, steps) if saga else step_of(dice, site, i, steps)
        steps.append(enrich_step(dice, site, step, steps, rooms))
    limited = dice.roll(f"{name}.keyed") < 0.45
    triggered = dice.roll(f"{name}.triggered") < 0.15
    workflow = Workflow(
        name=WorkflowName(name),
        steps=tuple(steps),
        timeout_ms=dice.pick(f"{name}.timeout", (None, None, 240_000)),  # type: ignore[arg-type]
        failure_policy="compensate" if saga else dice.pick(f"{name}.policy", POLICIES),
        max_parallel=dice.pick(f"{name}.parallel", (None, None, 1)),
        on_undo_failure=dice.pick(f"{name}.undo", ("stop", "continue")),
        concurrency=Keyed(key="input.group", limit=dice.between(f"{name}.limit", 1, 2))
        if limited
        else None,
        trigger=Trigger(event="ping", condition="event.n == 7") if triggered else None,
        output={"first": f"${{ steps.{steps[0].name} }}"},
    )
    return flow_for(enrich(dice, workflow, rooms))


def flow_for(workflow: Workflow, *, child: bool = False) -> Flow:
    """A definition, ready to be published."""
    data = definition_bytes(workflow)
    late = child and workflow.name == "cl"
    return Flow(workflow, data, hash_of_bytes(data), child=child, late=late)


def child_of(dice: Dice, name: str, rooms: Rooms) -> Flow:
    """A small definition that others start; c0 has a child of its own."""
    within = tuple(room for room in rooms if room not in ("schedule", "children"))
    steps: list[Step] = []
    for i in range(dice.between(f"{name}.steps", 1, 2)):
        site = f"{name}.s{i}"
        step = saga_step(dice, site, i, steps)
        steps.append(enrich_step(dice, site, step, steps, within))
    if name == "c0":
        site = f"{name}.s{len(steps)}"
        step = child_step(dice, site, saga_step(dice, site, len(steps), steps), LEAVES)
        steps.append(enrich_step(dice, site, step, steps, within))
    strict = dice.roll(f"{name}.strict") < 0.4
    limited = dice.roll(f"{name}.keyed") < 0.2
    workflow = Workflow(
        name=WorkflowName(name),
        steps=tuple(steps),
        input={"type": "object", "required": ["n"]} if strict else None,
        failure_policy=dice.pick(f"{name}.policy", ("abort", "compensate", "compensate")),
        timeout_ms=dice.pick(f"{name}.timeout", (None, None, 60_000)),  # type: ignore[arg-type]
        concurrency=Keyed(key="input.group", limit=2) if limited else None,
        output={"last": f"${{ steps.{steps[-1].name} }}", "id": "${ instance.id }"},
    )
    return flow_for(enrich(dice, workflow, within), child=True)


def step_of(dice: Dice, site: str, i: int, before: list[Step]) -> Step:
    """One step, behind some of those before it."""
    kind = dice.pick(f"{site}.kind", KINDS)
    fields: dict[str, Any] = {
        "on_failure": dice.pick(f"{site}.failure", FAILURES),
        "on_timeout": dice.pick(f"{site}.late", ("fail", "retry", "escalate")),
    }
    match kind:
        case "sleep":
            fields["sleep_ms"] = dice.pick(f"{site}.sleep", (0, 2_000, 45_000))
        case "wait":
            fields |= wait_of(dice, site)
        case "approval":
            fields["gate"] = gate_of(dice, site)
            fields["show"] = {"n": "${ input.n }"}
        case "emit":
            event, n = dice.pick(f"{site}.event", EVENTS), dice.between(f"{site}.n", 0, 3)
            fields |= {"target": event, "params": {"n": n}}  # not 7: that starts workflows
        case _:
            fields |= attempts_of(dice, site)
    return Step(
        name=f"s{i}",  # type: ignore[arg-type]
        kind=kind,  # type: ignore[arg-type]
        depends_on=edges_of(dice, site, before),
        when=dice.pick(f"{site}.when", (None, None, None, None, "input.n > 1")),
        grace_ms=dice.pick(f"{site}.grace", (3_000, 30_000)),  # type: ignore[arg-type]
        **fields,
    )


def saga_step(dice: Dice, site: str, i: int, before: list[Step]) -> Step:
    """One effect of a saga; the whole is undone when it fails."""
    return Step(
        name=f"s{i}",  # type: ignore[arg-type]
        kind="run",
        target="fx.do",
        params={"n": "${ input.n }"},
        depends_on=tuple(Edge(step=step.name) for step in before[-1:]),
        retry=Retry(max_retries=1),
        timeout_ms=dice.pick(f"{site}.timeout", (None, 20_000)),  # type: ignore[arg-type]
        undo=Undo(kind="run", target="fx.undo", retry=Retry(max_retries=3)),
    )


def edges_of(dice: Dice, site: str, before: list[Step]) -> tuple[Edge, ...]:
    """Chains mostly, now and then a fan or a join."""
    if not before:
        return ()
    shape = dice.pick(f"{site}.shape", ("chain", "chain", "fan", "join", "root"))
    strict = dice.roll(f"{site}.strict") < 0.2
    chosen = {"chain": before[-1:], "fan": before[:1], "join": before[-2:], "root": []}[shape]
    return tuple(Edge(step=step.name, require_success=strict) for step in chosen)


def wait_of(dice: Dice, site: str) -> dict[str, Any]:
    """An event to wait for; one that nobody can send in time is passed over."""
    timeout = dice.pick(f"{site}.wait", (None, 20_000, HASTE_MS))
    wait = Wait(
        event=dice.pick(f"{site}.event", EVENTS),
        match=dice.pick(f"{site}.match", (None, "event.n == input.n", "event.n >= 0")),
        timeout_ms=timeout,  # type: ignore[arg-type]
    )
    if timeout == HASTE_MS:
        return {"wait": wait, "on_failure": "skip", "on_timeout": "fail"}
    return {"wait": wait}


def gate_of(dice: Dice, site: str) -> Gate:
    """Somebody to ask."""
    return Gate(
        role=dice.pick(f"{site}.role", (None, "Boss")),  # type: ignore[arg-type]
        quorum=dice.pick(f"{site}.quorum", (1, 1, 2)),
        expires_ms=dice.pick(f"{site}.expires", (None, 30_000)),  # type: ignore[arg-type]
        on_reject=dice.pick(f"{site}.reject", ("cancel", "fail")),
        on_expire=dice.pick(f"{site}.expire", ("escalate", "fail")),
    )


def attempts_of(dice: Dice, site: str) -> dict[str, Any]:
    """What only steps with an executor have."""
    retry = Retry(
        max_retries=dice.between(f"{site}.retries", 1, 3),
        backoff=dice.pick(f"{site}.backoff", ("constant", "exponential")),
    )
    undo = Undo(
        kind="run",
        target="fx.undo",
        params=dice.pick(f"{site}.undoing", (None, {"r": "${ result.n }"})),
        retry=dice.pick(f"{site}.again", (None, Retry(max_retries=2))),
        timeout_ms=dice.pick(f"{site}.undo_timeout", (None, 15_000)),  # type: ignore[arg-type]
    )
    return {
        "target": "fx.do",
        "params": dice.pick(f"{site}.with", (None, {"n": "${ input.n }"})),
        "timeout_ms": dice.pick(f"{site}.timeout", (None, None, 8_000, 40_000)),
        "retry": dice.pick(f"{site}.retry", (None, retry, retry)),
        "max_corrections": dice.pick(f"{site}.corrections", (0, 1, 2)),
        "check": dice.pick(f"{site}.check", (None, RESULT)),
        "undo": dice.pick(f"{site}.has_undo", (None, undo, undo)),
        "undo_on_failure": dice.roll(f"{site}.unsure") < 0.15,
    }


def instances_of(setup: Setup, flows: list[Flow]) -> list[Planned]:
    """What is to be started. Two tenants use the same ids, so that mixing them up is noticed."""
    dice = Dice(setup.seed)
    places = [dice.between("place", 0, SHARDS - 1) for _ in range(setup.places)]
    burst = dice.pick("burst", (1, 4, 12, 24))  # so many start together
    near = dice.pick("near", (0.0, 0.5, 1.0))  # how many live where what they talk to lives
    found: list[Planned] = []
    flows = [flow for flow in flows if not flow.child]
    for number in range(setup.instances):
        tenant = TENANTS[number % setup.tenants]
        flow = flows[dice.between("instance.flow", 0, len(flows) - 1)]
        data: dict[str, Any] = {
            "n": dice.between("instance.n", 0, 3),
            "group": dice.between("instance.group", 0, 1),
        }
        if "fans" in setup.rooms:
            size = dice.between(f"items:{number}", 0, 5)
            data["items"] = [dice.between(f"item:{number}", 0, 3) for _ in range(size)]
        key = f"i{number // setup.tenants}"
        if dice.roll(f"near:{number}") < near:
            key = settled(tenant, key, [shard_of(partner(tenant, flow, data["group"]))])
        elif setup.tenants == 1 or dice.roll(f"own:{number}") < 0.5:
            key = settled(tenant, key, places)
        cell = CellId(tenant, flow.workflow.name, InstanceId(key))
        at = dice.between(f"at:{number // burst}", 0, setup.storm_ms * 3 // 4)
        at += dice.between("instance.after", 0, 30)
        if setup.only is None or number in setup.only:
            later = dice.pick(f"later:{number}", LATER_MS) if "later" in setup.rooms else 0
            found.append(Planned(number, cell, flow, data, at, later))
    return found


def partner(tenant: Tenant, flow: Flow, group: int) -> CellId:
    """The system cell that an instance talks to most."""
    workflow = flow.workflow
    if workflow.concurrency is not None:
        return CellId(tenant, SLOTS, slots_key(workflow.name, group))
    events = [step.wait.event for step in workflow.steps if step.wait is not None]
    events += [step.target for step in workflow.steps if step.kind == "emit"]
    return topic_cell(tenant, events[0] if events else EVENTS[0])


def settled(tenant: Tenant, key: str, places: list[int]) -> str:
    """An id that lives in one of a few shards, so that cells meet."""
    for i in range(400):
        name = f"{key}-{i}"
        if shard_of(CellId(tenant, WorkflowName(""), InstanceId(name))) in places:
            return name
    return key
