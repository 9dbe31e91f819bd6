"""Proof of what was removed: whatever has no bytes any more, an entry must say why.

The entries of a removed cell stay with their hashes. They must be all of its turns, up to the one
that the entry names which removed it. Bytes that are missing without such an entry are damage.
"""

from collections.abc import Iterator

import msgspec

from pawlflow.model.ids import Digest
from pawlflow.model.journal import Disposition
from pawlflow.model.operate import RemoveInstance
from pawlflow.model.records import read
from pawlflow.projections.kin import TURNS_ALL
from pawlflow.projections.proof_report import Problem
from pawlflow.store.port import SHARDS, Entry, Head, Ref, Store, position


class Bare(msgspec.Struct):
    """The entries of a cell that have no bytes, as far as they were read."""

    first: int  # the sequence number of the first
    turn: int = 0
    hash: Digest = Digest(b"")
    whole: bool = True  # does every turn follow on the one before?


class Removals:
    """Cells without bytes, until the entry comes that says that they were removed."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.open: dict[Ref, Bare] = {}

    def bare(self, seq: int, entry: Entry) -> None:
        """An entry has no bytes."""
        found = self.open.setdefault(entry.ref, Bare(seq))
        if entry.number:
            found.whole = found.whole and entry.number == found.turn + 1
            found.turn, found.hash = entry.number, entry.hash

    def fact(self, seq: int, entry: Entry, disposed: Disposition) -> Iterator[str]:
        """An entry says that a cell was removed. Gives what is not so."""
        cell, asked = disposed.cell, disposed.input
        address = (cell.tenant, cell.key)
        found = self.open.pop(entry.ref, Bare(seq))
        said = (asked.turn, asked.hash) if isinstance(asked, RemoveInstance) else None
        if not found.whole or (found.turn, found.hash) != said:
            yield f"{cell.key} was removed, and not all of its turns are here without their bytes"
        image = self.store.story(address, TURNS_ALL)
        if image is not None and image.head.ref == entry.ref:
            yield f"{cell.key} was removed, and is still there"
        known = self.store.removed(address)
        if known is None or position(known.shard, known.seq) < position(entry.ref % SHARDS, seq):
            yield f"{cell.key} was removed, and that is not found by its id"

    def left(self, shard: int) -> list[Problem]:
        """Where bytes are missing and nothing says why; unless an owner went on and does."""
        refs = [ref for ref in self.open if ref % SHARDS == shard]
        return [missing(ref, self.open.pop(ref)) for ref in refs]


def missing(ref: Ref, found: Bare) -> Problem:
    """Bytes that are gone."""
    message = f"the entries of cell {ref} from {found.first} on have no bytes, and were not removed"
    return Problem(code="journal.bytes", shard=ref % SHARDS, seq=found.first, message=message)


def is_gone(store: Store, head: Head) -> bool:
    """Was this cell removed a moment ago?"""
    found = store.removed((head.cell.tenant, head.cell.key))
    return found is not None and found.entry.ref == head.ref


def went_since(store: Store, shard: int, after: int, last: int) -> bool:
    """Did an owner remove cells of a shard after one sequence number, up to another?"""
    while after < last:
        written = store.frame(shard, after + 1)
        if written is None:
            return False
        for entry in written.entries:
            if entry.number == 0 and entry.data:
                disposed: Disposition = read(Disposition, entry.data, {})
                if disposed.kind == "removed":
                    return True
        after = written.frame.last
    return False
