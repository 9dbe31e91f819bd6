"""What every command says of itself, over HTTP and over NATS alike."""

import re
from functools import lru_cache
from typing import Final
from uuid import UUID

from pawlflow.model.codec import hash_of

INSTANCE_ID: Final = "X-Workflow-Instance-Id"
INSTANCE_NAME: Final = "X-Workflow-Instance-Name"
STEP_ID: Final = "X-Workflow-Step-Id"
ATTEMPT: Final = "X-Workflow-Attempt"
TENANT: Final = "X-Tenant-Id"
INSTANCES_MAX: Final = 16_384  # at work at one time: each has several commands
WRITTEN: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


def uuid_text(raw: bytes) -> str:
    """Sixteen bytes as a UUID is written; several times as fast as the class for it."""
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def uuid_bytes(text: str) -> bytes:
    """The bytes of a UUID in any of the ways to write one. Raises ValueError."""
    if WRITTEN.match(text):
        return bytes.fromhex(text.replace("-", ""))
    return UUID(text).bytes


@lru_cache(INSTANCES_MAX)
def instance_uuid(tenant: str, instance: str) -> str:
    """The id of an instance where a UUID must stand; made of it, if it is none."""
    try:
        return uuid_text(uuid_bytes(instance))
    except ValueError:
        raw = bytearray(hash_of("pawl.instance-uuid.1", tenant, instance)[:16])
        raw[6], raw[8] = raw[6] & 0x0F | 0x80, raw[8] & 0x3F | 0x80
        return uuid_text(bytes(raw))
