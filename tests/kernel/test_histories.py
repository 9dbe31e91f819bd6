"""What holds in every history, whatever is thrown at an instance."""

from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.kernel.draft import Rejected, calls_open, open_intents
from pawlflow.kernel.evolve import begin_turn, evolve
from pawlflow.kernel.replay import fold, read_turn
from pawlflow.kernel.snapshot import state_bytes, state_from_bytes
from pawlflow.kernel.state import Instance, next_deadline
from pawlflow.kernel.step import new_cell
from pawlflow.kernel.summary import instance_state
from pawlflow.kernel.units import (
    ESCALATED,
    FANNED,
    READY,
    RUNNING,
    SUCCEEDED,
    UNDO_RUNNING,
    WAITING,
    Unit,
)
from pawlflow.model.codec import decode, encode
from pawlflow.model.events import (
    CompensationStarted,
    GateGranted,
    GateRejected,
    LateSuccess,
    StepBackedOff,
    StepCancelled,
    StepCorrecting,
    StepEscalated,
    StepFailed,
    StepReady,
    StepRequeued,
    StepResumed,
    StepSkipped,
    StepStarted,
    StepSucceeded,
    StepWaiting,
    UndoDone,
    UndoFailed,
    UndoStarted,
)
from pawlflow.model.ids import NO_ITEM
from pawlflow.model.inputs import Tick
from pawlflow.model.system import AcquireSlot, AwaitEvent, ReleaseSlot, StopAwaiting
from pawlflow.projections.lenses import ioa, lens
from pawlflow.projections.verify import verify
from pawlflow.testing.sim.derived import derived
from tests.kernel.histories import push, random_history, random_input, random_workflow
from tests.kernel.support import Live, told

SEEDS = st.integers(min_value=0, max_value=2**32)


@pytest.mark.req("R1", "R5", "R11", "R12", "R13", "R18", "R19")
@given(SEEDS)
def test_live_replayed_and_reread_states_are_the_same_bytes_at_every_turn(seed):
    """Live == folded from the journal's bytes == written and read back, after every turn."""
    live = random_history(Random(seed))

    turns = [read_turn(turn.data, live.payloads) for turn in live.turns]
    baseline = None
    replayed = new_cell(live.id, live.plan)
    for turn in turns:
        begin_turn(replayed.state, turn.stamps)
        for event in turn.events:
            evolve(replayed.state, event)
        data = state_bytes(replayed.state)
        again = state_from_bytes(data, live.id, live.plan, live.payloads)
        assert state_bytes(again) == data
        assert derived(again) == derived(replayed.state)
        assert next_deadline(again) == next_deadline(replayed.state)
        baseline = baseline or again
        if again is not baseline:  # baseline + tail == full replay
            begin_turn(baseline, turn.stamps)
            for event in turn.events:
                evolve(baseline, event)
            assert state_bytes(baseline) == data

    assert state_bytes(live.cell.state) == state_bytes(replayed.state)
    assert derived(live.cell.state) == derived(replayed.state)
    assert open_intents(live.cell.state) == open_intents(replayed.state)


@pytest.mark.req("R11", "R17")
@given(SEEDS)
def test_deciding_the_journal_again_gives_the_same_bytes(seed):
    """Replay or die: events, intents and state, byte for byte, and the chain with them."""
    live = random_history(Random(seed))

    assert verify(live.id, live.plan, live.journal(), live.payloads) is None
    for turn in live.turns:
        assert encode(decode(turn.data)) == turn.data


@pytest.mark.req("R18", "R187")
@given(SEEDS, st.integers(min_value=1, max_value=60))
def test_the_state_at_any_turn_is_what_was_seen_then(seed, until):
    """Time travel is the fold up to that turn."""
    random = Random(seed)
    live = random_history(random, turns=0)
    seen = [state_bytes(live.cell.state)]
    seen += [
        state_bytes(live.cell.state)
        for _ in range(60)
        if not isinstance(random_input(random, live), Rejected)
    ]

    number = min(until, len(seen))
    journal = [turn.data for turn in live.turns]
    then = fold(live.id, live.plan, journal[:number], live.payloads)
    assert state_bytes(then.state) == seen[number - 1]


@pytest.mark.req("R83", "R82", "R81")
@given(SEEDS)
def test_the_state_by_counters_is_the_state_by_scanning(seed):
    """Instance state is a pure function of step states, and every lens has a word for it."""
    random = Random(seed)
    live = random_history(random, turns=0)
    for _ in range(60):
        random_input(random, live)
        state = live.cell.state
        assert instance_state(state) == scanned(state)
        statuses = statuses_of(state)
        assert state.counts == [statuses.count(status) for status in range(FANNED + 1)]
        assert set(lens(state)) == {"control-plane", "kernel", "ioa", "ores"}


