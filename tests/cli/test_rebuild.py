"""`pawl rebuild`: the SQL views from a second terminal, beside an owner or without one."""

import json
import sqlite3
from contextlib import closing

import pytest

from tests.cli.live_kit import killed, until

RUN = ("run", "release.yaml", "--id", "r-1", "--by", "zoe", "--stubs", "stubs.yaml")
ORDER = ("run", "order.yaml", "--worker", "shop_steps", "--input")


def ask(place, sql, *values):
    """What a program without Pawl reads."""
    with closing(sqlite3.connect(place.db)) as db, db:
        return db.execute(sql, values).fetchall()


@pytest.mark.req("R164")
def test_rows_are_built_checked_and_mended(place):
    """Exit 5 and the first difference if a row is not as the journal gives it."""
    place.pawl(*ORDER, '{"amount": 5}', "--id", "o-1")
    place.pawl(*ORDER, '{"amount": 500}', "--id", "o-2")

    assert place.told("rebuild", "--check", exits=4)["error"]["code"] == "views.missing"
    built = place.told("rebuild")
    assert (built["instances"], built["steps"], built["turns"]) == (2, 3, 5)
    assert ask(
        place, "SELECT id, state, current_step_index, step_count FROM workflow_instance ORDER BY id"
    ) == [("o-1", "completed", 2, 2), ("o-2", "failed", 0, 2)]
    fine = {"same": True, "instances": 2, "steps": 3, "behind": 0, "difference": None}
    assert place.told("rebuild", "--check") == fine
    assert place.pawl("rebuild", "--check").stdout == (
        "SAME 2 instances, 3 steps, as the journal gives them\n"
    )

    ask(place, "UPDATE read_step SET state = 'completed' WHERE error_message <> ''")
    found = place.told("rebuild", "--check", exits=5)["difference"]
    where = {"instance": "o-2", "tenant": "default", "step": "charge", "column": "state"}
    assert found == {**where, "kept": "completed", "journal": "failed"}
    said = place.pawl("rebuild", "--check")
    words = "o-2 charge: state is 'completed', and the journal gives 'failed' [views.different]"
    assert (said.exit_code, said.stdout) == (5, f"DIFFERENT {words}\n")
    assert place.pawl("rebuild").stdout == (
        "2 instances, 3 steps, built from 5 turns of the journal\n"
    )
    assert place.told("rebuild", "--check")["same"]


@pytest.mark.req("R164", "R81")
def test_a_rebuild_beside_an_owner_and_after_it_was_killed(place):
    """Nobody's ownership is taken; what the owner does next is missing until somebody follows."""
    with place.owner(*RUN) as owner:
        until(lambda: place.waits_at("r-1", "gate"), "the gate")
        assert place.told("rebuild")["instances"] == 1
        query = "SELECT name, state, status, command_subject FROM workflow_step ORDER BY step_index"
        assert ask(place, query) == [
            ("build", "completed", "succeeded", "ci.build"),
            ("gate", "in_progress", "waiting", ""),
        ]
        said = ("--by", "ann", "--role", "ReleaseManager")
        assert place.told("review", "approve", "r-1/gate", *said)["accepted"]
        report = place.told("rebuild", "--check")
        assert report["same"] and report["behind"] > 0
        assert owner.poll() is None
        killed(owner)
    assert place.told("rebuild")["instances"] == 1
    assert ask(place, query)[1:] == [
        ("gate", "completed", "succeeded", ""),
        ("health", "in_progress", "waiting", ""),
    ]


def test_a_backup_is_restored_without_rows_of_another_journal(place):
    """They follow from the journal, which is another one then: they are built when asked for."""
    place.pawl(*ORDER, '{"amount": 5}', "--id", "o-1")
    assert place.pawl("backup", "before.db").exit_code == 0
    place.pawl(*ORDER, '{"amount": 6}', "--id", "o-2")
    place.told("rebuild")

    assert place.pawl("restore", "before.db", "--force").exit_code == 0

    assert place.told("rebuild", "--check", exits=4)["error"]["code"] == "views.missing"
    assert place.told("rebuild")["instances"] == 1


def test_what_cannot_be_rebuilt(place):
    """No store, and one without SQL."""
    assert place.told("rebuild", exits=4)["error"]["code"] == "store.missing"
    done = place.pawl("rebuild", "--db", "memory:", "--json")
    assert (done.exit_code, json.loads(done.stdout)["error"]["code"]) == (4, "store.missing")


@pytest.mark.req("R164")
def test_on_a_server(place, postgres):
    """The same verb, in the schema of the URL."""
    url = postgres.fresh()
    place.pawl(*ORDER, '{"amount": 5}', "--id", "o-1", "--db", url)
    assert place.told("rebuild", "--db", url)["steps"] == 2
    assert place.told("rebuild", "--check", "--db", url)["same"]
    schema = url.rpartition("schema=")[2].partition("&")[0]
    sql = f"SELECT name, state FROM {schema}.workflow_step ORDER BY step_index"
    assert postgres.execute(sql) == [("charge", "completed"), ("ship", "completed")]
