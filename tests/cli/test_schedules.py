"""`pawl schedules`, `pawl start --at` and queues: what starts by the clock, and what people see."""

import json

import pytest

from tests.cli.live_kit import until
from tests.engine.timed_kit import World, on_file, report

REPORT = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: report, version: VERSION}
spec:
  timeout: 1h
  rate: {key: "'all'", limit: 2, per: 1h}
  trigger: {schedule: "0 0 1 1 *", timezone: Europe/Berlin}
  steps: [{name: nap, sleep: 1d}]
"""
BESIDE = """\
---
apiVersion: pawl.dev/v1
kind: Schedule
metadata: {name: yearly}
spec:
  workflow: report
  schedule: "30 12 29 2 *"
  catchUp: all
  input: {day: "${ schedule.due }"}
"""
YEARS = ("--from", "2019-12-31", "--to", "2023-12-31T00:00Z")


@pytest.fixture
def planned(place):
    """A workflow with a schedule, and another one beside it, published."""
    (place.folder / "report.yaml").write_text(REPORT.replace("VERSION", "1") + BESIDE)
    rows = place.told("apply", "-f", "report.yaml")
    assert [(row["name"], row.get("kind"), row["status"]) for row in rows] == [
        ("report", None, "new"),
        ("yearly", "Schedule", "new"),
    ]
    return place


@pytest.mark.req("R215")
def test_schedules_are_listed_and_shown(planned):
    """What they start, when, and what they started last."""
    rows = planned.told("schedules", "ls")
    assert [(row["name"], row["workflow"], row["from"]) for row in rows] == [
        ("report", "report", "workflow"),
        ("yearly", "report", "document"),
    ]
    assert rows[0]["schedule"] == "0 0 1 1 *"
    assert rows[0]["timezone"] == "Europe/Berlin"
    assert rows[0]["next_at"].endswith("-12-31T23:00:00.000Z")
    assert (rows[1]["catch_up"], rows[1]["paused"], rows[1]["last_at"]) == ("all", False, None)
    lines = planned.pawl("schedules", "ls")
    assert lines.stdout.splitlines()[0].split() == ["SCHEDULE", "WORKFLOW", "TIMES", "NEXT"]
    assert "nobody drives this store" in lines.stderr

    shown = planned.told("schedules", "show", "yearly")
    assert shown["input"] == {"day": "${ schedule.due }"}
    assert (len(shown["upcoming"]), shown["recent"], shown["missed"]) == (5, [], None)
    assert all("-02-29T12:30" in each for each in shown["upcoming"])
    page = planned.pawl("schedules", "show", "yearly").stdout
    assert "starts report" in page
    assert "catchUp all" in page
    assert planned.pawl("apply", "-f", "report.yaml").stdout.count("unchanged") == 2


@pytest.mark.req("R215")
def test_a_schedule_is_paused_and_goes_on(planned):
    """Each act is taken once; a second time it is refused, and says so."""
    done = planned.told("schedules", "pause", "yearly", "--by", "ann", "--comment", "holiday")
    assert done == {"name": "yearly", "act": "pause", "accepted": True}
    assert planned.pawl("schedules", "pause", "yearly").exit_code == 5
    assert planned.pawl("schedules", "ls").stdout.splitlines()[-1].endswith("paused")
    shown = planned.told("schedules", "show", "yearly")
    assert (shown["paused"], shown["paused_by"]) == (True, "ann")
    assert "paused by ann" in planned.pawl("schedules", "show", "yearly").stdout

    assert planned.pawl("schedules", "unpause", "yearly").stdout == "yearly: unpause accepted\n"
    assert not planned.told("schedules", "show", "yearly")["paused"]
    again = planned.told("schedules", "unpause", "yearly", exits=5)
    assert again["error"]["code"] == "schedule.not_paused"


@pytest.mark.req("R215")
def test_a_backfill_counts_first_and_starts_what_is_missing(planned):
    """Under --dry-run nothing happens; what exists is left as it is; ids are the schedule's own."""
    dry = planned.told("schedules", "backfill", "report", *YEARS, "--dry-run")
    assert (dry["runs"], dry["existing"], dry["started"], dry["dry_run"]) == (4, 0, 0, True)
    assert planned.told("ls") == []
    said = planned.pawl("schedules", "backfill", "report", *YEARS, "--dry-run").stdout
    assert said.splitlines()[0] == "report: 4 runs would be started, 0 exist already"

    some = ("--from", "2020-12-01", "--to", "2021-02-01T00:00+01:00")
    assert planned.told("schedules", "backfill", "report", *some)["started"] == 1
    rest = planned.told("schedules", "backfill", "report", *YEARS)
    assert (rest["existing"], rest["started"]) == (1, 3)
    every = [f"report.{year}-12-31T23:00Z" for year in (2019, 2020, 2021, 2022)]
    assert rest["ids"] == [key for key in every if "2020" not in key]
    assert sorted(row["id"] for row in planned.told("ls")) == every
    again = planned.told("schedules", "backfill", "report", *YEARS)
    assert (again["existing"], again["started"]) == (4, 0)

    leap = planned.told("schedules", "backfill", "yearly", *YEARS)
    assert leap["ids"] == ["yearly.2020-02-29T12:30Z"]
    assert planned.shown("yearly.2020-02-29T12:30Z")["input"] == {"day": "2020-02-29T12:30:00Z"}


