"""The engine that is killed: it runs one instance over services, and dies at a point of its way.

`python -m tests.examples.child` reads specs and forks a process for each: what is killed is real,
and the imports are paid for once. Nothing in the engine knows of the points; they are hung in here.
"""

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from examples.ores.stage import ROOT
from pawlflow import Pawl, WorkflowFailed
from pawlflow.bus.nats import NatsBus, NatsMessage
from pawlflow.driving import InlineDriver
from pawlflow.engine.drivers import Engine
from pawlflow.engine.shard import Shards
from pawlflow.store.port import Batch
from pawlflow.store.postgres import PostgresStore
from tests.crash.points import Fuse, after, before

FLOWS = sorted((ROOT / "examples" / "ores" / "flows").glob("*.yaml"))


class Spec(msgspec.Struct):
    """What one process is to do."""

    database: str
    nats: str
    workflow: str
    given: Any
    id: str
    label: str = ""
    passages: int = 0
    hanging: int = 50  # seconds, then the process is taken for stuck: an alarm ends it


def say(*words: object) -> None:
    """One line for the parent, whole or not at all."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def after_async(owner: Any, name: str, then: Callable[..., object]) -> None:
    """Do something once a coroutine is done."""
    original = getattr(owner, name)

    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = await original(*args, **kwargs)
        then(*args)
        return result

    setattr(owner, name, wrapped)


def at_turns(hang: Callable[[Any, str, Callable[..., object]], None], fuse: Fuse) -> None:
    """Pass by with turns alone: a duplicate that is refused is committed, too, as a refusal."""

    def passing(_: PostgresStore, batch: Batch) -> None:
        if any(entry.number for frame in batch.frames for entry in frame.entries):
            fuse.pass_by()

    hang(PostgresStore, "append", passing)


# From what is heard to what is answered, as tests/crash has them for a file.
LABELS: dict[str, Callable[[Fuse], None]] = {
    "P0 receive": lambda fuse: before(Shards, "submit", fuse.pass_by),
    "P1 stepped": lambda fuse: before(Engine, "append", fuse.pass_by),
    "P6 committed": lambda fuse: after(PostgresStore, "append", fuse.pass_by),
    "turn stepped": lambda fuse: at_turns(before, fuse),
    "turn committed": lambda fuse: at_turns(after, fuse),
    "P7 publishing": lambda fuse: before(NatsBus, "publish", fuse.pass_by),
    "P7 published": lambda fuse: after_async(NatsBus, "publish", fuse.pass_by),
    "P8 acknowledging": lambda fuse: before(NatsMessage, "ack", fuse.pass_by),
    "P9 answering": lambda fuse: before(InlineDriver, "answer", fuse.pass_by),
    "P9 answered": lambda fuse: after(InlineDriver, "answer", fuse.pass_by),
}


class Life(Fuse):
    """Counts passages from the start of the instance on; dies at one of them, or at none."""

    def __init__(self, passages: int = 0) -> None:
        super().__init__(passages)
        self.begun = False
        self.passed = 0

    def pass_by(self, *_: object) -> None:
        """One passage; those of an engine that is opened do not count."""
        if self.begun:
            self.passed += 1
            super().pass_by()


async def live(spec: Spec) -> None:
    """Start the instance, or find it started, and wait for its end."""
    fuses = {spec.label: Life(spec.passages)} if spec.label else {each: Life() for each in LABELS}
    for label, fuse in fuses.items():
        LABELS[label](fuse)
    pawl = Pawl(spec.database, driver="thread", nats=spec.nats)
    pawl.load(*FLOWS)
    async with pawl:
        for fuse in fuses.values():
            fuse.begun = True
        run = await pawl.start(spec.workflow, spec.given, id=spec.id)
        say("started")
        async for told in run.events():
            if told["eventType"] == "WorkflowStepWaiting":
                say("waiting")
        try:
            await run.result()
        except WorkflowFailed as failed:
            say("closed failed", failed.rollback)
        else:
            say("closed completed")
        for label, fuse in fuses.items():
            say("passed", fuse.passed, label)


def run_spec(spec: Spec) -> NoReturn:
    """Be one process, from beginning to end."""
    say("pid", os.getpid())
    signal.alarm(spec.hanging)
    try:
        asyncio.run(live(spec))
    except BaseException:  # noqa: BLE001  # the parent must see it
        traceback.print_exc()
        os._exit(70)
    os._exit(0)


def serve() -> None:
    """Fork a process for each spec, and tell how it ended: minus the signal that killed it."""
    for line in sys.stdin:
        spec = msgspec.json.decode(line, type=Spec)
        pid = os.fork()
        if pid == 0:
            run_spec(spec)
        _, status = os.waitpid(pid, 0)
        say("exit", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    serve()
