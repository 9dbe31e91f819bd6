"""Tell: what an instance says to the system cells it depends on. Since rules 2.

Its slots hear of it when it is created and when it closes; a topic hears of each of its waits that
is open at the end of a turn and was not before, or the other way round.
"""

import json
from typing import Any, Final

import msgspec

from pawlflow.definition.express import ExpressionError
from pawlflow.kernel.correlate import correlated
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.plan import SlotPlan
from pawlflow.kernel.state import WAITING, Unit
from pawlflow.kernel.values import evaluate
from pawlflow.model.codec import CodecError
from pawlflow.model.events import InstanceCreated
from pawlflow.model.ids import CellId
from pawlflow.model.payload import Payload, fits
from pawlflow.model.system import (
    SLOTS,
    TOPIC,
    AcquireSlot,
    AwaitEvent,
    ReleaseSlot,
    StopAwaiting,
    slots_key,
    topic_key,
)

SINCE_RULES: Final = 2
LABEL_MAX: Final = 64  # characters of a key in words: for people, and in every list of slots


class Newcomer(msgspec.Struct, gc=False):
    """What a concurrency key may name: it is computed before the instance exists."""

    cell: CellId
    input: Payload
    by: str

    def result_of(self, _: int) -> None:
        """No step has run."""

    def results(self, _: int | None) -> dict[str, Any]:
        """No step has run."""
        return {}


def ask_for_slot(draft: Draft, created: InstanceCreated, slot: SlotPlan) -> Rejected | None:
    """Create the instance and ask for its slot; nothing starts before that is granted."""
    cell = draft.state.cell
    try:
        value = slot.key.evaluate(Newcomer(cell, created.input, created.by))
        if not fits(value):
            return Rejected("concurrency.key", "the key is too large")
        key = slots_key(cell.workflow, value)
    except (ExpressionError, CodecError) as error:
        return Rejected("concurrency.key", str(error))
    draft.emit(msgspec.structs.replace(created, slot=key))
    draft.send(SLOTS, key, AcquireSlot(cell.workflow, cell.key, slot.limit, label_of(value)))
    return None


def label_of(value: Any) -> str:
    """A key in words."""
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True, default=bytes.hex)
    return value if len(value) <= LABEL_MAX else f"{value[: LABEL_MAX - 1]}…"


def tell_others(draft: Draft) -> None:
    """What this turn means to topics and slots."""
    state = draft.state
    if state.rules < SINCE_RULES:
        return
    for step, was_open in state.listened.items():
        unit = state.unit(step)
        if (unit.status == WAITING) != was_open:
            tell_topic(draft, unit, leaves=was_open)
    if state.closed is not None and state.slot:
        draft.send(SLOTS, state.slot, ReleaseSlot(state.cell.workflow, state.cell.key))


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
