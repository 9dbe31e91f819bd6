"""Owning shards of a PostgreSQL store: claims, the mark of a connection, and signs of life."""

import logging
import os
import secrets
import socket
from collections.abc import Sequence
from typing import Any

import psycopg

from pawlflow.store import postgres_errors as errors
from pawlflow.store.marks import MARK, refuse_moved
from pawlflow.store.port import ShardHead
from pawlflow.store.postgres_journal import check_ends, heads_from
from pawlflow.store.postgres_link import Connection, run
from pawlflow.store.postgres_pokes import PooledError, PostgresPokes
from pawlflow.store.postgres_rows import ints
from pawlflow.store.postgres_url import Where, scrubbed
from pawlflow.store.rows import Row, shard_of

log = logging.getLogger("pawl.store")


class Ownership:
    """What one handle owns, and how others can tell that it is alive."""

    def __init__(self, where: Where, sql: dict[str, str]) -> None:
        self.where = where
        self.sql = sql
        self.epochs: dict[int, int] = {}  # by shard
        self.mark: bytes | None = None  # of the connection through which they are written
        self.node = secrets.token_hex(8)
        self.lock = secrets.randbits(31)
        self.pokes: PostgresPokes | None = None
        self.shares = False  # with other nodes: its lease is renewed by who looks at them

    @property
    def leased(self) -> bool:
        """Does nobody listen for it now? Then its lease says that it is alive."""
        return not self.shares and (self.pokes is None or not self.pokes.hears)

    def claim(self, db: Connection, wanted: list[int], *, polite: bool) -> list[ShardHead]:
        """Look at the end of each journal and raise the epochs, while nobody writes there."""
        self.mark = self.mark or secrets.token_bytes(8)
        db.execute(b"BEGIN")
        db.execute(b"SET LOCAL synchronous_commit = on")
        heads = heads_from(run(db, self.sql["shards_held"], (ints(wanted),)), wanted, self.where)
        facts: dict[str, str] = dict(run(db, self.sql["meta"]))
        refuse_moved(self.where.told, facts.get(MARK))
        if polite:
            self._refuse_owned(db)
        if self.shares:
            found = run(db, self.sql["shards_unowned"], (ints(wanted), self.node))
            wanted = sorted(shard for (shard,) in found)
            heads = [head for head in heads if head.shard in wanted]
        check_ends(db, self.sql, self.where, heads)
        self.put(db)
        rows = run(db, self.sql["shard_claim"], (ints(wanted), self.node, self.mark))
        if not self.epochs:
            warn(facts_of(db, self.sql, self.where), self.where)
        db.execute(b"COMMIT")
        claimed = {head.shard: head for head in map(shard_of, rows)}
        self.epochs |= {shard: head.epoch for shard, head in claimed.items()}
        return [claimed[shard] for shard in wanted]

    def put(self, db: Connection) -> None:
        """Say who this is, and that it is alive."""
        run(db, self.sql["node_put"], (self.node, self.lock, whoami(), self.shares))

    def view(self, db: Connection, *, renew: bool) -> Row:
        """Look at the nodes, and say with the same breath that this one is alive."""
        [row] = run(db, self.sql["node_view"], (self.node, self.lock, whoami(), renew))
        return row

    def release(self, db: Connection, shards: Sequence[int]) -> None:
        """Somebody else may have these."""
        for shard in shards:
            self.epochs.pop(shard, None)
        run(db, self.sql["shards_free"], (self.node, ints(shards)))

    def _refuse_owned(self, db: Connection) -> None:
        found = run(db, self.sql["node_alive"])
        if found and found[0][0] != self.node:
            raise errors.owned(self.where, found[0][1])

    def rejoin(self, db: Connection) -> None:
        """After a lost connection: what was sent through it is applied by now, or never will be.

        The rows are locked by who writes them, so this waits for a commit that is under way; and
        what the server has not read yet carries the old mark.
        """
        if self.epochs:
            self.mark = secrets.token_bytes(8)
            mine = (ints(list(self.epochs)), ints(list(self.epochs.values())), self.mark)
            run(db, self.sql["shard_link"], mine)

    def leave(self, db: Connection) -> None:
        """Nobody owns them any more."""
        if self.epochs:
            run(db, self.sql["shard_free"], (self.node,))

    def listen(self) -> PostgresPokes | None:
        """Where the owner hears that there is mail; None if it has to look for itself."""
        if self.where.pokes == "off":
            return None
        try:
            pokes = PostgresPokes(self.where, self.node, None if self.shares else self.lock)
            pokes.owned = self.epochs.keys()
        except PooledError:
            log.warning(
                "%s is reached through a pooler, and pokes are not: mail is looked for once a "
                "second; name the server itself with the option pokes=HOST:PORT",
                self.where.told,
            )
            return None
        except psycopg.Error as trouble:
            words = scrubbed(trouble, self.where)
            log.warning("nobody can be heard at %s: %s", self.where.told, words)
            return None
        self.pokes = pokes
        return pokes


def whoami() -> str:
    """The process, as people know it."""
    return f"{os.getpid()} on {socket.gethostname()}"


def facts_of(db: Connection, sql: dict[str, str], where: Where) -> dict[str, Any]:
    """What the server is, and how it keeps what it is given."""
    [row] = run(db, sql["facts"], (where.schema,))
    names = ("server", "database", "fsync", "synchronous_commit", "full_page_writes")
    more = ("synchronous_standby_names", "replicas", "size")
    return dict(zip((*names, *more), row, strict=True))


def warn(facts: dict[str, Any], where: Where) -> None:
    """Say loudly what may be lost: the settings of the server are the operator's choice."""
    for name in ("fsync", "full_page_writes"):
        if facts[name] == "off":
            words = "a crash of the machine may lose what was acknowledged"
            log.warning("%s runs with %s=off: %s", where.told, name, words)
    if facts["replicas"] and not facts["synchronous_standby_names"]:
        log.warning(
            "%s has replicas that commits do not wait for: a failover may lose what was "
            "acknowledged; name them in synchronous_standby_names",
            where.told,
        )
