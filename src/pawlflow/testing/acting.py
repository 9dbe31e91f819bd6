"""Acting: what a scenario's script and stubs say, as the inputs that the engine takes."""

import msgspec

from pawlflow.model.failure import failure_of
from pawlflow.model.ids import StepName, Tenant
from pawlflow.model.inputs import (
    Approve,
    CancelInstance,
    ClaimReview,
    DeliverEvent,
    Input,
    PauseInstance,
    Receipt,
    Reject,
    ResumeStep,
    Signal,
    UnpauseInstance,
)
from pawlflow.model.intents import Call
from pawlflow.model.payload import Payload
from pawlflow.model.policies import PublishPolicy, RetirePolicy
from pawlflow.testing.scenario_fields import Action, Answer


def receipt_of(call: Call, stub: Answer) -> Receipt:
    """A stub's answer as the receipt an executor would send."""
    tenant = call.cell.tenant
    usage = None if stub.usage is None else Payload.of(stub.usage, tenant)
    if stub.fail is None:
        return Receipt(call.key, call.attempt, "ok", Payload.of(stub.ok, tenant), usage=usage)
    message = stub.message or f"stubbed {stub.fail} failure"
    failure = failure_of(
        stub.fail, "effect.failed", message, tenant=tenant, findings=list(stub.findings)
    )
    return Receipt(call.key, call.attempt, "failed", failure=failure, usage=usage)


def input_of(action: Action, tenant: Tenant) -> Input:  # noqa: C901  # one table
    """The input behind a line of the script."""
    by, step, event = action.by, StepName(action.step or ""), action.event or ""
    comment = None if action.comment is None else Payload.of(action.comment, tenant)
    match action.verb:
        case "approve":
            limits = None if action.limits is None else Payload.of(action.limits, tenant)
            return Approve(step, by, action.role, comment, limits)
        case "reject":
            return Reject(step, by, action.role, comment)
        case "claim":
            return ClaimReview(step, by, action.role, comment)
        case "signal":
            return Signal(event, Payload.of(action.data, tenant), by)
        case "emit":
            return DeliverEvent(event, Payload.of(action.data, tenant))
        case "cancel":
            return CancelInstance(by, comment, acting=action.role)
        case "pause":
            return PauseInstance(by, comment)
        case "unpause":
            return UnpauseInstance(by, comment)
        case "publish":  # the text is that of the scenario
            nothing = Payload.of(None, tenant)
            return PublishPolicy(action.policy or "", action.version, nothing, by)
        case "retire":
            return RetirePolicy(action.policy or "", by, comment)
        case "resume" | "reassign" | "retry":
            edited = None if action.with_ is msgspec.UNSET else Payload.of(action.with_, tenant)
            said = (action.to, edited, comment)
            return ResumeStep(step, by, action.verb, *said, acting=action.role)
