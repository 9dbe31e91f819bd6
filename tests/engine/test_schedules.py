"""Schedules on the shard: right times, once, whatever dies; what was missed; what people do."""

import pytest

from pawlflow import requests
from pawlflow.definition.shape import Schedule
from pawlflow.engine.system import schedules
from pawlflow.engine.system.schedules import between, problem, times
from pawlflow.kernel.system.schedule import Schedule as ScheduleState
from pawlflow.model.inputs import StartInstance, Tick
from pawlflow.model.journal import Disposition
from pawlflow.model.payload import Payload
from pawlflow.model.records import read
from pawlflow.model.timed import Cron, ScheduleTick, SetSchedule
from pawlflow.projections.reading import story_of
from pawlflow.projections.show import show
from tests.engine.timed_kit import TENANT, World, ms, on_file, on_memory, report, told

WEEKLY = """
apiVersion: pawl.dev/v1
kind: Schedule
metadata: {name: weekly}
spec: {workflow: report, schedule: "30 7 * * mon", input: {day: "${ schedule.due }"}}
"""
CELL = requests.schedule_cell(TENANT, "report")


def unscheduled(version: int) -> str:
    """The same workflow without its schedule."""
    trigger = '  trigger: {schedule: "0 6 * * *", timezone: UTC, catchUp: none}\n'
    return report(version=version).replace(trigger, "")


@pytest.fixture(params=["memory", "sqlite"])
def stores(request, tmp_path):
    """A new store each, that outlives its engines."""
    made = iter(range(1_000))
    if request.param == "memory":
        return on_memory
    return lambda: on_file(tmp_path / f"pawl-{next(made)}.db")


@pytest.mark.req("R67", "R215", "R226")
def test_a_schedule_starts_its_workflow_at_its_times(stores):
    """The journal has the very times, and each run has its time for a name."""
    world = World(stores(), "2026-11-10T12:00Z")
    world.apply(report())
    assert world.due() == "11T06:00:00"

    world.until("2026-11-13T12:00Z")

    assert world.runs() == {
        "report.2026-11-11T06:00Z": "11T06:00:00",
        "report.2026-11-12T06:00Z": "12T06:00:00",
        "report.2026-11-13T06:00Z": "13T06:00:00",
    }
    assert world.due() == "14T06:00:00"
    world.prove()


@pytest.mark.req("R215", "R148")
@pytest.mark.parametrize("when", ["before", "after"])
def test_every_run_is_started_once_wherever_the_engine_dies(stores, when):
    """Before or after any commit, that of the publishing included; and never another time."""
    calm = played(stores(), None)
    assert list(calm.runs()) == [
        "report.2026-11-11T06:00Z",
        "report.2026-11-12T06:00Z",
        "weekly.2026-11-16T07:30Z",
    ]
    for commit in range(1, calm.commits + 1):
        world = played(stores(), (commit, when))
        assert world.runs() == calm.runs(), commit
        assert (world.due(), world.due("weekly")) == (calm.due(), calm.due("weekly"))
        world.prove()


def played(store, crash) -> World:
    """Two schedules through a few days; between their times nobody is needed."""
    world = World(store, "2026-11-10T12:00Z")
    world.crash = crash
    world.apply(report("0 6 11-12 11 *") + "---" + WEEKLY)
    world.until("2026-11-17T12:00Z")
    return world


@pytest.mark.req("R215")
@pytest.mark.parametrize(
    ("catch", "runs", "due"),
    [
        ("none", [], "15T06:00:00"),
        ("last", ["14"], "15T06:00:00"),
        ("all", ["11", "12", "13", "14"], "15T06:00:00"),
    ],
)
def test_what_was_missed_while_nothing_ran(stores, catch, runs, due):
    """Nothing of it, the last, or all, oldest first; then it goes on with the next."""
    world = World(stores(), "2026-11-10T12:00Z")
    world.apply(report(catch=catch))

    world.asleep_until("2026-11-14T06:01Z")
    world.drain()

    assert list(world.runs()) == [f"report.2026-11-{day}T06:00Z" for day in runs]
    assert set(world.runs().values()) <= {"14T06:01:00"}
    assert world.due() == due
    world.until("2026-11-15T07:00Z")
    assert list(world.runs())[-1] == "report.2026-11-15T06:00Z"
    world.prove()


