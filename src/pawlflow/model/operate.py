"""Inputs of operators, for the shard rather than the program of a cell."""

from pawlflow.model.ids import Digest
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record


class RedriveInput(Record, frozen=True, tag="dead.redrive", gc=False):
    """Send a dead input once more; its cell goes on."""

    entry: int  # the position of the dead letter
    original: Payload  # its input and what lay beside it, as two byte strings
    by: str
    comment: Payload | None = None


class DiscardInput(Record, frozen=True, tag="dead.discard", gc=False):
    """Throw a dead input away; its cell goes on."""

    entry: int
    by: str
    comment: Payload | None = None


class RemoveInstance(Record, frozen=True, tag="instance.remove", gc=False):
    """Remove a closed instance whose time is over; of its entries only the hashes stay."""

    turn: int  # its last
    hash: Digest  # of that turn: what is removed is what was looked at, and archived
    by: str
