"""Batches to nobody, to several, or to somebody who is killed: nothing is lost or done twice."""

import asyncio
import json
import os
import signal
import sys
from contextlib import AsyncExitStack
from uuid import UUID

import pytest

from pawlflow import WorkflowFailed, worker_jobs
from tests.servers import Nats
from tests.services.batches_kit import (
    BATCH,
    MANY,
    SAVE,
    enclosed,
    engine,
    gathered,
    refdata,
    results,
    silent_taker,
    start_all,
)
from tests.services.kit import Service, done

pytestmark = pytest.mark.req("R191")


# Whoever is there, and whoever is not


def test_what_went_to_nobody_goes_to_a_plain_service(nats, parties):
    """The one who took batches is gone: its commands go out alone, as they were."""

    async def story():
        async with (
            Service(nats.url) as service,
            silent_taker(service) as taken,
            engine(nats, parties) as pawl,
        ):
            runs = await start_all(pawl, ["s-1", "s-2"])
            parts, _ = await gathered(taken, 2)
            assert service.heard.empty()
            await taken.unsubscribe()
            for part in parts:
                alone = await service.next(SAVE)
                said = (dict(alone.headers), json.loads(alone.data))
                assert said == (part["headers"], part["body"])
                await service.say(done(alone, {"id": 7}))
            assert await results(runs) == [{"id": 7}] * 2
            # The consumer is still there, and nobody listens: no more batches.
            [third] = await start_all(pawl, ["s-3"])
            await service.say(done(await service.next(SAVE), {"id": 8}))
            assert await results([third]) == [{"id": 8}]

    asyncio.run(story())


def test_a_batch_that_a_deleted_stream_held_is_sent_again(nats, parties):
    """With the stream its consumer is gone, too: what it held goes out alone."""

    async def story():
        async with (
            Service(nats.url) as service,
            silent_taker(service) as taken,
            engine(nats, parties) as pawl,
        ):
            runs = await start_all(pawl, ["d-1"])
            await taken.next_msg(timeout=30)
            await service.js.delete_stream("PAWL_BATCHES")
            await service.say(done(await service.next(SAVE), {"id": 7}))
            assert await results(runs) == [{"id": 7}]

    asyncio.run(story())


def test_a_silence_makes_commands_go_alone(nats, parties):
    """Somebody takes batches and never answers: what is offered again is not batched again."""

    async def story():
        async with (
            Service(nats.url) as service,
            silent_taker(service) as taken,
            engine(nats, parties) as pawl,
        ):
            runs = await start_all(pawl, ["q-1"])
            await taken.next_msg(timeout=30)
            commands = pawl.services.gateways[None].commands
            pawl.driver.offer_again(None)  # as after thirty seconds
            await service.say(done(await service.next(SAVE), {"id": 7}))
            assert await results(runs) == [{"id": 7}]
            assert (commands.sent, commands.batched, commands.alone) == ({}, {}, set())

    asyncio.run(story())


def test_a_plain_service_and_a_worker_on_one_command(nats, parties):
    """Whoever is there carries it out: the worker in batches, without it the plain service."""

    async def story():
        seen = []

        async def save(name):
            seen.append(name)
            return {"by": "worker"}

        async with Service(nats.url) as service, engine(nats, parties) as pawl:

            async def serve():
                while True:
                    command = await service.heard.get()
                    await service.say(done(command, {"by": "service"}))

            plain = asyncio.ensure_future(serve())
            runs = await start_all(pawl, ["m-1", "m-2"])
            assert await results(runs) == [{"by": "service"}] * 2
            async with refdata(nats, parties, save):
                takers = pawl.services.gateways[None].commands.takers
                while not takers.takes(SAVE):
                    await takers.look()
                runs = await start_all(pawl, ["m-3", "m-4"])
                assert await results(runs) == [{"by": "worker"}] * 2
            assert await takers.look() == {SAVE}
            runs = await start_all(pawl, ["m-5", "m-6"])
            assert await results(runs) == [{"by": "service"}] * 2
            plain.cancel()
        assert sorted(seen)[-2:] == ["m-3", "m-4"]

    asyncio.run(story())


