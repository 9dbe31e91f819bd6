"""What is rebuilt with a state rather than written: the same, whatever way led there."""

from typing import Any

from pawlflow.kernel.counters import stands
from pawlflow.kernel.draft import is_asking
from pawlflow.kernel.state import Instance


def derived(state: Instance) -> dict[str, Any]:
    """Everything that is rebuilt, in a form that can be compared. The heap's stale ends aside."""
    return {
        "counts": list(state.counts),
        "waits": {kind: n for kind, n in state.waits.items() if n},
        "remaining": state.remaining,
        "open": sorted(state.open),
        "attempts": sorted({entry for entry in state.attempts if stands(state, entry)}),
        "openings": sorted({entry for entry in state.openings if stands(state, entry)}),
        "listening": {event: list(who) for event, who in state.listening.items() if who},
        "keys": state.keys,
        "undoing": sorted(state.undoing),
        "asking": sorted(place for place in state.asking if is_asking(state.unit(place))),
        "held": sorted({entry for entry in state.held if stands(state, entry, held=True)}),
        "reserved": {name: amount for name, amount in state.reserved.items() if amount},
        "undone_failed": state.undone_failed,
    }
