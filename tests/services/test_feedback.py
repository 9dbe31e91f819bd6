"""Corrections over NATS: what one attempt was refused for is told to the next."""

import asyncio
import json

import pytest

from pawlflow import Pawl
from pawlflow.services import protocol
from pawlflow.worker import Correctable, Worker
from tests.services.batches_kit import BATCH, SAVE, enclosed
from tests.services.kit import Service, done

pytestmark = [pytest.mark.req("R191"), pytest.mark.req("R103")]
CORRECTED = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: corrected}
spec:
  steps:
    - name: party
      run: refdata.v1.party.save
      maxCorrectionAttempts: 1
      with: {name: "${ input.name }"}
  output: "${ steps.party }"
"""
FINDINGS = ["too small", {"path": "name", "message": "kein Ümlaut\nbitte"}]


@pytest.fixture
def flow(parties):
    path = parties / "corrected.yaml"
    path.write_text(CORRECTED)
    return path


def engine(nats, flow):
    pawl = Pawl(f"sqlite:///{flow.parent / 'pawl.db'}", nats=nats.url)
    pawl.load(flow)
    return pawl


@pytest.mark.parametrize("batched", [False, True])
def test_a_worker_is_told_what_to_correct(nats, flow, batched):
    """The findings come back as `ctx.feedback`; a first attempt has none, and no header."""

    async def story():
        seen = []
        memory = f"sqlite:///{flow.parent / 'refdata.db'}"
        worker = Worker(nats.url, "refdata", memory=memory, batches=batched)

        @worker.command(SAVE)
        async def save(name, ctx):
            seen.append((ctx.attempt, ctx.feedback))
            if not ctx.feedback:
                raise Correctable(FINDINGS)
            return name

        async with Service(nats.url) as service:
            batches = await service.nc.subscribe(BATCH)
            await service.nc.flush()
            async with worker, engine(nats, flow) as pawl:
                run = await pawl.start("corrected", {"name": "Ada"}, id="c-1")
                assert await run.result("20s") == "Ada"
                assert seen == [(1, []), (2, FINDINGS)]
                if batched:
                    sent = [enclosed(await batches.next_msg(timeout=30))[0] for _ in range(2)]
                    headers = [each["headers"] for each in sent]
                else:
                    headers = [(await service.next(SAVE)).headers for _ in range(2)]
                assert "X-Workflow-Feedback" not in headers[0]
                assert json.loads(headers[1]["X-Workflow-Feedback"]) == FINDINGS

    asyncio.run(story())


def test_a_service_says_what_to_correct(nats, flow):
    """By the page alone: `findings` in a completion, the header in the next command."""

    async def story():
        async with Service(nats.url) as service, engine(nats, flow) as pawl:
            run = await pawl.start("corrected", {"name": "Ada"}, id="c-2")
            first = await service.next(SAVE)
            failed = {"success": False, "result_json": None, "failure_class": "validation"}
            await service.say(done(first, **failed, error_message="no", findings=FINDINGS))
            second = await service.next(SAVE)
            assert second.headers["X-Workflow-Attempt"] == "2"
            assert json.loads(second.headers["X-Workflow-Feedback"]) == FINDINGS
            await service.say(done(second, "Ada"))
            assert await run.result("20s") == "Ada"
            assert run.show()["steps"]["party"]["ladder"][0]["findings"] == FINDINGS

    asyncio.run(story())


@pytest.mark.parametrize(
    ("findings", "count"),
    [
        (["a", {"b": [1]}], 2),
        (["x" * 40_000, "y" * 40_000], 1),
        (["é" * 4_000, "last", "never" * 9_000], 2),
        (["𝄞" * 80_000], 1),
        ([{"long": "z" * 80_000}], 1),
    ],
)
def test_feedback_has_a_bound(findings, count):
    """As many findings as fit, and rather the beginning of one than none."""
    told = protocol.feedback_told(findings)
    assert told.isascii()
    assert len(told) <= protocol.FEEDBACK_MAX
    read = protocol.feedback_in({protocol.FEEDBACK: told})
    assert len(read) == count
    cut = len(json.dumps(findings[0])) > protocol.FEEDBACK_MAX
    whole = findings[0] if isinstance(findings[0], str) else json.dumps(findings[0])
    assert whole.startswith(read[0]) if cut else list(read) == findings[:count]


@pytest.mark.parametrize("header", ["", "{}", "[", '"a"'])
def test_feedback_that_is_none_is_left_out(header):
    assert protocol.feedback_in({protocol.FEEDBACK: header}) == ()
