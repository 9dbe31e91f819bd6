"""The port of a store, in the engine's own words, documented by what it guarantees.

Everything durable goes through `append`, or through `post`, the door for those who do not own a
shard. A store knows nothing of workflows: it keeps entries in order, and rows it can be asked for.
`pawlflow.testing.conformance` checks every promise made here, of any store.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, Literal, Protocol

import msgspec

from pawlflow.model.ids import CellId, Digest, InstanceId, Tenant, TimeMs
from pawlflow.model.journal import Frame
from pawlflow.model.trouble import PawlError
from pawlflow.store.filters import Filter as Filter
from pawlflow.store.filters import Place as Place
from pawlflow.store.filters import Scalar as Scalar
from pawlflow.store.filters import Term as Term
from pawlflow.store.mailbox import Mail as Mail
from pawlflow.store.mailbox import Mailbox
from pawlflow.store.mailbox import Taken as Taken

SHARDS: Final = 32  # virtual shards of every store, fixed when it is created
INLINE_BYTES_MAX: Final = 64 * 1024  # a larger payload is a blob: kept once, whoever mentions it

Ref = int  # a cell's number in its store: `position` of its first entry, so rows grow in time order
Address = tuple[Tenant, InstanceId]  # what a cell is found by; an id is unique in its tenant


def position(shard: int, seq: int) -> int:
    """The place of an entry in a whole store: by sequence first, then by shard."""
    return seq * SHARDS + shard


class ShardHead(msgspec.Struct, frozen=True, kw_only=True):
    """Where a shard's journal ends, who may write there, and the batch that wrote last."""

    shard: int
    epoch: int
    seq: int
    hash: Digest
    batch: bytes
    now: TimeMs  # the time of its last entry: the time of a shard never goes back


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A turn or, with number 0, a disposition."""

    ref: Ref
    number: int
    data: bytes
    hash: Digest
    beside: bytes = b""  # the payloads of this entry that are no blobs


class FrameWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A frame and its entries, in order of sequence."""

    frame: Frame
    epoch: int
    now: TimeMs
    entries: Sequence[Entry]


class Head(msgspec.Struct, frozen=True, gc=False):
    """What may be asked about a cell without reading its turns. Follows from them."""

    ref: Ref
    cell: CellId
    shard: int
    turn: int
    hash: Digest
    definition: bytes  # its hash; empty for system cells
    version: int = 0
    state: str = ""
    rollback: str = "none"
    created_at: TimeMs = TimeMs(0)
    started_at: TimeMs | None = None
    closed_at: TimeMs | None = None
    due_at: TimeMs | None = None  # its earliest deadline
    calls: int = 0  # attempts in flight: what recovery offers again
    quarantined: bool = False


Kept = tuple[TimeMs, Head]  # until when a closed cell is kept


