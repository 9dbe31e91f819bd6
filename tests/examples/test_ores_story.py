"""The example as its page says it is run: one command, from nothing to a summary."""

import json
import subprocess
import sys

import pytest

from examples.ores.stage import ROOT

STORY = [sys.executable, "-m", "examples.ores"]


def play(*words):
    """Run it from the root of the repository."""
    command = [*STORY, *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow  # an engine and six services are started as a user starts them
@pytest.mark.timeout(180)
@pytest.mark.req("R191", "R192", "R193", "R194", "R199")
def test_the_story_is_played(tmp_path):
    done = play("--json", "--logs", str(tmp_path))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    ends = [(each["workflow"], each["rollback"]) for each in told["acts"]]
    assert ends == [
        ("provision_parties", "none"),
        ("provision_parties", "none"),
        ("provision_parties", "full"),
        ("ore_import", "none"),
        ("ore_import", "full"),
        ("report_execution", "none"),
        ("report_execution", "full"),
        ("bundle_publish", "none"),
        ("bundle_publish", "none"),
    ]
    assert told["acts"][0]["id"] == told["acts"][1]["id"]
    assert [len(each["steps"]) for each in told["acts"][-2:]] == [9, 1]
    assert [each["name"] for each in told["tables"]["refdata"]["party"]] == ["Acme"]
    assert {path.stem for path in tmp_path.glob("*.log")} >= {"engine", "grid", "iam"}


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_it_runs_again_on_servers_of_yours(postgres, nats, tmp_path):
    """The same requests: nothing is done twice. What is told is for people."""
    postgres.execute("CREATE DATABASE story")
    given = ["--db", postgres.url.removesuffix("/pawl") + "/story", "--nats", nats.url]
    first, second = (play(*given, "--logs", str(tmp_path)) for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert "the account and the party are taken back" in first.stdout
    tables = [each.stdout.partition("Tables of refdata")[2] for each in (first, second)]
    assert tables[0] == tables[1] != ""


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_without_a_server_it_says_the_way_out(postgres, tmp_path):
    done = play("--db", postgres.url, "--nats", "nats://127.0.0.1:1", "--logs", str(tmp_path))
    assert done.returncode == 69
    assert "engine did not start" in done.stderr
