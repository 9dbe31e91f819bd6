"""The Python face: what a flow costs over YAML, what importing costs, and a hello from nothing.

python -m bench.face [--workflows N] [--gate]
"""

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final

from bench.judge import FOLDER, Gate, Line, failed, show_gates
from bench.pawl_steps import CHAIN
from bench.timing import ROUNDS
from pawlflow import Pawl, flow, step
from pawlflow.definition.canonical import definition_hash
from pawlflow.definition.load import load_workflows

RATIO_MAX: Final = 1.15
IMPORT_MS_MAX: Final = 150
HELLO_MS_MAX: Final = 500
IN_FLIGHT: Final = 200
HELLO: Final = """
import asyncio
from pawlflow import Pawl, flow, step


@step
async def greet(name: str) -> str:
    return f"hello {name}"


@flow
def hello(name):
    return greet(name)


async def main() -> None:
    async with Pawl("sqlite:///hello.db") as pawl:
        run = await pawl.start(hello, "you")
        assert await run.result() == "hello you"


asyncio.run(main())
"""


@step(name="noop")
async def noop() -> int:
    """Do nothing."""
    return 1


@flow(name="three")
def three() -> None:
    """The same chain as the YAML of bench.pawl_steps."""
    one = noop(name="one")
    two = noop(name="two", after=[one])
    noop(name="three", after=[two])


def main(arguments: list[str]) -> int:
    """Measure, and print a line of JSON; with --gate, exit 1 if a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workflows", type=int, default=2_000)
    parser.add_argument("--gate", action="store_true")
    options = parser.parse_args(arguments)
    line = {**against_yaml(options.workflows), **from_nothing()}
    print(json.dumps({"engine": "pawl", "mode": "face", **line}))
    gates = [
        at_most("CPU of a flow over its YAML", line["ratio"], RATIO_MAX, "times"),
        at_most("import pawlflow", line["import_ms"], IMPORT_MS_MAX, "ms"),
        at_most("hello, from start to exit of a process", line["hello_ms"], HELLO_MS_MAX, "ms"),
    ]
    show_gates(gates)
    return 1 if options.gate and failed(gates) else 0


def at_most(name: str, measured: float, limit: float, unit: str) -> Gate:
    """A limit from above."""
    return Gate(name=name, measured=measured, limit=limit, bound="at most", unit=unit)


def against_yaml(workflows: int) -> Line:
    """The smallest CPU time of each, in turn."""
    (made,), _ = load_workflows(CHAIN, "three.yaml")
    assert definition_hash(made).hex() == three.plan_hash
    spent: dict[str, list[float]] = {"yaml": [], "flow": []}
    for _ in range(ROUNDS):
        spent["yaml"].append(asyncio.run(measured(made, workflows)))
        spent["flow"].append(asyncio.run(measured(three, workflows)))
    cpu = {name: 1_000 * min(each) / workflows for name, each in spent.items()}
    return {
        "workflows": workflows,
        "yaml_cpu_ms": cpu["yaml"],
        "flow_cpu_ms": cpu["flow"],
        "ratio": cpu["flow"] / cpu["yaml"],
    }


async def measured(what: Any, workflows: int) -> float:
    """The CPU time of so many runs on a new file, so many in flight."""
    left = workflows
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        async with Pawl(f"sqlite:///{folder}/pawl.db") as pawl:
            pawl.register(noop)
            await (await pawl.start(what, {})).result()

            async def keep_one_going() -> None:
                nonlocal left
                while left > 0:
                    left -= 1
                    await (await pawl.start(what, {})).result()

            gc.collect()
            began = process_time()
            await asyncio.gather(*(keep_one_going() for _ in range(IN_FLIGHT)))
            return process_time() - began


def from_nothing() -> Line:
    """Processes from their start to their end; the interpreter's own start is told beside."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        program = Path(folder) / "hello.py"
        program.write_text(HELLO)
        bare = least(["-c", "pass"], folder)
        face = "from pawlflow import Pawl, approval, each, flow, step"
        return {
            "python_ms": bare,
            "import_ms": least(["-c", "import pawlflow"], folder) - bare,
            "import_face_ms": least(["-c", face], folder) - bare,
            "hello_ms": least([str(program)], folder),
        }


def least(command: list[str], folder: str) -> float:
    """The shortest of some runs of Python, in milliseconds."""
    took = []
    for _ in range(2 * ROUNDS):
        began = perf_counter()
        subprocess.run([sys.executable, *command], check=True, cwd=folder)
        took.append(1_000 * (perf_counter() - began))
    return min(took)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
