"""The port of a move: a store as rows that mean the same in every kind of store.

Journals are read as frames, all else in pages by key. Each page is written in one transaction
together with how far the copy is, so that a move which was killed anywhere goes on from there.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

from pawlflow.store.check import damaged
from pawlflow.store.marks import Mark, Origin
from pawlflow.store.port import FrameWrite, ShardHead, StoreError
from pawlflow.store.rows import head_of

ROWS_MAX: Final = 1_000  # of a page
BYTES_MAX: Final = 4 << 20  # of a page, beyond its first row: what is held in memory
FRAMES: Final = "frames"

Row = tuple[Any, ...]

# What there is beside the journals, in the order it is copied, and a key below all others. Cells
# come after the frames that have their turns; attributes and the like after their cells.
PARTS: Final[dict[str, Row]] = {
    "definitions": (b"",),  # hash, data
    "published": ("", "", -1),  # tenant, name, version, definition, at
    "blobs": (b"",),  # addr, data
    "mentions": (-1, b""),  # ref, addr
    "cells": (-1,),  # a head
    "attributes": (-1,),  # ref, tenant, created_at, data
    "reviews": (-1, ""),  # ref, step, and all else of a review
    "snapshots": (-1,),  # ref, turn, hash, data, beside
    "expiries": (-1,),  # ref, until
    "removed": ("", "", -1),  # tenant, key, position of the entry that says so, its ref
    "mail": (-1,),  # id, shard, tenant, workflow, key, input, beside, dedupe
    "refusals": (-1,),  # id, mail, code, detail
    "dispositions": ("", -1),  # tenant, number in the order of commits, position
}
# Columns that may be large.
HEAVY: Final = {"definitions": (1,), "blobs": (1,), "snapshots": (3, 4), "mail": (5, 6)}


class Side(Protocol):
    """One of the two stores of a move. Raises StoreError."""

    kind: str
    told: str  # as it may be shown
    keeps_numbers: bool  # of dispositions, or only their order in time?

    def same(self, other: "Side") -> bool:
        """Are both the same store, as far as can be told without writing?"""
        ...

    def hold(self) -> None:
        """Let nobody own it from now on. Raises StoreError("store.owned") if somebody does."""
        ...

    def identity(self, *, make: bool = True) -> str:
        """What this store is known by; given once, and kept. Empty if it shall not be given."""
        ...

    def mark(self) -> Mark | None:
        """What it says about a move."""
        ...

    def origin(self) -> Origin | None:
        """Where it was moved from."""
        ...

    def put_mark(self, mark: Mark | None, was: Mark | None) -> None:
        """Say it from now on, or no longer. Whoever is about to post ends first, or is refused.

        Raises StoreError("store.fenced") if it says something else than was thought.
        """
        ...

    def sizes(self) -> dict[str, int]:
        """How many rows of each part, entries and frames there are."""
        ...

    def shards(self) -> list[ShardHead]:
        """Where every shard stands."""
        ...

    def mail_last(self) -> int:
        """The highest number that mail was ever given."""
        ...

    def search_count(self) -> int:
        """How many ways lead to instances by their attributes."""
        ...

    def turns_loose(self) -> int:
        """How many turns do not lead to the one before them."""
        ...

    def frames(self, shard: int, after: int) -> Iterator[FrameWrite]:
        """The frames of a shard from behind a sequence on."""
        ...

    def page(self, part: str, after: Row) -> list[Row]:
        """The next rows by key; none if there are no more."""
        ...

    def write_frames(self, frames: Sequence[FrameWrite], mark: Mark) -> None:
        """Add frames and their entries, and how far that is."""
        ...

    def write_page(self, part: str, rows: Sequence[Row], mark: Mark) -> None:
        """Add rows, if there are some, and how far that is. Raises StoreError("store.fenced")."""
        ...

    def settle(self, heads: Sequence[ShardHead], mail_last: int, mark: Mark) -> None:
        """Let shards stand where others do, and numbers go on where others would."""
        ...

    def release(self, mark: Mark, origin: Origin) -> None:
        """The copy is whole: let it be used."""
        ...

    def clear(self, mark: Mark | None) -> None:
        """Take away all that was copied, and say this; only of a target that was never used."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


def fenced(told: str) -> StoreError:
    """Somebody else moves this store now."""
    return StoreError(
        "store.fenced", f"{told} is being moved by another process now: let that one end"
    )


def checked(row: Row) -> Row:
    """A head whose last turn is missing is damaged, and is not carried on."""
    if row[5] is None:
        raise damaged(head_of((*row[:5], 0, *row[6:])).cell, row[4], "its last turn is missing")
    return row
