"""Tell: what an instance says to the system cells it depends on. Since rules 2.

A topic hears of each of its waits that is open at the end of a turn and was not before, or the
other way round; its slots and its rate hear of it before it starts, and when it closes.
"""

from typing import Final

from pawlflow.definition.correlate import correlated
from pawlflow.kernel import children
from pawlflow.kernel.draft import Draft
from pawlflow.kernel.system import starting
from pawlflow.kernel.units import WAITING, Unit
from pawlflow.kernel.values import evaluate
from pawlflow.model.payload import Payload
from pawlflow.model.system import TOPIC, AwaitEvent, StopAwaiting, topic_key

SINCE_RULES: Final = 2


def tell_others(draft: Draft) -> None:
    """What this turn means to topics and slots."""
    state = draft.state
    if state.rules < SINCE_RULES:
        return
    for step, was_open in state.listened.items():
        unit = state.unit(step)
        if (unit.status == WAITING) != was_open:
            tell_topic(draft, unit, leaves=was_open)
    if state.closed is not None:
        starting.give_back(draft)
    if state.closed is not None and state.parent is not None:
        children.report(draft, state.parent)


def tell_topic(draft: Draft, unit: Unit, *, leaves: bool) -> None:
    """A wait is open, or no longer."""
    plan = draft.state.plan.steps[unit.step]
    cell, key = draft.state.cell, topic_key(plan.event)
    if leaves:
        draft.send(TOPIC, key, StopAwaiting(cell.workflow, cell.key, plan.name))
        return
    path, value = correlation(draft, unit)
    draft.send(TOPIC, key, AwaitEvent(cell.workflow, cell.key, plan.name, path, value))


def correlation(draft: Draft, unit: Unit) -> tuple[str, Payload | None]:
    """What an event must hold to match this wait, as far as that is known beforehand."""
    wanted = draft.state.plan.steps[unit.step].correlation
    if wanted is None:
        return "", None
    path, bound = wanted
    value = correlated(evaluate(draft, bound))
    return ("", None) if value is None else (path, draft.payload(value))
