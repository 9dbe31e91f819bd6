"""Many parked instances: memory, waking one, restart with work in flight, and an engine at rest.

python -m bench.parked [parked|restart|idle] [--instances N] [--kind gate|wait|call] [--db URL]
On a new SQLite file, or on a store that is there and where nothing has run yet.
"""

import argparse
import asyncio
import gc
import json
import resource
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import psycopg

from bench.judge import FOLDER, Line
from pawlflow.embedded import Pawl
from pawlflow.files import load_path
from pawlflow.hosting import Hosted
from pawlflow.nodes import Node

WAITING: Final = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: parked}
spec:
  steps:
    - {name: told, wait: {event: go}}
"""
SLEEPING: Final = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: parked}
spec:
  steps:
    - {name: gate, approval: {role: Lead, expires: 30d}}
"""
BUSY: Final = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: busy}
spec:
  steps:
    - {name: work, run: work}
"""
AT_ONCE: Final = 2_000
REST: Final = ("pawl rests", "pawl has rested")  # said to a server's log


def main(arguments: list[str]) -> int:
    """Measure once and print a line of JSON; without a mode there is nothing to do."""
    if not arguments:
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=("parked", "restart", "idle"))
    parser.add_argument("--instances", type=int, default=100_000)
    parser.add_argument("--kind", choices=("gate", "wait", "call"), help="what they wait for")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--node", choices=("alone", "shared"), default="alone", help="of idle")
    parser.add_argument("--folder", default=FOLDER, help="where a SQLite file is made")
    parser.add_argument("--db", metavar="URL", help="another store, where nothing has run yet")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        options.url = options.db or f"sqlite:///{folder}/pawl.db"
        line = asyncio.run(MODES[options.mode](options, Path(folder)))
    print(json.dumps({"engine": "pawl", "mode": options.mode, **line}))
    return 0


def workflow_in(folder: Path, text: str) -> Any:
    """The workflow of a text."""
    (folder / "w.yaml").write_text(text)
    [[workflow]] = [each.workflows for each in load_path(folder / "w.yaml")]
    return workflow


async def start_many(pawl: Hosted, workflow: Any, count: int) -> None:
    """Start so many, a few thousand at a time."""
    left = count

    async def keep_starting() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await pawl.start(workflow, id=f"p-{left}")

    await asyncio.gather(*(keep_starting() for _ in range(AT_ONCE)))


def resident_mb() -> float:
    """Megabytes of this process in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def parked(options: argparse.Namespace, folder: Path) -> Line:
    """Park instances, see what they cost in memory, and wake some."""
    workflow = workflow_in(folder, WAITING if options.kind == "wait" else SLEEPING)
    async with Pawl(options.url) as pawl:
        await start_many(pawl, workflow, 10_000)
        gc.collect()
        before = resident_mb()
        began = perf_counter()
        await start_many(pawl, workflow, options.instances)
        seconds = perf_counter() - began
        gc.collect()
        grown = resident_mb() - before
        took = []
        for number in range(0, options.instances, max(1, options.instances // 50)):
            asked = perf_counter()
            if options.kind == "wait":
                await pawl.signal(f"p-{number}", "go", {})
            else:
                await pawl.approve(f"p-{number}", "gate", by="ann", role="Lead")
            await pawl.run(f"p-{number}").result()
            took.append(1_000 * (perf_counter() - asked))
    return {
        "instances": options.instances,
        "grown_mb": grown,
        "starts_per_s": options.instances / seconds,
        "wake_p50_ms": median(took),
        "wake_best_ms": min(took),
    }


async def restart(options: argparse.Namespace, folder: Path) -> Line:
    """Leave with work in flight, come back, and see how soon something new is durable."""
    texts = {"gate": SLEEPING, "wait": WAITING, "call": BUSY}
    workflow = workflow_in(folder, texts[options.kind or "call"])
    held = asyncio.Event()

    async def work() -> None:
        await held.wait()

    async with Pawl(options.url, concurrency=100) as pawl:
        pawl.effect("work")(work)
        began = perf_counter()
        async for started in pawl.starting(
            workflow, ((f"p-{n}", None) for n in range(options.instances))
        ):
            assert started.error is None, started.error
        starts_per_s = options.instances / (perf_counter() - began)
    gc.collect()
    began = perf_counter()
    async with Pawl(options.url, concurrency=100) as again:
        again.effect("work")(work)
        await again.start(workflow, id="new")
        first = perf_counter() - began
        core = again.driver.engine.core
        while core.recover_after is not None or core.recovering or core.silent:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        offered = perf_counter() - began
    return {
        "instances": options.instances,
        "kind": options.kind or "call",
        "starts_per_s": starts_per_s,
        "first_commit_s": first,
        "all_offered_s": offered,
    }


async def idle(options: argparse.Namespace, folder: Path) -> Line:
    """Count the statements of an engine that has nothing to do."""
    workflow = workflow_in(folder, WAITING)
    made = Node(options.url) if options.node == "shared" else Pawl(options.url)
    async with made as pawl:
        await start_many(pawl, workflow, 100)
        await asyncio.sleep(0.2)
        statements: list[str] = []

        def seen(_: Any, sql: str, __: Any) -> bool:
            statements.append(sql)
            return True

        if options.db:
            await rest_between_marks(options)
            return {"seconds": options.seconds, "kind": options.node}
        pawl.store._db.exec_trace = seen  # noqa: SLF001
        await asyncio.sleep(options.seconds)
    return {"seconds": options.seconds, "statements": len(statements)}


async def rest_between_marks(options: argparse.Namespace) -> None:
    """A server counts for itself: between two marks in its log."""
    with psycopg.connect(options.db.partition("?")[0], autocommit=True) as db:
        db.execute("SET log_statement = 'all'")
        db.execute(f"SELECT '{REST[0]}'")
        await asyncio.sleep(options.seconds)
        db.execute(f"SELECT '{REST[1]}'")


MODES: Final = {"parked": parked, "restart": restart, "idle": idle}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
