"""The floor: the rows an engine would write, with no engine: python -m bench.raw_rows [options].

SQLite in WAL mode with synchronous=FULL. A transaction holds one turn of each instance in flight:
its entry, its instance row (inserted by the first turn, updated by the others), and the frames.
"""

import argparse
import gc
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, Final

import apsw

from bench.judge import FOLDER, Line, best_of
from bench.timing import ROUNDS

STEPS: Final = 3
COMMITS: Final = 2_000
TENANT: Final = "acme"
SCHEMA: Final = """
create table entry (
  id integer primary key, cell integer not null, number integer not null,
  hash blob not null, data blob not null, beside blob
);
create index entry_cell on entry (cell, number);
create table frame (
  number integer primary key, entries integer not null, made_at integer not null,
  hash blob not null, data blob not null
);
create table instance (
  cell integer primary key, tenant text not null, key text not null, workflow text not null,
  definition blob not null, rules integer not null, state text not null, number integer not null,
  started_at integer not null, changed_at integer not null, due_at integer, hash blob not null
);
create unique index instance_key on instance (tenant, key);
create index instance_due on instance (due_at) where due_at is not null;
create table single (id integer primary key, data blob not null);
"""
ENTRY: Final = "insert into entry (cell, number, hash, data, beside) values (?, ?, ?, ?, ?)"
FRAME: Final = "insert into frame (entries, made_at, hash, data) values (?, ?, ?, ?)"
INSTANCE: Final = "insert into instance values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
CHANGE: Final = (
    "update instance set state = ?, number = ?, changed_at = ?, due_at = ?, hash = ? where cell = ?"
)

Rows = list[tuple[Any, ...]]
Batch = list[tuple[str, Rows]]  # the statements of one transaction, each with its rows


def main(arguments: list[str]) -> int:
    """Measure both, and print them for people or for programs."""
    options = parse(arguments)
    rows = best_of(ROUNDS, lambda: time_rows(options), least="seconds")
    commit = best_of(ROUNDS, lambda: time_commits(options), least="commit_p50_us")
    figures = {**rows, **commit}
    print(json.dumps(figures) if options.json else as_text(figures))
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="bench.raw_rows", description=__doc__)
    parser.add_argument("--workflows", type=int, default=20_000)
    parser.add_argument("--entries", type=int, default=4, help="of one workflow")
    parser.add_argument("--changes", type=int, default=3, help="of one instance row")
    parser.add_argument("--batch", type=int, default=500, help="entries in a transaction")
    parser.add_argument("--frame", type=int, default=16, help="entries in a frame")
    parser.add_argument("--data-bytes", type=int, default=300)
    parser.add_argument("--beside-bytes", type=int, default=120)
    parser.add_argument("--hash-bytes", type=int, default=32)
    parser.add_argument("--frame-bytes", type=int, default=100)
    parser.add_argument("--checkpoint", type=int, default=1_000, help="pages; SQLite's default")
    parser.add_argument("--folder", default=FOLDER, help="where the database file is made")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    return parser.parse_args(arguments)


def as_text(figures: Line) -> str:
    """The figures for people."""
    return "\n".join(f"{name:20} {value:>12,}" for name, value in figures.items() if value != "raw")


def connect(folder: str, options: argparse.Namespace) -> apsw.Connection:
    """A fresh file in the settings of the comparison."""
    connection = apsw.Connection(str(Path(folder, "raw.sqlite")))
    connection.execute("pragma journal_mode = wal; pragma synchronous = full")
    connection.execute(f"pragma wal_autocheckpoint = {options.checkpoint}")
    connection.execute(SCHEMA)
    return connection


# Rows


