"""A process that moves a store and is killed on its way: `python -m tests.moving.child`.

It reads a line for each life (label, passages, source, target), forks, and tells how that ended.
"""

import os
import sys

from pawlflow.moving import MoveError
from pawlflow.store import postgres_move
from pawlflow.store.port import StoreError
from pawlflow.store.postgres_move import PostgresSide
from pawlflow.store.sqlite_move import SqliteSide
from tests.crash.points import Fuse, after, before
from tests.moving.kit import carried

LABELS = {
    "statement": lambda fuse: before(postgres_move, "run", fuse.pass_by),
    "written": lambda fuse: after(PostgresSide, "write_page", fuse.pass_by),
    "framed": lambda fuse: after(PostgresSide, "write_frames", fuse.pass_by),
    "file written": lambda fuse: before(SqliteSide, "_say", fuse.pass_by),
    "source marked": lambda fuse: after(SqliteSide, "put_mark", fuse.pass_by),
    "target marked": lambda fuse: after(PostgresSide, "put_mark", fuse.pass_by),
    "settled": lambda fuse: after(PostgresSide, "settle", fuse.pass_by),
    "before the release": lambda fuse: before(PostgresSide, "release", fuse.pass_by),
    "after the release": lambda fuse: after(PostgresSide, "release", fuse.pass_by),
}


def live(label: str, passages: int, source: str, target: str) -> int:
    """One life."""
    if label != "none":
        LABELS[label](Fuse(passages))
    try:
        carried(source, target)
    except (MoveError, StoreError) as error:
        os.write(1, f"{error.code}\n".encode())
        return 5
    return 0


def main() -> None:
    """A life for each line."""
    for line in sys.stdin:
        label, passages, source, target = line.rstrip("\n").split("\t")
        pid = os.fork()
        if pid == 0:
            os._exit(live(label, int(passages), source, target))
        _, status = os.waitpid(pid, 0)
        os.write(1, f"exit {os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    main()
