"""The language of a run: which parts of it a seed draws from, and what they do to a definition.

Each part is a room of the kernel: a seed switches each on or off, like a kind of fault, and a tape
names those that it needs. Without any the definitions are those of the first simulator.
"""

from typing import Any, Final

from msgspec.structs import replace

from pawlflow.definition.shape import (
    CatchUp,
    Edge,
    Gate,
    Keyed,
    Retry,
    Rung,
    Schedule,
    Step,
    Trigger,
    Undo,
    Workflow,
)
from pawlflow.model.ids import DurationMs, RoleName, WorkflowName
from pawlflow.testing.sim.chance import Dice

Rooms = tuple[str, ...]
ROOMS: Final = (
    *("fans", "children", "parallel", "budget", "priority", "guards"),
    *("revise", "ladder", "rate", "schedule", "later", "search", "policies", "withdrawn"),
)
ATTEMPTED: Final = ("run", "agent")
FANNED: Final = ("run", "agent", "workflow")
OPENED: Final = ("wait", "approval")
GIVEN: Final = (1, 2)  # the items of an instance that was started without any
ITEMS: Final = "has(input.items) ? input.items : [1, 2]"
GROUP: Final = "has(input.group) ? input.group : 0"
WHEN_ITEM: Final = "item > 1"
WITH_ITEM: Final = {"item": "${ item }", "i": "${ index }"}
UNDO_ITEM: Final = {"item": "${ item }", "r": "${ result.n }"}
UNDO_ANSWER: Final = {"answer": "${ result }"}
LEAVES: Final = ("c1", "c1", "cl", "cx")  # children without children; cl comes late, cx never
PAID: Final = "fx.paid"  # an effect that says what it cost
GOVERNED: Final = {
    "action": "act",
    "resource": {"group": "${ has(input.group) ? input.group : 0 }"},
}
# What is published in a run, and retired, one after the other; each is a version of its name.
POLICIES: Final = (("p", 1), ("q", 1), ("p", 2), ("q", 0), ("p", 3), ("q", 2))
# Cron line -> its period: all that is drawn comes at whole multiples of it.
PERIODS: Final = {"*/2 * * * *": 120_000, "*/5 * * * *": 300_000, "*/15 * * * *": 900_000}
STIRS: Final = {
    "parallel": ("exec.terminal",),
    "revise": ("client.changes",),
    "ladder": ("client.away",),
    "guards": ("client.edit", "exec.validation"),
    "budget": ("client.limits",),
    "withdrawn": ("exec.terminal",),
}
LADDER: Final = (
    Rung(role=RoleName("Lead"), timeout_ms=DurationMs(20_000)),
    Rung(role=RoleName("Boss"), timeout_ms=DurationMs(40_000)),
    Rung(role=RoleName("Chief")),
)


def rooms_of(dice: Dice) -> Rooms:
    """The parts of the language that a seed uses."""
    share = dice.pick("rooms.share", (0.0, 0.2, 0.35, 0.6))
    return tuple(room for room in ROOMS if dice.roll(f"rooms.on:{room}") < share)


def stirred_by(rooms: Rooms) -> frozenset[str]:
    """The kinds of fault without which nothing would happen in these rooms."""
    return frozenset(kind for room in rooms for kind in STIRS.get(room, ()))


# Steps


def enrich_step(dice: Dice, site: str, step: Step, before: list[Step], rooms: Rooms) -> Step:
    """A step of the first simulator, with what the language has learnt since."""
    gated = "guards" in rooms or "revise" in rooms
    if gated and before and step.gate is None and dice.roll(f"{site}.gated") < 0.35:
        step = gate_step(dice, site, step)
    elif "children" in rooms and dice.roll(f"{site}.child") < 0.3:
        step = child_step(dice, site, step, ("c0", "c0", *LEAVES))
    if "guards" in rooms and step.kind in ATTEMPTED:  # another round needs another approval
        step = replace(step, max_corrections=max(1, step.max_corrections))
    if "parallel" in rooms and step.undo is not None and dice.roll(f"{site}.beside") < 0.5:
        step = replace(step, depends_on=step.depends_on[:0])  # so that branches end in any order
    if "fans" in rooms and step.kind in FANNED and dice.roll(f"{site}.fan") < 0.5:
        step = fanned(dice, site, step, before)
    if "priority" in rooms:
        step = replace(step, priority=dice.pick(f"{site}.priority", (0, 0, 1, 5)))
    if "budget" in rooms and step.kind in ATTEMPTED:
        cost = dice.pick(f"{site}.cost", (None, {"usd": 0.5}, {"usd": 1, "tokens": 50}))
        step = replace(step, target=PAID, cost=cost)
    if "policies" in rooms and step.kind in FANNED and dice.roll(f"{site}.governed") < 0.6:
        step = replace(step, policy=GOVERNED)
    if "withdrawn" in rooms and step.kind in OPENED and dice.roll(f"{site}.withdrawn") < 0.8:
        undo = Undo(kind="run", target="fx.undo", params=UNDO_ANSWER, retry=Retry(max_retries=3))
        step = replace(step, undo=undo, undo_on_failure=dice.roll(f"{site}.unanswered") < 0.5)
    return step