class Review(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A decision that waits for a human."""

    ref: Ref
    cell: CellId
    step: str
    kind: Literal["approval", "escalation", "budget", "effect.orphaned", "quarantine"]
    role: str | None
    since: TimeMs
    due_at: TimeMs | None
    show: bytes | None = None  # canonical bytes of what is shown
    claimed_by: str | None = None  # who looks after it


class Reviewed(msgspec.Struct, frozen=True, gc=False):
    """A review that is no longer open."""

    ref: Ref
    step: str


class Attributes(msgspec.Struct, frozen=True, gc=False):
    """What a new instance may be found by beside its head; its head is in the same batch."""

    ref: Ref
    values: dict[str, Scalar]


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """A definition under its name."""

    tenant: Tenant
    name: str
    version: int
    definition: Digest
    at: TimeMs


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of a state after a turn: a cache, so that a long history is read from its end."""

    ref: Ref
    turn: int
    hash: Digest  # of that turn
    data: bytes
    beside: bytes


class Blob(msgspec.Struct, frozen=True, gc=False):
    """A large payload that a cell mentions."""

    ref: Ref
    addr: bytes
    data: bytes


class Fence(msgspec.Struct, frozen=True, gc=False):
    """The shard may be written, or its mail acknowledged, only if it still looks like this."""

    shard: int
    epoch: int
    seq: int


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """All that becomes durable together: at most one frame per shard, and what follows from it.

    The head of every cell with a turn in the batch is in it. Every fenced shard remembers `id`, so
    that a batch of unknown outcome can be told from one that was lost.

    Of a removed cell nothing is left that could be asked for: no head, row, snapshot, nor a blob
    that no other cell mentions. Its entries stay in their frames, each with its hash and without
    its bytes. It is removed before anything else of the batch is written, so its id is free.
    """

    id: bytes
    fences: Sequence[Fence]
    frames: Sequence[FrameWrite] = ()
    heads: Sequence[Head] = ()
    steady: Collection[Ref] = ()  # of these only turn, hash, due_at and calls are new: a hint
    reviews: Sequence[Review | Reviewed] = ()
    attributes: Sequence[Attributes] = ()
    published: Sequence[Published] = ()
    definitions: Sequence[tuple[Digest, bytes]] = ()
    blobs: Sequence[Blob] = ()
    snapshots: Sequence[Snapshot] = ()
    mail: Sequence[Mail] = ()
    taken: Sequence[Taken] = ()
    expiring: Sequence[tuple[Ref, TimeMs]] = ()  # closed now, and kept until then
    removed: Sequence[Head] = ()  # as they were; a disposition of each in the batch says so


class CellImage(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a cell can be rebuilt from."""

    head: Head
    snapshot: Snapshot | None
    entries: Sequence[Entry]  # its turns after the snapshot, in order
    blobs: dict[bytes, bytes]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An entry with its place, as verification and export read it."""

    shard: int
    seq: int
    entry: Entry


class StoreError(PawlError):
    """The store is unwell. `code` is stable, the message names the way out."""


class StoreConflictError(StoreError):
    """A fence is stale: somebody else owns these shards now. Nothing was written."""

    def __init__(self, shards: Sequence[int]) -> None:
        self.shards = tuple(shards)
        super().__init__("store.fenced", f"shards {list(shards)} have another owner")


class StoreFullError(StoreError):
    """There is no room. Nothing was written, and nothing that was written is lost."""


class StoreUnknownError(StoreError):
    """It is not known whether the batch is durable: read the heads again."""


class Store(Mailbox, Protocol):
    """Where frames become durable. One thread at a time uses an object of this kind."""

    def claim(self, shards: Sequence[int] | None = None) -> list[ShardHead]:
        """Own these shards (all): their epochs rise, and older owners are fenced from now on."""
        ...

    def heads(self, shards: Sequence[int]) -> list[ShardHead]:
        """Where these shards stand, as the last durable batch left them."""
        ...

    def append(self, batch: Batch) -> None:
        """Make the whole batch durable, or nothing of it; durable when this returns.

        Raises StoreConflictError if a fence is stale, StoreFullError if there is no room,
        StoreUnknownError if the outcome cannot be known, StoreError otherwise. In all but the
        unknown case nothing was written.
        """
        ...

    def load(self, cells: Sequence[Address]) -> dict[Address, CellImage]:
        """The cells that exist, as the last durable batch left them. Raises StoreError."""
        ...

    def story(self, cell: Address, after: int = 0) -> CellImage | None:
        """A cell with every turn it ever had, or those after a number, and no snapshot.

        Asking for what came since costs what came since. Without any new turn there are no blobs.
        """
        ...

    def definitions(self, hashes: Sequence[Digest]) -> dict[Digest, bytes]:
        """The definitions that are known, by hash."""
        ...

    def published(self, tenant: Tenant) -> list[Published]:
        """Every definition under its name and version, by name, newest first."""
        ...

    def due(self, shards: Sequence[int], after: tuple[int, Ref], limit: int) -> list[Head]:
        """Cells with a deadline after (due_at, ref), earliest first."""
        ...

    def in_flight(self, shards: Sequence[int], after: Ref, limit: int) -> list[Head]:
        """Cells with calls in flight, by ref."""
        ...

    def expiring(self, shards: Sequence[int], after: tuple[int, Ref], limit: int) -> list[Kept]:
        """Closed cells that are kept until a time after (time, ref), earliest first."""
        ...

    def removed(self, cell: Address) -> Found | None:
        """The disposition that says that a cell with this id was removed: the last one."""
        ...

    def beside(self, ref: Ref) -> list[Found]:
        """The dispositions of a cell, oldest first; once it was removed, that one is the last."""
        ...

    def instances(self, wanted: Filter) -> list[Head]:
        """Instances of a tenant by their places, newest first. System cells are none.

        It costs what the most selective term matches, not what the tenant has.
        """
        ...

    def attributes(self, refs: Sequence[Ref]) -> dict[Ref, dict[str, Scalar]]:
        """The attributes of instances, as far as they have some."""
        ...

    def attribute_names(self, tenant: Tenant) -> list[str]:
        """The names of all attributes that instances of a tenant have, in order."""
        ...

    def systems(self, tenant: Tenant, kind: str, before: str, limit: int) -> list[Head]:
        """System cells of a kind (their keys begin with it) below a key, or all; highest first."""
        ...

    def reviews(self, tenant: Tenant) -> list[Review]:
        """Open reviews, oldest first."""
        ...

    def dispositions(self, tenant: Tenant, limit: int) -> list[Found]:
        """Refused and dead inputs, newest first; what removed a cell is not among them."""
        ...

    def frames(self, shard: int) -> Iterator[FrameWrite]:
        """The frames of a shard from its beginning, each whole. Raises StoreError if damaged."""
        ...

    def frame(self, shard: int, seq: int) -> FrameWrite | None:
        """The frame that holds a sequence number, whole; None if it was not written yet."""
        ...

    def refs(self) -> Iterator[Head]:
        """Every cell, by ref."""
        ...

    def facts(self) -> dict[str, Any]:
        """What an operator may want to know: kind, path, version, size, owner."""
        ...

    def close(self) -> None:
        """Give everything back. Shards that were claimed are no longer owned."""
        ...
