"""The memory of workers: which commands were carried out, and what was told of them.

Workers that share a memory carry out a command once. It is a file of its own, beside whatever the
service keeps; forgetting costs nothing more than asking the engine.
"""

import sqlite3
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


class Claimed(NamedTuple):
    """What a worker may do with a command."""

    kind: Literal["mine", "busy", "done"]
    completion: bytes | None = None  # of one that is done: to be told again


class Memory(Protocol):
    """What workers need of one. Called in threads, one at a time."""

    def claim(self, step_id: str, attempt: int, owner: str, now: int, lease_ms: int) -> Claimed:
        """Take a command, unless somebody has it or it is done.

        A success is done for every attempt, a failure for good for its own and earlier ones.
        """
        ...

    def renew(self, step_id: str, owner: str, until: int) -> None:
        """Still at work on it."""
        ...

    def remember(self, step_id: str, attempt: int, completion: bytes, *, success: bool) -> None:
        """It is done; durable when this returns, before anybody is told."""
        ...

    def release(self, step_id: str) -> None:
        """It failed and may be tried again, by whoever gets it."""
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
            self.db.execute("PRAGMA synchronous=FULL")
            self.db.executescript(SCHEMA)
        except (sqlite3.Error, OSError) as error:
            message = f"the memory {url} cannot be opened: {error}"
            raise PawlError("worker.memory", message) from error
        self.lock = Lock()

    def claim(self, step_id: str, attempt: int, owner: str, now: int, lease_ms: int) -> Claimed:
        """Take a command, unless somebody has it or it is done.

        A success is done for every attempt, a failure for good for its own and earlier ones.
        """
        with self.lock, Held(self.db):
            row = self.db.execute(
                "SELECT owner, until_ms, attempt, completion, success FROM commands"
                " WHERE step_id = ?",
                (step_id,),
            ).fetchone()
            if row is not None:
                known_owner, until, known_attempt, completion, success = row
                if completion is not None and (success or attempt <= known_attempt):
                    return Claimed("done", completion)
                if completion is None and until > now and known_owner != owner:
                    return Claimed("busy")
            self.db.execute(
                "INSERT OR REPLACE INTO commands VALUES (?, ?, ?, ?, NULL, 0)",
                (step_id, owner, now + lease_ms, attempt),
            )
        return Claimed("mine")

    def renew(self, step_id: str, owner: str, until: int) -> None:
        """Still at work on it."""
        with self.lock:
            self.db.execute(
                "UPDATE commands SET until_ms = ? WHERE step_id = ? AND owner = ?",
                (until, step_id, owner),
            )

    def remember(self, step_id: str, attempt: int, completion: bytes, *, success: bool) -> None:
        """It is done; durable when this returns, before anybody is told."""
        with self.lock:
            self.db.execute(
                "UPDATE commands SET completion = ?, success = ?, attempt = ? WHERE step_id = ?",
                (completion, int(success), attempt, step_id),
            )

    def release(self, step_id: str) -> None:
        """It failed and may be tried again, by whoever gets it."""
        with self.lock:
            self.db.execute(
                "DELETE FROM commands WHERE step_id = ? AND completion IS NULL", (step_id,)
            )

    def forget(self, now: int) -> None:
        """What is too old for anybody to send again."""
        with self.lock:
            self.db.execute("DELETE FROM commands WHERE until_ms < ?", (now - KEPT_MS,))

    def close(self) -> None:
        """Give it back."""
        with closing(self.db):
            pass


class Held:
    """A transaction that writes: nobody else decides meanwhile."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    def __enter__(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.db.execute("COMMIT" if kind is None else "ROLLBACK")
