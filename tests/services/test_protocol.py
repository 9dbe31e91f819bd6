import asyncio
import json
from uuid import UUID

import pytest

from pawlflow import Pawl
from tests.services.kit import WORKFLOW, Service, done

pytestmark = pytest.mark.req("R191")


@pytest.fixture
def flows(tmp_path, monkeypatch):
    """A workflow in a file, and completions without a signature."""
    monkeypatch.setenv("PAWL_NATS_UNSIGNED", "allow")
    path = tmp_path / "provision.yaml"
    path.write_text(WORKFLOW)
    return path


def engine(nats, flows, **more):
    pawl = Pawl(f"sqlite:///{flows.parent / 'pawl.db'}", nats=nats.url, **more)
    pawl.load(flows)
    return pawl


def test_commands_and_completions(nats, flows):
    async def story():
        async with Service(nats.url) as service, engine(nats, flows) as pawl:
            run = await pawl.start("provision", {"name": "Ada"}, id="p-1")
            first = await service.next("refdata.v1.party.save")
            assert json.loads(first.data) == {"name": "Ada"}
            headers = first.headers
            assert headers["X-Workflow-Instance-Name"] == "p-1"
            assert str(UUID(headers["X-Workflow-Instance-Id"])) != "p-1"
            assert UUID(headers["X-Workflow-Step-Id"]).version == 8
            assert headers["X-Workflow-Attempt"] == "1"
            assert headers["X-Tenant-Id"] == "default"
            trace = run.history()[0]["traceId"]
            assert headers["traceparent"].split("-")[:2] == ["00", trace]
            await service.say(done(first, {"id": 7}))
            second = await service.next("iam.v1.account.save")
            assert json.loads(second.data) == {"party": 7}
            await service.say(done(first, {"id": 8}))  # a duplicate, and it lies
            await service.say(done(second, {"id": 9}))
            await service.say(done(second, {"id": 10}))
            assert await run.result("20s") == {"account": 9}
            shown = run.show()
            assert shown["steps"]["party"]["result"] == {"id": 7}
            assert service.heard.empty()

    asyncio.run(story())
