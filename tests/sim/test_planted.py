"""The test of the tests: bugs planted in the engine, kernel and store, and found by a monitor."""

from pathlib import Path

import pytest

from pawlflow.testing.sim.planted import BUGS, planted
from pawlflow.testing.sim.run import run
from pawlflow.testing.sim.setup import setup_of
from pawlflow.testing.sim.tape import load, play

pytestmark = pytest.mark.timeout(600)  # minutes of work, if the machine is busy

TAPES = Path(__file__).parent / "tapes"
SEEDS_MAX = 200


def test_every_bug_has_its_tape():
    """At least eighty, each recorded by the first seed that hit it, with its story."""
    assert {path.stem for path in TAPES.glob("*.json")} == set(BUGS)
    assert len(BUGS) >= 80


@pytest.mark.req("R112", "R119", "R122", "R150", "R151", "R155", "R156", "R205", "R214", "R215")
@pytest.mark.req("R225", "R226")
@pytest.mark.parametrize("name", sorted(BUGS))
def test_the_tape_of_a_bug_still_shows_it(name):
    """With the bug, the monitor that found it finds it again; without, nothing is broken."""
    tape = load(TAPES / f"{name}.json")
    assert tape.bug == name

    with_bug = play(tape)
    without = run(tape.setup, frozenset(tape.faults))

    assert with_bug.violation is not None
    assert with_bug.violation.monitor == tape.violation.monitor
    assert without.violation is None


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BUGS))
def test_a_bug_is_found_from_nothing(name):
    """Within 200 seeds of its profile, without a tape."""
    for seed in range(SEEDS_MAX):
        with planted(name):
            if run(setup_of(seed, BUGS[name].profile)).violation is not None:
                return
    pytest.fail(f"{name} was not found in {SEEDS_MAX} seeds")