@pytest.mark.req("R215")
@pytest.mark.parametrize(("seconds", "started"), [(0, True), (59, True), (60, False)])
def test_a_start_is_on_time_within_a_minute(seconds, started):
    """An engine that is busy, or comes back at once, has missed nothing."""
    world = World(on_memory(), "2026-11-10T12:00Z")
    world.apply(report())

    world.asleep_until(f"2026-11-11T06:{seconds // 60:02}:{seconds % 60:02}Z")
    world.drain()

    assert bool(world.runs()) == started


@pytest.mark.req("R215")
def test_many_missed_times_are_caught_up_in_several_turns(stores):
    """Oldest first, a hundred in a turn; an engine that dies in between goes on where it was."""
    world = World(stores(), "2026-11-10T12:00Z")
    world.apply(report("* * * * *", catch="all"))
    world.asleep_until("2026-11-10T16:10Z")
    world.crash = (world.commits + 2, "before")

    world.drain()

    keys = sorted(world.runs())
    assert (len(keys), keys[0], keys[-1]) == (
        250,
        "report.2026-11-10T12:01Z",
        "report.2026-11-10T16:10Z",
    )
    address = (TENANT, CELL.key)
    assert world.bench.store.load([address])[address].head.turn == 1 + 3
    assert world.due() == "10T16:11:00"
    world.prove()


def test_a_long_sleep_costs_no_long_look_back():
    """The last of a year of minutes is found without counting them all."""
    cron = Cron("* * * * *", "UTC", "last")
    asked = []

    class Counting(schedules.CronSim):
        def __next__(self):
            asked.append(1)
            return super().__next__()

    before, schedules.CronSim = schedules.CronSim, Counting
    try:
        tick = schedules.tick(cron, ms("2025-11-10T12:00Z"), ms("2026-11-10T12:00:30Z"))
    finally:
        schedules.CronSim = before
    assert tick == ScheduleTick((ms("2026-11-10T12:00Z"),), ms("2026-11-10T12:01Z"))
    assert len(asked) < 10


@pytest.mark.parametrize(
    ("line", "now", "found"),
    [
        ("* 0 * * *", "2026-11-10T23:59:59Z", "2026-11-10T00:59Z"),
        ("0 0 1 * *", "2026-11-10T00:00Z", "2026-11-01T00:00Z"),
        ("0 0 1 1 *", "2026-11-10T00:00Z", "2026-01-01T00:00Z"),
        ("0 0 29 2 *", "2027-11-10T00:00Z", "2024-02-29T00:00Z"),
        ("0 12 * * *", "2026-11-10T12:00Z", "2026-11-10T12:00Z"),
    ],
)
def test_the_last_time_is_found_however_far_it_lies_back(line, now, found):
    """A minute, an hour, a day, a month, a year, or more."""
    cron = Cron(line, "UTC", "last")
    assert schedules.tick(cron, ms("2020-02-29T00:00Z"), ms(now)).due == (ms(found),)


# What people do


@pytest.mark.req("R215")
@pytest.mark.parametrize(
    ("catch", "runs"), [("none", []), ("last", ["13"]), ("all", ["11", "12", "13"])]
)
def test_a_paused_schedule_keeps_its_place_and_catches_up_as_it_says(stores, catch, runs):
    """Pausing is like being away: on return catchUp decides."""
    world = World(stores(), "2026-11-10T12:00Z")
    world.apply(report(catch=catch))
    assert world.post(CELL, requests.hold_schedule("pause", TENANT, by="ann")) == ""
    assert world.post(CELL, requests.hold_schedule("pause", TENANT, by="ann")) == "schedule.paused"
    assert world.due() is None
    world.until("2026-11-13T12:00Z")
    assert world.runs() == {}
    world.reborn()

    assert world.post(CELL, requests.hold_schedule("unpause", TENANT, by="ann")) == ""
    world.drain()

    assert list(world.runs()) == [f"report.2026-11-{day}T06:00Z" for day in runs]
    assert world.due() == "14T06:00:00"
    world.prove()


