"""Requests: what people and programs ask for, as inputs for cells. The one way they are made."""

from typing import Any, Final, Literal

import msgspec

from pawlflow.definition.canonical import definition_bytes, hash_of_bytes
from pawlflow.definition.shape import Policy, Schedule, Workflow
from pawlflow.kernel.system.registry import schedule_of
from pawlflow.model.ids import (
    EFFECT_NAME,
    INSTANCE_ID,
    WORKFLOW_NAME,
    CellId,
    InstanceId,
    RoleName,
    StepName,
    Tenant,
    TimeMs,
    WorkflowName,
)
from pawlflow.model.inputs import (
    Approve,
    CancelInstance,
    ClaimReview,
    Input,
    PauseInstance,
    Reject,
    ResumeStep,
    Signal,
    UnpauseInstance,
)
from pawlflow.model.payload import Payload
from pawlflow.model.policies import PublishPolicy, RetirePolicy
from pawlflow.model.policies import policies_cell as cell_of_policies
from pawlflow.model.reviews import SettleReview
from pawlflow.model.system import EmitEvent, PublishDefinition
from pawlflow.model.timed import (
    BackfillSchedule,
    Cron,
    PauseSchedule,
    PublishSchedule,
    UnpauseSchedule,
    WithdrawSchedule,
)
from pawlflow.model.timed import schedule_cell as cell_of_schedule
from pawlflow.model.trouble import PawlError

REVIEWED: Final[dict[str, type[Approve | Reject | ClaimReview]]] = {
    "approve": Approve,
    "reject": Reject,
    "claim": ClaimReview,
}
NOT_GIVEN: Any = object()
TENANT_MAX: Final = 128  # characters


class BadRequestError(PawlError):
    """A request that cannot be made; the message names the way out."""


def instance_cell(tenant: str, key: object) -> CellId:
    """The cell of an instance, by its id alone. Raises BadRequestError."""
    if not isinstance(key, str) or not INSTANCE_ID.match(key):
        form = "1 to 128 letters, digits, . _ : or -"
        wanted = form if isinstance(key, str) else f"a text of {form}"
        raise BadRequestError("instance.id", f"{key!r} is no instance id: {wanted}")
    return CellId(Tenant(tenant), WorkflowName(""), InstanceId(key))


def tenant_name(tenant: object) -> Tenant:
    """A tenant that was named from outside. Raises BadRequestError."""
    form = f"1 to {TENANT_MAX} printable characters, and no space at its ends"
    if not isinstance(tenant, str):
        raise BadRequestError("tenant.bad", f"{tenant!r} is no tenant: a text of {form}")
    # Commands say it in a header, and no header can carry a space at its ends.
    if not 0 < len(tenant) <= TENANT_MAX or not tenant.isprintable() or tenant != tenant.strip():
        raise BadRequestError("tenant.bad", f"{tenant[:TENANT_MAX]!r} is no tenant: {form}")
    return Tenant(tenant)


def whose(named: str | None, own: Tenant) -> Tenant:
    """The tenant that is meant; without a name, the engine's own. Raises BadRequestError."""
    return own if named is None or named == "" else tenant_name(named)


def event_name(event: object) -> str:
    """An event has a name like an effect has. Raises BadRequestError."""
    if not isinstance(event, str) or not EFFECT_NAME.match(event):
        form = "a small letter, then letters, digits, . _ / or -"
        wanted = form if isinstance(event, str) else f"a text: {form}"
        raise BadRequestError("event.name", f"{event!r} is no event: {wanted}")
    return event


def topic_cell(tenant: str, event: str) -> CellId:
    """The system cell that relays an event."""
    return CellId(Tenant(tenant), WorkflowName("$topic"), InstanceId(f"$topic/{event}"))


def registry_cell(tenant: str) -> CellId:
    """The system cell that knows definitions by name."""
    return CellId(Tenant(tenant), WorkflowName("$registry"), InstanceId("$registry"))


def schedule_cell(tenant: str, name: str) -> CellId:
    """The system cell that starts a workflow at its times. Raises BadRequestError."""
    if not WORKFLOW_NAME.match(name):
        raise BadRequestError(
            "schedule.name", f"{name!r} is no schedule: a letter, then a-z, digits, _ or -"
        )
    return cell_of_schedule(Tenant(tenant), name)


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
        schedule_of(workflow),
    )


