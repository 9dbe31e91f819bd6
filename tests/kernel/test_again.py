"""Steps that run again, gates that ask again: what holds whatever people do and when."""

from random import Random

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pawlflow.definition.shape import Edge, Gate, Rung, Step, Undo, Workflow
from pawlflow.kernel.draft import open_intents
from pawlflow.kernel.snapshot import snapshot_payloads, state_bytes, state_from_bytes
from pawlflow.kernel.summary import instance_state
from pawlflow.kernel.units import SUCCEEDED, UNDO_NONE
from pawlflow.model.inputs import Approve, CancelInstance, Reject, ResumeStep
from pawlflow.projections.lenses import lens
from pawlflow.projections.units import named_units, status_of, undo_of
from pawlflow.projections.verify import verify
from pawlflow.testing.sim.derived import derived
from tests.kernel.histories import random_input, random_workflow
from tests.kernel.support import Live, payload

SEEDS = st.integers(min_value=0, max_value=2**32)
LADDERS = (
    (),
    (Rung(role="Boss", timeout_ms=4_000), Rung(role="Clerk", channel="mail", timeout_ms=3_000)),
    (Rung(role="Boss"), Rung(role="Clerk")),
)


def agreeing(random: Random) -> Workflow:
    """A random workflow with gates that send back and guard."""
    base = random_workflow(random)
    steps = [
        msgspec.structs.replace(step, on_failure=random.choice(["skip", "skip", "escalate"]))
        for step in base.steps
    ]
    for i in range(random.randint(1, 2)):
        sent_back = [step.name for step in steps if step.kind in ("run", "agent")]
        gate = Gate(
            quorum=random.choice([1, 1, 2]),
            expires_ms=random.choice([None, 9_000]),
            on_reject=random.choice(["changes", "changes", "changes", "fail"]),
            guards=(f"do{i}",) if random.random() < 0.7 else (),
            revise=tuple(random.sample(sent_back, min(len(sent_back), random.randint(0, 2)))),
        )
        edges = tuple(Edge(step=step.name) for step in steps)
        gated = Step(name=f"gate{i}", kind="approval", gate=gate, depends_on=edges)
        undo = random.choice([None, Undo(kind="run", target="x.undo")])
        unsure = undo is not None and random.random() < 0.5
        steps.append(msgspec.structs.replace(gated, undo=undo, undo_on_failure=unsure))
        steps.append(guarded(random, i, steps))
    return msgspec.structs.replace(
        base,
        steps=tuple(steps),
        timeout_ms=None,
        concurrency=None,
        failure_policy="skip",
        escalation=random.choice(LADDERS),
    )


def guarded(random: Random, i: int, before: list[Step]) -> Step:
    """A step behind a gate, whose call may come out in many ways."""
    seen, kind = random.choice(before).name, random.choice(["run", "agent", "emit"])
    return Step(
        name=f"do{i}",
        kind=kind,
        target=f"x.do{i}",
        depends_on=(Edge(step=f"gate{i}"),) if random.random() < 0.8 else (),
        params=random.choice(
            [None, {"by": f"${{ steps.gate{i}.by }}"}, {"n": f"${{ steps.{seen}.n }}"}]
        ),
        for_each=None if kind == "emit" else random.choice([None, "input.l"]),
        on_failure="escalate",
        max_corrections=random.choice([0, 1]),
        undo=random.choice([None, Undo(kind="run", target="x.undo")]),
    )


def push(random: Random, live: Live, turns: int = 80) -> Live:
    """Start it and push it about, deciding its gates again and again."""
    items = [random.choice([0, 1, 2, "two"]) for _ in range(random.randint(0, 4))]
    live.start({"n": 1, "zero": 0, "l": items})
    gates = [plan.name for plan in live.plan.steps if plan.gate is not None]
    for _ in range(turns):
        act = random.random()
        gate, by = random.choice(gates), random.choice(["ann", "bob", "eve"])
        if act < 0.15:
            live.submit(Approve(gate, by, "Boss"))
        elif act < 0.3:
            live.submit(Reject(gate, by, "Boss", random.choice([None, payload("better")])))
        elif act < 0.4:
            role = random.choice([None, "Boss", "Clerk"])
            edited = random.choice([None, payload({"m": 1})])
            name = random.choice(live.plan.steps).name
            live.submit(ResumeStep(name, by, "retry", params=edited, acting=role))
        else:
            random_input(random, live)
        if random.random() < 0.1:
            evict(live)
    return live


def evict(live: Live) -> None:
    """Drop the live state, and read it from its bytes."""
    state = live.cell.state
    values = {each.addr: each.data for each in snapshot_payloads(state)}
    again = state_from_bytes(state_bytes(state), live.id, live.plan, values)
    assert derived(again) == derived(state)
    live.cell.state = again


@pytest.mark.req("R11", "R12", "R19", "R204")
@given(SEEDS)
def test_whatever_runs_again_is_decided_again_to_the_same_bytes(seed):
    """Also if the state was dropped and read again in between."""
    random = Random(seed)
    live = push(random, Live(agreeing(random)))

    assert verify(live.id, live.plan, live.journal(), live.payloads) is None
    again = live.reread()
    assert state_bytes(again.cell.state) == state_bytes(live.cell.state)
    assert derived(again.cell.state) == derived(live.cell.state)
    assert open_intents(again.cell.state) == open_intents(live.cell.state)


@pytest.mark.req("R83", "R113", "R204")
@given(SEEDS)
def test_every_success_is_undone_or_still_listed(seed):
    """However often a step ran: a cancel under compensate leaves no effect behind unseen."""
    random = Random(seed)
    flow = msgspec.structs.replace(agreeing(random), failure_policy="compensate")
    live = push(random, Live(flow), 50)
    live.submit(CancelInstance("zoe"))
    state = live.cell.state

    runs = [*filter(None, state.units), *state.items.values()]
    listed = [u for u in runs if (u.status == SUCCEEDED and u.step not in state.fans) or u.over]
    for unit in listed:
        plan = state.plan.steps[unit.step]
        if unit.status == SUCCEEDED and plan.undo is not None and plan.for_each is None:
            assert unit.undo != UNDO_NONE, state.name_of(unit)
    for _, unit in named_units(state):
        assert undo_of(state, unit)
        assert status_of(state, unit)
    assert instance_state(state)
    assert lens(state)


@pytest.mark.req("R204")
@example(1745)
@given(SEEDS)
def test_nothing_guarded_runs_without_its_approval(seed):
    """Each attempt of a guarded step was approved: that call, in that round, by its gate."""
    random = Random(seed)
    live = Live(agreeing(random))
    push(random, live)

    for call in live.calls:
        gates = live.plan.guarded_by.get(live.plan.index[call.step], [])
        if call.direction == "do" and gates:
            assert any(granted_before(live, gate, call) for gate in gates)


def granted_before(live: Live, gate: int, call) -> bool:
    """Was there a grant that names this step or item, before its turn?"""
    name = call.step if call.item < 0 else f"{call.step}[{call.item}]"
    for stepped in live.turns:
        for event in stepped.turn.events:
            kind = type(event).__name__
            if kind == "GateBound" and event.step == gate and name in event.digests.value:
                return True
            if kind == "StepSkipped" and event.step == gate:
                return True
        if call in stepped.intents:
            return False
    return False
