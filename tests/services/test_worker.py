import asyncio
import json
import os
import signal
import sys
from contextlib import AsyncExitStack

import nats as driver
import pytest

from pawlflow import Pawl, PawlError, Terminal, Transient, WorkflowFailed
from pawlflow.worker import Worker, memory_at, publish_step_completion
from pawlflow.worker_memory import Claim, Done
from tests.services.kit import WORKFLOW, Service

pytestmark = pytest.mark.req("R191")
RETRIED = WORKFLOW.replace(
    "run: iam.v1.account.save",
    "run: iam.v1.account.save\n      retryPolicy: {maxRetries: 3, initialDelay: 10ms}",
)


@pytest.fixture
def flows(tmp_path, monkeypatch):
    monkeypatch.setenv("PAWL_NATS_UNSIGNED", "allow")
    path = tmp_path / "provision.yaml"
    path.write_text(RETRIED)
    return path


def engine(nats, flows):
    pawl = Pawl(f"sqlite:///{flows.parent / 'pawl.db'}", nats=nats.url)
    pawl.load(flows)
    return pawl


def worker_of(nats, flows, service="refdata"):
    memory = f"sqlite:///{flows.parent / service}.db"
    return Worker(nats.url, service, memory=memory, batches=False)


@pytest.mark.req("R106", "R112")
def test_a_command_that_timed_out_is_waited_for_until_its_worker_is_done(nats, flows):
    """It is told to stop, and says so; what came before is undone then, however long the grace."""
    late = "run: iam.v1.account.save\n      timeout: 100ms\n      grace: 1h"
    flows.write_text(WORKFLOW.replace("run: iam.v1.account.save", late))

    async def story():
        undone, ended = [], []
        refdata, iam = worker_of(nats, flows), worker_of(nats, flows, "iam")
        refdata.command("refdata.v1.party.save")(lambda name: {"id": name})
        refdata.command("refdata.v1.party.delete")(lambda **_: undone.append(list(ended)))

        @iam.command("iam.v1.account.save")
        async def account(party):
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(party)

        async with Service(nats.url), refdata, iam, engine(nats, flows) as pawl:
            run = await pawl.start("provision", {"name": "Ada"}, id="w-9")
            with pytest.raises(WorkflowFailed) as failed:
                await run.result("20s")
        assert (failed.value.failure_class, failed.value.rollback) == ("timeout", "full")
        assert undone == [["Ada"]]

    asyncio.run(story())


def test_workers_keep_the_contract(nats, flows):
    async def story():
        done = []
        refdata, second = worker_of(nats, flows), worker_of(nats, flows)
        iam = worker_of(nats, flows, "iam")
        for each in (refdata, second):

            @each.command("refdata.v1.party.save")
            async def save(name, ctx):
                done.append((name, ctx.key))
                return {"id": f"p-{name}"}

            each.command("refdata.v1.party.delete")(lambda id: done.append(("delete", id)))

        @iam.command("iam.v1.account.save")
        def account(party, ctx):
            ctx.log("looked")
            if party == "p-Bob":
                raise Terminal("no Bobs")
            if ctx.attempt == 1:
                raise Transient("once more")
            return {"id": f"a-{party}", "attempt": ctx.attempt}

        async with (
            Service(nats.url) as service,
            engine(nats, flows) as pawl,
            AsyncExitStack() as all_,
        ):
            for each in (refdata, second, iam):
                await all_.enter_async_context(each)
            ada = await pawl.start("provision", {"name": "Ada"}, id="w-1")
            assert await ada.result("20s") == {"account": "a-p-Ada"}
            assert ada.show()["steps"]["account"]["attempts"] == 2
            [(name, key)] = done
            assert name == "Ada"
            # The command once more, as if it had been lost: told again, done once.
            told = await service.nc.subscribe("workflow.v1.events.step-completed")
            first = await service.next("refdata.v1.party.save")
            assert first.headers["X-Workflow-Step-Id"] == key
            await service.js.publish(first.subject, first.data, headers=first.headers)
            again = json.loads((await told.next_msg(timeout=30)).data)
            assert (again["step_id"], json.loads(again["result_json"])) == (
                key,
                {"id": "p-Ada"},
            )
            assert len(done) == 1
            bob = await pawl.start("provision", {"name": "Bob"}, id="w-2")
            with pytest.raises(WorkflowFailed, match="no Bobs"):
                await bob.result("20s")
            assert done[-1] == ("delete", "p-Bob")

    asyncio.run(story())


@pytest.mark.req("R146")
def test_an_unreachable_engine_means_later(nats, flows):
    async def story():
        done = []
        worker = worker_of(nats, flows)
        worker.command("refdata.v1.party.save")(lambda name: done.append(name) or {"id": 1})
        async with Service(nats.url) as service:
            async with engine(nats, flows) as pawl:
                await pawl.start("provision", {"name": "Ada"}, id="w-3")
                command = await service.next("refdata.v1.party.save")
            async with worker:
                asked = await service.nc.subscribe("workflow.v1.steps.get-result")
                await service.nc.flush()
                await service.js.publish(command.subject, command.data, headers=command.headers)
                await asked.next_msg(timeout=30)  # nobody answers
                await asked.next_msg(timeout=30)  # it asked again, later
                assert done == []
                await asked.unsubscribe()
                async with engine(nats, flows):
                    await service.next("refdata.v1.party.save")
                    account = await service.next()
                    while account.subject != "iam.v1.account.save":
                        account = await service.next()
                    assert done == ["Ada"]

    asyncio.run(story())


