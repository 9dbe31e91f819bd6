"""Places: which shard a cell lives in, and inputs as they travel through the mailbox."""

from typing import Any, Final
from zlib import crc32

from pawlflow.engine.cells import put_beside, take_in
from pawlflow.engine.fair import Offer
from pawlflow.model.ids import CellId, WorkflowName
from pawlflow.model.inputs import Input
from pawlflow.model.journal import payloads_of
from pawlflow.model.records import reader_for, write
from pawlflow.store.port import SHARDS, Address, Mail

READ_INPUT: Final[Any] = reader_for(Input)


def shard_of(cell: CellId) -> int:
    """The shard of a cell: by tenant and id alone, so that one id can never be in two shards.

    It never changes: a store's cells lie where this put them.
    """
    return crc32(f"{cell.tenant}\0{cell.key}".encode()) % SHARDS


def shard_of_address(address: Address) -> int:
    """The shard of a cell known by its address."""
    return shard_of(CellId(address[0], WorkflowName(""), address[1]))


def mail_of(cell: CellId, incoming: Input, key: str | None = None) -> Mail:
    """An input as mail. Large payloads travel with it: the sender's transaction must hold all."""
    beside = put_beside(payloads_of(incoming), 0, [], inline_max=None)
    return Mail(shard=shard_of(cell), cell=cell, input=write(incoming), beside=beside, key=key)


def offer_of(mail: Mail) -> Offer:
    """Mail as the input it is."""
    payloads: dict[bytes, bytes] = {}
    take_in(payloads, mail.beside, mail.cell.tenant)
    incoming: Input = READ_INPUT(mail.input, payloads)
    cell, size = mail.cell, len(mail.input) + len(mail.beside)
    return Offer(cell, (cell.tenant, cell.key), incoming, None, mail.id, size)
