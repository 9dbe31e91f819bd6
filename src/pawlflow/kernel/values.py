"""Values: what the expressions of a definition give in this turn, or the failure to give it."""

from typing import Any

from pawlflow.definition.express import ExpressionError
from pawlflow.kernel.draft import Draft
from pawlflow.kernel.scope import NOTHING, Bound, Extra
from pawlflow.model.codec import CodecError
from pawlflow.model.failure import Failure, failure_of
from pawlflow.model.payload import Payload, PayloadError, fits


def evaluate(draft: Draft, bound: Bound, extra: Extra = NOTHING) -> Any:
    """The value of an expression, or a Failure if it has none."""
    try:
        return bound.evaluate(draft.state, extra)
    except ExpressionError as error:
        return failure_of("terminal", error.code, error.message, tenant=draft.state.cell.tenant)


def evaluate_truth(draft: Draft, bound: Bound, what: str, extra: Extra = NOTHING) -> bool | Failure:
    """The answer of a condition. Null counts as no; anything else but a truth value is an error."""
    value = evaluate(draft, bound, extra)
    if value is None or isinstance(value, bool | Failure):
        return value or False
    message = f"{what} gave {type(value).__name__}, expected true or false"
    return failure_of("terminal", "expression.not_bool", message, tenant=draft.state.cell.tenant)


def evaluate_payload(
    draft: Draft, bound: Bound | None, *, default: Any, extra: Extra = NOTHING
) -> Payload | Failure:
    """The addressed value of a template, or the failure to make one."""
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
    return failure_of("terminal", code, message, tenant=draft.state.cell.tenant)