@pytest.mark.parametrize(
    ("words", "exits", "code"),
    [
        (("backfill", "report", "--from", "2021", "--to", "2020-01-01"), 2, "time.bad"),
        (("backfill", "report", "--from", "2021-01-01", "--to", "2020-01-01"), 2, "cli.usage"),
        (("backfill", "report", "--from", "-1d", "--to", "+1d"), 2, "schedule.future"),
        (("backfill", "minutely", "--from", "-30d", "--to", "-1d"), 5, "schedule.too_many"),
        (("show", "yearl"), 4, "schedule.unknown"),
        (("pause", "nobody"), 4, "schedule.unknown"),
        (("show", "No Name"), 2, "schedule.name"),
        (("remove", "report"), 5, "schedule.of_workflow"),
    ],
)
def test_what_cannot_be_done_is_said_with_the_way_out(planned, words, exits, code):
    """And nothing was started."""
    minutely = BESIDE.replace("yearly", "minutely").replace("30 12 29 2 *", "* * * * *")
    (planned.folder / "minutely.yaml").write_text(minutely)
    assert planned.pawl("apply", "-f", "minutely.yaml").exit_code == 0

    error = planned.told("schedules", *words, exits=exits)["error"]

    assert error["code"] == code
    if words == ("show", "yearl"):
        assert "did you mean yearly?" in error["message"]
    assert planned.told("ls") == []


@pytest.mark.req("R215")
def test_a_schedule_comes_and_goes_with_what_is_published(planned):
    """A higher version without it ends it; a document of its own is removed by name."""
    assert planned.pawl("schedules", "remove", "yearly").exit_code == 0
    lone = REPORT.replace("VERSION", "2").replace(
        '  trigger: {schedule: "0 0 1 1 *", timezone: Europe/Berlin}\n', ""
    )
    (planned.folder / "report.yaml").write_text(lone)
    planned.pawl("apply", "-f", "report.yaml")

    assert planned.told("schedules", "ls") == []
    assert "no schedule of tenant 'default'" in planned.pawl("schedules", "ls").stderr
    (planned.folder / "x.yaml").write_text(BESIDE.replace("workflow: report", "workflow: other"))
    unknown = planned.told("apply", "-f", "x.yaml", exits=4)
    assert unknown["error"]["code"] == "workflow.unknown"


