"""Documents of kind Schedule, and cron lines: what is accepted can be told the times of."""

import json
import zoneinfo
from datetime import UTC, datetime

import jsonschema_rs
import pytest
import yaml
from check_kit import HEAD, assert_one, marked
from cronsim import CronSim, CronSimError
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.definition.cron import DAYS, MONTHS, cron_problem
from pawlflow.definition.load import load_definitions, load_workflows
from pawlflow.definition.schema import schedule_schema
from pawlflow.definition.shape import Schedule
from pawlflow.definition.zones import is_zone, zone_names

FRAME = "apiVersion: pawl.dev/v1\nkind: Schedule\nmetadata: {name: nightly}\nspec: "


def one(text: str) -> Schedule:
    """The one schedule of a file without findings."""
    found = load_definitions(text, "f.yaml")
    assert found.findings == []
    assert found.workflows == []
    return found.schedules[0]


@pytest.mark.req("R67", "R215")
def test_a_schedule_says_what_it_starts_and_when():
    """With its defaults; `cron` is another word for its times."""
    assert one(FRAME + "{workflow: report, schedule: 0  6 * * 1}") == Schedule(
        name="nightly", workflow="report", schedule="0 6 * * 1"
    )
    text = (
        "{workflow: report, cron: '0 6 * * MON', timezone: Europe/Berlin, catchUp: last,"
        " paused: true, input: {day: '${ schedule.due }', of: [1, '${ schedule.name }']}}"
    )
    made = one(FRAME + text)
    assert made == Schedule(
        name="nightly",
        workflow="report",
        schedule="0 6 * * MON",
        timezone="Europe/Berlin",
        catch_up="last",
        input={"day": "${ schedule.due }", "of": [1, "${ schedule.name }"]},
        paused=True,
    )


REFUSED = [
    # the spec, its code, what the message names, what the hint says
    ("§{workflow: w}", "field.missing", "'schedule'", "0 6 * * 1"),
    ("§{schedule: 0 6 * * 1}", "field.missing", "'workflow'", "the workflow it starts"),
    ("{workflow: w, schedule: 0 6 * * 1, §cron: 0 6 * * 1}", "field.conflict", "two words", "keep"),
    ("{workflow: w, schedule: §0 6 * *}", "cron.bad", "4 fields", "minute"),
    ("{workflow: w, schedule: 0 6 * * 1, timezone: §Mars/Base}", "timezone.unknown", "Mars", ""),
    ("{workflow: w, schedule: 0 6 * * 1, catchUp: §some}", "field.value", "none, last, all", ""),
    ("{workflow: w, schedule: 0 6 * * 1, paused: §maybe}", "field.type", "true or false", ""),
    ("{workflow: W w, schedule: 0 6 * * 1}".replace("W w", "§W w"), "name.bad", "a workflow", ""),
    ("{workflow: w, schedule: 0 6 * * 1, §inptu: {}}", "field.unknown", "inptu", "'input'"),
    ("{workflow: w, schedule: 0 6 * * 1, input: §5}", "field.type", "a mapping", ""),
    (
        "{workflow: w, schedule: 0 6 * * 1, input: {a: '${ §input.x }'}}",
        "expression.unknown_name",
        "'input'",
        "",
    ),
    (
        "{workflow: w, schedule: 0 6 * * 1, input: {a: {b: §'${ schedule.due - 1 }'}}}",
        "expression.type",
        "input:",
        "",
    ),
    (
        "{workflow: w, schedule: 0 6 * * 1, input: §'${ schedule.due }'}",
        "field.type",
        "no mapping",
        "write a mapping",
    ),
]


@pytest.mark.req("R67")
@pytest.mark.parametrize(("spec", "code", "name", "hint"), REFUSED)
def test_what_a_schedule_may_not_say(spec, code, name, hint):
    """One mistake, one error: its place, the names in it, and the way out."""
    text = FRAME + spec + "\n"
    found = load_definitions(marked(text)[0], "f.yaml")
    assert found.schedules == []
    assert_one(found.findings, text, code, name, hint)


def test_a_schedule_without_a_name_or_a_spec_is_refused():
    """By its frame, or by its metadata."""
    for text, codes in [
        (FRAME.replace("name: nightly", "title: x") + "{workflow: w, schedule: 0 6 * * 1}", 2),
        (FRAME + "[]", 1),
        (FRAME.replace("metadata: {name: nightly}\n", "") + "{}", 3),
    ]:
        found = load_definitions(text, "f.yaml")
        assert (len(found.findings), found.schedules) == (codes, []), found.findings


def test_two_schedules_of_one_name_are_refused():
    """Which one would be meant?"""
    text = FRAME + "{workflow: w, schedule: 0 6 * * 1}\n"
    found = load_definitions(text + "---\n" + text, "f.yaml")
    assert [(each.line, each.code) for each in found.findings] == [(8, "schedule.duplicate")]


TICK = "apiVersion: pawl.dev/v1\nkind: Workflow\nmetadata: {name: nightly, version: %d}\n"
STEPS = "spec: {timeout: 1h, %ssteps: [{name: a, sleep: 1s}]}\n---\n"
TIMED = STEPS % "trigger: {schedule: 0 6 * * 1}, "
ON_EVENT = STEPS % "trigger: {event: e.x}, "
NIGHTLY = FRAME.replace("nightly", "§nightly") + "{workflow: nightly, schedule: 0 7 * * 1}\n"


