"""Random workflows and random histories: what the property tests of the kernel run on."""

from random import Random
from typing import Any

from pawlflow.definition.shape import Edge, Gate, Keyed, Retry, Step, Undo, Wait, Workflow
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.state import next_deadline
from pawlflow.kernel.step import Stepped
from pawlflow.kernel.units import Unit
from pawlflow.model.ids import NO_ITEM, StepName
from pawlflow.model.inputs import (
    Approve,
    CancelInstance,
    ClaimReview,
    DeliverEvent,
    GrantSlot,
    HoldInstance,
    PauseInstance,
    Receipt,
    Reject,
    ResumeStep,
    Signal,
    Tick,
    UnpauseInstance,
)
from pawlflow.model.payload import Payload
from pawlflow.model.system import Continue
from tests.kernel.support import Live, failure, payload

PEOPLE = ("ann", "bob", "zoe")
ROLES = ("Boss", "Clerk")
KINDS = (
    *("run", "run", "run", "run", "agent", "workflow", "workflow"),
    *("sleep", "wait", "approval", "emit"),
)
FANNED_OUT = ("run", "agent", "workflow")
BAD_FOR_SOME = {"bad": "${ item + 1 }"}  # for those that are no numbers
BUDGETS = (
    *(None, None, None),
    {"usd": {"soft": 0.5, "hard": 1}},
    {"usd": {"hard": 0.5}, "tokens": {"soft": 600, "hard": 1_000}},
    {"tokens": {"soft": 400}},
)
COSTS = (None, None, {"usd": 0.3}, {"usd": 0.1, "tokens": 500})
USAGES = (
    *(None, None, None),
    {"usd": 0.05},
    {"usd": 0.7, "tokens": 350, "eur": 1},
    *({"usd": -1}, {"usd": "much"}, "much", {"tokens": 1e30}),  # which say nothing
)
LIMITS = (
    None,
    None,
    {},
    {"usd": 2},
    {"usd": 0.1},
    {"tokens": 5_000},
    {"eur": 1},
    {"usd": "all"},
    5,
)
CLASSES = ("transient", "validation", "timeout", "agent", "external", "governance", "terminal")


def random_workflow(random: Random) -> Workflow:
    """A small workflow with a bit of everything."""
    steps: list[Step] = []
    for i in range(random.randint(1, 7)):
        steps.append(random_step(random, i, steps))
    return Workflow(
        name="w",  # type: ignore[arg-type]
        steps=tuple(steps),
        timeout_ms=random.choice([None, 20_000, 200_000]),  # type: ignore[arg-type]
        failure_policy=random.choice(["abort", "skip", "compensate", "compensate", "retry"]),  # type: ignore[arg-type]
        max_parallel=random.choice([None, None, 1, 2]),
        concurrency=random.choice([None, None, Keyed(key="input.n", limit=1)]),
        on_undo_failure=random.choice(["stop", "continue"]),  # type: ignore[arg-type]
        parallel_undo=random.random() < 0.3,
        budget=random.choice(BUDGETS),
        output=random.choice([None, {"all": "${ steps }"}, {"bad": "${ 1 / input.zero }"}]),
    )


