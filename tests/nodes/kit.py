"""Nodes as processes: started, killed, put to sleep and cut off, on one PostgreSQL."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from pawlflow.app import open_store
from pawlflow.definition.canonical import definition_bytes
from pawlflow.definition.plan import plan_of
from pawlflow.engine.places import mail_of
from pawlflow.files import load_path
from pawlflow.model.ids import InstanceId, Tenant
from pawlflow.starts import Order, start_of

PAWL = [sys.executable, "-c", "from pawlflow.cli.main import entry; entry()"]
TENANT = Tenant("default")
WORKFLOW = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: three}
spec:
  steps:
    - {name: first, run: note, with: {n: "${ input.n }"}}
    - {name: second, run: note, with: {n: "${ steps.first }"}, dependsOn: [first]}
    - {name: third, run: note, with: {n: "${ steps.second }"}, dependsOn: [second]}
  output: {n: "${ steps.third }"}
"""
# What an outside service would do: it remembers the key with the work, so a repeated call is none.
WORKER = """\
import asyncio
import os
import psycopg
from pawlflow import step

CALLS = []

@step(name="note")
async def note(ctx, n):
    if not CALLS:  # the first of hundreds that begin together
        way = psycopg.AsyncConnection.connect(os.environ["WORK"], autocommit=True)
        CALLS.append(asyncio.ensure_future(way))
    db = await asyncio.shield(CALLS[0])
    await db.execute(
        "INSERT INTO work (key, n, node) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
        (ctx.key, n, os.getpid()),
    )
    return n + 1
"""


class Process:
    """A node that is a process of its own."""

    def __init__(self, folder: Path, url: str, work: str, *more: str) -> None:
        words = ["serve", "three.yaml", "--worker", "notes.py", "--db", url, *more]
        self.child = subprocess.Popen(
            [*PAWL, *words],
            cwd=folder,
            env={**os.environ, "WORK": work, "PAWL_LOG": "info"},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self) -> None:
        """Keep what it says."""
        assert self.child.stderr is not None
        for line in self.child.stderr:
            self.lines.append(line)
            if "is ready" in line:
                self.ready.set()
        self.ready.set()

    def wait_ready(self) -> "Process":
        """Until it serves."""
        assert self.ready.wait(120), self.lines
        assert any("is ready" in line for line in self.lines), self.lines
        return self

    @property
    def node(self) -> str:
        """What the others know it by."""
        return re.search(r"node ([0-9a-f]+) is ready", "".join(self.lines))[1]

    def send(self, what: signal.Signals) -> None:
        """A signal."""
        self.child.send_signal(what)

    def end(self) -> int:
        """Let it leave."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGCONT)
            self.child.terminate()
        try:
            return self.child.wait(30)
        finally:
            self.child.kill()
            self.child.wait()
            self.thread.join(10)
            self.child.stderr.close()


def folder_for(path: Path) -> Path:
    """The files of a node."""
    (path / "three.yaml").write_text(WORKFLOW)
    (path / "notes.py").write_text(WORKER)
    return path


def start(url: str, folder: Path, first: int, count: int) -> None:
    """Hand in starts, by mail: whichever node owns a shard takes them."""
    [found] = load_path(folder / "three.yaml")
    [workflow] = found.workflows
    order = Order(plan_of(definition_bytes(workflow)), TENANT, "test")
    made = [
        start_of(order, InstanceId(f"i-{n}"), {"n": n}, fresh=False)
        for n in range(first, first + count)
    ]
    store = open_store(url)
    try:
        store.post([mail_of(each.cell, each.input) for each in made])
        store.poke()
    finally:
        store.close()


def until(holds, seconds=120.0):
    """Wait until something holds, as it will."""
    end, pause = time.monotonic() + seconds, threading.Event()
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        pause.wait(0.05)


class Seen:
    """What the store and the service behind the steps show."""

    def __init__(self, postgres, url):
        self.postgres = postgres
        self.schema = re.search(r"schema=(\w+)", url)[1]
        postgres.execute("DROP TABLE IF EXISTS work")
        postgres.execute("CREATE TABLE work (key uuid PRIMARY KEY, n int8, node int8)")

    def completed(self) -> int:
        """How many instances have completed."""
        sql = f"SELECT count(*) FROM {self.schema}.cell WHERE state = 'completed'"
        return self.postgres.execute(sql)[0][0]

    def done(self) -> list[tuple[int, int]]:
        """How often work was done, by its number."""
        return self.postgres.execute("SELECT n, count(*) FROM work GROUP BY n ORDER BY n")

    def shares(self) -> dict[str, int]:
        """How many shards each node owns."""
        sql = f"SELECT owner, count(*) FROM {self.schema}.shard GROUP BY owner"
        return dict(self.postgres.execute(sql))
