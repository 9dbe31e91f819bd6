"""Schemas of the PostgreSQL store: made once, brought to the newest version once, or refused."""

import threading

import pytest

from pawlflow.app import open_store
from pawlflow.store.port import StoreError
from pawlflow.store.postgres import PostgresStore
from pawlflow.store.postgres_link import connect
from pawlflow.store.postgres_schema import MIGRATIONS, bring_up
from pawlflow.store.postgres_url import where_of
from pawlflow.testing.conformance_kit import Scribe, cell, refused

NEWEST = MIGRATIONS[-1][0]


@pytest.fixture
def url(postgres):
    """A store of this test."""
    return postgres.fresh()


def schema_of(url):
    """The schema that a URL names."""
    return where_of(url).schema


def test_the_schema_is_pawl_unless_the_url_says_otherwise(postgres):
    """In a database of its own, as most users will have it."""
    postgres.execute("CREATE DATABASE plain")
    url = postgres.url.removesuffix("pawl") + "plain"
    store = open_store(url)
    assert store.facts()["schema"] == "pawl"
    store.close()
    [(count,)] = postgres.execute("SELECT count(*) FROM pawl.shard", database="plain")
    assert count == 32


def test_many_that_come_at_once_make_it_once(url, postgres):
    """The first one creates, under a lock; the others find it done."""
    made: list[object] = []

    def make() -> None:
        try:
            store = PostgresStore(url)
            made.append(store.facts()["version"])
            store.close()
        except StoreError as trouble:
            made.append(trouble)

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [NEWEST] * 6
    [(shards,)] = postgres.execute(f"SELECT count(*) FROM {schema_of(url)}.shard")
    assert shards == 32


def test_a_migration_runs_once_however_many_come(url, postgres):
    """Each adds a row if it runs; and owners of the older version are fenced."""
    old = PostgresStore(url)
    scribe = Scribe(old)
    scribe.turn(cell("order-1"))
    schema = schema_of(url)
    more = (
        *MIGRATIONS,
        (NEWEST + 1, "CREATE TABLE pawl.ran (at timestamptz)"),
        (NEWEST + 2, "INSERT INTO pawl.ran VALUES (now())"),
    )

    def bring() -> None:
        with connect(where_of(url)) as db:
            bring_up(db, where_of(url), more)

    threads = [threading.Thread(target=bring) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [(ran,)] = postgres.execute(f"SELECT count(*) FROM {schema}.ran")
    assert ran == 1
    refused("store.fenced", scribe.commit)
    old.close()
    trouble = refused("store.newer", lambda: PostgresStore(url))
    words = f"version {NEWEST + 2}, and this pawlflow knows versions up to {NEWEST}"
    assert words in str(trouble)
    assert "upgrade pawlflow" in str(trouble)


def test_a_migration_that_fails_leaves_nothing(url, postgres):
    """One transaction: the version is the old one, and so are the tables."""
    PostgresStore(url).close()
    broken = (*MIGRATIONS, (NEWEST + 1, "CREATE TABLE pawl.half (x int); SELECT 1 / 0"))
    with connect(where_of(url)) as db:
        refused("store.trouble", lambda: bring_up(db, where_of(url), broken))
    store = PostgresStore(url)
    assert store.facts()["version"] == NEWEST
    store.close()
    [(half,)] = postgres.execute(f"SELECT to_regclass('{schema_of(url)}.half') IS NULL")
    assert half


@pytest.mark.parametrize(
    "theirs",
    [
        "CREATE TABLE {0}.orders (id int)",
        "CREATE TABLE {0}.meta (name text, value text)",
        "CREATE TABLE {0}.meta (version int)",
        "CREATE FUNCTION {0}.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE TABLE {0}.meta (name text, value text);"
        "INSERT INTO {0}.meta VALUES ('version', '1'), ('application', 'other')",
    ],
)
def test_a_schema_of_another_application_is_refused_and_left_alone(url, postgres, theirs):
    """Whatever is in it; nothing is added to it."""
    schema = schema_of(url)
    postgres.execute(f"CREATE SCHEMA {schema}")
    with postgres.connect() as db:
        db.execute(theirs.format(schema))
    count = "SELECT count(*) FROM pg_class WHERE relnamespace = %s::regnamespace"
    before = postgres.execute(count, schema)
    trouble = refused("store.not_ours", lambda: PostgresStore(url))
    assert schema in str(trouble)
    assert postgres.execute(count, schema) == before


def test_a_store_of_other_shards_is_refused(url, postgres):
    """Positions would mean something else."""
    PostgresStore(url).close()
    postgres.execute(f"UPDATE {schema_of(url)}.meta SET value = '64' WHERE name = 'shards'")
    refused("store.shards", lambda: PostgresStore(url))


def test_an_empty_schema_that_was_made_for_a_role_is_enough(url, postgres):
    """A role that owns the schema needs no right to create one; without either it is told."""
    schema = schema_of(url)
    postgres.execute(f"CREATE ROLE {schema} LOGIN")
    theirs = url.replace("pawl:fish%26chips", schema)
    trouble = refused("store.rights", lambda: PostgresStore(theirs))
    assert "docs/postgres.md" in str(trouble)
    postgres.execute(f"CREATE SCHEMA {schema} AUTHORIZATION {schema}")
    store = PostgresStore(theirs)
    Scribe(store).turn(cell("order-1"))
    assert store.owner() is not None
    store.close()


def test_a_database_that_cannot_hold_every_character_is_refused(postgres):
    """Names would come back as others."""
    postgres.execute(
        "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    )
    trouble = refused("store.server", lambda: PostgresStore(postgres.url[:-4] + "latin"))
    assert "UTF8" in str(trouble)