def random_step(random: Random, i: int, before: list[Step]) -> Step:
    """One step, leaning on some of those before it."""
    kind = random.choice(KINDS)
    edges = tuple(
        Edge(step=step.name, require_success=random.random() < 0.2)
        for step in random.sample(before, min(len(before), random.choice([0, 1, 1, 2])))
    )
    fields: dict[str, Any] = {}
    if kind == "sleep":
        fields["sleep_ms"] = random.choice([0, 1_000, 5_000])
    if kind == "wait":
        match = random.choice([None, "event.n == 1", "event.n == input.n", "event / 0"])
        fields["wait"] = Wait(event="e", match=match, timeout_ms=random.choice([None, 9_000]))  # type: ignore[arg-type]
    if kind == "approval":
        fields["gate"] = random_gate(random)
        fields["show"] = random.choice([None, {"n": "${ input.n }"}, "${ input.n + {} }"])
    if kind in ("run", "agent", "workflow"):
        fields |= random_attempts(random)
    elif random.random() < 0.4:
        fields["undo"], fields["undo_on_failure"] = random_undo(random), random.random() < 0.5
    if kind == "emit":
        fields["params"] = random.choice([None, {"n": "${ input.n }"}, {"bad": "${ input.n / 0 }"}])
    when = [None, None, None, "input.n == 1", "input.missing", "'text'"]
    if kind in FANNED_OUT and random.random() < 0.5:
        fields |= random_items(random, edges)
        when += ["item == 1", "index != 1", "item / 0 == 1"]
    return Step(
        name=f"s{i}",  # type: ignore[arg-type]
        kind=kind,  # type: ignore[arg-type]
        target=f"x.s{i}" if kind in ("run", "agent", "emit", "workflow") else "",
        depends_on=edges,
        when=random.choice(when),
        on_failure=random.choice([None, "abort", "skip", "compensate", "escalate"]),  # type: ignore[arg-type]
        on_timeout=random.choice(["fail", "retry", "escalate"]),  # type: ignore[arg-type]
        priority=random.choice([0, 0, 0, -1, 5]),
        **fields,
    )


def random_items(random: Random, edges: tuple[Edge, ...]) -> dict[str, Any]:
    """A list to go over: of the input, of a step before, or none at all."""
    lists = ["input.l", "input.l", "input.l", "input.n", "input.missing", "input.l + 1"]
    lists += [f"steps.{edge.step}.l" for edge in edges]
    undo = random.choice([None, {"i": "${ item }", "c": "${ command }"}, {"bad": "${ item / 0 }"}])
    fields: dict[str, Any] = {"for_each": random.choice(lists), "limit": random.randint(1, 3)}
    if random.random() < 0.6:
        fields["params"] = random.choice([{"i": "${ item }", "x": "${ index }"}, BAD_FOR_SOME])
    if random.random() < 0.6:
        fields["undo"] = Undo(kind="run", target="x.undo", params=undo)
    return fields


def random_gate(random: Random) -> Gate:
    """Somebody to ask."""
    return Gate(
        role=random.choice([None, "Boss"]),  # type: ignore[arg-type]
        quorum=random.choice([1, 1, 2]),
        not_by_requester=random.random() < 0.5,
        expires_ms=random.choice([None, 7_000]),  # type: ignore[arg-type]
        on_reject=random.choice(["cancel", "fail"]),  # type: ignore[arg-type]
        on_expire=random.choice(["escalate", "fail"]),  # type: ignore[arg-type]
    )


def random_attempts(random: Random) -> dict[str, Any]:
    """What only `run`, `agent` and children have."""
    retry = Retry(
        max_retries=random.randint(0, 2),
        backoff=random.choice(["constant", "linear", "exponential"]),  # type: ignore[arg-type]
    )
    undo = random_undo(random)
    return {
        "params": random.choice([None, {"n": "${ input.n }"}, {"bad": "${ input.n / 0 }"}]),
        "timeout_ms": random.choice([None, 3_000]),
        "retry": random.choice([None, retry]),
        "max_corrections": random.choice([0, 0, 2]),
        "undo": random.choice([None, undo, undo]),
        "undo_on_failure": random.random() < 0.2,
        "mutates": random.random() < 0.85,
        "cost": random.choice(COSTS),
    }


def random_undo(random: Random) -> Undo:
    """A way back, that may not be found."""
    return Undo(
        kind="run",
        target="x.undo",
        params=random.choice([None, {"r": "${ result.n }"}, {"bad": "${ result.n / 0 }"}]),
        retry=random.choice([None, Retry(max_retries=1)]),
        timeout_ms=random.choice([None, 4_000]),  # type: ignore[arg-type]
    )


