"""The engine on PostgreSQL, beside DBOS on the same server and Restate on its own.

python -m bench.postgres [--quick] [--gate] [--only PART ...]

A PostgreSQL of its own on a disk, fsync on; every measurement is a process of its own on a new
database; rounds take turns, so that a noisy minute meets everybody. Peers are first looked at with
several workflows in flight, and then judged at their best. Writes OUT/postgres.json and .svg.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Final

from bench.judge import (
    NODE_PEERS,
    OUT,
    PEER,
    Gate,
    Line,
    Measure,
    at_least,
    at_most,
    best_of,
    best_of_each,
    failed,
    ours,
    peer,
    show_gates,
    write_report,
)
from bench.parked import REST
from bench.pg_processes import can_serve
from bench.pg_server import LOGGED, NoServerError, Server, bare_commits, bare_rows, served
from bench.plot import Chart, write_bars
from bench.timing import ROUNDS, is_calm

IN_FLIGHT: Final = (1, 100, 1_000)
DRIVERS: Final = ("inline", "thread")
NODES: Final = 2  # processes that share the store; the machine has two cores
STEPS_A_WORKFLOW: Final = 3
COMMITS_A_WORKFLOW: Final = 4
TURNS: Final = 4
DBOS_FORMS: Final = ("start", "async-start")  # its queue and plain calls were slower in its sweep
DBOS_IN_FLIGHT: Final = (1, 4, 8, 16, 32, 100, 1_000)
DBOS_PROCESSES: Final = (1, 2)
RESTATE_IN_FLIGHT: Final = (1, 32, 100, 250, 500)  # with 1,000 it was slower, or came to no end
RESTATE_WORKERS: Final = (1, 2)  # processes of its service; the machine has two cores
RESTATE_NAME: Final = "node_modules/@restatedev/restate-server-*/bin/restate-server"
PROCESSES: Final = (1, 2, 3)


class Run:
    """One run of this bench: the server, how thorough, and what was found so far."""

    def __init__(self, server: Server, *, quick: bool) -> None:
        self.server = server
        self.quick = quick
        self.rounds = 1 if quick else ROUNDS
        self.lines: list[Line] = []
        self.calm = is_calm()

    def keep(self, *lines: Line) -> None:
        """Keep lines for the report, and say what they say."""
        for line in lines:
            self.lines.append(line)
            print(told(line), flush=True)
        self.calm = is_calm() and self.calm

    def count(self, many: int, few: int) -> int:
        """How many of something, by how thorough this is."""
        return few if self.quick else many

    def some(self, all_: tuple[int, ...]) -> tuple[int, ...]:
        """All numbers in flight, or the few that matter."""
        return all_[1::2] if self.quick else all_


def main(arguments: list[str]) -> int:
    """Measure, judge, keep; with --gate exit 1 if a promise is not kept."""
    parser = argparse.ArgumentParser(prog="bench.postgres", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round, small numbers")
    parser.add_argument("--gate", action="store_true", help="exit 1 if a limit is passed")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="these parts", metavar="PART")
    options = parser.parse_args(arguments)
    try:
        with served() as server:
            run = Run(server, quick=options.quick)
            gates = [gate for part in options.only or PARTS for gate in PARTS[part](run)]
            about = server.about()
    except NoServerError as trouble:
        print(f"skipped: {trouble}")
        return 0
    show_gates(gates)
    write_report("postgres", gates, [about, *run.lines])
    print(f"kept in {OUT / 'postgres.json'}; PostgreSQL {about}")
    if not run.calm:
        print("the machine was busy: walls of this run are void where they pass a limit")
    missed = failed(gates)
    print(f"not kept: {', '.join(missed)}" if missed else "no promise is broken")
    return 1 if options.gate and missed else 0


def told(line: Line) -> str:
    """A line in a few words."""
    who = [str(line[name]) for name in ("engine", "mode", "driver", "form", "kind") if name in line]
    counted = [
        f"{name} {line[name]}" for name in ("in_flight", "workers", "processes") if name in line
    ]
    names = ("steps_per_s", "rows_per_s", "p50_ms", "first_commit_s", "all_offered_s", "per_s")
    figures = [f"{name} {line[name]:,.4g}" for name in names if name in line]
    return "  " + ", ".join([" ".join(who), *counted, *figures])


# What the server can do by itself


def judge_bare(run: Run) -> list[Gate]:
    """Rows in one statement a commit, and one row a commit: calibrations, not judged."""
    rows = best_of(run.rounds, lambda: bare_rows(run.server), least="seconds")
    run.keep(rows, best_of(run.rounds, lambda: bare_commits(run.server), least="p50_ms"))
    return []


# Speed


def judge_speed(run: Run) -> list[Gate]:
    """Three no-op steps: ours by both drivers and as nodes, the peers at their best, in turn."""
    best_peers = {**dbos_at_best(run), **restate_at_best(run)}
    measures: dict[str, Measure] = {driver: steps(run, driver) for driver in DRIVERS}
    measures["nodes"] = nodes(run)
    best = best_of_each(run.rounds, {**measures, **best_peers}, least="seconds")
    run.keep(*best.values())
    fast = max((best[way] for way in measures), key=rate)
    rows = next((line for line in run.lines if line.get("mode") == "rows"), None)
    gates = [
        at_least(
            f"three steps, 1,000 in flight ({way_of(fast)})",
            rate(fast),
            8_000,
            "steps/s",
            calm=run.calm,
        )
    ]
    for name, limit in (("dbos", 30), ("restate", 8)):
        if name in best:
            times = rate(fast) / rate(best[name])
            gates.append(at_least(f"times {name} at its best", times, limit, "", calm=run.calm))
    if rows is not None:
        share = rate(fast) * TURNS / STEPS_A_WORKFLOW / float(rows["rows_per_s"])
        print(f"  turns a second are {share:.2f} of bare rows a second")
    draw(run, fast)
    return gates


def rate(line: Line) -> float:
    """Steps a second."""
    return float(line["steps_per_s"])


def way_of(line: Line) -> str:
    """How ours was measured."""
    return f"{line['processes']} processes" if "processes" in line else str(line["driver"])


def nodes(run: Run, in_flight: int = 1_000) -> Measure:
    """Ours, as nodes that share a new database."""
    return measured(run, "pawl_nodes", in_flight, processes=NODES)


def steps(run: Run, driver: str, in_flight: int = 1_000) -> Measure:
    """Ours, alone on a new database."""
    return measured(run, "pawl_steps", in_flight, driver=driver)


def measured(run: Run, module: str, in_flight: int, **how: object) -> Measure:
    """Twelve times as many as are in flight at a time."""
    workflows = run.count(max(400, 12 * in_flight), max(200, 3 * in_flight))
    more = {"in_flight": in_flight, "workflows": workflows, **how}
    return lambda: ours(module, "throughput", db=run.server.fresh(), **more)


def dbos_at_best(run: Run) -> dict[str, Measure]:
    """DBOS as it was fastest in a look at several forms, with so many in flight."""
    if not PEER.exists():
        print(f"without DBOS: there is no {PEER}; `make peers` makes it")
        return {}
    flying = run.some(DBOS_IN_FLIGHT)
    tried = [(form, n, p) for form in DBOS_FORMS for n in flying for p in DBOS_PROCESSES if p <= n]
    return at_best(run, "dbos", [dbos(run, form, n, p) for form, n, p in tried])


def dbos(run: Run, form: str, in_flight: int, processes: int) -> Measure:
    """DBOS in a database of its own."""
    workflows = run.count(max(600, in_flight), max(150, in_flight // 2))
    more = {} if processes == 1 else {"processes": processes}
    return lambda: peer(
        "dbos_steps" if processes == 1 else "dbos_processes",
        "throughput",
        db=run.server.url,
        form=form,
        in_flight=in_flight,
        workflows=workflows,
        **more,
    )


def restate_at_best(run: Run) -> dict[str, Measure]:
    """Restate as it was fastest, with so many in flight and processes of its service."""
    found = sorted(NODE_PEERS.glob(RESTATE_NAME))
    if not found or not PEER.exists():
        print(
            f"without Restate: there is no restate-server in {NODE_PEERS}; `make peers` needs npm"
        )
        return {}
    tried = [(w, n) for w in RESTATE_WORKERS for n in run.some(RESTATE_IN_FLIGHT)]
    return at_best(run, "restate", [restate(run, str(found[0]), w, n) for w, n in tried])


def restate(run: Run, server: str, workers: int, in_flight: int) -> Measure:
    """Restate in a folder of its own."""
    workflows = run.count(max(600, 3 * in_flight), max(150, in_flight))
    return lambda: peer(
        "restate_steps",
        "throughput",
        server=server,
        workers=workers,
        in_flight=in_flight,
        workflows=workflows,
    )


def at_best(run: Run, name: str, tried: list[Measure]) -> dict[str, Measure]:
    """Look at each once; the fastest is the one that is measured again."""
    looked: list[tuple[Line, Measure]] = []
    for measure in tried:
        try:
            line = measure()
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as trouble:
            print(f"  {name}: no figure, {str(trouble)[-120:]}", flush=True)
        else:
            run.keep(line)
            looked.append((line, measure))
    return {name: max(looked, key=lambda pair: rate(pair[0]))[1]} if looked else {}


def draw(run: Run, fast: Line) -> None:
    """Steps a second by how many are in flight."""
    series: dict[str, dict[str, float]] = {}
    found = [steps(run, driver, n)() for driver in DRIVERS for n in IN_FLIGHT[:-1]]
    found += [nodes(run, n)() for n in IN_FLIGHT[1:-1]]
    run.keep(*found)
    flown = [line for line in found if line["in_flight"] == 1 or way_of(line) == way_of(fast)]
    series["Pawl"] = {f"{line['in_flight']:,}": rate(line) for line in [*flown, fast]}
    for name, title in (("dbos", "DBOS"), ("restate", "Restate")):
        at = {
            f"{n:,}": max(
                rate(line)
                for line in run.lines
                if line["engine"] == name and line["in_flight"] == n
            )
            for n in IN_FLIGHT
            if any(line["engine"] == name and line.get("in_flight") == n for line in run.lines)
        }
        if at:
            series[title] = at
    chart = Chart(
        title="Three no-op durable steps; Pawl and DBOS on PostgreSQL",
        x="workflows in flight",
        y="steps per second",
        series=series,
    )
    write_bars(OUT / "postgres.svg", chart)


# Latency, restarts, rest, processes


def judge_latency(run: Run) -> list[Gate]:
    """One at a time, from start to result; beside it what four commits cost without any engine."""
    count = run.count(400, 100)
    measures: dict[str, Measure] = {driver: latency(run, driver, count) for driver in DRIVERS}
    measures["bare"] = lambda: bare_commits(run.server, count)
    best = best_of_each(run.rounds, measures, least="p50_ms")
    run.keep(*best.values())
    alone = min(float(best[driver]["p50_ms"]) for driver in DRIVERS)
    four = COMMITS_A_WORKFLOW * float(best["bare"]["p50_ms"])
    print(f"  one in flight takes {alone / four:.2f} times four bare commits ({four:.2f} ms)")
    return [at_most("one in flight, p50", alone, 4, "ms", calm=run.calm)]


def latency(run: Run, driver: str, count: int) -> Measure:
    """Ours, one at a time."""
    return lambda: ours(
        "pawl_steps", "latency", db=run.server.fresh(), driver=driver, workflows=count
    )


def judge_restart(run: Run) -> list[Gate]:
    """Come back with many in flight: as open calls, and as waits."""
    many = run.count(100_000, 5_000)
    gates = []
    for kind, what in (("call", "calls"), ("wait", "waits")):
        line = ours("parked", "restart", db=run.server.fresh(), instances=many, kind=kind)
        run.keep(line)
        name = f"restart with {many:,} in flight ({what})"
        gates.append(at_most(name, float(line["first_commit_s"]), 5, "s", calm=run.calm))
    return gates


def judge_rest(run: Run) -> list[Gate]:
    """What a node asks of the server that has nothing to do, by the server's own log."""
    seconds = run.count(30, 10)
    gates = []
    for node, what in (("alone", "an engine"), ("shared", "a node among others")):
        line = ours("parked", "idle", db=run.server.fresh(LOGGED), seconds=seconds, node=node)
        asked = asked_at_rest(run.server.log())
        run.keep({**line, "statements": asked, "per_s": len(asked) / seconds})
        gates.append(at_most(f"queries of {what} at rest", len(asked) / seconds, 1, "/s"))
    return gates


def asked_at_rest(log: str) -> list[str]:
    """The statements of an engine between the two marks in a server's log."""
    between = log[log.rindex(REST[0]) : log.rindex(REST[1])]
    return re.findall(r"^pawl\|LOG:  (?:statement|execute [^:]*): (.*)", between, re.MULTILINE)


def judge_processes(run: Run) -> list[Gate]:
    """One, two and three processes: reported, since two cores say little about them."""
    if not can_serve():
        print("  processes: skipped, this version has no `pawl serve --processes`")
        return []
    for number in PROCESSES:
        run.keep(best_of(run.rounds, processes(run, number), least="seconds"))
    return []


def processes(run: Run, number: int) -> Measure:
    """So many nodes empty a mailbox full of starts."""
    workflows = run.count(20_000, 3_000)
    return lambda: ours(
        "pg_processes", "drain", db=run.server.fresh(), processes=number, workflows=workflows
    )


PARTS: Final[dict[str, Callable[[Run], list[Gate]]]] = {
    "bare": judge_bare,
    "speed": judge_speed,
    "latency": judge_latency,
    "restart": judge_restart,
    "rest": judge_rest,
    "processes": judge_processes,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
