"""A second terminal looks and acts while another process owns the store, and without one."""

import json

import pytest

from tests.cli.live_kit import killed, until

RUN = ("run", "release.yaml", "--id", "r-1", "--by", "zoe", "--stubs", "stubs.yaml")


def refused(done, code: str) -> None:
    """The command ended with 5 and this code."""
    assert done.exit_code == 5, done.output
    assert f"[{code}]" in done.stderr


@pytest.mark.req("R228", "R181", "R186")
def test_looking_beside_an_owner(place):
    """Every verb that looks sees what the owner has committed, and nothing is locked."""
    with place.owner(*RUN):
        until(lambda: place.waits_at("r-1", "gate"))

        [row] = place.told("ls")
        shown = place.shown("r-1")
        why = place.told("why", "r-1")
        names = [each["eventType"] for each in place.told("history", "r-1")]
        trace = place.told("trace", "r-1")
        [review] = place.told("review", "ls")

        assert (row["id"], row["state"], row["closed_at"]) == ("r-1", "waiting", None)
        assert shown["steps"]["build"]["result"] == {"image": "i-1"}
        assert why["hint"].endswith("review approve r-1/gate --by NAME --role ReleaseManager")
        assert names[-1] == "ApprovalRequested"
        assert trace[1]["caused_by"] == 1
        assert review["id"] == "r-1/gate"
        assert (review["kind"], review["role"]) == ("approval", "ReleaseManager")
        assert review["show"] == {"image": "i-1"}
        assert place.told("dlq", "ls") == []
        assert "gate asked for approval" in place.pawl("review", "show", "r-1").stdout
        assert place.pawl("doctor").exit_code == 0
        assert place.pawl("replay", "r-1").exit_code == 0


@pytest.mark.req("R228", "R90", "R91", "R133", "R186")
def test_acting_beside_an_owner(place):
    """Approve, signal, pause, unpause and retry reach the owner at once; it goes on to the end."""
    with place.owner(*RUN) as owner:
        until(lambda: place.waits_at("r-1", "gate"))

        refused(place.pawl("review", "approve", "r-1", "--role", "Nobody"), "approval.wrong_role")
        assert place.told("pause", "r-1", "--by", "ann")["accepted"]
        refused(place.pawl("pause", "r-1"), "instance.paused")
        assert place.shown("r-1")["paused"]
        assert place.told("unpause", "r-1", "--by", "ann")["accepted"]
        said = ("--by", "ann", "--role", "ReleaseManager", "--comment", "fine")
        assert place.terminal("review", "approve", "r-1/gate", *said).returncode == 0
        assert place.told("signal", "r-1", "health.reported", "--data", '{"ok": true}')
        until(lambda: place.state_of("r-1") == "escalated")
        refused(place.pawl("review", "approve", "r-1/promote"), "approval.not_open")
        refused(place.pawl("resume", "r-1", "build"), "step.not_escalated")
        assert place.told("retry", "r-1", "promote", "--with", '{"to": "b"}', "--comment", "now")

        out, err = owner.communicate(timeout=40)
        assert owner.returncode == 0, err
        assert json.loads(out) == {"image": "i-1", "by": "ann"}
        assert place.shown("r-1")["steps"]["health"]["result"] == {"ok": True}
    actors = {each["actor"] for each in place.told("history", "r-1")}
    assert {"zoe", "ann"} <= actors


@pytest.mark.req("R228", "R90")
def test_cancelling_beside_an_owner(place):
    """A cancel from outside ends the run of the owner with 1, and its work is undone."""
    with place.owner(*RUN) as owner:
        until(lambda: place.waits_at("r-1", "gate"))

        assert place.pawl("cancel", "r-1", "--by", "ann", "--comment", "enough").exit_code == 0

        _, err = owner.communicate(timeout=40)
        assert owner.returncode == 1
        assert "r-1 cancelled" in err
        assert "why r-1" in err
    shown = place.shown("r-1")
    assert (shown["state"], shown["rollback"]) == ("cancelled", "full")
    refused(place.pawl("cancel", "r-1"), "instance.closed")


