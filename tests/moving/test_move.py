"""A store in another place: the same bytes, and everything that was in flight goes on there."""

import asyncio
import re
import shutil
from contextlib import closing

import apsw
import pytest

from pawlflow.app import open_store
from pawlflow.sides import side_of
from pawlflow.store.moves import BYTES_MAX, PARTS
from pawlflow.store.port import Blob
from pawlflow.store.postgres_move import move_sql
from pawlflow.store.rows import FOLDER, statements
from pawlflow.store.sqlite_move import MOVE_SQL
from pawlflow.testing.conformance_kit import Scribe, cell
from tests.moving.kit import (
    STARTS,
    STATES,
    carried,
    differences,
    finish,
    journals,
    states,
    the_same,
    turns,
)


@pytest.mark.req("R219")
def test_everything_is_in_flight(flight):
    """The store that the other tests move has something of every kind in it."""
    side = side_of(flight)
    sizes = side.sizes()
    side.close()

    assert all(sizes.values()), sizes
    found = states(flight)
    assert {key: found[key] for key in STARTS} == STATES
    assert differences(flight) == []


@pytest.mark.req("R219", "R226")
def test_a_file_becomes_a_server_and_ends_there_as_it_would_have_here(flight, postgres, tmp_path):
    """The bytes are the same after the move, and still the same when all has ended."""
    stayed = f"sqlite:///{tmp_path}/stayed.db"
    shutil.copy(tmp_path / "flight.db", tmp_path / "stayed.db")
    before = journals(flight)
    server = postgres.fresh()

    moved = carried(flight, server)

    assert (moved.resumed, moved.already) == (False, False)
    assert journals(server) == before
    assert differences(server) == []
    here, there = asyncio.run(finish(stayed)), asyncio.run(finish(server))
    assert there == here
    assert {key: there[key] for key in STARTS} == {
        **dict.fromkeys(STARTS, "completed"),
        "saga-1": "failed",
    }
    assert turns(server) == turns(stayed)
    assert differences(server) == []


@pytest.mark.req("R219")
def test_a_server_becomes_a_file(flight, postgres, tmp_path):
    """The way back, and on from one server to another: the same code, the same bytes."""
    before, server, other = journals(flight), postgres.fresh(), postgres.fresh()
    carried(flight, server)
    carried(server, other)
    assert journals(other) == before
    file = f"sqlite:///{tmp_path}/back.db"

    carried(other, file)

    assert the_same(journals(file), before)
    assert differences(file) == []
    ended = asyncio.run(finish(file))
    assert [key for key in STARTS if ended[key] != "completed"] == ["saga-1"]
    assert differences(file) == []


@pytest.mark.req("R219")
def test_progress_is_told_page_by_page(flight, tmp_path):
    """It rises to its end, and what an earlier run did is not counted twice."""
    seen = []
    carried(flight, f"sqlite:///{tmp_path}/new.db", lambda *told: seen.append(told))

    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert {total for _, total in seen} == {seen[-1][1]}
    assert seen[-1][0] <= seen[-1][1]
    assert len(seen) > 20


@pytest.mark.req("R219", "R211")
def test_a_page_holds_no_more_than_may_be_in_memory(tmp_path, postgres):
    """Large payloads go a few at a time, however many there are."""
    for url in (f"sqlite:///{tmp_path}/large.db", postgres.fresh()):
        with closing(open_store(url)) as store:
            scribe = Scribe(store)
            for number in range(12):
                head = scribe.turn(cell(f"order-{number}"))
                scribe.commit(blobs=[Blob(head.ref, b"%d" % number, bytes(1 << 20))])
        with closing(side_of(url)) as side:
            pages, after = [], PARTS["blobs"]
            while page := side.page("blobs", after):
                pages.append(sum(len(row[1]) for row in page))
                after = page[-1][:1]
        assert sum(pages) == 12 << 20
        assert max(pages) <= BYTES_MAX + (1 << 20)


def test_every_table_is_moved(tmp_path, postgres):
    """A table that a later version adds is carried on too, or is named here."""
    server = postgres.fresh()
    for url in (f"sqlite:///{tmp_path}/empty.db", server):
        open_store(url).close()
    schema = server.partition("schema=")[2]
    asked = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
    tables = {name for (name,) in postgres.execute(asked, schema)}
    db = apsw.Connection(str(tmp_path / "empty.db"))
    files = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    db.close()

    for found, text in ((tables, "postgres_move.sql"), (files, "sqlite_move.sql")):
        known = (FOLDER / text).read_text()
        missing = {name for name in found if not re.search(rf"\b{name}\b", known)}
        assert missing <= {"node"}  # who owns shards now


def test_every_statement_of_a_move_is_used():
    """What no code calls by its name is retired and goes."""
    pages = {f"{part}_{what}" for part in PARTS for what in ("page", "write", "heavy")}
    for kind, more in (("sqlite", MOVE_SQL), ("postgres", move_sql("pawl"))):
        code = (FOLDER.parent / f"{kind}_move.py").read_text()
        ours = statements((FOLDER / f"{kind}_move.sql").read_text())
        assert set(ours) <= set(more)
        assert [name for name in ours if f'"{name}"' not in code and name not in pages] == []
