import asyncio
import json
import signal
from uuid import UUID

import pytest

from pawlflow import Pawl, PawlError, WorkflowFailed
from pawlflow.model.journal import Disposition
from pawlflow.model.records import read
from tests.servers import Nats
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


def test_a_failure_is_undone_by_commands_that_look_the_same(nats, flows):
    async def story():
        async with Service(nats.url) as service, engine(nats, flows) as pawl:
            run = await pawl.start("provision", {"name": "Ada"}, id="p-2")
            first = await service.next("refdata.v1.party.save")
            await service.say(done(first, {"id": 7}, attempt=1, outcome="completed_with_warnings"))
            second = await service.next("iam.v1.account.save")
            said = {"success": False, "error_message": "taken", "failure_class": "terminal"}
            log = [{"level": "error", "message": "0 of 1 saved"}]
            await service.say(done(second, **said, log=log))
            undo = await service.next("refdata.v1.party.delete")
            assert json.loads(undo.data) == {"id": 7}
            assert undo.headers["X-Workflow-Step-Id"] != first.headers["X-Workflow-Step-Id"]
            await service.say(done(undo))
            with pytest.raises(WorkflowFailed) as failed:
                await run.result("20s")
            assert (failed.value.step, failed.value.failure_class) == ("account", "terminal")
            assert (failed.value.rollback, "taken" in str(failed.value)) == ("full", True)
            assert run.show()["steps"]["party"]["warnings"] == 1

    asyncio.run(story())


@pytest.mark.req("R111")
def test_what_a_deleted_stream_held_is_sent_again(nats, flows):
    async def story():
        async with Service(nats.url) as service, engine(nats, flows) as pawl:
            run = await pawl.start("provision", {"name": "Ada"}, id="p-3")
            lost = await service.next("refdata.v1.party.save")
            for stream in await service.js.streams_info():
                await service.js.delete_stream(stream.config.name)
            again = await service.next("refdata.v1.party.save")
            assert (again.headers, again.data) == (lost.headers, lost.data)
            await service.say(done(again, {"id": 7}))
            await service.say(done(await service.next("iam.v1.account.save"), {"id": 9}))
            assert await run.result("20s") == {"account": 9}

    asyncio.run(story())


def test_another_engine_sends_again_what_was_in_flight(nats, flows):
    async def story():
        async with Service(nats.url) as service:
            async with engine(nats, flows) as pawl:
                await pawl.start("provision", {"name": "Ada"}, id="p-4")
                first = await service.next("refdata.v1.party.save")
            await service.nc.flush()
            await service.say(done(first, {"id": 7}))  # while no engine runs
            async with engine(nats, flows) as pawl:
                second = await service.next()
                while second.subject == "refdata.v1.party.save":  # offered again, the same
                    assert second.headers == first.headers
                    second = await service.next()
                await service.say(done(second, {"id": 9}))
                assert await pawl.run("p-4").result("20s") == {"account": 9}

    asyncio.run(story())


@pytest.mark.req("R149")
def test_what_nobody_asked_for_is_a_dead_letter(nats, flows):
    async def story():
        async with Service(nats.url) as service, engine(nats, flows) as pawl:
            await pawl.start("provision", {"name": "Ada"}, id="p-5")
            first = await service.next("refdata.v1.party.save")
            stray = str(UUID(int=5))
            await service.say(done(first, {"id": 1}, workflow_instance_id=stray, step_id=stray))
            await service.say(done(first, {"id": 1}, step_id=stray))
            await service.say(done(first, {"id": 1}), headers={"X-Tenant-Id": "other"})
            await service.say({"step_id": "?"})
            nobody = done(first, {"id": 1}, workflow_instance_id=stray, step_id=stray)
            await service.say(nobody | {"tenant_id": "a\nX-Evil: 1"})
            letters = await service.dead(5)
            codes = sorted(each.headers["X-Dead-Letter-Code"] for each in letters)
            assert codes == [
                *("completion.malformed", "completion.tenant"),
                *("instance.unknown", "receipt.unknown", "tenant.bad"),
            ]
            assert not any("X-Evil" in each.headers for each in letters)
            found = pawl.reader.dispositions("default", 10)
            kept = [read(Disposition, each.entry.data, {}) for each in found]
            assert sorted((each.kind, each.code) for each in kept) == [
                *(("dead", "instance.unknown"), ("dead", "receipt.unknown")),
            ]
            assert pawl.run("p-5").show()["steps"]["party"]["state"] == "running"
            await service.say(done(first, {"id": 7}))
            await service.next("iam.v1.account.save")

    asyncio.run(story())


