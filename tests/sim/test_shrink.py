"""Shrinking: a failure becomes a story that a person can read."""

from pawlflow.testing.sim.__main__ import main
from pawlflow.testing.sim.planted import planted
from pawlflow.testing.sim.run import run
from pawlflow.testing.sim.setup import setup_of
from pawlflow.testing.sim.shrink import fewest, shrink
from pawlflow.testing.sim.tape import load, play, save, tape_of


def test_the_fewest_that_still_fail_are_found():
    """Nothing can be taken from what is left."""
    assert fewest(range(100), lambda left: {17, 62} <= set(left)) == [17, 62]
    assert fewest(range(5), lambda _: True) == []
    assert fewest([1, 2, 3], lambda _: False) == [1, 2, 3]


def test_a_failure_shrinks_to_a_tape_that_tells_it(tmp_path):
    """Fewer faults, the same promise broken, in words; a tape is played from its file."""
    with planted("forward-undo"):
        outcome = run(setup_of(0))
    assert outcome.violation is not None
    tape = shrink(tape_of(outcome, "forward-undo"), 60)

    path = tmp_path / "tape.json"
    save(tape, path)

    assert len(tape.faults) <= len(outcome.fired)
    assert tape.violation.monitor == outcome.violation.monitor
    assert any("MONITOR 6" in line for line in tape.story)
    assert load(path) == tape
    assert play(load(path)).violation == tape.violation


def test_the_command_runs_seeds_bugs_and_tapes(tmp_path, capsys):
    """Exit 0 for clean seeds, 1 for a bug, and its tape can be played."""
    path = tmp_path / "tape.json"
    assert main(["--seeds", "0:2"]) == 0
    assert "violations: none" in capsys.readouterr().out
    assert main(["--seeds", "0", "--bug", "chain-broken", "--save", str(path)]) == 1
    assert main(["--tape", str(path), "--story"]) == 1
    assert "monitor 10" in capsys.readouterr().out
