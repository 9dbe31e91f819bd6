"""Asking the engine over NATS: starts that come twice, events from services, flows by name."""

import asyncio
import json

import pytest

from pawlflow import Pawl, PawlError, effect, flow
from pawlflow.app import connect_bus
from pawlflow.services import protocol
from pawlflow.worker import Worker
from tests.services.kit import Service, done

pytestmark = pytest.mark.req("R191")
WAITING = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: waiting}
spec:
  trigger: {event: lamp.lit}
  steps:
    - name: word
      wait: {event: door.opened, match: "event.door == input.door"}
  output: "${ steps.word }"
"""


@pytest.fixture
def flows(tmp_path, monkeypatch):
    monkeypatch.setenv("PAWL_NATS_UNSIGNED", "allow")
    path = tmp_path / "waiting.yaml"
    path.write_text(WAITING)
    return path


def engine(nats, flows):
    pawl = Pawl(f"sqlite:///{flows.parent / 'pawl.db'}", nats=nats.url)
    pawl.load(flows)
    return pawl


@pytest.mark.req("R93")
def test_a_start_that_comes_twice_is_one_instance(nats, flows):
    """Its id stands for the request; a correlation id may be that of several."""

    async def story():
        async with Service(nats.url) as service, engine(nats, flows) as pawl:
            asked = {"type": "waiting", "correlation_id": "c-1", "request_json": '{"door": 1}'}
            named = asked | {"instance_id": "i-1"}
            for _ in range(2):
                assert await service.ask(protocol.START, named) == {"instance_id": "i-1"}
            wrong = await service.ask(protocol.START, named | {"request_json": '{"door": 2}'})
            assert wrong["error"]["code"] == "instance.conflict"
            without = [await service.ask(protocol.START, asked) for _ in range(2)]
            assert without[0] != without[1]
            assert len(pawl.list(workflow="waiting")) == 3

    asyncio.run(story())


def test_a_service_tells_an_instance(nats, flows):
    """A signal is kept from before its wait opens; an event reaches who waits, and starts."""

    async def story():
        worker = Worker(nats.url, "doors", memory=f"sqlite:///{flows.parent / 'doors.db'}")
        worker.command("doors.v1.door.open")(lambda: None)
        with pytest.raises(PawlError, match="not open"):
            await worker.signal("w-1", "door.opened")
        async with Service(nats.url) as service, engine(nats, flows) as pawl, worker:
            run = await pawl.start("waiting", {"door": 7}, id="w-1")
            await worker.signal("w-1", "door.opened", {"door": 6})
            await worker.signal("w-1", "door.opened", {"door": 7, "by": "ann"})
            assert await run.result("20s") == {"door": 7, "by": "ann"}
            with pytest.raises(PawlError) as closed:
                await worker.signal("w-1", "door.opened", {"door": 7})
            assert closed.value.code == "instance.closed"
            with pytest.raises(PawlError) as unknown:
                await worker.signal("w-9", "door.opened")
            assert unknown.value.code == "instance.unknown"
            second = await pawl.start("waiting", {"door": 8}, id="w-2")
            await worker.emit("door.opened", {"door": 8})
            assert await second.result("20s") == {"door": 8}
            told = await service.ask(protocol.EMIT, {"event": "lamp.lit", "data": {"door": 9}})
            assert told == {"event": "lamp.lit", "accepted": True}
            nothing = await service.ask(protocol.SIGNAL, {"instance_id": "w-2"})
            assert nothing["error"]["code"] == "nats.request"
            for subject in (protocol.EMIT, protocol.SIGNAL):
                bad = await service.ask(subject, {"instance_id": "w-2", "event": "Bad Ev"})
                assert bad["error"]["code"] == "event.name"
                assert "'Bad Ev' is no event" in bad["error"]["message"]
            listed = await service.ask(protocol.LIST, {"type": "waiting"})
            assert len(listed["items"]) == 3

    asyncio.run(story())


@pytest.mark.req("R173", "R188")
def test_what_is_listed_for_a_tenant_can_be_started_for_it(nats, flows):
    """What the engine has, and what the tenant has published; nothing of another tenant's."""
    private = flows.parent / "private.yaml"
    private.write_text(WAITING.replace("name: waiting", "name: private"))
    shadowed = flows.parent / "shadowed.yaml"
    shadowed.write_text(WAITING.replace("name: waiting", "name: waiting, version: 2"))

    async def story():
        async with Pawl(f"sqlite:///{flows.parent / 'pawl.db'}", tenant="acme") as pawl:
            pawl.load(private, shadowed)
        async with Service(nats.url) as service, engine(nats, flows) as pawl:
            listed, started = {}, {}
            for tenant in ("acme", "globex", "default"):
                known = await service.ask(protocol.DEFINITIONS, {"tenant_id": tenant})
                listed[tenant] = [each["name"] for each in known["items"]]
                assert {each["version"] for each in known["items"]} == {1}
                answers = {
                    name: await service.ask(protocol.START, {"type": name, "tenant_id": tenant})
                    for name in ("private", "waiting")
                }
                started[tenant] = [name for name, said in answers.items() if "error" not in said]
                codes = {said["error"]["code"] for said in answers.values() if "error" in said}
                assert codes <= {"workflow.unknown"}
            assert listed == started
            assert started["acme"] == ["private", "waiting"]
            assert started["globex"] == started["default"] == ["waiting"]
            [ours] = pawl.list(workflow="waiting", tenant="acme")
            assert ours["version"] == 1
            [mine] = pawl.list(workflow="private", tenant="acme")
            await pawl.signal(mine["id"], "door.opened", {"door": None}, tenant="acme")
            result = await pawl.run(mine["id"], tenant="acme").result("20s")
            assert result == {"door": None}

    asyncio.run(story())