def test_a_store_without_schedules_has_none(place):
    """Also one where nothing was ever published."""
    assert place.told("schedules", "ls", exits=4)["error"]["code"] == "store.missing"
    place.pawl("apply", "-f", "order.yaml")
    assert place.told("schedules", "ls") == []


@pytest.mark.req("R228", "R215")
def test_schedules_are_handled_from_a_second_terminal(planned):
    """The owner of the store takes it from its mailbox, and starts what a backfill asks for."""
    run = ("run", "release.yaml", "--id", "r-1", "--stubs", "stubs.yaml")
    with planned.owner(*run):
        until(lambda: planned.waits_at("r-1", "gate"))

        assert planned.told("schedules", "pause", "yearly")["accepted"]
        assert planned.told("schedules", "show", "yearly")["paused"]
        assert planned.told("schedules", "backfill", "yearly", *YEARS)["started"] == 1
        until(lambda: planned.state_of("yearly.2020-02-29T12:30Z") == "waiting")
        assert planned.pawl("schedules", "ls").stderr == ""


@pytest.mark.req("R214", "R86")
def test_why_names_the_rate_or_the_slot_and_the_place_in_line(planned):
    """Two may start an hour: the third is next, the fourth has one before it."""
    for n in range(4):
        assert planned.pawl("start", "report", "--id", f"r-{n}").exit_code == 0
    assert [planned.state_of(f"r-{n}") for n in range(4)] == ["waiting"] * 2 + ["queued"] * 2

    third, fourth = planned.told("why", "r-2"), planned.told("why", "r-3")

    assert (third["queue"]["kind"], third["queue"]["key"], third["queue"]["limit"]) == (
        *("rate", "all"),
        2,
    )
    assert (third["queue"]["ahead"], fourth["queue"]["ahead"]) == (0, 1)
    assert "waits for its rate (2 per 1h of 'all'): it is the next, starting at" in third["now"]
    assert "1 is before it" in fourth["now"]
    assert "as many as may had started" in third["because"][-1]["text"]
    assert planned.told("why", "r-0")["queue"] is None
    names = [each["eventType"] for each in planned.told("history", "r-3")]
    assert names == ["WorkflowInstanceCreated", "WorkflowInstanceQueued"]
    assert planned.pawl("cancel", "r-2").exit_code == 0
    assert planned.told("why", "r-3")["queue"]["ahead"] == 0

    (planned.folder / "one.yaml").write_text(
        REPORT.replace("VERSION", "1")
        .replace("name: report", "name: one")
        .replace("rate: {key: \"'all'\", limit: 2, per: 1h}", "concurrency: {key: \"'k'\"}")
    )
    planned.pawl("start", "one.yaml", "--id", "o-1")
    planned.pawl("start", "one.yaml", "--id", "o-2")
    held = planned.told("why", "o-2")
    assert held["queue"]["holders"] == ["o-1"]
    assert "waits for a slot (1 of 'k'): it is the next, behind o-1" in held["now"]


@pytest.mark.req("R215")
def test_a_start_may_wait_for_its_time(planned):
    """It is there at once, says when it starts, and can be cancelled before."""
    done = planned.told("start", "report", "--id", "l-1", "--at", "2999-01-01T06:00Z")
    assert done == {"id": "l-1", "existing": False, "start_at": "2999-01-01T06:00:00.000Z"}
    assert planned.told("start", "report", "--id", "l-2", "--at", "+1h")["start_at"]

    [_, row] = planned.told("ls")
    shown, why = planned.shown("l-1"), planned.told("why", "l-1")
    assert (row["state"], row["start_at"], row["started_at"]) == (
        "created",
        "2999-01-01T06:00:00.000Z",
        None,
    )
    assert (shown["state"], shown["start_at"]) == ("created", row["start_at"])
    assert "the instance starts at 2999-01-01T06:00:00.000Z" in why["now"]
    assert "to begin at 2999-01-01T06:00:00.000Z" in why["because"][0]["text"]
    assert "starts 2999-01-01 06:00" in planned.pawl("show", "l-1").stdout
    assert planned.pawl("cancel", "l-1", "--by", "ann").exit_code == 0
    assert planned.state_of("l-1") == "cancelled"
    wrong = planned.told("start", "report", "--at", "tomorrow", exits=2)
    assert wrong["error"]["code"] == "time.bad"
    past = planned.told("start", "report", "--id", "now", "--at", "2020-01-01")
    assert past["id"] == "now"
    assert planned.state_of("now") == "waiting"


