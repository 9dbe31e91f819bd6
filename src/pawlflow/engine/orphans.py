"""Orphans: effects that happened, though nobody waits for them any more. A human is asked.

A closed instance takes no more turns. So what is known of them lies beside its turns: the late
receipt as a refusal with a name of its own, what a human said about it as another entry.
"""

from pawlflow.engine.admission import admit_receipt
from pawlflow.engine.cells import Live
from pawlflow.kernel.heads import LATE, Question, orphan_of
from pawlflow.kernel.state import Instance
from pawlflow.model.ids import TimeMs
from pawlflow.model.inputs import Receipt


def orphan_in(live: Live, receipt: Receipt, now: TimeMs) -> Question | None:
    """What is to be asked about a success that came after the close."""
    state = None if live.cell is None else live.cell.state
    if not isinstance(state, Instance) or state.closed is None:
        return None
    key = state.keys.get(receipt.key)
    if key is None or admit_receipt(state, receipt).outcome != "ok":
        return None
    return orphan_of(state, state.of_round(key.step, key.item, key.round), now)


def is_orphan(live: Live, review: str) -> bool:
    """May this review be open? The engine reads no rows; it knows what cannot be."""
    state = None if live.cell is None else live.cell.state
    if not isinstance(state, Instance) or not review.endswith(LATE):
        return False
    unit = state.named(review.removesuffix(LATE))
    return unit is not None and unit.attempt > 0
