"""Pokes across machines: LISTEN on a connection of its own, which also says that its owner lives.

A thread listens, and tells a socket that an event loop can watch: a connection that is lost can be
made again while the loop goes on.
"""

import logging
import socket
import threading
from collections.abc import Collection
from select import POLLIN, poll
from typing import Final

import psycopg

from pawlflow.store.port import SHARDS
from pawlflow.store.postgres_link import Connection, connect, run
from pawlflow.store.postgres_rows import sql_of
from pawlflow.store.postgres_url import Where, scrubbed

log = logging.getLogger("pawl.store")
LOCK: Final = 0x5061776C  # "Pawl"; the second number is that of the node
PAUSE_S: Final = 1.0  # between two tries to listen again
_READ_BYTES: Final = 4_096


class PostgresPokes:
    """The listening end, kept by the owner of shards; `fileno` can be waited for."""

    def __init__(self, where: Where, node: str, lock: int | None) -> None:
        """Listen. Raises psycopg.Error, or PooledError if the connection is no session."""
        self._where = where.listening()
        self._checked = where.pokes == "auto"
        self._node = node
        self._lock = lock
        self._near, self._far = socket.socketpair()
        self._near.settimeout(0)
        self._far.settimeout(0)
        self._ended = threading.Event()
        self.hears = False  # now: while it connects again, it does not
        self.owned: Collection[int] = range(SHARDS)  # whose mail it is poked for
        self._stop, self._stopping = socket.socketpair()
        try:
            self._db = self._listen()
        except BaseException:
            self._hang_up()
            raise
        self._thread = threading.Thread(target=self._work, name="pawl-pokes", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """What a selector or an event loop waits for: readable when poked."""
        return self._near.fileno()

    def drain(self) -> int:
        """Forget the pokes that came, and tell how many there were."""
        count = 0
        while True:
            try:
                count += len(self._near.recv(_READ_BYTES))
            except BlockingIOError:
                return count

    def close(self) -> None:
        """Listen no longer."""
        self.hears = False
        self._ended.set()
        self._stopping.send(b"!")
        self._thread.join()
        self._hang_up()

    def _hang_up(self) -> None:
        for each in (self._near, self._far, self._stop, self._stopping):
            each.close()

    def _listen(self) -> Connection:
        """A connection that hears, and whose lock says that the node is alive."""
        db = connect(self._where)
        try:
            self._check(db)
            if self._lock is not None:
                run(db, "SELECT pg_advisory_lock_shared($1, $2)", (LOCK, self._lock))
            db.execute(f'LISTEN "{channel_of(self._where)}"'.encode())
            if self._lock is not None:
                run(db, sql_of(self._where.schema)["node_listens"], (self._node,))
            self.hears = True
        except BaseException:
            db.close()
            raise
        return db

    def _check(self, db: Connection) -> None:
        """A pooler gives its clients numbers of its own."""
        [(own,)] = run(db, "SELECT pg_backend_pid()")
        if self._checked and own != db.info.backend_pid:
            raise PooledError

    def _work(self) -> None:
        """On the thread: pass on what is heard, and listen again if the connection is lost."""
        try:
            while self._hear() and self._again():
                self._tell()  # what was said meanwhile, nobody heard
        finally:
            self._db.close()

    def _hear(self) -> bool:
        """Listen until the connection is lost, True, or somebody says that it is enough."""
        looks = poll()
        looks.register(self._db.fileno(), POLLIN)
        looks.register(self._stop.fileno(), POLLIN)
        while not self._ended.is_set():
            looks.poll()
            if self._ended.is_set():
                return False
            try:
                self._db.pgconn.consume_input()
                while (note := self._db.pgconn.notifies()) is not None:
                    if is_for(self.owned, note.extra.decode()):
                        self._tell()
            except psycopg.Error as trouble:
                log.warning(
                    "nothing is heard from %s any more: %s",
                    self._where.told,
                    scrubbed(trouble, self._where),
                )
                return True
        return False

    def _again(self) -> bool:
        """Connect again, however long that takes; False if it is no longer wanted."""
        self.hears = False
        self._db.close()
        while not self._ended.wait(PAUSE_S):
            try:
                self._db = self._listen()
            except (psycopg.Error, PooledError):
                continue
            log.warning("listening to %s again", self._where.told)
            return True
        return False

    def _tell(self) -> None:
        try:
            self._far.send(b"!")
        except BlockingIOError:
            return  # so many wait already that it will wake up


class PooledError(Exception):
    """A pooler stands between: who listens through it hears nothing."""


def is_for(owned: Collection[int], said: str) -> bool:
    """Is a poke for one of these shards? One that names none is for everybody."""
    return not said or any(int(shard) in owned for shard in said.split(","))


def channel_of(where: Where) -> str:
    """Where pokes about a store go."""
    return f"pawl:{where.schema}"[:63]
