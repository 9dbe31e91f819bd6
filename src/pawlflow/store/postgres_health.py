"""How a PostgreSQL server stands: its clock, connections, what is in between, who owns shards."""

from collections.abc import Callable
from typing import Any, Final

import psycopg

from pawlflow.store import postgres_errors as errors
from pawlflow.store.postgres_link import Connection, connect, run
from pawlflow.store.postgres_rows import in_schema
from pawlflow.store.postgres_url import where_of
from pawlflow.store.rows import FOLDER, statements

LOOKS: Final = 5  # at the clock: the one that took the shortest says most
SQL: Final = statements((FOLDER / "postgres_health.sql").read_text())


def health_of(url: str, now: Callable[[], int]) -> dict[str, Any]:
    """What an operator wants to know of a server; `now` is the clock of this machine in ms."""
    where = where_of(url)
    sql = {name: in_schema(text.rstrip(";"), where.schema) for name, text in SQL.items()}
    try:
        with connect(where) as db:
            [(own,)] = run(db, sql["backend"])
            [(used, most)] = run(db, sql["connections"])
            nodes = run(db, sql["nodes"])
            offset, doubt = offset_of(db, sql["clock"], now)
            return {
                "pooled": own != db.info.backend_pid,
                "connections": used,
                "connections_max": most,
                "idle_slots": [name for (name,) in run(db, sql["slots"])],
                "nodes": [node_of(*row) for row in nodes],
                "clock_ms": offset,
                "clock_doubt_ms": doubt,
            }
    except psycopg.Error as trouble:
        if trouble.sqlstate is None:
            raise errors.unreachable(trouble, where) from trouble
        raise errors.told(trouble, where, "looking at the server") from trouble


def node_of(said: str, shards: int, lease_ms: int, alive: bool) -> dict[str, Any]:  # noqa: FBT001
    """Who owns shards."""
    return {"node": said, "shards": shards, "lease_ms": lease_ms, "alive": alive}


def offset_of(db: Connection, sql: str, now: Callable[[], int]) -> tuple[int, int]:
    """How far the server's clock is before ours, and how far off that may be, in ms."""
    looks: list[tuple[int, int]] = []
    for _ in range(LOOKS):
        before = now()
        [(there,)] = run(db, sql)
        after = now()
        looks.append(((after - before + 1) // 2, there - (before + after) // 2))
    doubt, offset = min(looks)
    return offset, doubt
