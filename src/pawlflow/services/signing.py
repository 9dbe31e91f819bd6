"""Signed completions: Ed25519 over what was said, by a key that was registered for it."""

import base64
import binascii
from hashlib import sha256
from typing import Any, NamedTuple

from pawlflow.model.codec import encode
from pawlflow.model.trouble import PawlError


class Said(NamedTuple):
    """What a signature is about."""

    tenant: str
    instance: str
    step_id: str
    attempt: int
    outcome: str
    result_json: str


class ExecutorKey(NamedTuple):
    """A key as an executor holds it."""

    id: str
    private: str

    @classmethod
    def read(cls, text: str) -> "ExecutorKey":
        """`ID:PRIVATE`, as `pawl keys create --executor` prints it. Raises PawlError."""
        id_, mark, private = text.strip().partition(":")
        if not mark or len(unpacked(private)) != KEY_BYTES:
            message = "an executor's key is ID:KEY, as `pawl keys create --executor` prints it"
            raise PawlError("keys.form", message)
        return cls(id_, private)


KEY_BYTES = 32


def ed25519() -> Any:
    """The library, loaded when a signature is made or checked. Raises PawlError without it."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519 as found
    except ImportError as missing:
        message = "signatures need cryptography: pip install 'pawlflow[nats]'"
        raise PawlError("nats.driver", message) from missing
    return found


def message_of(said: Said) -> bytes:
    """The canonical bytes that are signed."""
    digest = sha256(said.result_json.encode()).digest()
    return encode(("pawl.completion.1", *said[:5], digest))


def sign(said: Said, private: str) -> str:
    """The signature, base64url without padding."""
    key = ed25519().Ed25519PrivateKey.from_private_bytes(unpacked(private))
    return packed(key.sign(message_of(said)))


def verifies(said: Said, signature: str, public: str) -> bool:
    """Was this said by who holds the private half?"""
    found, raw = ed25519(), unpacked(public)
    if len(raw) != KEY_BYTES:
        return False
    from cryptography.exceptions import InvalidSignature

    try:
        found.Ed25519PublicKey.from_public_bytes(raw).verify(unpacked(signature), message_of(said))
    except InvalidSignature:
        return False
    return True


def new_pair(entropy: bytes) -> tuple[str, str]:
    """The two halves of a new key, private and public, of 32 random bytes."""
    key = ed25519().Ed25519PrivateKey.from_private_bytes(entropy)
    return packed(entropy), packed(key.public_key().public_bytes_raw())


def packed(raw: bytes) -> str:
    """Bytes as text."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def unpacked(text: str) -> bytes:
    """Text as bytes, padded or not; none, if it is no base64url."""
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""
