"""A schedule: what is due is started once, by a name made of its time; nothing reads a clock."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.kernel.state import next_deadline
from pawlflow.kernel.step import Stepped
from pawlflow.kernel.system import schedule
from pawlflow.kernel.system.schedule import moment, run_key
from pawlflow.model.inputs import StartInstance, Tick
from pawlflow.model.system import REGISTRY, PublishDefinition, registry_cell
from pawlflow.model.timed import (
    AskRate,
    BackfillSchedule,
    Cron,
    PauseSchedule,
    PublishSchedule,
    RemoveSchedule,
    ScheduleTick,
    SetSchedule,
    UnpauseSchedule,
    WithdrawSchedule,
    schedule_cell,
    schedule_key,
)
from tests.kernel.support import TENANT, names, payload, refused, sent
from tests.kernel.system_kit import Alone

HOUR = 3_600_000
CELL = schedule_cell(TENANT, "nightly")
DAILY = Cron("0 6 * * *", "UTC", "none")
DIGEST = b"d" * 32


def planned(cron: Cron = DAILY, *, next_: int | None = 6 * HOUR, **more: object) -> SetSchedule:
    value = more.pop("value", {})
    digest = more.pop("digest", DIGEST)
    return SetSchedule("report", digest, cron, payload(value), "ann", next=next_, **more)


class Clocked(Alone):
    """A schedule with a clock that stands still until a test moves it."""

    def __init__(self, *inputs: object) -> None:
        super().__init__(CELL)
        self.now = 0
        for each in inputs:
            assert isinstance(self.submit(each), Stepped)

    @property
    def due(self) -> int | None:
        found = next_deadline(self.cell.state)
        return None if found is None else found[0]

    def tick(self, *due: int, next_: int | None) -> Stepped:
        outcome = self.submit(ScheduleTick(tuple(due), next_))
        assert isinstance(outcome, Stepped), outcome
        return outcome


def started(outcome: Stepped) -> list[str]:
    """The ids of what a turn starts."""
    return [key for key, incoming in sent(outcome) if isinstance(incoming, StartInstance)]


@pytest.mark.req("R215", "R226")
def test_each_time_that_has_come_starts_an_instance_named_by_it():
    """The id says which run it is, so the same one cannot be started twice."""
    cell = Clocked(planned())
    assert cell.due == 6 * HOUR
    cell.now = 6 * HOUR

    outcome = cell.tick(6 * HOUR, next_=30 * HOUR)

    assert names(outcome) == ["ScheduleFired"]
    assert sent(outcome) == [
        ("nightly.1970-01-01T06:00Z", StartInstance(DIGEST, payload({}), "schedule:nightly"))
    ]
    assert cell.due == 30 * HOUR
    cell.assert_replays()


@pytest.mark.req("R215")
def test_what_was_missed_is_on_the_record():
    """None of it, or all but the last: admission says what is started, the cell what is not."""
    cell = Clocked(planned())
    cell.now = 60 * HOUR

    skipped = cell.tick(next_=78 * HOUR)
    assert names(skipped) == ["ScheduleMissed", "ScheduleFired"]
    assert cell.cell.state.missed == schedule.Missed(6 * HOUR, 60 * HOUR, "")
    cell.now = 130 * HOUR
    last = cell.tick(126 * HOUR, next_=150 * HOUR)

    assert started(last) == ["nightly.1970-01-06T06:00Z"]
    assert cell.cell.state.missed == schedule.Missed(78 * HOUR, 126 * HOUR, "")
    assert (cell.cell.state.fired, list(cell.cell.state.recent)) == (1, [126 * HOUR])
    cell.assert_replays()


@pytest.mark.req("R215")
def test_a_paused_schedule_keeps_its_place():
    """It has no deadline; once it goes on, what it missed is due at once."""
    cell = Clocked(planned())
    cell.now = HOUR

    assert names(cell.submit(PauseSchedule("ann", payload("holiday")))) == ["SchedulePaused"]
    assert cell.due is None
    assert refused(cell.submit(PauseSchedule("bob"))) == "schedule.paused"
    assert refused(cell.submit(ScheduleTick((), None))) == "timer.not_due"
    cell.reread()
    assert (cell.cell.state.paused_by, cell.cell.state.paused_at) == ("ann", HOUR)
    cell.now = 100 * HOUR
    cell.submit(UnpauseSchedule("bob"))

    assert cell.due == 6 * HOUR
    assert refused(cell.submit(UnpauseSchedule("bob"))) == "schedule.not_paused"
    cell.assert_replays()


@pytest.mark.req("R215")
def test_a_new_definition_keeps_the_place_and_new_times_begin_anew():
    """What was missed before the change is still caught up, if the times are the same."""
    cell = Clocked(planned())
    cell.now = 200 * HOUR

    cell.submit(planned(digest=b"e" * 32, next_=222 * HOUR))
    assert cell.due == 6 * HOUR
    cell.submit(planned(Cron("0 6 * * *", "UTC", "all"), next_=222 * HOUR))
    assert cell.due == 6 * HOUR
    cell.submit(planned(Cron("0 7 * * *", "UTC", "all"), next_=223 * HOUR))
    assert cell.due == 223 * HOUR
    cell.submit(planned(Cron("0 7 * * *", "Europe/Berlin", "all"), next_=222 * HOUR))
    assert cell.due == 222 * HOUR
    cell.assert_replays()


def test_a_document_may_say_whether_it_is_paused_or_leave_that_to_people():
    """Left out, whatever somebody did stays as it is."""
    cell = Clocked(planned(paused=True))
    assert cell.due is None

    cell.submit(planned())
    assert cell.due is None
    assert names(cell.submit(planned(paused=True))) == ["ScheduleChanged"]
    assert names(cell.submit(planned(paused=False))) == ["ScheduleChanged", "ScheduleUnpaused"]
    assert cell.due == 6 * HOUR
    cell.assert_replays()


@pytest.mark.req("R215")
def test_a_schedule_that_is_removed_starts_nothing_and_can_come_back():
    """Nothing of its past is left: neither a pause nor a place."""
    cell = Clocked(planned(), PauseSchedule("ann"), RemoveSchedule("ann"))
    assert cell.due is None
    for incoming in (RemoveSchedule("ann"), PauseSchedule("ann"), ScheduleTick((), None)):
        assert refused(cell.submit(incoming)) == "schedule.unknown"

    cell.submit(planned(next_=54 * HOUR))

    assert cell.due == 54 * HOUR
    assert cell.cell.state.paused_by is None
    cell.assert_replays()


@pytest.mark.parametrize(
    ("incoming", "code"),
    [
        (Tick(), "timer.not_due"),
        (ScheduleTick((6 * HOUR,), None), "timer.not_due"),
        (BackfillSchedule(0, 1, "ann"), "schedule.nothing"),
        (AskRate("w", "i", 1, 1, ""), "input.misplaced"),
        (UnpauseSchedule("ann"), "schedule.not_paused"),
    ],
)
def test_what_does_not_fit_is_refused_without_a_trace(incoming, code):
    """Also a tick that comes too early, whatever it says."""
    cell = Clocked(planned())
    was = schedule.facts_of(cell.cell.state), cell.cell.head
    cell.now = 6 * HOUR - 1

    assert refused(cell.submit(incoming)) == code
    assert (schedule.facts_of(cell.cell.state), cell.cell.head) == was


@pytest.mark.req("R215")
def test_a_backfill_goes_on_page_by_page_and_changes_nothing_about_what_comes():
    """The next page is sent by the cell to itself; ids are those of the schedule's own runs."""
    cell = Clocked(planned())
    cell.now = 100 * HOUR

    outcome = cell.submit(BackfillSchedule(0, 90 * HOUR, "ann", (6 * HOUR, 30 * HOUR), 54 * HOUR))

    assert names(outcome) == ["ScheduleBackfilled"]
    assert started(outcome) == ["nightly.1970-01-01T06:00Z", "nightly.1970-01-02T06:00Z"]
    assert sent(outcome)[-1] == (CELL.key, BackfillSchedule(54 * HOUR, 90 * HOUR, "ann"))
    last = cell.submit(BackfillSchedule(54 * HOUR, 90 * HOUR, "ann", (54 * HOUR,)))
    assert [key for key, _ in sent(last)] == ["nightly.1970-01-03T06:00Z"]
    assert (cell.due, cell.cell.state.fired) == (6 * HOUR, 0)
    cell.assert_replays()


