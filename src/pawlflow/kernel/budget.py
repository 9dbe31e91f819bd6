"""Budgets: what an instance may spend. Reserved by an attempt, settled by its end.

A success costs what its executor says, or else what was reserved; a failure only what it says.
What would pass a hard limit does not begin: its step stays ready, and a human is asked to raise the
limit. Amounts are millionths, so that adding them up is exact.
"""

from heapq import heappop, heappush
from typing import Any, Final

from pawlflow.definition.plan import MILLIONTHS, millionths
from pawlflow.kernel import mend
from pawlflow.kernel.counters import first_in
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.state import MICROS_MAX, Instance
from pawlflow.kernel.units import Unit
from pawlflow.model.budgets import (
    AMOUNT_MAX,
    Amount,
    BudgetRaised,
    BudgetSpent,
    BudgetWarned,
    StepHeld,
    StepUnheld,
)
from pawlflow.model.inputs import Approve, Receipt, Reject

UNITS_MAX: Final = 32  # of account, in what one attempt says: there are few things that cost
UNIT_CHARS_MAX: Final = 64
LOOKED_AT_MAX: Final = 64  # of those held, for one start: a turn stays short. Part of the rules


def taken(state: Instance, name: str) -> int:
    """What is spent or reserved."""
    return min(state.spent.get(name, 0) + state.reserved.get(name, 0), MICROS_MAX)


def needed(state: Instance, unit: Unit, name: str) -> int:
    """What would be taken if this attempt began and cost what it may."""
    return taken(state, name) + state.plan.steps[unit.step].cost.get(name, 0)


def limit_of(state: Instance, name: str) -> int | None:
    """The hard limit, as it was written or last raised."""
    return state.limits.get(name, state.plan.budget[name][1])


def short_of(state: Instance, unit: Unit) -> dict[str, int]:
    """The limits that this attempt would pass, and how high they would have to be."""
    asked = ((name, needed(state, unit, name), limit_of(state, name)) for name in state.plan.budget)
    return {name: amount for name, amount, limit in asked if limit is not None and amount > limit}


def admits(draft: Draft, unit: Unit) -> bool:
    """May this attempt begin? If not, ask."""
    if unit.held:  # what was given back is enough
        draft.emit(StepUnheld(unit.step, unit.item))
        return True
    for name in short_of(draft.state, unit):
        shown = draft.payload({"unit": name} | figures(draft.state, unit, name))
        draft.emit(StepHeld(unit.step, unit.item, name, shown))
        return False
    return True


def figures(state: Instance, unit: Unit, name: str) -> dict[str, float]:
    """What a human needs to know of a limit to decide about this attempt."""
    return {
        "limit": plain_amount(limit_of(state, name) or 0),
        "spent": plain_amount(state.spent.get(name, 0)),
        "reserved": plain_amount(state.reserved.get(name, 0)),
        "needed": plain_amount(needed(state, unit, name)),
    }


def plain_amount(micros: int) -> float:
    """An amount as people write it: a whole one without a point."""
    return micros / MILLIONTHS if micros % MILLIONTHS else micros // MILLIONTHS


def warn(draft: Draft) -> None:
    """Say once that a soft limit is passed."""
    state = draft.state
    for name, (soft, _) in state.plan.budget.items():
        if soft is not None and name not in state.warned and taken(state, name) > soft:
            draft.emit(BudgetWarned(name, taken(state, name)))


def first_that_fits(state: Instance) -> tuple[int, int, int] | None:
    """The first of those held that may begin now, since something was given back."""
    looked: list[tuple[int, int, int]] = []
    found = None
    while found is None and len(looked) < LOOKED_AT_MAX and first_in(state, state.held):
        looked.append(heappop(state.held))
        found = None if short_of(state, state.unit(looked[-1][2])) else looked[-1]
    for entry in looked:
        heappush(state.held, entry)
    state.loosened = found is not None
    return found


def approve(draft: Draft, unit: Unit, incoming: Approve) -> Rejected | None:
    """A human raises the limits: to what they say, or to what this attempt needs."""
    state = draft.state
    said: Any = {} if incoming.limits is None else incoming.limits.value
    if not isinstance(said, dict) or not all(is_limit(state, name, said[name]) for name in said):
        return Rejected("budget.limits", "give new hard limits, such as {usd: 10}")
    short = short_of(state, unit)
    raised = short | {name: millionths(said[name]) for name in said}
    for name, limit in raised.items():
        least = short.get(name, limit_of(state, name)) or 0
        if limit < least:
            return Rejected("budget.too_low", f"{name} must be at least {plain_amount(least)}")
    limits = tuple(Amount(name, raised[name]) for name in sorted(raised))
    draft.emit(
        BudgetRaised(unit.step, unit.item, incoming.by, incoming.role, incoming.comment, limits)
    )
    return None


def is_limit(state: Instance, name: Any, value: object) -> bool:
    """Is this an amount of something that has a hard limit?"""
    return name in state.plan.budget and limit_of(state, name) is not None and is_amount(value)


def is_amount(value: object) -> bool:
    """Is this so much of something?"""
    return type(value) in (int, float) and 0 <= value <= AMOUNT_MAX  # type: ignore[operator]


def reject(draft: Draft, unit: Unit, incoming: Reject) -> Rejected | None:
    """A human does not raise the limit: the step cannot be done."""
    state = draft.state
    message = f"{incoming.by} did not raise the budget for {state.name_of(unit)}"
    if incoming.comment is not None:
        message += f": {incoming.comment.value}"
    failure = draft.failure("governance", "budget.exceeded", message)
    mend.give_up(draft, unit, unit.attempt, failure)
    return None


def usage_in(incoming: Receipt) -> tuple[Amount, ...]:
    """What an executor says that it cost, if what it says is amounts."""
    said: Any = None if incoming.usage is None else incoming.usage.value
    if not isinstance(said, dict) or len(said) > UNITS_MAX:
        return ()
    if not all(len(name) <= UNIT_CHARS_MAX and is_amount(said[name]) for name in said):
        return ()
    return tuple(Amount(name, millionths(said[name])) for name in sorted(said))


def spend(draft: Draft, unit: Unit, incoming: Receipt) -> None:
    """An attempt did not succeed, or nobody waits for it any more; but it cost something."""
    usage = usage_in(incoming)
    if usage:
        draft.emit(BudgetSpent(unit.step, unit.item, incoming.attempt, usage))
        warn(draft)
