"""Starting: an instance is created, waits for its time, its slot and its rate, and begins.

In this order. The slot comes before the rate because a rate counts starts: whoever it lets go
begins at once. The other way round instances could be let go one by one, gather before a slot, and
begin all together when it is free.
"""

import json
from typing import Any, Final

import msgspec

from pawlflow.definition.bound import Bound
from pawlflow.definition.express import ExpressionError
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.state import Instance
from pawlflow.kernel.system.search import SINCE_RULES, attributes_of
from pawlflow.model.codec import CodecError
from pawlflow.model.events import (
    InstanceCreated,
    InstanceDue,
    InstanceGranted,
    InstanceQueued,
    InstanceStarted,
)
from pawlflow.model.ids import CellId
from pawlflow.model.inputs import GrantSlot, HoldInstance, StartInstance
from pawlflow.model.payload import Payload, fits
from pawlflow.model.system import SLOTS, AcquireSlot, ReleaseSlot, slots_key
from pawlflow.model.timed import RATE, AskRate, LeaveRate, rate_key

NONCE_BYTES: Final = 16
LABEL_MAX: Final = 64  # characters of a key in words: for people, and in every list of slots


class Newcomer(msgspec.Struct, gc=False):
    """What a key may name: it is computed before the instance exists."""

    cell: CellId
    input: Payload
    by: str

    def result_of(self, _: int) -> None:
        """No step has run."""

    def results(self, _: int | None) -> dict[str, Any]:
        """No step has run."""
        return {}


def start(draft: Draft, incoming: StartInstance, rules: int) -> Rejected | None:
    """Create the instance, and begin in the same turn if there is nothing to wait for."""
    cell, plan = draft.state.cell, draft.state.plan
    if incoming.definition != plan.definition:
        return Rejected("definition.unknown", incoming.definition.hex())
    if len(draft.entropy) < NONCE_BYTES:
        return Rejected("entropy.short", f"{len(draft.entropy)} bytes, {NONCE_BYTES} needed")
    who = Newcomer(cell, incoming.input, incoming.by)
    try:
        slot = "" if plan.slot is None else slots_key(cell.workflow, value_of(plan.slot.key, who))
        rate = "" if plan.rate is None else rate_key(cell.workflow, value_of(plan.rate.key, who))
    except (ExpressionError, CodecError) as error:
        return Rejected("concurrency.key", str(error))
    search = attributes_of(plan.search, who) if plan.search and rules >= SINCE_RULES else None
    if isinstance(search, Rejected):
        return search
    later = incoming.start_at is not None and incoming.start_at > draft.now
    nonce = draft.entropy[:NONCE_BYTES]
    created = InstanceCreated(
        *(incoming.definition, rules, nonce, incoming.input, incoming.by, slot, incoming.parent),
        search=search,
        start_at=incoming.start_at if later else None,
        rate=rate,
    )
    draft.emit(created)
    if not later:
        go_on(draft)
    return None


def value_of(key: Bound, who: Newcomer) -> Any:
    """The value of a key. Raises ExpressionError."""
    value = key.evaluate(who)
    if not fits(value):
        raise ExpressionError("concurrency.key", "the key is too large")
    return value


def due(draft: Draft) -> None:
    """The time of an instance that was to start later has come."""
    draft.emit(InstanceDue())
    go_on(draft)


def go_on(draft: Draft) -> None:
    """Ask for what it still needs, one after the other, or begin."""
    state, cell, plan = draft.state, draft.state.cell, draft.state.plan
    who = Newcomer(cell, state.input, state.by)
    if plan.slot is not None and not state.granted:
        label = label_of(value_of(plan.slot.key, who))
        asked = AcquireSlot(cell.workflow, cell.key, plan.slot.limit, label, plan.priority)
        draft.send(SLOTS, state.slot, asked)
    elif plan.rate is not None:
        label = label_of(value_of(plan.rate.key, who))
        limit = (plan.rate.limit, plan.rate.per_ms, label, plan.priority)
        draft.send(RATE, state.rate, AskRate(cell.workflow, cell.key, *limit))
    else:
        begin(draft)


def begin(draft: Draft) -> None:
    """Nothing holds it back any more."""
    if not draft.state.queued:
        draft.emit(InstanceQueued(held=False))
    draft.emit(InstanceStarted())


def receive(draft: Draft, incoming: GrantSlot | HoldInstance) -> Rejected | None:
    """The answer of its slots, or of its rate: go on, or wait in line."""
    state = draft.state
    held = isinstance(incoming, HoldInstance)
    if asking(state) != ("rate" if incoming.rate else "slot") or (held and state.queued):
        return Rejected("slot.not_awaited", state.cell.key)
    if held:
        draft.emit(InstanceQueued(held=True))
    elif state.rate and not incoming.rate:
        draft.emit(InstanceGranted())
        go_on(draft)
    else:
        begin(draft)
    return None


def asking(state: Instance) -> str:
    """What it has asked for and waits to be given before it may begin: a slot, or its rate."""
    if state.started is not None or state.start_at is not None:
        return ""
    if state.slot and not state.granted:
        return "slot"
    return "rate" if state.rate else ""


def give_back(draft: Draft) -> None:
    """The instance is closed: others may have its slot, or its places in line."""
    state, who = draft.state, (draft.state.cell.workflow, draft.state.cell.key)
    if state.slot and state.start_at is None:
        draft.send(SLOTS, state.slot, ReleaseSlot(*who))
    if asking(state) == "rate":
        draft.send(RATE, state.rate, LeaveRate(*who))


def label_of(value: Any) -> str:
    """A key in words."""
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True, default=bytes.hex)
    return value if len(value) <= LABEL_MAX else f"{value[: LABEL_MAX - 1]}…"
