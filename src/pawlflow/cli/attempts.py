"""What a person sees of a step by itself: its attempts as a ladder, and what people decided."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pawlflow.cli.lines import clean, clock, error_text, ms_of, short, span

Shown = Mapping[str, Any]


def step_lines(name: str, step: Shown) -> Iterator[str]:
    """A step, attempt by attempt."""
    yield f"{clean(name)}  {step['kind']}  {step['state']}"
    yield from ladder_lines(step["ladder"])
    yield from decision_lines(step["decisions"])


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


def outcome_of(rung: Shown) -> str:
    """How an attempt went, in words."""
    return str(rung["outcome"]).replace("_", " ")


def decision_lines(decisions: Sequence[Shown]) -> Iterator[str]:
    """One line for each decision: who, as what, when, and why."""
    for said in decisions:
        who = "the engine" if said["by"] is None else clean(said["by"])
        role = "" if said["role"] is None else f" ({clean(said['role'])})"
        why = "" if said["comment"] is None else f": {short(said['comment'])}"
        to = f" to {clean(said['to'])}" if said.get("to") else ""
        yield f"  {said['at']}  {said['decision']}{to} by {who}{role}{why}"
