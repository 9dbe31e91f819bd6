"""Steps that a service carries out over NATS: an engine, nats-server and one worker process.

python -m bench.services [--db sqlite|postgres] [--mode plain|batched] [--workflows N] [--gate] ...
"""

import argparse
import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final

import nats

from bench.judge import (
    FOLDER,
    Gate,
    Line,
    best_of,
    best_of_each,
    failed,
    read_lines,
    show_gates,
    write_report,
)
from bench.timing import ROUNDS
from bench.wake import is_calm
from pawlflow.collector import collect_seldom
from pawlflow.embedded import Pawl
from pawlflow.store.port import Filter
from tests.servers import Nats, Postgres

STEPS: Final = 3
LIMITS: Final = {"plain": 2_000, "batched": 5_000}  # steps a second, at least
STORES: Final = ("sqlite", "postgres")
WARM: Final = 20  # workflows before the clock starts
RUN_S_MAX: Final = 120
BARE: Final = 20_000  # messages of the calibration
BARE_BYTES: Final = 256
BARE_AT_ONCE: Final = 500
PAGE: Final = 1_000
FLOW: Final = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: three}
spec:
  steps:
    - {name: one, run: bench.v1.noop.run}
    - {name: two, run: bench.v1.noop.run, dependsOn: [one]}
    - {name: three, run: bench.v1.noop.run, dependsOn: [two]}
"""
SERVICE: Final = """
import os
from pawlflow.worker import Worker

batches = os.environ["BENCH_MODE"] == "batched"
worker = Worker(
    service="bench", memory="sqlite:///done.db", concurrency=1_000, batches=batches
)


@worker.command("bench.v1.noop.run")
async def noop():
    pass
"""
WORKER: Final = "from pawlflow.cli.main import entry; entry()"
ENGINE: Final = "import sys; from bench.services import engine; engine(*sys.argv[1:])"
TAKER: Final = "import sys; from bench.services import taker; taker(*sys.argv[1:])"


def main(arguments: list[str]) -> int:
    """Measure each mode on each store, in turn; with --gate, exit 1 if a limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=STORES, action="append", help="default: both")
    parser.add_argument("--mode", choices=tuple(LIMITS), action="append", help="default: both")
    parser.add_argument("--workflows", type=int, default=3_000)
    parser.add_argument("--in-flight", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--gate", action="store_true")
    parser.add_argument("--folder", default=FOLDER)
    parser.add_argument("--bare", type=int, default=BARE, help="messages of the calibration")
    options = parser.parse_args(arguments)
    calm = is_calm()
    lines: list[Line] = []
    gates: list[Gate] = []
    if options.bare:
        bare = best_of(options.rounds, lambda: bare_messages(options.bare), least="seconds")
        lines.append(bare)
    for db in options.db or STORES:
        modes = {
            mode: lambda db=db, mode=mode: measure(db, mode, options)
            for mode in options.mode or LIMITS
        }
        for mode, line in best_of_each(options.rounds, modes, least="seconds").items():
            lines.append(line)
            gates.append(gate_of(f"{db}, {mode}", line["steps_per_s"], LIMITS[mode]))
    calm = is_calm() and calm
    for line in lines:
        print(json.dumps(line))
    show_gates(gates)
    write_report("services", gates, [{**line, "calm": calm} for line in lines])
    return exit_code(gates, calm=calm, gate=options.gate)


def exit_code(gates: list[Gate], *, calm: bool, gate: bool) -> int:
    """One, if a promise is not kept and that matters; on a busy machine wall time is void."""
    if failed(gates) and not calm:
        print("void: the machine was busy")
    return 1 if gate and calm and failed(gates) else 0


def gate_of(name: str, measured: float, limit: float) -> Gate:
    """A promise of steps a second."""
    return Gate(name=name, measured=measured, limit=limit, bound="at least", unit="steps/s")


# One run


def measure(db: str, mode: str, options: argparse.Namespace) -> Line:
    """So many workflows on a new store, with a new server and a new worker."""
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as name,
        server() as nats_server,
        store(db, Path(name)) as url,
    ):
        folder = Path(name)
        (folder / "noops.py").write_text(SERVICE)
        (folder / "three.yaml").write_text(FLOW)
        env = {"PAWL_NATS": nats_server.url, "PAWL_NATS_UNSIGNED": "allow", "BENCH_MODE": mode}
        with process(WORKER, "worker", "noops", cwd=folder, env=env) as worker:
            worker.stdout.readline()  # it is ready
            pids = [str(worker.pid), str(nats_server.process.pid)]
            counts = [str(options.workflows), str(options.in_flight)]
            words = [sys.executable, "-c", ENGINE, url, nats_server.url, *counts, *pids]
            told = subprocess.run(
                words,
                cwd=folder,
                env=environment(env),
                check=True,
                text=True,
                stdout=subprocess.PIPE,
                timeout=RUN_S_MAX,
            )
        check(folder, options.workflows + WARM)
        (line,) = read_lines(told.stdout)
    return {"engine": "pawl", "bench": "services", "db": db, "mode": mode, **line}


@contextmanager
def server() -> Iterator[Nats]:
    """A NATS server of this run."""
    made = Nats()
    try:
        yield made
    finally:
        made.remove()


