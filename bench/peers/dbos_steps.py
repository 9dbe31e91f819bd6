"""What DBOS costs: .venv-bench/bin/python bench/peers/dbos_steps.py MODE [options].

On a new SQLite file, or with --db URL in a new database of a PostgreSQL server. Run by the peer's
own interpreter, so it imports nothing of ours. Each measurement prints one line of JSON. The flow
is three steps that do nothing; its work is what the engine writes down.
"""

import argparse
import asyncio
import functools
import gc
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from time import perf_counter, process_time, sleep
from typing import Any, Final

import psycopg
import sqlalchemy
from dbos import DBOS

STEPS: Final = 3
WARM_UP: Final = 20  # workflows; by then statements are compiled and connections are open
SWEPT: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 1000)
CHILD_SECONDS_MAX: Final = 120
POLL_SECONDS: Final = 0.005  # of the queue form: how often DBOS looks, and how often we do
SYNCHRONOUS: Final = ("off", "normal", "full", "extra")
ABOUT: Final = "select current_setting('server_version'), current_setting('fsync')"
FOLDER: Final = "/var/tmp"  # by convention a disk, where /tmp may be memory

# One loop for all: asyncio.run would close DBOS's threads, which are its loop's as well.
loop = asyncio.new_event_loop()
seen: dict[str, str] = {}  # the settings that DBOS's own connections have


def main(arguments: list[str]) -> int:
    """Measure what was asked for, on a fresh file."""
    options = parse(arguments)
    if options.mode == "join":
        options.form = "async"  # steps of one workflow run side by side on an event loop only
    if options.mode == "sweep":
        return sweep(options)
    with place(options) as url:
        launch(url, options)
        try:
            measured = MODES[options.mode](options, url)
        finally:
            DBOS.destroy(workflow_completion_timeout_sec=10)
    print(json.dumps({**circumstances(options), **measured}), flush=True)
    return 0


@contextmanager
def place(options: argparse.Namespace) -> Iterator[str]:
    """The URL of a new database: a file, or one of a server that is gone at the end."""
    if not options.db:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            yield f"sqlite:///{folder}/dbos.sqlite"
        return
    url, _, _ = options.db.rpartition("/")
    with psycopg.connect(options.db, autocommit=True) as db:
        [(seen["postgres"], seen["fsync"])] = db.execute(ABOUT).fetchall()
        db.execute("drop database if exists dbos_bench with (force)")
        db.execute("create database dbos_bench")
        try:
            yield f"{url}/dbos_bench"
        finally:
            db.execute("drop database dbos_bench with (force)")


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="dbos_steps.py", description=__doc__)
    parser.add_argument("mode", choices=[*MODES, "sweep"])
    parser.add_argument("--form", choices=FORMS, default="call", help="how flows are started")
    parser.add_argument("--in-flight", type=int, default=1, help="workflows running at a time")
    parser.add_argument("--workflows", type=int, default=1_000, help="in all, or samples taken")
    parser.add_argument("--width", type=int, default=100, help="of join: steps side by side")
    parser.add_argument("--pool", type=int, help="connections of DBOS, which takes 20 by default")
    parser.add_argument("--settings", choices=["wal-full", "default"], default="wal-full")
    parser.add_argument("--folder", default=FOLDER, help="where the database file is made")
    parser.add_argument("--db", metavar="URL", help="a PostgreSQL server instead of a file")
    parser.add_argument("--seconds", type=float, default=5.0, help="of sweep: each run, about")
    parser.add_argument("--swept", type=int, nargs="+", default=SWEPT, help="of sweep: in flight")
    return parser.parse_args(arguments)


def circumstances(options: argparse.Namespace) -> dict[str, Any]:
    """What a figure was measured on."""
    return {
        "engine": "dbos",
        "version": version("dbos"),
        "mode": options.mode,
        "form": options.form,
        **({} if options.db else about_file(options)),
        "pool": options.pool or 20,
        **seen,
    }


def about_file(options: argparse.Namespace) -> dict[str, Any]:
    """What there is to know about SQLite."""
    return {"sqlite": sqlite3.sqlite_version, "settings": options.settings}


# The flow


@DBOS.step()
def step_one(number: int) -> int:
    """Do nothing."""
    return number


@DBOS.step()
def step_two(number: int) -> int:
    """Do nothing."""
    return number


@DBOS.step()
def step_three(number: int) -> int:
    """Do nothing."""
    return number


