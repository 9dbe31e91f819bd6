"""What only the PostgreSQL store promises: schemas, versions, rights, settings, what is told."""

import logging
import sys

import psycopg
import pytest

from pawlflow.app import open_store
from pawlflow.store.port import (
    Attributes,
    Filter,
    Review,
    Reviewed,
    StoreFullError,
    Taken,
    Term,
)
from pawlflow.store.postgres import PostgresStore
from pawlflow.store.postgres_errors import told
from pawlflow.store.postgres_link import connect
from pawlflow.store.postgres_rows import sql_of
from pawlflow.store.postgres_schema import MIGRATIONS
from pawlflow.store.postgres_url import where_of
from pawlflow.store.rows import FOLDER
from pawlflow.testing.conformance_kit import ACME, Scribe, cell, letter, refused
from tests.servers import PASSWORD

EVERY = tuple(range(32))
NEWEST = MIGRATIONS[-1][0]


@pytest.fixture
def url(postgres):
    """A store of this test."""
    return postgres.fresh()


@pytest.fixture
def store(url):
    """A store, closed at the end."""
    made = PostgresStore(url)
    yield made
    made.close()


def schema_of(url):
    """The schema that a URL names."""
    return where_of(url).schema


# What is told


def test_facts_say_what_the_server_is(store, postgres):
    """Kind, version, size, and how it keeps what it is given."""
    facts = store.facts()
    assert facts["kind"] == "postgres"
    assert facts["version"] == NEWEST
    assert facts["server"].startswith("1")
    assert (facts["database"], facts["schema"]) == ("pawl", store.where.schema)
    assert (facts["fsync"], facts["synchronous_commit"]) == ("off", "on")
    assert facts["size"] > 100_000
    assert facts["owner"] is None
    assert PASSWORD not in str(facts)


def test_settings_that_may_lose_something_are_told_loudly(url, caplog):
    """The server of these tests does not flush: its operator should know."""
    store = PostgresStore(url)
    with caplog.at_level(logging.WARNING):
        store.claim()
    store.close()
    assert "fsync=off" in caplog.text
    assert "fish" not in caplog.text


BAD = [
    ("postgresql://u:p@ss@host/db", "%40"),
    ("postgresql://u:p/ss@host/db", "%2F"),
    ("postgresql://u:p@host:port/db", "PORT"),
    ("postgresql://u:p@host/db#x", "%23"),
    ("postgresql://u:pss@host/db?schema=drop table", "schema"),
    ("postgresql://u:pss@host/db?schema=pg_x", "schema"),
    ("postgresql://u:pss@host/db?wait=soon", "wait"),
    ("postgresql://u:pss@host/db?claim=never", "claim"),
]


@pytest.mark.parametrize(("url", "said"), BAD)
def test_a_url_that_cannot_be_read_is_refused_without_its_password(url, said):
    """What is wrong may be the password itself: it is not quoted."""
    trouble = refused("store.url", lambda: open_store(url))
    assert said in str(trouble)
    assert "ss" not in str(trouble).replace("PASSWORD", "").replace("password", "").lower()


def test_options_of_libpq_may_hold_blanks(url):
    """They reach the server as they were meant, and ours do not."""
    where = where_of(f"{url}&options=-c%20statement_timeout%3D77s&wait=3")
    with connect(where) as db:
        [(timeout,)] = db.execute("SHOW statement_timeout").fetchall()
    assert timeout == "77s"


def test_the_password_is_nowhere(postgres, url):
    """Not in errors of the network, of the server, of rights, or of the URL; not in a repr."""
    postgres.execute("CREATE ROLE locked LOGIN PASSWORD 'right'")
    wrong = url.replace("pawl:fish", "locked:fish")
    away = url.replace(f":{postgres.port}/", ":1/")
    gone = url.replace("/pawl?", "/nowhere?")
    inside = url.replace(":fish%26chips@", "@") + "&password=fish%26chips"
    for each in (wrong, away, gone):
        trouble = refused("store.unreachable", lambda each=each: PostgresStore(each))
        for words in (str(trouble), repr(trouble), repr(trouble.__cause__)):
            assert "fish" not in words
    store = PostgresStore(inside)
    assert "fish" not in f"{store.facts()}{store.where.told}{store!r}"
    store.close()
    error = refused("store.closed", store.claim)
    assert "fish" not in str(error)


