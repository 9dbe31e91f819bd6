"""Events: one per transition, each applied, each with its published name."""

from random import Random
from typing import get_args

import pytest

from pawlflow.definition.shape import Step, Workflow
from pawlflow.kernel import evolve
from pawlflow.kernel.evolve import EVOLVE, ROOMS, handlers
from pawlflow.kernel.replay import apply_turn, read_turn
from pawlflow.kernel.step import new_cell
from pawlflow.kernel.units import SUCCEEDED
from pawlflow.model.events import Event
from pawlflow.projections.publish import NAMES
from pawlflow.testing.vocabulary import EVENTS
from tests.kernel.histories import random_history
from tests.kernel.support import Live, names, workflow


@pytest.mark.req("R88", "R33")
def test_every_event_is_applied_and_has_its_place_outside():
    """Evolve is total over the events, and so is the table of published names."""
    kinds = set(get_args(Event))

    assert set(EVOLVE) == kinds
    assert len(list(handlers(vars(evolve), *map(vars, ROOMS)))) == len(kinds)  # none has two
    assert set(NAMES) == kinds
    fixed = {name for name in NAMES.values() if isinstance(name, str)}
    assert fixed <= set(EVENTS)


@pytest.mark.req("R88", "R89")
def test_every_change_of_a_step_is_one_event_of_the_same_turn():
    """Between two turns no status changes, and within one each change has its event."""
    for seed in range(150):
        live = random_history(Random(seed))
        cell = new_cell(live.id, live.plan)
        before = [0] * len(live.plan.steps)
        for stepped in live.turns:
            for event in apply_turn(cell.state, read_turn(stepped.data, live.payloads)):
                after = [cell.state.status(step) for step in range(len(live.plan.steps))]
                changed = [step for step, was in enumerate(before) if after[step] != was]
                if cell.state.closed is None:
                    assert changed in ([], [getattr(event, "step", None)])
                before = after


CHAIN = "timeout: 1h\nsteps:\n{steps}"
A = "  - {name: a, run: x.a, timeout: 1m}\n"
B = "  - {name: b, run: x.b, timeout: 1m}\n"


@pytest.mark.req("R201")
def test_a_step_is_known_by_its_name_not_by_its_place():
    """Reordering independent steps changes no step key."""
    one, two = Live(CHAIN.format(steps=A + B)), Live(CHAIN.format(steps=B + A))
    one.start()
    two.start()

    assert {call.step: call.key for call in one.calls} == {
        call.step: call.key for call in two.calls
    }
    assert one.started == ["a#1", "b#1"]
    assert two.started == ["b#1", "a#1"]


@pytest.mark.req("R211")
def test_a_turn_of_a_wide_plan_says_only_what_changed():
    """Ten thousand steps wait; one completes: its turn has the events of its successors only."""
    first = Step(name="first", kind="run", target="x.a")
    rest = tuple(Step(name=f"s{n}", kind="run", target="x.b") for n in range(10_000))
    live = Live(Workflow(name="w", steps=(first, *rest), max_parallel=1))
    live.start()

    done = live.ok("first")

    assert names(done) == ["StepSucceeded", "StepStarted"]
    assert live.cell.state.counts[SUCCEEDED] == 1
    assert len(done.data) < 300


@pytest.mark.req("R95")
def test_results_are_addressed_by_name():
    """A step with an empty result shifts nothing."""
    live = Live(
        workflow(
            "timeout: 1h\nsteps:\n"
            "  - {name: a, run: x.a, timeout: 1m}\n"
            "  - {name: b, run: x.b, timeout: 1m}\n"
            "  - {name: c, run: x.c, timeout: 1m, dependsOn: [a, b], with: {b: '${ steps.b }'}}"
        )
    )
    live.start()
    live.ok("a", None)
    live.ok("b", "result of b")

    assert live.call("c").params.value == {"b": "result of b"}
