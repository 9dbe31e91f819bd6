"""Seats of nodes on one file: who is alive, who owns what, and what puts it right again."""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from contextlib import nullcontext

import pytest

from pawlflow import PawlError
from pawlflow.nodes import Node
from pawlflow.store.port import SHARDS
from pawlflow.store.sqlite import SqliteStore
from pawlflow.store.sqlite_owner import Ownership
from pawlflow.store.sqlite_seats import Seat, Seated, folder_of, seats
from pawlflow.store.sqlite_work import Pen
from tests.nodes.kit import PAWL

pytestmark = [pytest.mark.req("R228", "R143"), pytest.mark.timeout(300)]


async def until(holds):
    """Wait until something holds, as it will."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110  # several nodes, and no event for it
            await asyncio.sleep(0.01)


def test_a_node_whose_loop_hangs_is_not_alive(tmp_path, monkeypatch):
    """Others go on with what it had; it lets go when it wakes, and takes its share again."""
    monkeypatch.setattr("pawlflow.nodes.STUCK_S", 0.2)
    url = f"sqlite:///{tmp_path}/pawl.db"
    path = tmp_path / "pawl.db"

    async def run():
        async with Node(url) as node:
            held = node.held
            end = time.monotonic() + 30
            while seats(path):
                assert time.monotonic() < end
            await until(lambda: seats(path) and len(node.held) == SHARDS)
            return held, node.held

    before, after = asyncio.run(run())
    assert before == after == tuple(range(SHARDS))


def test_two_that_say_to_own_the_same_come_to_an_even_share_again(tmp_path):
    """Each lets go of what another one says to have, and says so; then it is anybody's."""
    url = f"sqlite:///{tmp_path}/pawl.db"

    async def run():
        async with Node(url) as one, Node(url) as two:
            await until(lambda: len(one.held) == len(two.held))
            for node in (one, two):
                node.store._seat.own(range(SHARDS))
                node.membership.look()
            path, shares = tmp_path / "pawl.db", {SHARDS // 2}
            await until(lambda: {len(each.shards) for each in seats(path).values()} == shares)
            await until(lambda: {len(node.held) for node in (one, two)} == shares)
            return sorted(one.held + two.held)

    assert asyncio.run(run()) == list(range(SHARDS))


def test_a_node_whose_file_was_taken_away_sits_down_again(tmp_path):
    """Somebody cleaned up: it begins with nothing, and takes its share."""
    url, path = f"sqlite:///{tmp_path}/pawl.db", tmp_path / "pawl.db"

    async def run():
        async with Node(url) as node:
            shutil.rmtree(folder_of(path))
            node.membership.look()
            await until(lambda: [len(each.shards) for each in seats(path).values()] == [SHARDS])
            await until(lambda: len(node.held) == SHARDS)
            return node.held

    assert asyncio.run(run()) == tuple(range(SHARDS))


def test_by_two_names_it_is_one_file(tmp_path):
    """A link to the file has the same owner, and the same nodes."""
    path, link = tmp_path / "pawl.db", tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    SqliteStore(path).close()
    link.symlink_to(path)
    alone = Ownership(path)
    with pytest.raises(PawlError) as refused:
        Ownership(link)
    alone.release()
    seat = Seat(link)
    seen = seats(path)
    seat.leave()

    assert refused.value.code == "store.owned"
    assert list(seen) == [seat.node]
    assert list(link.parent.iterdir()) == [link]


FORKS = """\
import os, sys
from pathlib import Path
from pawlflow.store.sqlite_owner import Ownership
from pawlflow.store.sqlite_seats import Seat
from pawlflow.store.sqlite_work import Pen
path = Path(sys.argv[1])
owning, seat, pen = Ownership(path, shared=True), Seat(path), Pen(path, patient=True)
seat.own([1])
if os.fork() == 0:
    print(os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
from contextlib import nullcontext
with pen.around(nullcontext()):
    sys.stdin.read()
"""


def test_a_forked_child_keeps_nothing_of_a_killed_node(tmp_path):
    """Its seat, its pen and its part of the file are free, though the child lives on."""
    path = tmp_path / "pawl.db"
    SqliteStore(path).close()
    words = [sys.executable, "-c", FORKS, str(path)]
    node = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child = int(node.stdout.readline())
    before = len(seats(path))
    node.kill()
    node.wait()
    os.kill(child, 0)  # it is there

    after = seats(path)
    pen = Pen(path, patient=True)
    with pen.around(nullcontext()):
        Ownership(path).release()
    pen.close()
    node.stdin.close()
    node.stdout.close()

    assert (before, after) == (1, {})


def test_a_lack_of_descriptors_takes_nobody_for_dead(tmp_path):
    """What cannot be looked at may be alive: then nothing is claimed, and nothing is swept away."""
    path = tmp_path / "pawl.db"
    SqliteStore(path).close()
    seat = Seat(path)
    code = (
        "import os, resource, sys; from pathlib import Path\n"
        "from pawlflow.store.poke import poke\n"
        "from pawlflow.store.port import StoreError\n"
        "from pawlflow.store.sqlite_seats import seated\n"
        "path, node = Path(sys.argv[1]), sys.argv[2]\n"
        "assert seated(path, node) is not None\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 1024))\n"
        "assert not poke(path)\n"
        "try:\n    seated(path, node)\n"
        "except StoreError as error:\n    print(error.code)\n"
    )
    words = [sys.executable, "-c", code, str(path), seat.node]
    told = subprocess.run(words, capture_output=True, text=True, check=False)
    left = list(seats(path))
    seat.leave()

    assert (told.stdout, told.stderr) == ("store.io\n", "")
    assert left == [seat.node]


@pytest.mark.parametrize(
    ("words", "code"),
    [(["nothing.yaml"], 4), (["--worker", "nothing.py"], 2), ([], 5)],
)
def test_what_can_never_serve_is_not_tried_again(tmp_path, words, code):
    """A file that is missing, or an owner that is there: the command ends, and says why."""
    owning = None
    if code == 5:
        SqliteStore(tmp_path / "p.db").close()
        owning = Ownership(tmp_path / "p.db")
    command = [*PAWL, "--db", f"sqlite:///{tmp_path}/p.db", "serve", *words, "--processes", "2"]
    told = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    if owning is not None:
        owning.release()

    assert told.returncode == code, told.stderr
    assert "started again" not in told.stderr


def test_a_seat_is_alive_as_long_as_its_process(tmp_path):
    """What a killed one left is swept away by the next who looks."""
    path = tmp_path / "pawl.db"
    SqliteStore(path).close()
    mine = Seat(path)
    mine.own([1, 2])
    code = (
        "import os, sys; from pathlib import Path; from pawlflow.store.sqlite_seats import Seat\n"
        "Seat(Path(sys.argv[1])).own([3]); print('seated', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", code, str(path)]
    other = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "seated\n"

    both = seats(path)
    other.kill()
    other.communicate()
    left = seats(path)

    assert sorted(each.shards for each in both.values()) == [[1, 2], [3]]
    assert {each.pid for each in both.values()} == {os.getpid(), other.pid}
    assert left == {mine.node: Seated(os.getpid(), os.uname().nodename, [1, 2])}
    mine.leave()
    assert seats(path) == {}
    assert not mine.own([5])
    assert list(folder_of(path).iterdir()) == []
