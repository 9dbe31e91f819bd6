"""Beside: the bytes of payloads, where they lie next to the entry that mentions them."""

from collections.abc import Mapping
from typing import Final

from pawlflow.model.codec import head
from pawlflow.model.payload import ADDRESS_BYTES
from pawlflow.model.records import Record, array_head


class Beside(Record, frozen=True):
    """The bytes of a payload; left out where they lie beside an earlier entry or were erased."""

    addr: bytes
    data: bytes


class Besides(Record, frozen=True):
    """The payloads that lie beside one entry of a store."""

    items: tuple[Beside, ...]


def besides_bytes(payloads: Mapping[bytes, bytes]) -> bytes:
    """The bytes of `Besides` over addresses and data, without making its records."""
    parts = [_ONE, array_head(len(payloads))]
    for addr, data in payloads.items():
        parts += (_BESIDE, addr, head(2, len(data)), data)
    return b"".join(parts)


_ONE: Final = array_head(1)
_BESIDE: Final = array_head(2) + head(2, ADDRESS_BYTES)