@DBOS.workflow()
def flow(number: int) -> int:
    """Three steps, one after the other."""
    return step_three(step_two(step_one(number)))


@DBOS.step()
async def async_one(number: int) -> int:
    """Do nothing."""
    return number


@DBOS.step()
async def async_two(number: int) -> int:
    """Do nothing."""
    return number


@DBOS.step()
async def async_three(number: int) -> int:
    """Do nothing."""
    return number


@DBOS.workflow()
async def async_flow(number: int) -> int:
    """Three steps, one after the other."""
    return await async_three(await async_two(await async_one(number)))


@DBOS.workflow()
async def wide_flow(width: int) -> int:
    """Many steps side by side, joined."""
    return sum(await asyncio.gather(*[async_one(number) for number in range(width)]))


# Launching


def launch(url: str, options: argparse.Namespace) -> None:
    """Start DBOS there; on a file in its own settings or in those of the comparison."""
    if not options.db:
        settle_file(url, durable=options.settings == "wal-full")
    config: dict[str, Any] = {
        "name": "bench-peer",
        "system_database_url": url,
        "log_level": "ERROR",
    }
    if options.pool:
        config["sys_db_pool_size"] = options.pool
    DBOS(config=config)
    DBOS.launch()


def settle_file(url: str, *, durable: bool) -> None:
    """The settings of a file, and of each connection to it."""
    if durable:
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.execute("pragma journal_mode = wal")  # stays with the file
        connection.close()
    settle = functools.partial(settle_connection, durable=durable)
    sqlalchemy.event.listen(sqlalchemy.Engine, "connect", settle)


def settle_connection(connection: sqlite3.Connection, _record: object, *, durable: bool) -> None:
    """Set what belongs to a connection, and note what it has."""
    if durable:
        connection.execute("pragma synchronous = full")
    (journal_mode,) = connection.execute("pragma journal_mode").fetchone()
    (synchronous,) = connection.execute("pragma synchronous").fetchone()
    seen.update(journal_mode=journal_mode, synchronous=SYNCHRONOUS[synchronous])


# Forms: ways to run one workflow, and to run so many at a time


def start(number: int) -> int:
    """Start a workflow and wait: it runs in a thread of DBOS."""
    return DBOS.start_workflow(flow, number).get_result()


async def async_start(number: int) -> int:
    """Start a workflow and await its handle."""
    handle = await DBOS.start_workflow_async(async_flow, number)
    return await handle.get_result()


THREADED: Final = {"call": flow, "start": start}
AWAITED: Final = {"async": async_flow, "async-start": async_start}
FORMS: Final = (*THREADED, *AWAITED, "queue")


def run_all(form: str, numbers: range, in_flight: int, url: str) -> None:
    """Run a workflow for each number, so many in flight."""
    if form in THREADED:
        with ThreadPoolExecutor(in_flight) as pool:
            assert list(pool.map(THREADED[form], numbers)) == list(numbers)
    elif form in AWAITED:
        loop.run_until_complete(run_tasks(AWAITED[form], numbers, in_flight))
    else:
        run_queue(numbers, in_flight, url)


async def run_tasks(run: Callable[..., Any], numbers: range, in_flight: int) -> None:
    """So many tasks, each taking the next number until none is left."""
    left = iter(numbers)

    async def work() -> None:
        for number in left:
            assert await run(number) == number

    await asyncio.gather(*[work() for _ in range(in_flight)])


def run_queue(numbers: range, in_flight: int, url: str) -> None:
    """A queue of DBOS: one thread fills it, so many workflows run at a time."""
    queue = DBOS.register_queue(
        "bench", worker_concurrency=in_flight, polling_interval_sec=POLL_SECONDS
    )
    done = count_done(url)
    for number in numbers:
        queue.enqueue(flow, number)
    while count_done(url) < done + len(numbers):
        sleep(POLL_SECONDS)


def count_done(url: str) -> int:
    """The workflows that ended well."""
    return count(url, "workflow_status where status = 'SUCCESS'")


def count(url: str, rows: str) -> int:
    """One number out of the database, read from outside."""
    if url.startswith("sqlite:///"):
        connection: Any = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=30)
    else:
        connection, rows = psycopg.connect(url), f"dbos.{rows}"
    try:
        return int(connection.execute(f"select count(*) from {rows}").fetchone()[0])
    finally:
        connection.close()


# Modes


