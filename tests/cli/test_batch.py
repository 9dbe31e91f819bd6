"""One act on many instances: asked about, followed, audited as one, and never done twice."""

import json
import os
import pty
import select
import subprocess
from collections import Counter

import pytest

from tests.cli.live_kit import DEADLINE_S, killed, until
from tests.cli.many_kit import inputs_in, parked

ANN = ("--by", "ann", "--comment", "enough")
GO = ("signal", "key.turned", "--data", '{"at": 1}', "--yes", "--by", "ann")
LARGE = 2_500  # more than a command can do between its first line and a signal


@pytest.mark.req("R215")
def test_a_dry_run_says_which_it_would_be(place):
    """The number and the first ids; nothing happens, and nothing is on record."""
    parked(place, 14)

    done = place.pawl("cancel", "--where", "n < 12", "--dry-run")
    told = place.told("cancel", "--where", "n < 12", "--dry-run")

    assert done.exit_code == 0
    assert done.stdout.startswith("cancel would reach 12 instances:\n  p-")
    assert done.stdout.endswith("  and 2 more\n")
    assert (told["matched"], len(told["first"]), told["dry_run"]) == (12, 10, True)
    assert (told["batch"], told["results"]) == (None, [])
    assert place.told("batches", "ls") == []
    assert len(place.told("ls", "--state", "waiting")) == 14


@pytest.mark.req("R215", "R133")
def test_many_are_cancelled_as_one(place):
    """Without an owner the command drives; each answer is a line, and the record is one."""
    parked(place, 6)

    done = place.pawl("cancel", "--where", "n < 3", "--yes", *ANN)

    lines = done.stdout.splitlines()
    assert done.exit_code == 0
    assert sorted(lines[:-1]) == ["p-0: done", "p-1: done", "p-2: done"]
    assert lines[-1].startswith("cancel: 3 done, 0 refused, 0 gone of 3 (batch ")
    [batch] = place.told("batches", "ls")
    assert f"(batch {batch['id']})" in lines[-1]
    assert (batch["by"], batch["comment"], batch["where"]) == ("ann", "enough", "n < 3")
    assert (batch["act"], batch["state"], batch["matched"]) == ("cancel", "closed", 3)
    assert (batch["done"], batch["refused"], batch["gone"], batch["pending"]) == (3, 0, 0, 0)
    assert {row["id"] for row in place.told("ls", "--state", "cancelled")} == {"p-0", "p-1", "p-2"}
    for event in place.told("history", "p-1")[-2:]:
        assert (event["batch"], event["actor"]) == (batch["id"], "ann")
    assert all("batch" not in event for event in place.told("history", "p-4"))
    [*_, last] = json.loads(place.pawl("history", "p-1", "--cloudevents").stdout)
    assert last["batch"] == batch["id"]
    assert place.pawl("replay", "--all").exit_code == 0


@pytest.mark.req("R215")
def test_what_is_over_is_not_meant_unless_it_is_named(place):
    """Closed instances can only refuse; asked for by name they do, and the exit is 5."""
    parked(place, 4)
    place.pawl("cancel", "p-0")

    first = place.told("cancel", "--where", "n < 2", "--yes")
    again = place.pawl("cancel", "--where", "n < 2", "--yes")
    named = place.told("cancel", "--workflow", "parked", "--state", "cancelled", "--yes", exits=5)

    assert [each["id"] for each in first["results"]] == ["p-1"]
    assert (again.exit_code, again.stdout) == (0, "")
    assert "nothing to cancel" in again.stderr
    assert named["refused"] == 2
    assert named["where"] == 'state in ["cancelled"] && workflow == "parked"'
    assert {each["code"] for each in named["results"]} == {"instance.closed"}
    shown = place.pawl("batches", "show", named["batch"])
    assert "p-0: refused instance.closed" in shown.stdout
    assert place.told("dlq", "ls", "--all")[0]["code"] == "instance.closed"


