"""One connection to PostgreSQL, made again when it was lost; what that means for reads and writes.

A read is simply made again. A write whose answer did not come is of unknown outcome, and only who
asked for it can tell what that means.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from select import POLLIN, poll
from typing import Any, Final, TypeVar

import psycopg
from psycopg.pq import ConnStatus, TransactionStatus

from pawlflow.store import postgres_errors as errors
from pawlflow.store.port import StoreError
from pawlflow.store.postgres_rows import know_arrays, may_be
from pawlflow.store.postgres_sent import Connection as Connection
from pawlflow.store.postgres_sent import Sent
from pawlflow.store.postgres_url import Where, scrubbed
from pawlflow.store.rows import Row

log = logging.getLogger("pawl.store")
T = TypeVar("T")
PAUSE_S: Final = (0.05, 1.0)  # between two tries to connect: first, and at most
TRIES_MAX: Final = 10  # of a transaction that gave way to another
VERSION_MIN: Final = 150_000
GOING: Final = ("57P01", "57P02", "57P03")  # the server shuts down, crashed, or is not up yet


def connect(where: Where) -> Connection:
    """A connection that works behind a pooler too: nothing of a session is ever relied on.

    Statements are not prepared under names, and settings are those of one transaction.
    """
    db = psycopg.connect(
        where.url,
        autocommit=True,
        prepare_threshold=None,
        cursor_factory=psycopg.RawCursor,
        **where.options(),  # type: ignore[arg-type]  # they are options of libpq
    )
    know_arrays(db)
    return db


def run(db: Connection, sql: str, values: Sequence[Any] = ()) -> list[Row]:
    """The rows that a statement gives; none about a name that nothing can have."""
    if not all(may_be(value) for value in values if isinstance(value, str)):
        return []
    cursor = db.execute(sql.encode(), values, binary=True)
    return cursor.fetchall() if cursor.description is not None else []


class Link:
    """A connection that comes back."""

    def __init__(self, where: Where, joined: Callable[[Connection], None]) -> None:
        """Connect once; who waits for a server that was never there should know at once."""
        self.where = where
        self.joined = joined  # is told of every later connection, before it is used
        self.count = 1  # of connections so far
        self._closed = False
        self._sent: Sent | None = None  # the last thing whose answer was not waited for
        try:
            self._db: Connection | None = connect(where)
        except psycopg.Error as trouble:
            raise errors.unreachable(trouble, where) from trouble

    def first(self) -> Connection:
        """The connection as it was made: to look at what is behind it."""
        assert self._db is not None
        return self._db

    def read(self, place: str, work: Callable[[Connection], T]) -> T:
        """Do something that may be done again: it is, if the connection is lost meanwhile."""
        until: float | None = None
        for tried in range(1, 1_000_000):
            db = self._ready()
            try:
                with self._kept(db, place):
                    return work(db)
            except psycopg.Error as trouble:
                now = time.monotonic()
                until = until or now + self.where.wait_s
                if self._gone(db, trouble):
                    if now >= until:
                        raise errors.unreachable(trouble, self.where) from trouble
                elif trouble.sqlstate not in errors.AGAIN or tried >= TRIES_MAX:
                    raise errors.told(trouble, self.where, place) from trouble
        raise AssertionError("unreachable")

    def write(self, place: str, work: Callable[[Connection], T]) -> T:
        """Do something once. Raises StoreUnknownError if the connection is lost meanwhile."""
        for tried in range(1, 1_000_000):
            db = self._ready()
            try:
                with self._kept(db, place):
                    return work(db)
            except psycopg.Error as trouble:
                self._failed(db, trouble, place, tried)
        raise AssertionError("unreachable")

    def begin(self, place: str, send: Callable[[Connection], Sent]) -> Sent:
        """Send something, and do not wait for its answer. Raises as `write` does."""
        db = self._ready()
        try:
            with self._kept(db, place):
                self._sent = send(db)
                return self._sent
        except psycopg.Error as trouble:
            self._failed(db, trouble, place, TRIES_MAX)
            raise AssertionError("unreachable") from trouble

    def end(self, place: str, sent: Sent, send: Callable[[Connection], Sent]) -> None:
        """Wait for the answer to what was sent. Raises as `write` does."""
        self._sent = None
        try:
            with self._kept(sent.db, place):
                sent.end()
        except psycopg.Error as trouble:
            self._failed(sent.db, trouble, place, 1)
        else:
            return
        self.write(place, lambda db: send(db).end())

    def _failed(self, db: Connection, trouble: psycopg.Error, place: str, tried: int) -> None:
        """A write failed: it goes again if it gave way to another; else this raises."""
        gave_way = trouble.sqlstate in errors.AGAIN or trouble.sqlstate == errors.READ_ONLY
        if self._gone(db, trouble) and not gave_way:
            raise errors.unknown(trouble, self.where, place) from trouble
        if not gave_way or tried >= TRIES_MAX:
            raise errors.told(trouble, self.where, place) from trouble

    @contextmanager
    def _kept(self, db: Connection, place: str) -> Iterator[None]:
        """Whatever is raised inside, no transaction is left open."""
        try:
            yield
        except psycopg.Error:
            raise
        except (LookupError, TypeError, ValueError) as trouble:
            self._roll_back(db)
            raise errors.odd(self.where, place, trouble) from trouble
        except StoreError:
            self._roll_back(db)
            raise
        except BaseException:  # an interrupt, anywhere: nobody knows what was sent
            self._drop(db)
            raise

    def _gone(self, db: Connection, trouble: psycopg.Error) -> bool:
        """Was the connection lost, or is the server no longer the one that writes?"""
        state = trouble.sqlstate or ""
        lost = db.closed or state in (*GOING, errors.READ_ONLY) or state.startswith("08")
        if lost or not self._roll_back(db):
            log.warning(
                "the connection to %s was lost: %s",
                self.where.told,
                scrubbed(trouble, self.where),
            )
            self._drop(db)
            return True
        return False

    def _roll_back(self, db: Connection) -> bool:
        """Give up a transaction, if one is open. False if the connection is no longer there."""
        try:
            if db.info.transaction_status != TransactionStatus.IDLE:
                db.execute(b"ROLLBACK")
        except psycopg.Error:
            self._drop(db)
            return False
        return True

    def _drop(self, db: Connection) -> None:
        if self._db is db:  # else there is another one already
            self._db = None
        db.close()

    def _ready(self) -> Connection:
        """The connection, made again if it was lost; waits for a server that is away."""
        if self._closed:
            raise errors.closed()
        if self._sent is not None:  # one after the other: its outcome waits for who sent it
            sent, self._sent = self._sent, None
            sent.wait()
            sent.noticed()
        if self._db is not None and is_alive(self._db):
            return self._db
        if self._db is not None:
            self._drop(self._db)
        until, pause = time.monotonic() + self.where.wait_s, PAUSE_S[0]
        while True:
            try:
                self._db = self._join()
            except psycopg.Error as trouble:
                if time.monotonic() + pause > until:
                    raise errors.unreachable(trouble, self.where) from trouble
            else:
                log.warning("connected to %s again", self.where.told)
                return self._db
            time.sleep(pause)
            pause = min(2 * pause, PAUSE_S[1])

    def _join(self) -> Connection:
        db = connect(self.where)
        try:
            self.joined(db)
        except BaseException:
            db.close()
            raise
        self.count += 1
        return db

    def close(self, last: Callable[[Connection], None]) -> None:
        """Say a last word, if somebody is there to hear it, and hang up."""
        if self._closed:
            return
        self._closed = True
        if self._sent is not None:
            self._sent.wait()
        db, self._db = self._db, None
        if db is None:
            return
        try:
            if is_alive(db):
                last(db)
        except psycopg.Error as trouble:  # all that was promised is durable without it
            log.warning(
                "%s could not be left in order: %s",
                self.where.told,
                scrubbed(trouble, self.where),
            )
        finally:
            db.close()


def is_alive(db: Connection) -> bool:
    """Is an idle connection still there, as far as one can tell without asking?"""
    if db.closed:
        return False
    looks = poll()
    looks.register(db.fileno(), POLLIN)
    try:
        if looks.poll(0):
            db.pgconn.consume_input()
    except psycopg.Error:
        return False
    return db.pgconn.status == ConnStatus.OK


@contextmanager
def one_moment(db: Connection, plainly: str) -> Iterator[None]:
    """Several statements that read one moment of the store, by its indexes."""
    db.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    run(db, plainly)
    yield
    db.execute(b"COMMIT")
