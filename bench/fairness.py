"""What one tenant feels of another: python -m bench.fairness [--quick] [--gate].

Tenant B starts a few workflows a second, each of three steps of ten milliseconds: so many that a
hundred times as many are a third of what the engine can do here. Measured is B's p99 alone, beside
a tenant A that starts as many, beside one that starts a hundred times as many, and beside one that
floods: a thousand starts of it always wait. Also thirty of B at once, alone and as A starts three
thousand. Each measurement is a process of its own on a new store; rounds take turns. On SQLite, and
on PostgreSQL where it is found. Judged are the hundredfold loads; a flood is told beside them, for
there the engine is as busy as it can be.

python -m bench.fairness run LOAD --db URL: one measurement, as a line of JSON.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any, Final

from bench.judge import FOLDER, Gate, Line, best_of_each, failed, read_lines, show_gates
from bench.judge import write_report as keep
from bench.pawl_steps import CHAIN
from bench.timing import ROUNDS, is_calm
from pawlflow.collector import collect_seldom
from pawlflow.embedded import Pawl
from pawlflow.files import load_path
from pawlflow.trouble import PawlError

STEP_S: Final = 0.010
LOADS: Final = {"alone": 0, "equal": 1, "hundred": 100, "flood": -1}  # times that of B
BURSTS: Final = {"at-once": 0, "burst": 100}  # so many times those of B, all started together
BURST: Final = 30  # of B
FULL: Final = 300  # times the load of B are all that the engine can do
RATE_MIN: Final = 1.0
FLOOD: Final = 1_000  # starts of tenant A that wait
TICK_S: Final = 0.01
RATIO_MAX: Final = 2.0
SECONDS: Final = 20
SECONDS_MAX: Final = 300


def main(arguments: list[str]) -> int:
    """Measure, judge, keep; with --gate exit 1 if a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", nargs="?", choices=("all", "run"), default="all")
    parser.add_argument("load", nargs="?", choices=(*LOADS, *BURSTS, "full"), default="alone")
    parser.add_argument("--rate", type=float, default=10.0, help="of tenant B, a second")
    parser.add_argument("--db", help="a store's URL; default a new file")
    parser.add_argument("--driver", choices=("inline", "thread"), default="inline")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--folder", default=FOLDER)
    parser.add_argument("--quick", action="store_true", help="one round of a few seconds")
    parser.add_argument("--gate", action="store_true", help="exit 1 if a limit is passed")
    options = parser.parse_args(arguments)
    if options.mode == "run":
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            print(json.dumps(asyncio.run(measure(options, Path(folder)))))
        return 0
    before = is_calm()
    gates, lines = judge(rounds=1 if options.quick else ROUNDS, seconds=4 if options.quick else 20)
    calm = is_calm() and before
    show_gates(gates)
    keep("fairness", gates, [*lines, {"calm": calm}])
    missed = failed(gates)
    print(f"not kept: {', '.join(missed)}" if missed else "every promise is kept")
    if missed and not calm:
        print("the machine was busy: void, neither kept nor broken")
    return 1 if options.gate and missed and calm else 0


# Judging


def judge(*, rounds: int, seconds: float) -> tuple[list[Gate], list[Line]]:
    """The ratios of tenant B's p99, on every store there is."""
    gates: list[Gate] = []
    lines: list[Line] = []
    for store, fresh in stores():
        full = apart("full", fresh, 4, RATE_MIN)
        rate = max(RATE_MIN, float(full["other_per_s"]) / FULL)
        lines.append({"store": store, **full})
        loads = (*LOADS, *BURSTS)
        measures = {load: partial(apart, load, fresh, seconds, rate) for load in loads}
        best = best_of_each(rounds, measures, least="p99_ms")
        for line in best.values():
            print(json.dumps({"store": store, **line}))
            lines.append({"store": store, **line})
        p99 = {load: float(line["p99_ms"]) for load, line in best.items()}
        ratios = {
            "another at 100 times its load": p99["hundred"] / p99["alone"],
            "both at once, another with 100 times as many": p99["burst"] / p99["at-once"],
        }
        gates += [
            Gate(
                name=f"p99 of one tenant, {name}, {store}",
                measured=measured,
                limit=RATIO_MAX,
                bound="at most",
                unit="times",
            )
            for name, measured in ratios.items()
        ]
        flood = p99["flood"] / p99["alone"]
        print(f"p99 of one tenant, another floods, {store}: {flood:.1f} times")
    return gates, lines


def apart(load: str, fresh: Iterator[str], seconds: float, rate: float) -> Line:
    """One measurement by a process of its own."""
    url = next(fresh)
    command = [sys.executable, "-m", "bench.fairness", "run", load, "--seconds", str(seconds)]
    command += ["--rate", str(rate), *(["--db", url] if url else [])]
    ran = subprocess.run(
        command, check=True, text=True, stdout=subprocess.PIPE, timeout=SECONDS_MAX
    )
    (line,) = read_lines(ran.stdout)
    return line


def stores() -> Iterator[tuple[str, Iterator[str]]]:
    """The stores there are, each with URLs that nobody has used."""
    yield "SQLite", iter(lambda: "", None)  # a new file each time
    with server() as postgres:
        if postgres is not None:
            yield "PostgreSQL", iter(postgres.fresh, None)


