"""Instructions per turn, counted by callgrind: python -m bench.callgrind [--gate | --write].

The 3-step flow runs in two processes that differ only in how often; what one has more than the
other, divided by its turns, is the cost of a turn. Start-up, imports and warm-up cancel out.
"""

import argparse
import gc
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from bench.workloads import CHAIN_TURNS, chain_of_three, checked_plan, drive

BASELINE: Final = Path(__file__).with_suffix(".json")
ROOT: Final = Path(__file__).parents[1]
FEW, MANY = 100, 400  # runs of the flow; equally long as text, so that both stacks lie alike
WARM_UP: Final = 50  # runs; by then the interpreter has specialised its code, and caches are full
GATE: Final = 1.05
CHILD_SECONDS_MAX: Final = 120
SAME: Final = ("machine", "python", "build")  # a count means something only between equals
REWRITE: Final = "python -m bench.callgrind --write"
# Hashes depend on a seed, libcrypto's code path on the processor: both are pinned.
PINNED: Final = {"PYTHONHASHSEED": "0", "OPENSSL_ia32cap": "0:0", "LC_ALL": "C"}
KEPT: Final = ("PATH", "LD_LIBRARY_PATH")  # of the caller's environment


def main(arguments: list[str]) -> int:
    """Count, and compare with the baseline or replace it."""
    options = parse(arguments)
    if options.child is not None:
        return run_child(options.child)
    if shutil.which("valgrind") is None:
        return skip("valgrind is not installed")
    baseline = None if options.write else read_baseline()
    if options.gate and (why := why_not_comparable(baseline)):
        return skip(why)
    count = instructions_per_turn()
    if options.write:
        write_baseline(count)
        return 0
    return judge(count, baseline, gate=options.gate)


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="bench.callgrind", description=__doc__)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--gate", action="store_true", help="exit 1 at 5 %% above the baseline")
    choice.add_argument("--write", action="store_true", help="make this the baseline")
    choice.add_argument("--child", type=int, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def skip(why: str) -> int:
    """Say why nothing was judged."""
    print(f"instruction counts: skipped, {why}")
    return 0


# Counting


def run_child(runs: int) -> int:
    """The work that is counted. No collector: when it runs depends on all that ever ran before."""
    plan = checked_plan(chain_of_three())
    gc.collect()
    gc.disable()
    for _ in range(WARM_UP + runs):
        drive(plan)
    return 0


def instructions_per_turn() -> float:
    """Count both runs side by side: other processes do not change a count."""
    start_child(0, []).communicate(timeout=CHILD_SECONDS_MAX)  # leaves its bytecode on disk
    with tempfile.TemporaryDirectory() as folder:
        children = [(start_child(runs, callgrind(runs, folder)), runs) for runs in (FEW, MANY)]
        few, many = [finish_child(child, Path(folder, str(runs))) for child, runs in children]
    return (many - few) / ((MANY - FEW) * CHAIN_TURNS)


def callgrind(runs: int, folder: str) -> list[str]:
    """What counts a command when it is written before it."""
    return ["valgrind", "--tool=callgrind", f"--callgrind-out-file={Path(folder, str(runs))}"]


def start_child(runs: int, under: list[str]) -> subprocess.Popen[str]:
    """Start one run in an environment that is the same everywhere."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return subprocess.Popen(
        [*under, sys.executable, "-m", "bench.callgrind", "--child", str(runs)],
        cwd=ROOT,
        env=kept | PINNED,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish_child(child: subprocess.Popen[str], written: Path) -> int:
    """The instructions of one run, as callgrind sums them up."""
    said, _ = child.communicate(timeout=CHILD_SECONDS_MAX)
    if child.returncode != 0:
        raise RuntimeError(f"valgrind left with {child.returncode}:\n{said}")
    for line in written.read_text().splitlines():
        if line.startswith(("summary:", "totals:")):
            return int(line.split()[1])
    raise RuntimeError(f"callgrind wrote no summary:\n{said}")


# Judging


def here() -> dict[str, Any]:
    """What a count depends on beside our own code."""
    return {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "build": sys.version,
        "libraries": {name: version(name) for name in ("cbor2", "msgspec")},
    }


def read_baseline() -> dict[str, Any] | None:
    """The committed figure, if there is one."""
    return json.loads(BASELINE.read_text()) if BASELINE.exists() else None


def why_not_comparable(baseline: dict[str, Any] | None) -> str | None:
    """The reason why this machine's count says nothing about the baseline's, if there is one."""
    if baseline is None:
        return f"there is no {BASELINE.name}; {REWRITE} makes one"
    now = here()
    for name in SAME:
        if baseline[name] != now[name]:
            return f"{name} is {now[name]!r}, and the baseline was counted with {baseline[name]!r}"
    return None


def judge(count: float, baseline: dict[str, Any] | None, *, gate: bool) -> int:
    """Print the figure beside the baseline; with the gate, fail at 5 % above."""
    print(f"instructions per turn: {count:,.1f}")
    if why := why_not_comparable(baseline):
        print(f"not compared: {why}")
        return 0
    assert baseline is not None
    before = baseline["instructions_per_turn"]
    ratio = count / before
    print(f"baseline:              {before:,.1f} ({(ratio - 1) * 100:+.2f} %)")
    if ratio > GATE:
        return refuse(count, baseline, gate=gate)
    if ratio < 2 - GATE:
        print(f"Less by more than 5 %. To keep the gain: {REWRITE}")
    return 0


def refuse(count: float, baseline: dict[str, Any], *, gate: bool) -> int:
    """Say what to do about a dearer turn."""
    before = baseline["instructions_per_turn"]
    print(
        f"A turn costs {count:,.0f} instructions; the baseline is {before:,.0f} and 5 % are free."
    )
    if baseline["libraries"] != (libraries := here()["libraries"]):
        print(f"The libraries changed: {baseline['libraries']} to {libraries}.")
    print(
        f"Find what became dearer, or, if it is worth it: {REWRITE}, and commit it with a reason."
    )
    return 1 if gate else 0


def write_baseline(count: float) -> None:
    """Replace the committed figure."""
    notes = (
        f"3-step flow, {CHAIN_TURNS} turns a run, ({MANY} runs - {FEW} runs); admission included"
    )
    figures = {"instructions_per_turn": round(count, 1), **here(), "notes": notes}
    BASELINE.write_text(json.dumps(figures, indent=2) + "\n")
    print(f"instructions per turn: {count:,.1f}, written to {BASELINE}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
