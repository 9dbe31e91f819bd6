"""The memory of workers in a PostgreSQL table: for those of one service on several machines."""

from collections.abc import Sequence
from threading import Lock
from typing import Any, Final

from pawlflow.model.trouble import PawlError
from pawlflow.worker_memory import BUSY, KEPT_MS, MINE, Claim, Claimed, Done

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
# In order, so that two workers with the same commands never wait for each other.
CLAIM: Final = """
INSERT INTO pawl_worker_commands AS known (step_id, owner, until_ms, attempt)
SELECT step_id, %(owner)s, %(until)s, attempt
FROM unnest(%(steps)s::text[], %(attempts)s::integer[]) AS wanted (step_id, attempt)
ORDER BY step_id
ON CONFLICT (step_id) DO UPDATE
SET owner = excluded.owner, until_ms = excluded.until_ms, attempt = excluded.attempt,
    completion = NULL, success = false
WHERE (known.completion IS NOT NULL AND NOT known.success AND known.attempt < excluded.attempt)
   OR (known.completion IS NULL AND (known.until_ms <= %(now)s OR known.owner = excluded.owner))
RETURNING step_id
"""
KNOWN: Final = """
SELECT step_id, completion FROM pawl_worker_commands
WHERE step_id = ANY(%(steps)s) AND completion IS NOT NULL
"""
RENEW: Final = """
UPDATE pawl_worker_commands SET until_ms = %(until)s
WHERE step_id = ANY(%(steps)s) AND owner = %(owner)s
"""
REMEMBER: Final = """
UPDATE pawl_worker_commands AS known
SET completion = done.completion, success = done.success, attempt = done.attempt
FROM unnest(%(steps)s::text[], %(attempts)s::integer[], %(completions)s::bytea[],
            %(successes)s::boolean[]) AS done (step_id, attempt, completion, success)
WHERE known.step_id = done.step_id
"""
RELEASE: Final = """
DELETE FROM pawl_worker_commands WHERE step_id = ANY(%(steps)s) AND completion IS NULL
"""
# What was done must outlive the machine; a claim is only for workers that are alive.
HASTY: Final = "SET LOCAL synchronous_commit = off"
Row = tuple[Any, ...]


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

    def ask(self, query: str, values: dict[str, Any]) -> list[Row]:
        """One statement is one transaction."""
        with self.lock:
            return rows_of(self.connected(), query, values)

    def connected(self) -> Any:
        """The connection, made again if it was lost."""
        if self.link is None or self.link.closed or self.link.broken:
            self.link = psycopg.connect(
                self.url, autocommit=True, connect_timeout=CONNECT_S, prepare_threshold=None
            )
        return self.link

    def claim(
        self, claims: Sequence[Claim], owner: str, now: int, lease_ms: int
    ) -> Sequence[Claimed]:
        """Take commands, each unless somebody has it or it is done."""
        steps = [each.step_id for each in claims]
        values = {"owner": owner, "now": now, "until": now + lease_ms}
        values |= {"steps": steps, "attempts": [each.attempt for each in claims]}
        with self.lock, self.connected().transaction():
            self.link.execute(HASTY)
            mine = {step for (step,) in rows_of(self.link, CLAIM, values)}
            rest = {"steps": [each for each in steps if each not in mine]}
            known: dict[str, bytes] = dict(rows_of(self.link, KNOWN, rest)) if rest["steps"] else {}
        return [
            MINE if each in mine else Claimed("done", known[each]) if each in known else BUSY
            for each in steps
        ]

    def renew(self, step_ids: Sequence[str], owner: str, until: int) -> None:
        """Still at work on these."""
        self.ask(RENEW, {"steps": list(step_ids), "owner": owner, "until": until})

    def settle(self, done: Sequence[Done]) -> None:
        """These are done, or given back; durable when this returns."""
        kept = [each for each in done if each.completion is not None]
        released = [each.step_id for each in done if each.completion is None]
        with self.lock, self.connected().transaction():
            if kept:
                columns = {
                    "steps": [each.step_id for each in kept],
                    "attempts": [each.attempt for each in kept],
                    "completions": [each.completion for each in kept],
                    "successes": [each.success for each in kept],
                }
                self.link.execute(REMEMBER, columns)
            if released:
                self.link.execute(RELEASE, {"steps": released})

    def forget(self, now: int) -> None:
        """What is too old for anybody to send again."""
        old = {"old": now - KEPT_MS}
        self.ask("DELETE FROM pawl_worker_commands WHERE until_ms < %(old)s", old)

    def close(self) -> None:
        """Give it back."""
        with self.lock:
            if self.link is not None:
                self.link.close()


def rows_of(link: Any, query: str, values: dict[str, Any]) -> list[Row]:
    """What a statement gives."""
    cursor = link.execute(query, values)
    found: list[Row] = cursor.fetchall() if cursor.description else []
    return found
