"""The loop that is killed: it runs on a file, and the world outside counts what it does.

`python -m tests.crash.loop_child` reads specs from its input and forks a process for each.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from pawlflow import LoopContext, Pawl, Retry, loop
from pawlflow.model.checkpoints import LOOP
from pawlflow.store import sqlite
from tests.crash.points import Fuse, after, before

LABELS = ("before it runs", "after it ran", "before the commit", "after the commit")
PLACES: dict[str, list[Fuse]] = {label: [] for label in LABELS}


class Spec(msgspec.Struct):
    """What one process is to do."""

    path: str
    driver: str = "inline"
    label: str = ""
    passages: int = 0
    newer: bool = False  # run the code as it is after an edit: another order


def pass_by(label: str) -> None:
    """A place where the process may end."""
    for fuse in PLACES[label]:
        fuse.pass_by()


class World:
    """Outside: a file with one line for every time a function ran."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path + ".world", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def does(self, name: str, result: Any) -> Any:
        """Run, and be seen."""
        pass_by("before it runs")
        os.write(self.fd, f"{name}\n".encode())
        pass_by("after it ran")
        return result


def loop_of(world: World, *, newer: bool) -> Any:
    """The loop, as it was first written, or as it is after an edit."""

    @loop(retry=Retry(max=1), strict=True)
    async def research(ctx: LoopContext, topic: str) -> dict[str, Any]:
        async def plan() -> Any:
            return world.does("plan", (topic, 1))

        async def sides() -> Any:
            return await ctx.all(
                ctx.do("left", world.does, "left", "l"), ctx.do("right", world.does, "right", "r")
            )

        both = await sides() if newer else None
        parts = await ctx.do("plan", plan)
        found = []
        for n in (2, 1) if newer else (1, 2):
            with ctx.scope(f"round-{n}"):
                found.append(await ctx.do("search", world.does, f"search-{n}", [n, *parts]))
        both = both or await sides()
        return {"found": sorted(found), "both": [*both]}

    return research


async def live(spec: Spec) -> None:
    """Start the loop, or find it started, and wait for its end."""
    made = loop_of(World(spec.path), newer=spec.newer)
    async with Pawl(f"sqlite:///{spec.path}", driver=spec.driver) as pawl:  # type: ignore[arg-type]
        started = await pawl.start(made, {"topic": "tides"}, id="r-1")
        result = await started.result(timeout="30s")
    os.write(1, b"result " + msgspec.json.encode(result) + b"\n")


def arm(spec: Spec) -> None:
    """Die at the nth passage of a label."""
    if spec.label:
        PLACES[spec.label].append(Fuse(spec.passages))

    def seen(label: str) -> Any:
        def look(_: Any, batch: Any) -> None:
            for head in batch.heads:
                if head.cell.workflow == LOOP:
                    pass_by(label)

        return look

    before(sqlite.SqliteStore, "append", seen("before the commit"))
    after(sqlite.SqliteStore, "append", seen("after the commit"))


def run_spec(spec: Spec) -> NoReturn:
    """Be one process, from beginning to end."""
    signal.alarm(40)
    arm(spec)
    try:
        asyncio.run(live(spec))
    except BaseException as error:  # noqa: BLE001  # the parent must see it
        os.write(1, f"trouble {error!r}\n".encode())
        os._exit(70)
    os._exit(0)


def ran(path: Path) -> list[str]:
    """Every time a function ran, in order."""
    world = Path(f"{path}.world")
    return world.read_text().splitlines() if world.exists() else []


def serve() -> None:
    """Fork a process for each spec, and tell how it ended: minus the signal that killed it."""
    for line in sys.stdin:
        spec = msgspec.json.decode(line, type=Spec)
        pid = os.fork()
        if pid == 0:
            run_spec(spec)
        _, status = os.waitpid(pid, 0)
        os.write(1, f"exit {os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    serve()