def test_each_run_gets_its_own_input():
    """From the name and the time; a text without an expression is the same for all."""
    value = {"of": "${ schedule.name }", "day": "${ schedule.due }", "n": 1}
    cell = Clocked(planned(value=value))
    cell.now = 50 * HOUR

    outcome = cell.tick(6 * HOUR, 30 * HOUR, next_=54 * HOUR)

    assert [incoming.input.value for _, incoming in sent(outcome)] == [
        {"of": "nightly", "day": "1970-01-01T06:00:00Z", "n": 1},
        {"of": "nightly", "day": "1970-01-02T06:00:00Z", "n": 1},
    ]
    cell.assert_replays()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("${ schedule.due.contains('01-02') ? 1 / 0 : 1 }", "expression.divide_by_zero"),
        ("${ schedule.due.contains('01-02') ? [] + 1 : [] }", "expression.type"),
    ],
)
def test_a_run_whose_input_cannot_be_made_is_left_out_and_on_the_record(text, code):
    """The others are started."""
    cell = Clocked(planned(value={"n": text}))
    cell.now = 60 * HOUR

    outcome = cell.tick(6 * HOUR, 30 * HOUR, 54 * HOUR, next_=78 * HOUR)

    assert started(outcome) == ["nightly.1970-01-01T06:00Z", "nightly.1970-01-03T06:00Z"]
    assert cell.cell.state.missed == schedule.Missed(30 * HOUR, 30 * HOUR, code)
    cell.assert_replays()


