"""Refusals and dead letters: inputs that became no turn, on the record where it matters."""

import traceback
from typing import Any, Final

import msgspec

from pawlflow.engine.cells import Live
from pawlflow.engine.core import Core
from pawlflow.engine.fair import Offer
from pawlflow.engine.marks import reached
from pawlflow.engine.orphans import orphan_in
from pawlflow.engine.staging import Staged, Staging
from pawlflow.engine.system.beside import mark_of
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import SUCCEEDED
from pawlflow.model import system as cells
from pawlflow.model import timed
from pawlflow.model.batches import TellBatch
from pawlflow.model.failure import failure_of
from pawlflow.model.inputs import (
    DeliverEvent,
    GrantSlot,
    HoldInstance,
    Input,
    Receipt,
    StartInstance,
    Tick,
)
from pawlflow.model.journal import Disposition, Send
from pawlflow.model.kin import Parent
from pawlflow.model.payload import Payload
from pawlflow.store.port import position

# Refusals that say "that has happened already", or "that was not for you": nothing to record.
NO_OPS: Final = frozenset(
    (
        *("receipt.not_awaited", "timer.held", "timer.not_due", "event.not_awaited"),
        *("instance.exists", "instance.unknown", "definition.same", "rate.asked"),
        *("rate.not_awaited", "schedule.same", "slot.asked", "slot.not_awaited", "slot.not_held"),
        *("trigger.unknown", "wait.unknown", "continue.nothing", "batch.not_awaited"),
        *("checkpoint.kept", "retention.kept"),
    )
)
# What only cells and clocks say to cells: a refusal is an answer that came too late.
BETWEEN_CELLS: Final = (
    *(Tick, DeliverEvent, GrantSlot, HoldInstance, cells.AcquireSlot, cells.ReleaseSlot),
    *(cells.AwaitEvent, cells.StopAwaiting, cells.Subscribe, cells.Unsubscribe, cells.Continue),
    *(timed.AskRate, timed.LeaveRate, timed.SetSchedule, timed.RemoveSchedule),
    *(timed.ScheduleTick, TellBatch),
)
TRACE_LINES: Final = 12  # of a program that raised, for its dead letter


def refuse(staging: Staging, staged: Staged, live: Live, offer: Offer, refused: Rejected) -> None:
    """Put a refusal on the record, if somebody outside was refused something."""
    if isinstance(offer.input, StartInstance) and offer.input.parent is not None:
        tell_parent(staging, live, offer.input.parent, refused)
    if live.trouble is not None or refused.code in ("cell.quarantined", "cell.raised"):
        return
    if live.ref is None and (is_scheduled(offer.input) or isinstance(offer.input, Receipt)):
        put_aside(staging, staged, live, offer, refused.code, refused.detail)
    if refused.code in NO_OPS or isinstance(offer.input, BETWEEN_CELLS) or live.ref is None:
        return
    kind = "dead" if refused.code == "receipt.unknown" else "rejected"
    verdict = Verdict(kind, refused.code, refused.detail)
    if isinstance(offer.input, Receipt):
        if not is_news(live, offer.input):
            return
        asked = orphan_in(live, offer.input, staged.now)
        if asked is not None:
            verdict = Verdict("rejected", "effect.orphaned", {"review": asked.step})
        if mark_of(verdict.kind, verdict.code, offer.input) in (live.beside or ()):
            return  # on the record already, and perhaps dealt with
        if asked is not None:
            staging.keep(live, asked.step, asked)
    dispose(staging, staged, live, offer.input, verdict)


def tell_parent(staging: Staging, live: Live, parent: Parent, refused: Rejected) -> None:
    """A child that cannot begin has failed: otherwise its parent would wait for ever."""
    said = f"the child was refused: {refused.detail}"
    failure = failure_of("terminal", refused.code, said, tenant=live.id.tenant)
    receipt = Receipt(parent.step_key, parent.attempt, "failed", failure=failure)
    staging.send(live, Send(parent.workflow, parent.key, receipt), at_once=False)


def is_scheduled(incoming: Input) -> bool:
    """Is this a start that nobody waits for, because a schedule or an event sent it?"""
    start = incoming if isinstance(incoming, StartInstance) and not incoming.parent else None
    return start is not None and start.by.startswith((timed.STARTER, cells.TRIGGER))


def is_news(live: Live, receipt: Receipt) -> bool:
    """Does a refused receipt tell of something that was done, and that nobody knew of?"""
    state = None if live.cell is None else live.cell.state
    if receipt.outcome != "ok" or not isinstance(state, Instance):
        return False
    key = state.keys.get(receipt.key)
    if key is None or key.direction != "do":
        return key is None
    unit = state.of_round(key.step, key.item, key.round)
    return unit.status != SUCCEEDED and unit.late is None


def put_aside(  # a dead letter's parts
    staging: Staging, staged: Staged, live: Live, offer: Offer, code: str, detail: str
) -> None:
    """A dead letter: the input with all that belongs to it, for a human to look at."""
    dispose(staging, staged, live, offer.input, Verdict("dead", code, detail))


def quarantine(  # what is known about a program that raised
    core: Core, staging: Staging, staged: Staged, live: Live, offer: Offer, error: Exception
) -> Rejected:
    """A program raised: its live state is spoilt, its input is a dead letter, a human is asked."""
    reached("cell.quarantined")
    said = "".join(traceback.format_exception(error)[-TRACE_LINES:])
    put_aside(staging, staged, live, offer, "cell.raised", said)
    if live.head is None:  # it broke before its first turn: there is no cell to put aside
        return Rejected("cell.raised", f"{type(error).__name__}: {error}")
    head = staging.quarantine(live, live.head, held=True, now=staged.now)
    core.hot.drop(offer.address)
    spoilt = Live(live.id, None, live.shard, head)
    core.hot.put(spoilt)
    staging.touched[offer.address] = spoilt
    return Rejected("cell.quarantined", f"{type(error).__name__}: {error}")


class Verdict(msgspec.Struct, frozen=True):
    """Why an input became no turn."""

    kind: str
    code: str
    detail: Any


def dispose(
    staging: Staging, staged: Staged, live: Live, incoming: Input, verdict: Verdict
) -> None:
    """Stage a disposition of this cell; one that never was is known by the entry itself."""
    ref = position(staged.head.shard, staged.seq) if live.ref is None else live.ref
    detail = Payload.of(verdict.detail, live.id.tenant)
    said = (verdict.code, detail, incoming, staged.now)
    disposed = Disposition(live.id, verdict.kind, *said)  # type: ignore[arg-type]
    staging.add_disposition(staged, ref, disposed)
    staging.touched[live.id.tenant, live.id.key] = live
    if live.beside is not None:
        live.beside.add(mark_of(verdict.kind, verdict.code, incoming))