def test_a_command_of_a_batch_that_is_not_known_here_goes_on_alone(nats, parties):
    """Workers of two versions are there: a batch for the newer one comes to the older."""

    async def story():
        worker = refdata(nats, parties, lambda name: {"id": name})
        headers = {"X-Workflow-Step-Id": str(UUID(int=9)), "X-Workflow-Instance-Id": "k-1"}
        strange = {"subject": "iam.v1.account.save", "headers": headers, "body": {"a": 1}}
        wrong = [{**strange, "headers": {}}, {**strange, "subject": "no command"}]
        async with Service(nats.url) as service, engine(nats, parties) as pawl:
            async with worker:
                await results(await start_all(pawl, ["k-1"]))
                await service.js.publish(BATCH, json.dumps([strange, *wrong]).encode())
                alone = await service.next("iam.v1.account.save")
                assert (alone.headers, json.loads(alone.data)) == (headers, {"a": 1})
                await service.js.publish(BATCH, b"no batch")
                await service.js.publish(BATCH, b"[]")
                await results(await start_all(pawl, ["k-2"]))
            info = await service.js.consumer_info("PAWL_BATCHES", "refdata")
            assert (info.num_ack_pending, info.num_pending) == (0, 0)
            assert service.heard.empty()

    asyncio.run(story())


# Twice, and killed


def test_a_batch_that_comes_twice_is_done_once(nats, parties):
    """Two workers, and the same batch for each of them."""

    async def story():
        seen = []
        begun, go = asyncio.Event(), asyncio.Event()

        async def save(name):
            seen.append(name)
            begun.set()
            await go.wait()
            return {"id": name}

        names = [f"t-{number}" for number in range(10)]
        async with Service(nats.url) as service, AsyncExitStack() as workers:
            for _ in range(2):
                await workers.enter_async_context(refdata(nats, parties, save))
            pawl = await workers.enter_async_context(engine(nats, parties))
            sent = await service.nc.subscribe(BATCH)
            told = await service.nc.subscribe(MANY)
            runs = await start_all(pawl, names)
            await begun.wait()
            batch = await sent.next_msg(timeout=30)
            for _ in range(4):
                await service.js.publish(BATCH, batch.data, headers=batch.headers)
            go.set()
            assert await results(runs) == [{"id": name} for name in names]
            await service.js.publish(BATCH, batch.data, headers=batch.headers)  # once more
            keys = [each["headers"]["X-Workflow-Step-Id"] for each in enclosed(batch)]
            again, _ = await gathered(told, len(names) + len(keys))  # told, and told again
            assert {each["body"]["step_id"] for each in again} >= set(keys)
        assert sorted(seen) == sorted(names)

    asyncio.run(story())


KILLED = """
import os, signal
from pawlflow import worker_hearing, worker_jobs
from pawlflow.worker import Worker

worker_jobs.ACK_S = worker_hearing.ACK_S = 1.0
worker_jobs.LEASE_MS, worker_jobs.LATER_S = 1_000, 0.1
worker = Worker(service="refdata", memory="sqlite:///refdata.db", concurrency=1)

@worker.command("refdata.v1.party.save")
def save(name):
    with open("done.txt", "a") as out:
        print(name, file=out)
    return {"id": name}

told, tell = [], worker_jobs.Jobs.tell

async def tell_some(jobs, some):
    told.append(some)
    if os.environ.get("DIE") and len(told) == 4:  # between doing and telling, in the middle
        os.kill(os.getpid(), signal.SIGKILL)
    await tell(jobs, some)

worker_jobs.Jobs.tell = tell_some
"""


