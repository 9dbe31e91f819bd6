"""Summary: what an instance is, seen from outside: its state, by counters alone."""

from typing import Literal

from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import BACKOFF, CORRECTING, ESCALATED, READY, RUNNING, WAITING

InstanceState = Literal[
    "created",
    "queued",
    "running",
    "waiting",
    "escalated",
    "compensating",
    "completed",
    "failed",
    "cancelled",
]


def instance_state(state: Instance) -> InstanceState:
    """The state of an instance, from counters alone."""
    if state.outcome is not None:
        return state.outcome
    if state.compensating:
        return "compensating"
    if state.started is None:
        return "queued" if state.queued else "created"
    counts = state.counts
    if counts[READY] or counts[RUNNING] or counts[BACKOFF] or counts[CORRECTING]:
        return "running"
    if counts[ESCALATED]:
        return "escalated"
    return "waiting" if counts[WAITING] else "running"