def test_an_input_that_grows_too_large_is_left_out():
    """It would not fit into a payload."""
    ten = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map"
    text = f"${{ {ten}(a, {ten}(b, {ten}(c, schedule.name == '' ? '' : '{'x' * 9_000}'))) }}"
    cell = Clocked(planned(value={"a": text, "b": text}))
    cell.now = 6 * HOUR

    outcome = cell.tick(6 * HOUR, next_=None)

    assert started(outcome) == []
    assert cell.cell.state.missed == schedule.Missed(6 * HOUR, 6 * HOUR, "payload.too_large")
    assert cell.due is None


def test_an_input_that_was_never_checked_stops_nothing():
    """A program may publish what `pawl check` would have refused."""
    cell = Clocked(planned(value={"a": "${ nope"}))
    cell.now = 6 * HOUR

    assert started(cell.tick(6 * HOUR, next_=30 * HOUR)) == []
    assert cell.cell.state.missed == schedule.Missed(6 * HOUR, 6 * HOUR, "expression.syntax")
    assert cell.due == 30 * HOUR


def test_only_the_last_starts_are_remembered():
    """However long it lives."""
    cell = Clocked(planned())
    cell.now = 10_000 * HOUR
    for n in range(30):
        cell.tick((6 + 24 * n) * HOUR, next_=(6 + 24 * (n + 1)) * HOUR)

    state = cell.cell.state
    assert (state.fired, len(state.recent), state.recent[-1]) == (30, 20, (6 + 24 * 29) * HOUR)
    cell.reread()
    assert list(cell.cell.state.recent) == list(state.recent)
    cell.assert_replays()


@given(st.integers(min_value=0, max_value=253_402_300_799_000))
def test_a_time_is_written_as_the_calendar_has_it(ms):
    """Up to the year 9999, leap years and centuries included."""
    expected = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    assert moment(ms) == expected.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)
    assert run_key("a", ms) == f"a.{moment(ms)[:16]}Z"


# The registry tells schedules


def publish(version: int, letter: str, cron: Cron | None = None) -> PublishDefinition:
    data = payload(b"bytes")
    return PublishDefinition("w", version, letter.encode() * 32, data, None, None, "ann", cron)


def beside(name: str, workflow: str = "w", cron: Cron = DAILY, **more: object) -> PublishSchedule:
    value = payload(more.pop("value", {"n": 1}))
    return PublishSchedule(name, workflow, cron, value, more.pop("paused", None), "ann")


def own(letter: str, cron: Cron = DAILY) -> SetSchedule:
    return SetSchedule("w", letter.encode() * 32, cron, payload({}), "ann")


def other(letter: str, cron: Cron = DAILY, **more: object) -> SetSchedule:
    value = payload(more.pop("value", {"n": 1}))
    return SetSchedule("w", letter.encode() * 32, cron, value, "ann", more.pop("paused", None))


