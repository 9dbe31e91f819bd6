"""Recording: the first seed that shows a planted bug, shrunk to a tape that can be kept."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pawlflow.testing.sim.planted import BUGS, planted
from pawlflow.testing.sim.run import Outcome, run
from pawlflow.testing.sim.setup import setup_of
from pawlflow.testing.sim.shrink import RUNS_MAX, shrink
from pawlflow.testing.sim.tape import Tape, load, play, save, tape_of

SEEDS_MAX: Final = 200  # a bug that takes more has lost its monitor


def find(bug: str, seeds: Iterable[int] = range(SEEDS_MAX)) -> Outcome | None:
    """The first run in which the bug is seen."""
    for seed in seeds:
        with planted(bug):  # each time anew: some bugs remember
            outcome = run(setup_of(seed, BUGS[bug].profile))
        if outcome.violation is not None:
            return outcome
    return None


def shows(tape: Tape) -> bool:
    """Does this tape still show its bug, and nothing without it?"""
    outcome = play(tape)
    return outcome.violation is not None and outcome.violation.monitor == tape.violation.monitor


def record(bug: str, folder: Path, runs_max: int = RUNS_MAX) -> str:
    """Keep a tape of this bug, unless there is one that still shows it; says what was done."""
    path = folder / f"{bug}.json"
    if path.exists() and shows(load(path)):
        return "as before"
    outcome = find(bug)
    if outcome is None:
        return f"not found in {SEEDS_MAX} seeds"
    tape = shrink(tape_of(outcome, bug), runs_max)
    save(tape, path)
    seen = f"monitor {tape.violation.monitor}, seed {tape.setup.seed}"
    return f"{seen}, {len(outcome.fired)} faults shrunk to {len(tape.faults)}"