@pytest.mark.req("R149")
def test_an_attempt_that_was_never_made_is_a_dead_letter(nats, flows):
    """While its step is open and afterwards; a failure of an attempt that is over is a no-op."""
    flows.write_text(WORKFLOW.replace("undo:", "retryPolicy: {maxRetries: 1}\n      undo:"))
    failed = {"success": False, "result_json": None, "failure_class": "transient"}

    async def story():
        async with Service(nats.url) as service, engine(nats, flows) as pawl:
            run = await pawl.start("provision", {"name": "Ada"}, id="p-8")
            first = await service.next("refdata.v1.party.save")
            await service.say(done(first, **failed, attempt=7))
            await service.say(done(first, {"id": 7}, attempt=2))
            await service.say(done(first, {"id": 7}, attempt=-1))
            await service.say(done(first, **failed, attempt=10**30))
            early = await service.dead(4)
            assert pawl.run("p-8").show()["steps"]["party"]["state"] == "running"
            await service.say(done(first, **failed, attempt=1))
            second = await service.next("refdata.v1.party.save")
            assert second.headers["X-Workflow-Attempt"] == "2"
            await service.say(done(first, **failed, attempt=1))
            await service.say(done(second, {"id": 7}, attempt=2))
            await service.say(done(second, {"id": 7}, attempt=2))
            await service.say(done(second, **failed, attempt=2))
            account = await service.next("iam.v1.account.save")
            await service.say(done(account, {"id": 9}))
            assert await run.result("20s") == {"account": 9}
            await service.say(done(second, **failed, attempt=2))
            await service.say(done(second, **failed, attempt=3))
            letters = await service.dead(5)
            assert [each.data for each in letters[:4]] == [each.data for each in early]
            codes = {each.headers["X-Dead-Letter-Code"] for each in letters}
            assert codes == {"completion.attempt"}
            assert json.loads(letters[4].data)["attempt"] == 3
            reason = letters[4].headers["X-Dead-Letter-Reason"]
            assert reason == "it is of attempt 3, and the step has had 2"

    asyncio.run(story())


@pytest.mark.req("R149")
def test_what_comes_after_the_close_is_told_apart(nats, flows):
    """Also by an engine that has heard of none of it: a duplicate is a no-op, a stray is not."""
    failed = {"success": False, "result_json": None, "failure_class": "terminal"}
    stray = str(UUID(int=5))

    async def story():
        async with Service(nats.url) as service:
            async with engine(nats, flows) as pawl:
                run = await pawl.start("provision", {"name": "Ada"}, id="p-10")
                first = await service.next("refdata.v1.party.save")
                await service.say(done(first, {"id": 1}))
                account = await service.next("iam.v1.account.save")
                await service.say(done(account, **failed))
                undo = await service.next("refdata.v1.party.delete")
                await service.say(done(undo))
                with pytest.raises(WorkflowFailed):
                    await run.result("20s")
            async with engine(nats, flows):
                for each in (first, account, undo):
                    await service.say(done(each, {"id": 1} if each is first else None))
                await service.say(done(first, {"id": 1}, step_id=stray))
                await service.say(done(undo, attempt=2))
                letters = await service.dead(2)
                assert [each.headers["X-Dead-Letter-Code"] for each in letters] == [
                    *("receipt.unknown", "completion.attempt"),
                ]

    asyncio.run(story())


