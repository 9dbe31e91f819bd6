"""Stepping: one offer, one cell, one turn staged; or a refusal, on the record where it matters."""

from typing import Final

from pawlflow.engine.actions import Accepted
from pawlflow.engine.admission import admit
from pawlflow.engine.cells import Live
from pawlflow.engine.core import Core
from pawlflow.engine.fair import Offer
from pawlflow.engine.marks import reached
from pawlflow.engine.patience import held_until
from pawlflow.engine.places import mail_of
from pawlflow.engine.refusals import put_aside, quarantine, refuse
from pawlflow.engine.staging import Staged, Staging
from pawlflow.engine.system.letters import comes_early, resolve
from pawlflow.engine.system.telling import tell_batch
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.state import Instance
from pawlflow.kernel.step import Cell, Stepped, new_cell, step
from pawlflow.model.ids import CellId, InstanceId
from pawlflow.model.inputs import Receipt, StartInstance, Tick
from pawlflow.model.journal import Stamps
from pawlflow.model.operate import DiscardInput, RedriveInput, RemoveInstance
from pawlflow.model.reviews import SettleReview
from pawlflow.model.system import EmitEvent, is_system
from pawlflow.store.port import Taken

CHANCE: Final = (StartInstance, EmitEvent)  # inputs whose turns need entropy
# About inputs that were put aside, and about all that there is of a cell.
FOR_SHARDS: Final = frozenset({RedriveInput, DiscardInput, SettleReview, RemoveInstance})


def step_offer(core: Core, staging: Staging, offer: Offer) -> None:
    """Step an offer and stage what follows."""
    live = core.hot.get(offer.address)
    incoming = offer.input
    # What comes most often, the answer of an executor to an open instance, waits for nothing.
    open_ = live is not None and live.head is not None and live.head.closed_at is None
    usual = open_ and type(incoming) is Receipt
    unread = isinstance(incoming, StartInstance) and incoming.definition not in core.plans.known
    if live is None or unread or (not usual and comes_early(staging, live, offer)):
        if offer.sent:
            staging.mail.append(mail_of(offer.cell, offer.input))
        else:
            core.inbox.put(offer, hot=False, front=True)
        return
    if not offer.sent:
        staging.offers.append(offer)
    staged = staging.shards.get(live.shard) or staging.shard(core.tip(live.shard), staging.now)
    outcome = decide_offer(core, staging, staged, live, offer)
    if isinstance(outcome, Rejected):
        refuse(staging, staged, live, offer, outcome)
        if outcome.code == "timer.not_due" and live.head is not None:
            core.deadlines.note(live.head)  # the clock was set back while it waited
    if not usual:
        tell_batch(staging, live, incoming, outcome)
    if offer.token is not None:
        staging.outcomes.append((offer, outcome))
    if offer.mail:
        told = (outcome.code, outcome.detail) if isinstance(outcome, Rejected) else ()
        staging.taken.append(Taken(offer.mail, *told))
    if offer.address in core.inbox.waiting:
        core.inbox.place(offer.address, hot=offer.address in core.hot)


def decide_offer(
    core: Core, staging: Staging, staged: Staged, live: Live, offer: Offer
) -> Accepted | Rejected:
    """What becomes of an input."""
    incoming = offer.input
    if live.head is None and offer.cell.workflow:
        live.id = offer.cell  # what it would be, should it come to be
    if type(incoming) in FOR_SHARDS:
        return resolve(core, staging, staged, live, offer)
    if live.trouble is not None:
        return live.trouble
    if live.head is not None and live.head.quarantined:
        if isinstance(incoming, Tick):  # its deadline is looked at again when the cell goes on
            return Rejected("cell.quarantined", live.id.key)
        put_aside(staging, staged, live, offer, "cell.quarantined", "the cell is put aside")
        return Rejected("cell.quarantined", live.id.key)
    cell = live.cell or cell_of(core, offer)
    if isinstance(cell, Rejected):
        return cell
    if isinstance(incoming, Tick) and is_held(core, staged, live, cell):
        return Rejected("timer.held", live.id.key)
    entropy = core.clock.entropy() if isinstance(incoming, CHANCE) else b""
    stamps = Stamps(staged.now, staged.seq, entropy)
    try:
        admitted = admit(cell, incoming, staged.now)
        stepped = admitted if isinstance(admitted, Rejected) else step(cell, admitted, stamps)
    except Exception as error:  # noqa: BLE001  # a broken program must not stop the shard
        return quarantine(core, staging, staged, live, offer, error)
    if isinstance(stepped, Rejected):
        return refused_start(cell, offer, stepped)
    return take_turn(core, staging, staged, live, cell, stepped)


def is_held(core: Core, staged: Staged, live: Live, cell: Cell) -> bool:
    """Is the deadline that came held back for an attempt that went down with its engine?"""
    took_over = core.took_over.get(live.shard)
    if took_over is None or live.head is None:
        return False
    until = held_until(cell.state, took_over, core.begun, staged.now)
    if until is None or staged.now >= until:
        return False
    reached("timer.held")
    core.deadlines.hold(live.head, until)
    return True


def cell_of(core: Core, offer: Offer) -> Cell | Rejected:
    """The cell that an input makes: a start an instance, anything a system cell."""
    workflow = offer.cell.workflow
    if is_system(workflow):
        return new_cell(offer.cell, None)
    if not isinstance(offer.input, StartInstance):
        return Rejected("instance.unknown", offer.cell.key)
    plan = core.plans.known.get(offer.input.definition)
    if plan is None:
        return Rejected("definition.unknown", offer.input.definition.hex())
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
    if refused.code == "review.yours":  # claiming twice is claiming once
        return Accepted(state.cell.key, state.turn, existing=True)
    if refused.code != "instance.exists" or not isinstance(incoming, StartInstance):
        return refused
    assert isinstance(state, Instance)
    key, workflow = state.cell.key, state.cell.workflow
    if state.input == incoming.input and workflow == offer.cell.workflow:
        return Accepted(key, state.turn, existing=True)
    why = f"{workflow} with another input" if workflow == offer.cell.workflow else workflow
    return Rejected("instance.conflict", f"{key} was started as {why}")
