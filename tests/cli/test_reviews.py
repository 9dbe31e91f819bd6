"""`review claim`, and what a person is told who speaks at a gate in the wrong way."""

import apsw
import pytest

from pawlflow.store.sqlite_schema import MIGRATIONS, opened
from tests.cli.live_kit import until

RUN = ("run", "release.yaml", "--id", "r-1", "--by", "zoe", "--stubs", "stubs.yaml")
BOSS = ("--role", "ReleaseManager")


@pytest.fixture
def gated(place):
    """A release that waits at its gate; nobody drives its store."""
    assert place.pawl(*RUN, "--timeout", "200ms").exit_code == 75
    return place


def claimed_by(place):
    """Who looks after the one open review, as the list has it."""
    [row] = place.told("review", "ls")
    return row["claimed_by"]


@pytest.mark.req("R134", "R186")
def test_a_claim_is_seen_by_every_verb_that_looks(gated):
    """In the list, the review, the tree, the reason, the history and the lines of a watch."""
    since = gated.told("review", "ls")[0]["since"]

    done = gated.pawl("review", "claim", "r-1", "--by", "ann", *BOSS, "--comment", "after lunch")

    assert (done.exit_code, done.stdout) == (0, "r-1: claim gate accepted\n")
    [row] = gated.told("review", "ls")
    assert (row["claimed_by"], row["since"]) == ("ann", since)
    assert "CLAIMED BY" in gated.pawl("review", "ls").stdout
    assert gated.told("review", "show", "r-1")["claimed_by"] == "ann"
    assert "claimed ann" in gated.pawl("review", "show", "r-1").stdout
    assert gated.shown("r-1")["waiting"][0]["claimed_by"] == "ann"
    assert "claimed by ann" in gated.pawl("show", "r-1").stdout
    why = gated.told("why", "r-1")
    assert why["because"][-1]["text"] == ('ann (ReleaseManager) claimed gate, saying "after lunch"')
    assert "ann looks after it" in why["now"]
    last = gated.told("history", "r-1")[-1]
    assert (last["eventType"], last["actor"]) == ("ReviewClaimed", "ann")
    assert gated.told("trace", "r-1")[-1]["input"]["by"] == "ann"
    assert gated.told("replay", "--all")["same"]


@pytest.mark.req("R134")
def test_a_claim_again_is_fine_and_anothers_is_refused_by_name(gated):
    """Once is enough; who holds it is named; a decision needs no claim, and both are kept."""
    claim = ("review", "claim", "r-1/gate", *BOSS)
    turns = gated.told(*claim, "--by", "ann") and gated.shown("r-1")["turns"]

    assert gated.told(*claim, "--by", "ann")["accepted"]
    assert gated.shown("r-1")["turns"] == turns
    held = gated.told(*claim, "--by", "bob", exits=5)["error"]
    assert held["code"] == "review.held"
    assert "gate is claimed by ann" in held["message"]
    assert gated.pawl("review", "approve", "r-1", "--by", "bob", *BOSS).exit_code == 0
    names = [(each["eventType"], each["actor"]) for each in gated.told("history", "r-1")]
    assert ("ReviewClaimed", "ann") in names
    assert ("ApprovalGranted", "bob") in names
    late = gated.told(*claim, "--by", "ann", exits=4)
    assert late["error"]["code"] == "review.unknown"


@pytest.mark.req("R127", "R134")
@pytest.mark.parametrize("verb", ["approve", "reject", "claim"])
@pytest.mark.parametrize("role", [(), ("--role", "Clerk")])
def test_a_role_that_is_missing_is_named_and_nobody_is_told_to_claim_it(gated, verb, role):
    """A gate that asks for a role says which, not what to type to get past it."""
    refused = gated.told("review", verb, "r-1", "--by", "ann", *role, exits=5)["error"]

    assert refused["code"] == "approval.wrong_role"
    assert refused["message"].endswith("(gate asks for ReleaseManager)")
    assert "--role" not in refused["message"]
    assert claimed_by(gated) is None


@pytest.mark.req("R134", "R228")
def test_claiming_beside_an_owner(place):
    """An escalation is claimed by mail, seen by who watches, and let go by a reassign."""
    with place.owner(*RUN):
        until(lambda: place.waits_at("r-1", "gate"))
        assert place.pawl("review", "approve", "r-1", "--by", "ann", *BOSS).exit_code == 0
        assert place.pawl("signal", "r-1", "health.reported").exit_code == 0
        until(lambda: place.state_of("r-1") == "escalated")
        with place.owner("watch", "r-1") as watching:
            assert watching.stdout is not None

            claimed = place.terminal("review", "claim", "r-1/promote", "--by", "eve")

            assert claimed.returncode == 0, claimed.stderr
            assert any("claimed by eve" in line for line in watching.stdout)
        assert claimed_by(place) == "eve"
        assert "needs a human's decision, claimed by eve" in place.pawl("show", "r-1").stdout
        assert place.pawl("reassign", "r-1", "promote", "--to", "Ops").exit_code == 0
        until(lambda: place.state_of("r-1") == "completed")
        assert place.told("review", "ls") == []


@pytest.mark.req("R134", "R186")
def test_a_store_of_version_1_is_claimed_in(gated):
    """A release that waited before there were claims: the row is the one its turns lead to."""
    gated.db.replace(gated.db.with_name("newest.db"))
    copy_as_version_1(gated.db.with_name("newest.db"), gated.db)

    assert claimed_by(gated) is None
    assert gated.pawl("review", "claim", "r-1", "--by", "ann", *BOSS).exit_code == 0

    assert claimed_by(gated) == "ann"
    assert gated.told("replay", "--all")["same"]
    assert gated.db.with_name("pawl.db.v1.bak").exists()


def copy_as_version_1(newest, path):
    """The same rows in the tables that the first version had."""
    opened(path, busy_ms=100, migrations=MIGRATIONS[:1]).close()
    db = apsw.Connection(str(path))
    db.execute("ATTACH ? AS newest", (str(newest),))
    tables = [
        name for (name,) in db.execute("SELECT name FROM main.sqlite_schema WHERE type='table'")
    ]
    for table in tables:
        columns = ", ".join(row[1] for row in db.execute(f"PRAGMA main.table_info({table})"))
        db.execute(f"DELETE FROM main.{table}")
        db.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM newest.{table}")
    db.close()