def child_step(dice: Dice, site: str, step: Step, names: tuple[str, ...]) -> Step:
    """A workflow as a step."""
    given = {"n": "${ input.n }", "group": "${ input.group }"}
    undo = Undo(kind="run", target="fx.undo", retry=Retry(max_retries=3))
    return Step(
        name=step.name,
        kind="workflow",
        target=dice.pick(f"{site}.target", names),
        depends_on=step.depends_on,
        when=step.when,
        params=dice.pick(f"{site}.given", (given, given, None)),
        timeout_ms=dice.pick(f"{site}.patience", (None, None, 15_000)),  # type: ignore[arg-type]
        retry=dice.pick(f"{site}.renewed", (None, Retry(max_retries=1))),
        on_failure=step.on_failure,
        on_timeout=step.on_timeout,
        undo=dice.pick(f"{site}.taken_back", (None, undo)),
    )


def fanned(dice: Dice, site: str, step: Step, before: list[Step]) -> Step:
    """The same for each item of a list: of the input, or of what a step before it gave."""
    lists = [ITEMS, ITEMS]
    lists += [f"steps.{e.step}.list" for e in step.depends_on if is_run(before, e)]
    per_item = dice.roll(f"{site}.when_item") < 0.3
    undo = None if step.undo is None else replace(step.undo, params=UNDO_ITEM)
    return replace(
        step,
        for_each=dice.pick(f"{site}.list", lists),
        limit=dice.between(f"{site}.at_a_time", 1, 3),
        when=WHEN_ITEM if per_item else step.when,
        params=WITH_ITEM if step.kind != "workflow" else step.params,
        undo=undo if step.kind != "workflow" else step.undo,
    )


def is_run(before: list[Step], edge: Edge) -> bool:
    """Does this dependency give a list?"""
    return any(s.name == edge.step and s.kind in ATTEMPTED and not s.for_each for s in before)


# Gates


def gate_step(dice: Dice, site: str, step: Step) -> Step:
    """Somebody is asked in place of what was to be done."""
    gate = Gate(
        role=dice.pick(f"{site}.asked", (None, RoleName("Boss"))),
        quorum=dice.pick(f"{site}.votes", (1, 2, 2)),
        not_by_requester=dice.roll(f"{site}.not_by") < 0.3,
        expires_ms=dice.pick(f"{site}.lasts", (None, None, 30_000)),  # type: ignore[arg-type]
        on_reject=dice.pick(f"{site}.no", ("cancel", "fail")),
    )
    given = {"n": "${ input.n }"}
    return Step(name=step.name, kind="approval", gate=gate, show=given, depends_on=step.depends_on)


def enrich_gates(dice: Dice, name: str, steps: list[Step], rooms: Rooms) -> list[Step]:
    """Gates that guard what comes after them, and that send back what came before."""
    found = list(steps)
    for i, step in enumerate(steps):
        if step.gate is None:
            continue
        gate, site = step.gate, f"{name}.s{i}"
        if "guards" in rooms:
            gate = replace(gate, guards=guarded(dice, site, steps[i + 1 :]))
        if "revise" in rooms and dice.roll(f"{site}.changes") < 0.7:
            gate = revising(dice, site, gate, leading_to(steps, step))
        found[i] = replace(step, gate=gate)
    return found