def test_errors_of_the_server_have_codes_of_ours(store):
    """Full disks can be waited for; others name the way out."""
    full = psycopg.errors.DiskFull("could not extend file")
    assert isinstance(told(full, store.where, "appending"), StoreFullError)
    codes = {
        psycopg.errors.InsufficientPrivilege: "store.rights",
        psycopg.errors.UniqueViolation: "store.batch",
        psycopg.errors.UndefinedTable: "store.damaged",
        psycopg.errors.DataCorrupted: "store.damaged",
        psycopg.errors.QueryCanceled: "store.busy",
        psycopg.errors.TooManyConnections: "store.busy",
        psycopg.errors.IoError: "store.io",
        psycopg.errors.SyntaxError: "store.trouble",
    }
    for kind, code in codes.items():
        assert told(kind("words"), store.where, "doing it").code == code


# Commits


def test_a_commit_waits_for_the_disk_whatever_the_role_says(url, postgres):
    """A role, or a database, may have synchronous_commit off; a flush has it on."""
    store = PostgresStore(url.replace("?", "?options=-csynchronous_commit%3Doff&"))
    schema = schema_of(url)
    postgres.execute(
        f"CREATE FUNCTION {schema}.seen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"INSERT INTO {schema}.setting VALUES (current_setting('synchronous_commit')); "
        "RETURN NULL; END $$"
    )
    postgres.execute(f"CREATE TABLE {schema}.setting (value text)")
    for table in ("frame", "mailbox"):
        postgres.execute(
            f"CREATE CONSTRAINT TRIGGER seen AFTER INSERT ON {schema}.{table} DEFERRABLE "
            f"INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {schema}.seen()"
        )
    scribe = Scribe(store)
    scribe.turn(cell("order-1"))
    scribe.commit()
    store.post([letter(cell("order-1"))])
    assert store.facts()["synchronous_commit"] == "off"
    store.close()
    assert postgres.execute(f"SELECT value FROM {schema}.setting") == [("on",), ("on",)]


def test_a_flush_is_one_statement(store, postgres):
    """Turns, heads, mail, reviews and all: one round trip, whatever is in it."""
    [(pid,)] = store._link.read("", lambda db: db.execute(b"SELECT pg_backend_pid()").fetchall())
    scribe = Scribe(store)
    head = scribe.turn(cell("order-1"))
    [mail] = store.post([letter(cell("order-1"))])
    review = Review(
        ref=head.ref, cell=head.cell, step="s", kind="approval", role=None, since=1, due_at=None
    )
    scribe.commit(
        reviews=[review, Reviewed(head.ref, "s"), review],
        attributes=[Attributes(head.ref, {"a": 1})],
        taken=[Taken(mail)],
        mail=[letter(cell("order-2"))],
    )
    [(query, state)] = postgres.execute(
        "SELECT query, state FROM pg_stat_activity WHERE pid = %s", pid
    )
    assert state == "idle"
    assert all(word in query for word in ("append(", "take(", "post(", ".review", ".search"))
    assert store.reviews(ACME) == [review]


def test_characters_that_a_text_may_not_hold_are_kept(store):
    """What people say is kept byte by byte; a name with such a character is refused."""
    scribe = Scribe(store)
    head = scribe.turn(cell("order-1"))
    [mail] = store.post([letter(cell("order-1"), key="a\0b")])
    review = Review(
        ref=head.ref,
        cell=head.cell,
        step="s",
        kind="approval",
        role="r\0",
        since=1,
        due_at=None,
        claimed_by="ann\0",
    )
    scribe.commit(reviews=[review], taken=[Taken(mail, "no", "why\0")])
    assert store.reviews(ACME) == [review]
    assert store.answer(mail) == Taken(mail, "no", "why\0")
    refused("store.batch", lambda: store.post([letter(cell("a\0b"))]))