KILLED = """
import os, signal, sys
from pawlflow.worker import Worker
from pawlflow import worker_hearing, worker_jobs

worker_jobs.ACK_S = worker_hearing.ACK_S = 1.0
worker_jobs.LEASE_MS = 1_000
worker = Worker(service="refdata", memory="sqlite:///refdata.db", batches=False)

@worker.command("refdata.v1.party.save")
def save(name):
    with open("done.txt", "a") as out:
        print(name, file=out)
    return {"id": 7}

if os.environ.get("DIE"):  # between doing and telling
    async def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)
    worker_jobs.Jobs.tell = die
"""


def test_a_worker_that_is_killed_before_it_tells_is_heard_of(nats, flows):
    folder = flows.parent
    (folder / "steps.py").write_text(KILLED)
    program = "from pawlflow.cli.main import entry; entry()"
    words = [sys.executable, "-c", program, "worker", "steps", "--nats", nats.url]

    async def story():
        begin = asyncio.create_subprocess_exec
        async with Service(nats.url) as service, engine(nats, flows) as pawl:
            await pawl.start("provision", {"name": "Ada"}, id="w-4")
            await service.next("refdata.v1.party.save")
            killed = await begin(*words, cwd=folder, env=os.environ | {"DIE": "1"})
            assert await asyncio.wait_for(killed.wait(), 30) == -signal.SIGKILL
            second = await begin(*words, cwd=folder)
            try:
                account = await service.next()
                while account.subject != "iam.v1.account.save":
                    account = await service.next()
                assert json.loads(account.data) == {"party": 7}
            finally:
                second.terminate()
                assert await asyncio.wait_for(second.wait(), 20) == 0
        assert (folder / "done.txt").read_text() == "Ada\n"

    asyncio.run(story())


def test_the_bare_helper(nats, flows):
    async def story():
        async with Service(nats.url) as service, engine(nats, flows) as pawl:
            run = await pawl.start("provision", {"name": "Ada"}, id="w-5")
            nc = await driver.connect(nats.url)
            for result in ('{"id": 7}', '{"id": 9}'):
                headers = (await service.next()).headers
                step, instance = headers["X-Workflow-Step-Id"], headers["X-Workflow-Instance-Id"]
                await publish_step_completion(nc, step, instance, True, result, None)
            assert await run.result("20s") == {"account": 9}
            await nc.close()

    asyncio.run(story())


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_claim_is_of_one_until_it_is_over(kind, tmp_path, request):
    url = f"sqlite:///{tmp_path / 'm.db'}"
    if kind == "postgres":
        url = request.getfixturevalue("postgres").url
    one, two = memory_at(url), memory_at(url)

    def claim(memory, step, attempt, owner, now):
        [claimed] = memory.claim([Claim(step, attempt)], owner, now=now, lease_ms=10)
        return claimed

    assert claim(one, "s", 1, "a", 0).kind == "mine"
    assert claim(two, "s", 1, "b", 5).kind == "busy"
    one.renew(["s"], "a", 12)
    assert claim(two, "s", 1, "b", 11).kind == "busy"
    assert claim(two, "s", 1, "b", 12).kind == "mine"
    one.renew(["s"], "a", 100)  # it is no longer the owner
    assert claim(one, "s", 1, "a", 22).kind == "mine"
    two.settle([Done("s", 1, b"failed for good", False)])
    assert claim(one, "s", 1, "a", 23) == ("done", b"failed for good")
    assert claim(one, "s", 2, "a", 23).kind == "mine"  # a human wants it again
    one.settle([Done("s", 2, b"done", True)])
    assert claim(two, "s", 3, "b", 24) == ("done", b"done")
    one.settle([Done("s", 3, None, False)])  # what is done cannot be given back
    assert claim(two, "s", 3, "b", 24) == ("done", b"done")
    one.forget(now=1 << 50)
    assert claim(two, "s", 3, "b", 25).kind == "mine"
    two.settle([Done("s", 3, None, False)])
    assert claim(one, "s", 3, "a", 26).kind == "mine"
    one.close()
    two.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_claims_are_made_together_and_answered_in_order(kind, tmp_path, request):
    url = f"sqlite:///{tmp_path / 'm.db'}"
    if kind == "postgres":
        url = request.getfixturevalue("postgres").url
    one, two = memory_at(url), memory_at(url)
    one.claim([Claim(f"t-{number}", 1) for number in range(3)], "a", now=0, lease_ms=10)
    one.settle([Done("t-2", 1, b"two", True), Done("t-1", 1, None, False)])
    found = two.claim([Claim(f"t-{number}", 1) for number in (3, 2, 1, 0)], "b", 5, 10)
    assert [each.kind for each in found] == ["mine", "done", "mine", "busy"]
    assert found[1].completion == b"two"
    one.close()
    two.close()


def test_a_command_of_another_service_is_refused():
    with pytest.raises(PawlError, match=r"refdata\.v1\.RESOURCE\.ACTION"):
        Worker(service="refdata").command("iam.v1.account.save")