def throughput(options: argparse.Namespace, url: str) -> dict[str, Any]:
    """So many workflows, so many in flight: steps a second, and the CPU of one workflow."""
    form, in_flight, workflows = options.form, options.in_flight, options.workflows
    warm_up = max(WARM_UP, in_flight)
    run_all(form, range(warm_up), in_flight, url)
    gc.collect()
    gc.freeze()  # as for the engine it is compared with
    begun, cpu_begun = perf_counter(), process_time()
    run_all(form, range(workflows), in_flight, url)
    seconds, cpu_seconds = perf_counter() - begun, process_time() - cpu_begun
    check(url, warm_up + workflows)
    return {
        "in_flight": in_flight,
        "workflows": workflows,
        "seconds": round(seconds, 3),
        "steps_per_s": round(workflows * STEPS / seconds, 1),
        "cpu_seconds": round(cpu_seconds, 3),
        "cpu_ms_per_workflow": round(cpu_seconds / workflows * 1e3, 3),
    }


def check(url: str, workflows: int) -> None:
    """All of them ended well, and each step was written down."""
    steps = count(url, "operation_outputs")
    assert count_done(url) == workflows, f"{count_done(url)} of {workflows} workflows ended well"
    assert steps == workflows * STEPS, f"{steps} steps were written, not {workflows * STEPS}"


def latency(options: argparse.Namespace, url: str) -> dict[str, Any]:
    """One workflow at a time, from the call to its result."""
    form, numbers = options.form, range(WARM_UP + options.workflows)
    if form in THREADED:
        taken = [timed(THREADED[form], number) for number in numbers]
    else:
        taken = loop.run_until_complete(async_timed(AWAITED[form], numbers))
    check(url, len(numbers))
    return {"in_flight": 1, "workflows": options.workflows, **spread(taken[WARM_UP:])}


def timed(run: Callable[..., Any], number: int) -> float:
    """The seconds of one run."""
    begun = perf_counter()
    assert run(number) == number
    return perf_counter() - begun


async def async_timed(run: Callable[..., Any], numbers: range) -> list[float]:
    """The seconds of each run, one after the other on an event loop."""
    taken = []
    for number in numbers:
        begun = perf_counter()
        assert await run(number) == number
        taken.append(perf_counter() - begun)
    return taken


def join(options: argparse.Namespace, url: str) -> dict[str, Any]:
    """One workflow that starts many steps side by side and waits for all of them."""
    width, rounds = options.width, range(options.workflows + 1)  # the first one warms up
    taken = loop.run_until_complete(async_timed(functools.partial(wide, width), rounds))
    steps = count(url, "operation_outputs")
    assert steps == len(rounds) * width, f"{steps} steps were written, not {len(rounds) * width}"
    return {"width": width, "workflows": options.workflows, **spread(taken[1:])}


async def wide(width: int, number: int) -> int:
    """Run the wide workflow, and give back the number if its sum is right."""
    assert await wide_flow(width) == sum(range(width))
    return number


def spread(taken: list[float]) -> dict[str, float]:
    """The middle and the slow end, in milliseconds."""
    ordered = sorted(taken)
    return {
        "p50_ms": round(statistics.median(ordered) * 1e3, 3),
        "p99_ms": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1e3, 3),
        "best_ms": round(ordered[0] * 1e3, 3),
    }


MODES: Final = {"throughput": throughput, "latency": latency, "join": join}


# Sweeping


def sweep(options: argparse.Namespace) -> int:
    """One form at growing concurrency, each run in a process of its own."""
    workflows_per_s = 150.0  # a guess, until the first run tells
    for in_flight in options.swept:
        workflows = max(int(workflows_per_s * options.seconds), in_flight * 2)
        line = run_apart(options, in_flight, workflows)
        print(line, flush=True)
        workflows_per_s = json.loads(line)["steps_per_s"] / STEPS
    return 0


def run_apart(options: argparse.Namespace, in_flight: int, workflows: int) -> str:
    """The line that another process prints."""
    command = [sys.executable, __file__, "throughput", "--form", options.form]
    command += ["--in-flight", str(in_flight), "--workflows", str(workflows)]
    command += ["--settings", options.settings, "--folder", options.folder]
    command += ["--pool", str(options.pool)] if options.pool else []
    command += ["--db", options.db] if options.db else []
    said = subprocess.run(
        command, check=True, text=True, stdout=subprocess.PIPE, timeout=CHILD_SECONDS_MAX
    )
    return said.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
