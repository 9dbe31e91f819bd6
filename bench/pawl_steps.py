"""Three no-op durable steps by Pawl: the counterpart of peers/dbos_steps.py.

python -m bench.pawl_steps {throughput,latency,join} [--driver inline|thread] [--in-flight N] ...
On a new SQLite file in WAL mode with synchronous=FULL; with --db URL on a store that is there.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any, Final

import apsw

from bench.judge import FOLDER, Line
from pawlflow.collector import collect_seldom
from pawlflow.embedded import Pawl
from pawlflow.files import load_path
from pawlflow.hosting import Hosted

STEPS: Final = 3
WARM_UP: Final = 20
SQLITE: Final = {"journal_mode": "wal", "synchronous": "full", "sqlite": apsw.sqlite_lib_version()}
CHAIN: Final = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: three}
spec:
  steps:
    - {name: one, run: noop}
    - {name: two, run: noop, dependsOn: [one]}
    - {name: three, run: noop, dependsOn: [two]}
"""


def main(arguments: list[str]) -> int:
    """Measure once and print a line of JSON; without a mode there is nothing to do."""
    if not arguments:
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=("throughput", "latency", "join"))
    parser.add_argument("--driver", choices=("inline", "thread"), default="inline")
    parser.add_argument("--in-flight", type=int, default=1_000)
    parser.add_argument("--workflows", type=int, default=8_000)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--folder", default=FOLDER, help="where a SQLite file is made")
    parser.add_argument("--db", metavar="URL", help="another store, where nothing has run yet")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        line = asyncio.run(measure(options, Path(folder)))
    print(json.dumps({**line, **about(options)}))
    return 0


def about(options: argparse.Namespace) -> Line:
    """The circumstances of a run."""
    return {
        "engine": "pawl",
        "mode": options.mode,
        "driver": options.driver,
        "in_flight": options.in_flight,
        **({} if options.db else SQLITE),
    }


async def measure(options: argparse.Namespace, folder: Path) -> Line:
    """Run the workload on a new file."""
    definition = folder / "three.yaml"
    definition.write_text(CHAIN if options.mode != "join" else fan(options.width))
    [[workflow]] = [each.workflows for each in load_path(definition)]
    url = options.db or f"sqlite:///{folder}/pawl.db"
    async with Pawl(url, driver=options.driver) as pawl:
        pawl.add(workflow)

        @pawl.effect("noop")
        async def noop() -> int:
            return 1

        for _ in range(WARM_UP):
            await (await pawl.start(workflow)).result()
        if options.mode == "throughput":
            return await throughput(pawl, workflow, options)
        return await latency(pawl, workflow, options)


def fan(width: int) -> str:
    """A workflow of parallel steps and one that joins them."""
    names = [f"s{i}" for i in range(width)]
    steps = "\n".join(f"    - {{name: {name}, run: noop}}" for name in names)
    join = f"    - {{name: join, run: noop, dependsOn: [{', '.join(names)}]}}"
    return CHAIN.split("    - ", 1)[0] + steps + "\n" + join + "\n"


async def throughput(pawl: Pawl, workflow: Any, options: argparse.Namespace) -> Line:
    """So many in flight, from the first start to the last result."""
    collect_seldom()  # as `pawl serve` does once it is up
    began, spent = perf_counter(), process_time()
    await keep_going(pawl, workflow, options)
    seconds, cpu = perf_counter() - began, process_time() - spent
    check(pawl, options.workflows + WARM_UP)
    return {
        "workflows": options.workflows,
        "seconds": seconds,
        "steps_per_s": STEPS * options.workflows / seconds,
        "cpu_seconds": cpu,
        "cpu_ms_per_workflow": 1_000 * cpu / options.workflows,
    }


async def keep_going(pawl: Hosted, workflow: Any, options: argparse.Namespace) -> list[float]:
    """So many in flight, each replaced when it is done; gives when each of them was."""
    left = options.workflows
    ends: list[float] = []

    async def keep_one_going() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await (await pawl.start(workflow)).result()
            ends.append(perf_counter())

    await asyncio.gather(*(keep_one_going() for _ in range(options.in_flight)))
    return ends


async def latency(pawl: Pawl, workflow: Any, options: argparse.Namespace) -> Line:
    """One at a time, from start to result."""
    count = min(options.workflows, 400 if options.mode == "latency" else 60)
    took = []
    for _ in range(count):
        began = perf_counter()
        await (await pawl.start(workflow)).result()
        took.append(1_000 * (perf_counter() - began))
    check(pawl, count + WARM_UP)
    cuts = quantiles(took, n=100)
    return {"p50_ms": median(took), "p99_ms": cuts[98], "best_ms": min(took), "runs": count}


def check(pawl: Pawl, expected: int) -> None:
    """A fast wrong answer is not a result: every instance completed, durably."""
    states = Counter(h.state for h in pawl.reader.refs() if h.cell.workflow == "three")
    assert states == {"completed": expected}, states


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
