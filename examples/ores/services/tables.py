"""What the services have in common: tables of their own, and commands that are carried out once."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import psycopg
from pawlflow.worker import Context, Transient
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

Db = psycopg.Connection[dict[str, Any]]
DATABASE = os.environ.get("ORES_DB", "postgresql:///ores")
CHANGES = """
CREATE TABLE IF NOT EXISTS change (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  step_id uuid NOT NULL UNIQUE,
  instance text NOT NULL,
  action text NOT NULL,
  result jsonb,
  xact xid8 NOT NULL DEFAULT pg_current_xact_id()
)
"""


class Tables:
    """A schema that belongs to one service; no other reads or writes it."""

    def __init__(self, schema: str, *definitions: str) -> None:
        self.schema = schema
        self.definitions = (*definitions, CHANGES)

    @property
    def url(self) -> str:
        """The database, as this service sees it: also where its worker keeps what it has done."""
        mark = "&" if "?" in DATABASE else "?"
        return f"{DATABASE}{mark}options={quote(f'-csearch_path={self.schema}')}"

    def make(self) -> "Tables":
        """Have the tables; any number of processes may come at once."""
        with psycopg.connect(self.url) as db:
            db.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (self.schema,))
            db.execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
            for each in self.definitions:
                db.execute(each)
        return self

    @contextmanager
    def transaction(self) -> Iterator[Db]:
        """All of it, or nothing. A database that is away is a reason to try again."""
        try:
            with psycopg.connect(self.url, row_factory=dict_row, connect_timeout=5) as db:
                yield db
        except psycopg.OperationalError as error:
            raise Transient(f"the database of {self.schema} is away: {error}") from error

    def once(self, ctx: Context, action: str, work: Callable[[Db], Any]) -> Any:
        """Carry out a command once: what it does, and that it did it, are one transaction.

        If it comes again, at the same time too, it is answered as it was and does nothing.
        """
        about = (ctx.key, ctx.instance, action)
        with self.transaction() as db:
            new = db.execute(
                "INSERT INTO change (step_id, instance, action) VALUES (%s, %s, %s)"
                " ON CONFLICT DO NOTHING RETURNING seq",
                about,
            ).fetchone()
            if new is None:
                return found(db, "SELECT result FROM change WHERE step_id = %s", ctx.key)["result"]
            result = work(db)
            db.execute("UPDATE change SET result = %s WHERE seq = %s", (Jsonb(result), new["seq"]))
            return result


def found(db: Db, query: str, *values: Any) -> dict[str, Any]:
    """The one row that there must be."""
    row = db.execute(query, values).fetchone()
    assert row is not None, query
    return row
