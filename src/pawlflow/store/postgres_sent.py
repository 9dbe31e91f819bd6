"""A statement that was sent and whose answer is under way: who sent it may do something else.

Its answer is whole when the server is ready for the next one: only then is its commit durable.
"""

from collections.abc import Callable, Sequence
from select import POLLIN, POLLOUT, poll
from typing import Any, Final

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format

from pawlflow.store.postgres_rows import BYTEA, TEXT, Blobs, Ints, Texts
from pawlflow.store.rows import Row

Connection = psycopg.Connection[Row]
GOOD: Final = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)
OIDS: Final[dict[type, int]] = {
    Ints: Ints.oid,
    Blobs: Blobs.oid,
    Texts: Texts.oid,
    bytes: BYTEA.oid,
    str: TEXT.oid,
    type(None): 0,
}


class Sent:
    """One statement on its way; nothing else goes over its connection until it is done."""

    def __init__(self, db: Connection, sql: str, values: Sequence[Any]) -> None:
        """Send it. Raises psycopg.Error if the connection is lost meanwhile."""
        self.db = db
        self.done = False
        self.trouble: psycopg.Error | None = None
        self.noticed: Callable[[], object] = lambda: None  # if another had to wait for its answer
        pg = db.pgconn
        pg.send_query_params(
            sql.encode(),
            [value.encode() if isinstance(value, str) else value for value in values],
            param_types=[OIDS[type(value)] for value in values],
            param_formats=[Format.BINARY] * len(values),
            result_format=Format.BINARY,
        )
        while pg.flush():  # more than the sockets hold: the server reads while it is written
            looks = poll()
            looks.register(pg.socket, POLLIN | POLLOUT)
            if any(seen & POLLIN for _, seen in looks.poll()):
                pg.consume_input()

    def look(self) -> bool:
        """Is the answer there, or will there be none? Waits for nothing."""
        if self.done:
            return True
        pg = self.db.pgconn
        try:
            pg.consume_input()
            while not self.done and not pg.is_busy():
                result = pg.get_result()
                if result is None:
                    self.done = True
                elif result.status not in GOOD:
                    self.trouble = self.trouble or error_from_result(result)
        except psycopg.Error as lost:
            self.trouble, self.done = lost, True
        return self.done

    def wait(self) -> None:
        """Wait for the answer, or for the end of the connection."""
        if self.look():
            return
        looks = poll()
        looks.register(self.db.pgconn.socket, POLLIN)
        while not self.look():
            looks.poll()

    def end(self) -> None:
        """Wait for it. Raises psycopg.Error if it failed, or nobody knows."""
        self.wait()
        if self.trouble is not None:
            raise self.trouble
