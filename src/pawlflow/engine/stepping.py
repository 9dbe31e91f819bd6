"""Stepping: one offer, one cell, one turn staged; or a refusal, on the record where it matters."""

import traceback
from typing import Final, Protocol

from pawlflow.engine.actions import Accepted
from pawlflow.engine.admission import admit
from pawlflow.engine.cells import Hot, Live
from pawlflow.engine.clock import Clock
from pawlflow.engine.fair import Inbox, Offer
from pawlflow.engine.marks import reached
from pawlflow.engine.patience import held_until
from pawlflow.engine.places import mail_of
from pawlflow.engine.plans import Plans
from pawlflow.engine.staging import Staged, Staging
from pawlflow.engine.timers import Deadlines
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.plan import Plan
from pawlflow.kernel.state import SUCCEEDED, Instance
from pawlflow.kernel.step import Cell, Stepped, new_cell, step
from pawlflow.model.ids import CellId, InstanceId, TimeMs
from pawlflow.model.inputs import DeliverEvent, Input, Receipt, StartInstance, Tick
from pawlflow.model.journal import Disposition, Stamps
from pawlflow.model.operate import DiscardInput, RedriveInput
from pawlflow.model.payload import Payload
from pawlflow.model.system import (
    AcquireSlot,
    AwaitEvent,
    Continue,
    EmitEvent,
    GrantSlot,
    HoldInstance,
    ReleaseSlot,
    StopAwaiting,
    Subscribe,
    Unsubscribe,
    is_system,
)
from pawlflow.store.port import Address, Mail, ShardHead, Taken, position


class Core(Protocol):
    """What stepping needs of the shard core."""

    heads: dict[int, ShardHead]
    clock: Clock
    hot: Hot
    plans: Plans
    inbox: Inbox
    deadlines: Deadlines
    took_over: TimeMs | None

    def delivers_at_once(self, address: Address) -> bool:
        """May a send be stepped in its own batch?"""
        ...


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
        "slot.asked",
        "slot.not_awaited",
        "slot.not_held",
        "trigger.unknown",
        "wait.unknown",
        "continue.nothing",
    }
)
# What only cells and clocks say to cells: a refusal is an answer that came too late.
BETWEEN_CELLS: Final = (
    *(Tick, DeliverEvent, GrantSlot, HoldInstance, AcquireSlot, ReleaseSlot),
    *(AwaitEvent, StopAwaiting, Subscribe, Unsubscribe, Continue),
)
CHANCE: Final = (StartInstance, EmitEvent)  # inputs whose turns need entropy
TRACE_LINES: Final = 12  # of a program that raised, for its dead letter


def step_offer(core: Core, staging: Staging, offer: Offer, now: TimeMs) -> None:
    """Step an offer and stage what follows."""
    live = core.hot.get(offer.address)
    incoming = offer.input
    unread = isinstance(incoming, StartInstance) and incoming.definition not in core.plans.known
    if live is None or unread:  # something must be read first
        if offer.sent:
            staging.mail.append(mail_of(offer.cell, offer.input))
        else:
            core.inbox.put(offer, hot=False, front=True)
        return
    if not offer.sent:
        staging.offers.append(offer)
    staged = staging.shard(core.heads[live.shard], now)
    outcome = decide_offer(core, staging, staged, live, offer)
    if isinstance(outcome, Rejected):
        refuse(staging, staged, live, offer, outcome)
        if outcome.code == "timer.not_due" and live.head is not None:
            core.deadlines.note(live.head)  # the clock was set back while it waited
    if offer.token is not None:
        staging.outcomes.append((offer, outcome))
    if offer.mail and isinstance(outcome, Rejected):
        staging.taken.append(Taken(offer.mail, outcome.code, outcome.detail))
    elif offer.mail:
        staging.taken.append(Taken(offer.mail))
    if offer.address in core.inbox.waiting:
        core.inbox.place(offer.address, hot=offer.address in core.hot)


