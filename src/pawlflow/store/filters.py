"""Filters: which instances are asked for, in terms that every store can answer by an index."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from pawlflow.model.ids import Tenant, TimeMs

Place = tuple[TimeMs, int]  # of an instance among all: when it was created, then its ref
Scalar = bool | int | float | str | None  # what an attribute may hold; integers have 64 bits


class Term(msgspec.Struct, frozen=True, gc=False):
    """One comparison with any of some values; numbers, texts, truth values and null are apart."""

    name: str
    op: Literal["==", "!=", "<", "<=", ">", ">="]
    values: tuple[Scalar, ...]
    builtin: bool = False  # a fact of the head, not an attribute


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which instances are asked for."""

    tenant: Tenant
    states: Sequence[str] = ()
    workflow: str | None = None
    where: Sequence[Sequence[Term]] = ()  # all terms of any of these; none: whatever they are
    limit: int = 100
    before: Place | None = None  # go on below this one
