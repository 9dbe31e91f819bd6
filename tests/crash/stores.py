"""Small stores that hold one of everything: for proofs, tamperings and flipped bits."""

import asyncio
from pathlib import Path
from typing import Any
from unittest import mock

import apsw

from pawlflow.effects.context import Terminal, Transient
from pawlflow.embedded import Pawl, Run
from pawlflow.engine import stepping
from pawlflow.kernel.step import step
from pawlflow.model.inputs import Signal
from pawlflow.store.memory import MemoryStore
from pawlflow.store.port import Store
from pawlflow.trouble import PawlError, WorkflowFailed

FLOWS = Path(__file__).parent / "flows.yaml"
LARGE = "x" * 70_000  # above 64 KiB a payload is a blob


def step_or_raise(cell: Any, incoming: Any, *rest: Any) -> Any:
    """The kernel, but for one word that it cannot bear."""
    if isinstance(incoming, Signal) and incoming.event == "poison":
        raise ZeroDivisionError("poison")
    return step(cell, incoming, *rest)


def register(pawl: Pawl) -> None:
    """Effects without a trace."""
    forever = asyncio.Event()

    async def work(n: Any) -> dict[str, Any]:
        return {"n": n}

    async def broken() -> None:
        raise Terminal("it is broken")

    async def flaky(n: int, ctx: Any) -> dict[str, int]:
        if ctx.attempt == 1:
            raise Transient("not yet")
        return {"n": n}

    async def endless() -> None:
        await forever.wait()

    for name, fn in {"work": work, "broken": broken, "flaky": flaky, "endless": endless}.items():
        pawl.effect(name)(fn)
    pawl.effect("work.thread")(lambda n: {"n": n})


async def fill(pawl: Pawl, *, full: bool) -> None:
    """Run one instance of everything; leave some open, one refused, one put aside."""
    register(pawl)
    pawl.load(FLOWS)
    async with pawl:
        done = [
            await pawl.start("chain", {"n": 1}, id="chain-1"),
            await pawl.start("saga", {}, id="saga-1"),
        ]
        await pawl.start("gate", {}, id="gate-1")
        if full:
            await fill_more(pawl)
            done.append(pawl.run("fan-1"))
            done.append(pawl.run("retry-1"))
        for run in done:
            await ended(run)
        async for told in pawl.run("gate-1").events():
            if told["eventType"] == "ApprovalRequested":
                break


async def ended(run: Run) -> None:
    """Wait for the end, whatever it is."""
    try:
        await run.result(timeout=30)
    except WorkflowFailed:
        return


async def fill_more(pawl: Pawl) -> None:
    """What a small store need not have."""
    await pawl.start("fan", {"text": LARGE}, id="fan-1")
    await pawl.start("retry", {}, id="retry-1")
    await pawl.start("stuck", {}, id="stuck-1")
    await pawl.start("count", {}, id="count-1")
    for n in range(30):  # so many bytes that its state is kept
        await pawl.signal("count-1", "note", {"n": n, "text": "y" * 4_000})
    await pawl.start("word", {}, id="word-1")
    for wrong in ("sign-off", "nowhere"):
        try:
            await pawl.approve("gate-1", wrong, by="zoe", role="nobody")
        except PawlError:
            continue
    with mock.patch.object(stepping, "step", step_or_raise):
        try:
            await pawl.signal("word-1", "poison")
        except PawlError:
            return


def memory_store() -> Store:
    """A full store in memory."""
    pawl = Pawl("memory:")
    shared: list[Any] = []

    async def run() -> None:
        task = asyncio.ensure_future(fill(pawl, full=True))
        await asyncio.sleep(0)
        assert isinstance(pawl.store, MemoryStore)
        shared.append(pawl.store.shared)
        await task

    asyncio.run(run())
    return MemoryStore(shared[0])


def sqlite_file(path: Path, *, full: bool = True) -> Path:
    """A store in a file, checkpointed: there is no log beside it."""
    asyncio.run(fill(Pawl(f"sqlite:///{path}"), full=full))
    db = apsw.Connection(str(path))
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    db.close()
    assert not path.with_name(path.name + "-wal").exists()
    return path