@pytest.mark.req("R228")
def test_starting_and_following_beside_an_owner(place):
    """`start` and `run` start by mail; who follows looks on, and leaves when its time is up."""
    place.pawl("apply", "-f", "order.yaml")
    with place.owner(*RUN):
        until(lambda: place.waits_at("r-1", "gate"))

        started = place.told("start", "release", "--id", "r-2", "--by", "ann")
        again = place.told("start", "release", "--id", "r-2", "--by", "ann")
        followed = place.terminal("run", "release", "--id", "r-3", "--timeout", "1s")
        late = place.terminal("wait", "r-2", "--timeout", "300ms", "--json")

        assert started == {"id": "r-2", "existing": False}
        assert again == {"id": "r-2", "existing": True}
        assert followed.returncode == 75
        assert "drives" in followed.stderr
        assert "r-3" in followed.stderr
        assert (late.returncode, json.loads(late.stdout)["error"]["code"]) == (75, "cli.timeout")
        assert place.state_of("r-3") == "running"


@pytest.mark.req("R228")
def test_a_second_terminal_takes_over_when_the_owner_dies(place):
    """`wait` looks on beside an owner; when that one is killed it drives the store itself."""
    with place.owner(*RUN) as first:
        until(lambda: place.waits_at("r-1", "gate"))
        with place.owner("wait", "r-1", "--stubs", "stubs.yaml") as second:
            assert second.stderr is not None
            assert "drives" in second.stderr.readline()

            killed(first)
            said = ("--by", "ann", "--role", "ReleaseManager")
            assert place.pawl("review", "approve", "r-1", *said).exit_code == 0
            assert place.pawl("signal", "r-1", "health.reported").exit_code == 0
            until(lambda: place.state_of("r-1") == "escalated")
            assert place.pawl("resume", "r-1", "promote").exit_code == 0

            assert second.wait(40) == 0


@pytest.mark.req("R228")
def test_acting_without_an_owner_commits_and_lets_go(place):
    """Each act is durable when the command returns, and nobody owns the store afterwards."""
    assert place.pawl("start", "release.yaml", "--id", "r-1", "--by", "zoe").exit_code == 0

    done = place.pawl("pause", "r-1")

    assert done.exit_code == 0
    assert "`pawl wait r-1 --worker MODULE`" in done.stderr
    assert place.shown("r-1")["paused"]
    owner = [each for each in place.told("doctor")["checks"] if each["name"] == "owner"]
    assert owner[0]["detail"] == "nobody drives it now"
    assert place.pawl("signal", "r-1", "health.reported", "--data", "1").exit_code == 0
    assert place.pawl("cancel", "r-1").exit_code == 0
    assert place.state_of("r-1") == "running"  # its attempt must settle first
    assert place.pawl("wait", "r-1", "--stubs", "stubs.yaml").exit_code == 1
    assert place.state_of("r-1") == "cancelled"


def test_an_event_reaches_every_open_wait(place):
    """`emit` is for everybody who waits now; it is not kept."""
    gate = ("review", "approve", "r-1", "--by", "ann", "--role", "ReleaseManager")
    with place.owner(*RUN):
        until(lambda: place.waits_at("r-1", "gate"))
        assert place.told("emit", "health.reported")["accepted"]
        assert place.pawl(*gate).exit_code == 0
        until(lambda: place.waits_at("r-1", "health"))

        done = place.pawl("emit", "health.reported", "--data", '{"at": 2}', "--comment", "x")

        assert (done.exit_code, done.stdout) == (0, "health.reported: accepted\n")
        assert "not kept" in done.stderr
        until(lambda: place.state_of("r-1") == "escalated")
        assert place.shown("r-1")["steps"]["health"]["result"] == {"at": 2}
        assert place.pawl("reassign", "r-1", "promote", "--to", "Ops").exit_code == 0


def test_watching_beside_an_owner(place):
    """One line for each change until it is closed; with --json one event to a line."""
    with place.owner(*RUN):
        until(lambda: place.waits_at("r-1", "gate"))
        with place.owner("watch", "r-1") as lines, place.owner("watch", "r-1", "--json") as events:
            assert lines.stdout is not None
            first = lines.stdout.readline()
            place.pawl("cancel", "r-1")
            told, _ = lines.communicate(timeout=40)
            heard, _ = events.communicate(timeout=40)
    assert "release v1 started by zoe" in first
    assert told.splitlines()[-1].endswith("cancelled, rollback full")
    assert json.loads(heard.splitlines()[-1])["eventType"] == "WorkflowInstanceCancelled"


def test_watching_what_nobody_drives(place):
    """It says so, and Ctrl-C leaves with 130; nothing has changed."""
    place.pawl("start", "release.yaml", "--id", "r-1")
    with place.owner("watch", "r-1") as watcher:
        assert watcher.stdout is not None
        watcher.stdout.readline()
        watcher.send_signal(2)
        _, err = watcher.communicate(timeout=40)

    assert watcher.returncode == 130
    assert "nobody drives this store now" in err
    assert place.shown("r-1")["turns"] == 1
