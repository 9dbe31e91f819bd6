"""Policies: may a step do what it is about to do? Asked before every attempt, answered outside.

The answer comes back like any receipt. It lets the attempt begin, fails the step, or asks people to
agree; what they agree to is a digest, so that another call, or other policies, ask them again.
Whatever cannot be answered is denied.
"""

from typing import Any, Final

import msgspec

from pawlflow.definition.plan import PolicyPlan, StepPlan
from pawlflow.kernel import guards, mend
from pawlflow.kernel.draft import Draft, is_asking
from pawlflow.kernel.units import Asking, Unit
from pawlflow.kernel.values import evaluate, evaluate_payload, extra_of
from pawlflow.model.events import StepWaiting
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM, DurationMs, RoleName, TimeMs
from pawlflow.model.inputs import Receipt
from pawlflow.model.payload import Payload
from pawlflow.model.reviews import NO_POLICY, PolicyAsked, PolicyDecided, PolicyGate, Ruling

SINCE_RULES: Final = 3
# How old an answer may be when its attempt begins: it may wait for a place, a budget, the end of a
# pause, and meanwhile the policies may change. Part of the rules.
CLEARED_MS_MAX: Final = 60_000


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What an executor says that the policies say."""

    decision: Ruling
    code: str  # of the failure, if it is denied
    reason: str
    hash: bytes  # of the policies in force
    role: RoleName | None = None
    quorum: int = 1
    expires_ms: DurationMs | None = None
    not_by_requester: bool = False


def hold_back(draft: Draft, unit: Unit, policy: PolicyPlan) -> bool:
    """Does a step have to wait for an answer? Then it is asked for."""
    request = request_of(draft, unit, policy)
    if isinstance(request, Failure):
        mend.give_up(draft, unit, unit.attempt, request)
        return True
    asked = unit.asking
    if asked is not None and is_cleared(draft, asked, request):
        return False
    number = 1 if asked is None else asked.number + 1
    draft.emit(PolicyAsked(unit.step, unit.item, number, request))
    draft.call(unit, "ask")
    return True


def is_cleared(draft: Draft, asked: Asking, request: Payload) -> bool:
    """Was exactly this allowed, not long ago?"""
    since = asked.cleared if asked.request.addr == request.addr else None
    return since is not None and draft.now - since <= CLEARED_MS_MAX


def request_of(draft: Draft, unit: Unit, policy: PolicyPlan) -> Payload | Failure:
    """What the policies are asked: who would do what to what, and all that is known about it."""
    state, plan = draft.state, draft.state.plan.steps[unit.step]
    extra = extra_of(draft, plan, unit.item)
    resource = {} if policy.resource is None else evaluate(draft, policy.resource, extra)
    if isinstance(resource, Failure):
        return resource
    context = {
        "tenant": state.cell.tenant,
        "workflow": state.plan.workflow,
        "version": state.plan.version,
        "instance": state.cell.key,
        "requester": state.by,
        "step": plan.name,
        "kind": plan.kind,
        "effect": plan.target,
        "attempt": unit.attempt + 1,
        "round": unit.round,
        "priority": plan.priority,
        "cost": plan.cost,
        "params": None if unit.params is None else unit.params.value,
    }
    if unit.item != NO_ITEM:
        context["item"] = unit.item
    asked = {
        "action": policy.action,
        "principal": principal_of(draft, unit, plan),
        "resource": resource,
        "context": context,
    }
    return evaluate_payload(draft, None, default=asked)


def principal_of(draft: Draft, unit: Unit, plan: StepPlan) -> dict[str, str]:
    """Who acts: an agent in its role, or else who started the instance."""
    if plan.by_agent:
        return {"type": "Agent", "id": unit.role or plan.target}
    return {"type": "User", "id": draft.state.by}


def receive_answer(draft: Draft, unit: Unit, incoming: Receipt) -> bool:
    """The policies have decided: let the attempt begin, fail the step, or ask people."""
    asked = unit.asking
    if not is_asking(unit) or asked is None or incoming.attempt != asked.number:
        return False
    answer, said = answer_in(draft, incoming)
    digest = guards.digest_of(draft.state, unit, unit.params, answer.hash)
    allowed = answer.decision == "allow"
    clears = allowed or (answer.decision == "approval" and digest == asked.granted)
    gate = None
    if answer.decision == "approval":
        span = answer.expires_ms
        gate = PolicyGate(answer.role, answer.quorum, span, answer.not_by_requester)
    told = (asked.number, answer.decision, answer.hash, said, clears, gate)
    draft.emit(PolicyDecided(unit.step, unit.item, *told))
    if answer.decision == "deny":
        mend.give_up(
            draft, unit, unit.attempt, draft.failure("governance", answer.code, answer.reason)
        )
    elif not clears:
        open_gate(draft, unit, answer, asked.request.value)
    return True


def answer_in(draft: Draft, incoming: Receipt) -> tuple[Answer, Payload]:
    """What a receipt says; one that says nothing that can be read is a denial."""
    said = incoming.result
    try:
        if incoming.outcome == "ok" and said is not None:
            return msgspec.convert(said.value, Answer), said
        failed = incoming.failure
        why = "nobody could ask the policies" if failed is None else failed.message
    except msgspec.ValidationError as error:
        why = f"the answer cannot be read: {error}"
    answer = Answer("deny", "policy.unavailable", why, NO_POLICY)
    return answer, draft.payload(msgspec.to_builtins(answer, builtin_types=(bytes,)))


def open_gate(draft: Draft, unit: Unit, answer: Answer, request: dict[str, Any]) -> None:
    """Ask people to agree, showing what would be done, and why they are asked."""
    until = None if answer.expires_ms is None else TimeMs(draft.now + answer.expires_ms)
    about = {name: request[name] for name in ("action", "principal", "resource")}
    about |= {"params": request["context"]["params"], "reason": answer.reason}
    shown = evaluate_payload(draft, None, default=about)
    if isinstance(shown, Failure):
        mend.give_up(draft, unit, unit.attempt, shown)
    else:
        draft.emit(StepWaiting(unit.step, unit.item, "approval", until, shown))
