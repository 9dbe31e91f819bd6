"""Three no-op durable steps by several processes that share a store, each a node of it.

python -m bench.pawl_nodes [--processes N] [--in-flight N] [--driver inline|thread] [--db URL] ...
The workflows in flight are divided among them. On a new SQLite file, or on a store that is there.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import process_time
from typing import Final

from bench.judge import FOLDER, Line
from bench.pawl_steps import CHAIN, STEPS, WARM_UP, about, keep_going
from bench.peers import together
from pawlflow.app import open_store
from pawlflow.collector import collect_seldom
from pawlflow.definition.shape import Workflow
from pawlflow.engine.places import shard_of
from pawlflow.files import load_path
from pawlflow.nodes import Node
from pawlflow.store.port import SHARDS

LOOK_S: Final = 0.02
SETTLE_S_MAX: Final = 60.0


def main(arguments: list[str]) -> int:
    """Measure once and print a line of JSON; without arguments there is nothing to do."""
    if not arguments:
        return 0
    parser = argparse.ArgumentParser(prog="bench.pawl_nodes", description=__doc__)
    parser.add_argument("mode", choices=("throughput", "node"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--driver", choices=("inline", "thread"), default="inline")
    parser.add_argument("--in-flight", type=int, default=1_000)
    parser.add_argument("--workflows", type=int, default=8_000)
    parser.add_argument("--folder", default=FOLDER, help="where a SQLite file is made")
    parser.add_argument("--db", metavar="URL", help="another store, where nothing has run yet")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "three.yaml"
        path.write_text(CHAIN)
        [[workflow]] = [each.workflows for each in load_path(path)]
        if options.mode == "node":
            asyncio.run(work(workflow, options))
            return 0
        line = measure(options.db or f"sqlite:///{folder}/pawl.db", options)
    print(json.dumps({**line, **about(options), "processes": options.processes}))
    return 0


def measure(url: str, options: argparse.Namespace) -> Line:
    """Let them come, say when, and count from then until the last is done."""
    count = options.processes
    flying, workflows = options.in_flight // count, options.workflows // count
    words = [sys.executable, "-m", "bench.pawl_nodes", "node", "--db", url]
    words += ["--driver", options.driver, "--processes", str(count)]
    words += ["--in-flight", str(flying), "--workflows", str(workflows)]
    seconds, said = together.measured(words, count)
    done = count * workflows
    check(url, count * (workflows + WARM_UP))
    spent = sum(float(each.split()[0]) for each in said)
    ends = [list(map(float, each.split()[1:])) for each in said]
    return {
        "workflows": done,
        "seconds": seconds,
        "steps_per_s": STEPS * done / seconds,
        "steady_steps_per_s": STEPS * steady(ends, flying),
        "cpu_seconds": spent,
        "cpu_ms_per_workflow": 1_000 * spent / done,
    }


def steady(ends: list[list[float]], flying: int) -> float:
    """Workflows a second while all are in flight, in every process.

    From when each has ended as many as it began with, until the first has none left to begin.
    Before and after that some of the machine is idle, as nothing is beside it with bare rows.
    """
    since = max(each[min(flying, len(each)) - 1] for each in ends)
    until = min(each[-flying - 1] if len(each) > flying else each[-1] for each in ends)
    seen = sum(since < end <= until for each in ends for end in each)
    return seen / (until - since) if until > since else 0.0


def check(url: str, expected: int) -> None:
    """A fast wrong answer is not a result: every instance completed, durably, in all shards."""
    store = open_store(url)
    heads = [head for head in store.refs() if head.cell.workflow == "three"]
    store.close()
    assert Counter(head.state for head in heads) == {"completed": expected}
    assert len({shard_of(head.cell) for head in heads}) == SHARDS


# In a process of its own


async def work(workflow: Workflow, options: argparse.Namespace) -> None:
    """One node: it comes, gets its share of the shards, and works when it is told to."""
    async with Node(options.db, driver=options.driver) as node:
        node.add(workflow)

        @node.effect("noop")
        async def noop() -> int:
            return 1

        async with asyncio.timeout(SETTLE_S_MAX):
            while len(node.held) - SHARDS // options.processes not in (0, 1):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_S)
        for _ in range(WARM_UP):
            await (await node.start(workflow)).result()
        await asyncio.to_thread(together.told, together.READY)
        collect_seldom()  # as `pawl serve` does once it is up
        spent = process_time()
        ends = await keep_going(node, workflow, options)
        said = " ".join(map(str, (process_time() - spent, *ends)))
        await asyncio.to_thread(together.told, f"{said}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