def test_a_worker_that_is_killed_in_the_middle_of_a_batch(nats, parties):
    """What is done is told by the next one, the rest is done once."""
    (parties / "steps.py").write_text(KILLED)
    program = "from pawlflow.cli.main import entry; entry()"
    words = [sys.executable, "-c", program, "worker", "steps", "--nats", nats.url]
    names = [f"w-{number}" for number in range(8)]

    async def story():
        begin, pipe = asyncio.create_subprocess_exec, asyncio.subprocess.PIPE
        env = os.environ | {"DIE": "1"}
        async with Service(nats.url) as service, engine(nats, parties) as pawl:
            killed = await begin(*words, cwd=parties, env=env, stdout=pipe)
            await asyncio.wait_for(killed.stdout.readline(), 20)
            sent = await service.nc.subscribe(BATCH)
            runs = await start_all(pawl, names)
            await gathered(sent, len(names))
            assert await asyncio.wait_for(killed.wait(), 30) == -signal.SIGKILL
            before = (parties / "done.txt").read_text().split()
            assert before == names[:4]
            second = await begin(*words, cwd=parties)
            try:
                assert await results(runs) == [{"id": name} for name in names]
            finally:
                second.terminate()
                assert await asyncio.wait_for(second.wait(), 20) == 0
        assert sorted((parties / "done.txt").read_text().split()) == names

    asyncio.run(story())


def test_a_server_that_is_killed_in_the_middle_of_a_batch(parties):
    """What is done while it is away is told when it is back, and done once."""
    server = Nats()

    async def story():
        seen, begun, go = [], asyncio.Event(), asyncio.Event()

        async def save(name):
            seen.append(name)
            begun.set()
            await go.wait()
            return {"id": name}

        names = [f"v-{number}" for number in range(6)]
        async with refdata(server, parties, save), engine(server, parties) as pawl:
            runs = await start_all(pawl, names)
            await begun.wait()
            server.stop(signal.SIGKILL)
            go.set()
            server.start()
            assert await results(runs) == [{"id": name} for name in names]
        assert sorted(seen) == names

    try:
        asyncio.run(story())
    finally:
        server.remove()


def test_an_engine_that_is_away_means_later(nats, parties):
    """A batch whose engine does not answer is kept, and nothing is executed."""

    async def story():
        seen = []
        async with Service(nats.url) as service, silent_taker(service) as taken:
            async with engine(nats, parties) as pawl:
                await start_all(pawl, ["a-1", "a-2"])
                await gathered(taken, 2)
            await service.js.delete_consumer("PAWL_BATCHES", "refdata")
            asked = await service.nc.subscribe("workflow.v1.steps.are-open")
            worker = refdata(nats, parties, lambda name: seen.append(name) or {"id": name})
            worker_jobs.ASK_S, before = 0.2, worker_jobs.ASK_S
            async with worker:
                for _ in range(4):
                    question = json.loads((await asked.next_msg(timeout=30)).data)
                    assert len(question["steps"]) in (1, 2)
                assert seen == []
                await asked.unsubscribe()
                worker_jobs.ASK_S = before
                async with engine(nats, parties) as pawl:
                    runs = [pawl.run("a-1"), pawl.run("a-2")]
                    assert await results(runs) == [{"id": "a-1"}, {"id": "a-2"}]
        assert sorted(seen) == ["a-1", "a-2"]

    asyncio.run(story())


def test_a_cancel_reaches_a_command_of_a_batch(nats, parties):
    """The function that works on it is cancelled, the others of its batch go on."""

    async def story():
        begun, go = asyncio.Event(), asyncio.Event()
        ended = []

        async def save(name):
            try:
                if name == "c-1":
                    begun.set()
                    await asyncio.Event().wait()
                await go.wait()
            except asyncio.CancelledError:
                ended.append(name)
                raise
            return {"id": name}

        async with Service(nats.url), refdata(nats, parties, save), engine(nats, parties) as pawl:
            first, second = await start_all(pawl, ["c-1", "c-2"])
            await begun.wait()
            await pawl.cancel("c-1", by="ada")
            with pytest.raises(WorkflowFailed, match="cancelled"):
                await first.result("20s")
            go.set()
            assert await results([second]) == [{"id": "c-2"}]
        assert ended == ["c-1"]

    asyncio.run(story())


def test_a_result_that_no_bus_takes_is_a_failure(nats, parties):
    """It is told at once, and for good: telling it again would not help."""

    async def story():
        async with (
            Service(nats.url),
            refdata(nats, parties, lambda name: {"id": "x" * 2_000_000}),
            engine(nats, parties) as pawl,
        ):
            [run] = await start_all(pawl, ["l-1"])
            with pytest.raises(WorkflowFailed, match="larger than NATS takes") as failed:
                await run.result("20s")
            assert failed.value.failure_class == "terminal"

    asyncio.run(story())
