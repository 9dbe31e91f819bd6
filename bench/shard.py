"""The shard's promises in figures, beside DBOS in the same run: python -m bench.shard [--quick].

Every measurement is a process of its own on a new file; rounds take turns, so that a noisy minute
meets everybody. Writes OUT/shard.json and OUT/shard.svg.
"""

import argparse
import subprocess
import sys
from typing import Final

from bench.judge import (
    OUT,
    Gate,
    Line,
    Measure,
    PeerMissingError,
    at_least,
    at_most,
    best_of,
    best_of_each,
    failed,
    ours,
    peer,
    read_lines,
    show_gates,
    write_report,
)
from bench.plot import Chart, write_bars
from bench.timing import ROUNDS

IN_FLIGHT: Final = (1, 10, 100, 1_000)
STEPS: Final = 3
TURNS: Final = 4  # of a workflow of three steps
DBOS_BEST: Final = {"form": "call", "in_flight": 1, "workflows": 500}  # found by its sweep
DBOS_TWO: Final = {"processes": 2, "form": "call", "in_flight": 4, "workflows": 500}
WAYS: Final[dict[str, Line]] = {  # in which ours is measured: as one process, and as two nodes
    "inline": {"module": "pawl_steps", "driver": "inline"},
    "thread": {"module": "pawl_steps", "driver": "thread"},
    "two processes": {"module": "pawl_nodes", "driver": "inline"},
}


def main(arguments: list[str]) -> int:
    """Measure, judge, keep; exit 1 if a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round, small numbers")
    parser.add_argument("--gate", action="store_true", help="exit 1 if a limit is passed")
    options = parser.parse_args(arguments)
    rounds = 1 if options.quick else ROUNDS
    lines: list[Line] = []
    gates = [*judge_speed(rounds, lines), *judge_parked(lines, quick=options.quick)]
    show_gates(gates)
    write_report("shard", gates, lines)
    print(f"kept in {OUT / 'shard.json'} and {OUT / 'shard.svg'}")
    missed = failed(gates)
    print(f"not kept: {', '.join(missed)}" if missed else "every promise is kept")
    return 1 if options.gate and missed else 0


def judge_speed(rounds: int, lines: list[Line]) -> list[Gate]:
    """Throughput, latency and joins, against DBOS and against bare rows."""
    measures: dict[str, Measure] = {way: steps(way) for way in WAYS} | {"bare rows": bare_rows}
    there = peer_there()
    if there:
        measures["dbos"] = lambda: peer("dbos_steps", "throughput", **DBOS_BEST)
        measures["dbos, two processes"] = lambda: peer("dbos_processes", "throughput", **DBOS_TWO)
    best = best_of_each(rounds, measures, least="seconds")
    alone = best_of(rounds, lambda: ours("pawl_steps", "latency"), least="p50_ms")
    join = best_of(rounds, lambda: ours("pawl_steps", "join"), least="p50_ms")
    lines += [*best.values(), alone, join]
    bare = best.pop("bare rows")
    rates = {name: float(line["steps_per_s"]) for name, line in best.items()}
    print("steps/s:", ", ".join(f"{name} {rates[name]:,.0f}" for name in rates))
    way = max(WAYS, key=lambda name: rates[name])
    cheapest = min(float(best[name]["cpu_ms_per_workflow"]) for name in WAYS)
    gates = [
        at_least(f"three steps, 1,000 in flight ({way})", rates[way], 10_000, "steps/s"),
        at_most("CPU per 3-step workflow", cheapest, 0.4, "ms"),
        at_most("one in flight, p50 (inline)", float(alone["p50_ms"]), 2.5, "ms"),
        at_most("100 parallel steps joined, p50 (inline)", float(join["p50_ms"]), 12, "ms"),
        at_least("share of bare rows", share_of(best[way], bare), 0.4, ""),
    ]
    if there:
        theirs = max(rates["dbos"], rates["dbos, two processes"])
        gates.append(at_least("times DBOS at its best", rates[way] / theirs, 30, "times"))
        draw(way, rates[way], theirs)
    return gates


def share_of(line: Line, bare: Line) -> float:
    """How much of the rate of bare rows is left; of several processes, while all are at work."""
    rate = line.get("steady_steps_per_s") or line["steps_per_s"]
    return float(rate) / float(bare["steps_per_s"])


def steps(way: str, in_flight: int = 1_000, workflows: int = 12_000) -> Measure:
    """Ours, in one of its ways."""
    options = dict(WAYS[way])
    module = options.pop("module")
    return lambda: ours(module, "throughput", in_flight=in_flight, workflows=workflows, **options)


def peer_there() -> bool:
    """Is DBOS installed?"""
    try:
        peer("dbos_steps", "throughput", form="call", in_flight=1, workflows=20)
    except PeerMissingError as error:
        print(f"without DBOS: {error}")
        return False
    return True


def bare_rows() -> Line:
    """The same rows in the same tables with no engine: batches made before the clock starts."""
    command = [sys.executable, "-m", "bench.store", "--rounds", "1"]
    ran = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE)
    [line] = [each for each in read_lines(ran.stdout) if each["bench"].endswith("sqlite")]
    rate = line["entries_per_s"] * STEPS / TURNS
    return {**line, "steps_per_s": rate, "seconds": 1 / rate}


def draw(way: str, rate: float, theirs: float) -> None:
    """Steps a second by how many are in flight; DBOS at its best beside the most of ours."""
    by_flight = {"1": float(steps("inline", 1, 400)()["steps_per_s"])}
    for n in IN_FLIGHT[1:-1]:
        by_flight[str(n)] = float(steps(way, n, max(400, 8 * n))()["steps_per_s"])
    by_flight[str(IN_FLIGHT[-1])] = rate
    sweep = {str(n): theirs if n == 1 else dbos_rate(n) for n in IN_FLIGHT}
    chart = Chart(
        title=f"Three no-op durable steps on SQLite, synchronous=FULL ({way})",
        x="workflows in flight",
        y="steps per second",
        series={"Pawl": by_flight, "DBOS": sweep},
    )
    OUT.mkdir(parents=True, exist_ok=True)
    write_bars(OUT / "shard.svg", chart)


def dbos_rate(in_flight: int) -> float:
    """DBOS with so many in flight."""
    line = peer("dbos_steps", "throughput", form="call", in_flight=in_flight, workflows=300)
    return float(line["steps_per_s"])


def judge_parked(lines: list[Line], *, quick: bool) -> list[Gate]:
    """Memory of parked instances, waking one, coming back, and being at rest."""
    many = 50_000 if quick else 1_000_000
    flying = 10_000 if quick else 100_000
    parked = ours("parked", "parked", instances=many)
    back = ours("parked", "restart", instances=flying)
    rest = ours("parked", "idle", seconds=2 if quick else 10)
    lines += [parked, back, rest]
    return [
        at_most(f"{many:,} parked instances, growth", float(parked["grown_mb"]), 150, "MB"),
        at_most("waking one of them, p50", float(parked["wake_p50_ms"]), 5, "ms"),
        at_most(f"restart with {flying:,} in flight", float(back["first_commit_s"]), 3, "s"),
        at_most("statements of an engine at rest", float(rest["statements"]), 0, ""),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
