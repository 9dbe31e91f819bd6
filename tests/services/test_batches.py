"""Batches between an engine and our own workers: the same steps, in fewer messages."""

import asyncio
import json
from uuid import UUID

import pytest

from pawlflow import Terminal, Transient, WorkflowFailed
from pawlflow.bus.port import Letter
from pawlflow.services import batches, protocol
from pawlflow.services.protocol import ProtocolError
from pawlflow.services.signing import new_pair
from pawlflow.worker import Nats
from tests.services.batches_kit import (
    BATCH,
    MANY,
    SAVE,
    engine,
    gathered,
    refdata,
    results,
    start_all,
)
from tests.services.kit import Service, done

pytestmark = pytest.mark.req("R191")


# The same steps


def outcomes_of(pawl, runs):
    """What the journal has of instances, without times and ids of events."""
    told = []
    for run in runs:
        events = [event["eventType"] for event in run.history()]
        step = run.show()["steps"]["party"]
        kept = {name: step.get(name) for name in ("state", "attempts", "result", "log", "warnings")}
        told.append((run.id, run.show()["state"], kept, events))
    return told


async def outcomes(nats, parties, *, batched):
    """A success, a warning, a failure for good, one that is retried, a large one, a wrong one."""
    tried = []

    async def save(name, ctx):
        tried.append((name, ctx.attempt))
        ctx.log(f"saving {name[:10]}")
        if name == "warned":
            ctx.warn("it was there")
        if name == "never":
            raise Terminal("no such thing")
        if name == "later" and ctx.attempt < 3:
            raise Transient("not yet")
        if name == "broken":
            raise ValueError("what")
        return {"id": len(name), "key": ctx.key if name == "key" else None}

    names = ["plain", "warned", "never", "later", "x" * 700_000]
    worker = refdata(nats, parties, save, batches=batched)
    async with Service(nats.url), worker, engine(nats, parties) as pawl:
        answers = await pawl.start_many("one", [(name[:9], {"name": name}) for name in names])
        assert all(each.error is None for each in answers)
        runs = [pawl.run(name[:9]) for name in names]
        for run in runs:
            try:
                await run.result("20s")
            except WorkflowFailed as failed:
                assert failed.step == "party"
        return outcomes_of(pawl, runs), sorted((name[:9], attempt) for name, attempt in tried)


def test_what_becomes_of_steps_is_the_same_alone_and_in_batches(nats, parties, tmp_path_factory):
    """Successes, warnings, failures, retries, logs, large values: the journals are alike."""
    alone = asyncio.run(outcomes(nats, parties, batched=False))
    other = tmp_path_factory.mktemp("batched")
    for each in ("provision.yaml", "one.yaml"):
        (other / each).write_text((parties / each).read_text())
    together = asyncio.run(outcomes(nats, other, batched=True))
    assert together == alone
    assert {each[1] for each in alone[0]} == {"completed", "failed"}


def test_several_commands_travel_in_a_message_and_are_told_in_one(nats, parties):
    """What is in a batch is what would have been sent alone."""

    async def story():
        worker = refdata(nats, parties, lambda name: {"id": name})
        names = [f"b-{number}" for number in range(20)]
        async with Service(nats.url) as service, worker, engine(nats, parties) as pawl:
            sent = await service.nc.subscribe(BATCH)
            told = await service.nc.subscribe(MANY)
            await service.nc.flush()
            runs = await start_all(pawl, names)
            assert await results(runs) == [{"id": name} for name in names]
            parts, messages = await gathered(sent, len(names))
            assert messages < len(names)
            assert [each["body"]["name"] for each in parts] == names
            first, trace = parts[0], runs[0].history()[0]["traceId"]
            assert (first["subject"], set(first)) == (SAVE, {"subject", "headers", "body"})
            assert first["headers"]["X-Workflow-Instance-Name"] == "b-0"
            assert first["headers"]["traceparent"].split("-")[1] == trace
            assert set(first["headers"]) == {
                *("X-Workflow-Instance-Id", "X-Workflow-Instance-Name", "X-Workflow-Step-Id"),
                *("X-Workflow-Attempt", "X-Tenant-Id", "traceparent"),
            }
            answers, messages = await gathered(told, len(names))
            assert messages < len(names)
            assert {each["subject"] for each in answers} == {protocol.COMPLETED}
            assert [json.loads(each["body"]["result_json"]) for each in answers] == [
                {"id": name} for name in names
            ]
            assert service.heard.empty()
            assert sent.pending_msgs == 0

    asyncio.run(story())


def test_with_one_hand_a_batch_is_done_in_order(nats, parties):
    """The order is that of the commits."""

    async def story():
        seen = []

        async def save(name):
            seen.append(name)
            return {"id": name}

        names = [f"o-{number}" for number in range(12)]
        async with (
            Service(nats.url),
            refdata(nats, parties, save, concurrency=1),
            engine(nats, parties) as pawl,
        ):
            await results(await start_all(pawl, names))
        assert seen == names

    asyncio.run(story())


@pytest.mark.parametrize("who", ["engine", "worker"])
def test_either_side_may_want_none(nats, parties, who):
    """An engine that sends none, and a worker that takes none: all goes one by one."""

    async def story():
        options = Nats(nats.url, batches=who != "engine")
        worker = refdata(nats, parties, lambda name: {"id": 7}, batches=who != "worker")
        async with Service(nats.url) as service, worker, engine(nats, parties, options) as pawl:
            batch = await service.nc.subscribe("workflow.v1.batches.*")
            await results(await start_all(pawl, ["n-1", "n-2"]))
            heard = [await service.next(SAVE) for _ in range(2)]
            assert [each.headers["X-Workflow-Instance-Name"] for each in heard] == ["n-1", "n-2"]
            assert batch.pending_msgs == 0

    asyncio.run(story())