@flow(build=True)
def parts(request):
    for name in request["parts"]:
        effect("refdata.v1.party.save", {"name": name}, name=f"save-{name}")


@pytest.mark.req("R68")
def test_a_flow_that_is_built_from_its_input_is_started_by_its_name(nats, flows):
    async def story():
        async with Service(nats.url) as service, engine(nats, flows) as pawl:
            pawl.register(parts)
            asked = {"type": "parts", "request_json": json.dumps({"parts": ["a", "b"]})}
            told = await service.ask(protocol.START, {**asked, "instance_id": "p-1"})
            assert await service.ask(protocol.START, {**asked, "instance_id": "p-1"}) == told
            for _ in range(2):
                await service.say(done(await service.next("refdata.v1.party.save"), {"id": 1}))
            run = pawl.run(told["instance_id"])
            await run.result("20s")
            assert list(run.show()["steps"]) == ["save-a", "save-b"]
            one = await pawl.start_many("parts", [{"parts": ["c"]}])
            assert list(one[0].run.show()["steps"]) == ["save-c"]
            wrong = {**asked, "request_json": "{}"}
            assert (await service.ask(protocol.START, wrong))["error"]["code"] == "flow.raised"

    asyncio.run(story())


def test_services_that_start_at_once_share_the_stream(nats):
    """Each adds its subjects to what it has read; nobody's are lost to another's."""

    async def story():
        async with Service(nats.url) as service:
            buses = [await connect_bus(nats.url) for _ in range(8)]
            subjects = [f"service{n}.v1.thing.do" for n in range(8)]
            keeping = zip(buses, subjects, strict=True)
            made = await asyncio.gather(
                *(bus.keep(protocol.commands_stream((each,))) for bus, each in keeping)
            )
            assert any(made)
            info = await service.js.stream_info(protocol.COMMANDS)
            assert sorted(info.config.subjects) == subjects
            for bus in buses:
                await bus.close()

    asyncio.run(story())
