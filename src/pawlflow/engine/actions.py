"""Actions: what the shard core asks its driver to do. The core itself does no I/O.

A driver carries each out and feeds the answer back: `loaded`, `appended`, `heads_read`,
`mail_read`, `due_read`, `in_flight_read`. The fault simulator is a driver too.
"""

import msgspec

from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.step import Stepped
from pawlflow.model.ids import CellId, Digest, InstanceId
from pawlflow.model.inputs import Input
from pawlflow.model.intents import Intent
from pawlflow.store.port import Address, Batch, Head, Ref


class Load(msgspec.Struct, frozen=True):
    """Read these cells and definitions."""

    cells: tuple[Address, ...]
    definitions: tuple[Digest, ...]
    beside: tuple[Address, ...] = ()  # of these cells, what lies beside their turns as well


class Append(msgspec.Struct, frozen=True):
    """Make this batch durable. The only way anything becomes so."""

    batch: Batch


class ReadHeads(msgspec.Struct, frozen=True):
    """Say where these shards stand: the outcome of an append is unknown."""

    shards: tuple[int, ...]


class ReadMail(msgspec.Struct, frozen=True):
    """Read what waits in the mailbox."""

    shards: tuple[int, ...]
    after: int
    limit: int


class ReadDue(msgspec.Struct, frozen=True):
    """Read the earliest deadlines after this one."""

    shards: tuple[int, ...]
    after: tuple[int, Ref]
    limit: int


class ReadInFlight(msgspec.Struct, frozen=True):
    """Read which cells have calls in flight, to offer them again."""

    shards: tuple[int, ...]
    after: Ref
    limit: int


class Publish(msgspec.Struct, frozen=True):
    """Let these effects out: what asked for them is durable."""

    intents: tuple[Intent, ...]
    again: bool = False  # offered before, with the same identity


class Accepted(msgspec.Struct, frozen=True, gc=False):
    """The input is durable."""

    key: InstanceId
    turn: int
    existing: bool = False  # a start that had happened already


class Reply(msgspec.Struct, frozen=True, gc=False):
    """Tell the caller."""

    token: int
    outcome: Accepted | Rejected


class Forward(msgspec.Struct, frozen=True):
    """An input for a cell that another node owns: it goes by mail, and with a token is answered."""

    cell: CellId
    input: Input
    token: int | None


class Committed(msgspec.Struct, frozen=True, gc=False):
    """A turn that is durable now, for those who watch."""

    cell: CellId
    stepped: Stepped
    head: Head


class Notify(msgspec.Struct, frozen=True):
    """Turns that are durable now, in order."""

    turns: tuple[Committed, ...]


class Stopped(msgspec.Struct, frozen=True):
    """The core does nothing more for these shards: another owner, or a store that failed."""

    shards: tuple[int, ...]
    code: str
    message: str


Action = (
    Load
    | Append
    | ReadHeads
    | ReadMail
    | ReadDue
    | ReadInFlight
    | Publish
    | Reply
    | Forward
    | Notify
    | Stopped
)
