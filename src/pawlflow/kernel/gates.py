"""Gates: a human's decision, asked for, given once, by the right person, in time."""

from pawlflow.definition.shape import Gate
from pawlflow.kernel import guards, ladder, mend, revise, undo
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import ESCALATED, WAITING, Unit
from pawlflow.kernel.values import evaluate_payload
from pawlflow.model import events as ev
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM, RoleName, TimeMs
from pawlflow.model.inputs import Approve, ClaimReview, Reject
from pawlflow.model.payload import Payload
from pawlflow.model.reviews import GateVoided, OfReview, PolicyGate

AnyGate = Gate | PolicyGate


def open_gate(draft: Draft, unit: Unit, until: TimeMs | None) -> None:
    """Ask, showing what the definition says is to be shown, and what has changed since."""
    plan = draft.state.plan.steps[unit.step]
    shown = None if plan.shown is None else evaluate_payload(draft, plan.shown, default=None)
    asked = guards.asked_about(draft, unit) if plan.guards else None
    if not isinstance(asked, Failure) and (changed := guards.changes(unit.guarded, asked)):
        said = shown.value if isinstance(shown, Payload) else {}
        said = said if isinstance(said, dict) else {"show": said}
        shown = evaluate_payload(draft, None, default={**said, "changed": changed})
    if isinstance(shown, Failure):
        mend.give_up(draft, unit, 0, shown)
    elif isinstance(asked, Failure):
        mend.give_up(draft, unit, 0, asked)
    else:
        draft.emit(ev.StepWaiting(unit.step, unit.item, "approval", until, shown, asked))


def approve(draft: Draft, incoming: Approve) -> Rejected | None:
    """Count an approval; the last one needed opens the gate."""
    found = open_gate_of(draft, incoming)
    if isinstance(found, Rejected):
        return found
    unit, gate = found
    if incoming.limits is not None:
        return Rejected("budget.limits", f"{incoming.step} is a gate, and has no limits")
    if has_voted(unit, incoming.by):
        return Rejected("approval.duplicate", incoming.by)
    who = (incoming.by, incoming.role, incoming.comment)
    stale = unit.guarded is not None and guards.asked_about(draft, unit) != unit.guarded
    if stale or len(unit.votes) + 1 < gate.quorum:
        draft.emit(ev.GateVoted(unit.step, *who, unit.item))
        if stale:  # they agreed to what they saw, and that is not what would happen
            draft.emit(GateVoided(unit.step, -1, NO_ITEM))
        return None
    comment = None if incoming.comment is None else incoming.comment.value
    result = draft.payload({"by": incoming.by, "comment": comment})
    asked = unit.asking.decided if unit.asking is not None else None
    bound = asked and guards.digest_of(draft.state, unit, unit.params, asked.policies)
    draft.emit(ev.GateGranted(unit.step, *who, result, unit.item, bound or b""))
    if unit.guarded is not None:
        guards.bind(draft, unit)
    return None


def reject(draft: Draft, incoming: Reject) -> Rejected | None:
    """Refuse: by `onReject` the instance is cancelled, the step fails, or work is sent back."""
    found = open_gate_of(draft, incoming)
    if isinstance(found, Rejected):
        return found
    unit, gate = found
    changes = gate.on_reject == "changes"
    busy = revise.is_under_way(draft.state, unit) if changes else None
    if busy is not None:
        return Rejected("approval.revising", f"{busy} is being done again already")
    message = f"{incoming.by} rejected {draft.state.name_of(unit)}"
    failure = draft.failure("governance", "approval.rejected", message)
    settles = gate.on_reject == "cancel"
    who = (incoming.by, incoming.role, incoming.comment)
    draft.emit(ev.GateRejected(unit.step, *who, failure, settles, unit.item))
    if settles:
        compensate = draft.state.plan.compensates
        said = (unit.step, failure, incoming.by, compensate)
        if unit.item != NO_ITEM:  # and with an item its step
            draft.emit(ev.StepFailed(unit.step, NO_ITEM, 0, failure))
        undo.stop(draft, ev.InstanceStopping("cancelled", *said, item=unit.item))
    elif changes:
        revise.send_back(draft, unit, incoming)
    else:
        mend.give_up(draft, unit, unit.attempt, failure)
    return None


def open_gate_of(draft: Draft, incoming: OfReview) -> tuple[Unit, AnyGate] | Rejected:
    """The open gate this person may decide about, or why not."""
    state = draft.state
    unit = state.named(incoming.step)
    if unit is None:
        return Rejected("step.unknown", incoming.step)
    gate = gate_of(state, unit)
    if gate is None or unit.status != WAITING:
        return Rejected("approval.not_open", incoming.step)
    return barred(state, unit, gate, incoming) or (unit, gate)


def gate_of(state: Instance, unit: Unit) -> AnyGate | None:
    """The gate that a unit is, or that a policy has put before it."""
    asked = unit.asking if unit.wait == "approval" else None
    return asked.decided.gate if asked and asked.decided else state.plan.steps[unit.step].gate


def role_of(unit: Unit, gate: AnyGate) -> RoleName | None:
    """Who may decide: as it was reassigned, but for a policy, whose role nobody changes."""
    return gate.role if unit.asking is not None else unit.role or gate.role


def barred(state: Instance, unit: Unit, gate: AnyGate, incoming: OfReview) -> Rejected | None:
    """Why this person may not decide about a gate, if they may not."""
    role = role_of(unit, gate)
    if role is not None and incoming.role != role:
        return Rejected("approval.wrong_role", f"{incoming.step} asks for {role}")
    if gate.not_by_requester and incoming.by == state.by:
        return Rejected("approval.by_requester", incoming.by)
    return None


def has_voted(unit: Unit, by: str) -> bool:
    """Has this person approved already?"""
    return any(vote.by == by for vote in unit.votes)


def claim(draft: Draft, incoming: ClaimReview) -> Rejected | None:
    """Look after an open review. Advice, not a lock: whoever may decide without it still may.

    So a review never waits for somebody who claimed it and went away.
    """
    state = draft.state
    unit = state.named(incoming.step)
    if unit is None:
        return Rejected("step.unknown", incoming.step)
    gate = gate_of(state, unit)
    if unit.status == WAITING and gate is not None:
        refused = barred(state, unit, gate, incoming)
        if refused is None and has_voted(unit, incoming.by):
            refused = Rejected("approval.duplicate", incoming.by)
    elif unit.status == ESCALATED or unit.held:  # which ask for a role only by a ladder
        refused = ladder.bars(state, unit, incoming.role)
    else:
        refused = Rejected("review.unknown", incoming.step)
    if refused is not None:
        return refused
    if unit.claimed_by is not None:
        code = "review.yours" if unit.claimed_by == incoming.by else "review.held"
        return Rejected(code, f"{incoming.step} is claimed by {unit.claimed_by}")
    draft.emit(ev.ReviewClaimed(unit.step, unit.item, incoming.by, incoming.role, incoming.comment))
    return None


def expire(draft: Draft, unit: Unit) -> None:
    """Nobody decided in time. Never granted by itself: a human is asked, or the step fails."""
    gate = gate_of(draft.state, unit)
    message = f"nobody decided about {draft.state.name_of(unit)} in time"
    failure = draft.failure("timeout", "approval.expired", message)
    if gate is not None and gate.on_expire == "fail":
        mend.give_up(draft, unit, unit.attempt, failure)
    else:
        draft.emit(ev.StepEscalated(unit.step, unit.item, unit.attempt, failure))
