"""Payloads: values by address, their bytes beside them.

No value enters a hash directly. What is hashed is an address, so the bytes can be erased later and
every hash still stands.
"""

from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, Literal, final

from pawlflow.model.codec import decode, decode_trusted, encode, head
from pawlflow.model.ids import Tenant

ADDRESS_BYTES: Final = 33  # one scheme byte, then a sha256
SCHEME_PLAIN: Final = 0  # sha256 over (domain, tenant, canonical bytes)
SCHEME_KEYED: Final = 1  # HMAC under the instance key, when the payload codec is on
PAYLOAD_BYTES_MAX: Final = 16 * 1024 * 1024  # one value; above it is refused at the door
PARTS_MAX: Final = 1_000_000  # of a value made by an expression: a second's work to write
TENANTS_MAX: Final = 4_096  # at work at one time
_UNREAD: Final = object()


class PayloadError(Exception):
    """A payload that cannot be used: too large, erased, or not what its address says."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


@final
class Payload:
    """A value known by its address. Equal addresses are equal values."""

    __slots__ = ("_value", "addr", "data")

    def __init__(self, addr: bytes, data: bytes | None) -> None:
        self.addr = addr
        self.data = data
        self._value: Any = _UNREAD

    @classmethod
    def of(cls, value: object, tenant: Tenant) -> "Payload":
        """Address a value. The tenant is part of the address: equal content never links two."""
        data = encode(value)
        if len(data) > PAYLOAD_BYTES_MAX:
            raise PayloadError(
                "payload.too_large",
                f"the value takes {len(data)} bytes, at most {PAYLOAD_BYTES_MAX} are accepted",
            )
        return cls(address_of(data, tenant), data)

    @property
    def value(self) -> Any:
        """The value itself, read from its bytes at most once. Never change it in place."""
        if self._value is _UNREAD:
            if self.data is None:
                raise PayloadError("payload.erased", f"the bytes of {self.addr.hex()} are gone")
            self._value = decode_trusted(self.data)
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Payload) and self.addr == other.addr

    def __hash__(self) -> int:
        return hash(self.addr)

    def __repr__(self) -> str:
        return f"Payload({self.addr[:5].hex()}…)"


def fits(value: object) -> bool:
    """Could this value be a payload? Asked before writing values that share their parts.

    An expression can repeat a large part a thousand times at no cost; written out it would be huge.
    """
    size, parts = 0, 0
    rest: list[Any] = [[value]]
    while rest and size <= PAYLOAD_BYTES_MAX and parts <= PARTS_MAX:
        whole = rest.pop()
        parts += len(whole)
        for part in whole.values() if type(whole) is dict else whole:
            kind = type(part)
            if kind is str or kind is bytes:
                size += len(part)
            elif kind is dict or kind is list:
                rest.append(part)
    return not rest and size <= PAYLOAD_BYTES_MAX and parts <= PARTS_MAX


def address_of(data: bytes, tenant: Tenant) -> bytes:
    """The plain address of canonical bytes: over `["pawl.payload.1", tenant, bytes]`."""
    return b"\x00" + sha256(_before(tenant) + head(2, len(data)) + data).digest()


@lru_cache(2 * TENANTS_MAX)
def nothing(kind: Literal["map"] | None, tenant: Tenant) -> Payload:
    """Null, or an empty map: the values that come most often."""
    return Payload.of({} if kind == "map" else None, tenant)


@lru_cache(TENANTS_MAX)
def _before(tenant: Tenant) -> bytes:
    """What comes before the bytes; it depends on the tenant alone."""
    return head(4, 3) + encode("pawl.payload.1") + encode(tenant)


def verified(addr: bytes, data: bytes, tenant: Tenant) -> Payload:
    """A payload read from outside: canonical, and truly what its address names."""
    if len(addr) != ADDRESS_BYTES or addr[0] != SCHEME_PLAIN:
        raise PayloadError("payload.scheme", f"unknown address form {addr[:1].hex()}")
    decode(data)
    if address_of(data, tenant) != addr:
        raise PayloadError("payload.corrupt", f"bytes do not match their address {addr.hex()}")
    return Payload(addr, data)