def scanned(state: Instance) -> str:
    """The definition of the instance state, by looking at every step and item."""
    statuses = statuses_of(state)
    if state.outcome:
        return state.outcome
    if state.compensating:
        return "compensating"
    if state.started is None:
        return "queued" if state.queued else "created"
    if any(READY <= status < WAITING for status in statuses):
        return "running"
    if ESCALATED in statuses:
        return "escalated"
    return "waiting" if WAITING in statuses else "running"


def statuses_of(state: Instance) -> list[int]:
    """The status of every step, and of every item that was looked at."""
    steps = [state.status(step) for step in range(len(state.plan.steps))]
    return [*steps, *(unit.status for unit in items_of(state))]


def items_of(state: Instance) -> list[Unit]:
    """Every item that was looked at."""
    fans = state.fans.values()
    return [state.item(fan, item) for fan in fans for item in range(fan.cursor)]


def units_of(state: Instance) -> list[Unit]:
    """Every step that was touched, and every item."""
    return [*filter(None, state.units), *items_of(state)]


@pytest.mark.req("R225", "R86")
@given(SEEDS)
def test_topics_and_slots_are_told_all_they_need(seed):
    """By its sends alone: which waits are open, and whether a slot is asked for or given back."""
    random = Random(seed)
    live = random_history(random, turns=0)
    awaited: set[tuple[str, str]] = set()
    slots: list[type] = []
    seen = 0
    for _ in range(60):
        for send in (send for turn in live.turns[seen:] for send in turn.turn.sends):
            match send.input:
                case AwaitEvent():
                    assert (send.key, send.input.step) not in awaited
                    awaited.add((send.key, send.input.step))
                case StopAwaiting():
                    awaited.remove((send.key, send.input.step))
                case AcquireSlot() | ReleaseSlot():
                    slots.append(type(send.input))
        seen = len(live.turns)
        state = live.cell.state
        assert awaited == {
            (f"$topic/{event}", live.plan.steps[step].name)
            for event, steps in state.listening.items()
            for step in steps
        }
        both = [AcquireSlot, ReleaseSlot] if state.slot else []
        assert slots == (both if state.closed is not None else both[:1])
        random_input(random, live)


@pytest.mark.req("R39")
@given(SEEDS)
def test_what_is_in_flight_and_what_is_asked_is_known_without_looking(seed):
    """The count of calls is that of the open intents; each question that changed was noted."""
    random = Random(seed)
    live = random_history(random, turns=0)
    before: set[int] = set()
    for _ in range(60):
        state = live.cell.state
        assert calls_open(state) == len(open_intents(state))
        now = {unit.place for unit in units_of(state) if is_asked(unit)}
        assert before ^ now <= set(state.asked)
        before = now
        while isinstance(random_input(random, live), Rejected) and random.random() < 0.9:
            pass


def is_asked(unit: Unit) -> bool:
    """Does a human have to decide about this step?"""
    asked = unit.status == WAITING and unit.wait == "approval"
    return unit.status == ESCALATED or asked or unit.held


@pytest.mark.req("R34", "R144")
@given(SEEDS)
def test_a_refusal_changes_nothing(seed):
    """An input we refuse leaves the same bytes, and so does the one after it."""
    random = Random(seed)
    live = random_history(random, turns=0)
    for _ in range(60):
        before = state_bytes(live.cell.state), derived(live.cell.state), live.cell.head
        if isinstance(random_input(random, live), Rejected):
            after = state_bytes(live.cell.state), derived(live.cell.state), live.cell.head
            assert after == before


@pytest.mark.req("R80", "R7")
@given(SEEDS)
def test_terminal_states_absorb(seed):
    """A closed instance accepts nothing; a settled step never changes its status."""
    random = Random(seed)
    live = random_history(random, turns=0)
    settled: dict[tuple[int, int], int] = {}
    for _ in range(80):
        was_closed = live.cell.state.closed is not None
        outcome = random_input(random, live)
        assert not was_closed or isinstance(outcome, Rejected)
        state = live.cell.state
        statuses = {(unit.step, unit.item): unit.status for unit in items_of(state)}
        statuses |= {(step, -1): state.status(step) for step in range(len(live.plan.steps))}
        for unit, status in statuses.items():
            assert settled.get(unit, status) == status
            if status >= SUCCEEDED and status != FANNED:
                settled[unit] = status


@pytest.mark.req("R80", "R122")
@given(SEEDS)
def test_the_forbidden_transitions_of_spec_003_never_happen(seed):
    """No idle to executing, completed to any, failed to executing, compensating to executing."""
    live = random_history(Random(seed))
    cell = new_cell(live.id, live.plan)
    words = [ioa(cell.state)]
    compensating = False
    for stepped in live.turns:
        begin_turn(cell.state, stepped.turn.stamps)
        for event in stepped.turn.events:
            evolve(cell.state, event)
            if words[-1] != ioa(cell.state):
                words.append(ioa(cell.state))
            compensating = compensating or isinstance(event, CompensationStarted)
            forward = (StepReady, StepStarted, StepWaiting)
            assert not (compensating and isinstance(event, forward)), "forward after compensation"
    steps = list(pairwise(words))
    assert ("idle", "executing") not in steps
    assert all(before not in ("completed", "failed") for before, _ in steps)
    assert ("compensating", "executing") not in steps


