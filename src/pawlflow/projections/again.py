"""Again: the sentences about steps that are done again, and reviews that ask again."""

from collections.abc import Callable
from typing import Any, Final

from pawlflow.kernel.ladder import rung_of
from pawlflow.kernel.state import Instance
from pawlflow.model import reviews as ev
from pawlflow.model.ids import NO_ITEM

Sentence = str | Callable[[Instance, Any], str]


def reopened(state: Instance, event: ev.StepReopened) -> str:
    """A step runs again: sent back itself, or because of one that was."""
    name = state.plan.steps[event.step].name
    return f"{name} is done again" if event.failure is None else f"{name} was sent back"


def voided(state: Instance, event: ev.GateVoided) -> str:
    """An approval does not hold any more."""
    gate = state.plan.steps[event.step].name
    if event.cause < 0:
        return f"what {gate} asks about had changed, so the votes are void and it asks again"
    item = "" if event.item == NO_ITEM else f"[{event.item}]"
    cause = f"{state.plan.steps[event.cause].name}{item}"
    return f"{cause} would not do what {gate} had approved, so that is void and it asks again"


def raised(state: Instance, event: ev.StepRaised) -> str:
    """Another rung of the ladder."""
    unit = state.at(event.step, event.item)
    rung = rung_of(state, unit)
    who = "" if rung is None else f": {rung.role} is asked"
    return f"nobody decided about {state.name_of(unit)} in time{who}"


AGAIN: Final[dict[type, Sentence]] = {
    ev.StepReopened: reopened,
    ev.FanFixed: "",
    ev.StepBarred: lambda s, e: f"{s.name_of(s.at(e.step, e.item))} waits for its gate to agree",
    ev.StepRaised: raised,
    ev.GateBound: "",
    ev.GateVoided: voided,
}
