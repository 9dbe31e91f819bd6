"""Names and identities. Each has a type of its own, so that one cannot be passed for another."""

import re
from typing import NewType

import msgspec

Tenant = NewType("Tenant", str)
WorkflowName = NewType("WorkflowName", str)
InstanceId = NewType("InstanceId", str)
StepName = NewType("StepName", str)
RoleName = NewType("RoleName", str)
EffectName = NewType("EffectName", str)
TimeMs = NewType("TimeMs", int)
DurationMs = NewType("DurationMs", int)
Digest = NewType("Digest", bytes)  # sha256, 32 bytes
StepKey = NewType("StepKey", bytes)  # UUID version 8, 16 bytes

STEP_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}\Z")
WORKFLOW_NAME = STEP_NAME
INSTANCE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")
ROLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,62}\Z")
EFFECT_NAME = re.compile(r"[a-z][A-Za-z0-9._/-]{0,126}(@[0-9]+)?\Z")

NO_ITEM = -1  # the item of a step without forEach


class CellId(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The unit of state: one workflow's instance (or a system cell) of one tenant."""

    tenant: Tenant
    workflow: WorkflowName
    key: InstanceId
