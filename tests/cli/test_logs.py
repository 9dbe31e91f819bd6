"""`-v` and PAWL_LOG: what the engine does, on standard error, for those who ask."""

import asyncio
import json
import logging
import os
import subprocess

import pytest

from pawlflow import Pawl
from tests.cli.live_kit import PAWL, Place

SECRET = "4111-1111-1111-1111"
ORDER = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: paid}
spec:
  timeout: 1h
  failurePolicy: compensate
  steps:
    - name: charge
      run: card.take
      with: {card: "${ input.card }"}
      timeout: 30s
      undo: {run: card.give}
    - {name: rest, sleep: 10ms, dependsOn: [charge]}
    - {name: wait, wait: {event: never.comes, timeout: 20ms}, dependsOn: [rest]}
"""
WORKER = f"""\
from pawlflow import step


@step(name="card.take")
async def take(card, ctx):
    ctx.log("took {SECRET}")
    if ctx.attempt == 1 and card == "broken":
        raise ValueError("-".join(["4111", *["1111"] * 3]) + " is refused")
    return {{"taken": card}}


@step(name="card.give")
async def give():
    return {{"given": "{SECRET}"}}
"""


@pytest.fixture
def paid(place: Place) -> Place:
    """A workflow with an effect, an undo and deadlines, whose values nobody may see."""
    (place.folder / "paid.yaml").write_text(ORDER)
    (place.folder / "card.py").write_text(WORKER)
    return place


def ran(place: Place, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The workflow as a process: it fails at its wait, and is undone."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("PAWL_")}
    given = json.dumps({"card": SECRET})
    command = [*PAWL, "--db", "memory:", *words, "--worker", "card.py", "--input", given, "--json"]
    return subprocess.run(
        command,
        cwd=place.folder,
        env=known | env,
        capture_output=True,
        text=True,
        check=False,
        timeout=40,
    )


def events_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The events of the log, in order."""
    return [line.split()[2] for line in done.stderr.splitlines()]


def test_nothing_is_logged_unless_somebody_asks(paid):
    """Standard error is empty, and the answer the same."""
    quiet, loud = ran(paid, "run", "paid.yaml"), ran(paid, "-vv", "run", "paid.yaml")

    assert (quiet.returncode, loud.returncode) == (1, 1)
    assert quiet.stderr == ""
    assert json.loads(quiet.stdout)["error"] == json.loads(loud.stdout)["error"]


def test_verbose_tells_what_the_engine_does(paid):
    """Commits, cells, effects begun and settled, deadlines and the end, as they happen."""
    done = ran(paid, "run", "-v", "paid.yaml", "--id", "p-1")

    events = events_of(done)
    wanted = [
        *("cells.read", "shard.flushed", "effect.begun", "effect.settled"),
        *("deadline.passed", "effect.begun", "effect.settled", "instance.closed"),
    ]
    rest = iter(events)
    assert all(event in rest for event in wanted), events
    lines = done.stderr
    assert "effect.begun instance=p-1 step=charge attempt=1 effect=card.take" in lines
    assert "effect.settled instance=p-1 step=undo/charge attempt=1 outcome=ok" in lines
    assert "instance.closed instance=p-1 state=failed rollback=full" in lines
    assert "turn.committed" not in lines


@pytest.mark.parametrize(
    ("before", "after", "debug"),
    [
        (["-v"], [], False),
        ([], ["-v"], False),
        (["-vv"], [], True),
        ([], ["-v", "-v"], True),
        (["-v"], ["-v"], True),
        (["--verbose"], ["--verbose"], True),
        ([], ["-vvv"], True),
    ],
)
def test_verbose_may_stand_before_and_after_the_verb(paid, before, after, debug):
    """Twice is more, wherever each stands."""
    done = ran(paid, *before, "run", *after, "paid.yaml")
    assert "shard.flushed" in done.stderr
    assert ("turn.committed" in done.stderr) == debug


