"""Scenarios on a PostgreSQL server: in a schema of their own, which is gone at the end."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from pawlflow.definition.plan import Plan
from pawlflow.model.ids import CellId
from pawlflow.model.intents import Call
from pawlflow.store.check import genesis
from pawlflow.store.port import SHARDS, StoreError
from pawlflow.store.postgres import PostgresStore
from pawlflow.store.postgres_errors import told
from pawlflow.store.postgres_link import Connection, connect, run
from pawlflow.store.postgres_rows import blobs, in_schema, ints, sql_of
from pawlflow.store.postgres_url import where_of
from pawlflow.testing.host import Crash, Host, Planned
from pawlflow.testing.runner import HostOn

TABLES = (
    *("frame", "entry", "disposition", "cell", "pulse", "attributes", "search", "review"),
    *("definition", "published", "blob", "cell_blob", "snapshot", "mailbox", "refusal"),
    *("node", "shard"),
)


@contextmanager
def on_server(url: str) -> Iterator[HostOn]:
    """Hosts on a new store each. What the database already holds is left alone."""
    if "schema=" in url:
        message = "scenarios make a schema of their own: leave the option schema out"
        raise StoreError("store.url", message)
    own = f"{url}{'&' if '?' in url else '?'}schema=pawl_test_{secrets.token_hex(6)}"
    where = where_of(own)
    PostgresStore(own).close()
    try:
        with connect(where) as db:
            rooms = Rooms(db, own)
            try:
                yield rooms.host
            finally:
                rooms.leave()
                db.execute(f'DROP SCHEMA "{where.schema}" CASCADE'.encode())
    except psycopg.Error as trouble:
        raise told(trouble, where, "running scenarios") from trouble


class Rooms:
    """One store after the other, in one schema."""

    def __init__(self, db: Connection, url: str) -> None:
        self.db = db
        self.url = url
        self.opened: list[PostgresStore] = []

    def host(
        self,
        cell: CellId,
        plan: Plan,
        answer: Callable[[Call], Planned | None],
        crash: Crash | None,
    ) -> Host:
        """A host on a store without anything in it."""
        self.leave()
        wipe(self.db, where_of(self.url).schema)
        return Host(cell, plan, answer, crash, self.open)

    def open(self) -> PostgresStore:
        """Another handle on the store of the last host."""
        self.opened.append(PostgresStore(self.url))
        return self.opened[-1]

    def leave(self) -> None:
        """The last host is done with."""
        for store in self.opened:
            store.close()
        self.opened = []


def wipe(db: Connection, schema: str) -> None:
    """Make a store as new as it was when it was made, but its numbers go on: that takes 2 ms."""
    gone = ";".join(f"DELETE FROM pawl.{table}" for table in TABLES)
    with db.transaction():
        db.execute(in_schema(gone, schema).encode())
        rows = [genesis(shard) for shard in range(SHARDS)]
        given = (ints([row.shard for row in rows]), blobs([row.hash for row in rows]))
        run(db, sql_of(schema)["shard_add"], given)
