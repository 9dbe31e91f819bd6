"""kill -9 at every point of the flush path: nothing acknowledged is lost, nothing is done twice."""

import json
import random
import subprocess
import sys
from collections import Counter
from itertools import count

import pytest

from tests.crash.disk import cut_power
from tests.crash.parent import KILLED, ROOT, Trial, check_world, outlines
from tests.crash.points import LABELS, PASSAGES

DRIVERS = ["inline", "thread"]
AT_LABELS = [each for each in LABELS if each != "any"]
LIVES = 5  # of a random trial, before the last one
SLOW_KILLS = 1_000  # for each driver


def check_end(trial: Trial, untouched: dict[str, object]) -> None:
    """After the last life everything is as if there had been only one."""
    trial.finish()
    assert trial.closed.keys() == trial.started == untouched.keys()
    assert trial.closed == {**dict.fromkeys(untouched, "completed"), "saga-1": "failed"}
    assert outlines(trial.path) == untouched
    check_world(trial)


@pytest.mark.req("R27", "R39", "R140", "R141", "R142", "R143", "R148")
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("label", AT_LABELS)
def test_killed_at_a_label(nursery, untouched, tmp_path, label, driver):
    """At its first passage, in the middle, and near the end: each life goes on from the last."""
    pages = 20 if label.startswith("checkpoint") else 10_000
    trial = Trial(nursery, tmp_path / "pawl.db", driver, turns=1, pages=pages)
    most = PASSAGES[label]
    for passages in sorted({1, (most + 2) // 3, (2 * most + 2) // 3}):
        trial.cycle(label, passages)
    assert trial.kills[label] >= 1
    check_end(trial, untouched)


@pytest.mark.req("R27", "R39", "R143")
@pytest.mark.parametrize("driver", DRIVERS)
def test_killed_after_each_effect_that_is_out(nursery, untouched, tmp_path, driver):
    """Of n effects, k are out or done when the process dies: all k."""
    trial = Trial(nursery, tmp_path / "pawl.db", driver)
    for label in ("P7 published", "P7 done"):
        for passages in range(1, 6):
            trial.cycle(label, passages)
    assert trial.kills.total() >= 8
    check_end(trial, untouched)


@pytest.mark.req("R140", "R141")
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("seed", range(3))
def test_killed_anywhere(nursery, untouched, tmp_path, seed, driver):
    """At a random passage of a random label, by the clock, or after so many acknowledgements."""
    trial = Trial(nursery, tmp_path / "pawl.db", driver)
    kill_anywhere(trial, random.Random(seed), LIVES)
    check_end(trial, untouched)


def kill_anywhere(trial: Trial, chance: random.Random, lives: int) -> None:
    """Some lives, each cut short somewhere."""
    for _ in range(lives):
        trial.spec.turns = chance.choice([1, 500])
        trial.spec.pages = chance.choice([20, 10_000])
        if chance.random() < 0.25:
            trial.cycle(until=chance.randint(1, 12))
        else:
            label = chance.choice(list(LABELS))
            trial.cycle(label, chance.randint(1, (PASSAGES[label] + 3) // 4))


@pytest.mark.slow
@pytest.mark.req("R140", "R141", "R142", "R143")
@pytest.mark.parametrize("driver", DRIVERS)
def test_killed_thousands_of_times(nursery, untouched, tmp_path, driver):
    """A new file every 10 lives, most of them ended at random."""
    kills: Counter[str] = Counter()
    for seed in count(1_000):
        folder = tmp_path / str(seed)
        folder.mkdir()
        trial = Trial(nursery, folder / "pawl.db", driver)
        kill_anywhere(trial, random.Random(seed), 10)
        check_end(trial, untouched)
        kills += trial.kills
        if kills.total() >= SLOW_KILLS:
            break
    assert kills.keys() >= set(AT_LABELS)


def test_a_cold_process_recovers(nursery, untouched, tmp_path):
    """The same with processes that were not forked, but started as a user starts them."""
    trial = Trial(nursery, tmp_path / "pawl.db", "inline")
    spec = {"path": str(trial.path), "label": "P5 flushed", "passages": 9}
    command = [sys.executable, "-m", "tests.crash.child"]
    killed = subprocess.run([*command, json.dumps(spec)], cwd=ROOT, stdout=-1, check=False)
    assert killed.returncode == KILLED
    for line in killed.stdout.decode().splitlines():
        trial.note(line)
    last = subprocess.run([*command, json.dumps({"path": str(trial.path)})], cwd=ROOT, check=True)
    assert last.returncode == 0
    check_end(trial, untouched)


@pytest.mark.parametrize(
    ("lie", "label", "passages"),
    [
        ("nothing is written", "P9 answered", 16),
        ("nothing is flushed", "P9 answered", 16),
        ("the world forgets", "P7 done", 3),
    ],
)
def test_a_lie_is_caught(nursery, untouched, tmp_path, lie, label, passages):
    """The test of the test: stores that keep nothing, a world that keeps no contract."""
    trial = Trial(nursery, tmp_path / "pawl.db", "inline", lie=lie, power=True)

    def whole_trial() -> None:
        cut(trial, label, passages, random.Random(0))
        check_end(trial, untouched)

    with pytest.raises(AssertionError):
        whole_trial()


# Power


def cut(trial: Trial, label: str, passages: int, chance: random.Random) -> None:
    """One life, and then the lights go out."""
    trial.cycle(label, passages, look=False)
    cut_power(trial.path, chance)
    trial.check_copy()


@pytest.mark.req("R140", "R142")
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("label", ["P3", "P4 in", "P4 before", "P5", "P6", "P9 answered", "check"])
def test_the_power_is_cut(nursery, untouched, tmp_path, label, driver):
    """Only what was flushed is there, and torn parts of what was not: the promises still hold."""
    chance = random.Random(label + driver)
    trial = Trial(nursery, tmp_path / "pawl.db", driver, power=True, turns=1, pages=20)
    label = next(each for each in LABELS if each.startswith(label))
    for passages in (1, 3, 7, 12):
        cut(trial, label, passages, chance)
    assert trial.kills[label] >= 1
    check_end(trial, untouched)


@pytest.mark.slow
@pytest.mark.parametrize("driver", DRIVERS)
def test_the_power_is_cut_hundreds_of_times(nursery, untouched, tmp_path, driver):
    """At any passage of any label, five times in the life of a file."""
    labels = [each for each in LABELS if each != "any"]
    for seed in range(100):
        chance = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        trial = Trial(nursery, folder / "pawl.db", driver, power=True)
        trial.spec.pages = chance.choice([20, 10_000])
        for _ in range(5):
            label = chance.choice(labels)
            cut(trial, label, chance.randint(1, (PASSAGES[label] + 3) // 4), chance)
        check_end(trial, untouched)