@pytest.mark.req("R44")
@pytest.mark.parametrize("how", ["debug", "debug,json"])
def test_no_value_is_ever_logged(paid, how):
    """Neither inputs, results, log lines nor the words of an exception: names and codes alone."""
    done = ran(paid, "run", "paid.yaml", PAWL_LOG=how)
    broken = json.dumps({"card": "broken"})
    raised = ran(paid, "run", "paid.yaml", "--input", broken, PAWL_LOG=how)

    assert "turn.committed" in done.stderr
    assert SECRET not in done.stderr
    assert SECRET not in raised.stderr


def test_a_function_that_raises_is_told_by_its_place(paid):
    """Its kind and lines are logged; its words are in the failure, where they can be erased."""
    (paid.folder / "paid.yaml").write_text(ORDER.replace("${ input.card }", "broken"))

    done = ran(paid, "run", "paid.yaml", PAWL_LOG="warning")

    assert "charge of" in done.stderr
    assert "raised ValueError" in done.stderr
    assert "card.py" in done.stderr
    assert SECRET not in done.stderr
    assert "effect.begun" not in done.stderr  # less than a warning


def test_json_is_for_machines(paid):
    """One object to a line, with time, level and the fields by name."""
    done = ran(paid, "run", "paid.yaml", "--id", "p-1", PAWL_LOG="json")

    lines = [json.loads(line) for line in done.stderr.splitlines()]
    begun = next(line for line in lines if line["event"] == "effect.begun")
    assert begun["at"].endswith("Z")
    assert {name: begun[name] for name in begun if name != "at"} == {
        "level": "info",
        "logger": "pawl.engine",
        "event": "effect.begun",
        "instance": "p-1",
        "step": "charge",
        "attempt": 1,
        "effect": "card.take",
    }
    flushed = [line for line in lines if line["event"] == "shard.flushed"]
    assert all(isinstance(line["took_ms"], float) and line["turns"] >= 0 for line in flushed)
    assert not [line for line in lines if line["level"] == "debug"]


def test_what_is_typed_says_how_much_and_the_environment_in_which_form(paid):
    """-vv with PAWL_LOG=json: everything, as JSON. A file says it for every command."""
    both = ran(paid, "-vv", "run", "paid.yaml", PAWL_LOG="json")
    assert "turn.committed" in {json.loads(line)["event"] for line in both.stderr.splitlines()}
    more = ran(paid, "-vv", "run", "paid.yaml", PAWL_LOG="warning")
    assert "turn.committed" in more.stderr

    (paid.folder / "pawl.toml").write_text('log = "debug,json"\n')
    by_file = ran(paid, "run", "paid.yaml")
    assert "turn.committed" in {json.loads(line)["event"] for line in by_file.stderr.splitlines()}
    less = ran(paid, "run", "paid.yaml", PAWL_LOG="error")
    assert less.stderr == ""


@pytest.mark.parametrize("words", ["loud", "debug,info", "json,json", ","])
def test_a_level_that_is_none_is_refused(paid, words):
    """Exit 2, with those there are."""
    done = ran(paid, "run", "paid.yaml", PAWL_LOG=words)
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "cli.usage"
    assert "debug, info, warning or error" in error["message"]


def test_an_act_from_a_second_terminal_is_told_too(paid):
    """What commits by itself for a moment says so."""
    paid.pawl("start", "release.yaml", "--id", "r-1")
    done = paid.terminal("-v", "pause", "r-1")
    assert done.returncode == 0
    assert "input.taken instance=r-1 input=PauseInstance" in done.stderr


async def emits() -> None:
    """An engine of one's own, and an event."""
    async with Pawl("memory:") as pawl:
        await pawl.emit("door.opened", {"by": SECRET})


def test_programs_hear_it_by_the_logging_of_python(caplog):
    """The logger `pawl.engine`: without a handler of ours, and only if it is asked to speak."""
    with caplog.at_level(logging.DEBUG, logger="pawl"):
        asyncio.run(emits())
    told = [record.pawl for record in caplog.records]
    assert {"event": "input.taken", "instance": "$topic/door.opened", "input": "EmitEvent"} in told
    assert {"mail.read", "shard.flushed"} <= {each["event"] for each in told}
    assert SECRET not in caplog.text
    caplog.clear()
    asyncio.run(emits())
    assert caplog.records == []