def decide_offer(
    core: Core, staging: Staging, staged: Staged, live: Live, offer: Offer
) -> Accepted | Rejected:
    """What becomes of an input."""
    incoming = offer.input
    if live.head is None and offer.cell.workflow:
        live.id = offer.cell  # what it would be, should it come to be
    if isinstance(incoming, RedriveInput | DiscardInput):
        return resolve_dead(core, staging, staged, live, offer)
    if live.trouble is not None:
        return live.trouble
    if live.head is not None and live.head.quarantined:
        if isinstance(incoming, Tick):  # its deadline is looked at again when the cell goes on
            return Rejected("cell.quarantined", live.id.key)
        put_aside(staging, staged, live, offer, "cell.quarantined", "the cell is put aside")
        return Rejected("cell.quarantined", live.id.key)
    cell = cell_of(core, live, offer)
    if isinstance(cell, Rejected):
        return cell
    if isinstance(incoming, Tick) and is_held(core, staged, live, cell):
        return Rejected("timer.held", live.id.key)
    entropy = core.clock.entropy() if isinstance(incoming, CHANCE) else b""
    stamps = Stamps(staged.now, staged.seq, entropy)
    try:
        admitted = admit(cell, incoming)
        stepped = admitted if isinstance(admitted, Rejected) else step(cell, admitted, stamps)
    except Exception as error:  # noqa: BLE001  # a broken program must not stop the shard
        return quarantine(core, staging, staged, live, offer, error)
    if isinstance(stepped, Rejected):
        return refused_start(cell, offer, stepped)
    return take_turn(core, staging, staged, live, cell, stepped)


def is_held(core: Core, staged: Staged, live: Live, cell: Cell) -> bool:
    """Is the deadline that came held back for an attempt that went down with its engine?"""
    if core.took_over is None or live.head is None:
        return False
    until = held_until(cell.state, core.took_over)
    if until is None or staged.now >= until:
        return False
    reached("timer.held")
    core.deadlines.hold(live.head, until)
    return True


def cell_of(core: Core, live: Live, offer: Offer) -> Cell | Rejected:
    """The cell an input is for; a start, or anything for a system cell, may make it."""
    if live.cell is not None:
        return live.cell
    workflow = offer.cell.workflow
    if is_system(workflow):
        return new_cell(offer.cell, None)
    if not isinstance(offer.input, StartInstance):
        return Rejected("instance.unknown", offer.cell.key)
    plan = core.plans.get(offer.input.definition)
    if plan is None:
        return Rejected("definition.unknown", offer.input.definition.hex())
    if not isinstance(plan, Plan):
        return Rejected(plan.code, str(plan))
    return new_cell(CellId(offer.cell.tenant, plan.workflow, offer.cell.key), plan)


def take_turn(  # the parts of a turn
    core: Core, staging: Staging, staged: Staged, live: Live, cell: Cell, stepped: Stepped
) -> Accepted:
    """Stage a turn, and send on what it sends."""
    live.cell, live.id = cell, cell.state.cell
    core.hot.grow(live, staging.add_turn(staged, live, cell, stepped))
    for send in stepped.turn.sends:
        address = (live.id.tenant, InstanceId(send.key))
        staging.send(live, send, at_once=core.delivers_at_once(address))
    return Accepted(live.id.key, stepped.turn.number)


def refused_start(cell: Cell, offer: Offer, refused: Rejected) -> Accepted | Rejected:
    """Starting twice with the same input is starting once; with another it is a conflict."""
    state, incoming = cell.state, offer.input
    if refused.code != "instance.exists" or not isinstance(incoming, StartInstance):
        return refused
    assert isinstance(state, Instance)
    key, workflow = state.cell.key, state.cell.workflow
    if state.input == incoming.input and workflow == offer.cell.workflow:
        return Accepted(key, state.turn, existing=True)
    why = f"{workflow} with another input" if workflow == offer.cell.workflow else workflow
    return Rejected("instance.conflict", f"{key} was started as {why}")


def refuse(staging: Staging, staged: Staged, live: Live, offer: Offer, refused: Rejected) -> None:
    """Put a refusal on the record, if somebody outside was refused something."""
    if refused.code in NO_OPS or isinstance(offer.input, BETWEEN_CELLS) or live.ref is None:
        return
    if live.trouble is not None or refused.code in ("cell.quarantined", "cell.raised"):
        return
    if isinstance(offer.input, Receipt) and not is_news(live, offer.input):
        return
    dispose(staging, staged, live, offer.input, Verdict("rejected", refused.code, refused.detail))


def is_news(live: Live, receipt: Receipt) -> bool:
    """Does a refused receipt tell of something that was done, and that nobody knew of?"""
    state = None if live.cell is None else live.cell.state
    if receipt.outcome != "ok" or not isinstance(state, Instance):
        return False
    key = state.keys.get(receipt.key)
    if key is None or key.direction == "undo":
        return key is None
    unit = state.unit(key.step)
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