def random_input(random: Random, live: Live) -> Stepped | Rejected:
    """Do something to the instance: mostly sensible, sometimes late, doubled or out of place."""
    choice = random.random()
    if choice < 0.15 and live.children:
        return answer_child(random, live)
    if choice < 0.6 and live.calls:
        return answer(random, live)
    if choice < 0.75:
        return tick(random, live)
    step = random_name(random, live)
    by, role = random.choice(PEOPLE), random.choice(ROLES)
    note = random.choice([None, payload("why")])
    return live.submit(
        random.choice(
            [
                Approve(step, by, role, note),
                Approve(step, by, role, note, money(random.choice(LIMITS))),
                Reject(step, by, role, note),
                ClaimReview(step, by, role, note),
                Signal("e", payload({"n": random.randint(0, 1)}), by),
                DeliverEvent("e", payload({"n": random.randint(0, 1)})),
                ResumeStep(step, by, "resume"),
                ResumeStep(step, by, "retry", params=random.choice([None, payload({"m": 1})])),
                ResumeStep(step, by, "reassign", role=random.choice([None, role])),
                PauseInstance(by, note),
                UnpauseInstance(by, note),
                UnpauseInstance(by, note),
                CancelInstance(by, note) if random.random() < 0.1 else Tick(),
                Continue(),
                GrantSlot(),
                HoldInstance(random.randint(0, 2)),
            ]
        )
    )


def random_name(random: Random, live: Live) -> StepName:
    """A step, or an item of one: there, still to come, or not there at all."""
    name = random.choice(live.plan.steps).name
    items = [live.cell.state.name_of(unit) for unit in open_items(live)]
    if items and random.random() < 0.4:
        return random.choice(items)
    if random.random() < 0.2:
        return StepName(f"{name}{random.choice(['[0]', '[1]', '[3]', '[9]', '[01]', '[', '[-1]'])}")
    return name


def open_items(live: Live) -> list[Unit]:
    """The items that are not settled."""
    units = map(live.cell.state.unit, sorted(live.cell.state.open))
    return [unit for unit in units if unit.item != NO_ITEM]


def answer_child(random: Random, live: Live) -> Stepped | Rejected:
    """A child closes: mostly one of the newest, now and then any child there ever was."""
    children = live.children[-3:] if random.random() < 0.8 else live.children
    child = random.choice(children)
    if random.random() < 0.5:
        return live.closed(child, random_result(random))
    return live.closed(child, kind=random.choice(CLASSES))


def random_result(random: Random) -> Any:
    """What an executor or a child says; a later step may go over its list."""
    items = [random.choice([0, 1, 2, "two"]) for _ in range(random.randint(0, 4))]
    return {"n": random.randint(0, 2), "l": items}


def answer(random: Random, live: Live) -> Stepped | Rejected:
    """An executor answers: mostly the newest calls, now and then any call ever made."""
    calls = live.calls[-3:] if random.random() < 0.85 else live.calls
    call = random.choice(calls)
    kind, usage = random.random(), money(random.choice(USAGES))
    if kind < 0.5:
        said = {"warnings": random.randint(0, 1), "usage": usage}
        result = payload(random_result(random))
        return live.submit(Receipt(call.key, call.attempt, "ok", result, **said))
    if kind < 0.9:
        why = failure(random.choice(CLASSES), findings=random.choice([None, ["mind the gap"]]))
        return live.submit(Receipt(call.key, call.attempt, "failed", failure=why, usage=usage))
    return live.submit(Receipt(call.key, call.attempt, "cancelled", usage=usage))


def money(amounts: Any) -> Payload | None:
    """Amounts as somebody says them, if they say any."""
    return None if amounts is None else payload(amounts)


def tick(random: Random, live: Live) -> Stepped | Rejected:
    """Let time pass: to the next deadline, or not quite."""
    due = next_deadline(live.cell.state)
    if due is None or random.random() < 0.1:
        return live.tick(live.now + 1)
    return live.tick(max(live.now, due[0] + random.choice([0, 0, 0, 500])))


def random_history(random: Random, turns: int = 60) -> Live:
    """A random workflow, started and pushed about."""
    return push(random, Live(random_workflow(random)), turns)


def push(random: Random, live: Live, turns: int) -> Live:
    """Start an instance and push it about; mostly it has its slot soon."""
    items = [random.choice([0, 1, 2, "two"]) for _ in range(random.randint(0, 4))]
    live.start({"n": random.randint(0, 1), "zero": 0, "l": items})
    if turns and random.random() < 0.8:
        live.submit(GrantSlot())
    for _ in range(turns):
        random_input(random, live)
        if live.cell.state.closed is not None and random.random() < 0.3:
            break
    return live
