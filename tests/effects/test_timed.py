"""Starting later, schedules and moments, from Python."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest

from pawlflow import NotFound, PawlError, Refused, WorkflowFailed
from pawlflow.moments import moment_of
from pawlflow.requests import BadRequestError
from tests.effects.kit import run, written

DONE = "  steps: [{name: a, run: note}]\n  output: ${ steps.a }\n"
BESIDE = """---
apiVersion: pawl.dev/v1
kind: Schedule
metadata: {name: leap}
spec: {workflow: noted, schedule: "30 12 29 2 *", input: {day: "${ schedule.due }"}}
"""


@pytest.mark.req("R215")
def test_an_instance_is_started_for_later(engine, tmp_path):
    """It waits for its time in the store; a time that has passed is now."""
    path = written(tmp_path, "noted", DONE)

    async def main():
        async with engine() as pawl:
            pawl.load(path)
            pawl.effect("note")(lambda: "done")
            soon = await pawl.start("noted", id="soon", at="+50ms")
            past = await pawl.start("noted", id="past", at=datetime(2020, 1, 1, tzinfo=UTC))
            late = await pawl.start("noted", id="late", at=timedelta(days=1))
            assert late.show()["state"] == "created"
            await pawl.cancel("late", by="ann")
            with pytest.raises(WorkflowFailed) as failed:
                await late.result(timeout="20s")
            assert failed.value.state == "cancelled"
            with pytest.raises(PawlError) as bad:
                await pawl.start("noted", at="tomorrow")
            assert bad.value.code == "time.bad"
            assert (await soon.result("20s"), await past.result("20s")) == ("done", "done")
            shown = soon.show()
            return shown["started_at"] >= soon.history()[0]["payload"]["start_at"]

    assert run(main())


@pytest.mark.req("R215")
def test_schedules_are_published_paused_and_backfilled(engine, tmp_path):
    """What a file says beside its workflow; each run is there once, with its own input."""
    path = written(tmp_path, "noted", DONE)
    path.write_text(path.read_text() + BESIDE)
    asked = []

    async def main():
        async with engine() as pawl:
            assert pawl.load(path) == ["noted"]
            noted = asyncio.Queue()

            @pawl.effect("note")
            async def note(ctx):
                asked.append(ctx.instance)
                noted.put_nowait(ctx.instance)

            await pawl.plan_for("noted")
            await once_there(lambda: pawl.pause_schedule("leap", by="ann", comment="not yet"))
            with pytest.raises(Refused) as again:
                await pawl.pause_schedule("leap", by="ann")
            await pawl.unpause_schedule("leap", by="ann")
            for _ in range(2):
                await pawl.backfill("leap", "2016-01-01", "2021-01-01T00:00Z", by="ann")
            keys = sorted([await asyncio.wait_for(noted.get(), 20) for _ in range(2)])
            runs = [pawl.run(key) for key in keys]
            for each in runs:
                await each.result(timeout="20s")
            with pytest.raises(Refused) as future:
                await pawl.backfill("leap", "2016-01-01", "+1d")
            await pawl.remove_schedule("leap")
            with pytest.raises(NotFound) as gone:
                await pawl.remove_schedule("leap")
            codes = [each.value.code for each in (again, future, gone)]
            return codes, [each.show()["input"] for each in runs]

    codes, inputs = run(main())
    assert codes == ["schedule.paused", "schedule.future", "schedule.unknown"]
    assert inputs == [{"day": "2016-02-29T12:30:00Z"}, {"day": "2020-02-29T12:30:00Z"}]
    assert sorted(asked) == ["leap.2016-02-29T12:30Z", "leap.2020-02-29T12:30Z"]


async def once_there(act):
    """A schedule hears of its publishing by mail, a moment later."""
    while True:
        try:
            return await act()
        except NotFound:
            await asyncio.sleep(0)


def test_a_schedule_that_is_refused_is_said(engine, tmp_path):
    """A document whose workflow nobody published."""
    path = written(tmp_path, "noted", DONE)
    path.write_text(path.read_text() + BESIDE.replace("workflow: noted", "workflow: other"))

    async def main():
        pawl = engine()
        pawl.load(path)
        async with pawl:
            pass

    with pytest.raises(NotFound, match="other"):
        run(main())


NOW = 1_000_000_000_000  # 2001-09-09T01:46:40Z


@pytest.mark.parametrize(
    ("given", "ms"),
    [
        ("+10m", NOW + 600_000),
        ("-1d", NOW - 86_400_000),
        ("2001-09-09", 999_993_600_000),
        ("2001-09-09T01:46:40Z", NOW),
        ("2001-09-09T03:46:40+02:00", NOW),
        ("2001-09-09T01:46:40", NOW),
        (datetime(2001, 9, 9, 3, 46, 40, tzinfo=timezone(timedelta(hours=2))), NOW),
        (timedelta(seconds=-1.5), NOW - 1_500),
    ],
)
def test_moments_as_people_write_them(given, ms):
    """A time of the calendar, in UTC unless it says otherwise, or so long from now."""
    assert moment_of(given, NOW) == ms


@pytest.mark.parametrize(
    "given",
    ["", "soon", "10m", "+", "+1x", "1969-12-31", "-99999d", datetime(2026, 1, 1), "99999-01-01"],  # noqa: DTZ001
)
def test_what_is_no_moment_is_refused(given):
    """With the form that is expected, or what is missing."""
    with pytest.raises(BadRequestError) as refused:
        moment_of(given, NOW)
    assert refused.value.code == "time.bad"
