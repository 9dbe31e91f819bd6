"""Decisions: what people said about the steps of an instance, who, when, as what, and why."""

from typing import Any

from pawlflow.kernel.state import Instance
from pawlflow.model import budgets, reviews
from pawlflow.model import events as ev
from pawlflow.model.journal import Turn
from pawlflow.projections.plain import time_told, value_of
from pawlflow.projections.story import Story, unit_of, walk

VERBS: dict[type, str] = {
    ev.GateVoted: "approved",
    ev.GateGranted: "approved",
    ev.GateRejected: "rejected",
    ev.ReviewClaimed: "claimed",
    budgets.BudgetRaised: "raised",
    reviews.GateVoided: "voided",  # by nobody: what was asked about has changed
}
HOW = {"resume": "resumed", "retry": "retried", "reassign": "reassigned"}


def decisions(story: Story, at: int | None = None) -> dict[str, list[dict[str, Any]]]:
    """All that was decided, by the name of the step or item. Raises NoSuchTurnError."""
    found: dict[str, list[dict[str, Any]]] = {}
    for turn, event, state in walk(story, at):
        verb = HOW[event.how] if isinstance(event, ev.StepResumed) else VERBS.get(type(event))
        unit = None if verb is None else unit_of(state, event)
        if unit is not None:
            told = {"turn": turn.number, "at": time_told(state.now), "decision": verb}
            found.setdefault(state.name_of(unit), []).append(told | said(state, event, turn))
    return found


def said(state: Instance, event: Any, turn: Turn) -> dict[str, Any]:
    """Who, as what, and with which words; of a step that goes on, how."""
    told = {
        "by": getattr(event, "by", None),
        "role": getattr(event, "role", None),
        "comment": value_of(getattr(event, "comment", None)),
    }
    if isinstance(event, ev.StepResumed):  # its role is the one that the step goes to
        acting = getattr(turn.input, "acting", None)
        return told | {"role": acting, "to": event.role, "input": value_of(event.params)}
    if isinstance(event, reviews.GateVoided) and event.cause >= 0:
        return told | {"cause": state.plan.steps[event.cause].name}
    return told