def publish_schedule(schedule: Schedule, tenant: str, by: str) -> PublishSchedule:
    """Make a schedule that stands by itself known under its name; the registry takes it."""
    return PublishSchedule(
        schedule.name,
        schedule.workflow,
        Cron(schedule.schedule, schedule.timezone, schedule.catch_up),
        Payload.of({} if schedule.input is None else schedule.input, Tenant(tenant)),
        schedule.paused,
        by,
    )


def policies_cell(tenant: str) -> CellId:
    """The system cell that knows a tenant's policies."""
    return cell_of_policies(Tenant(tenant))


def publish_policy(policy: Policy, tenant: str, by: str) -> PublishPolicy:
    """Put a version of a policy in force; the cell of policies takes it."""
    return PublishPolicy(policy.name, policy.version, Payload.of(policy.cedar, Tenant(tenant)), by)


def retire_policy(name: str, tenant: str, by: str, comment: str | None = None) -> RetirePolicy:
    """Let a policy no longer be in force; the cell of policies takes it."""
    return RetirePolicy(name, by, words(comment, tenant))


def withdraw_schedule(name: str, by: str) -> WithdrawSchedule:
    """A schedule that stands by itself is to be no more; the registry takes it."""
    return WithdrawSchedule(name, by)


def hold_schedule(
    verb: Literal["pause", "unpause"], tenant: str, *, by: str, comment: str | None = None
) -> Input:
    """Let a schedule start nothing, or go on."""
    made = PauseSchedule if verb == "pause" else UnpauseSchedule
    return made(by, words(comment, tenant))


def backfill(first: TimeMs, last: TimeMs, by: str) -> BackfillSchedule:
    """Start what a schedule would have started between two times of the past."""
    return BackfillSchedule(first, last, by)


def emit(event: str, data: Any, tenant: str, by: str) -> EmitEvent:
    """Tell everybody who waits for, or is started by, an event. Raises BadRequestError."""
    event_name(event)
    return EmitEvent(Payload.of(data, Tenant(tenant)), by, "")


def signal(event: str, data: Any, tenant: str, by: str) -> Signal:
    """Tell one instance. Raises BadRequestError."""
    return Signal(event_name(event), Payload.of(data, Tenant(tenant)), by)


def decide(  # noqa: PLR0913  # what a human decision consists of
    verb: Literal["approve", "reject", "claim"],
    step: str,
    tenant: str,
    *,
    by: str,
    role: str | None,
    comment: str | None = None,
    limits: Any = NOT_GIVEN,
) -> Input:
    """Approve or reject a gate or a budget, or say who looks after a review."""
    said = None if role is None else RoleName(role)
    made = REVIEWED[verb](StepName(step), by, said, words(comment, tenant))
    if limits is NOT_GIVEN or not isinstance(made, Approve):
        return made
    return msgspec.structs.replace(made, limits=Payload.of(limits, Tenant(tenant)))


def steer(
    verb: Literal["cancel", "pause", "unpause"],
    tenant: str,
    *,
    by: str,
    comment: str | None,
    acting: str | None = None,
) -> Input:
    """Stop an instance, hold it back, or let it go on."""
    said = words(comment, tenant)
    match verb:
        case "cancel":
            return CancelInstance(by, said, acting=None if acting is None else RoleName(acting))
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
    acting: str | None = None,
) -> Input:
    """Let an escalated step go on, by another role or with another input."""
    edited = None if params is NOT_GIVEN else Payload.of(params, Tenant(tenant))
    to = None if role is None else RoleName(role)
    said = (to, edited, words(comment, tenant))
    as_role = None if acting is None else RoleName(acting)
    return ResumeStep(StepName(step), by, verb, *said, acting=as_role)


def settle(step: str, tenant: str, *, by: str, role: str | None, comment: str | None) -> Input:
    """Say what became of an effect that nobody waited for any more."""
    said = None if role is None else RoleName(role)
    return SettleReview(StepName(step), by, said, words(comment, tenant))


def words(comment: str | None, tenant: str) -> Payload | None:
    """A comment as a payload, so that it can be erased."""
    return None if comment is None else Payload.of(comment, Tenant(tenant))
