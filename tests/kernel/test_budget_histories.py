"""What holds for budgets and lines in every history, whatever is thrown at an instance."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.kernel.budget import limit_of, short_of, taken
from pawlflow.kernel.counters import stands
from pawlflow.kernel.evolve import begin_turn, evolve
from pawlflow.kernel.state import Instance
from pawlflow.kernel.step import new_cell
from pawlflow.kernel.units import CORRECTING, READY, RUNNING, Unit
from pawlflow.model.budgets import BudgetWarned
from pawlflow.model.events import StepStarted
from tests.kernel.histories import random_history, random_input

SEEDS = st.integers(min_value=0, max_value=2**32)


def open_units(state: Instance) -> list[Unit]:
    """Every step and item that has begun and is not settled."""
    return [state.unit(place) for place in sorted(state.open)]


@pytest.mark.req("R205")
@given(SEEDS)
def test_what_is_reserved_is_what_the_running_attempts_may_cost(seed):
    """Reserved when they begin, given back when they end, whatever ends them."""
    random = Random(seed)
    live = random_history(random, turns=0)
    for _ in range(60):
        state = live.cell.state
        running = [unit for unit in open_units(state) if unit.status == RUNNING]
        for name in live.plan.budget:
            costs = [live.plan.steps[unit.step].cost.get(name, 0) for unit in running]
            assert state.reserved.get(name, 0) == sum(costs)
        random_input(random, live)


@pytest.mark.req("R205")
@given(SEEDS)
def test_nothing_starts_beyond_a_hard_limit_and_what_is_spent_stays_spent(seed):
    """Each start leaves what is spent and reserved within the limits of that moment."""
    live = random_history(Random(seed))
    cell = new_cell(live.id, live.plan)
    state = cell.state
    for stepped in live.turns:
        begin_turn(state, stepped.turn.stamps)
        for event in stepped.turn.events:
            before = dict(state.spent)
            evolve(state, event)
            assert all(state.spent[name] >= amount for name, amount in before.items())
            if isinstance(event, StepStarted):
                limits = {name: limit_of(state, name) for name in live.plan.budget}
                for name, limit in limits.items():
                    assert limit is None or taken(state, name) <= limit


@pytest.mark.req("R205", "R214")
@given(SEEDS)
def test_whoever_is_ready_stands_in_one_line_and_whoever_is_held_in_another(seed):
    """Nobody is forgotten, nobody stands twice, and those in line are there in order."""
    random = Random(seed)
    live = random_history(random, turns=0)
    for _ in range(60):
        state = live.cell.state
        ready = [unit for unit in open_units(state) if unit.status in (READY, CORRECTING)]
        lined = [
            entry
            for entry in (*state.attempts, *state.openings)
            if stands(state, entry, held=False)
        ]
        held = {entry for entry in state.held if stands(state, entry, held=True)}
        assert sorted(lined) == sorted(place_of(state, unit) for unit in ready if not unit.held)
        assert held == {place_of(state, unit) for unit in ready if unit.held}
        assert not any(unit.held for unit in open_units(state) if unit not in ready)
        random_input(random, live)


def place_of(state: Instance, unit: Unit) -> tuple[int, int, int]:
    """Where a unit stands: higher priority first, then who was ready first."""
    return -state.plan.steps[unit.step].priority, unit.order, unit.place


@pytest.mark.req("R205")
@given(SEEDS)
def test_nothing_is_held_that_could_begin(seed):
    """Unless it is paused, or every place is taken: then it would not begin anyway."""
    random = Random(seed)
    live = random_history(random, turns=0)
    for _ in range(60):
        state = live.cell.state
        most = live.plan.max_parallel
        full = most is not None and state.counts[RUNNING] >= most
        for unit in open_units(state):
            if unit.held and not state.paused and not full:
                assert short_of(state, unit)
        random_input(random, live)


@pytest.mark.req("R205")
@given(SEEDS)
def test_a_soft_limit_is_told_once_and_as_soon_as_it_is_passed(seed):
    """After every turn each soft limit that was ever passed has been told, and once."""
    random = Random(seed)
    live = random_history(random, turns=0)
    passed: set[str] = set()
    for _ in range(60):
        state = live.cell.state
        if state.closing is None:
            limits = live.plan.budget.items()
            passed |= {n for n, (soft, _) in limits if soft is not None and taken(state, n) > soft}
        told = [e.unit for t in live.turns for e in t.turn.events if isinstance(e, BudgetWarned)]
        assert passed <= set(told)
        assert len(told) == len(set(told))
        random_input(random, live)