def time_rows(options: argparse.Namespace) -> Line:
    """Write all batches, one transaction each; the rows were made before."""
    prepared = list(batches(options))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        connection = connect(folder, options)
        gc.collect()
        begun, cpu_begun = perf_counter(), process_time()
        for batch in prepared:
            write(connection, batch)
        seconds, cpu_seconds = perf_counter() - begun, process_time() - cpu_begun
        check(connection, options)
        connection.close()
    written = sum(len(rows) for batch in prepared for _, rows in batch)
    return {
        "engine": "raw",
        "workflows": options.workflows,
        "rows": written,
        "commits": len(prepared),
        "seconds": round(seconds, 4),
        "rows_per_s": round(written / seconds),
        "entries_per_s": round(options.workflows * options.entries / seconds),
        "workflows_per_s": round(options.workflows / seconds),
        "steps_per_s": round(options.workflows * STEPS / seconds),
        "cpu_ms_per_workflow": round(cpu_seconds / options.workflows * 1e3, 4),
    }


def write(connection: apsw.Connection, batch: Batch) -> None:
    """One transaction."""
    connection.execute("begin immediate")
    for statement, rows in batch:
        connection.executemany(statement, rows)
    connection.execute("commit")


def batches(options: argparse.Namespace) -> Iterator[Batch]:
    """Groups of instances in flight; each transaction has the same turn of all of a group."""
    data, beside = os.urandom(options.data_bytes), os.urandom(options.beside_bytes)
    digest, framed = os.urandom(options.hash_bytes), os.urandom(options.frame_bytes)
    for first in range(0, options.workflows, options.batch):
        cells = range(first, min(first + options.batch, options.workflows))
        for turn in range(options.entries):
            entries = [(cell, turn, digest, data, beside) for cell in cells]
            frames = -(-len(cells) // options.frame)
            yield [
                (ENTRY, entries),
                (FRAME, [(options.frame, 1_700_000_000_000 + turn, digest, framed)] * frames),
                instance_rows(cells, turn, digest, options.changes),
            ]


def instance_rows(cells: range, turn: int, digest: bytes, changes: int) -> tuple[str, Rows]:
    """What a turn writes about its instance; a deadline is set until the last one."""
    now = 1_700_000_000_000 + turn
    if turn == 0:
        fixed = ("order.fulfil", digest, 1, "running", 0, now, now, now + 60_000, digest)
        return INSTANCE, [(cell, TENANT, f"order-{cell:012}", *fixed) for cell in cells]
    if turn > changes:
        return CHANGE, []
    last = turn == changes
    state, due_at = ("completed", None) if last else ("running", now + 60_000)
    return CHANGE, [(state, turn, now, due_at, digest, cell) for cell in cells]


def check(connection: apsw.Connection, options: argparse.Namespace) -> None:
    """Everything is there, and the file has the settings that were asked for."""
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("synchronous") == 2  # SQLite's number for FULL
    entries = connection.execute("select count(*) from entry").get
    ended = connection.execute("select count(*) from instance where due_at is null").get
    assert entries == options.workflows * options.entries, entries
    assert ended == options.workflows, ended


# Commits


def time_commits(options: argparse.Namespace) -> Line:
    """One row a commit, and beside it what the disk alone takes for 4 KiB."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        connection = connect(folder, options)
        data = os.urandom(options.data_bytes)
        taken = []
        for _ in range(COMMITS):
            begun = perf_counter()
            connection.execute("insert into single (data) values (?)", (data,))
            taken.append(perf_counter() - begun)
        connection.close()
        synced = time_syncs(Path(folder, "plain"))
    taken.sort()
    return {
        "commit_p50_us": round(median(taken) * 1e6, 1),
        "commit_p99_us": round(taken[int(len(taken) * 0.99)] * 1e6, 1),
        "fdatasync_p50_us": round(median(synced) * 1e6, 1),
    }


def time_syncs(path: Path) -> list[float]:
    """Append a page and wait for the disk, without SQLite."""
    page, taken = os.urandom(4_096), []
    with path.open("wb", buffering=0) as file:
        for _ in range(COMMITS):
            begun = perf_counter()
            file.write(page)
            os.fdatasync(file.fileno())
            taken.append(perf_counter() - begun)
    return taken


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
