"""kill -9 at every border of every checkpoint: what was kept is never run again."""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import msgspec
import pytest

from pawlflow.kernel.state import Instance
from pawlflow.model.ids import InstanceId, Tenant
from pawlflow.projections.checkpoints import checkpoints
from pawlflow.projections.proof import verify_store
from pawlflow.projections.reading import UnknownInstanceError, story_of
from pawlflow.projections.story import state_at
from pawlflow.store.sqlite import SqliteStore
from tests.crash.loop_child import LABELS, Spec, ran

ROOT = Path(__file__).resolve().parent.parent.parent
KILLED = -signal.SIGKILL
RESULT = {
    "found": [[1, "tides", 1], [2, "tides", 1]],
    "both": ["l", "r"],
}
# Functions by the names of their checkpoints.
NAMES = {
    "plan": "plan",
    "round-1/search": "search-1",
    "round-2/search": "search-2",
    "left": "left",
    "right": "right",
}


class Births:
    """Gives birth to processes that will be killed."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.loop_child"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, spec: Spec) -> tuple[int, object]:
        """One process from birth to death: its exit code, and the result if it came to one."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(msgspec.json.encode(spec).decode() + "\n")
        self.process.stdin.flush()
        result: object = None
        for line in self.process.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "exit":
                return int(rest), result
            assert word == "result", line
            result = json.loads(rest)
        raise AssertionError("the nursery is gone")

    def close(self) -> None:
        """No more births."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def births() -> Iterator[Births]:
    made = Births()
    yield made
    made.close()


def kept(path: Path) -> list[str]:
    """The functions whose results are durable, as the file says."""
    store = SqliteStore(path)
    try:
        state = state_at(story_of(store, Tenant("default"), InstanceId("r-1")))
        assert isinstance(state, Instance)
        return [NAMES[each["name"]] for each in checkpoints(store, state, "research")]
    except UnknownInstanceError:
        return []
    finally:
        store.close()


def check_end(path: Path) -> None:
    """The journal holds every result once, and verifies."""
    assert sorted(kept(path)) == sorted(NAMES.values())
    store = SqliteStore(path)
    report = verify_store(store)
    store.close()
    assert report.differences == []


@pytest.mark.req("R220", "R140", "R141")
@pytest.mark.parametrize("driver", ["inline", "thread"])
@pytest.mark.parametrize("label", LABELS)
def test_killed_at_every_border_of_every_checkpoint(births, tmp_path, label, driver):
    """One crash: what was kept ran once, what was not at most once more, the result is the same."""
    kills = 0
    for passages in count(1):
        path = tmp_path / f"{passages}.db"
        spec = Spec(str(path), driver, label, passages)
        code, result = births.run(spec)
        if code == 0:  # so many passages there are not
            assert result == RESULT
            break
        kills += 1
        assert code == KILLED
        before, durable = Counter(ran(path)), kept(path)
        assert max(before.values(), default=0) <= 1

        spec.label, spec.newer = "", passages % 2 == 0  # every other time the code is edited
        assert births.run(spec) == (0, RESULT)

        after = Counter(ran(path))
        assert {name: after[name] for name in durable} == dict.fromkeys(durable, 1)
        assert all(
            after[name] == 1 + before[name] for name in NAMES.values() if name not in durable
        )
        check_end(path)
    assert kills >= len(NAMES) - 1  # of two at a time, both may be in one commit


@pytest.mark.req("R220", "R140")
@pytest.mark.parametrize("driver", ["inline", "thread"])
def test_killed_after_each_commit_in_turn(births, tmp_path, driver):
    """Each life keeps one thing more: no function ever runs twice, and it comes to its end."""
    path = tmp_path / "pawl.db"
    spec = Spec(str(path), driver, "after the commit", 1)
    lives = 0
    while (outcome := births.run(spec))[0] == KILLED:
        lives += 1
        spec.newer = not spec.newer
        assert lives <= len(NAMES) + 1
    assert outcome == (0, RESULT)
    once = Counter(ran(path))
    # Of two at a time, one may have run and not been kept when the other's commit was the last.
    assert all(once[name] == 1 for name in ("plan", "search-1", "search-2"))
    assert once["left"] + once["right"] <= 3
    check_end(path)
