"""The port of the mailbox: the one door between cells and processes, by what it guarantees."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from pawlflow.model.ids import CellId, Tenant


class Mail(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An input for a cell of some shard, waiting for the owner of that shard."""

    id: int = 0  # given by the store, never given twice; later mail has higher ids
    shard: int
    cell: CellId
    input: bytes
    beside: bytes
    key: str | None = None  # two posts of a tenant with one key are one while the first waits


class Taken(msgspec.Struct, frozen=True, gc=False):
    """Mail that was consumed, and what the sender is to be told: refused, or no code."""

    id: int
    code: str = ""
    detail: str = ""


class Mailbox(Protocol):
    """Where inputs wait for the owners of their shards. A part of every store."""

    def post(self, mail: Sequence[Mail]) -> list[int]:
        """Put mail into the mailbox, for the owner to find; durable when this returns."""
        ...

    def mail(self, shards: Sequence[int], after: int, limit: int) -> list[Mail]:
        """Mail of these shards with a higher id, oldest first. Nothing posted before is missed."""
        ...

    def mail_lines(self, shards: Sequence[int], after: int, limit: int) -> list[tuple[int, Tenant]]:
        """The same without what it says: the ids, and whose it is."""
        ...

    def mail_by_id(self, shards: Sequence[int], ids: Sequence[int]) -> list[Mail]:
        """Mail of these shards by its ids, as far as it still waits, oldest first."""
        ...

    def posted(self, tenant: Tenant, prefix: str, most: int) -> int:
        """How much mail of a tenant waits whose key begins so (ASCII), counted up to a number."""
        ...

    def answer(self, mail: int) -> Taken | None:
        """What became of mail: None while it waits, and for an id that was never given.

        Refusals are kept for the last 10,000.
        """
        ...
