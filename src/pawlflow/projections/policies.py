"""Policies: what was asked about a step, and what the policies in force said to it."""

from typing import Any

from pawlflow.kernel.draft import is_asking
from pawlflow.kernel.units import Unit
from pawlflow.model.reviews import PolicyDecided
from pawlflow.projections.plain import is_erased, time_told, value_of


def decision_told(unit: Unit) -> dict[str, Any]:
    """The last decision about a step, with what it was asked, in plain values."""
    asked, decided = unit.asking, None if unit.asking is None else unit.asking.decided
    if asked is None or decided is None:
        return {}
    request, answer = value_of(asked.request) or {}, value_of(decided.answer) or {}
    told = {
        "decision": decided.decision,
        "why": answer.get("reason"),
        "policies": answer.get("policies", []),
        "in_force": answer.get("in_force", {}),
        "policy_hash": decided.policies.hex(),
        "inputs": {name: request.get(name) for name in ("action", "principal", "resource")},
        "inputs_hash": asked.request.addr.hex(),
    }
    gone = is_erased(asked.request) or is_erased(decided.answer)
    return told | {"erased": True} if gone else told


def policy_shown(unit: Unit) -> dict[str, Any] | None:
    """The same for `show`; None if nobody was asked."""
    if unit.asking is None:
        return None
    told = decision_told(unit) or {"decision": None}
    return told | {"asked": unit.asking.number, "cleared_at": time_told(unit.asking.cleared)}


def decided_text(name: str, event: PolicyDecided) -> str:
    """A decision in a sentence."""
    said = value_of(event.answer)
    why = "its words were erased" if said is None else said["reason"]
    match event.decision:
        case "allow":
            return f"policy lets {name} act: {why}"
        case "approval" if event.clears:
            return f"policy lets {name} act, since it was approved: {why}"
        case "approval":
            return f"policy asks people about {name}: {why}"
        case _:
            return f"policy denies {name}: {why}"


def asking_text(unit: Unit) -> str:
    """What a ready step waits for, if it is the answer of the policies."""
    return " for the answer of the policies" if is_asking(unit) else ""