LATER = Cron("0 7 * * *", "UTC", "all")
W, NIGHT = schedule_key("w"), schedule_key("night")
TABLE = [
    # before, input, sends
    ([], publish(1, "a", DAILY), [(W, own("a"))]),
    ([publish(1, "a", DAILY)], publish(2, "b", LATER), [(W, own("b", LATER))]),
    ([publish(1, "a", DAILY)], publish(2, "b", DAILY), [(W, own("b"))]),
    ([publish(1, "a", DAILY)], publish(2, "b"), [(W, RemoveSchedule("ann"))]),
    ([publish(2, "a", DAILY)], publish(1, "b", LATER), []),
    ([publish(1, "a")], publish(1, "a", DAILY), [(W, own("a"))]),  # known, but not its schedule
    ([publish(1, "a")], beside("night"), [(NIGHT, other("a"))]),
    ([publish(1, "a")], beside("night", paused=True), [(NIGHT, other("a", paused=True))]),
    (
        [publish(1, "a"), beside("night", paused=True), beside("day", value={})],
        publish(2, "b"),
        [(schedule_key("day"), other("b", value={})), (NIGHT, other("b"))],
    ),
    (
        [publish(1, "a"), beside("night")],
        beside("night", cron=LATER),
        [(NIGHT, other("a", LATER))],
    ),
    (
        [publish(1, "a"), beside("night")],
        WithdrawSchedule("night", "ann"),
        [(NIGHT, RemoveSchedule("ann"))],
    ),
    ([publish(1, "a"), beside("night"), WithdrawSchedule("night", "ann")], publish(2, "b"), []),
]


def after(*inputs: object) -> Alone:
    alone = Alone(registry_cell(TENANT))
    for each in inputs:
        assert isinstance(alone.submit(each), Stepped)
    return alone


@pytest.mark.req("R67", "R215", "R226")
@pytest.mark.parametrize(("before", "incoming", "sends"), TABLE)
def test_schedules_are_told_what_they_start(before, incoming, sends):
    """The workflow's own, and those beside it, whenever the leading definition changes."""
    alone = after(*before)

    outcome = alone.submit(incoming)

    assert sent(outcome) == sends
    alone.assert_replays()
    assert alone.cell.state.cell.workflow == REGISTRY


@pytest.mark.parametrize(
    ("before", "incoming", "code"),
    [
        ([], beside("night"), "workflow.unknown"),
        ([publish(1, "a"), beside("night")], beside("night"), "schedule.same"),
        ([publish(1, "a", DAILY)], publish(1, "a", DAILY), "definition.same"),
        ([publish(1, "a", DAILY)], beside("w"), "schedule.taken"),
        ([publish(1, "a"), beside("w")], publish(2, "b", DAILY), "schedule.taken"),
        ([publish(1, "a", DAILY)], WithdrawSchedule("w", "ann"), "schedule.of_workflow"),
        ([], WithdrawSchedule("w", "ann"), "schedule.unknown"),
    ],
)
def test_what_the_registry_refuses(before, incoming, code):
    """A name is one schedule, and what it starts is published."""
    alone = after(*before)
    assert refused(alone.submit(incoming)) == code


def test_a_workflow_has_so_many_schedules_beside_it(monkeypatch):
    """Each is told when it changes; one that is changed itself is no new one."""
    monkeypatch.setattr("pawlflow.kernel.system.registry.SCHEDULES_MAX", 2)
    alone = after(publish(1, "a"), beside("x"), beside("y"))

    assert refused(alone.submit(beside("z"))) == "schedule.too_many"
    assert isinstance(alone.submit(beside("x", cron=LATER)), Stepped)
    alone.submit(WithdrawSchedule("y", "ann"))
    assert isinstance(alone.submit(beside("z")), Stepped)
    alone.reread()
    alone.assert_replays()


def test_the_order_of_telling_does_not_depend_on_the_way_there():
    """After a state is read back, the same schedules are told in the same order."""
    alone = after(publish(1, "a"), beside("z"), beside("a"), beside("m"))
    again = after(publish(1, "a"), beside("z"), beside("a"), beside("m"))
    again.reread()

    for each in (alone, again):
        told = [key for key, _ in sent(each.submit(publish(2, "b")))]
        assert told == [schedule_key(name) for name in ("a", "m", "z")]
    assert alone.cell.head == again.cell.head
