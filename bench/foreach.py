"""A forEach over many items on SQLite: items a second, CPU per item, memory, and reading it again.

python -m bench.foreach [--items N] [--limit N] [--driver inline|thread] [--undo] [--gate]
"""

import argparse
import asyncio
import json
import resource
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final

from bench.judge import FOLDER, Line
from pawlflow.collector import collect_seldom
from pawlflow.embedded import Pawl

RATE_MIN: Final = 8_000  # items a second, on a calm machine
RATIO_MAX: Final = 1.3  # CPU of an item among all, over that of an item among a tenth of them
ITEM_BYTES_MAX: Final = 2_500  # of growth per item: its state, its journal in caches, its result
FAN: Final = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: fan}
spec:
  steps:
    - {name: each, run: noop, forEach: input.items, limit: LIMIT, with: {n: "${ item }"}UNDO}
    - {name: all, run: count, dependsOn: [each], with: {n: "${ size(steps.each) }"}}
  output: "${ steps.all }"
"""


def main(arguments: list[str]) -> int:
    """Measure once and print a line of JSON; with --gate, exit 1 if a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--limit", type=int, default=1_000)
    parser.add_argument("--driver", choices=("inline", "thread"), default="inline")
    parser.add_argument("--undo", action="store_true")
    parser.add_argument("--gate", action="store_true")
    parser.add_argument("--folder", default=FOLDER)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        line = asyncio.run(measure(options, Path(folder)))
    print(json.dumps({"engine": "pawl", "mode": "foreach", **line}))
    kept = (
        line["items_per_s"] >= RATE_MIN
        and line["cpu_ratio_to_a_tenth"] <= RATIO_MAX
        and line["bytes_per_item"] <= ITEM_BYTES_MAX
    )
    return 1 if options.gate and not kept else 0


async def measure(options: argparse.Namespace, folder: Path) -> Line:
    """Run a tenth of the fan and then all of it, on a new file; then read it from there."""
    definition = folder / "fan.yaml"
    undo = ", undo: {run: noop}" if options.undo else ""
    definition.write_text(FAN.replace("LIMIT", str(options.limit)).replace("UNDO", undo))
    async with engine(options, folder) as pawl:
        pawl.load(definition)
        await timed(pawl, 200)
        collect_seldom()
        tenth = await timed(pawl, options.items // 10)
        before = memory()
        whole = await timed(pawl, options.items)
        grown = memory() - before
    async with engine(options, folder) as pawl:
        began = perf_counter()
        assert pawl.run(f"fan-{options.items}").show()["state"] == "completed"
        reading = perf_counter() - began
    return {
        "items": options.items,
        "limit": options.limit,
        "driver": options.driver,
        "undo": options.undo,
        "items_per_s": options.items / whole[0],
        "cpu_us_per_item": 1e6 * whole[1] / options.items,
        "cpu_ratio_to_a_tenth": whole[1] / (10 * tenth[1]),
        "bytes_per_item": grown / options.items,
        "reading_s": reading,
        "file_bytes_per_item": (folder / "pawl.db").stat().st_size / (1.1 * options.items),
    }


async def timed(pawl: Pawl, items: int) -> tuple[float, float]:
    """The seconds that a fan of so many items takes, by the clock and of the processor."""
    began, spent = perf_counter(), process_time()
    run = await pawl.start("fan", {"items": list(range(items))}, id=f"fan-{items}")
    assert await run.result() == items  # a fast wrong answer is not a result
    return perf_counter() - began, process_time() - spent


def engine(options: argparse.Namespace, folder: Path) -> Any:
    """An engine on the file, with the two functions that the fan calls."""
    pawl = Pawl(f"sqlite:///{folder}/pawl.db", driver=options.driver)

    @pawl.effect("noop")
    async def noop(n: int = 0) -> int:
        return n

    @pawl.effect("count")
    async def count(n: int) -> int:
        return n

    return pawl


def memory() -> int:
    """The most that this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
