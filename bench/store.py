"""How many entries a second a store makes durable: 500 entries, 500 heads, 32 frames at a time.

With `--db URL` a PostgreSQL server is measured as well, in a schema that is gone at the end.
"""

import argparse
import gc
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Final

from pawlflow.model.ids import CellId, Digest, InstanceId, Tenant, TimeMs, WorkflowName
from pawlflow.model.journal import frame_of, shard_genesis
from pawlflow.store.memory import MemoryStore
from pawlflow.store.port import (
    SHARDS,
    Batch,
    Entry,
    Fence,
    FrameWrite,
    Head,
    Store,
    position,
)
from pawlflow.store.sqlite import SqliteStore

ROUNDS: Final = 5
BATCHES: Final = 100
ENTRIES: Final = 500
TURNS: Final = 10  # of an instance: one head in ten is new
LIVE: Final = 5_000  # instances that take turns, so that rows are found all over the tables
DATA: Final = b"d" * 220  # a turn of a small step
BESIDE: Final = b"b" * 120


def main(words: list[str]) -> int:
    """Print one line of JSON per store."""
    reads = argparse.ArgumentParser(prog="bench.store", description=__doc__)
    reads.add_argument("--db", metavar="URL", help="a PostgreSQL server to measure as well")
    reads.add_argument("--rounds", type=int, default=ROUNDS, help="the best of so many is told")
    options = reads.parse_args(words)
    url = options.db
    batches = list(workload(BATCHES))
    for kind in ("memory", "sqlite", *(["postgres"] if url else [])):
        runs = [timed(kind, batches, url) for _ in range(options.rounds)]
        took, worked = [wall for wall, _ in runs], [cpu for _, cpu in runs]
        figure = {
            "bench": f"store.append.{kind}",
            "entries_per_s": round(BATCHES * ENTRIES / min(took)),
            "worst": round(BATCHES * ENTRIES / max(took)),
            "batch_ms": round(min(took) / BATCHES * 1_000, 2),
            "cpu_us_per_entry": round(min(worked) / BATCHES / ENTRIES * 1e6, 2),
        }
        print(json.dumps(figure), flush=True)
    return 0


def timed(kind: str, batches: list[Batch], url: str) -> tuple[float, float]:
    """The seconds that appending all batches to a new store takes, and those of the CPU."""
    with TemporaryDirectory(dir=Path.cwd()) as folder, opened(kind, Path(folder), url) as store:
        store.claim()
        gc.collect()
        begun, busy = perf_counter(), process_time()
        for batch in batches:
            store.append(batch)
        return perf_counter() - begun, process_time() - busy


@contextmanager
def opened(kind: str, folder: Path, url: str) -> Iterator[Store]:
    """A new store."""
    if kind == "postgres":
        with on_new_schema(url) as store:
            yield store
        return
    store = MemoryStore() if kind == "memory" else SqliteStore(folder / "pawl.db")
    yield store
    store.close()


@contextmanager
def on_new_schema(url: str) -> Iterator[Store]:
    """A store in a schema of its own."""
    from pawlflow.store.postgres import PostgresStore
    from pawlflow.store.postgres_link import connect

    store = PostgresStore(f"{url}{'&' if '?' in url else '?'}schema=pawl_bench")
    try:
        yield store
    finally:
        store.close()
        with connect(store.where) as db:
            db.execute(b"DROP SCHEMA pawl_bench CASCADE")


def workload(count: int) -> Iterator[Batch]:
    """Batches of an engine at work: instances come, take their turns at random times, and go."""
    heads = {shard: (0, shard_genesis(shard)) for shard in range(SHARDS)}
    live: list[Head] = []
    for number in range(count):
        chosen = pick(live, number)
        batch, live = one(heads, live, chosen, number)
        for written in batch.frames:
            heads[written.frame.shard] = (written.frame.last, written.frame.hash)
        yield batch


def pick(live: list[Head], number: int) -> list[Head]:
    """The instances that take a turn: nine in ten are old once there are enough."""
    old = ENTRIES - ENTRIES // TURNS if len(live) >= LIVE else 0
    start = number * 7919
    return [live[(start + at * 97) % len(live)] for at in range(old)]


def one(
    heads: dict[int, tuple[int, Digest]], live: list[Head], chosen: list[Head], number: int
) -> tuple[Batch, list[Head]]:
    """One batch, and the instances that are alive after it."""
    seqs = {shard: seq for shard, (seq, _) in heads.items()}
    entries: dict[int, list[Entry]] = {shard: [] for shard in range(SHARDS)}
    rows = {head.ref: turned(head, number) for head in chosen}
    for row in rows.values():
        entries[row.shard].append(entry(row))
    for at in range(ENTRIES - len(rows)):
        shard = at % SHARDS
        seq = seqs[shard] + len(entries[shard]) + 1
        row = born(shard, position(shard, seq), number)
        rows[row.ref] = row
        entries[shard].append(entry(row))
    frames = [
        FrameWrite(
            frame=frame_of(shard, heads[shard][1], seqs[shard] + 1, [e.hash for e in found]),
            epoch=1,
            now=TimeMs(number),
            entries=found,
        )
        for shard, found in entries.items()
        if found
    ]
    fences = [Fence(w.frame.shard, 1, w.frame.first - 1) for w in frames]
    batch = Batch(
        id=number.to_bytes(16, "big"), fences=fences, frames=frames, heads=tuple(rows.values())
    )
    after = [rows.get(head.ref, head) for head in live]
    after += [row for row in rows.values() if row.turn == 1]
    return batch, [row for row in after if row.turn < TURNS]


def born(shard: int, ref: int, number: int) -> Head:
    """An instance after its first turn. Its id is random, as those of users are."""
    name = InstanceId(sha256(ref.to_bytes(8, "big")).hexdigest()[:32])
    cell = CellId(Tenant(f"tenant-{ref % 7}"), WorkflowName(f"flow-{ref % 5}"), name)
    return Head(
        ref=ref,
        cell=cell,
        shard=shard,
        turn=1,
        hash=digest(ref, 1),
        definition=digest(0, 0),
        version=1,
        state="running",
        created_at=TimeMs(number),
        started_at=TimeMs(number),
        due_at=TimeMs(number + 1_000),
        calls=1,
    )


def turned(head: Head, number: int) -> Head:
    """The same after one turn more; the last one closes it."""
    turn = head.turn + 1
    done = turn == TURNS
    return Head(
        ref=head.ref,
        cell=head.cell,
        shard=head.shard,
        turn=turn,
        hash=digest(head.ref, turn),
        definition=head.definition,
        version=1,
        state="succeeded" if done else "running",
        created_at=head.created_at,
        started_at=head.started_at,
        closed_at=TimeMs(number) if done else None,
        due_at=None if done else TimeMs(number + 1_000),
        calls=0 if done else 1,
    )


def entry(row: Head) -> Entry:
    """The turn that made this row."""
    return Entry(row.ref, row.turn, DATA, row.hash, BESIDE)


def digest(ref: int, turn: int) -> Digest:
    """Bytes that no page compresses and no index foresees."""
    return Digest(sha256(b"%d/%d" % (ref, turn)).digest())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