def test_a_file_with_schedules_is_checked_and_published_with_its_workflow(place):
    """`check` counts them; `run` and `start` of a file publish what is in it."""
    text = REPORT.replace("VERSION", "1") + BESIDE
    (place.folder / "report.yaml").write_text(text)
    done = place.pawl("check", "report.yaml")
    assert "1 workflow, 1 schedule, 0 scenarios, 0 errors" in done.stdout
    assert place.pawl("start", "report.yaml", "--id", "r-1").exit_code == 0
    assert len(place.told("schedules", "ls")) == 2
    (place.folder / "lone.yaml").write_text(BESIDE)
    assert place.told("start", "lone.yaml", exits=4)["error"]["code"] == "cli.nothing"
    schema = json.loads(place.pawl("schema", "schedule").stdout)
    assert schema["properties"]["kind"]["const"] == "Schedule"


@pytest.mark.req("R215")
def test_what_a_schedule_did_is_shown_with_how_it_went(place):
    """Its last runs with their states, a run that was refused, and the times it missed."""
    world = World(on_file(place.db), "2020-11-10T12:00Z")
    world.apply(report())
    world.until("2020-11-11T12:00Z")
    world.asleep_until("2020-11-13T12:00Z")
    strict = report(version=2).replace("  timeout: 1h", "  timeout: 1h\n  input: {required: [n]}")
    world.apply(strict)
    world.until("2020-11-14T12:00Z")
    world.bench.store.close()

    shown = place.told("schedules", "show", "report")
    page = place.pawl("schedules", "show", "report").stdout

    assert shown["recent"] == [
        {"id": "report.2020-11-14T06:00Z", "due_at": "2020-11-14T06:00:00.000Z", "state": None},
        {
            "id": "report.2020-11-11T06:00Z",
            "due_at": "2020-11-11T06:00:00.000Z",
            "state": "failed",
        },
    ]
    assert shown["missed"]["first_at"] == "2020-11-12T06:00:00.000Z"
    assert (shown["fired"], shown["next_at"]) == (2, "2020-11-15T06:00:00.000Z")
    assert "missed    from 2020-11-12T06:00Z" in page
    assert "report.2020-11-14T06:00Z  not started: see pawl dlq ls" in page
    assert "report.2020-11-11T06:00Z  failed" in page
    [letter] = place.told("dlq", "ls")
    assert (letter["instance"], letter["code"]) == ("report.2020-11-14T06:00Z", "input.invalid")
    [row] = place.told("schedules", "ls")
    assert row["last_at"] == "2020-11-14T06:00:00.000Z"
    many = ("schedules", "backfill", "report", "--from", "2020-10-01", "--to", "2020-10-31")
    said = place.pawl(*many, "--dry-run").stdout.splitlines()
    assert (said[0], said[-1]) == (
        "report: 30 runs would be started, 0 exist already",
        "  and 20 more; --json has all",
    )


def test_a_run_publishes_the_schedules_of_its_file_too(place):
    """As a start does."""
    text = REPORT.replace("VERSION", "1").replace("sleep: 1d", "sleep: 0s")
    (place.folder / "report.yaml").write_text(text + BESIDE)
    place.pawl("run", "report.yaml", "--id", "r-1")
    assert [row["name"] for row in place.told("schedules", "ls")] == ["report", "yearly"]
