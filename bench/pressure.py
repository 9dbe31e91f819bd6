"""Memory under pressure: python -m bench.pressure [--quick] [--gate].

Tenants go on starting while nobody takes the work: NATS is away, or functions do not end. What an
engine holds then is bounded, so ten times the starts may not take much more memory: resident size
with 100,000 against that with 10,000. Each measurement is a process of its own on a new file.

python -m bench.pressure run {nats,functions} --instances N: one measurement, as a line of JSON.
"""

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.judge import FOLDER, Gate, Line, failed, read_lines, show_gates, write_report
from pawlflow.embedded import Pawl
from pawlflow.files import load_path

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS: Final = ("nats", "functions")
FEW: Final = 10_000
MANY: Final = 100_000
RATIO_MAX: Final = 2.0
SECONDS_MAX: Final = 900
ONE: Final = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: one}
spec:
  steps: [{name: s, run: TARGET, with: {text: "${ input.text }"}}]
"""
TARGETS: Final = {"nats": "some.v1.thing.do", "functions": "do"}
TEXT: Final = "x" * 500


def main(arguments: list[str]) -> int:
    """Measure, judge, keep; with --gate exit 1 if a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", nargs="?", choices=("all", "run"), default="all")
    parser.add_argument("kind", nargs="?", choices=KINDS, default="functions")
    parser.add_argument("--instances", type=int, default=FEW)
    parser.add_argument("--folder", default=FOLDER)
    parser.add_argument("--quick", action="store_true", help="a tenth of the starts")
    parser.add_argument("--gate", action="store_true", help="exit 1 if a limit is passed")
    options = parser.parse_args(arguments)
    if options.mode == "run":
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            print(json.dumps(asyncio.run(measure(options, Path(folder)))))
        return 0
    few, many = (FEW // 10, MANY // 10) if options.quick else (FEW, MANY)
    lines = {kind: (apart(kind, few), apart(kind, many)) for kind in KINDS}
    gates = [
        Gate(
            name=f"memory with {many:,} starts against {few:,}, {kind} away",
            measured=float(large["rss_mb"]) / float(small["rss_mb"]),
            limit=RATIO_MAX,
            bound="at most",
            unit="times",
        )
        for kind, (small, large) in lines.items()
    ]
    show_gates(gates)
    write_report("pressure", gates, [line for pair in lines.values() for line in pair])
    missed = failed(gates)
    print(f"not kept: {', '.join(missed)}" if missed else "every promise is kept")
    return 1 if options.gate and missed else 0


def apart(kind: str, instances: int) -> Line:
    """One measurement by a process of its own."""
    command = [sys.executable, "-m", "bench.pressure", "run", kind, "--instances", str(instances)]
    ran = subprocess.run(
        command, check=True, text=True, stdout=subprocess.PIPE, timeout=SECONDS_MAX
    )
    (line,) = read_lines(ran.stdout)
    print(json.dumps(line))
    return line


async def measure(options: argparse.Namespace, folder: Path) -> Line:
    """Start so many, and see what is held of them."""
    definition = folder / "one.yaml"
    definition.write_text(ONE.replace("TARGET", TARGETS[options.kind]))
    [[workflow]] = [each.workflows for each in load_path(definition)]
    with server(options.kind) as bus:
        url = f"sqlite:///{folder}/pawl.db"
        async with Pawl(url, nats=None if bus is None else bus.url) as pawl:
            pawl.effect("do")(hang)
            pawl.add(workflow)
            if bus is not None:
                bus.stop()
            count = 0
            inputs = ({"text": TEXT} for _ in range(options.instances))
            async for started in pawl.starting(workflow, inputs):
                assert started.error is None, started
                count += 1
            gc.collect()
            line = held(pawl)
            assert count == options.instances
            assert line["calls"] + line["cells_noted"] >= min(count, line["calls_max"])
    return {"engine": "pawl", "mode": "pressure", "kind": options.kind, "starts": count, **line}


async def hang() -> None:
    """A function that does not end."""
    await asyncio.Event().wait()


def held(pawl: Pawl) -> Line:
    """What is in memory."""
    gateways = list(pawl.services.gateways.values())
    going = sum(len(each.commands.going) for each in gateways)
    lines = [pawl.runner.line, *(each.commands.unsent for each in gateways)]
    return {
        "rss_mb": resident_mb(),
        "calls": sum(len(each) for each in lines) + len(pawl.runner.jobs) + going,
        "calls_max": min(each.most for each in lines),
        "cells_noted": sum(each.missing for each in lines),
        "cells_timed": len(pawl.driver.engine.core.reoffers.placed),
    }


def resident_mb() -> float:
    """The resident size of this process."""
    status = Path("/proc/self/status").read_text()
    [row] = [row for row in status.splitlines() if row.startswith("VmRSS")]
    return int(row.split()[1]) / 1024


@contextmanager
def server(kind: str) -> "Iterator[Any]":
    """A NATS server of this run, as the tests have one."""
    if kind != "nats":
        yield None
        return
    from tests.servers import Nats

    made = Nats()
    try:
        yield made
    finally:
        made.remove()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