@pytest.mark.req("R215", "R133")
def test_what_is_escalated_is_tried_again(place):
    """Without a step every escalated one goes on; instances without any are not meant."""
    parked(place, 6)
    with place.owner("wait", "p-5", "--worker", "car_steps.py"):
        assert place.told(*GO, "--where", "n < 3")["done"] == 3
        until(lambda: len(place.told("ls", "--state", "escalated")) == 3)
        missing = place.told("retry", "key", "--where", "n < 6", "--dry-run")
        (place.folder / "fuel").touch()
        told = place.told("retry", "--where", "n != 1", "--workflow", "parked", "--yes", *ANN)
        until(lambda: len(place.told("ls", "--state", "completed")) == 2)
        rest = place.told("resume", "drive", "--where", "n < 6", "--yes", *ANN)
        until(lambda: len(place.told("ls", "--state", "completed")) == 3)

    assert missing["matched"] == 0
    assert {each["id"] for each in told["results"]} == {"p-0", "p-2"}
    assert (told["act"], rest["act"], rest["done"]) == ("retry", "resume drive", 1)
    resumed = [e for e in place.told("history", "p-0") if e["eventType"] == "WorkflowResumed"]
    assert [event["batch"] for event in resumed] == [told["batch"]]
    assert resumed[0]["payload"]["comment"] == "enough"


def test_many_are_held_back_and_let_go(place):
    """`pause` and `unpause` take a filter too; who is paused already refuses."""
    parked(place, 3)
    place.pawl("pause", "p-1")

    held = place.told("pause", "--where", "n >= 0", "--yes", exits=5)
    let_go = place.told("unpause", "--where", "n >= 0", "--yes")

    codes = {each["id"]: each["code"] for each in held["results"]}
    assert codes == {"p-0": None, "p-1": "instance.paused", "p-2": None}
    assert let_go["done"] == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cancel"], "takes an ID, or --where"),
        (["cancel", "p-0", "--where", "n == 1"], "not both"),
        (["cancel", "p-0", "--yes"], "--yes goes with --where"),
        (["cancel", "p-0", "--dry-run"], "--dry-run goes with --where"),
        (["signal", "p-0", "key.turned", "--where", "n == 1"], "not both"),
        (["signal", "--where", "n == 1"], "is no event"),
        (["resume", "p-0"], "an ID and a STEP"),
        (["retry", "p-0", "drive", "--state", "escalated"], "not both"),
        (["cancel", "--where", "n == 1"], "say --yes"),
        (["cancel", "--where", "n == 1", "--json"], "say --yes"),
        (["cancel", "--where", "nn == 1", "--yes"], "did you mean 'n'"),
    ],
)
def test_words_that_do_not_fit_are_refused(place, words, said):
    """Usage, exit 2; nothing happens."""
    parked(place, 2)

    done = place.pawl(*words)

    assert done.exit_code == 2
    assert said in done.output
    assert place.told("batches", "ls") == []


def test_a_batch_that_is_not_there_is_not_found(place):
    """Exit 4, with the way to those that are."""
    parked(place, 1)

    assert "nothing" not in place.pawl("batches", "ls").stdout
    for verb in ("show", "wait"):
        done = place.pawl("batches", verb, "nobody")
        assert done.exit_code == 4
        assert "[batch.unknown]" in done.stderr


@pytest.mark.req("R215")
def test_on_a_terminal_it_asks(place):
    """The first ids and a question; no leaves everything as it is, yes shows the summary."""
    parked(place, 3)

    no, refused = in_terminal(place.command("cancel", "--where", "n < 2"), b"n\n")
    assert "cancel 2 instances? [y/N]" in no
    assert "nothing was done" in no
    assert refused == 130
    assert place.told("batches", "ls") == []

    yes, done = in_terminal(place.command("cancel", "--where", "n < 2"), b"y\n")
    assert done == 0
    assert "cancel: 2 done, 0 refused, 0 gone of 2" in yes
    assert place.told("batches", "ls")[0]["done"] == 2


