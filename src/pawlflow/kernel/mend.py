"""Mend: what follows a failure. Retry, correction, timeout, onFailure, escalation and its end."""

from pawlflow.kernel import undo
from pawlflow.kernel.backoff import delay_ms
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.plan import StepPlan
from pawlflow.kernel.state import ESCALATED, Unit
from pawlflow.kernel.values import evaluate_payload
from pawlflow.model.events import (
    StepBackedOff,
    StepCorrecting,
    StepEscalated,
    StepFailed,
    StepResumed,
    StepSkipped,
)
from pawlflow.model.failure import RETRIED, Failure
from pawlflow.model.ids import TimeMs
from pawlflow.model.inputs import ResumeStep
from pawlflow.model.payload import Payload


def fail_attempt(draft: Draft, unit: Unit, failure: Failure) -> None:
    """An attempt (or a wait) failed: correct it, try again, or give it up."""
    plan = draft.state.plan.steps[unit.step]
    if failure.kind == "validation" and unit.corrections < plan.max_corrections:
        draft.emit(StepCorrecting(unit.step, unit.item, unit.attempt, failure))
    elif is_retried(plan, failure) and unit.retries < plan.retry.max_retries:
        retry_at = TimeMs(draft.now + delay_ms(plan.retry, unit.retries + 1))
        draft.emit(StepBackedOff(unit.step, unit.item, unit.attempt, failure, retry_at))
    elif failure.kind == "timeout" and plan.on_timeout == "escalate":
        draft.emit(StepEscalated(unit.step, unit.item, unit.attempt, failure))
    else:
        give_up(draft, unit, unit.attempt, failure)


def is_retried(plan: StepPlan, failure: Failure) -> bool:
    """May this class of failure be tried again at all?"""
    if failure.kind == "timeout":
        return plan.on_timeout == "retry"
    return failure.kind in RETRIED


def fail_before_start(draft: Draft, unit: Unit, failure: Failure) -> None:
    """The step cannot even be attempted: its expressions have no value."""
    give_up(draft, unit, 0, failure)


def give_up(draft: Draft, unit: Unit, attempt: int, failure: Failure) -> None:
    """After the last attempt, onFailure decides."""
    plan = draft.state.plan.steps[unit.step]
    match plan.on_failure:
        case "skip":
            draft.emit(StepSkipped(unit.step, unit.item, "on_failure", attempt, failure))
        case "escalate":
            draft.emit(StepEscalated(unit.step, unit.item, attempt, failure))
        case _:
            draft.emit(StepFailed(unit.step, unit.item, attempt, failure))
            compensate = plan.on_failure == "compensate"
            undo.stop(draft, "failed", unit.step, failure, compensate=compensate)


def fail_instance(draft: Draft, failure: Failure) -> None:
    """The instance itself failed (its timeout, its output): failurePolicy decides."""
    compensate = draft.state.plan.compensates
    undo.stop(draft, "failed", -1, failure, compensate=compensate)


def resume(draft: Draft, incoming: ResumeStep) -> Rejected | None:
    """A human lets an escalated step go on."""
    state = draft.state
    step = state.plan.index.get(incoming.step)
    if step is None:
        return Rejected("step.unknown", incoming.step)
    unit = state.unit(step)
    if unit.status != ESCALATED:
        return Rejected("step.not_escalated", incoming.step)
    if incoming.how == "reassign" and incoming.role is None:
        return Rejected("role.missing", incoming.step)
    params = resumed_params(draft, unit, incoming)
    if isinstance(params, Rejected):
        return params
    draft.emit(
        StepResumed(
            step,
            unit.item,
            incoming.by,
            incoming.how,
            incoming.role,
            params,
            incoming.comment,
        )
    )
    return None


def resumed_params(draft: Draft, unit: Unit, incoming: ResumeStep) -> Payload | Rejected | None:
    """The input of the next attempt: the same (None), edited, or one that could not be made yet."""
    plan = draft.state.plan.steps[unit.step]
    if not plan.takes_input:
        return Rejected("step.takes_no_input", plan.name) if incoming.params else None
    if incoming.params is not None or unit.params is not None:
        return incoming.params
    made = evaluate_payload(draft, plan.params, default={})
    return Rejected("step.no_input", made.message) if isinstance(made, Failure) else made
