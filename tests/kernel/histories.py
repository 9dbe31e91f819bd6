"""Random workflows and random histories: what the property tests of the kernel run on."""

from random import Random
from typing import Any

from pawlflow.definition.shape import Edge, Gate, Keyed, Retry, Step, Undo, Wait, Workflow
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.state import next_deadline
from pawlflow.kernel.step import Stepped
from pawlflow.model.inputs import (
    Approve,
    CancelInstance,
    DeliverEvent,
    PauseInstance,
    Receipt,
    Reject,
    ResumeStep,
    Signal,
    Tick,
    UnpauseInstance,
)
from pawlflow.model.system import GrantSlot, HoldInstance
from tests.kernel.support import Live, failure, payload

PEOPLE = ("ann", "bob", "zoe")
ROLES = ("Boss", "Clerk")
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
        output=random.choice([None, {"all": "${ steps }"}, {"bad": "${ 1 / input.zero }"}]),
    )


def random_step(random: Random, i: int, before: list[Step]) -> Step:
    """One step, leaning on some of those before it."""
    kind = random.choice(["run", "run", "run", "agent", "sleep", "wait", "approval", "emit"])
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
    if kind in ("run", "agent"):
        fields |= random_attempts(random)
    if kind == "emit":
        fields["params"] = random.choice([None, {"n": "${ input.n }"}, {"bad": "${ input.n / 0 }"}])
    return Step(
        name=f"s{i}",  # type: ignore[arg-type]
        kind=kind,  # type: ignore[arg-type]
        target=f"x.s{i}" if kind in ("run", "agent", "emit") else "",
        depends_on=edges,
        when=random.choice([None, None, None, "input.n == 1", "input.missing", "'text'"]),
        on_failure=random.choice([None, "abort", "skip", "compensate", "escalate"]),  # type: ignore[arg-type]
        on_timeout=random.choice(["fail", "retry", "escalate"]),  # type: ignore[arg-type]
        **fields,
    )


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
    """What only `run` and `agent` have."""
    retry = Retry(
        max_retries=random.randint(0, 2),
        backoff=random.choice(["constant", "linear", "exponential"]),  # type: ignore[arg-type]
    )
    undo = Undo(
        kind="run",
        target="x.undo",
        params=random.choice([None, {"r": "${ result.n }"}, {"bad": "${ result.n / 0 }"}]),
        retry=random.choice([None, Retry(max_retries=1)]),
        timeout_ms=random.choice([None, 4_000]),  # type: ignore[arg-type]
    )
    return {
        "params": random.choice([None, {"n": "${ input.n }"}, {"bad": "${ input.n / 0 }"}]),
        "timeout_ms": random.choice([None, 3_000]),
        "retry": random.choice([None, retry]),
        "max_corrections": random.choice([0, 0, 2]),
        "undo": random.choice([None, undo, undo]),
        "undo_on_failure": random.random() < 0.2,
        "mutates": random.random() < 0.85,
    }


def random_input(random: Random, live: Live) -> Stepped | Rejected:
    """Do something to the instance: mostly sensible, sometimes late, doubled or out of place."""
    choice = random.random()
    if choice < 0.55 and live.calls:
        return answer(random, live)
    if choice < 0.75:
        return tick(random, live)
    step = random.choice(live.plan.steps).name
    by, role = random.choice(PEOPLE), random.choice(ROLES)
    note = random.choice([None, payload("why")])
    return live.submit(
        random.choice(
            [
                Approve(step, by, role, note),
                Approve(step, by, role, note),
                Reject(step, by, role, note),
                Signal("e", payload({"n": random.randint(0, 1)}), by),
                DeliverEvent("e", payload({"n": random.randint(0, 1)})),
                ResumeStep(step, by, "resume"),
                ResumeStep(step, by, "retry", params=random.choice([None, payload({"m": 1})])),
                ResumeStep(step, by, "reassign", role=random.choice([None, role])),
                PauseInstance(by, note),
                UnpauseInstance(by, note),
                UnpauseInstance(by, note),
                CancelInstance(by, note) if random.random() < 0.1 else Tick(),
                GrantSlot(),
                HoldInstance(random.randint(0, 2)),
            ]
        )
    )


def answer(random: Random, live: Live) -> Stepped | Rejected:
    """An executor answers: mostly the newest calls, now and then any call ever made."""
    calls = live.calls[-3:] if random.random() < 0.85 else live.calls
    call = random.choice(calls)
    kind = random.random()
    if kind < 0.5:
        result = payload({"n": random.randint(0, 2)})
        return live.submit(Receipt(call.key, call.attempt, "ok", result, warnings=1))
    if kind < 0.9:
        why = failure(random.choice(CLASSES), findings=random.choice([None, ["mind the gap"]]))
        return live.submit(Receipt(call.key, call.attempt, "failed", failure=why))
    return live.submit(Receipt(call.key, call.attempt, "cancelled"))


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
    live.start({"n": random.randint(0, 1), "zero": 0})
    if turns and random.random() < 0.8:
        live.submit(GrantSlot())
    for _ in range(turns):
        random_input(random, live)
        if live.cell.state.closed is not None and random.random() < 0.3:
            break
    return live
