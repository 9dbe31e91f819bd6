"""Retention: until when an instance is kept once it is closed, as its definition says."""

from pawlflow.kernel.state import Instance
from pawlflow.model.ids import TimeMs


def expiry_of(state: Instance) -> TimeMs | None:
    """When the time of a closed instance is over; None: it is kept for ever."""
    rule = state.plan.retention
    if rule is None or state.closed is None or state.outcome is None:
        return None
    return rule.until(state.outcome, state.closed)