def in_terminal(command: list[str], typed: bytes) -> tuple[str, int]:
    """What a command says on a terminal where somebody types when asked, and how it ends."""
    here, there = pty.openpty()
    process = subprocess.Popen(command, stdin=there, stdout=there, stderr=there, close_fds=True)
    os.close(there)
    said, answered = b"", False
    while select.select([here], [], [], DEADLINE_S)[0]:
        try:
            more = os.read(here, 4_096)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        said += more
        if b"[y/N]" in said and not answered:
            answered = True
            os.write(here, typed)
    os.close(here)
    return said.decode(), process.wait(DEADLINE_S)


@pytest.mark.req("R215", "R228")
def test_a_batch_beside_an_owner(place):
    """The owner does the work; the second terminal looks on, and others may look too."""
    parked(place, 120)
    with place.owner("wait", "p-0", "--worker", "car_steps.py"):
        until(lambda: "process" in owner_told(place), "an owner")
        told = place.terminal(*GO, "--where", "n > 0", "--json")

        shown = json.loads(told.stdout)
        assert (told.returncode, shown["done"]) == (0, 119)
        assert place.told("batches", "show", shown["batch"])["state"] == "closed"
        assert place.pawl("batches", "wait", shown["batch"]).exit_code == 0
    assert set(inputs_in(place, "Signal")["p-7"]) == {shown["batch"]}


def owner_told(place) -> str:
    """What `doctor` says of who drives the store."""
    [owner] = [each for each in place.told("doctor")["checks"] if each["name"] == "owner"]
    return str(owner["detail"])


@pytest.mark.req("R215", "R225")
def test_a_batch_goes_on_when_its_caller_is_killed(place):
    """What was asked is in the journal: the next command takes it to its end, once for each."""
    parked(place, LARGE)
    with place.owner(*GO, "--where", "n >= 0") as caller:
        assert caller.stdout is not None
        assert caller.stdout.readline().endswith(": done\n")
        killed(caller)

    [batch] = place.told("batches", "ls")
    assert batch["state"] == "running"
    assert 0 < batch["done"] < LARGE
    assert batch["pending"] == LARGE - batch["done"]
    done = place.pawl("batches", "show", batch["id"])
    assert f"`pawl batches wait {batch['id']}`" in done.stderr
    assert "not listed" in done.stderr
    assert ": done" not in done.stdout
    late = place.told("start", "parked", "--id", "p-late", "--input", '{"n": 5}')
    told = place.told("batches", "wait", batch["id"])

    assert (told["done"], told["refused"], told["matched"]) == (LARGE, 0, LARGE)
    taken = inputs_in(place, "Signal")
    assert taken.pop(late["id"]) == Counter()
    assert Counter(map(repr, taken.values())) == {repr(Counter({batch["id"]: 1})): LARGE}
    assert place.pawl("replay", "--all").exit_code == 0


@pytest.mark.req("R215", "R225")
def test_a_batch_goes_on_when_its_owner_is_killed(place):
    """The caller beside it takes over, and every instance gets the act once."""
    parked(place, LARGE)
    with (
        place.owner("wait", "p-0", "--worker", "car_steps.py") as owner,
        place.owner(*GO, "--where", "n > 0") as caller,
    ):
        assert caller.stdout is not None
        assert caller.stdout.readline().endswith(": done\n")
        killed(owner)
        out, err = caller.communicate(timeout=DEADLINE_S)

    assert caller.returncode == 0, err
    assert f"{LARGE - 1:,} done, 0 refused" in out
    taken = inputs_in(place, "Signal")
    del taken["p-0"]
    assert {(len(each), *each.values()) for each in taken.values()} == {(1, 1)}
    assert place.pawl("replay", "--all").exit_code == 0
