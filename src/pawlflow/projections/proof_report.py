"""What a proof of a store gives: how much was looked at, and what is not as it was written."""

from typing import Final

import msgspec

from pawlflow.model.ids import CellId

PROBLEMS_MAX: Final = 1_000  # kept; a store with more is not mended by a longer list


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not as it was written, and where."""

    code: str
    shard: int | None = None
    seq: int | None = None
    cell: CellId | None = None
    turn: int | None = None
    message: str


class Report(msgspec.Struct, kw_only=True):
    """What was looked at, and what was found."""

    shards: int = 0
    frames: int = 0
    entries: int = 0
    instances: int = 0
    turns: int = 0
    removed: int = 0  # cells whose time was over: their hashes are there, and what says so
    live: bool = False  # an owner went on meanwhile: what is found by an index was not judged
    differences: list[Problem] = []
