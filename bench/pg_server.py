"""A PostgreSQL for benches: a cluster of its own on a disk, durable, and nearly as it comes.

What it can do without any engine is measured here too: rows in one statement a commit, and commits
of one row.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from statistics import median
from time import perf_counter
from typing import Final
from urllib.parse import quote

import psycopg

from bench.judge import FOLDER, Line
from tests.servers import NoServerError as NoServerError
from tests.servers import Postgres

SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "log_line_prefix": "%a|",  # who said it: statements at rest are counted
}
LOGGED: Final = f"options={quote('-c log_statement=all')}"
ROWS: Final = 500  # of a commit, as the engine's
ROW_BYTES: Final = 370  # of a turn of a small step with its hash
COMMITS: Final = 40
PUT: Final = "INSERT INTO bare (data) SELECT unnest($1::bytea[])"


class Server:
    """The cluster, and schemas that nobody has used yet."""

    def __init__(self, cluster: Postgres) -> None:
        self.cluster = cluster
        self.url = cluster.url
        self.numbers = count()

    def fresh(self, option: str = "") -> str:
        """The URL of a new schema, in a database that holds nothing else."""
        name = f"bench_{next(self.numbers)}"
        with self.connect() as db:
            db.execute("DROP DATABASE IF EXISTS bench WITH (FORCE)")
            db.execute("CREATE DATABASE bench")
        url = self.url.rpartition("/")[0]
        return f"{url}/bench?schema={name}{'&' if option else ''}{option}"

    def connect(self) -> "psycopg.Connection[tuple[object, ...]]":
        """A plain connection."""
        return psycopg.connect(self.url, autocommit=True, cursor_factory=psycopg.RawCursor)

    def log(self) -> str:
        """All that it has said."""
        return (self.cluster.folder / "log").read_text(errors="replace")

    def about(self) -> Line:
        """What a figure was measured on."""
        names = ("server_version", "fsync", "synchronous_commit", "wal_sync_method")
        with self.connect() as db:
            found = [db.execute(f"SHOW {name}").fetchone() for name in names]
        return {name: row[0] for name, row in zip(names, found, strict=True) if row}


@contextmanager
def served() -> Iterator[Server]:
    """A server, gone at the end. Raises NoServerError if there is no PostgreSQL."""
    cluster = Postgres(settings=SETTINGS, above=FOLDER)
    try:
        yield Server(cluster)
    finally:
        cluster.remove()


def bare_rows(server: Server) -> Line:
    """Rows a second, so many in one statement a commit."""
    rows = [bytes([number % 251]) * ROW_BYTES for number in range(ROWS)]
    with server.connect() as db:
        db.execute("DROP TABLE IF EXISTS bare")
        db.execute(
            "CREATE TABLE bare (pos int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, data bytea)"
        )
        began = perf_counter()
        for _ in range(COMMITS):
            db.execute(PUT, [rows])
        seconds = perf_counter() - began
        found = db.execute("SELECT count(*) FROM bare").fetchone()
    assert found == (ROWS * COMMITS,)
    return {
        "engine": "bare",
        "mode": "rows",
        "rows": ROWS * COMMITS,
        "seconds": seconds,
        "rows_per_s": ROWS * COMMITS / seconds,
    }


def bare_commits(server: Server, count_: int = 400) -> Line:
    """How long a commit of one row takes: what durability alone costs."""
    took = []
    with server.connect() as db:
        db.execute("DROP TABLE IF EXISTS bare")
        db.execute(
            "CREATE TABLE bare (pos int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, data bytea)"
        )
        for _ in range(count_):
            began = perf_counter()
            db.execute(PUT, [[b"x" * ROW_BYTES]])
            took.append(1_000 * (perf_counter() - began))
    return {"engine": "bare", "mode": "commits", "p50_ms": median(took), "best_ms": min(took)}