def test_what_no_name_can_be_is_not_found(store):
    """Whoever asks for it gets nothing, and no error of the server."""
    scribe = Scribe(store)
    scribe.turn(cell("order-1"))
    scribe.turn(cell("$pool/a", workflow="$pool"))
    scribe.commit()
    for odd in ("order-1\0", "\ud800", "ä\0"):
        assert store.load([(ACME, odd), (odd, "order-1")]) == {}
        assert store.story((ACME, odd)) is None
        assert store.instances(Filter(tenant=odd)) == []
        found = [[Term("id", "==", (odd,), builtin=True)], [Term(odd, ">", (1,))]]
        assert store.instances(Filter(tenant=ACME, where=found)) == []
        assert store.reviews(odd) == store.published(odd) == store.dispositions(odd, 9) == []
        assert store.attribute_names(odd) == store.systems(odd, "$pool", "", 9) == []
    keys = [head.cell.key for head in store.systems(ACME, "$pool", "$pool/a\0", 9)]
    assert keys == ["$pool/a"]


def test_long_texts_are_found_exactly(store):
    """Only their first bytes are in the index; the rest is compared after they were found."""
    scribe = Scribe(store)
    values = ["x" * 600, "x" * 600 + "a", "x" * 511, "x" * 512, "x" * 512 + "b", "y" * 9_000]
    for number, value in enumerate(values):
        head = scribe.turn(cell(f"i-{number}"), created_at=1_000 + number)
        scribe.commit(attributes=[Attributes(head.ref, {"t": value})])
    for probe in [*values, "x" * 512 + "a", "x" * 599, "z" * 600]:
        for op, holds in {
            "==": lambda a, b: a == b,
            "<": lambda a, b: a < b,
            "<=": lambda a, b: a <= b,
            ">": lambda a, b: a > b,
            ">=": lambda a, b: a >= b,
        }.items():
            found = store.instances(Filter(tenant=ACME, where=[[Term("t", op, (probe,))]]))
            wanted = [n for n, value in enumerate(values) if holds(value, probe)]
            assert [head.cell.key for head in found] == [f"i-{n}" for n in reversed(wanted)], op


def test_many_instances_are_found_page_by_page(store):
    """More than are read at once, in every way there is."""
    scribe = Scribe(store)
    for number in range(300):
        head = scribe.turn(cell(f"i-{number}"), created_at=1_000 + number)
        scribe.commit(attributes=[Attributes(head.ref, {"n": number % 2})])
    even = [[Term("n", "==", (0,))]]
    assert len(store.instances(Filter(tenant=ACME, where=even, limit=500))) == 150
    assert len(store.instances(Filter(tenant=ACME, limit=500))) == 300
    assert len(list(store.refs())) == 300
    assert len(list(store.frames(0))) == 300


def test_every_statement_is_used():
    """What no code calls by its name is retired and goes."""
    folder = FOLDER.parent
    code = "".join(file.read_text() for file in (*folder.glob("postgres*.py"), folder / "ways.py"))
    assert [name for name in sql_of("pawl") if f'"{name}"' not in code] == []


def test_damage_is_found(store, postgres):
    """A journal whose end is not what its head says is not claimed; deep looks find the rest."""
    scribe = Scribe(store)
    for _ in range(3):
        scribe.turn(cell("order-1"))
        scribe.commit()
    assert store.integrity(deep=True) == ([], [])
    schema = store.where.schema
    postgres.execute(f"DELETE FROM {schema}.entry WHERE pos = 64")
    refused("store.damaged", lambda: store.load([(ACME, "order-1")]))
    assert store.integrity(deep=False) == ([], [])
    [gap] = store.integrity(deep=True)[1]
    assert "gap" in gap
    postgres.execute(f"UPDATE {schema}.shard SET hash = '\\x00' WHERE id = 0")
    refused("store.chain", store.claim)
    postgres.execute(f"DELETE FROM {schema}.pulse")
    assert "no last turn" in store.integrity(deep=True)[0][0]


def test_without_the_driver_the_way_out_is_told(monkeypatch):
    """The core is installed without it, and works."""
    monkeypatch.setitem(sys.modules, "pawlflow.store.postgres", None)
    monkeypatch.delattr("pawlflow.store.postgres", raising=False)
    trouble = refused("store.driver", lambda: open_store("postgresql://x/y"))
    assert "pip install 'pawlflow[postgres]'" in str(trouble)
