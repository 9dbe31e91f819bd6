"""The memory of workers in a PostgreSQL table: for those of one service on several machines."""

from threading import Lock
from typing import Any, Final

from pawlflow.model.trouble import PawlError
from pawlflow.worker_memory import KEPT_MS, Claimed

try:
    import psycopg
except ImportError as missing:
    driver = "PostgreSQL needs a driver: pip install 'pawlflow[postgres]'"
    raise PawlError("worker.memory", driver) from missing

CONNECT_S: Final = 5
SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS pawl_worker_commands (
  step_id text PRIMARY KEY, owner text NOT NULL, until_ms bigint NOT NULL,
  attempt integer NOT NULL, completion bytea, success boolean NOT NULL DEFAULT false
)
"""
CLAIM: Final = """
INSERT INTO pawl_worker_commands AS known (step_id, owner, until_ms, attempt)
VALUES (%(step)s, %(owner)s, %(until)s, %(attempt)s)
ON CONFLICT (step_id) DO UPDATE
SET owner = excluded.owner, until_ms = excluded.until_ms, attempt = excluded.attempt,
    completion = NULL, success = false
WHERE (known.completion IS NOT NULL AND NOT known.success AND known.attempt < excluded.attempt)
   OR (known.completion IS NULL AND (known.until_ms <= %(now)s OR known.owner = excluded.owner))
RETURNING step_id
"""


class PostgresMemory:
    """A table in a database; the connection is made again if it was lost."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.lock = Lock()
        self.link: Any = None
        try:
            self.ask("SELECT pg_advisory_lock(7042026)", {})  # two may come at once
            self.ask(SCHEMA, {})
            self.ask("SELECT pg_advisory_unlock(7042026)", {})
        except psycopg.Error as error:
            self.close()
            message = f"the memory in PostgreSQL cannot be opened: {error}"
            raise PawlError("worker.memory", message) from error

    def ask(self, query: str, values: dict[str, Any]) -> tuple[Any, ...] | None:
        """One statement is one transaction."""
        with self.lock:
            if self.link is None or self.link.closed or self.link.broken:
                self.link = psycopg.connect(
                    self.url, autocommit=True, connect_timeout=CONNECT_S, prepare_threshold=None
                )
            cursor = self.link.execute(query, values)
            found: tuple[Any, ...] | None = cursor.fetchone() if cursor.description else None
            return found

    def claim(self, step_id: str, attempt: int, owner: str, now: int, lease_ms: int) -> Claimed:
        """Take a command, unless somebody has it or it is done."""
        values = {"step": step_id, "owner": owner, "attempt": attempt, "now": now}
        if self.ask(CLAIM, {**values, "until": now + lease_ms}) is not None:
            return Claimed("mine")
        row = self.ask(
            "SELECT completion FROM pawl_worker_commands WHERE step_id = %(step)s", values
        )
        done = None if row is None else row[0]
        return Claimed("busy") if done is None else Claimed("done", bytes(done))

    def renew(self, step_id: str, owner: str, until: int) -> None:
        """Still at work on it."""
        self.ask(
            "UPDATE pawl_worker_commands SET until_ms = %(until)s"
            " WHERE step_id = %(step)s AND owner = %(owner)s",
            {"step": step_id, "owner": owner, "until": until},
        )

    def remember(self, step_id: str, attempt: int, completion: bytes, *, success: bool) -> None:
        """It is done; durable when this returns, before anybody is told."""
        self.ask(
            "UPDATE pawl_worker_commands SET completion = %(done)s, success = %(success)s,"
            " attempt = %(attempt)s WHERE step_id = %(step)s",
            {"step": step_id, "done": completion, "success": success, "attempt": attempt},
        )

    def release(self, step_id: str) -> None:
        """It failed and may be tried again, by whoever gets it."""
        self.ask(
            "DELETE FROM pawl_worker_commands WHERE step_id = %(step)s AND completion IS NULL",
            {"step": step_id},
        )

    def forget(self, now: int) -> None:
        """What is too old for anybody to send again."""
        old = {"old": now - KEPT_MS}
        self.ask("DELETE FROM pawl_worker_commands WHERE until_ms < %(old)s", old)

    def close(self) -> None:
        """Give it back."""
        if self.link is not None:
            self.link.close()
