"""How a PostgreSQL store removes cells: as a part of the flush, and what it must know for it."""

from typing import Any

from pawlflow.store.port import SHARDS, Batch, FrameWrite, Ref, Scalar, position
from pawlflow.store.postgres_find import search_key
from pawlflow.store.postgres_link import Connection, run
from pawlflow.store.postgres_rows import blobs, ints, texts
from pawlflow.store.removal import rules_of

Values = tuple[Any, ...]


def removal_values(batch: Batch, known: dict[Ref, dict[str, Scalar]]) -> Values:
    """The cells that go, as the function takes them; `known` has what they are found by."""
    heads = batch.removed
    places = facts_in(batch.frames)
    found = [
        (head, name, *search_key(value))
        for head in heads
        for name, value in known.get(head.ref, {}).items()
    ]
    return (
        ints([head.ref for head in heads]),
        texts([head.cell.tenant for head in heads]),
        texts([head.cell.key for head in heads]),
        blobs([head.hash for head in heads]),
        ints([places[head.ref] for head in heads]),
        texts([head.cell.tenant for head, *_ in found]),
        texts([name for _, name, *_ in found]),
        ints([kind for _, _, kind, *_ in found]),
        texts([number for *_, number, _ in found]),
        blobs([text for *_, text in found]),
        ints([head.created_at for head, *_ in found]),
        ints([head.ref for head, *_ in found]),
    )


def facts_in(frames: Any) -> dict[Ref, int]:
    """Where the dispositions of a batch lie, by cell."""
    found: dict[Ref, int] = {}
    written: FrameWrite
    for written in frames:
        place = position(written.frame.shard, written.frame.first)
        for at, entry in enumerate(written.entries):
            if not entry.number:
                found[entry.ref] = place + at * SHARDS
    return found


def fill_expiry(db: Connection, sql: dict[str, str]) -> None:
    """Version 2: instances that closed before retention counted are kept as long as any other."""
    rules = list(rules_of(run(db, sql["definitions_all"])))
    given = (
        blobs([definition for definition, _, _ in rules]),
        texts([state for _, state, _ in rules]),
        ints([ms for _, _, ms in rules]),
    )
    run(db, sql["expiry_fill"], given)
