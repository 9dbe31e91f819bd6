"""The program that is killed: it runs workflows on a file, and says what was acknowledged to it.

`python -m tests.crash.child SPEC` is one process. Without a spec it reads specs from its input and
forks a process for each: what is killed is real, and the imports are paid for once.
"""

import asyncio
import os
import secrets
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

import apsw
import msgspec

from pawlflow.effects.context import Context, Terminal, Transient
from pawlflow.embedded import Pawl, Run
from pawlflow.engine import shard
from pawlflow.engine.shard import Limits
from pawlflow.store import sqlite, sqlite_schema
from pawlflow.store.port import StoreError
from pawlflow.trouble import PawlError, Refused, WorkflowFailed
from tests.crash import points
from tests.crash.stores import FLOWS

ROOM_S = 0.005  # before a start is tried again, where there was no room
STARTS = {
    "chain-1": ("chain", {"n": 1}),
    "chain-2": ("chain", {"n": 10}),
    "fan-1": ("fan", {}),
    "saga-1": ("saga", {}),
    "retry-1": ("retry", {}),
    "gate-1": ("gate", {}),
    "nap-1": ("nap", {}),
    "word-1": ("word", {}),
}


class Spec(msgspec.Struct):
    """What one process is to do."""

    path: str
    driver: str = "inline"
    label: str = ""
    passages: int = 0
    turns: int = 500  # in one commit, at most
    pages: int = 10_000  # of the log, between two checkpoints
    counting: int = 0  # so many instances wait for ticks from outside
    power: bool = False  # keep what would survive a cut of the power
    fault: points.Fault | None = None  # of the disk
    hanging: int = 40  # seconds, then the process is taken for stuck: an alarm ends it
    lie: str = ""  # what this process does wrong, to see that it is caught
    url: str = ""  # of a store on a server; else it is the file

    @property
    def ledger(self) -> Path:
        """Where the world keeps what was done to it."""
        return Path(self.path + ".ledger")


def say(*words: object) -> None:
    """One line for the parent, whole or not at all."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())
    points.SAID.add(str(words[0]))


class Ledger:
    """The outside world, which keeps the idempotency contract: a key done once stays done.

    Every execution is one line. Nothing is flushed: what was written survives the process.
    """

    def __init__(self, path: Path, *, forgets: bool = False) -> None:
        self.forgets = forgets
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self.done = {line["key"]: line["result"] for line in read_ledger(path)}

    def once(self, ctx: Context, n: Any) -> dict[str, Any]:
        """Do it, or say what came of it when it was done."""
        if ctx.key not in self.done or self.forgets:
            result = {"n": n, "token": secrets.token_hex(4)}
            place = {"instance": ctx.instance, "step": ctx.step, "undo": ctx.undo}
            line = {"key": ctx.key, "attempt": ctx.attempt, **place, "result": result}
            os.write(self.fd, msgspec.json.encode(line) + b"\n")
            self.done[ctx.key] = result
        for fuse in points.EFFECTS:
            fuse.pass_by()
        return self.done[ctx.key]


def read_ledger(path: Path) -> list[dict[str, Any]]:
    """Every execution there was."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line) for line in lines]


def register(pawl: Pawl, ledger: Ledger) -> None:
    """The effects of the workflows."""

    @pawl.effect("work")
    async def work(n: Any, ctx: Context) -> dict[str, Any]:
        return ledger.once(ctx, n)

    @pawl.effect("work.thread")
    def work_in_thread(n: Any, ctx: Context) -> dict[str, Any]:
        return ledger.once(ctx, n)

    @pawl.effect("broken")
    async def broken() -> None:
        raise Terminal("it is broken")

    @pawl.effect("flaky")
    async def flaky(n: Any, ctx: Context) -> dict[str, Any]:
        if ctx.attempt == 1:
            raise Transient("not yet")
        return ledger.once(ctx, n)


async def lived(spec: Spec) -> bool:
    """Live, unless another process owns the file for a moment. Trouble is told by its code."""
    codes: list[str] = []
    try:
        await live(spec)
    except* (PawlError, StoreError) as group:
        codes += sorted({error.code for error in leaves(group)})
    except* apsw.Error as group:  # of our disk, while the store is being closed
        codes += ["closing", *(type(error).__name__ for error in leaves(group))]
    if codes and codes != ["store.owned"]:
        say("trouble", *codes)
    return codes != ["store.owned"]


