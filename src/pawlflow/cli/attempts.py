"""What a person sees of a step by itself: its attempts as a ladder, and what people decided."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pawlflow.cli.lines import clean, clock, error_text, held_text, ms_of, short, span

CHECKPOINTS_MAX: Final = 50  # of a loop with a line each
NAME_WIDTH_MAX: Final = 40
Shown = Mapping[str, Any]


def step_lines(name: str, step: Shown) -> Iterator[str]:
    """A step, attempt by attempt."""
    held = ", held by the budget" if step.get("held") else ""
    yield f"{clean(name)}  {step['kind']}  {step['state']}{held}"
    yield from policy_lines(step.get("policy"))
    yield from ladder_lines(step["ladder"])
    yield from checkpoint_lines(step.get("checkpoints", ()))
    yield from decision_lines(step["decisions"])
    yield from waiting_lines(step.get("waiting"), step.get("hints", ()))


def policy_lines(policy: Shown | None) -> Iterator[str]:
    """What the policies said last, and which of them."""
    if policy is None:
        return
    decision = policy["decision"]
    said = "asked, and not answered yet" if decision is None else f"{decision}: {policy['why']}"
    yield f"  {'policy':<9} {clean(said)}"


def waiting_lines(waiting: Shown | None, hints: Sequence[str]) -> Iterator[str]:
    """What an open step waits for: who was asked and who is now, since when, and what to do."""
    if waiting is None:
        return
    gate, error = waiting.get("gate"), waiting.get("error")
    role = waiting.get("role") or ("a human" if waiting["kind"] == "escalation" else None)
    level = f" (rung {waiting['level']} of the ladder)" if "level" in waiting else ""
    channel = f" by {clean(waiting['channel'])}" if waiting.get("channel") else ""
    then = f", then {' and '.join(map(clean, waiting['then']))}" if waiting.get("then") else ""
    told = {
        "asked": None if gate is None else f"{clean(gate['role'] or 'anybody')}, {gate['since']}",
        "because": error_text(error) if error else None,
        "event": waiting.get("event"),
        "child": (waiting.get("child") or {}).get("id"),
        "asks": None if role is None else f"{clean(role)}{level}{channel}{then}",
        "needs": held_text(waiting) if waiting["kind"] == "budget" else None,
        "votes": ", ".join(map(clean, waiting.get("votes") or ())) or None,
        "since": waiting["since"],
        "until": waiting["until"],
        "claimed": waiting.get("claimed_by"),
    }
    for label, value in told.items():
        if value is not None:
            yield f"  {label:<9} {clean(value)}"
    for at, hint in enumerate(hints):
        yield f"  {'' if at else 'next':<9} {hint}"


def ladder_lines(ladder: Sequence[Shown]) -> Iterator[str]:
    """One paragraph for each attempt: how it went, what it was asked and what it gave."""
    for rung in ladder:
        began, ended = ms_of(rung["started_at"]), ms_of(rung["ended_at"])
        took = "" if began is None or ended is None else f"  {span(ended - began)}"
        where = f"attempt {rung['attempt']}, round {rung['round']}"
        yield f"  {where:<20} {clock(rung['started_at'])}  {outcome_of(rung)}{took}"
        for member in ("input", "feedback", "output", "findings", "cost"):
            if rung[member] not in (None, [], {}):
                yield f"    {member:<9} {short(rung[member])}"
        if rung["class"] is not None:
            yield f"    {'error':<9} {error_text(rung)}"
        for said in rung["log"]:
            yield f"    {'log':<9} {short(said)}"


def outcome_of(rung: Shown) -> str:
    """How an attempt went, in words."""
    return str(rung["outcome"]).replace("_", " ")


def checkpoint_lines(kept: Sequence[Shown]) -> Iterator[str]:
    """One line for each checkpoint of a loop: when it was kept, under which name, and what."""
    if not kept:
        return
    told = kept[-CHECKPOINTS_MAX:]
    left = len(kept) - len(told)
    before = f", the last {len(told)} of them here: --json has all" if left else ""
    yield f"  {len(kept):,} checkpoint{'s' if len(kept) > 1 else ''}{before}"
    width = min(max(len(each["name"]) for each in told), NAME_WIDTH_MAX)
    for each in told:
        size = "(erased)" if each["bytes"] is None else f"{each['bytes']:,} B"
        given = "" if each["bytes"] is None else short(each["result"])
        name = f"{clean(each['name']):<{width}}"
        yield f"    {clock(each['at'])}  {name}  {size:>9}  {given}".rstrip()


def decision_lines(decisions: Sequence[Shown]) -> Iterator[str]:
    """One line for each decision: who, as what, when, and why."""
    for said in decisions:
        who = "the engine" if said["by"] is None else clean(said["by"])
        role = "" if said["role"] is None else f" ({clean(said['role'])})"
        why = "" if said["comment"] is None else f": {short(said['comment'])}"
        to = f" to {clean(said['to'])}" if said.get("to") else ""
        yield f"  {said['at']}  {said['decision']}{to} by {who}{role}{why}"
