"""A rate: no window of its span holds more starts than its limit, and nobody waits for nothing."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.state import next_deadline
from pawlflow.kernel.step import Stepped
from pawlflow.kernel.system import rate
from pawlflow.kernel.system.line import Line
from pawlflow.model.ids import CellId
from pawlflow.model.inputs import CancelInstance, GrantSlot, HoldInstance, Tick
from pawlflow.model.system import SLOTS, ReleaseSlot, slots_key
from pawlflow.model.timed import RATE, AskRate, LeaveRate, RateGranted, rate_key
from tests.kernel.support import TENANT, names, refused, sent
from tests.kernel.system_kit import Alone, Cells, instance, named

CELL = CellId(TENANT, RATE, rate_key("w", "k"))
GRANT = GrantSlot(rate=True)


def ask(key: str, limit: int = 2, per_ms: int = 60_000, priority: int = 0) -> AskRate:
    return AskRate("w", key, limit, per_ms, "k", priority)


def held(ahead: int) -> HoldInstance:
    return HoldInstance(ahead, rate=True)


class Clocked(Alone):
    """A rate with a clock that stands still until a test moves it."""

    def __init__(self) -> None:
        super().__init__(CELL)
        self.now = 0

    @property
    def due(self) -> int | None:
        found = next_deadline(self.cell.state)
        return None if found is None else found[0]

    def at(self, now: int, *inputs: object) -> list[object]:
        """Give these inputs at a time; the last outcome's sends."""
        self.now = now
        outcome = None
        for each in inputs:
            outcome = self.submit(each)
            assert isinstance(outcome, Stepped), (each, outcome)
        return [] if outcome is None else sent(outcome)


@pytest.mark.req("R214", "R226")
def test_as_many_as_the_limit_start_at_once_and_the_others_when_a_start_is_a_span_ago():
    """The window slides: each start makes room for one, a span later."""
    cell = Clocked()

    assert cell.at(0, ask("a")) == [("a", GRANT)]
    assert cell.at(20_000, ask("b")) == [("b", GRANT)]
    assert cell.at(30_000, ask("c")) == [("c", held(0))]
    assert cell.at(31_000, ask("d")) == [("d", held(1))]
    assert cell.due == 60_000
    assert cell.at(60_000, Tick()) == [("c", GRANT)]
    assert cell.due == 80_000
    assert cell.at(80_000, Tick()) == [("d", GRANT)]
    assert cell.due is None
    assert cell.at(119_999, ask("e")) == [("e", held(0))]
    assert cell.due == 120_000
    cell.assert_replays()


@pytest.mark.req("R214")
def test_higher_priorities_go_first_and_first_come_first_served_within_one():
    """Whoever waits is told how many are before it."""
    cell = Clocked()
    cell.at(0, ask("a", 1))

    assert cell.at(1, ask("low", 1, priority=-1)) == [("low", held(0))]
    assert cell.at(2, ask("b", 1)) == [("b", held(0))]
    assert cell.at(3, ask("high", 1, priority=5)) == [("high", held(0))]
    assert cell.at(4, ask("c", 1)) == [("c", held(2))]
    order = []
    for _ in range(4):
        due = cell.due
        assert due is not None
        order += [key for key, _ in cell.at(due, Tick())]
    assert order == ["high", "b", "c", "low"]
    assert cell.now == 4 * 60_000
    cell.assert_replays()


def test_whoever_leaves_the_line_is_passed_over():
    """A start that was granted stays one: who leaves after it gives no room."""
    cell = Clocked()
    cell.at(0, ask("a", 1), ask("b", 1), ask("c", 1))

    assert cell.at(1, LeaveRate("w", "b")) == []
    assert refused(cell.submit(LeaveRate("w", "a"))) == "rate.not_awaited"
    assert cell.at(60_000, Tick()) == [("c", GRANT)]
    cell.assert_replays()


@pytest.mark.parametrize(
    ("before", "incoming", "code"),
    [
        ([ask("a", 1), ask("b", 1)], ask("b", 1), "rate.asked"),
        ([], LeaveRate("w", "a"), "rate.not_awaited"),
        ([], Tick(), "timer.not_due"),
        ([ask("a", 1), ask("b", 1)], Tick(), "timer.not_due"),
        ([], ReleaseSlot("w", "a"), "input.misplaced"),
    ],
)
def test_what_does_not_fit_is_refused_without_a_trace(before, incoming, code):
    """Nothing changes, and the deadline stays what it was."""
    cell = Clocked()
    cell.at(0, *before)
    was = rate.facts_of(cell.cell.state), cell.cell.head, cell.due
    cell.now = 59_999

    assert refused(cell.submit(incoming)) == code
    assert (rate.facts_of(cell.cell.state), cell.cell.head, cell.due) == was


