"""kill -9 of who moves a store, anywhere: the next one goes on, and the bytes are the same."""

import subprocess
import sys

import pytest

from pawlflow.app import open_store
from pawlflow.store.port import StoreError
from tests.moving.child import LABELS
from tests.moving.kit import carried, differences, journals, the_same

KILLED = -9
LIVES_MAX = 400
ONCE = [
    ("source marked", 1, "store.moving"),
    ("target marked", 1, "store.moving"),
    ("written", 1, "store.moving"),
    ("framed", 1, "store.moving"),
    ("settled", 1, "store.moving"),
    ("source marked", 2, "store.moved"),
    ("before the release", 1, "store.moved"),
    ("after the release", 1, "store.moved"),
]


class Movers:
    """Gives birth to processes that move a store."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.moving.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def life(self, label, passages, source, target):
        """The exit code of one life, and what it said."""
        self.process.stdin.write(f"{label}\t{passages}\t{source}\t{target}\n")
        self.process.stdin.flush()
        said = []
        while not (line := self.process.stdout.readline()).startswith("exit"):
            assert line, "the movers are gone"
            said.append(line.strip())
        return int(line.split()[1]), said

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def movers():
    made = Movers()
    yield made
    made.close()


def refusal(url):
    """Why nobody may own a store."""
    store = open_store(url)
    try:
        store.claim()
    except StoreError as error:
        return error.code
    finally:
        store.close()
    return None


@pytest.mark.req("R219")
@pytest.mark.parametrize(("label", "passages", "code"), ONCE)
def test_a_move_that_was_killed_goes_on(movers, flight, postgres, label, passages, code):
    """Until then neither store is used: at no moment could both be."""
    before, server = journals(flight), postgres.fresh()

    assert movers.life(label, passages, flight, server) == (KILLED, [])

    assert refusal(flight) == code
    if label not in ("source marked", "after the release") or passages > 1:
        assert refusal(server) == "store.unfinished"
    moved = carried(flight, server)
    assert moved.already == (label == "after the release")
    assert journals(server) == before
    assert (refusal(flight), refusal(server)) == ("store.moved", None)


@pytest.mark.req("R219")
def test_a_move_is_killed_again_and_again(movers, flight, postgres):
    """Each life a little longer than the last one: pages, marks, transactions half way."""
    before, server = journals(flight), postgres.fresh()
    lives = [movers.life("statement", passages, flight, server) for passages in range(24, 124, 9)]
    assert {code for code, _ in lives} == {KILLED}, lives

    assert carried(flight, server).resumed
    assert journals(server) == before
    assert differences(server) == []


@pytest.mark.req("R219")
def test_a_move_into_a_file_is_killed_again_and_again(movers, flight, tmp_path):
    """Before each commit that goes to the new file."""
    before, file = journals(flight), f"sqlite:///{tmp_path}/new.db"
    lives = [movers.life("file written", passages, flight, file) for passages in (1, 2, 3, 5, 8)]
    assert {code for code, _ in lives} == {KILLED}, lives

    carried(flight, file)
    assert the_same(journals(file), before)
    assert differences(file) == []


@pytest.mark.slow
@pytest.mark.req("R219")
@pytest.mark.parametrize("label", ["statement", "written", "framed"])
def test_a_move_is_killed_at_every_point(movers, flight, postgres, tmp_path, label):
    """At each passage of a label once, from the beginning, until there are no more."""
    assert label in LABELS
    before = journals(flight)
    for passages in range(1, LIVES_MAX):
        copy, server = f"sqlite:///{tmp_path}/copy-{passages}.db", postgres.fresh()
        (tmp_path / f"copy-{passages}.db").write_bytes((tmp_path / "flight.db").read_bytes())
        code, said = movers.life(label, passages, copy, server)
        assert said == []
        carried(copy, server)
        assert journals(server) == before
        if code == 0:
            break
    assert code == 0
