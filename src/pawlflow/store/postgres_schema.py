"""Opening a PostgreSQL store: is it ours, which version is it, and bring it to the newest."""

from collections.abc import Sequence
from typing import Final

import psycopg

from pawlflow.store import postgres_errors as errors
from pawlflow.store.check import genesis
from pawlflow.store.port import SHARDS, StoreError
from pawlflow.store.postgres_link import VERSION_MIN, Connection, run
from pawlflow.store.postgres_removal import fill_expiry
from pawlflow.store.postgres_rows import blobs, in_schema, ints, sql_of
from pawlflow.store.postgres_url import Where
from pawlflow.store.rows import FOLDER

APPLICATION: Final = "pawlflow"
LOCK: Final = 0x5061776C  # "Pawl": who holds it creates or migrates
Migration = tuple[int, str]
MIGRATIONS: Final[Sequence[Migration]] = tuple(
    (number, (FOLDER / f"postgres_{number}.sql").read_text()) for number in (1, 2)
)
RETENTION: Final = 2  # the version since which it counts how long instances are kept
EXISTS: Final = (  # not to_regclass: that remembers what was missing a moment ago
    "SELECT EXISTS (SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE n.nspname = $1 AND c.relname = 'meta')"
)
OTHERS: Final = (
    "SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = n.oid)"
    " + (SELECT count(*) FROM pg_proc WHERE pronamespace = n.oid)"
    " FROM pg_namespace AS n WHERE nspname = $1"
)


def is_made(db: Connection, where: Where) -> bool:
    """Is there a store of ours? Nothing is made."""
    return bool(run(db, EXISTS, (where.schema,))[0][0])


def bring_up(db: Connection, where: Where, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Create what is missing, or migrate, once and under a lock; refuse what is not for us."""
    check_server(db, where)
    try:
        if not is_made(db, where) or version_of(db, where, migrations[-1][0]) < migrations[-1][0]:
            _migrate(db, where, migrations)
        _check_shards(db, where)
    except psycopg.errors.InsufficientPrivilege as trouble:
        raise errors.told(trouble, where, "opening it") from trouble
    except psycopg.Error as trouble:
        if db.closed:
            raise errors.unreachable(trouble, where) from trouble
        raise errors.told(trouble, where, "opening it") from trouble


def check_server(db: Connection, where: Where) -> None:
    """Is the server new enough, and does the database hold every character?"""
    version, encoding = db.info.server_version, db.info.parameter_status("server_encoding")
    if version < VERSION_MIN:
        found = f"PostgreSQL {version // 10_000}; {VERSION_MIN // 10_000} or newer is needed"
    elif encoding not in (None, "UTF8"):
        found = f"a database of encoding {encoding}; make one with ENCODING 'UTF8'"
    else:
        return
    raise StoreError("store.server", f"{where.told} is {found}")


def version_of(db: Connection, where: Where, newest: int) -> int:
    """The version of a store. Raises StoreError if it is not for us."""
    try:
        facts: dict[str, str] = dict(run(db, sql_of(where.schema)["meta"]))
        version = int(facts["version"])
    except (psycopg.errors.UndefinedColumn, LookupError, ValueError) as trouble:
        raise errors.not_ours(where, "has a table meta of another application") from trouble
    if facts.get("application") != APPLICATION:
        raise errors.not_ours(where, "is of another application")
    if version > newest:
        raise errors.newer(where, version, newest)
    return version


def _migrate(db: Connection, where: Where, migrations: Sequence[Migration]) -> None:
    """One transaction, one at a time: who comes second finds it done."""
    sql, newest = sql_of(where.schema), migrations[-1][0]
    with db.transaction():
        run(db, "SELECT pg_advisory_xact_lock($1)", (LOCK,))
        version = version_of(db, where, newest) if is_made(db, where) else 0
        if version == newest:
            return
        if version == 0:
            _make_room(db, where)
        for number, text in migrations:
            if number > version:
                db.execute(in_schema(text, where.schema).encode())
        if version == 0:
            rows = [genesis(shard) for shard in range(SHARDS)]
            given = (ints([row.shard for row in rows]), blobs([row.hash for row in rows]))
            run(db, sql["shard_add"], given)
            run(db, sql["meta_put"], ("application", APPLICATION))
            run(db, sql["meta_put"], ("shards", str(SHARDS)))
        else:
            if version < RETENTION <= newest:
                fill_expiry(db, sql)
            run(db, sql["shards_fence"])  # an owner of the older version writes as it knows
        run(db, sql["meta_put"], ("version", str(newest)))


def _make_room(db: Connection, where: Where) -> None:
    """The schema, unless somebody made it for us; it must be empty."""
    found = run(db, OTHERS, (where.schema,))
    if not found:
        db.execute(f'CREATE SCHEMA "{where.schema}"'.encode())
    elif found[0][0]:
        raise errors.not_ours(where, "has tables or functions of another application")


def _check_shards(db: Connection, where: Where) -> None:
    facts: dict[str, str] = dict(run(db, sql_of(where.schema)["meta"]))
    if facts.get("shards") != str(SHARDS):
        raise StoreError(
            "store.shards",
            f"{where.told} was not made with {SHARDS} shards but {facts.get('shards')}: use the "
            "pawlflow that made it",
        )