@contextmanager
def server() -> Iterator[Any]:
    """A PostgreSQL server of this run, as the tests have one; None without its programs."""
    from tests.servers import NoServerError, Postgres

    try:
        postgres = Postgres()
    except NoServerError as error:
        print(f"without PostgreSQL: {error}")
        yield None
        return
    try:
        yield postgres
    finally:
        postgres.remove()


# Measuring


async def measure(options: argparse.Namespace, folder: Path) -> Line:
    """Let both tenants work, and see how long tenant B waits for each of its workflows."""
    definition = folder / "three.yaml"
    definition.write_text(CHAIN)
    [[workflow]] = [each.workflows for each in load_path(definition)]
    url = options.db or f"sqlite:///{folder}/pawl.db"
    async with Pawl(url, driver=options.driver, tenant="b") as pawl:
        pawl.add(workflow)

        @pawl.effect("noop")
        async def noop() -> int:
            await asyncio.sleep(STEP_S)
            return 1

        for tenant in ("a", "b"):
            await (await pawl.start(workflow, tenant=tenant)).result()
        collect_seldom()
        other = Other(pawl, workflow)
        if options.load in BURSTS:
            took = await at_once(pawl, workflow, other, BURSTS[options.load] * BURST)
            return told(options, took, 0.0, other.shed)
        full = options.load == "full"
        work = other.all_it_can() if full else other.work(LOADS[options.load] * options.rate)
        task = asyncio.ensure_future(work)
        await asyncio.sleep(1 if options.load != "alone" else 0)
        other.done = 0
        took = await arrivals(pawl, workflow, options)
        rate = other.done / max(options.seconds, 1)
        other.over = True
        await task
        return told(options, took, rate, other.shed)


def told(options: argparse.Namespace, took: list[float], rate: float, shed: int) -> Line:
    """What was measured."""
    return {
        "engine": "pawl",
        "mode": "fairness",
        "load": options.load,
        "driver": options.driver,
        "rate": options.rate,
        "p50_ms": median(took),
        "p99_ms": quantiles(took, n=100, method="inclusive")[98],
        "runs": len(took),
        "other_per_s": rate,
        "other_shed": shed,
    }


async def at_once(pawl: Pawl, workflow: Any, other: "Other", crowd: int) -> list[float]:
    """Start some of B behind so many of A, all at once; each counted from its own start."""
    loop, took = asyncio.get_running_loop(), []

    async def one() -> None:
        began = loop.time()
        await (await pawl.start(workflow)).result()
        took.append(1_000 * (loop.time() - began))

    theirs = [asyncio.ensure_future(other.one()) for _ in range(crowd)]
    await asyncio.gather(*(one() for _ in range(BURST)))
    if theirs:
        await asyncio.wait(theirs)
    return took


async def arrivals(pawl: Pawl, workflow: Any, options: argparse.Namespace) -> list[float]:
    """Start at fixed times, whether or not those before are done; counted from those times."""
    loop, took = asyncio.get_running_loop(), []
    began = loop.time()

    async def one(due: float) -> None:
        await (await pawl.start(workflow)).result()
        took.append(1_000 * (loop.time() - due))

    tasks = []
    for nth in range(max(3, int(options.seconds * options.rate))):
        due = began + nth / options.rate
        await asyncio.sleep(max(0.0, due - loop.time()))
        tasks.append(asyncio.ensure_future(one(due)))
    await asyncio.gather(*tasks)
    assert len(took) == len(tasks), "every workflow came to its end"
    return took


class Other:
    """Tenant A."""

    def __init__(self, pawl: Pawl, workflow: Any) -> None:
        self.pawl = pawl
        self.workflow = workflow
        self.over = False
        self.done = 0
        self.shed = 0
        self.running: set[asyncio.Task[None]] = set()

    async def all_it_can(self) -> None:
        """So many at a time that the engine is never idle, each to its end."""

        async def keep_one_going() -> None:
            while not self.over:
                await self.one()

        await asyncio.gather(*(keep_one_going() for _ in range(FULL)))

    async def work(self, rate: float) -> None:
        """Start so many a second; fewer than none: keep the line full."""
        if rate < 0:
            await asyncio.gather(*(self.keep_waiting() for _ in range(FLOOD)))
        began, started = perf_counter(), 0
        while rate > 0 and not self.over:
            await asyncio.sleep(TICK_S)
            while started < rate * (perf_counter() - began):
                started += 1
                task = asyncio.ensure_future(self.one())
                self.running.add(task)
                task.add_done_callback(self.running.discard)
        if self.running:
            await asyncio.wait(self.running)

    async def keep_waiting(self) -> None:
        """A start that waits, and another as soon as it was taken: nobody waits for results."""
        while not self.over:
            await self.begin()

    async def begin(self) -> Any:
        """A start; None if it was shed."""
        try:
            return await self.pawl.start(self.workflow, tenant="a")
        except PawlError as error:
            assert error.code == "engine.overloaded"
            self.shed += 1
            await asyncio.sleep(TICK_S)
            return None
        finally:
            self.done += 1

    async def one(self) -> None:
        """One workflow, from start to end."""
        run = await self.begin()
        if run is not None:
            await run.result()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
