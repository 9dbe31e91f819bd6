"""Starting later: an instance that waits for its time is there, and can be cancelled."""

import pytest

from pawlflow.kernel.heads import facts_of
from pawlflow.kernel.replay import fold
from pawlflow.kernel.snapshot import state_bytes, state_from_bytes
from pawlflow.kernel.state import next_deadline
from pawlflow.kernel.step import Stepped
from pawlflow.model.ids import CellId
from pawlflow.model.inputs import CancelInstance, PauseInstance, StartInstance, Tick
from pawlflow.model.system import SLOTS, slots_key
from pawlflow.model.timed import RATE, rate_key
from tests.kernel.support import TENANT, names, payload, refused
from tests.kernel.system_kit import Cells, instance, named

HOUR = 3_600_000
PLAIN = named("w", "timeout: 1h\nsteps: [{name: a, run: x.a, timeout: 1m}]")
BOUND = named(
    "w",
    "timeout: 1h\nconcurrency: {key: input.k}\nrate: {key: input.k, limit: 1, per: 1m}\n"
    "steps: [{name: a, run: x.a, timeout: 1m}]",
)
A = instance("w", "a")


def started_at(cells: Cells, at: int | None, key: str = "a") -> Stepped:
    """Start an instance that waits for a time."""
    definition = next(iter(cells.plans))
    start = StartInstance(definition, payload({"k": 1}), "zoe", start_at=at)
    outcome = cells.submit(instance("w", key), start)
    assert isinstance(outcome, Stepped)
    return outcome


@pytest.mark.req("R215")
def test_an_instance_may_be_created_now_and_start_later():
    """Its timeout counts from the start; until then it is created, and due."""
    cells = Cells(PLAIN)

    assert names(started_at(cells, HOUR)) == ["InstanceCreated"]
    assert cells.instances() == {"a": "created"}
    facts = facts_of(cells.state(A))
    assert (facts.state, facts.due_at, facts.started_at) == ("created", HOUR, None)
    cells.now = HOUR - 1
    assert refused(cells.submit(A, Tick())) == "timer.not_due"
    cells.now = HOUR
    begun = cells.submit(A, Tick())

    assert names(begun)[:3] == ["InstanceDue", "InstanceQueued", "InstanceStarted"]
    assert cells.calls[-1].step == "a"
    assert next_deadline(cells.state(A))[0] == HOUR + 60_000
    cells.assert_replays()


@pytest.mark.req("R215")
@pytest.mark.parametrize("spec", ["timeout: 1h\n", ""])
def test_the_time_to_start_is_no_deadline_after_it_has_come(spec):
    """An engine that reads the instance again must not take it for the workflow's timeout."""
    cells = Cells(named("w", f"{spec}steps: [{{name: a, run: x.a, timeout: 1m}}]"))
    started_at(cells, HOUR)
    cells.now = HOUR
    cells.submit(A, Tick())

    journal = [turn.data for turn in cells.journal[A]]
    again = fold(A, cells.state(A).plan, journal, cells.payloads).state

    assert facts_of(again) == facts_of(cells.state(A))
    assert next_deadline(again)[0] == HOUR + 60_000


@pytest.mark.parametrize("at", [0, 500, 1_000, None])
def test_a_time_that_has_passed_is_now(at):
    """Nothing is said about it: the instance begins at once."""
    cells = Cells(PLAIN)
    cells.now = 1_000

    outcome = started_at(cells, at)

    assert names(outcome)[:3] == ["InstanceCreated", "InstanceQueued", "InstanceStarted"]
    assert outcome.turn.events[0].start_at is None


@pytest.mark.req("R215")
def test_an_instance_can_be_cancelled_before_its_time():
    """Then nothing is due any more, and neither slots nor rates have ever heard of it."""
    cells = Cells(BOUND)
    started_at(cells, HOUR)

    cells.submit(A, CancelInstance("ann"))

    assert cells.instances() == {"a": "cancelled"}
    assert next_deadline(cells.state(A)) is None
    assert list(cells.cells) == [A]
    cells.now = HOUR
    assert refused(cells.submit(A, Tick())) == "instance.closed"
    cells.assert_replays()


@pytest.mark.req("R86", "R214")
def test_slots_and_rates_are_asked_when_the_time_has_come():
    """Whoever starts later stands in no line before that."""
    cells = Cells(BOUND)
    started_at(cells, HOUR)
    started_at(cells, None, "b")
    slots = cells.state(CellId(TENANT, SLOTS, slots_key("w", 1)))
    rate = cells.state(CellId(TENANT, RATE, rate_key("w", 1)))
    assert list(slots.holders) == [("w", "b")]
    assert len(rate.queue) == len(slots.queue) == 0

    cells.now = HOUR
    assert names(cells.submit(A, Tick())) == ["InstanceDue"]

    assert cells.instances() == {"a": "queued", "b": "running"}
    assert list(slots.queue.priorities) == [("w", "a")]
    cells.ok("b", "a")
    assert cells.instances() == {"a": "running", "b": "completed"}
    cells.assert_replays()


def test_a_state_that_is_read_back_is_still_due():
    """The deadline follows from the facts."""
    cells = Cells(PLAIN)
    started_at(cells, HOUR)
    state = cells.state(A)

    again = state_from_bytes(state_bytes(state), A, state.plan, cells.payloads)

    assert next_deadline(again) == next_deadline(state) == (HOUR, 0, -1)


def test_a_paused_instance_begins_in_its_time_and_starts_no_step():
    """A pause holds back steps, not clocks."""
    cells = Cells(PLAIN)
    started_at(cells, HOUR)
    cells.submit(A, PauseInstance("ann"))
    cells.now = HOUR

    cells.submit(A, Tick())

    assert cells.state(A).started == HOUR
    assert cells.calls == []
