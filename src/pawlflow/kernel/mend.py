"""Mend: what follows a failure. Retry, correction, timeout, onFailure, escalation and its end."""

from pawlflow.definition.plan import StepPlan
from pawlflow.kernel import ladder, undo
from pawlflow.kernel.backoff import delay_ms
from pawlflow.kernel.draft import ENGINE, Draft, Rejected
from pawlflow.kernel.units import ESCALATED, Unit
from pawlflow.kernel.values import evaluate_items, params_of
from pawlflow.model import events as ev
from pawlflow.model.failure import RETRIED, Failure
from pawlflow.model.ids import NO_ITEM, TimeMs
from pawlflow.model.inputs import ResumeStep
from pawlflow.model.payload import Payload


def fail_attempt(draft: Draft, unit: Unit, failure: Failure) -> None:
    """An attempt (or a wait) failed: correct it, try again, or give it up."""
    plan = draft.state.plan.steps[unit.step]
    if failure.kind == "validation" and unit.corrections < plan.max_corrections:
        draft.emit(ev.StepCorrecting(unit.step, unit.item, unit.attempt, failure))
    elif is_retried(plan, failure) and unit.retries < plan.retry.max_retries:
        retry_at = TimeMs(draft.now + delay_ms(plan.retry, unit.retries + 1))
        draft.emit(ev.StepBackedOff(unit.step, unit.item, unit.attempt, failure, retry_at))
    elif failure.kind == "timeout" and plan.on_timeout == "escalate":
        draft.emit(ev.StepEscalated(unit.step, unit.item, unit.attempt, failure))
    else:
        give_up(draft, unit, unit.attempt, failure)


def is_retried(plan: StepPlan, failure: Failure) -> bool:
    """May this class of failure be tried again at all?"""
    if failure.kind == "timeout":
        return plan.on_timeout == "retry"
    return failure.kind in RETRIED


def give_up(draft: Draft, unit: Unit, attempt: int, failure: Failure) -> None:
    """After the last attempt, or before the first (0), onFailure decides."""
    plan = draft.state.plan.steps[unit.step]
    match plan.on_failure:
        case "skip":
            draft.emit(ev.StepSkipped(unit.step, unit.item, "on_failure", attempt, failure))
        case "escalate":
            draft.emit(ev.StepEscalated(unit.step, unit.item, attempt, failure))
        case _:
            draft.emit(ev.StepFailed(unit.step, unit.item, attempt, failure))
            if unit.item != NO_ITEM:  # and with an item its step
                draft.emit(ev.StepFailed(unit.step, NO_ITEM, 0, failure))
            compensate = plan.on_failure == "compensate"
            said = (unit.step, failure, ENGINE, compensate)
            undo.stop(draft, ev.InstanceStopping("failed", *said, item=unit.item))


def fail_instance(draft: Draft, failure: Failure) -> None:
    """The instance itself failed (its timeout, its output): failurePolicy decides."""
    compensate = draft.state.plan.compensates
    undo.stop(draft, ev.InstanceStopping("failed", -1, failure, ENGINE, compensate))


def resume(draft: Draft, incoming: ResumeStep) -> Rejected | None:
    """A human lets an escalated step go on, or all that are escalated."""
    state = draft.state
    named = [state.named(incoming.step)] if incoming.step else map(state.unit, sorted(state.open))
    known = [unit for unit in named if unit is not None]
    if incoming.step and not known:
        return Rejected("step.unknown", incoming.step)
    units = [unit for unit in known if unit.status == ESCALATED]
    if not units:
        return Rejected("step.not_escalated", incoming.step or state.cell.key)
    if incoming.how == "reassign" and incoming.role is None:
        return Rejected("role.missing", incoming.step)
    refused = [found for unit in units if (found := ladder.bars(state, unit, incoming.acting))]
    if refused:
        return refused[0]
    again: list[Payload | None] = []
    for unit in units:
        params = resumed_params(draft, unit, incoming)
        if isinstance(params, Rejected):
            return params
        again.append(params)
    said = (incoming.by, incoming.how, incoming.role)
    for unit, params in zip(units, again, strict=True):
        draft.emit(ev.StepResumed(unit.step, unit.item, *said, params, incoming.comment))
    return None


def resumed_params(draft: Draft, unit: Unit, incoming: ResumeStep) -> Payload | Rejected | None:
    """The input of the next attempt: the same (None), edited, or one that could not be made yet."""
    plan = draft.state.plan.steps[unit.step]
    fanned = plan.for_each is not None and unit.item == NO_ITEM
    if fanned or not plan.takes_input:
        items = evaluate_items(draft, plan) if fanned else None
        if isinstance(items, Failure):
            return Rejected("step.no_input", items.message)
        return Rejected("step.takes_no_input", plan.name) if incoming.params else None
    if incoming.params is not None or unit.params is not None:
        return incoming.params
    made = params_of(draft, plan, unit.item)
    return Rejected("step.no_input", made.message) if isinstance(made, Failure) else made
