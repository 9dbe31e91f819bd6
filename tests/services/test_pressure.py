"""A NATS server that is away: commands wait within bounds, and every one goes out in the end."""

import asyncio
import json
import signal
from functools import wraps

import nats as driver
import pytest

from pawlflow import Pawl
from pawlflow.engine.shard import Limits
from pawlflow.services.gateway import Nats
from tests.services.kit import COMPLETED, done

ONE = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: one}
spec:
  steps: [{name: s, run: refdata.v1.party.save, with: {n: "${ input.n }"}}]
"""


def on_a_loop(story):
    """A test that is a coroutine."""

    @wraps(story)
    def test(*given, **named):
        asyncio.run(story(*given, **named))

    return test


class Eager:
    """A service that answers whatever it hears, also after its server was away."""

    def __init__(self, url):
        self.url = url
        self.heard = []

    async def __aenter__(self):
        self.again = asyncio.Event()
        self.nc = await driver.connect(
            self.url,
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.1,
            error_cb=quiet,
            reconnected_cb=self.reconnected,
        )
        js = self.nc.jetstream()
        for stream in await js.streams_info():
            await js.delete_stream(stream.config.name)
        await self.nc.subscribe("refdata.v1.party.save", cb=self.answer)
        await self.nc.flush()
        return self

    async def __aexit__(self, *_):
        await self.nc.close()

    async def back(self):
        """Until the server knows its subscription again."""
        await self.again.wait()
        await self.nc.flush()

    async def reconnected(self):
        self.again.set()

    async def answer(self, msg):
        self.heard.append((msg.headers["X-Tenant-Id"], msg.headers["X-Workflow-Instance-Name"]))
        await self.nc.publish(COMPLETED, json.dumps(done(msg, 1)).encode())


async def quiet(_):
    """The server comes and goes."""


@pytest.mark.req("R27", "R28", "R214")
@pytest.mark.parametrize(
    ("due", "held"), [(1_500, 200), pytest.param(20_000, 10_000, marks=pytest.mark.slow)]
)
@on_a_loop
async def test_commands_wait_within_bounds_while_the_server_is_away(nats, tmp_path, due, held):
    """It stops with work due; starts go on; nothing piles up; all of it is done afterwards."""
    (tmp_path / "one.yaml").write_text(ONE)
    given = Nats(nats.url, unsigned=True, waiting_max=held)
    url = f"sqlite:///{tmp_path}/pawl.db"
    async with Eager(nats.url) as service, Pawl(url, nats=given, driver="thread") as pawl:
        pawl.load(tmp_path / "one.yaml")
        await (await pawl.start("one", {"n": 0})).result(timeout="20s")
        [gateway] = pawl.services.gateways.values()
        unsent = gateway.commands.unsent
        nats.stop(signal.SIGKILL)
        try:
            runs = await pawl.start_many("one", [{"n": n} for n in range(due)], tenant="a")
            mine = await pawl.start("one", {"n": 0}, tenant="b")
            assert all(each.error is None for each in runs)
            assert held // 2 < unsent.room <= held
            assert len(unsent) + unsent.missing + len(gateway.commands.going) == due + 1
            assert mine.id in {call.cell.key for call in waiting(gateway.commands)}
            assert len(gateway.commands.places) <= 1 + held + 2 * due  # small, and bounded too
            assert len(gateway.commands.sent) == 0
        finally:
            gateway.commands.closed = True  # until the service hears again: it keeps nothing
            nats.start()
        await service.back()
        gateway.commands.closed = False

        await mine.result(timeout="100s")
        for each in runs:
            await each.run.result(timeout="100s")
        gateway.commands.begin()  # what was answered twice is noted no longer
        assert (len(unsent), unsent.missing, unsent.room) == (0, 0, 0)
        assert gateway.commands.sent == {}
    names = {name for _, name in service.heard}
    assert len(names) == due + 2


def waiting(commands):
    """Commands that were not sent."""
    return [
        *commands.going.values(),
        *(c for line in commands.unsent.lines.values() for c in line.values()),
    ]


@pytest.mark.req("R214")
@on_a_loop
async def test_commands_of_tenants_take_turns(nats, tmp_path):
    """B's command goes out among the first, behind a thousand of A."""
    (tmp_path / "one.yaml").write_text(ONE)
    given = Nats(nats.url, unsigned=True)
    async with Eager(nats.url) as service, Pawl("memory:", nats=given) as pawl:
        pawl.load(tmp_path / "one.yaml")
        await (await pawl.start("one", {"n": 0})).result(timeout="20s")
        [gateway] = pawl.services.gateways.values()
        gateway.commands.closed = True  # until all of them wait
        runs = await pawl.start_many("one", [{"n": n} for n in range(1_000)], tenant="a")
        mine = await pawl.start("one", {"n": 0}, tenant="b")
        service.heard.clear()
        gateway.commands.closed = False
        gateway.commands.begin()
        for each in [mine, *(each.run for each in runs)]:
            await each.result(timeout="60s")

    assert [tenant for tenant, _ in service.heard].index("b") <= 1


@pytest.mark.req("R214")
@on_a_loop
async def test_a_start_over_nats_is_shed_with_a_code_and_a_time(nats, tmp_path):
    """What an overloaded engine answers; a cancel of the same client is taken."""
    (tmp_path / "one.yaml").write_text(ONE)
    given = Nats(nats.url, unsigned=True)
    async with (
        Eager(nats.url) as service,
        Pawl("memory:", nats=given, limits=Limits(starts=2)) as pawl,
    ):
        pawl.load(tmp_path / "one.yaml")
        pawl.services.gateways[None].commands.closed = True  # nothing is answered
        running = await pawl.start("one", {"n": 0}, id="i-1")
        asked = [{"type": "one", "request_json": "{}"} for _ in range(40)]
        said = await asyncio.gather(*(ask(service, "workflow.v1.start", each) for each in asked))
        told = await ask(service, "workflow.v1.instances.cancel", {"instance_id": running.id})

    refused = [each["error"] for each in said if "error" in each]
    assert refused
    assert {each["code"] for each in refused} == {"engine.overloaded"}
    assert {each["retry_after_s"] for each in refused} == {5}
    assert len(refused) < 40
    assert told["accepted"] is True


@pytest.mark.req("R214")
@on_a_loop
async def test_an_engine_is_left_though_its_server_is_gone(nats, tmp_path):
    """With commands that were not sent: they are in the journal."""
    (tmp_path / "one.yaml").write_text(ONE)
    try:
        async with Pawl("memory:", nats=Nats(nats.url, unsigned=True)) as pawl:
            pawl.load(tmp_path / "one.yaml")
            nats.stop(signal.SIGKILL)
            run = await pawl.start("one", {"n": 0})
    finally:
        nats.start()
    assert run.id


async def ask(service, subject, said):
    """Request and reply."""
    answer = await service.nc.request(subject, json.dumps(said).encode(), timeout=20)
    return json.loads(answer.data)
