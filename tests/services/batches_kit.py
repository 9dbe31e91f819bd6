"""An engine and a worker that speak in batches, and somebody who listens to them."""

import json
from contextlib import asynccontextmanager

from pawlflow import Pawl
from pawlflow.worker import Worker

SAVE = "refdata.v1.party.save"
BATCH = "workflow.v1.batches.refdata"
MANY = "workflow.v1.events.steps-completed"
ONE = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: one}
spec:
  steps:
    - name: party
      run: refdata.v1.party.save
      retryPolicy: {maxRetries: 3, initialDelay: 10ms}
      with: {name: "${ input.name }"}
  output: {party: "${ steps.party }"}
"""


def engine(nats, flows, options=None):
    pawl = Pawl(f"sqlite:///{flows / 'pawl.db'}", nats=options or nats.url)
    pawl.load(flows / "provision.yaml")
    pawl.load(flows / "one.yaml")
    return pawl


def refdata(nats, flows, save, **more):
    worker = Worker(nats.url, "refdata", memory=f"sqlite:///{flows / 'refdata.db'}", **more)
    worker.command(SAVE)(save)
    return worker


def enclosed(message):
    """What is in a batch, read by the page alone."""
    parts = json.loads(message.data)
    assert int(message.headers["X-Batch-Size"]) == len(parts)
    return parts


async def gathered(sub, count):
    """So many parts of batches, and in how many messages they came."""
    parts, messages = [], 0
    while len(parts) < count:
        parts += enclosed(await sub.next_msg(timeout=30))
        messages += 1
    return parts, messages


async def start_all(pawl, names, workflow="one"):
    """Instances named after their input, in one commit or a few."""
    runs = await pawl.start_many(workflow, [(name, {"name": name}) for name in names])
    assert [run.error for run in runs] == [None] * len(names)
    return [pawl.run(name) for name in names]


async def results(runs):
    return [(await run.result("20s"))["party"] for run in runs]


@asynccontextmanager
async def silent_taker(service):
    """Somebody who takes batches and does nothing: a worker at its last breath."""
    await service.js.add_stream(
        name="PAWL_BATCHES",
        subjects=["workflow.v1.batches.*"],
        retention="workqueue",
        max_age=86_400,
        duplicate_window=120,
        discard="old",
    )
    sub = await service.nc.subscribe("silent", queue="refdata")
    await service.js.add_consumer(
        "PAWL_BATCHES",
        durable_name="refdata",
        deliver_subject="silent",
        deliver_group="refdata",
        ack_policy="explicit",
        filter_subject=BATCH,
        metadata={"pawl-commands": SAVE},
    )
    yield sub
