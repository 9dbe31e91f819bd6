"""Guards: an approval holds for exactly what was shown.

A gate that guards steps shows what they would be called with. Its grant is bound to the digests of
that. A step whose call turns out to be another does not begin: the approval is void, and the gate
asks again, showing what has changed.
"""

from collections.abc import Iterator
from typing import Any, Final

from pawlflow.definition.plan import StepPlan
from pawlflow.kernel.draft import Draft
from pawlflow.kernel.evolve_again import next_item
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import FANNED, PENDING, SKIPPED, SUCCEEDED, Unit, is_open
from pawlflow.kernel.values import evaluate, evaluate_items, evaluate_payload, params_of
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM
from pawlflow.model.payload import Payload, fits
from pawlflow.model.reviews import (
    ApprovalParts,
    GateBound,
    GateVoided,
    StepBarred,
    approval_digest,
)

CHANGES_MAX: Final = 100  # that are shown: a person reads them. Part of the rules


def is_barred(draft: Draft, unit: Unit) -> bool:
    """Does a gate stand in the way? Then it waits, and is asked about if it has not been."""
    state = draft.state
    gates = [state.unit(gate) for gate in state.plan.guarded_by.get(unit.step, ())]
    missing = [gate for gate in gates if not agrees(state, gate, unit)]
    for gate in missing:
        if gate.status == SUCCEEDED:
            draft.emit(GateVoided(gate.step, unit.step, unit.item))
    if missing:
        draft.emit(StepBarred(unit.step, unit.item))
    return bool(missing)


def agrees(state: Instance, gate: Unit, unit: Unit) -> bool:
    """Was this very call approved? A gate that was left out has nothing to say."""
    if gate.status != SUCCEEDED or gate.approved is None:
        return gate.status == SKIPPED
    digests: dict[str, bytes] = gate.approved.value
    return digests.get(state.name_of(unit)) == digest_of(state, unit, unit.params)


def digest_of(state: Instance, unit: Unit, params: Payload | None, rules: bytes = b"") -> bytes:
    """What an approval of this call is bound to."""
    plan = state.plan.steps[unit.step]
    place = (plan.name, unit.item, unit.round)
    return approval_digest(ApprovalParts(plan.target, params, *place, state.plan.definition, rules))


def bind(draft: Draft, gate: Unit) -> None:
    """Tie a grant to what it lets happen. The gate's own result is known by now."""
    state = draft.state
    digests = {
        state.name_of(unit): digest_of(state, unit, params)
        for unit, params in would_call(draft, gate)
        if not isinstance(params, Failure)
    }
    draft.emit(GateBound(gate.step, draft.payload(digests)))


def asked_about(draft: Draft, gate: Unit) -> Payload | Failure:
    """What the guarded steps would be called with as things stand; null where that is not known."""
    name_of = draft.state.name_of
    found = {
        name_of(unit): {
            "round": unit.round,
            "params": params.value if isinstance(params, Payload) else None,
        }
        for unit, params in would_call(draft, gate)
    }
    if fits(found):
        return evaluate_payload(draft, None, default=found)
    message = f"what {name_of(gate)} guards is too large to be shown"
    return draft.failure("terminal", "payload.too_large", message)


def would_call(draft: Draft, gate: Unit) -> Iterator[tuple[Unit, Payload | Failure | None]]:
    """Every guarded step or item that is not settled, with its parameters."""
    state = draft.state
    for plan in (state.plan.steps[step] for step in state.plan.steps[gate.step].guards):
        whole = state.unit(plan.index)
        if whole.status != PENDING and not is_open(whole.status):
            continue
        if plan.for_each is None:
            yield whole, params_now(draft, plan, whole)
            continue
        fixed = whole.status == FANNED  # an open fan keeps its list, whatever is found now
        items = evaluate_items(draft, plan) if fixed else evaluate(draft, plan.for_each)
        for index, item in enumerate(items if isinstance(items, list) else ()):
            unit = item_now(state, whole, index)
            if unit.status == PENDING or is_open(unit.status):
                yield unit, params_now(draft, plan, unit, {"item": item, "index": index})


def item_now(state: Instance, whole: Unit, index: int) -> Unit:
    """An item as it is, or as it will be when it is looked at."""
    fan = state.fans.get(whole.step) if whole.status == FANNED else None
    if fan is not None and index < fan.cursor:
        return state.item(fan, index)
    return next_item(state, whole.step, index, NO_ITEM)


def params_now(
    draft: Draft, plan: StepPlan, unit: Unit, extra: dict[str, Any] | None = None
) -> Payload | Failure | None:
    """The parameters that are fixed for the present round, or those it would get now."""
    if unit.status != PENDING or not plan.takes_input:
        return unit.params
    if extra is None:
        return params_of(draft, plan, NO_ITEM)
    return evaluate_payload(draft, plan.params, default={}, extra=extra)


def changes(was: Payload | None, now: Payload | None) -> list[dict[str, Any]]:
    """What differs from the last asking, by step and path; only the first of very many."""
    found: list[dict[str, Any]] = []
    for step, call in sorted(now.value.items()) if was is not None and now is not None else ():
        before = was.value.get(step, {}) if was is not None else {}
        differences = list(differing("", before.get("params"), call["params"]))
        if before and before["round"] != call["round"]:
            differences.append(("round", before["round"], call["round"]))
        found += [{"step": step, "path": p, "was": a, "now": b} for p, a, b in differences]
    return found[:CHANGES_MAX]


def differing(path: str, was: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """Where two values differ: the path of members, and what stands there."""
    if isinstance(was, dict) and isinstance(now, dict):
        for name in sorted({*was, *now}):
            yield from differing(f"{path}/{name}", was.get(name), now.get(name))
    elif type(was) is not type(now) or was != now:
        yield path, was, now
