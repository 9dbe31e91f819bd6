"""What the tests of the SQLite store share."""

import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import apsw

from pawlflow.store.sqlite import SqliteStore
from pawlflow.testing.conformance_kit import Scribe, cell

NOBODY = 65534


def filled(path, turns=3):
    """A store with one order of some turns in shard 0; closed again."""
    store = SqliteStore(path)
    scribe = Scribe(store)
    for number in range(turns):
        scribe.turn(cell("order-1"), data=b"turn %d" % number)
        scribe.commit()
    store.close()
    return path


def tamper(path, sql, *values):
    """Change a store behind its back."""
    db = apsw.Connection(str(path))
    db.execute(sql, values)
    db.close()


@contextmanager
def unprivileged():
    """A folder in which the block runs as nobody, if this is root: root may write everywhere."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        try:
            if root:
                os.setegid(NOBODY)
                os.seteuid(NOBODY)
            yield folder
        finally:
            if root:
                os.seteuid(0)
                os.setegid(0)
            folder.chmod(0o700)


OWNER = """
import sys
from pathlib import Path
from pawlflow.store.sqlite import SqliteStore
from pawlflow.testing.conformance_kit import Scribe, cell
store = SqliteStore(Path(sys.argv[1]))
scribe = Scribe(store)
print("owned", flush=True)
for line in sys.stdin:
    scribe.turn(cell(line.strip()))
    scribe.commit()
    print("done", flush=True)
store.close()
"""


class OtherProcess:
    """A process that owns a store, and takes a turn for each name it is told."""

    def __init__(self, path):
        command = [sys.executable, "-c", OWNER, str(path)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        assert self.process.stdout.readline() == "owned\n"
        self.pid = self.process.pid

    def turn(self, name):
        """Let it write."""
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def kill(self):
        """SIGKILL: it has no chance to give anything back."""
        self.process.kill()
        self.finish()

    def finish(self):
        """Wait for its end."""
        self.process.communicate()
