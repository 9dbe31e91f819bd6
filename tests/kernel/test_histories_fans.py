"""What holds in every history of a workflow with items and children, whatever is thrown at it."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.kernel.snapshot import state_bytes, state_from_bytes
from pawlflow.kernel.state import Instance
from pawlflow.kernel.step import Cell, Stepped
from pawlflow.kernel.units import FANNED, SKIPPED, SUCCEEDED, WAITING, Fan, is_open
from pawlflow.model.events import (
    StepEscalated,
    StepFailed,
    StepFanned,
    StepReady,
    StepSkipped,
    StepStarted,
    StepSucceeded,
)
from pawlflow.model.ids import NO_ITEM
from pawlflow.model.inputs import Receipt
from pawlflow.projections.units import error_of, items_of, named_units, undo_of
from pawlflow.projections.verify import verify
from tests.kernel.histories import push, random_input, random_workflow
from tests.kernel.support import Live

SEEDS = st.integers(min_value=0, max_value=2**32)


def branching(random: Random) -> Live:
    """A random instance, started, that has a step with items or a child."""
    shape = random_workflow(random)
    while not any(step.for_each or step.kind == "workflow" for step in shape.steps):
        shape = random_workflow(random)
    return push(random, Live(shape), turns=0)


@pytest.mark.req("R5", "R11", "R84")
@given(SEEDS)
def test_a_state_that_was_reread_decides_as_the_live_one(seed):
    """Dropped and read again at any turn, an instance goes on to the same bytes."""
    random = Random(seed)
    live = branching(random)
    for _ in range(60):
        random_input(random, live)
        if random.random() < 0.4:
            state = state_bytes(live.cell.state)
            again = state_from_bytes(state, live.id, live.plan, live.payloads)
            live.cell = Cell(again, live.cell.head)

    assert verify(live.id, live.plan, live.journal(), live.payloads) is None


@pytest.mark.req("R84", "R215")
@given(SEEDS)
def test_as_many_items_are_open_as_there_is_room_for(seed):
    """Never more than `limit`, and never fewer while there are items left to look at."""
    random = Random(seed)
    live = branching(random)
    for _ in range(60):
        random_input(random, live)
        state = live.cell.state
        for fan in state.fans.values():
            looked = [state.item(fan, item) for item in range(fan.cursor)]
            assert fan.open == sum(is_open(unit.status) for unit in looked)
            assert fan.open <= live.plan.steps[fan.step].limit
            if state.closing is None and state.status(fan.step) == FANNED:
                full = fan.open == live.plan.steps[fan.step].limit
                assert full or (fan.cursor == fan.size and fan.open > 0)


@pytest.mark.req("R84", "R215")
@given(SEEDS)
def test_items_begin_in_the_order_of_the_list(seed):
    """Each item is looked at once, in order, and none after the last."""
    live = branching(Random(seed))
    pushed(Random(seed), live)
    sizes: dict[int, int] = {}
    looked: dict[int, int] = {}
    first_of_item = (StepReady, StepSkipped, StepFailed, StepEscalated)
    for event in events_of(live):
        if isinstance(event, StepFanned):
            sizes[event.step], looked[event.step] = event.size, 0
        elif isinstance(event, first_of_item) and event.item != NO_ITEM:
            assert event.item <= looked[event.step]
            looked[event.step] = max(looked[event.step], event.item + 1)
            assert looked[event.step] <= sizes[event.step]


@pytest.mark.req("R95", "R215")
@given(SEEDS)
def test_the_result_of_a_fan_is_the_list_of_what_its_items_gave(seed):
    """In the order of the list, whatever order they came in; null for those without a result."""
    live = branching(Random(seed))
    pushed(Random(seed), live)
    given_by = {
        (event.step, event.item): event.result.value
        for event in events_of(live)
        if isinstance(event, StepSucceeded)
    }
    state = live.cell.state
    for step, fan in state.fans.items():
        wanted = [given_by.get((step, item)) for item in range(fan.size)]
        done = state.status(step) == SUCCEEDED
        assert state.result_of(step) == (wanted if done else None)
        if done:
            assert all(unit.status in (SUCCEEDED, SKIPPED) for unit in items_of(state, fan))


@pytest.mark.req("R215")
@given(SEEDS)
def test_a_step_is_the_sum_of_its_items(seed):
    """Attempts and feedback add up; the worst undo counts; a failure has the item's attempts."""
    live = branching(Random(seed))
    pushed(Random(seed), live)
    state = live.cell.state
    for step, fan in state.fans.items():
        whole, items = state.unit(step), items_of(state, fan)
        assert whole.attempt == sum(unit.attempt for unit in items)
        assert whole.feedback == sum(unit.feedback for unit in items)
        assert undo_of(state, whole) == worst(state, fan)
    error = error_of(state)
    if error is not None and error["step"] is not None and state.closing is not None:
        failed = state.at(state.closing.step, state.closing.item)
        assert error["attempts"] == failed.attempt
    assert len(dict(named_units(state))) == len(list(named_units(state)))