def guarded(dice: Dice, site: str, after: list[Step]) -> tuple[Any, ...]:
    """Some of the steps behind a gate."""
    found = [step.name for step in after if step.kind in FANNED]
    return tuple(each for each in found if dice.roll(f"{site}.guards:{each}") < 0.6)


def revising(dice: Dice, site: str, gate: Gate, before: list[Step]) -> Gate:
    """Rejecting asks for changes, if there is anything to change."""
    found = [step.name for step in before if step.kind in ATTEMPTED]
    if not found:
        return gate
    named = dice.pick(f"{site}.revise", found)
    return replace(gate, on_reject="changes", revise=(named,))


def leading_to(steps: list[Step], last: Step) -> list[Step]:
    """Every step that comes before one."""
    names = {edge.step for edge in last.depends_on}
    found: list[Step] = []
    for step in reversed(steps):
        if step.name in names:
            found.append(step)
            names |= {edge.step for edge in step.depends_on}
    return found


# The whole


def enrich(dice: Dice, flow: Workflow, rooms: Rooms) -> Workflow:
    """A definition of the first simulator, with what the language has learnt since."""
    name, fields = flow.name, dict[str, Any]()
    if rooms:
        fields["steps"] = tuple(enrich_gates(dice, name, list(flow.steps), rooms))
    if rooms and flow.concurrency is not None:
        fields["concurrency"] = replace(flow.concurrency, key=GROUP)
    if {"parallel", "withdrawn"} & {*rooms}:
        fields["parallel_undo"] = "parallel" in rooms and dice.roll(f"{name}.at_once") < 0.7
        fields["failure_policy"] = dice.pick(f"{name}.back", (flow.failure_policy, "compensate"))
    if "budget" in rooms:
        fields["budget"] = budget_of(dice, name)
    if "priority" in rooms:
        fields["max_parallel"] = dice.pick(f"{name}.places", (None, 1, 2))
        fields["priority"] = dice.pick(f"{name}.priority", (0, 3))
    if "ladder" in rooms:
        fields["escalation"] = LADDER[dice.between(f"{name}.rungs", 0, 1) :]
    if "search" in rooms:
        fields["search"] = {"n": "has(input.n) ? input.n : 0", "group": GROUP}
    if "rate" in rooms and dice.roll(f"{name}.rated") < 0.6:
        limit, span = dice.between(f"{name}.starts", 1, 2), dice.pick(f"{name}.span", (5, 30))
        fields["rate"] = Keyed(key=GROUP, limit=limit, per_ms=DurationMs(span * 1_000))
    if "schedule" in rooms and dice.roll(f"{name}.scheduled") < 0.6:
        fields["trigger"] = scheduled(dice, name, flow.trigger)
    return replace(flow, **fields)


def budget_of(dice: Dice, name: str) -> dict[str, Any]:
    """Limits that are soon reached."""
    usd = {"soft": 1, "hard": dice.pick(f"{name}.usd", (1, 2, 3))}
    tokens = {"hard": dice.pick(f"{name}.tokens", (60, 120, 400))}
    return dice.pick(f"{name}.budget", ({"usd": usd}, {"usd": usd, "tokens": tokens}))


def schedules_of(dice: Dice, rooms: Rooms) -> list[Schedule]:
    """Schedules that stand by themselves."""
    if "schedule" not in rooms or dice.roll("beside") < 0.5:
        return []
    cron, catch_up = times_of(dice, "beside")
    return [
        Schedule(
            name="beside",
            workflow=WorkflowName("w0"),
            schedule=cron,
            catch_up=catch_up,
            input={"n": 2, "group": 1, "due": "${ schedule.due }"},
        )
    ]


def times_of(dice: Dice, name: str) -> tuple[str, CatchUp]:
    """When, and what becomes of the missed; all are caught up only where they are few."""
    catch_up: CatchUp = dice.pick(f"{name}.catch_up", ("none", "last", "all"))
    lines = tuple(PERIODS)
    return dice.pick(f"{name}.cron", lines[-1:] if catch_up == "all" else lines), catch_up


def scheduled(dice: Dice, name: str, known: Trigger | None) -> Trigger:
    """It starts by itself, from time to time."""
    cron, catch_up = times_of(dice, name)
    return replace(known or Trigger(), schedule=cron, catch_up=catch_up)
