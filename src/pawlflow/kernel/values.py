"""Values: what the expressions of a definition give in this turn, or the failure to give it."""

from typing import Any

from pawlflow.definition.bound import NOTHING, Bound, Extra
from pawlflow.definition.express import ExpressionError
from pawlflow.definition.plan import StepPlan
from pawlflow.kernel.draft import Draft
from pawlflow.model.codec import CodecError
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM
from pawlflow.model.payload import Payload, PayloadError, fits, nothing


def evaluate(draft: Draft, bound: Bound, extra: Extra = NOTHING) -> Any:
    """The value of an expression, or a Failure if it has none."""
    try:
        return bound.evaluate(draft.state, extra)
    except ExpressionError as error:
        return draft.failure("terminal", error.code, error.message)


def evaluate_truth(draft: Draft, bound: Bound, what: str, extra: Extra = NOTHING) -> bool | Failure:
    """The answer of a condition. Null counts as no; anything else but a truth value is an error."""
    value = evaluate(draft, bound, extra)
    if value is None or isinstance(value, bool | Failure):
        return value or False
    message = f"{what} gave {type(value).__name__}, expected true or false"
    return draft.failure("terminal", "expression.not_bool", message)


def evaluate_payload(
    draft: Draft, bound: Bound | None, *, default: Any, extra: Extra = NOTHING
) -> Payload | Failure:
    """The addressed value of a template, or the failure to make one."""
    if bound is None and not default:  # most steps and outputs: nothing, made once
        return nothing(None if default is None else "map", draft.state.cell.tenant)
    value = default if bound is None else evaluate(draft, bound, extra)
    if isinstance(value, Failure):
        return value
    if bound is None or fits(value):
        try:
            return draft.payload(value)
        except (CodecError, PayloadError) as error:
            code, message = error.code, str(error)
    else:
        code, message = "payload.too_large", "the value of an expression is too large to be kept"
    return draft.failure("terminal", code, message)


def params_of(draft: Draft, plan: StepPlan, item: int) -> Payload | Failure | None:
    """The value of `with`; waits and gates have none."""
    if not plan.takes_input:
        return None
    return evaluate_payload(draft, plan.params, default={}, extra=extra_of(draft, plan, item))


def extra_of(draft: Draft, plan: StepPlan, item: int) -> Extra:
    """What an expression may name beside the rest."""
    if item == NO_ITEM:
        return NOTHING
    items = evaluate_items(draft, plan)
    assert isinstance(items, list), "the fan is open, so there is a list"
    return {"item": items[item], "index": item}


def evaluate_items(draft: Draft, plan: StepPlan) -> list[Any] | Failure:
    """The list that forEach stands for. It is never written: what it follows from is."""
    fan = draft.state.fans.get(plan.index)
    fixed = fan.items.value if fan is not None and fan.items is not None else None
    known: list[Any] | None = fixed or draft.state.values.get(plan.index)
    if known is not None:
        return known
    assert plan.for_each is not None
    items = evaluate(draft, plan.for_each)
    if isinstance(items, list):
        draft.state.values[plan.index] = items
        return items
    if isinstance(items, Failure):
        return items
    message = f"forEach of {plan.name} gave {type(items).__name__}, expected a list"
    return draft.failure("terminal", "expression.not_list", message)
