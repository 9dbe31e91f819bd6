"""Fans: one step, many items. A cursor walks the list; so many items are open at a time.

What a fan costs a turn does not depend on how many items it has, or skips.
"""

from typing import Final

from pawlflow.definition.plan import StepPlan
from pawlflow.kernel import mend
from pawlflow.kernel.counters import refill
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import Fan, Unit
from pawlflow.kernel.values import evaluate_items, evaluate_truth, extra_of, params_of
from pawlflow.model.events import StepFanned, StepReady, StepSkipped, StepSucceeded
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM
from pawlflow.model.system import Continue

LOOKS_MAX: Final = (
    1_000  # items in one turn: it must stay short enough to be kept. Part of the rules
)


def open_fan(draft: Draft, plan: StepPlan) -> None:
    """The dependencies of a step with forEach are met: how many items are there?"""
    items = evaluate_items(draft, plan)
    if isinstance(items, Failure):
        mend.give_up(draft, draft.state.unit(plan.index), 0, items)
    else:
        draft.emit(StepFanned(plan.index, len(items)))


def fill(draft: Draft, fan: Fan) -> None:
    """Look at items while there is room; without any left, the step is done."""
    state = draft.state
    plan = state.plan.steps[fan.step]
    end = min(fan.size, fan.cursor + LOOKS_MAX)
    while fan.cursor < end and fan.open < plan.limit and state.closing is None:
        look_at(draft, plan, fan.cursor)
    state.filling.discard(fan.step)
    if state.closing is not None:
        return
    if has_room(state, fan):
        draft.send(state.cell.workflow, state.cell.key, Continue())
    elif fan.open == 0:
        draft.emit(StepSucceeded(fan.step, NO_ITEM, 0, draft.payload(None)))


def has_room(state: Instance, fan: Fan) -> bool:
    """Are there items to look at, and may one begin?"""
    return fan.cursor < fan.size and fan.open < state.plan.steps[fan.step].limit


def go_on(draft: Draft) -> Rejected | None:
    """Look at more items, where the last turn had seen enough."""
    state = draft.state
    for fan in state.fans.values():
        if has_room(state, fan):
            refill(state, fan.step)
    return None if state.fresh else Rejected("continue.nothing", state.cell.key)


def look_at(draft: Draft, plan: StepPlan, item: int) -> None:
    """Skip a step or an item, or make it ready; a step with forEach looks at its items next."""
    if plan.when is not None and plan.when_item == (item != NO_ITEM):
        name = plan.name if item == NO_ITEM else f"{plan.name}[{item}]"
        wanted = evaluate_truth(draft, plan.when, f"when of {name}", extra_of(draft, plan, item))
        if isinstance(wanted, Failure):
            mend.give_up(draft, Unit(plan.index, item), 0, wanted)
            return
        if not wanted:
            draft.emit(StepSkipped(plan.index, item, "condition"))
            return
    if plan.for_each is not None and item == NO_ITEM:
        open_fan(draft, plan)
    else:
        make_ready(draft, plan, item)


def make_ready(draft: Draft, plan: StepPlan, item: int) -> None:
    """Fix the parameters of the first round."""
    params = params_of(draft, plan, item)
    if isinstance(params, Failure):
        draft.emit(StepReady(plan.index, item, None))
        mend.give_up(draft, draft.state.at(plan.index, item), 0, params)
    else:
        draft.emit(StepReady(plan.index, item, params))