# Completions in batches


def test_each_completion_of_a_batch_is_judged_by_itself(nats, parties):
    """What nobody asked for is a dead letter, as it would have come alone; the rest is taken."""

    async def story():
        async with Service(nats.url) as service, engine(nats, parties) as pawl:
            runs = await start_all(pawl, ["j-1", "j-2"])
            first, second = [await service.next(SAVE) for _ in runs]
            stray = str(UUID(int=5))
            said = [
                (done(first, {"id": 1}), "default"),
                (done(first, {"id": 2}), "default"),  # a duplicate, and it lies
                (done(second, {"id": 1}, workflow_instance_id=stray, step_id=stray), "default"),
                (done(second, {"id": 1}, step_id=stray), "default"),
                (done(second, {"id": 1}), "other"),
                ({"step_id": "?"}, "default"),
                (done(second, {"id": 3}), "default"),
            ]
            items = [
                {"subject": protocol.COMPLETED, "headers": {"X-Tenant-Id": tenant}, "body": body}
                for body, tenant in said
            ]
            await service.js.publish(MANY, json.dumps(items).encode())
            await service.js.publish(MANY, b"[]]")
            assert await results(runs) == [{"id": 1}, {"id": 3}]
            letters = await service.dead(5)
            codes = sorted(each.headers["X-Dead-Letter-Code"] for each in letters)
            assert codes == [
                *("completion.malformed", "completion.malformed", "completion.tenant"),
                *("instance.unknown", "receipt.unknown"),
            ]
            [tenant] = [each for each in letters if each.headers.get("X-Tenant-Id") == "other"]
            assert json.loads(tenant.data) == said[4][0]

    asyncio.run(story())


def test_completions_of_a_batch_are_signed_each(nats, parties, monkeypatch):
    """A worker with a key; a part that somebody changed is refused, and nothing else."""
    monkeypatch.delenv("PAWL_NATS_UNSIGNED")

    private, public = new_pair(bytes(range(32)))
    options = Nats(nats.url, executor_keys={"k": public})

    async def story():
        go = asyncio.Event()

        async def save(name):
            await go.wait()
            return {"id": name}

        worker = refdata(nats, parties, save, key=f"k:{private}")
        async with Service(nats.url) as service, engine(nats, parties, options) as pawl:
            told = await service.nc.subscribe(MANY)
            async with worker:
                runs = await start_all(pawl, ["k-1", "k-2"])
                go.set()
                assert await results(runs) == [{"id": "k-1"}, {"id": "k-2"}]
                held, _ = await gathered(told, 2)
            held[0]["body"]["result_json"] = '{"id": "forged"}'
            await service.js.publish(MANY, json.dumps(held).encode())
            [letter] = await service.dead()
            assert letter.headers["X-Dead-Letter-Code"] == "completion.signature"
            assert json.loads(letter.data) == held[0]["body"]

    asyncio.run(story())


def test_a_question_about_several_steps(nats, parties):
    """Which of these does the engine still wait for?"""

    async def story():
        async with Service(nats.url) as service, engine(nats, parties) as pawl:
            runs = await start_all(pawl, ["e-1", "e-2"])
            commands = [await service.next(SAVE) for _ in runs]
            steps = [
                {
                    "step_id": each.headers["X-Workflow-Step-Id"],
                    "workflow_instance_id": each.headers["X-Workflow-Instance-Id"],
                    "tenant_id": "default",
                }
                for each in commands
            ]
            await service.say(done(commands[0], {"id": 1}))
            await results(runs[:1])
            steps.append({"step_id": str(UUID(int=3)), "workflow_instance_id": "e-9"})
            answer = await service.ask("workflow.v1.steps.are-open", {"steps": steps})
            assert answer == {"open": [False, True, False]}
            for wrong in ({}, {"steps": [1]}, {"steps": [{}]}, {"steps": [{}] * 1_001}):
                refused = await service.ask("workflow.v1.steps.are-open", wrong)
                assert refused["error"]["code"] == "nats.request"

    asyncio.run(story())


# Packing


def letter(number, size=10):
    return Letter("a.v1.b.c", json.dumps({"n": number, "x": "y" * size}).encode(), {"H": "1"})


@pytest.mark.parametrize(
    ("letters", "bytes_max", "sizes", "large"),
    [
        ([], 1 << 20, [], []),
        ([letter(1)], 1 << 20, [1], []),
        ([letter(n) for n in range(256)], 1 << 20, [256], []),
        ([letter(n) for n in range(600)], 1 << 20, [256, 256, 88], []),
        ([letter(n, 200_000) for n in range(5)], 1 << 20, [2, 2, 1], []),
        ([letter(n, 200_000) for n in range(2)], 300_000, [1, 1], []),
        ([letter(1), letter(2, 600_000), letter(3)], 1 << 20, [2], [1]),
    ],
)
def test_batches_have_bounds(letters, bytes_max, sizes, large):
    """In number and in bytes; what is too large to share goes alone; nothing is lost or moved."""
    made = batches.packed("s", letters, bytes_max)
    assert ([int(each.headers["X-Batch-Size"]) for each in made.batches], made.large) == (
        sizes,
        large,
    )
    assert all(len(each.data) <= min(bytes_max, 512 * 1024) for each in made.batches)
    back = [part.alone for each in made.batches for part in batches.unpacked(each.data)]
    assert back == [each for at, each in enumerate(letters) if at not in large]


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b'[{"subject": "a"}]', b"\xff", b"[" * 9_999])
def test_what_is_no_batch_is_named(data):
    """Whatever comes, it is told apart from a batch."""
    with pytest.raises(ProtocolError, match="no batch"):
        batches.unpacked(data)