@pytest.mark.req("R215")
def test_a_backfill_starts_what_is_not_there(stores):
    """Page by page; runs that exist stay as they are, and the schedule goes on as before."""
    world = World(stores(), "2026-11-10T12:00Z")
    world.apply(report("0 * * * *"))
    world.until("2026-11-10T14:30Z")
    assert len(world.runs()) == 2
    first, last = ms("2026-11-01T00:00Z"), ms("2026-11-10T14:00Z")
    world.crash = (world.commits + 2, "after")

    assert world.post(CELL, requests.backfill(first, last, "ann")) == ""
    world.drain()
    count = len(between(Cron("0 * * * *", "UTC", "none"), first, last))
    assert (len(world.runs()), count) == (count, 231)
    assert world.post(CELL, requests.backfill(first, last, "ann")) == ""
    assert len(world.runs()) == count
    assert world.due() == "10T15:00:00"
    future = requests.backfill(first, ms("2026-11-10T15:00Z"), "ann")
    assert world.post(CELL, future) == "schedule.future"
    assert world.post(CELL, requests.backfill(first, first, "ann")) == ""
    nothing = requests.backfill(ms("2026-11-01T00:01Z"), ms("2026-11-01T00:59Z"), "ann")
    assert world.post(CELL, nothing) == "schedule.nothing"
    world.prove()


@pytest.mark.req("R67", "R215")
def test_a_new_version_changes_the_schedule_and_one_without_ends_it(stores):
    """Other times from now on; what is no longer said is no longer done."""
    world = World(stores(), "2026-11-10T12:00Z")
    world.apply(report("0 6 * * *"))
    world.until("2026-11-11T07:00Z")

    world.apply(report("0 8 * * *", version=2))
    assert world.due() == "11T08:00:00"
    world.until("2026-11-11T09:00Z")
    assert list(world.runs()) == ["report.2026-11-11T06:00Z", "report.2026-11-11T08:00Z"]
    versions = {each.cell.key: each.version for each in world.bench.store.refs()}
    assert versions["report.2026-11-11T08:00Z"] == 2

    world.apply(unscheduled(3))
    assert world.due() is None
    world.until("2026-11-13T09:00Z")
    assert len(world.runs()) == 2
    code = world.post(CELL, requests.hold_schedule("pause", TENANT, by="ann"))
    assert code == "schedule.unknown"
    world.prove()


@pytest.mark.req("R215")
def test_a_document_of_its_own_starts_the_latest_version_with_its_input(stores):
    """Until it is withdrawn; the runs know their time."""
    world = World(stores(), "2026-11-10T12:00Z")
    world.apply(unscheduled(1))
    world.apply(WEEKLY)
    world.apply(unscheduled(2))

    world.until("2026-11-17T12:00Z")

    [key] = world.runs()
    shown = show(story_of(world.bench.store, TENANT, key))
    assert (key, shown["version"]) == ("weekly.2026-11-16T07:30Z", 2)
    assert shown["input"] == {"day": "2026-11-16T07:30:00Z"}
    assert shown["by"] == "schedule:weekly"
    gone = requests.withdraw_schedule("weekly", "ann")
    assert world.post(requests.registry_cell(TENANT), gone) == ""
    assert world.due("weekly") is None
    world.until("2026-11-24T12:00Z")
    assert len(world.runs()) == 1
    world.prove()


@pytest.mark.req("R215")
def test_a_run_that_cannot_begin_is_a_dead_letter(stores):
    """Nobody waits for its answer, so it must be seen elsewhere."""
    world = World(stores(), "2026-11-10T12:00Z")
    world.apply(report().replace("  timeout: 1h\n", "  timeout: 1h\n  input: {required: [day]}\n"))

    world.until("2026-11-11T12:00Z")

    assert world.runs() == {}
    [found] = world.bench.store.dispositions(TENANT, 10)
    letter = read(Disposition, found.entry.data, {})
    assert (letter.kind, letter.code) == ("dead", "input.invalid")
    assert letter.cell.key == "report.2026-11-11T06:00Z"
    assert isinstance(letter.input, StartInstance)
    assert world.due() == "12T06:00:00"
    world.prove()


def test_a_schedule_this_machine_cannot_read_is_refused_at_the_door(stores):
    """Before it is on the record: a cell that is woken must be able to tell its times."""
    world = World(stores(), "2026-11-10T12:00Z")
    world.apply(report())
    for cron in (Cron("0 6 * * *", "Mars/Base", "none"), Cron("6", "UTC", "none")):
        made = Schedule(name="x", workflow="report", schedule=cron.line, timezone=cron.timezone)
        wrong = requests.publish_schedule(made, TENANT, "ann")
        assert world.post(requests.registry_cell(TENANT), wrong) == "schedule.bad"
    assert problem(Cron("0 0 30 2 *", "UTC", "none")) is not None
    assert problem(Cron("0 6 * * *", "Europe/Berlin", "none")) is None


