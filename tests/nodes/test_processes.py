"""Three nodes, each a process: killed, asleep, cut off. Every instance completes, none twice."""

import json
import re
import signal
import subprocess
import time
from contextlib import contextmanager

import pytest

from tests.nodes.kit import PAWL, Process, Seen, folder_for, start, until
from tests.store.postgres_kit import Line

COUNT = 2_000
pytestmark = pytest.mark.timeout(400)  # processes, and leases of seconds, on a busy machine


@contextmanager
def nodes(tmp_path, *urls, work):
    """Nodes that share a store, each by its own way there."""
    folder = folder_for(tmp_path)
    started = [Process(folder, url, work) for url in urls]
    try:
        for each in started:
            each.wait_ready()
        yield started
    finally:
        for each in started:
            each.end()


def check(seen, url, count):
    """Every instance has completed, every step has one result, and the journal gives the same."""
    assert seen.completed() == count
    assert sum(many for _, many in seen.done()) == 3 * count
    told = subprocess.run(
        [*PAWL, "replay", "--all", "--db", url, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr


def has_lost_shards(process):
    """Did it say so? By a look at the nodes or by a commit that was refused, as it comes."""
    why = re.findall(r"lets go of \d+ shards: (.*)", "".join(process.lines))
    return bool(set(why) - {"other nodes have come"})


@pytest.mark.req("R151", "R143")
def test_three_nodes_are_killed_put_to_sleep_and_cut_off(postgres, tmp_path):
    """One after the other, under 2,000 instances: the rest goes on; who wakes writes nothing."""
    url = postgres.fresh()
    line = Line(postgres)
    seen = Seen(postgres, url)
    folder_for(tmp_path)
    with nodes(tmp_path, url, url, line.url(url), work=postgres.url) as (killed, asleep, cut):
        until(lambda: sorted(seen.shares().values()) == [10, 11, 11])
        start(url, tmp_path, 0, COUNT // 2)
        until(lambda: seen.completed() > 50)

        killed.send(signal.SIGKILL)
        asleep.send(signal.SIGSTOP)
        start(url, tmp_path, COUNT // 2, COUNT // 2)
        until(lambda: seen.shares() == {cut.node: 32})
        line.close()  # both ways, and for good
        asleep.send(signal.SIGCONT)
        until(lambda: seen.shares() == {asleep.node: 32})
        until(lambda: seen.completed() == COUNT)

        assert has_lost_shards(asleep)
    check(seen, url, COUNT)


@pytest.mark.req("R151")
def test_a_node_that_leaves_hands_over_at_once(postgres, tmp_path):
    """Its shards are the other's before it has ended, and nothing waits for a lease."""
    url = postgres.fresh()
    seen = Seen(postgres, url)
    folder_for(tmp_path)
    with nodes(tmp_path, url, url, work=postgres.url) as (leaving, staying):
        until(lambda: sorted(seen.shares().values()) == [16, 16])
        start(url, tmp_path, 0, 200)
        until(lambda: seen.completed() > 20)

        assert leaving.end() == 0
        until(lambda: seen.shares() == {staying.node: 32})
        until(lambda: seen.completed() == 200)

        assert "another node has taken them over" not in "".join(leaving.lines)
    check(seen, url, 200)


def test_one_command_runs_several_nodes(postgres, tmp_path):
    """--processes: each is a node; one that falls is started again; all leave together."""
    url = postgres.fresh()
    seen = Seen(postgres, url)
    crew = Process(folder_for(tmp_path), url, postgres.url, "--processes", "2")
    try:
        crew.wait_ready()
        until(lambda: sorted(seen.shares().values()) == [16, 16])
        pids = [line.rsplit("pid ", 1)[1].rstrip(")\n") for line in crew.lines if "ready" in line]
        start(url, tmp_path, 0, 100)
        subprocess.run(["kill", "-9", pids[0]], check=True)
        until(lambda: len([line for line in crew.lines if "is ready" in line]) == 3)
        until(lambda: seen.completed() == 100)
    finally:
        code = crew.end()

    assert code == 0
    assert seen.shares() == {None: 32}
    check(seen, url, 100)


@pytest.mark.parametrize(
    ("text", "code", "exit_code"),
    [(None, "file.unreadable", 4), ("kind: Workflow\n", "field.missing", 3)],
)
def test_definitions_that_are_none_are_refused(tmp_path, text, code, exit_code):
    """Before anything is served."""
    if text is not None:
        (tmp_path / "x.yaml").write_text(text)
    words = [*PAWL, "serve", "x.yaml", "--db", f"sqlite:///{tmp_path}/p.db", "--json"]
    told = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert told.returncode == exit_code
    assert json.loads(told.stdout)["error"]["code"] == code


def test_what_is_in_memory_is_one_process_s_own(tmp_path):
    """Several are refused there."""
    words = [*PAWL, "serve", "--processes", "2", "--db", "memory:", "--json"]
    told = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    error = json.loads(told.stdout)["error"]

    assert told.returncode == 2
    assert error["code"] == "node.store"


@pytest.mark.slow
@pytest.mark.req("R151")
def test_a_node_that_slept_for_half_a_minute_writes_nothing(postgres, tmp_path):
    """Long after its lease: it wakes with shards in mind that another one owns, and lets go."""
    url = postgres.fresh()
    seen = Seen(postgres, url)
    folder_for(tmp_path)
    with nodes(tmp_path, url, url, work=postgres.url) as (asleep, awake):
        until(lambda: sorted(seen.shares().values()) == [16, 16])
        start(url, tmp_path, 0, 400)
        until(lambda: seen.completed() > 20)

        asleep.send(signal.SIGSTOP)
        stopped = time.monotonic()
        until(lambda: seen.shares() == {awake.node: 32})
        until(lambda: time.monotonic() - stopped > 30)
        asleep.send(signal.SIGCONT)
        until(lambda: sorted(seen.shares().values()) == [16, 16])
        until(lambda: seen.completed() == 400)

        assert has_lost_shards(asleep)
    check(seen, url, 400)