@pytest.mark.req("R188")
def test_questions(nats, flows):
    async def story():
        async with Service(nats.url) as service, engine(nats, flows) as pawl:
            asked = {"type": "provision", "tenant_id": "default", "correlation_id": "c-1"}
            asked |= {"request_json": json.dumps({"name": "Ada"}), "instance_id": "p-6"}
            assert await service.ask("workflow.v1.start", asked) == {"instance_id": "p-6"}
            assert await service.ask("workflow.v1.start", asked) == {"instance_id": "p-6"}
            other = await service.ask("workflow.v1.start", asked | {"request_json": "{}"})
            assert other["error"]["code"] == "instance.conflict"
            unknown = await service.ask("workflow.v1.start", asked | {"type": "nothing"})
            assert unknown["error"]["code"] == "workflow.unknown"
            foreign = await service.ask("workflow.v1.start", asked, headers={"X-Tenant-Id": "b"})
            assert foreign["error"]["code"] == "nats.tenant"
            first = await service.next("refdata.v1.party.save")
            by_id = {
                "step_id": first.headers["X-Workflow-Step-Id"],
                "workflow_instance_id": first.headers["X-Workflow-Instance-Id"],
            }
            found = await service.ask("workflow.v1.steps.get-result", by_id)
            assert found == {"found": False, "state": "open"}
            await service.say(done(first, {"id": 7}))
            await service.next("iam.v1.account.save")
            found = await service.ask("workflow.v1.steps.get-result", by_id)
            assert (found["found"], found["outcome"]) == (True, "completed")
            assert json.loads(found["result_json"]) == {"id": 7}
            listed = await service.ask("workflow.v1.instances.list", {"status": "running"})
            assert [each["id"] for each in listed["items"]] == ["p-6"]
            steps = await service.ask("workflow.v1.instances.steps", {"instance_id": "p-6"})
            assert [(each["name"], each["state"]) for each in steps["items"]] == [
                *(("party", "succeeded"), ("account", "running")),
            ]
            assert steps["items"][0]["step_id"] == by_id["step_id"]
            plain = [dict(each) for each in steps["items"]]
            shown = {each.pop("name"): each for each in plain if each.pop("step_id")}
            assert shown == json.loads(json.dumps(pawl.run("p-6").show()["steps"]))
            assert [len(each["ladder"]) for each in steps["items"]] == [1, 1]
            known = await service.ask("workflow.v1.definitions.list", {})
            [mine] = known["items"]
            assert (mine["name"], mine["version"]) == ("provision", 1)
            party = {"name": "party", "kind": "run", "undo": True}
            party |= {"command_subject": "refdata.v1.party.save"}
            assert mine["steps"][0] == party | {"compensation_subject": "refdata.v1.party.delete"}
            assert [each["undo"] for each in mine["steps"]] == [True, False]
            broken = await service.nc.request("workflow.v1.instances.list", b"[", timeout=30)
            assert json.loads(broken.data)["error"]["code"] == "nats.request"

    asyncio.run(story())


@pytest.mark.req("R188")
def test_any_tenant_that_a_header_can_carry(nats, flows):
    """What the engine was given is listed and started for each; a name that is none is refused."""

    async def story():
        async with Service(nats.url) as service, engine(nats, flows):
            asked = {"type": "provision", "request_json": '{"name": "Ada"}', "instance_id": "p-9"}
            wide = {"tenant_id": "größer als"}
            known = await service.ask("workflow.v1.definitions.list", {})
            assert [each["name"] for each in known["items"]] == ["provision"]
            assert await service.ask("workflow.v1.definitions.list", wide) == known
            assert await service.ask("workflow.v1.start", asked | wide) == {"instance_id": "p-9"}
            first = await service.next("refdata.v1.party.save")
            assert first.headers["X-Tenant-Id"] == "größer als"
            await service.say(done(first, {"id": 8}), headers={"X-Tenant-Id": "größer als"})
            second = await service.next("iam.v1.account.save")
            assert json.loads(second.data) == {"party": 8}
            for bad in ("a\nX-Evil: 1", " lead", "trail ", "\x00", "a" * 129):
                refused = await service.ask("workflow.v1.start", asked | {"tenant_id": bad})
                assert refused["error"]["code"] == "tenant.bad"
                step = {"step_id": first.headers["X-Workflow-Step-Id"], "tenant_id": bad}
                refused = await service.ask("workflow.v1.steps.are-open", {"steps": [step]})
                assert refused["error"]["code"] == "tenant.bad"

    asyncio.run(story())