def test_the_limit_is_that_of_whoever_asked_last():
    """One that rises serves those who waited first; one that falls takes nothing back."""
    cell = Clocked()
    cell.at(0, ask("a", 1), ask("b", 1), ask("c", 1))

    raised = cell.submit(ask("d", 3))
    assert names(raised) == ["RateLimited", "RateGranted", "RateGranted", "RateQueued"]
    assert sent(raised) == [("b", GRANT), ("c", GRANT), ("d", held(0))]
    lowered = cell.submit(ask("e", 1))
    assert sent(lowered) == [("e", held(1))]
    assert cell.due == 60_000
    assert cell.at(60_000, Tick()) == [("d", GRANT)]
    assert cell.due == 120_000
    cell.assert_replays()


def test_many_who_may_start_are_let_go_in_several_turns(monkeypatch):
    """No turn is without bound: the rest is due at once."""
    monkeypatch.setattr(rate, "GRANTS_MAX", 2)
    cell = Clocked()
    cell.at(0, *(ask(key, 5) for key in "abcdefghij"))

    assert cell.at(60_000, Tick()) == [("f", GRANT), ("g", GRANT)]
    assert cell.due == 60_000
    assert cell.at(60_000, Tick()) == [("h", GRANT), ("i", GRANT)]
    assert cell.at(60_000, Tick()) == [("j", GRANT)]
    assert cell.due is None
    cell.assert_replays()


@pytest.mark.req("R214")
@given(st.integers(min_value=0, max_value=2**32))
def test_no_window_holds_more_starts_than_the_limit_and_estimates_come_true(seed):
    """Whatever is asked, left and granted when: counted by brute force, over every window."""
    random = Random(seed)
    limit, per_ms, cell = random.randint(1, 4), random.choice([7, 50]), Clocked()
    starts: list[int] = []
    for n in range(60):
        cell.now += random.choice([0, 0, 1, 3, 10])
        while cell.due is not None and cell.due <= cell.now:
            starts += granted(cell.submit(Tick()), cell.now)
        waiting = list(cell.cell.state.queue.priorities)
        if waiting and random.random() < 0.1:
            cell.submit(LeaveRate(*random.choice(waiting)))
        elif random.random() < 0.7:
            starts += granted(cell.submit(ask(f"i{n}", limit, per_ms)), cell.now)
        if random.random() < 0.2:
            cell.reread()
    for first in starts:
        assert sum(first <= each < first + per_ms for each in starts) <= limit
    estimates = [cell.cell.state.start_of(n) for n in range(len(cell.cell.state.queue))]
    kept: list[int] = []
    while cell.due is not None:
        cell.now = max(cell.now, cell.due)
        kept += granted(cell.submit(Tick()), cell.now)
    assert kept == [max(each, estimates[0]) for each in estimates]
    cell.assert_replays()


def granted(outcome: Stepped | Rejected, now: int) -> list[int]:
    """A time for each start of a turn."""
    assert isinstance(outcome, Stepped), outcome
    return [now for event in outcome.turn.events if isinstance(event, RateGranted)]


def test_a_line_keeps_its_order_when_it_is_written_and_read():
    """By priority, then by coming; leaving from the middle changes nothing else."""
    line = Line()
    for key, priority in [("a", 0), ("b", 3), ("c", 0), ("d", -2), ("e", 3)]:
        line.join(("w", key), priority)
    line.leave(("w", "b"))
    line.leave(("w", "nobody"))

    assert [place[1] for place in Line(line.places()).places()] == ["e", "a", "c", "d"]
    assert (len(line), line.first(), line.ahead(0), line.ahead(3)) == (4, ("w", "e"), 3, 1)


# With instances

LIMITED = named(
    "mail",
    "timeout: 1h\nrate: {key: input.to, limit: 1, per: 1m}\n"
    "steps: [{name: a, run: x.a, timeout: 30m}]",
)
BOTH = named(
    "deploy",
    "timeout: 1h\npriority: 3\nconcurrency: {key: input.repo}\n"
    "rate: {key: \"'all'\", limit: 1, per: 1m}\nsteps: [{name: a, run: x.a, timeout: 30m}]",
)