@contextmanager
def store(db: str, folder: Path) -> Iterator[str]:
    """The URL of a new store; what a server is told to keep is flushed, as in earnest."""
    if db == "sqlite":
        yield f"sqlite:///{folder / 'pawl.db'}"
        return
    made = Postgres()
    try:
        made.execute("ALTER SYSTEM SET fsync = on")
        made.execute("SELECT pg_reload_conf()")
        yield made.fresh()
    finally:
        made.remove()


@contextmanager
def process(
    program: str, *words: str, cwd: Path, env: dict[str, str]
) -> Iterator["subprocess.Popen[bytes]"]:
    """A program of ours beside this one, stopped at the end."""
    begun = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        cwd=cwd,
        env=environment(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield begun
    finally:
        begun.terminate()
        begun.communicate()


def environment(more: dict[str, str]) -> dict[str, str]:
    """Ours, with this folder to import from."""
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return os.environ | more | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def check(folder: Path, workflows: int) -> None:
    """A fast wrong answer is not a result: the worker has done each step, once."""
    memory = sqlite3.connect(folder / "done.db")
    [(count,)] = memory.execute("select count(*) from commands where success")
    memory.close()
    assert count == STEPS * workflows, f"{count} of {STEPS * workflows} commands were remembered"


# The engine, in a process of its own


def engine(url: str, nats_url: str, workflows: str, in_flight: str, *pids: str) -> None:
    """Run so many workflows, so many at a time; prints a line of JSON."""
    running = run(url, nats_url, int(workflows), int(in_flight), [int(pid) for pid in pids])
    print(json.dumps(asyncio.run(running)))


async def run(url: str, nats_url: str, workflows: int, in_flight: int, pids: list[int]) -> Line:
    """The clock runs from the first start to the last result."""
    async with Pawl(url, nats=nats_url) as pawl:
        pawl.load("three.yaml")
        await keep_going(pawl, WARM, WARM)
        collect_seldom()
        spent = [process_time(), *map(cpu_of, pids)]
        began = perf_counter()
        await keep_going(pawl, workflows, in_flight)
        seconds = perf_counter() - began
        now = [process_time(), *map(cpu_of, pids)]
        assert closed(pawl) == workflows + WARM, "not every workflow is completed, durably"
    steps = STEPS * workflows
    took = [after - before for before, after in zip(spent, now, strict=True)]
    names = ("engine_cpu_us", "worker_cpu_us", "server_cpu_us")
    return {
        "workflows": workflows,
        "in_flight": in_flight,
        "seconds": seconds,
        "steps_per_s": steps / seconds,
        **{name: 1e6 * each / steps for name, each in zip(names, took, strict=True)},
    }


async def keep_going(pawl: Pawl, workflows: int, in_flight: int) -> None:
    """So many in flight, each replaced when it is done."""
    left = workflows

    async def keep_one_going() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await (await pawl.start("three")).result()

    await asyncio.gather(*(keep_one_going() for _ in range(in_flight)))


def cpu_of(pid: int) -> float:
    """The CPU seconds of another process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def closed(pawl: Pawl) -> int:
    """How many workflows are completed in the store."""
    count, before = 0, None
    while True:
        page = pawl.reader.instances(
            Filter(tenant=pawl.tenant, states=("completed",), limit=PAGE, before=before)
        )
        count += len(page)
        if len(page) < PAGE:
            return count
        before = (page[-1].created_at, page[-1].ref)


# Calibration: what a stream, a publisher and a consumer do without any of ours


def bare_messages(count: int) -> Line:
    """Messages through a stream, from one process to another that acknowledges each."""
    with (
        server() as nats_server,
        tempfile.TemporaryDirectory() as folder,
        process(TAKER, nats_server.url, str(count), cwd=Path(folder), env={}) as other,
    ):
        other.stdout.readline()  # it is ready
        seconds = asyncio.run(bare_publish(nats_server.url, count))
    return {
        "bench": "services.bare",
        "messages": count,
        "seconds": seconds,
        "messages_per_s": count / seconds,
    }


async def bare_publish(url: str, count: int) -> float:
    """The seconds until the other process has all of them."""
    client = await nats.connect(url)
    done = await client.subscribe("bare.done")
    await client.flush()
    stream = client.jetstream()
    body, headers = b"x" * BARE_BYTES, {"X-Number": "1"}
    began = perf_counter()
    for number in range(1, count + 1):
        if number % BARE_AT_ONCE and number < count:
            await client.publish("bare.message", body, headers=headers)
        else:
            await stream.publish("bare.message", body, headers=headers)
    await done.next_msg(timeout=RUN_S_MAX)
    seconds = perf_counter() - began
    await client.close()
    return seconds


def taker(url: str, count: str) -> None:
    """The other process."""
    asyncio.run(bare_take(url, int(count)))


async def bare_take(url: str, count: int) -> None:
    """Acknowledge every message, and say when all have come."""
    client = await nats.connect(url)
    stream = client.jetstream()
    await stream.add_stream(name="BARE", subjects=["bare.message"])
    left = count

    async def heard(message: Any) -> None:
        nonlocal left
        await message.ack()
        left -= 1
        if left == 0:
            await client.publish("bare.done")

    await stream.subscribe("bare.message", "takers", cb=heard, manual_ack=True)
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