def test_a_cancel_reaches_who_works_on_it(nats, flows):
    async def story():
        async with Service(nats.url) as service, engine(nats, flows) as pawl:
            run = await pawl.start("provision", {"name": "Ada"}, id="p-7")
            first = await service.next("refdata.v1.party.save")
            cancelled = await service.nc.subscribe("workflow.v1.cancel.*")
            await service.nc.flush()
            asked = {"instance_id": "p-7", "by": "ada"}
            told = await service.ask("workflow.v1.instances.cancel", asked)
            assert told == {"instance_id": "p-7", "accepted": True}
            heard = await cancelled.next_msg(timeout=30)
            assert heard.subject.endswith(first.headers["X-Workflow-Step-Id"])
            await service.say(done(first, success=False, error_message="stopped"))
            with pytest.raises(WorkflowFailed, match="cancelled"):
                await run.result("20s")

    asyncio.run(story())


@pytest.mark.req("R106", "R112")
@pytest.mark.parametrize("success", [True, False])
def test_a_command_that_timed_out_is_waited_for(nats, flows, success):
    """A completion ends it, whatever it says; a success is undone first, as it was done last."""
    late = "\n      timeout: 100ms\n      grace: 1h\n      undo: {run: refdata.v1.party.delete}"
    flows.write_text(flows.read_text().replace("account.save", f"account.save{late}"))

    async def story():
        async with Service(nats.url) as service, engine(nats, flows) as pawl:
            cancelled = await service.nc.subscribe("workflow.v1.cancel.*")
            run = await pawl.start("provision", {"name": "Ada"}, id="p-9")
            await service.say(done(await service.next("refdata.v1.party.save"), {"id": 7}))
            account = await service.next("iam.v1.account.save")
            heard = await cancelled.next_msg(timeout=30)
            assert heard.subject.endswith(account.headers["X-Workflow-Step-Id"])
            assert run.show()["state"] == "running"
            await service.say(done(account, {"id": 8}, success=success))
            for _ in range(1 + success):
                undo = await service.next("refdata.v1.party.delete")
                await service.say(done(undo))
            with pytest.raises(WorkflowFailed) as failed:
                await run.result("20s")
            assert (failed.value.failure_class, failed.value.rollback) == ("timeout", "full")

    asyncio.run(story())


def test_an_effect_with_a_function_here_stays_here(nats, flows):
    async def story():
        pawl = engine(nats, flows)
        pawl.effect("refdata.v1.party.save")(lambda name: {"id": name})
        async with Service(nats.url) as service, pawl:
            await pawl.start("provision", {"name": "Ada"}, id="p-8")
            only = await service.next("iam.v1.account.save")
            assert json.loads(only.data) == {"party": "Ada"}

    asyncio.run(story())


def test_a_server_that_is_not_there_is_named(flows):
    async def story():
        pawl = Pawl("memory:", nats="nats://user:secret@127.0.0.1:1")
        with pytest.raises(PawlError, match=r"127\.0\.0\.1:1") as refused:
            await pawl.open()
        assert refused.value.code == "nats.unreachable"
        assert "secret" not in str(refused.value)

    asyncio.run(story())


def test_a_server_that_was_away_is_no_loss(flows):
    server = Nats()

    async def story():
        async with engine(server, flows) as pawl:
            run = await pawl.start("provision", {"name": "Ada"}, id="p-9")
            async with Service(server.url) as service:
                server.stop(signal.SIGKILL)
                server.start()
            async with Service(server.url) as service:  # which deletes what the server had kept
                first = await service.next("refdata.v1.party.save")
                await service.say(done(first, {"id": 7}))
                await service.say(done(await service.next("iam.v1.account.save"), {"id": 9}))
                assert await run.result("20s") == {"account": 9}

    try:
        asyncio.run(story())
    finally:
        server.remove()