@pytest.mark.req("R86", "R214", "R226")
def test_instances_start_no_faster_than_their_rate():
    """Visibly queued until then, in order; one that is cancelled leaves the line."""
    cells = Cells(LIMITED)
    for key in ("a", "b", "c", "d"):
        cells.start("mail", key, {"to": "ann"})
    cells.start("mail", "other", {"to": "bob"})
    assert cells.instances() == {
        "a": "running",
        "other": "running",
        **dict.fromkeys("bcd", "queued"),
    }
    events = [type(each).__name__ for each in story(cells, "mail", "b")]
    assert events == ["InstanceCreated", "InstanceQueued"]

    cells.submit(instance("mail", "b"), CancelInstance("ann"))
    cells.now = 60_000
    cells.submit(CellId(TENANT, RATE, rate_key("mail", "ann")), Tick())

    assert cells.instances()["b"] == "cancelled"
    assert cells.state(instance("mail", "c")).started == 60_000
    assert cells.instances()["d"] == "queued"
    assert cells.refused == []
    cells.assert_replays()


@pytest.mark.req("R214")
def test_a_slot_comes_before_the_rate_so_that_starts_are_what_is_counted():
    """Whoever waits for its rate has its slot; a cancel gives both back."""
    cells = Cells(BOTH)
    rate_cell = CellId(TENANT, RATE, rate_key("deploy", "all"))
    slots = CellId(TENANT, SLOTS, slots_key("deploy", "r1"))
    cells.start("deploy", "a", {"repo": "r1"})
    cells.start("deploy", "b", {"repo": "r1"})  # waits for the slot of a
    cells.start("deploy", "c", {"repo": "r2"})  # has a slot, waits for the rate
    assert cells.instances() == {"a": "running", "b": "queued", "c": "queued"}
    assert list(cells.state(rate_cell).queue.priorities) == [("deploy", "c")]
    assert cells.state(slots).queue.priorities == {("deploy", "b"): 3}

    cells.now = 10_000
    cells.ok("a", "a")  # b gets its slot, and stands behind c now
    assert list(cells.state(rate_cell).queue.priorities) == [("deploy", "c"), ("deploy", "b")]
    assert cells.state(instance("deploy", "b")).granted
    cells.submit(instance("deploy", "c"), CancelInstance("ann"))
    cells.now = 60_000
    cells.submit(rate_cell, Tick())

    assert cells.instances() == {"a": "completed", "b": "running", "c": "cancelled"}
    assert [type(each).__name__ for each in story(cells, "deploy", "b")][:4] == [
        "InstanceCreated",
        "InstanceQueued",
        "InstanceGranted",
        "InstanceStarted",
    ]
    assert cells.state(slots).holders == {("deploy", "b"): None}
    assert cells.refused == [("b", "slot.not_awaited")]  # told to wait once more
    cells.assert_replays()


def test_an_answer_that_is_not_awaited_is_refused():
    """The second grant of a rate must not pass for a slot, nor one that comes after the start."""
    cells = Cells(BOTH)
    cells.start("deploy", "a", {"repo": "r1"})
    cells.start("deploy", "b", {"repo": "r1"})
    b = instance("deploy", "b")

    assert refused(cells.submit(b, GRANT)) == "slot.not_awaited"
    assert refused(cells.submit(b, held(0))) == "slot.not_awaited"
    assert refused(cells.submit(b, HoldInstance(0))) == "slot.not_awaited"
    assert refused(cells.submit(instance("deploy", "a"), GRANT)) == "slot.not_awaited"


TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map"


@pytest.mark.parametrize("key", ["input.x + 1", f"{TEN}(a, input.x)"])
def test_a_key_without_a_value_refuses_the_start(key):
    """Before the instance exists: nothing is left behind."""
    cells = Cells(
        named("w", f"rate: {{key: '{key}', limit: 1, per: 1m}}\nsteps: [{{name: a, sleep: 1s}}]")
    )
    value = "x" * 2_000_000 if "map" in key else "text"

    assert refused(cells.start("w", "a", {"x": value})) == "concurrency.key"
    assert cells.journal[instance("w", "a")] == []


def story(cells: Cells, name: str, key: str) -> list[object]:
    """Every event of an instance."""
    turns = cells.journal[instance(name, key)]
    return [event for stepped in turns for event in stepped.turn.events]