def worst(state: Instance, fan: Fan) -> str:
    """The worst that became of an item's effect; without items, whether it would have had one."""
    done = state.compensating and state.unit(fan.step).status == SUCCEEDED
    alone = "not_required" if done and not state.plan.steps[fan.step].mutates else "none"
    order = ("failed", "pending", "running", "done", "not_required", "none")
    found = [undo_of(state, unit) for unit in items_of(state, fan)]
    return min(found, key=order.index, default=alone)


@pytest.mark.req("R92", "R215")
@given(SEEDS)
def test_a_child_is_awaited_or_it_was_answered_or_told_to_stop(seed):
    """By sends and receipts alone: no child is forgotten, and none is started twice."""
    random = Random(seed)
    live = branching(random)
    answered: set[tuple[bytes, int]] = set()
    for _ in range(60):
        stepped = random_input(random, live)
        if isinstance(stepped, Stepped) and isinstance(stepped.turn.input, Receipt):
            answered.add((stepped.turn.input.key, stepped.turn.input.attempt))
        started = [child.child for child in live.children]
        stopped = [child.child for child in live.unwanted]
        assert len(set(started)) == len(started)
        assert len(set(stopped)) == len(stopped)
        awaited = awaited_children(live)
        for child in live.children:
            parent = child.parent
            if (parent.step_key, parent.attempt) not in awaited:
                told = child.child in stopped
                assert told or (parent.step_key, parent.attempt) in answered
        if live.cell.state.closing is not None:
            assert all(key in told_to_stop(live) for key in awaited)
        if live.cell.state.closed is not None:
            assert not awaited


def awaited_children(live: Live) -> set[tuple[bytes, int]]:
    """The attempts whose child is awaited now."""
    state = live.cell.state
    units = [state.unit(place) for place in state.open]
    waiting = [unit for unit in units if unit.status == WAITING and unit.wait == "child"]
    return {(state.do_keys[unit.place], unit.attempt) for unit in waiting}


def told_to_stop(live: Live) -> set[tuple[bytes, int]]:
    """The attempts whose child was told to stop."""
    stopped = {child.child for child in live.unwanted}
    parents = [child.parent for child in live.children if child.child in stopped]
    return {(parent.step_key, parent.attempt) for parent in parents}


@pytest.mark.req("R84", "R215")
@given(SEEDS)
def test_what_became_ready_together_starts_in_the_order_of_the_file(seed):
    """Order in the file, then item index, within one turn; a priority goes before both."""
    live = branching(Random(seed))
    pushed(Random(seed), live)
    priority = [plan.priority for plan in live.plan.steps]
    for stepped in [] if live.plan.budget else live.turns:
        ready = [(e.step, e.item) for e in stepped.turn.events if isinstance(e, StepReady)]
        first = [step for step, item in ready if item <= 0]
        started = [
            (e.step, e.item)
            for e in stepped.turn.events
            if isinstance(e, StepStarted) and e.attempt == 1 and (e.step, e.item) in ready
        ]
        in_line = sorted(ready, key=lambda unit: -priority[unit[0]])
        assert started == [unit for unit in in_line if unit in started]
        if is_start(stepped, live.plan.roots):
            assert first == sorted(first)


def is_start(stepped: Stepped, roots: tuple[int, ...]) -> bool:
    """Did everything that became ready in this turn become ready together?"""
    ready = {event.step for event in stepped.turn.events if isinstance(event, StepReady)}
    return stepped.turn.number == 1 and ready <= set(roots)


def events_of(live: Live) -> list[object]:
    """Every event so far."""
    return [event for stepped in live.turns for event in stepped.turn.events]


def pushed(random: Random, live: Live) -> Live:
    """Push a started instance about."""
    for _ in range(60):
        random_input(random, live)
    return live
