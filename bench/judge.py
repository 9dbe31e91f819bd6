"""Judging against a peer: its runs, the best of some, ratios, and a table of gates.

A line is one measurement as a program prints it: a JSON object with `engine` and `mode`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from bench.timing import circumstances

HERE: Final = Path(__file__).parent
OUT: Final = Path(os.environ.get("BENCH_OUT") or HERE / "out")
PEER: Final = Path(os.environ.get("BENCH_PEER") or HERE.parent / ".venv-bench" / "bin" / "python")
FOLDER: Final = "/var/tmp"  # by convention a disk, where /tmp may be memory
NODE_PEERS: Final = Path(os.environ.get("BENCH_PEERS") or HERE.parent / ".cache" / "peers")
SECONDS_MAX: Final = 900
PEER_SECONDS_MAX: Final = 120

Line = dict[str, Any]
Measure = Callable[[], Line]


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """A promise: what was measured, and the limit it must keep to."""

    name: str
    measured: float
    limit: float
    bound: Literal["at least", "at most"]
    unit: str = ""
    calm: bool = True  # else a limit that is passed proves nothing

    @property
    def ok(self) -> bool:
        """Is the promise kept?"""
        if self.bound == "at least":
            return self.measured >= self.limit
        return self.measured <= self.limit

    @property
    def verdict(self) -> Literal["pass", "FAIL", "void"]:
        """The same in a word."""
        if self.ok:
            return "pass"
        return "FAIL" if self.calm else "void"


class PeerMissingError(Exception):
    """The peer is not installed; the message says how to."""


# Measuring


def best_of(times: int, measure: Measure, *, least: str) -> Line:
    """Measure so often; the line whose field `least` is the smallest is the figure."""
    return best_of_each(times, {"only": measure}, least=least)["only"]


def best_of_each(times: int, measures: Mapping[str, Measure], *, least: str) -> dict[str, Line]:
    """The same for several, in turn: a noisy minute meets each of them."""
    rounds = [{name: measure() for name, measure in measures.items()} for _ in range(times)]
    return {name: min((line[name] for line in rounds), key=by(least)) for name in measures}


def ours(module: str, mode: str, **options: object) -> Line:
    """One measurement by a process of its own; in_flight=8 becomes --in-flight 8."""
    return run_for_line(
        [sys.executable, "-m", f"bench.{module}", mode, *words(options)], SECONDS_MAX
    )


def by(field: str) -> Callable[[Line], float]:
    """Order lines by a field."""
    return lambda line: float(line[field])


def peer(script: str, mode: str, **options: object) -> Line:
    """One run of a peer's script by its own interpreter."""
    if not PEER.exists():
        raise PeerMissingError(f"there is no {PEER}; `make peers` makes it")
    path = HERE / "peers" / f"{script}.py"
    return run_for_line([str(PEER), str(path), mode, *words(options)], PEER_SECONDS_MAX)


def words(options: Mapping[str, object]) -> list[str]:
    """Options as a command line has them."""
    pairs = [(f"--{name.replace('_', '-')}", str(value)) for name, value in options.items()]
    return [word for pair in pairs for word in pair]


def run_for_line(command: list[str], seconds_max: float) -> Line:
    """The one line that a program prints."""
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as ran:
        try:
            said, _ = ran.communicate(timeout=seconds_max)
        except BaseException:
            ran.terminate()  # not killed: it ends what it started itself
            raise
    if ran.returncode:
        raise subprocess.CalledProcessError(ran.returncode, command)
    (line,) = read_lines(said)
    return line


def read_lines(text: str) -> list[Line]:
    """The lines of a program's output that are JSON objects; others are chatter."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def ratio(ours: Line, theirs: Line, field: str) -> float:
    """How many times the peer's figure ours is."""
    assert theirs[field] > 0, f"the peer has no {field}: {theirs}"
    return float(ours[field] / theirs[field])


# Judging


def show_gates(gates: Iterable[Gate]) -> None:
    """Print the table."""
    rows = [gate_row(gate) for gate in gates]
    wide = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{cell:{width}}" for cell, width in zip(row, wide, strict=True)]
        print("  ".join(cells).rstrip())


def gate_row(gate: Gate) -> tuple[str, str, str, str]:
    """One promise in words."""
    measured = f"{number(gate.measured)} {gate.unit}".rstrip()
    return gate.name, measured, f"{gate.bound} {number(gate.limit)}", gate.verdict


def number(value: float) -> str:
    """A figure with as many digits as one reads."""
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:,.3g}"


def failed(gates: Iterable[Gate]) -> list[str]:
    """The names of the promises that were not kept."""
    return [gate.name for gate in gates if gate.verdict == "FAIL"]


def at_least(name: str, measured: float, limit: float, unit: str, *, calm: bool = True) -> Gate:
    """A promise from below."""
    return Gate(name=name, measured=measured, limit=limit, bound="at least", unit=unit, calm=calm)


def at_most(name: str, measured: float, limit: float, unit: str, *, calm: bool = True) -> Gate:
    """A promise from above."""
    return Gate(name=name, measured=measured, limit=limit, bound="at most", unit=unit, calm=calm)


def write_report(name: str, gates: list[Gate], lines: list[Line]) -> Path:
    """Keep gates and lines for other programs: OUT/NAME.json."""
    judged = [{**msgspec.to_builtins(gate), "verdict": gate.verdict} for gate in gates]
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{name}.json"
    body = {**circumstances(), "gates": judged, "lines": lines}
    path.write_text(json.dumps(body, indent=2) + "\n")
    return path