@pytest.mark.req("R67")
@pytest.mark.parametrize(
    "text",
    [
        TICK % 1 + TIMED + NIGHTLY,
        NIGHTLY + "---\n" + TICK % 1 + TIMED,
        TICK % 2 + TIMED + TICK % 1 + ON_EVENT + NIGHTLY,
    ],
)
def test_a_schedule_may_not_have_the_name_of_a_workflow_that_has_one(text):
    """It would be refused when the workflow is published already."""
    found = load_definitions(marked(text)[0], "f.yaml").findings
    assert_one(found, text, "schedule.duplicate", "workflow 'nightly'", "trigger.schedule")


@pytest.mark.parametrize(
    "text",
    [
        TICK % 1 + STEPS % "" + NIGHTLY,
        TICK % 1 + ON_EVENT + NIGHTLY,
        TICK % 1 + TIMED + TICK % 2 + ON_EVENT + NIGHTLY,
        TICK.replace("nightly", "other") % 1 + TIMED + NIGHTLY,
    ],
)
def test_a_schedule_may_have_the_name_of_a_workflow_that_has_none(text):
    """Names collide only where the latest version has a schedule of its own."""
    assert load_definitions(marked(text)[0], "f.yaml").findings == []


def test_a_file_may_hold_workflows_and_schedules():
    """And those who only want workflows are told of every mistake."""
    flow = HEAD + "spec: {timeout: 1h, steps: [{name: a, sleep: 1s}]}\n"
    text = flow + "---\n" + FRAME + "{workflow: w, schedule: 0 6 * *}"
    workflows, findings = load_workflows(text, "f.yaml")
    assert [each.name for each in workflows] == ["w"]
    assert [each.code for each in findings] == ["cron.bad"]


@pytest.mark.parametrize(
    ("schema", "warned"),
    [("{required: [repo]}", True), ("{type: string}", True), ("{type: object}", False)],
)
def test_a_workflow_whose_schedule_could_never_start_it_is_warned_about(schema, warned):
    """Its own schedule gives it no input; a document of kind Schedule can."""
    text = (
        HEAD + f"spec:\n  timeout: 1h\n  input: {schema}\n  trigger: {{schedule: §0 6 * * 1}}\n"
        "  steps: [{name: a, sleep: 1s}]\n"
    )
    findings = load_workflows(marked(text)[0], "f.yaml")[1]
    if warned:
        assert_one(findings, text, "lint.schedule_input", "{}", "kind Schedule")
    else:
        assert findings == []


def test_editors_are_told_the_same():
    """The schema is made from the tables that the checker reads by."""
    validator = jsonschema_rs.validator_for(json.loads(json.dumps(schedule_schema())))
    only_by_looking = {"cron.bad", "timezone.unknown", "expression.unknown_name", "expression.type"}
    for spec, code, name, _ in REFUSED:
        document = yaml.safe_load((FRAME + spec).replace("§", ""))
        told = code in only_by_looking or name == "no mapping"
        assert validator.is_valid(document) == told, spec
    good = FRAME + "{workflow: w, schedule: 0 6 * * 1, input: {a: 1}}"
    assert validator.is_valid(yaml.safe_load(good))


def test_zones_are_those_of_the_machine():
    """Names are asked, never times."""
    assert is_zone("Europe/Berlin")
    assert is_zone("UTC")
    assert not is_zone("Europe")
    assert not is_zone("Mars/Base")
    assert "America/New_York" in zone_names()


def test_a_system_without_time_zones_has_those_of_the_package():
    """`tzdata` is a dependency for them."""
    before = zoneinfo.TZPATH
    try:
        zoneinfo.reset_tzpath(to=())
        zoneinfo.ZoneInfo.clear_cache()
        is_zone.cache_clear()
        assert is_zone("Europe/Berlin")
        assert not is_zone("Mars/Base")
    finally:
        zoneinfo.reset_tzpath(to=before)
        is_zone.cache_clear()


def part(least: int, most: int, words: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    """One part of a field, right or wrong: numbers around the bounds, words, ranges, steps."""
    number = st.integers(max(0, least - 1), most + 1).map(str)
    single = st.one_of(number, st.sampled_from(words)) if words else number
    span = st.builds("{}-{}".format, single, single)
    whole = st.one_of(st.just("*"), single, span)
    return st.one_of(whole, st.builds("{}/{}".format, whole, st.integers(0, 70)))


LINES = st.tuples(
    *(
        st.lists(part(*bounds), min_size=1, max_size=3).map(",".join)
        for bounds in (
            (0, 59),
            (0, 23),
            (1, 31),
            (1, 12, (*MONTHS, "Feb")),
            (0, 7, (*DAYS, "MON")),
        )
    )
).map(" ".join)


@pytest.mark.req("R67")
@given(LINES)
def test_every_line_that_is_accepted_has_times(line):
    """And every line of this form that the library refuses is refused here, with words."""
    try:
        next(CronSim(line, datetime(2026, 1, 1, tzinfo=UTC)))
    except (CronSimError, StopIteration):
        assert cron_problem(line)
    else:
        assert cron_problem(line) == ""