def test_a_tick_that_nobody_asked_for_changes_nothing():
    """A clock that was set back, or a second tick for the same time."""
    world = World(on_memory(), "2026-11-10T12:00Z")
    world.apply(report())
    assert world.post(CELL, Tick()) == "timer.not_due"
    assert world.post(CELL, ScheduleTick((ms("2026-11-10T06:00Z"),), None)) == "timer.not_due"
    assert world.runs() == {}


# Clock changes: Europe/Berlin goes from 02:00 to 03:00 on 29 March 2026 at 01:00 UTC, and from
# 03:00 back to 02:00 on 25 October 2026 at 01:00 UTC.
DAYS = [
    # line, from, the next times in UTC
    ("30 2 * * *", "2026-03-28T12:00Z", ["29T01:00:00", "30T00:30:00"]),
    ("30 2 * * *", "2026-10-24T12:00Z", ["25T00:30:00", "26T01:30:00"]),
    ("0,30 2 * * *", "2026-03-28T12:00Z", ["29T01:00:00", "30T00:00:00", "30T00:30:00"]),
    ("0,30 2 * * *", "2026-10-24T12:00Z", ["25T00:00:00", "25T00:30:00", "26T01:00:00"]),
    ("0 6 * * *", "2026-03-28T12:00Z", ["29T04:00:00", "30T04:00:00"]),
    ("0 6 * * *", "2026-10-24T12:00Z", ["25T05:00:00", "26T05:00:00"]),
    # Asked inside the hour that comes twice: it was there before.
    ("30 2 * * *", "2026-10-25T00:45Z", ["26T01:30:00"]),
    ("30 2 * * *", "2026-10-25T01:15Z", ["26T01:30:00"]),
    ("45 2 * * *", "2026-10-25T00:30Z", ["25T00:45:00", "26T01:45:00"]),
    # With a star, by the time that passes: every hour is an hour.
    ("0 * * * *", "2026-03-29T00:30Z", ["29T01:00:00", "29T02:00:00"]),
    ("0 * * * *", "2026-10-25T00:30Z", ["25T01:00:00", "25T02:00:00"]),
    ("*/30 2 * * *", "2026-03-28T12:00Z", ["30T00:00:00", "30T00:30:00"]),
    (
        "*/30 2 * * *",
        "2026-10-24T12:00Z",
        ["25T00:00:00", "25T00:30:00", "25T01:00:00", "25T01:30:00"],
    ),
]


@pytest.mark.req("R215")
@pytest.mark.parametrize(("line", "now", "expected"), DAYS)
def test_the_days_on_which_clocks_change(line, now, expected):
    """A time that is left out comes when the clock jumps over it; one that is twice there, once."""
    found = times(Cron(line, "Europe/Berlin", "none"), ms(now))
    assert [told(next(found)) for _ in expected] == expected


@pytest.mark.req("R215")
@pytest.mark.parametrize(
    ("now", "runs"),
    [
        (
            "2026-03-28T12:00Z",
            {"report.2026-03-29T01:00Z": "29T01:00:00", "report.2026-03-30T00:30Z": "30T00:30:00"},
        ),
        (
            "2026-10-24T12:00Z",
            {"report.2026-10-25T00:30Z": "25T00:30:00", "report.2026-10-26T01:30Z": "26T01:30:00"},
        ),
    ],
)
def test_a_nightly_run_comes_once_a_night_also_when_clocks_change(stores, now, runs):
    """On the shard, with an engine that comes back within the hour that comes twice."""
    world = World(stores(), now)
    world.apply(report("30 2 * * *", "Europe/Berlin", "all"))
    night = now.replace("28T12:00Z", "29T01:20Z").replace("24T12:00Z", "25T01:20Z")
    world.until(night)
    world.reborn()
    world.until(now[:8] + str(int(now[8:10]) + 2) + now[10:])

    assert world.runs() == runs
    world.prove()


def test_admission_fills_in_the_times_of_what_a_registry_sends():
    """What a caller may have put there is not believed."""
    cron, wrong = Cron("0 6 * * *", "UTC", "none"), ms("1999-01-01T00:00Z")
    asked = SetSchedule("w", b"d" * 32, cron, Payload.of({}, TENANT), "ann", next=wrong)
    made = schedules.admit_times(ScheduleState(CELL), asked, ms("2026-11-10T12:00Z"))
    assert made.next == ms("2026-11-11T06:00Z")
