"""Gates: a human's decision, asked for, given once, by the right person, in time."""

from pawlflow.definition.shape import Gate
from pawlflow.kernel import mend, undo
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.state import WAITING, Unit
from pawlflow.kernel.values import evaluate_payload
from pawlflow.model.events import (
    GateGranted,
    GateRejected,
    GateVoted,
    StepEscalated,
    StepWaiting,
)
from pawlflow.model.failure import Failure, failure_of
from pawlflow.model.ids import TimeMs
from pawlflow.model.inputs import Approve, Reject


def open_gate(draft: Draft, unit: Unit, until: TimeMs | None) -> None:
    """Ask, showing what the definition says is to be shown."""
    plan = draft.state.plan.steps[unit.step]
    shown = None if plan.shown is None else evaluate_payload(draft, plan.shown, default=None)
    if isinstance(shown, Failure):
        mend.give_up(draft, unit, 0, shown)
    else:
        draft.emit(StepWaiting(unit.step, unit.item, "approval", until, shown))


def approve(draft: Draft, incoming: Approve) -> Rejected | None:
    """Count an approval; the last one needed opens the gate."""
    found = open_gate_of(draft, incoming)
    if isinstance(found, Rejected):
        return found
    unit, gate = found
    if any(vote.by == incoming.by for vote in unit.votes):
        return Rejected("approval.duplicate", incoming.by)
    if len(unit.votes) + 1 < gate.quorum:
        draft.emit(GateVoted(unit.step, incoming.by, incoming.role, incoming.comment))
        return None
    comment = None if incoming.comment is None else incoming.comment.value
    result = draft.payload({"by": incoming.by, "comment": comment})
    draft.emit(GateGranted(unit.step, incoming.by, incoming.role, incoming.comment, result))
    return None


def reject(draft: Draft, incoming: Reject) -> Rejected | None:
    """Refuse: by `onReject` the instance is cancelled, or the step fails."""
    found = open_gate_of(draft, incoming)
    if isinstance(found, Rejected):
        return found
    unit, gate = found
    plan = draft.state.plan.steps[unit.step]
    message = f"{incoming.by} rejected {plan.name}"
    tenant = draft.state.cell.tenant
    failure = failure_of("governance", "approval.rejected", message, tenant=tenant)
    settles = gate.on_reject == "cancel"
    draft.emit(
        GateRejected(unit.step, incoming.by, incoming.role, incoming.comment, failure, settles)
    )
    if settles:
        compensate = draft.state.plan.compensates
        undo.stop(draft, "cancelled", unit.step, failure, compensate=compensate, by=incoming.by)
    else:
        mend.give_up(draft, unit, 0, failure)
    return None


def open_gate_of(draft: Draft, incoming: Approve | Reject) -> tuple[Unit, Gate] | Rejected:
    """The open gate this person may decide about, or why not."""
    state = draft.state
    step = state.plan.index.get(incoming.step)
    if step is None:
        return Rejected("step.unknown", incoming.step)
    unit, gate = state.unit(step), state.plan.steps[step].gate
    if gate is None or unit.status != WAITING:
        return Rejected("approval.not_open", incoming.step)
    role = unit.role or gate.role
    if role is not None and incoming.role != role:
        return Rejected("approval.wrong_role", f"{incoming.step} asks for {role}")
    if gate.not_by_requester and incoming.by == state.by:
        return Rejected("approval.by_requester", incoming.by)
    return unit, gate


def expire(draft: Draft, unit: Unit) -> None:
    """Nobody decided in time. Never granted by itself: a human is asked, or the step fails."""
    plan = draft.state.plan.steps[unit.step]
    message = f"nobody decided about {plan.name} in time"
    tenant = draft.state.cell.tenant
    failure = failure_of("timeout", "approval.expired", message, tenant=tenant)
    if plan.gate is not None and plan.gate.on_expire == "fail":
        mend.give_up(draft, unit, 0, failure)
    else:
        draft.emit(StepEscalated(unit.step, unit.item, 0, failure))
