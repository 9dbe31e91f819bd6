"""Policies: may a step do what it is about to do? Asked before every attempt, answered outside.

The answer comes back like any receipt. It lets the attempt begin, fails the step, or asks people to
agree; what they agree to is a digest, so that another call, or other policies, ask them again.
Whatever cannot be answered is denied.
"""

from typing import Any, Final

import msgspec

from pawlflow.definition.plan import PolicyPlan
from pawlflow.kernel import guards, mend
from pawlflow.kernel.draft import Draft, is_asking
from pawlflow.kernel.units import Asking, Unit
from pawlflow.kernel.values import evaluate, evaluate_payload, extra_of
from pawlflow.model.events import StepWaiting
from pawlflow.model.failure import Failure
from pawlflow.model.ids import TimeMs
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
    gate: PolicyGate | None = None  # whom they ask, if they do
    show: Any = None  # to those


def hold_back(draft: Draft, unit: Unit, policy: PolicyPlan) -> bool:
    """Does a step have to wait for an answer? Then it is asked for."""
    if draft.state.rules < SINCE_RULES:
        return False
    request, asked = request_of(draft, unit, policy), unit.asking
    if isinstance(request, Failure):
        mend.give_up(draft, unit, unit.attempt, request)
        return True
    if asked is not None and is_cleared(draft, asked, request):
        return False
    number = 1 if asked is None else asked.number + 1
    draft.emit(PolicyAsked(unit.step, unit.item, number, request))
    draft.call(unit, "ask")
    return True


def is_cleared(draft: Draft, asked: Asking, request: Payload) -> bool:
    """Was exactly this allowed, not long ago?"""
    since = asked.cleared if asked.request == request else None
    return since is not None and draft.now - since <= CLEARED_MS_MAX


def request_of(draft: Draft, unit: Unit, policy: PolicyPlan) -> Payload | Failure:
    """What the policies are asked: who would do what to what, and all that is known about it."""
    state, plan = draft.state, draft.state.plan.steps[unit.step]
    extra = extra_of(draft, plan, unit.item)
    resource = {} if policy.resource is None else evaluate(draft, policy.resource, extra)
    if isinstance(resource, Failure):
        return resource
    who = ("Agent", unit.role or plan.target) if plan.by_agent else ("User", state.by)
    known: dict[str, Any] = {"tenant": state.cell.tenant, "instance": state.cell.key}
    known |= {"requester": state.by, "item": extra.get("index"), "round": unit.round}
    known |= {"attempt": unit.attempt + 1, "params": unit.params and unit.params.value}
    return evaluate_payload(draft, None, default=policy.request(who, resource, known))


def receive_answer(draft: Draft, unit: Unit, incoming: Receipt) -> bool:
    """The policies have decided: let the attempt begin, fail the step, or ask people."""
    asked = unit.asking
    if asked is None or not is_asking(unit) or incoming.attempt != asked.number:
        return False
    answer, said = answer_in(draft, incoming)
    digest = guards.digest_of(draft.state, unit, unit.params, answer.hash)
    gate = answer.gate if answer.decision == "approval" else None
    clears = answer.decision == "allow" or (gate is not None and digest == asked.granted)
    told = (asked.number, answer.decision, answer.hash, said, clears, gate)
    draft.emit(PolicyDecided(unit.step, unit.item, *told))
    if gate is not None and not clears:
        until = None if gate.expires_ms is None else TimeMs(draft.now + gate.expires_ms)
        shown = draft.payload(answer.show)
        draft.emit(StepWaiting(unit.step, unit.item, "approval", until, shown))
    elif not clears:
        failure = draft.failure("governance", answer.code, answer.reason)
        mend.give_up(draft, unit, unit.attempt, failure)
    return True


def answer_in(draft: Draft, incoming: Receipt) -> tuple[Answer, Payload]:
    """What a receipt says; one that says nothing that can be read is a denial."""
    said, failed = incoming.result, incoming.failure
    why = "nobody could ask the policies" if failed is None else failed.message
    try:
        if incoming.outcome == "ok" and said is not None:
            # Bytes stay bytes: what is told as JSON, from outside, cannot be an answer.
            return msgspec.convert(said.value, Answer, builtin_types=(bytes,)), said
    except msgspec.ValidationError as error:
        why = f"the answer cannot be read: {error}"
    answer = Answer("deny", "policy.unavailable", why, NO_POLICY)
    return answer, draft.payload(msgspec.to_builtins(answer, builtin_types=(bytes,)))
