"""A node among others on PostgreSQL: a lease, renewed on a connection and a thread of its own.

The clock of leases is the server's. Whoever looks says with the same breath that it is alive.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

import psycopg

from pawlflow.store.postgres_link import Connection, connect, run
from pawlflow.store.postgres_owner import Ownership
from pawlflow.store.postgres_url import Where, scrubbed
from pawlflow.store.sharing import View
from pawlflow.store.wake import Wake

log = logging.getLogger("pawl.store")
RENEW_S: Final = 2.0  # between two looks; a lease is 5 seconds
LATE_S: Final = 0.02  # after the lease of another one runs out
PAUSE_S: Final = 0.5  # between two tries to connect


class Members:
    """What one node knows of the others, and they of it."""

    def __init__(self, where: Where, own: Ownership, told: Callable[[View], bool]) -> None:
        """Join. Raises psycopg.Error if the server is away."""
        self.node = own.node
        self._where = where
        self._own = own
        self._told = told
        self._ended = False
        self._wake = Wake()
        self._telling = True  # that it has come
        self._well = True  # may it say that it is alive?
        self._db: Connection | None = self._connect()
        own.put(self._db)
        self._thread = threading.Thread(target=self._work, name="pawl-node", daemon=True)
        self._thread.start()

    def look(self) -> None:
        """Look at once."""
        self._wake.set()

    def tell(self) -> None:
        """Let the others look at once."""
        self._telling = True
        self._wake.set()

    def close(self) -> None:
        """Be a node no longer; the others are told."""
        self._ended = True
        self._wake.set()
        self._thread.join()
        self._wake.close()

    def _connect(self) -> Connection:
        db = connect(self._where.listening())
        try:
            db.execute(f'LISTEN "{nodes_channel(self._where)}"'.encode())
        except BaseException:
            db.close()
            raise
        return db

    def _work(self) -> None:
        """On the thread: look, say that it is alive, and wait."""
        while not self._ended:
            try:
                if self._db is None:
                    self._db = self._connect()
                self._wait(self._db, self._look(self._db))
            except psycopg.Error as trouble:
                words = scrubbed(trouble, self._where)
                log.warning("node %s is not seen at %s: %s", self.node, self._where.told, words)
                self._drop()
                self._wake.wait(PAUSE_S)
        try:
            if self._db is not None:
                self._leave(self._db)
        except psycopg.Error as trouble:  # its lease will run out
            words = scrubbed(trouble, self._where)
            log.warning("node %s could not say that it leaves: %s", self.node, words)
        self._drop()

    def _look(self, db: Connection) -> float:
        """Renew the lease and tell what is seen; gives after how long to look again."""
        own, began = self._own, time.monotonic()
        if self._telling:
            self._telling = False
            self._notify(db)
        steady, others, until, owners = own.view(db, renew=self._well)
        view = View(
            node=self.node,
            members=(self.node, *others),
            owners=dict(enumerate(owners)),
            steady=steady,
            began=began,
        )
        self._well = self._told(view)
        left = RENEW_S if until is None else max(0.0, until) + LATE_S
        return min(RENEW_S, left)

    def _wait(self, db: Connection, seconds: float) -> None:
        """Until it is time, somebody asks for a look, or another node says that it should."""
        self._wake.wait(seconds, db.fileno())
        db.pgconn.consume_input()
        while db.pgconn.notifies() is not None:
            pass

    def _leave(self, db: Connection) -> None:
        run(db, self._own.sql["shard_free"], (self.node,))
        self._notify(db)

    def _notify(self, db: Connection) -> None:
        run(db, "SELECT pg_notify($1, '')", (nodes_channel(self._where),))

    def _drop(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None


def nodes_channel(where: Where) -> str:
    """Where nodes tell each other that something changed."""
    return f"pawl-nodes:{where.schema}"[:63]
