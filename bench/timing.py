"""Timing: CPU seconds, the minimum of five, and a plain loop to tell how fast the machine was."""

import gc
import json
import os
import platform
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final, Literal

import msgspec

ROUNDS: Final = 5
CALM: Final = 1.10  # two calibrations further apart than this: the machine was busy
LOOPS: Final = 200_000

Verdict = Literal["pass", "FAIL", "void", ""]
Work = Callable[[], object]


class Sample(msgspec.Struct, frozen=True):
    """Five runs of one thing, in seconds per unit of it."""

    best: float
    worst: float

    @property
    def spread(self) -> float:
        """How far the slowest run was from the fastest."""
        return self.worst / self.best - 1


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table. Without a limit it is reported, not judged."""

    name: str
    value: float
    unit: str
    spread: float | None = None
    limit: float | None = None
    verdict: Verdict = ""
    note: str = ""


def cpu(work: Work) -> float:
    """The CPU seconds of one run; what came before left no garbage to it."""
    gc.collect()
    begun = process_time()
    work()
    return process_time() - begun


def sample(work: Work, units: int) -> Sample:
    """Five runs of some work that does this many units."""
    (only,) = sample_together([(work, units)])
    return only


def sample_together(works: list[tuple[Work, int]]) -> list[Sample]:
    """Five rounds of all works in turn, so that a noisy minute meets each of them."""
    rounds = [[cpu(work) / units for work, units in works] for _ in range(ROUNDS)]
    return [Sample(min(times), max(times)) for times in zip(*rounds, strict=True)]


def sample_apart(makers: list[tuple[Callable[[], Work], int]]) -> list[Sample]:
    """The same, each work made and done in a process of its own, on a heap that holds nothing else.

    Python's collector walks all that is alive, so one plan would pay for another's size, or hide
    its own share behind it.
    """
    apart = get_context("fork")
    ends: list[Connection] = []
    for make, _ in makers:
        end, other = apart.Pipe()
        apart.Process(target=work_apart, args=(make, other), daemon=True).start()
        ends.append(end)
        assert end.recv() == "made"
    rounds = []
    for _ in range(ROUNDS):
        taken = []
        for end, (_, units) in zip(ends, makers, strict=True):
            end.send("go")
            taken.append(end.recv() / units)
        rounds.append(taken)
    return [Sample(min(times), max(times)) for times in zip(*rounds, strict=True)]


def work_apart(make: Callable[[], Work], end: Connection) -> None:
    """The other process: make the work, then do it once whenever asked."""
    work = make()
    end.send("made")
    for _ in range(ROUNDS):
        end.recv()
        end.send(cpu(work))


def calibrate() -> float:
    """CPU microseconds for one pass of plain Python: look-ups, sums, small objects."""
    return min(cpu(plain_loop) for _ in range(ROUNDS)) / LOOPS * 1e6


def is_calm() -> bool:
    """Is there a processor for us whenever we want one? Some plain Python tells."""
    began, spent = perf_counter(), process_time()
    for _ in range(ROUNDS):
        plain_loop()
    return perf_counter() - began <= CALM * (process_time() - spent)


def plain_loop() -> int:
    """A fixed amount of what interpreters do all day."""
    table = {number: str(number) for number in range(64)}
    total = 0
    for number in range(LOOPS):
        pair = (number, table[number & 63])
        total += pair[0] + len(pair[1])
    return total


def within(value: float, limit: float, *, calm: bool = True) -> Verdict:
    """Judge a figure. On a busy machine it proves nothing, unless it is good all the same."""
    if value <= limit:
        return "pass"
    return "FAIL" if calm else "void"


def microseconds(name: str, taken: Sample, unit: str, note: str = "") -> Figure:
    """A figure in microseconds, reported only."""
    return Figure(name=name, value=taken.best * 1e6, unit=unit, spread=taken.spread, note=note)


def circumstances() -> dict[str, Any]:
    """What a figure was measured on."""
    return {
        "python": f"{platform.python_version()} ({' '.join(platform.python_build())})",
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "rounds": ROUNDS,
    }


def show(figures: list[Figure]) -> None:
    """Print the table."""
    wide = max(len(figure.name) for figure in figures)
    for figure in figures:
        spread = "" if figure.spread is None else f"+{figure.spread * 100:.0f} %"
        limit = "" if figure.limit is None else f"at most {figure.limit:g}: {figure.verdict}"
        value = f"{figure.value:,.0f}" if figure.value >= 1_000 else f"{figure.value:,.2f}"
        line = (
            f"{figure.name:{wide}} {value:>10} {figure.unit:9} {spread:>6}  {limit or figure.note}"
        )
        print(line.rstrip())


def write_json(path: Path, figures: list[Figure]) -> None:
    """Keep the table for other programs."""
    body = {**circumstances(), "figures": msgspec.to_builtins(figures)}
    path.write_text(json.dumps(body, indent=2) + "\n")
