"""Search attributes: what an instance may be found by, fixed when it is created.

Each is a text, a number, true, false or null. A start whose attribute is none of these, or has no
value, is refused: an instance that cannot be found by its filter is found too late.
"""

from typing import Any, Final

from pawlflow.definition.bound import Bound, Scope
from pawlflow.definition.express import ExpressionError
from pawlflow.kernel.refused import Rejected
from pawlflow.model.payload import Payload

SINCE_RULES: Final = 2
TEXT_BYTES_MAX: Final = 512  # of a value: an index is for names and amounts, not for documents
INT_MIN, INT_MAX = -(2**63), 2**63 - 1  # what every store can compare


def attributes_of(search: tuple[tuple[str, Bound], ...], who: Scope) -> Payload | Rejected:
    """The attributes of a newcomer by name, or the refusal of its start."""
    found: dict[str, Any] = {}
    for name, bound in search:
        try:
            value = bound.evaluate(who)
        except ExpressionError as error:
            return Rejected("search.failed", f"{name}: {error.message}")
        wrong = objection(value)
        if wrong:
            return Rejected("search.failed", f"{name} {wrong}")
        found[name] = value
    return Payload.of(found, who.cell.tenant)


def objection(value: Any) -> str:
    """Why nothing can be found by this value, or nothing."""
    if value is None or isinstance(value, bool | float):
        return ""
    if isinstance(value, int):
        return "" if INT_MIN <= value <= INT_MAX else "has more than 64 bits"
    if not isinstance(value, str):
        return f"is a {type(value).__name__}, not text, a number, true, false or null"
    size = len(value.encode())
    return "" if size <= TEXT_BYTES_MAX else f"has {size} bytes, at most {TEXT_BYTES_MAX} are kept"
