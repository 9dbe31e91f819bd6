"""Marks of a move: what a store says about itself while it is carried elsewhere, and afterwards.

A mark lies in the store it is about, so that every process sees it in the transaction in which it
would claim or post. While there is one, nobody owns the store but who moves it; reading is free.
"""

from typing import Final, Literal

import msgspec

from pawlflow.model.ids import TimeMs
from pawlflow.store.port import StoreError

MARK: Final = "move"  # under these names in the table meta
ORIGIN: Final = "origin"
IDENTITY: Final = "identity"
READY: Final = "ready"  # the part of a copy that was verified, and only has to be let go


class Mark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A store that is moved away (source), or is being filled by a move (target)."""

    role: Literal["source", "target"]
    move: str  # which move: the same in both stores
    other: str  # the other store, as it may be shown
    at: TimeMs
    done: bool = False  # of a source: the other one is used now
    source: str = ""  # of a target: the identity of the store it is filled from
    run: str = ""  # of a target: the process that fills it; an older one is fenced
    part: str = ""  # of a target: what is being copied
    after: str = ""  # of a target: how far


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a store was moved from."""

    move: str
    source: str
    other: str
    at: TimeMs


def mark_from(text: str | None) -> Mark | None:
    """A mark as it was kept."""
    return None if text is None else msgspec.json.decode(text, type=Mark)


def origin_from(text: str | None) -> Origin | None:
    """An origin as it was kept."""
    return None if text is None else msgspec.json.decode(text, type=Origin)


def kept(mark: Mark | Origin) -> str:
    """The same, as it is kept."""
    return msgspec.json.encode(mark).decode()


def refuse_moved(told: str, text: str | None) -> None:
    """Raise StoreError if this store has a mark: nobody may own it, nor post to it."""
    mark = mark_from(text)
    if mark is not None:
        raise refused(told, mark)


def refused(told: str, mark: Mark) -> StoreError:
    """Why a marked store is not for use, and what is."""
    if mark.role == "target":
        return StoreError(
            "store.unfinished",
            f"{told} holds a part of {mark.other}, whose move has not ended: "
            "`pawl move` again with the same stores goes on",
        )
    if mark.done:
        return StoreError(
            "store.moved",
            f"{told} was moved to {mark.other}: work there (--db, PAWL_DB); this one can only be "
            "read; `pawl move --undo --to URL` takes it back",
        )
    return StoreError(
        "store.moving",
        f"{told} is being moved to {mark.other}: wait for it, go on with `pawl move` if it was "
        "interrupted, or give it up with `pawl move --undo`",
    )
