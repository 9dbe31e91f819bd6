"""`--endpoints FILE` and `pawl complete`: HTTP from one terminal, and from a second one."""

import json
import os
import subprocess
import sys

import pytest

from tests.cli.kit import pawl
from tests.effects.http_kit import Server

FLOW = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: one}
spec:
  steps: [{name: charge, run: payment.charge, with: {amount: 5}, timeout: 1m, mutates: false}]
  output: "${ steps.charge }"
"""
PAWL = [sys.executable, "-c", "from pawlflow.cli.main import entry; entry()"]


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


@pytest.fixture
def shop(tmp_path, monkeypatch, server):
    """A folder with a workflow and its endpoints."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.yaml").write_text(FLOW)
    (tmp_path / "endpoints.yaml").write_text(
        "endpoints:\n  payment.charge:\n"
        f"    url: {server.url}/charges\n"
        "    allow: [127.0.0.1]\n    timeout: 10s\n    retryOn: [429, 5xx]\n"
        "    headers: {Authorization: ['Bearer ', {$secret: pay-token}]}\n"
    )
    return tmp_path


def test_a_run_calls_the_endpoints_of_a_file(shop, server, monkeypatch):
    """The secret comes from where secrets come from."""
    monkeypatch.setenv("PAWL_SECRET_PAY_TOKEN", "tok-5f1e77")
    server.tell("/charges", (200, {"charge": "ch-1"}))
    ended = pawl("run", "one.yaml", "--endpoints", "endpoints.yaml")
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.stdout) == {"charge": "ch-1"}
    assert server.asked[0][1]["authorization"] == "Bearer tok-5f1e77"
    assert "tok-5f1e77" not in ended.output


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("payment.charge: {url: 'http://127.0.0.1/'}", "1:23", "not called by default"),
        ("payment.charge: {url: https://a.example.com/, timeout: soon}", "1:56", "timeout='soon'"),
        ("payment.charge: {url: https://a.example.com/, retryon: 3}", "1:47", "retryOn"),
        ("payment.charge:\n  method: POST\n", "1:1", "has no url"),
        ("payment.charge: https://a.example.com/", "1:1", "has no url"),
        (
            "payment.charge:\n  url: https://a.example.com/\n  headers: {Host: x}\n",
            "3:12",
            "by the engine",
        ),
        ("- payment.charge", "1:1", "expected a mapping"),
        ("endpoints: 7", "1:12", "expected a mapping"),
        ("a b: {url: https://a.example.com/}", "1:12", "is no effect"),
        ("payment.charge: {url: [", "1:", ""),
    ],
)
def test_what_is_wrong_in_a_file_is_shown_where_it_stands(shop, text, place, words):
    """Line and column, exit 3, and nothing is started."""
    (shop / "bad.yaml").write_text(text)
    ended = pawl("run", "one.yaml", "--endpoints", "bad.yaml")
    assert ended.exit_code == 3, ended.output
    assert f"bad.yaml:{place}" in ended.output
    assert words in ended.output


def test_an_empty_file_says_so(shop):
    """It would be taken for one that was read."""
    (shop / "none.yaml").write_text("# nothing\n")
    ended = pawl("run", "one.yaml", "--endpoints", "none.yaml")
    assert (ended.exit_code, "lists nothing" in ended.output) == (3, True)


def test_without_endpoints_the_ways_are_named(shop):
    """Who carries it out is for the caller to say."""
    ended = pawl("run", "one.yaml")
    assert ended.exit_code == 3
    assert "--endpoints FILE" in ended.output


@pytest.fixture
def running(shop, server):
    """A process of its own that waits for what an endpoint took to do later."""
    server.tell("/charges", (202, {}))
    environment = {**os.environ, "PAWL_SECRET_PAY_TOKEN": "tok-5f1e77"}
    command = [*PAWL, "run", "one.yaml", "--id", "order-1", "--endpoints", "endpoints.yaml"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    try:
        server.wait_for(1)
        yield child, server.keys("/charges")[0]
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def test_a_second_terminal_completes_it(running):
    """By the key alone; the first one goes on, and ends as the instance ends."""
    child, key = running
    ended = pawl("complete", key, "--result", '{"charge": "ch-7"}')
    assert (ended.exit_code, ended.stdout) == (0, "order-1: completion of charge accepted\n")
    assert json.loads(child.communicate(timeout=30)[0]) == {"charge": "ch-7"}
    assert child.returncode == 0
    again = pawl("complete", key, "--instance", "order-1")
    assert again.exit_code == 5


def test_a_second_terminal_fails_it(running):
    """With a class and words; --json for programs."""
    child, key = running
    said = ("--fail", "terminal", "--message", "no such card", "--instance", "order-1")
    ended = pawl("complete", key, *said, "--json")
    told = {"id": "order-1", "step": "charge", "key": key, "accepted": True}
    assert (ended.exit_code, json.loads(ended.stdout)) == (0, told)
    child.communicate(timeout=30)
    assert child.returncode == 1
    error = json.loads(pawl("show", "order-1", "--json").stdout)["error"]
    assert (error["class"], error["message"]) == ("terminal", "no such card")


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        (["00000000-0000-0000-0000-000000000007"], 4, "no open instance"),
        (["00000000-0000-0000-0000-000000000007", "--instance", "order-1"], 4, "no attempt"),
        (["00000000-0000-0000-0000-000000000007", "--instance", "order-2"], 4, "order-2"),
        (["charge"], 2, "no step key"),
        (["KEY", "--fail", "sorry"], 2, "no class of failures"),
        (["KEY", "--result", "{"], 2, "no JSON"),
        (["KEY", "--result", "{}", "--fail"], 2, "not both"),
        (["KEY", "--message", "x"], 2, "--fail"),
        (["KEY", "--usage", "3"], 2, "--usage"),
        (["KEY", "--fail", "transient", "--attempt", "9"], 5, "no longer counts"),
    ],
)
def test_a_completion_that_is_wrong_is_refused(running, words, exit_code, said):
    """It says why, and the attempt is still open."""
    _, key = running
    ended = pawl("complete", *(key if each == "KEY" else each for each in words))
    assert ended.exit_code == exit_code, ended.output
    assert said in ended.output
    assert json.loads(pawl("show", "order-1", "--json").stdout)["state"] == "running"
