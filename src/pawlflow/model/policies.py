"""Policies of a tenant: what may enter the cell that knows them, and what happens in it.

A published version never changes. The records keep the rules of inputs.py and events.py: tags never
change, fields are only appended.
"""

from typing import Final

from pawlflow.model.ids import CellId, InstanceId, Tenant, WorkflowName
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record

POLICIES: Final = WorkflowName("$policies")


def policies_cell(tenant: Tenant) -> CellId:
    """The cell that knows a tenant's policies."""
    return CellId(tenant, POLICIES, InstanceId(POLICIES))


# Inputs


class PublishPolicy(Record, frozen=True, tag="policy.publish", gc=False):
    """Put a version of a policy in force; `text` is Cedar, checked by whoever publishes."""

    name: str
    version: int
    text: Payload
    by: str


class RetirePolicy(Record, frozen=True, tag="policy.retire", gc=False):
    """Let a policy no longer be in force, in any version."""

    name: str
    by: str
    comment: Payload | None = None


# Events


class PolicyPublished(Record, frozen=True, tag="policy.published", gc=False):
    """From now on this version is in force."""

    name: str
    version: int
    text: Payload
    by: str


class PolicyRetired(Record, frozen=True, tag="policy.retired", gc=False):
    """It is in force no longer, until a higher version is published."""

    name: str
    by: str
    comment: Payload | None


PolicyInput = PublishPolicy | RetirePolicy
PolicySetEvent = PolicyPublished | PolicyRetired
