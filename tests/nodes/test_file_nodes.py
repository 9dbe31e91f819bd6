"""Processes that share a file: killed again and again, nothing is lost and nothing done twice."""

import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess

import apsw
import pytest

from pawlflow import Pawl, PawlError
from pawlflow.nodes import Node
from pawlflow.store.port import SHARDS
from pawlflow.store.sqlite_owner import owner
from pawlflow.store.sqlite_seats import names, seats
from tests.nodes.kit import PAWL, Process, folder_for, start, until

COUNT = 600
pytestmark = [pytest.mark.req("R228", "R143"), pytest.mark.timeout(300)]
# What an outside service would do: it remembers the key with the work, so a repeated call is none.
WORKER = """\
import os
import sqlite3
from pawlflow import step

DB = sqlite3.connect(os.environ["WORK"], timeout=60, isolation_level=None)
DB.execute("PRAGMA synchronous=off")

@step(name="note")
async def note(ctx, n):
    DB.execute("INSERT OR IGNORE INTO work (key, n) VALUES (?, ?)", (ctx.key, n))
    return n + 1
"""


class Crew:
    """The processes of one `pawl serve`, and what there is to see of them."""

    def __init__(self, folder, processes, *more):
        self.folder = folder_for(folder)
        (folder / "notes.py").write_text(WORKER)
        self.path = folder / "pawl.db"
        self.url = f"sqlite:///{self.path}"
        self.work = sqlite3.connect(folder / "work.db", isolation_level=None)
        self.work.execute("CREATE TABLE work (key TEXT PRIMARY KEY, n INTEGER)")
        words = ("--processes", str(processes), *more)
        self.crew = Process(folder, self.url, str(folder / "work.db"), *words)
        self.crew.wait_ready()
        self.even(processes)

    def even(self, processes):
        """Until all are there, each with its share."""
        shares = [SHARDS // processes + (n < SHARDS % processes) for n in range(processes)]
        until(lambda: sorted(self.shares(), reverse=True) == shares)

    def shares(self):
        """How many shards each node owns."""
        return [len(each.shards) for each in seats(self.path).values()]

    def pids(self):
        """The processes that are nodes."""
        return [each.pid for each in seats(self.path).values()]

    def completed(self):
        """How many instances have completed."""
        return asked(self.path, "SELECT count(*) FROM cell WHERE state = 'completed'")

    def check(self, count):
        """Every instance has completed, every step has one result, the journal gives the same."""
        assert self.completed() == count
        found = self.work.execute("SELECT count(*), count(DISTINCT key) FROM work").fetchone()
        assert found == (3 * count, 3 * count)
        self.pawl("replay", "--all")

    def pawl(self, *words):
        """A command beside them."""
        told = subprocess.run(
            [*PAWL, "--db", self.url, *words, "--json"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert told.returncode == 0, told.stdout + told.stderr
        return json.loads(told.stdout)


def test_nodes_that_are_killed_are_replaced_and_nothing_is_lost(tmp_path):
    """Three share the file; one after the other dies in the middle of its work."""
    crew = Crew(tmp_path, 3)
    try:
        start(crew.url, tmp_path, 0, COUNT)
        for number in range(1, 4):
            until(lambda: crew.completed() > number * COUNT // 5)  # noqa: B023
            os.kill(crew.pids()[0], signal.SIGKILL)
        until(lambda: crew.completed() == COUNT)
        crew.even(3)
        assert crew.pawl("doctor")["checks"]
    finally:
        code = crew.crew.end()

    assert code == 0
    crew.check(COUNT)
    assert names(crew.path) == []
    assert owner(crew.path) is None


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_forty_kills_under_load_lose_nothing(tmp_path):
    """Whichever node it is, and however many instances later: all complete, none twice."""
    chance = random.Random(7)
    crew, count = Crew(tmp_path, 3), 0
    try:
        for kill in range(40):
            start(crew.url, tmp_path, count, 150)
            count += 150
            least = count - chance.randrange(10, 150)
            until(lambda: crew.completed() >= least)  # noqa: B023
            pids = crew.pids()
            os.kill(chance.choice(pids), signal.SIGKILL)
            if kill % 8 == 7:  # what is left, too
                for pid in crew.pids():
                    os.kill(pid, signal.SIGKILL)
        until(lambda: crew.completed() == count, 600)
    finally:
        assert crew.crew.end() == 0
    crew.check(count)


def test_all_at_once_are_killed_and_come_again(tmp_path):
    """The whole machine, so to say: what comes up later goes on with everything."""
    crew = Crew(tmp_path, 2)
    start(crew.url, tmp_path, 0, COUNT)
    until(lambda: crew.completed() > COUNT // 10)
    os.kill(crew.crew.child.pid, signal.SIGKILL)
    for pid in crew.pids():
        os.kill(pid, signal.SIGKILL)
    crew.crew.end()
    assert 0 < crew.completed() < COUNT
    until(lambda: not seats(crew.path))

    words = ("--processes", "2")
    crew.crew = Process(tmp_path, crew.url, str(tmp_path / "work.db"), *words).wait_ready()
    try:
        until(lambda: crew.completed() == COUNT)
    finally:
        assert crew.crew.end() == 0
    crew.check(COUNT)


def test_another_terminal_works_beside_them(tmp_path):
    """Start, look and wait from other processes: whoever owns the shard hears of it."""
    crew = Crew(tmp_path, 2, "--read-models")
    try:
        for number in range(3):
            crew.pawl("start", "three", "--input", f'{{"n": {number}}}', "--id", f"i-{number}")
        ends = [crew.pawl("wait", f"i-{number}") for number in range(3)]
        [told] = [each for each in crew.pawl("doctor")["checks"] if each["name"] == "owner"]
        until(lambda: rows(crew.path) == 3)
    finally:
        assert crew.crew.end() == 0

    assert [each["output"] for each in ends] == [{"n": number + 3} for number in range(3)]
    assert told["detail"].count("16 shards") == 2
    crew.check(3)


def rows(path):
    """What the SQL views show."""
    return asked(path, "SELECT count(*) FROM workflow_instance WHERE state = 'completed'")


def asked(path, sql):
    """A number out of the file, by the SQLite that this process has it open with.

    A second one, as the module sqlite3 is, would take the locks of the first away.
    """
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        db.set_busy_timeout(30_000)
        return db.execute(sql).get
    finally:
        db.close()


def test_an_owner_and_nodes_keep_each_other_out(tmp_path):
    """Whoever comes second is told which process has the file."""
    url = f"sqlite:///{tmp_path}/pawl.db"

    async def refused(second):
        with pytest.raises(PawlError) as error:
            await second.open()
        return error.value.code, str(os.getpid()) in str(error.value)

    async def run():
        async with Pawl(url):
            beside_an_owner = await refused(Node(url))
        async with Node(url):
            beside_a_node = await refused(Pawl(url))
        async with Pawl(url):
            return beside_an_owner, beside_a_node

    assert asyncio.run(run()) == (("store.owned", True), ("store.owned", True))
