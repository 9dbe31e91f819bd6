"""Turns and frames: the bytes of the journal, and the hashes that hold them together.

docs/journal.md specifies every form in this file; tests/golden holds examples of each.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final, Literal

import msgspec
from msgspec import inspect
from msgspec.structs import fields

from pawlflow.model.codec import encode, hash_of, head
from pawlflow.model.events import Event
from pawlflow.model.ids import CellId, Digest, TimeMs
from pawlflow.model.inputs import Input
from pawlflow.model.intents import IntentRecord
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record, array_head, types_inside, writer_for

TURN_FORMAT: Final = 1
LEAF: Final = b"\x00"  # RFC 6962: a leaf can never be taken for a node
NODE: Final = b"\x01"
DIGEST_BYTES: Final = 32


class Stamps(Record, frozen=True, gc=False):
    """What admission sampled once for a turn; replay uses it again."""

    now: TimeMs
    height: int
    entropy: bytes = b""


class Send(Record, frozen=True, tag="send", gc=False):
    """An input for another cell of the same tenant."""

    workflow: str
    key: str
    input: Input


class Turn(Record, frozen=True, gc=False):
    """One input applied to one cell: the unit of the journal and of replay."""

    format: int
    number: int
    rules: int
    stamps: Stamps
    input: Input
    events: tuple[Event, ...]
    intents: tuple[IntentRecord, ...] = ()
    sends: tuple[Send, ...] = ()


class Disposition(Record, frozen=True, tag="disposition"):
    """An input that became no turn: refused, put aside, or that removed its cell."""

    cell: CellId
    kind: Literal["rejected", "dead", "redriven", "discarded", "settled", "removed"]
    code: str
    detail: Payload
    input: Input
    at: TimeMs


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """Many turns of one shard, committed together."""

    shard: int
    first: int
    last: int
    prev: Digest
    root: Digest
    hash: Digest


class ChainedFrame(Record, frozen=True, tag="pawl.frame.1", gc=False):
    """What a frame's hash is the hash of."""

    prev: Digest
    first: int
    last: int
    root: Digest


def turn_bytes(turn: Turn) -> bytes:
    """The canonical bytes of a turn; values appear as addresses."""
    return _WRITE_TURN(turn)


def instance_genesis(cell: CellId) -> Digest:
    """What the first turn of an instance is chained to."""
    return Digest(hash_of("pawl.instance.1", cell.tenant, cell.workflow, cell.key))


def turn_hash(prev: Digest, data: bytes) -> Digest:
    """The hash of a turn, chained to the one before it: of `["pawl.turn.1", prev, turn]`."""
    return Digest(sha256(_CHAINED + prev + head(2, len(data)) + data).digest())


def disposition_hash(data: bytes) -> Digest:
    """The hash under which a disposition enters its frame."""
    return Digest(hash_of("pawl.disposition.1", data))


def shard_genesis(shard: int) -> Digest:
    """What the first frame of a shard is chained to."""
    return Digest(hash_of("pawl.shard.1", shard))


def frame_of(shard: int, prev: Digest, first: int, leaves: Sequence[Digest]) -> Frame:
    """Chain a frame over the hashes of its turns and dispositions, in sequence order."""
    last = first + len(leaves) - 1
    root = merkle_root(leaves)
    sealed = Digest(sha256(_WRITE_FRAME(ChainedFrame(prev, first, last, root))).digest())
    return Frame(shard=shard, first=first, last=last, prev=prev, root=root, hash=sealed)


def merkle_root(leaves: Sequence[Digest]) -> Digest:
    """The RFC 6962 tree hash, so that one turn can be proven without showing the others."""
    if not leaves:
        return Digest(sha256(b"").digest())
    level = [sha256(LEAF + leaf).digest() for leaf in leaves]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        odd = level[-1:] if len(level) % 2 else []
        level = [sha256(NODE + left + right).digest() for left, right in pairs] + odd
    return Digest(level[0])


def payloads_of(record: msgspec.Struct) -> list[Payload]:
    """Every payload a record mentions, in order: what must lie beside it to read it again."""
    found: list[Payload] = []
    gather = _GATHER[type(record)]
    if gather is not None:
        gather(record, found.append)
    return found


Gather = Callable[[Any, Callable[[Payload], None]], None]


class _Gather(dict[type, Gather | None]):
    """By the type of a record: what adds its payloads, however deep; None if it can have none.

    Made when it is first needed, of the fields that may hold one. Every turn is asked.
    """

    def __missing__(self, kind: type) -> Gather | None:
        held = fields(kind) if issubclass(kind, msgspec.Struct) else ()
        infos = [(field.name, inspect.type_info(field.type)) for field in held]
        body = [_form_of(info).format(name) for name, info in infos if _holds(info)]
        scope: dict[str, Any] = {"gather": self}
        if body:
            exec("def made(record, add):\n" + "".join(body), scope)
        self[kind] = scope.get("made")
        return self[kind]


_ONE: Final = "    if (x := record.{}) is not None: add(x)\n"
_DEEP: Final = "    if (x := record.{}) is not None and (g := gather[type(x)]): g(x, add)\n"
_MANY: Final = "    for x in record.{}:\n        if g := gather[type(x)]: g(x, add)\n"


def _form_of(info: inspect.Type) -> str:
    """How a field that may hold payloads is looked through."""
    if isinstance(info, inspect.VarTupleType | inspect.TupleType):
        return _MANY
    kinds = info.types if isinstance(info, inspect.UnionType) else (info,)
    assert not any(isinstance(each, inspect.VarTupleType) for each in kinds), "no form for these"
    plain = (inspect.CustomType, inspect.NoneType)
    return _ONE if all(isinstance(each, plain) for each in kinds) else _DEEP


def _holds(info: inspect.Type) -> bool:
    return isinstance(info, inspect.CustomType) or any(map(_holds, types_inside(info)))


_GATHER: Final = _Gather({Payload: lambda payload, add: add(payload)})
_WRITE_TURN: Final = writer_for(Turn)
_CHAINED: Final = array_head(3) + encode("pawl.turn.1") + head(2, DIGEST_BYTES)
_WRITE_FRAME: Final = writer_for(ChainedFrame)