def leaves(group: BaseExceptionGroup[Any]) -> list[Any]:
    """The errors of a group, and of the groups in it."""
    nested = [leaves(e) if isinstance(e, BaseExceptionGroup) else [e] for e in group.exceptions]
    return [error for errors in nested for error in errors]


async def live(spec: Spec) -> None:
    """Start everything, again and again the same; tend to it until it is closed."""
    limits = Limits(turns=spec.turns)
    url = spec.url or f"sqlite:///{spec.path}"
    pawl = Pawl(url, driver=spec.driver, limits=limits)  # type: ignore[arg-type]
    register(pawl, Ledger(spec.ledger, forgets=spec.lie == "the world forgets"))
    pawl.load(FLOWS)
    starts = dict(STARTS)
    for n in range(spec.counting):
        starts[f"count-{n}"] = ("count", {})
    async with pawl:
        say("open")
        early = list(starts.items())[:3]
        runs = await asyncio.gather(*(start(pawl, key, *what) for key, what in early))
        runs += [await start(pawl, key, *what) for key, what in list(starts.items())[3:]]
        async with asyncio.TaskGroup() as group:
            group.create_task(approve(pawl, pawl.run("gate-1")))
            group.create_task(give_word(pawl, pawl.run("word-1")))
            for run in runs[: len(STARTS)]:
                group.create_task(finish(run))
        say("idle")
        for run in runs[len(STARTS) :]:
            await finish(run)
    say("end")


async def start(pawl: Pawl, key: str, workflow: str, given: Any) -> Run:
    """Start an instance, or find it started. If there is no room, there may be soon."""
    while True:
        try:
            run = await pawl.start(workflow, given, id=key)
        except Refused as error:
            if error.code != "store.full":
                raise
            say("full", key)
            await asyncio.sleep(ROOM_S)
        else:
            say("started", key)
            return run


async def finish(run: Run) -> None:
    """Wait for the end."""
    try:
        await run.result()
    except WorkflowFailed:
        say("closed", run.id, "failed")
    else:
        say("closed", run.id, "completed")


async def approve(pawl: Pawl, run: Run) -> None:
    """Agree to the gate once it asks; it may have been agreed to before the last crash."""
    async for told in run.events():
        if told["eventType"] == "ApprovalRequested":
            try:
                await pawl.approve(run.id, "sign-off", by="zoe", role="editor")
            except PawlError as error:
                say("refused", error.code)
            return


async def give_word(pawl: Pawl, run: Run) -> None:
    """Say the word, unless it was said before the last crash."""
    if not any(told["eventType"] == "SignalReceived" for told in run.history()):
        await pawl.signal(run.id, "word", {"n": 7})
        say("signalled", run.id)


def run_spec(spec: Spec) -> NoReturn:
    """Be one process, from beginning to end."""
    say("pid", os.getpid())
    signal.alarm(spec.hanging)
    sqlite_schema.CHECKPOINT_PAGES = spec.pages  # type: ignore[misc]
    try:
        if spec.label:
            points.arm(spec.label, spec.passages)
        if spec.fault is not None:
            shard.FULL_RETRY_MS = 10  # type: ignore[misc]  # a full disk makes room soon
            points.break_disk(spec.fault, say)
        points.mount(power=spec.power)
        lie(spec.lie)
        while not asyncio.run(lived(spec)):
            os.sched_yield()
    except BaseException:  # noqa: BLE001  # the parent must see it
        traceback.print_exc()
        os._exit(70)
    os._exit(0)


def lie(about: str) -> None:
    """Do something wrong: who looks at this process must notice."""
    if about == "nothing is written":
        sqlite.write_batch = lambda _db, _batch: None
    if about == "nothing is flushed":
        points.after(
            sqlite.SqliteStore, "__init__", lambda store, *_: store._db.pragma("synchronous", 1)
        )


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
    if len(sys.argv) > 1:
        run_spec(msgspec.json.decode(sys.argv[1], type=Spec))
    serve()