@pytest.mark.req("R112", "R113", "R118")
@given(SEEDS)
def test_compensation_runs_in_exactly_the_reverse_of_completion(seed):
    """Each undo is of the step or item that completed last among those not undone yet.

    With parallelUndo the deepest go first, and only what lies equally deep runs together.
    """
    live = random_history(Random(seed))
    depths = [plan.depth for plan in live.plan.steps]  # all 0 without parallelUndo
    to_undo: list[tuple[int, int]] = []
    running: dict[tuple[int, int], None] = {}
    opened: set[int] = set()
    failing: set[tuple[int, int]] = set()
    for event in (event for stepped in live.turns for event in stepped.turn.events):
        if isinstance(event, StepWaiting) and event.kind in ("event", "approval"):
            opened.add(event.step)
        note_failing(event, opened, failing)
        if joins_the_list(live, event, opened, failing):
            to_undo.append((event.step, event.item))
            to_undo.sort(key=lambda unit: depths[unit[0]])
        elif is_first_undo(event):
            assert to_undo.pop() == (event.step, event.item)
        if isinstance(event, UndoStarted):
            running[event.step, event.item] = None
            assert len({depths[step] for step, _ in running}) == 1
            assert live.plan.parallel_undo or len(running) == 1
        elif isinstance(event, UndoDone | UndoFailed):
            running.pop((event.step, event.item), None)


def note_failing(event: Any, opened: set[int], failing: set[tuple[int, int]]) -> None:
    """Which attempts failed without an end of their step, and which waits nobody answered."""
    match event:
        case StepBackedOff() | StepCorrecting() | StepEscalated():
            if event.attempt or event.step in opened:
                failing.add((event.step, event.item))
        case StepRequeued() | StepResumed():
            if event.step in opened:  # it is asked again, as if it were the first time
                failing.discard((event.step, event.item))


def joins_the_list(live: Live, event: Any, opened: set[int], failing: set[tuple[int, int]]) -> bool:
    """Is this the completion of something that would have to be undone?"""
    match event:
        case StepCancelled():
            plan = live.plan.steps[event.step]
            failed = (event.step, event.item) in failing
            return plan.undo is not None and plan.undo_on_failure and failed
        case StepSucceeded() | GateGranted():
            plan = live.plan.steps[event.step]
            whole = plan.for_each is not None and event.item == NO_ITEM
            return plan.undo is not None and not whole
        case StepFailed() | StepSkipped():
            plan = live.plan.steps[event.step]
            begun = event.attempt > 0 or event.step in opened
            return plan.undo is not None and plan.undo_on_failure and begun
        case GateRejected():
            plan = live.plan.steps[event.step]
            return event.settles and plan.undo is not None and plan.undo_on_failure
        case LateSuccess():
            return event.undo
        case _:
            return False


def is_first_undo(event: Any) -> bool:
    """The first attempt at an undo, or an undo that could not even be attempted."""
    if isinstance(event, UndoFailed):
        return event.attempt == 0
    return isinstance(event, UndoStarted) and event.attempt == 1


@pytest.mark.req("R99", "R100", "R104", "R106", "R108")
@given(SEEDS)
def test_attempts_corrections_and_deadlines_keep_their_bounds(seed):
    """No budget is overdrawn, nothing fires early, at most one undo runs at a time."""
    live = random_history(Random(seed))
    state = live.cell.state
    for unit in units_of(state):
        plan = live.plan.steps[unit.step]
        assert unit.retries <= plan.retry.max_retries
        assert unit.corrections <= plan.max_corrections
    undoing = sum(unit.undo == UNDO_RUNNING for unit in units_of(state))
    assert undoing <= (live.plan.max_parallel or 100 if live.plan.parallel_undo else 1)
    if live.plan.max_parallel is not None:
        assert state.counts[RUNNING] <= live.plan.max_parallel
    for stepped in live.turns:
        if isinstance(stepped.turn.input, Tick):
            assert stepped.turn.events, "a tick that changed nothing was journalled"


@pytest.mark.req("R24", "R25", "R26")
@given(SEEDS)
def test_no_two_calls_share_an_identity(seed):
    """Intent ids are unique; the step key is shared by the attempts of one round only."""
    definition = random_workflow(Random(seed))
    one = push(Random(seed), Live(definition, key="i-1"), turns=30)
    two = push(Random(seed), Live(definition, key="i-2"), turns=30)

    ids = [call.id for call in one.calls + two.calls]
    assert len(set(ids)) == len(ids)
    by_key: dict[bytes, set[tuple[str, int]]] = {}
    for call in one.calls:
        by_key.setdefault(call.key, set()).add((told(call), call.round))
    assert all(len(stories) == 1 for stories in by_key.values())
    assert not by_key.keys() & {call.key for call in two.calls}
