"""Refusals and dead letters: inputs that became no turn, on the record where it matters."""

import traceback
from typing import Final

from pawlflow.engine.actions import Accepted
from pawlflow.engine.cells import Live
from pawlflow.engine.core import Core
from pawlflow.engine.fair import Offer
from pawlflow.engine.marks import reached
from pawlflow.engine.orphans import is_orphan, open_orphan
from pawlflow.engine.staging import Staged, Staging
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import SUCCEEDED
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
from pawlflow.model.operate import DiscardInput, RedriveInput
from pawlflow.model.payload import Payload
from pawlflow.model.reviews import SettleReview
from pawlflow.model.system import (
    AcquireSlot,
    AwaitEvent,
    Continue,
    ReleaseSlot,
    StopAwaiting,
    Subscribe,
    Unsubscribe,
)
from pawlflow.model.timed import (
    STARTER,
    AskRate,
    LeaveRate,
    RemoveSchedule,
    ScheduleTick,
    SetSchedule,
)
from pawlflow.store.port import Mail, position

# Refusals that say "that has happened already", or "that was not for you": nothing to record.
NO_OPS: Final = frozenset(
    {
        "receipt.not_awaited",
        "timer.held",
        "timer.not_due",
        "event.not_awaited",
        "instance.exists",
        "instance.unknown",
        "definition.same",
        "rate.asked",
        "rate.not_awaited",
        "schedule.same",
        "slot.asked",
        "slot.not_awaited",
        "slot.not_held",
        "trigger.unknown",
        "wait.unknown",
        "continue.nothing",
        "batch.not_awaited",
    }
)
# What only cells and clocks say to cells: a refusal is an answer that came too late.
BETWEEN_CELLS: Final = (
    *(Tick, DeliverEvent, GrantSlot, HoldInstance, AcquireSlot, ReleaseSlot),
    *(AwaitEvent, StopAwaiting, Subscribe, Unsubscribe, Continue, TellBatch),
    *(AskRate, LeaveRate, SetSchedule, RemoveSchedule, ScheduleTick),
)
TRACE_LINES: Final = 12  # of a program that raised, for its dead letter


def refuse(staging: Staging, staged: Staged, live: Live, offer: Offer, refused: Rejected) -> None:
    """Put a refusal on the record, if somebody outside was refused something."""
    if isinstance(offer.input, StartInstance) and offer.input.parent is not None:
        tell_parent(staging, live, offer.input.parent, refused)
    if live.trouble is not None or refused.code in ("cell.quarantined", "cell.raised"):
        return
    if live.ref is None and is_scheduled(offer.input):
        put_aside(staging, staged, live, offer, refused.code, refused.detail)
    if refused.code in NO_OPS or isinstance(offer.input, BETWEEN_CELLS) or live.ref is None:
        return
    verdict = Verdict("rejected", refused.code, refused.detail)
    if isinstance(offer.input, Receipt):
        if not is_news(live, offer.input):
            return
        review = open_orphan(staging, live, offer.input, staged.now)
        verdict = Verdict("rejected", "effect.orphaned", review) if review else verdict
    dispose(staging, staged, live, offer.input, verdict)


def tell_parent(staging: Staging, live: Live, parent: Parent, refused: Rejected) -> None:
    """A child that cannot begin has failed: otherwise its parent would wait for ever."""
    said = f"the child was refused: {refused.detail}"
    failure = failure_of("terminal", refused.code, said, tenant=live.id.tenant)
    receipt = Receipt(parent.step_key, parent.attempt, "failed", failure=failure)
    staging.send(live, Send(parent.workflow, parent.key, receipt), at_once=False)


def is_scheduled(incoming: Input) -> bool:
    """Is this a start that nobody waits for, because a schedule sent it?"""
    start = incoming if isinstance(incoming, StartInstance) and not incoming.parent else None
    return start is not None and start.by.startswith(STARTER)


def is_news(live: Live, receipt: Receipt) -> bool:
    """Does a refused receipt tell of something that was done, and that nobody knew of?"""
    state = None if live.cell is None else live.cell.state
    if receipt.outcome != "ok" or not isinstance(state, Instance):
        return False
    key = state.keys.get(receipt.key)
    if key is None or key.direction == "undo":
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
    head = staging.quarantine(live.head, held=True, now=staged.now)
    core.hot.drop(offer.address)
    spoilt = Live(live.id, None, live.shard, head)
    core.hot.put(spoilt)
    staging.touched[offer.address] = spoilt
    return Rejected("cell.quarantined", f"{type(error).__name__}: {error}")


def resolve(
    core: Core, staging: Staging, staged: Staged, live: Live, offer: Offer
) -> Accepted | Rejected:
    """A human has dealt with something that lies beside the turns of a cell."""
    if isinstance(offer.input, SettleReview):
        return settle_orphan(staging, staged, live, offer.input)
    return resolve_dead(core, staging, staged, live, offer)


def resolve_dead(
    core: Core, staging: Staging, staged: Staged, live: Live, offer: Offer
) -> Accepted | Rejected:
    """A human sends a dead input once more, or throws it away; the cell goes on."""
    incoming = offer.input
    assert isinstance(incoming, RedriveInput | DiscardInput)
    again = isinstance(incoming, RedriveInput)
    detail = {"entry": incoming.entry, "by": incoming.by}
    verdict = Verdict("redriven" if again else "discarded", "dlq.resolved", detail)
    dispose(staging, staged, live, incoming, verdict)
    if live.head is not None and live.head.quarantined:
        live.head = staging.quarantine(live.head, held=False, now=staged.now)
        core.hot.drop(offer.address)  # its live state was spoilt: it is read again
        staging.touched[offer.address] = live
    if isinstance(incoming, RedriveInput):  # by mail: this turn of events must be durable first
        data, beside = incoming.original.value
        shard = staged.head.shard
        staging.mail.append(Mail(shard=shard, cell=offer.cell, input=data, beside=beside))
    return Accepted(live.id.key, 0 if live.head is None else live.head.turn)


def settle_orphan(
    staging: Staging, staged: Staged, live: Live, incoming: SettleReview
) -> Accepted | Rejected:
    """A human has dealt with an effect that nobody waits for: nobody is asked any more."""
    if live.head is None or not is_orphan(live, incoming.step):
        return Rejected("review.unknown", incoming.step)
    verdict = Verdict("settled", "review.settled", {"review": incoming.step, "by": incoming.by})
    dispose(staging, staged, live, incoming, verdict)
    staging.keep(live, incoming.step, None)
    return Accepted(live.id.key, live.head.turn)


class Verdict:
    """Why an input became no turn."""

    __slots__ = ("code", "detail", "kind")

    def __init__(self, kind: str, code: str, detail: object) -> None:
        self.kind = kind
        self.code = code
        self.detail = detail


def dispose(
    staging: Staging, staged: Staged, live: Live, incoming: Input, verdict: Verdict
) -> None:
    """Stage a disposition of this cell; one that never was is known by the entry itself."""
    ref = position(staged.head.shard, staged.seq) if live.ref is None else live.ref
    detail = Payload.of(verdict.detail, live.id.tenant)
    disposed = Disposition(
        live.id,
        verdict.kind,  # type: ignore[arg-type]
        verdict.code,
        detail,
        incoming,
        staged.now,
    )
    staging.add_disposition(staged, ref, disposed)
