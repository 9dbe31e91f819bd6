"""The command line on PostgreSQL: the same verbs, a second terminal, scenarios, no password."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from pawlflow.cli.main import main
from tests.cli.kit import ROOT
from tests.cli.live_kit import PAWL, Place, until
from tests.servers import PASSWORD

RUN = ("run", "release.yaml", "--id", "r-1", "--by", "zoe", "--stubs", "stubs.yaml")
SCENARIOS = ("retry", "late-and-duplicate")
FLOW = """
import asyncio, os, sys
from pawlflow import Pawl, flow, step

@step
async def first(n: int) -> int:
    print("first", flush=True)
    return n + 1

@step
async def second(n: int) -> int:
    if "--die" in sys.argv:
        os.kill(os.getpid(), 9)
    print("second", flush=True)
    return n * 2

@flow
def double(n: int):
    return second(first(n))

async def main():
    async with Pawl(os.environ["STORE"]) as pawl:
        run = await pawl.start(double, 20, id="d-1")
        print(await run.result(timeout="30s"))

asyncio.run(main())
"""


class ServerPlace(Place):
    """A folder to work in, and a store on a server."""

    url = ""
    told_all = ""

    def pawl(self, *words, stdin=None):
        """The command in this process."""
        done = CliRunner().invoke(main, [*map(str, words)], input=stdin, env={"PAWL_DB": self.url})
        self.told_all += done.output + done.stderr
        return done

    def command(self, *words):
        """The command line of a process."""
        return [*PAWL, "--db", self.url, *map(str, words)]


@pytest.fixture
def server(place, postgres):
    """Files in the current folder, and a server; nothing it was told is told to others."""
    made = ServerPlace(place.folder)
    made.url = postgres.fresh()
    yield made
    assert PASSWORD not in made.told_all
    assert "fish" not in made.told_all


def test_a_second_terminal_acts_beside_an_owner(server):
    """It looks, posts and pokes; nobody's ownership is taken."""
    with server.owner(*RUN) as owner:
        until(lambda: server.pawl("ls", "--json").exit_code == 0 and server.waits_at("r-1", "gate"))
        assert [row["state"] for row in server.told("ls")] == ["waiting"]
        said = ("--by", "ann", "--role", "ReleaseManager")
        assert server.terminal("review", "approve", "r-1/gate", *said).returncode == 0
        assert server.told("signal", "r-1", "health.reported", "--data", '{"ok": true}')
        until(lambda: server.state_of("r-1") == "escalated")
        assert server.told("start", "release.yaml", "--id", "r-2")["id"] == "r-2"
        assert owner.poll() is None
        assert server.told("resume", "r-1", "promote", "--by", "ann")["accepted"]
        owner.communicate(timeout=40)
        assert owner.returncode == 0
    assert server.pawl("replay", "--all").exit_code == 0


def test_a_verb_owns_a_store_that_nobody_drives(server):
    """For a moment, to commit what was asked; the next one goes on from there."""
    assert server.told("start", "release.yaml", "--id", "r-1")["id"] == "r-1"
    assert server.told("pause", "r-1", "--by", "ann")["accepted"]
    assert server.shown("r-1")["paused"]
    assert server.told("unpause", "r-1", "--by", "ann")["accepted"]
    assert not server.shown("r-1").get("paused")
    assert server.pawl("history", "r-1").exit_code == 0


def test_what_is_missing_or_away_is_told(server, postgres):
    """No store yet, no instance, no server: each by its code, none with a password."""
    missing = server.pawl("ls")
    assert (missing.exit_code, "[store.missing]" in missing.stderr) == (4, True)
    server.told("start", "release.yaml", "--id", "r-1")
    unknown = server.pawl("show", "nobody")
    assert (unknown.exit_code, "[instance.unknown]" in unknown.stderr) == (4, True)
    refused = server.pawl("backup", "copy.db")
    assert (refused.exit_code, "pg_dump" in refused.stderr) == (2, True)
    server.url = server.url.replace(f":{postgres.port}/", ":1/")
    away = server.pawl("ls")
    assert (away.exit_code, "[store.unreachable]" in away.stderr) == (69, True)
    assert server.pawl("doctor").exit_code == 69


def test_doctor_looks_at_the_server(server):
    """Server, schema, owner, journals, and how commits are kept; the settings hide the password."""
    assert "nothing is at" in server.pawl("doctor").output
    server.told("start", "release.yaml", "--id", "r-1")
    found = server.told("doctor", "--deep", exits=5)  # for the servers of tests do not flush
    checks = {each["name"]: each for each in found["checks"]}
    assert checks["server"]["detail"].startswith("PostgreSQL 1")
    assert checks["journals"]["status"] == "ok"
    assert checks["owner"]["detail"] == "nobody drives it now"
    assert (found["ok"], checks["flushing"]["status"]) == (False, "fail")
    assert [name for name, each in checks.items() if each["status"] == "fail"] == ["flushing"]
    [db] = [each for each in found["settings"] if each["name"] == "db"]
    assert db["value"].startswith("postgresql://pawl@127.0.0.1")


@pytest.mark.req("R119")
@pytest.mark.parametrize("folder", SCENARIOS)
def test_scenarios_run_on_the_server_that_is_named(server, postgres, folder):
    """In a schema of their own, which is gone afterwards."""
    path = ROOT / "examples" / "scenarios" / folder
    done = server.pawl("test", path, "--db", postgres.url, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["failed"], found["passed"] > 5) == (0, True)
    left = "SELECT count(*) FROM pg_namespace WHERE starts_with(nspname, 'pawl_test')"
    assert postgres.execute(left) == [(0,)]


def test_scenarios_hold_with_a_crash_everywhere(server, postgres):
    """A crash before and after each commit, on the rows that the engine left behind."""
    path = ROOT / "examples" / "scenarios" / "undo"
    some = sorted(path.iterdir())[:2]
    done = server.pawl("test", *some, "--db", postgres.url, "--crash-everywhere", "--json")
    assert done.exit_code == 0, done.output
    assert all(each["crashes"] > 0 for each in json.loads(done.stdout)["scenarios"])


def test_scenarios_need_no_schema_of_yours(server):
    """A schema that is named would not be used: that is refused."""
    path = ROOT / "examples" / "scenarios" / "order"
    done = server.pawl("test", path, "--db", server.url)
    assert (done.exit_code, "leave the option schema out" in done.stderr) == (2, True)


@pytest.mark.req("R140")
def test_a_flow_goes_on_after_its_process_was_killed(server):
    """The first step is not done again; the second is, once."""
    (server.folder / "flow.py").write_text(FLOW)
    env = {**os.environ, "STORE": server.url}
    words = [sys.executable, "flow.py"]
    killed = subprocess.run([*words, "--die"], env=env, capture_output=True, text=True, check=False)
    assert (killed.returncode, killed.stdout) == (-9, "first\n"), killed.stderr
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "second\n42\n"), done.stderr
    assert "fish" not in killed.stderr + done.stderr
