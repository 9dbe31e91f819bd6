"""Requests: what people and programs ask for, as inputs for cells. The one way they are made."""

from typing import Any, Literal

from pawlflow.definition.canonical import definition_bytes, hash_of_bytes
from pawlflow.definition.shape import Workflow
from pawlflow.model.ids import (
    INSTANCE_ID,
    CellId,
    InstanceId,
    RoleName,
    StepName,
    Tenant,
    WorkflowName,
)
from pawlflow.model.inputs import (
    Approve,
    CancelInstance,
    Input,
    PauseInstance,
    Reject,
    ResumeStep,
    Signal,
    UnpauseInstance,
)
from pawlflow.model.payload import Payload
from pawlflow.model.system import EmitEvent, PublishDefinition
from pawlflow.model.trouble import PawlError

Verb = Literal[
    "approve", "reject", "cancel", "pause", "unpause", "resume", "reassign", "retry", "signal"
]
NOT_GIVEN: Any = object()


class BadRequestError(PawlError):
    """A request that cannot be made; the message names the way out."""


def instance_cell(tenant: str, key: str) -> CellId:
    """The cell of an instance, by its id alone. Raises BadRequestError."""
    if not INSTANCE_ID.match(key):
        raise BadRequestError(
            "instance.id", f"{key!r} is no instance id: 1 to 128 letters, digits, . _ : or -"
        )
    return CellId(Tenant(tenant), WorkflowName(""), InstanceId(key))


def topic_cell(tenant: str, event: str) -> CellId:
    """The system cell that relays an event."""
    return CellId(Tenant(tenant), WorkflowName("$topic"), InstanceId(f"$topic/{event}"))


def registry_cell(tenant: str) -> CellId:
    """The system cell that knows definitions by name."""
    return CellId(Tenant(tenant), WorkflowName("$registry"), InstanceId("$registry"))


def publish(workflow: Workflow, tenant: str, by: str) -> PublishDefinition:
    """Make a definition known under its name."""
    data = definition_bytes(workflow)
    trigger = workflow.trigger
    return PublishDefinition(
        workflow.name,
        workflow.version,
        hash_of_bytes(data),
        Payload.of(data, Tenant(tenant)),
        trigger.event if trigger else None,
        trigger.condition if trigger else None,
        by,
    )


def emit(event: str, data: Any, tenant: str, by: str) -> EmitEvent:
    """Tell everybody who waits for, or is started by, an event."""
    return EmitEvent(Payload.of(data, Tenant(tenant)), by, "")


def signal(event: str, data: Any, tenant: str, by: str) -> Signal:
    """Tell one instance."""
    return Signal(event, Payload.of(data, Tenant(tenant)), by)


def decide(  # what a human decision consists of
    verb: Literal["approve", "reject"],
    step: str,
    tenant: str,
    *,
    by: str,
    role: str | None,
    comment: str | None = None,
) -> Input:
    """Approve or reject a gate."""
    made = Approve if verb == "approve" else Reject
    said = None if role is None else RoleName(role)
    return made(StepName(step), by, said, words(comment, tenant))


def steer(
    verb: Literal["cancel", "pause", "unpause"], tenant: str, *, by: str, comment: str | None
) -> Input:
    """Stop an instance, hold it back, or let it go on."""
    said = words(comment, tenant)
    match verb:
        case "cancel":
            return CancelInstance(by, said)
        case "pause":
            return PauseInstance(by, said)
        case "unpause":
            return UnpauseInstance(by, said)


def resume(  # noqa: PLR0913  # what a human decision consists of
    verb: Literal["resume", "reassign", "retry"],
    step: str,
    tenant: str,
    *,
    by: str,
    role: str | None = None,
    params: Any = NOT_GIVEN,
    comment: str | None = None,
) -> Input:
    """Let an escalated step go on, by another role or with another input."""
    edited = None if params is NOT_GIVEN else Payload.of(params, Tenant(tenant))
    to = None if role is None else RoleName(role)
    return ResumeStep(StepName(step), by, verb, to, edited, words(comment, tenant))


def words(comment: str | None, tenant: str) -> Payload | None:
    """A comment as a payload, so that it can be erased."""
    return None if comment is None else Payload.of(comment, Tenant(tenant))
