"""Batches: messages of the plain protocol in one, for workers that said that they take them.

What is in a batch is what would have been sent alone: a subject, headers and a JSON body. So it can
be sent alone again at any time, by whoever has it.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from pawlflow.bus.port import Consumer, Letter, Stream
from pawlflow.services import protocol
from pawlflow.services.protocol import ProtocolError

COUNT_MAX: Final = 256  # beyond, a larger batch lowers the cost of a command no further (bench)
BYTES_MAX: Final = 512 * 1024  # so that no connection is held up by one message
ENVELOPE: Final = 256  # bytes beside the items: brackets and headers
SIZE: Final = "X-Batch-Size"

BATCH: Final = "workflow.v1.batches."  # and the name of a service
COMPLETED: Final = "workflow.v1.events.steps-completed"
ARE_OPEN: Final = "workflow.v1.steps.are-open"
COMMANDS_ABOUT: Final = "pawl-commands"  # of a consumer: the commands it takes in batches

BATCHES: Final = Stream(
    name="PAWL_BATCHES", subjects=(f"{BATCH}*",), once=True, age_s=protocol.DAY_S
)
COMPLETIONS: Final = replace(
    protocol.COMPLETIONS, subjects=(*protocol.COMPLETIONS.subjects, COMPLETED)
)
INTAKE: Final = Consumer(
    stream=COMPLETIONS.name,
    name=f"{protocol.GROUP}-batches",
    subjects=(COMPLETED,),
    deliver="workflow.v1.deliver.steps-completed",
    ack_s=10.0,
    pending_max=64,
)


class Enclosed(msgspec.Struct, frozen=True, gc=False):
    """A message in a batch."""

    subject: str
    headers: dict[str, str]
    body: msgspec.Raw

    @property
    def data(self) -> bytes:
        """What it says: the bytes that it would have said alone."""
        return bytes(self.body)

    @property
    def alone(self) -> Letter:
        """The same, to be sent alone."""
        return Letter(self.subject, self.data, self.headers)


READ: Final = msgspec.json.Decoder(list[Enclosed])
WRITE: Final = msgspec.json.Encoder()


class Packed(NamedTuple):
    """Messages on their way."""

    batches: list[Letter]
    large: list[int]  # which of them are too large to share


def packed(subject: str, letters: Iterable[Letter], bytes_max: int) -> Packed:
    """Batches of these, in order, none larger than allowed."""
    most = min(BYTES_MAX, bytes_max - ENVELOPE)
    made = Packed([], [])
    items: list[bytes] = []
    size = 0
    for at, letter in enumerate(letters):
        about, body = dict(letter.headers), msgspec.Raw(letter.data)
        item = WRITE.encode(Enclosed(letter.subject, about, body))
        if len(item) > most:
            made.large.append(at)
            continue
        if len(items) == COUNT_MAX or size + len(item) > most:
            made.batches.append(batch_of(subject, items))
            items, size = [], 0
        items.append(item)
        size += len(item) + 1
    if items:
        made.batches.append(batch_of(subject, items))
    return made


def batch_of(subject: str, items: list[bytes]) -> Letter:
    """One message of these."""
    return Letter(subject, b"[" + b",".join(items) + b"]", {SIZE: str(len(items))})


def unpacked(data: bytes) -> list[Enclosed]:
    """What is in a batch. Raises ProtocolError if it is none."""
    try:
        return READ.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError("completion.malformed", f"it is no batch: {error}") from error
