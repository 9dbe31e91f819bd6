"""Python is a door like the others: names of tenants and events are refused by the same codes."""

import pytest

from pawlflow import Pawl, PawlError
from pawlflow.testing import Lab
from tests.effects.kit import run, written

BAD_TENANTS = ["a\nb", "\x00", " lead", "trail ", "a" * 129, "\ud800", 5]
BAD_EVENTS = ["Bad Ev", "", "Order", "a\nb", "$topic", 5, None]
WAITING = """
  steps:
    - {name: told, wait: {event: door.opened, timeout: 1h}}
"""
KEY = "01900000-0000-8000-8000-000000000000"
FOR_A_TENANT = [
    lambda pawl, whose: pawl.start("waiting", id="w-1", tenant=whose),
    lambda pawl, whose: pawl.start_many("waiting", [{}], tenant=whose),
    lambda pawl, whose: pawl.emit("door.opened", tenant=whose),
    lambda pawl, whose: pawl.signal("w-0", "door.opened", tenant=whose),
    lambda pawl, whose: pawl.approve("w-0", "told", by="ann", tenant=whose),
    lambda pawl, whose: pawl.cancel("w-0", tenant=whose),
    lambda pawl, whose: pawl.resume("w-0", "told", by="ann", tenant=whose),
    lambda pawl, whose: pawl.settle("w-0", "told", by="ann", comment="so", tenant=whose),
    lambda pawl, whose: pawl.pause_schedule("nightly", tenant=whose),
    lambda pawl, whose: pawl.remove_schedule("nightly", tenant=whose),
    lambda pawl, whose: pawl.backfill("nightly", "-2d", "-1d", tenant=whose),
    lambda pawl, whose: pawl.retire_policy("rules", tenant=whose),
    lambda pawl, whose: pawl.complete(KEY, tenant=whose),
    lambda pawl, whose: pawl.batch("cancel", where='workflow == "waiting"', by="ann", tenant=whose),
    lambda pawl, whose: pawl.list(tenant=whose),
    lambda pawl, whose: pawl.run("w-0", tenant=whose),
    lambda pawl, whose: pawl.alerts(tenant=whose),
]
TELLING = [
    lambda pawl, event: pawl.emit(event),
    lambda pawl, event: pawl.signal("w-0", event),
    lambda pawl, event: pawl.batch("signal", where='workflow == "waiting"', by="ann", event=event),
]


def history_of(pawl):
    """All that an instance, and all that a topic, has been told."""
    topics = pawl.reader.systems("default", "$topic", "", 10)
    return pawl.run("w-0").show()["turns"], [head.cell.key for head in topics]


def refusals(engine, path, calls, given):
    """What each of these calls is refused with; nothing is started, and nobody is told."""

    async def main():
        async with engine() as pawl:
            pawl.load(path)
            await pawl.start("waiting", id="w-0")
            before, codes = history_of(pawl), []
            for call in calls:
                with pytest.raises(PawlError) as refused:
                    await call(pawl, given)
                codes.append(refused.value.code)
            assert history_of(pawl) == before
            assert [each["id"] for each in pawl.list()] == ["w-0"]
            return codes

    return run(main())


@pytest.mark.req("R173")
@pytest.mark.parametrize("whose", BAD_TENANTS)
def test_what_is_no_tenant_is_refused_by_every_call(engine, tmp_path, whose):
    """As on the command line and over NATS; nothing is started, and nobody is told."""
    path = written(tmp_path, "waiting", WAITING)

    assert refusals(engine, path, FOR_A_TENANT, whose) == ["tenant.bad"] * len(FOR_A_TENANT)


@pytest.mark.req("R173")
@pytest.mark.parametrize("whose", BAD_TENANTS)
def test_what_is_no_tenant_is_refused_without_an_event_loop(tmp_path, whose):
    """`Pawl.blocking` has the same door."""
    with Pawl.blocking("memory:") as pawl:
        pawl.load(written(tmp_path, "waiting", WAITING))
        pawl.start("waiting", id="w-0")
        for asked in FOR_A_TENANT:
            with pytest.raises(PawlError) as refused:
                asked(pawl, whose)
            assert refused.value.code == "tenant.bad"


@pytest.mark.parametrize("whose", [*BAD_TENANTS, ""])
@pytest.mark.parametrize("made", [Pawl, Pawl.blocking, Lab])
def test_an_engine_belongs_to_a_tenant(made, whose):
    """A name that is none is refused before anything is opened."""
    with pytest.raises(PawlError) as refused:
        made("memory:", tenant=whose)
    assert refused.value.code == "tenant.bad"


def test_a_server_for_each_tenant_names_tenants():
    """Refused before anybody connects."""

    async def main():
        async with Pawl("memory:", nats={"a\nb": "nats://127.0.0.1:1"}):
            raise AssertionError("it was opened")

    with pytest.raises(PawlError) as refused:
        run(main())
    assert refused.value.code == "tenant.bad"


def test_no_tenant_means_the_one_of_the_engine(engine, tmp_path):
    """An empty name is none, as with `--tenant ''` and `tenant_id: ""`."""
    path = written(tmp_path, "waiting", WAITING)

    async def main():
        async with engine(tenant="größer als") as pawl:
            pawl.load(path)
            runs = [await pawl.start("waiting", tenant=each) for each in (None, "", "acme")]
            return [each.tenant for each in runs]

    assert run(main()) == ["größer als", "größer als", "acme"]


@pytest.mark.req("R215")
@pytest.mark.parametrize("event", BAD_EVENTS)
def test_what_is_no_event_is_refused(engine, tmp_path, event):
    """No wait and no trigger could ever name it; nobody is told."""
    path = written(tmp_path, "waiting", WAITING)

    assert refusals(engine, path, TELLING, event) == ["event.name"] * len(TELLING)


@pytest.mark.req("R215")
@pytest.mark.parametrize("event", BAD_EVENTS)
def test_what_is_no_event_is_refused_without_an_event_loop(tmp_path, event):
    """`Pawl.blocking` has the same door."""
    with Pawl.blocking("memory:") as pawl:
        pawl.load(written(tmp_path, "waiting", WAITING))
        pawl.start("waiting", id="w-0")
        for told in TELLING:
            with pytest.raises(PawlError) as refused:
                told(pawl, event)
            assert refused.value.code == "event.name"
