"""The grid computes for hours: in virtual time, with the real handlers on real tables."""

import asyncio
import importlib
from datetime import datetime, timedelta

import pytest

from examples.ores.ledger import tables_of
from pawlflow import WorkflowFailed
from pawlflow.testing import Lab, StillWaiting
from tests.examples.conftest import FLOWS
from tests.examples.kit import completed, shapes, undone

GIVEN = {"title": "July", "trades": ["A", "B"], "hours": 40}
pytestmark = pytest.mark.req("R147", "R193")


@pytest.fixture
def services(stage, monkeypatch):
    """The functions of two services, in this process; their tables are those of the stage."""
    monkeypatch.setenv("ORES_DB", stage.database)
    names = ("reporting", "grid")
    return [importlib.import_module(f"examples.ores.services.{name}") for name in names]


@pytest.fixture
def lab(stage, services, request):
    """An engine whose clock is moved by hand, on PostgreSQL.

    Labs draw the same lots: what tells the keys of their steps apart is the tenant.
    """
    made = Lab(f"{stage.database}?schema=hours", tenant=request.node.name[:40])
    made.load(*FLOWS)
    for module in services:
        for subject, executor in module.worker.executors.items():
            made.effect(subject)(executor.fn)
    return made


def closed_batch(services, batch):
    """Let the machines finish a batch; gives what the grid tells of it."""
    _, grid = services
    with grid.tables.transaction() as db:
        db.execute("UPDATE batch SET closes_at = now() WHERE id = %s", (batch,))
        db.execute(grid.CLOSE)
        return grid.told_of(db.execute("SELECT * FROM batch WHERE id = %s", (batch,)).fetchone())


def took(run):
    """How long it was, by the journal."""
    shown = run.show()
    ends = (datetime.fromisoformat(shown[each]) for each in ("started_at", "closed_at"))
    began, closed = ends
    return closed - began


def test_a_wait_of_days_keeps_nothing_open(lab, stage, services):
    """No attempt is open, nothing is asked, no turn is added; then one event ends it."""

    async def story():
        async with lab:
            run = await lab.start("report_execution", GIVEN, id="hours-1")
            before = run.show()
            assert [each["step"] for each in before["waiting"]] == ["compute"]
            await lab.skip("20h")
            await lab.crash()
            await lab.skip("20h")
            after = run.show()
            assert after["turns"] == before["turns"]
            assert not [each for each in after["steps"].values() if each["state"] == "running"]
            with pytest.raises(StillWaiting, match=r"compute waits for the event grid\.batch"):
                await run.result()
            batch = after["steps"]["submit"]["result"]["batch"]
            told = await asyncio.to_thread(closed_batch, services, batch)
            await lab.signal("hours-1", "grid.batch-closed", {**told, "batch": batch + 1_000})
            assert run.show()["waiting"]  # another batch was closed
            await lab.signal("hours-1", "grid.batch-closed", told)
            assert (await run.result())["figures"] == 2
            assert took(run) == timedelta(hours=40)
            assert completed(run.history())[-1] == "finalise"

    asyncio.run(story())
    figures = tables_of(stage.database)["reporting"]["report"][-1]["figures"]
    assert figures == {"A": 40.0, "B": 40.0}


def changed(path, title):
    """The same workflow in a new release: without its last step, and with another name for one."""
    text = path.read_text().replace("name: process", "name: digest")
    text = text.replace("steps.process.", "steps.digest.").replace("[process]", "[digest]")
    assert "finalise" in text
    whole = text[: text.index("    - name: finalise")] + text[text.index("  output:") :]
    title.write_text(whole)
    return title


@pytest.mark.req("R69")
def test_a_new_release_does_not_reshape_what_is_under_way(lab, stage, services, tmp_path):
    """Published while the grid computes: the instance goes on as it began, the next is another."""
    [path] = [each for each in FLOWS if each.stem == "report_execution"]

    async def story():
        async with lab:
            old = await lab.start("report_execution", {**GIVEN, "title": "Oct"}, id="hours-4")
            await lab.skip("1h")
            lab.load(changed(path, tmp_path / "report_execution.yaml"))
            new = await lab.start("report_execution", {**GIVEN, "title": "Nov"}, id="hours-5")
            for run in (old, new):
                batch = run.show()["steps"]["submit"]["result"]["batch"]
                told = await asyncio.to_thread(closed_batch, services, batch)
                await lab.signal(run.id, "grid.batch-closed", told)
                await run.result()
            assert completed(old.history())[-2:] == ["process", "finalise"]
            assert completed(new.history())[-1:] == ["digest"]

    asyncio.run(story())


def test_a_batch_that_never_closes_is_given_up(lab, stage):
    """After 60 hours; the batch is cancelled first, then what was before it is taken back."""

    async def story():
        async with lab:
            run = await lab.start("report_execution", {**GIVEN, "title": "August"}, id="hours-2")
            await lab.skip("59h")
            assert run.show()["state"] in ("running", "waiting")
            with pytest.raises(WorkflowFailed) as failed:
                await run.result(timeout="2h")
            assert (failed.value.step, failed.value.failure_class) == ("compute", "timeout")
            assert failed.value.rollback == "full"
            assert undone(run.history()) == ["submit", "prepare", "gather"]
            assert took(run) == timedelta(hours=60)

    asyncio.run(story())
    assert shapes(stage, "hours-2")[3:] == [
        "batch N cancelled",
        "package N deleted",
        "report N failed",
    ]
    assert tables_of(stage.database)["grid"]["batch"][-1]["state"] == "cancelled"


def test_a_cancel_takes_the_batch_back(lab, stage):
    """A human stops a report while the grid computes: its work is undone, as after a failure."""

    async def story():
        async with lab:
            run = await lab.start("report_execution", {**GIVEN, "title": "Sept"}, id="hours-3")
            await lab.skip("5h")
            await lab.cancel("hours-3", by="ann", comment="the wrong month")
            with pytest.raises(WorkflowFailed):
                await run.result()
            assert (run.show()["state"], run.show()["rollback"]) == ("cancelled", "full")
            assert undone(run.history()) == ["submit", "prepare", "gather"]
            assert took(run) == timedelta(hours=5)

    asyncio.run(story())
    assert tables_of(stage.database)["grid"]["batch"][-1]["state"] == "cancelled"
