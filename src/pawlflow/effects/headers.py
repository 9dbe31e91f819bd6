"""What every command says of itself, over HTTP and over NATS alike."""

from typing import Final
from uuid import UUID

from pawlflow.model.codec import hash_of

INSTANCE_ID: Final = "X-Workflow-Instance-Id"
INSTANCE_NAME: Final = "X-Workflow-Instance-Name"
STEP_ID: Final = "X-Workflow-Step-Id"
ATTEMPT: Final = "X-Workflow-Attempt"
TENANT: Final = "X-Tenant-Id"


def instance_uuid(tenant: str, instance: str) -> str:
    """The id of an instance where a UUID must stand; made of it, if it is none."""
    try:
        return str(UUID(instance))
    except ValueError:
        raw = bytearray(hash_of("pawl.instance-uuid.1", tenant, instance)[:16])
        raw[6], raw[8] = raw[6] & 0x0F | 0x80, raw[8] & 0x3F | 0x80
        return str(UUID(bytes=bytes(raw)))
