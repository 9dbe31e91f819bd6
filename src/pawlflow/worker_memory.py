"""The memory of workers: which commands were carried out, and what was told of them.

Workers that share a memory carry out a command once. It is a file of its own, beside whatever the
service keeps; forgetting costs nothing more than asking the engine.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Final, Literal, NamedTuple, Protocol

from pawlflow.model.trouble import PawlError

KEPT_MS: Final = 30 * 86_400_000
BUSY_S: Final = 10.0
SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS commands (
  step_id TEXT PRIMARY KEY, owner TEXT NOT NULL, until_ms INTEGER NOT NULL,
  attempt INTEGER NOT NULL, completion BLOB, success INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
"""


class Claim(NamedTuple):
    """A command that a worker wants to carry out."""

    step_id: str
    attempt: int


class Claimed(NamedTuple):
    """What a worker may do with a command."""

    kind: Literal["mine", "busy", "done"]
    completion: bytes | None = None  # of one that is done: to be told again


MINE: Final = Claimed("mine")
BUSY: Final = Claimed("busy")


class Done(NamedTuple):
    """A command that was carried out; without a completion it may be tried again, by anybody."""

    step_id: str
    attempt: int
    completion: bytes | None
    success: bool


class Memory(Protocol):
    """What workers need of one. Called in threads; each call is one transaction."""

    def claim(
        self, claims: Sequence[Claim], owner: str, now: int, lease_ms: int
    ) -> Sequence[Claimed]:
        """Take commands, each unless somebody has it or it is done; an answer for each.

        A success is done for every attempt, a failure for good for its own and earlier ones. No
        two of the claims are for the same step.
        """
        ...

    def renew(self, step_ids: Sequence[str], owner: str, until: int) -> None:
        """Still at work on these."""
        ...

    def settle(self, done: Sequence[Done]) -> None:
        """These are done, or given back; durable when this returns, before anybody is told."""
        ...

    def forget(self, now: int) -> None:
        """What is too old for anybody to send again."""
        ...

    def close(self) -> None:
        """Give it back."""
        ...


class SqliteMemory:
    """A SQLite file. Any number of workers on this machine may share it."""

    def __init__(self, url: str) -> None:
        place = url.removeprefix("sqlite:///") if url != "memory:" else ":memory:"
        try:
            if place != ":memory:":
                Path(place).expanduser().parent.mkdir(parents=True, exist_ok=True)
                place = str(Path(place).expanduser())
            self.db = sqlite3.connect(
                place, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            self.db.execute("PRAGMA journal_mode=WAL")
            self.db.executescript(SCHEMA)
        except (sqlite3.Error, OSError) as error:
            message = f"the memory {url} cannot be opened: {error}"
            raise PawlError("worker.memory", message) from error
        self.lock = Lock()

    def claim(
        self, claims: Sequence[Claim], owner: str, now: int, lease_ms: int
    ) -> Sequence[Claimed]:
        """Take commands, each unless somebody has it or it is done."""
        with self.lock, Held(self.db, flushed=False):
            answers = [self.answer(claim, owner, now) for claim in claims]
            self.db.executemany(
                "INSERT OR REPLACE INTO commands VALUES (?, ?, ?, ?, NULL, 0)",
                [
                    (claim.step_id, owner, now + lease_ms, claim.attempt)
                    for claim, answer in zip(claims, answers, strict=True)
                    if answer is MINE
                ],
            )
        return answers

    def answer(self, claim: Claim, owner: str, now: int) -> Claimed:
        """May this worker have a command?"""
        row = self.db.execute(
            "SELECT owner, until_ms, attempt, completion, success FROM commands WHERE step_id = ?",
            (claim.step_id,),
        ).fetchone()
        if row is None:
            return MINE
        known_owner, until, known_attempt, completion, success = row
        if completion is not None:
            done = success or claim.attempt <= known_attempt
            return Claimed("done", completion) if done else MINE
        return BUSY if until > now and known_owner != owner else MINE

    def renew(self, step_ids: Sequence[str], owner: str, until: int) -> None:
        """Still at work on these."""
        with self.lock, Held(self.db, flushed=False):
            self.db.executemany(
                "UPDATE commands SET until_ms = ? WHERE step_id = ? AND owner = ?",
                [(until, each, owner) for each in step_ids],
            )

    def settle(self, done: Sequence[Done]) -> None:
        """These are done, or given back; durable when this returns."""
        kept = [each for each in done if each.completion is not None]
        with self.lock, Held(self.db, flushed=bool(kept)):
            self.db.executemany(
                "UPDATE commands SET completion = ?, success = ?, attempt = ? WHERE step_id = ?",
                [(each.completion, each.success, each.attempt, each.step_id) for each in kept],
            )
            self.db.executemany(
                "DELETE FROM commands WHERE step_id = ? AND completion IS NULL",
                [(each.step_id,) for each in done if each.completion is None],
            )

    def forget(self, now: int) -> None:
        """What is too old for anybody to send again."""
        with self.lock:
            self.db.execute("DELETE FROM commands WHERE until_ms < ?", (now - KEPT_MS,))

    def close(self) -> None:
        """Give it back."""
        with self.lock, closing(self.db):
            pass


class Held:
    """A transaction that writes: nobody else decides meanwhile.

    What was done must outlive the machine. A claim need not: it is over soon, and it is only for
    workers that are alive; all of them see it once it is committed.
    """

    def __init__(self, db: sqlite3.Connection, *, flushed: bool) -> None:
        self.db = db
        self.flushed = flushed

    def __enter__(self) -> None:
        self.db.execute(f"PRAGMA synchronous={'FULL' if self.flushed else 'NORMAL'}")
        self.db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.db.execute("COMMIT" if kind is None else "ROLLBACK")
