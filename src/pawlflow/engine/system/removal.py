"""Removal: a closed instance whose time is over goes, in one commit with the entry that says so.

Whoever asks says which turn was its last: what goes is what was looked at, and perhaps archived.
The shard decides by the instance's own definition, so nobody can ask for more than that allows.
"""

from pawlflow.engine.actions import Accepted
from pawlflow.engine.cells import Live
from pawlflow.engine.core import Core
from pawlflow.engine.fair import Offer
from pawlflow.engine.refusals import Verdict, dispose
from pawlflow.engine.staging import Staged, Staging
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.state import Instance
from pawlflow.kernel.system.loop import Loop
from pawlflow.kernel.system.retention import expiry_of
from pawlflow.model.ids import TimeMs
from pawlflow.model.operate import RemoveInstance


def is_early(staging: Staging, offer: Offer) -> bool:
    """Does this batch write something of the cell? Then it goes with the next one."""
    return type(offer.input) is RemoveInstance and offer.address in staging.touched


def remove(
    core: Core, staging: Staging, staged: Staged, live: Live, asked: RemoveInstance
) -> Accepted | Rejected:
    """Take a closed instance, or the checkpoints of one, out of the store."""
    head, address = live.head, (live.id.tenant, live.id.key)
    if live.trouble is not None:
        return live.trouble
    if head is None:
        return Rejected("instance.unknown", live.id.key)
    why = kept_because(live, asked, staged.now)
    if why:
        return Rejected("retention.kept", why)
    detail = {"state": head.state, "created_at": head.created_at, "closed_at": head.closed_at}
    dispose(staging, staged, live, asked, Verdict("removed", "retention.over", detail))
    staging.removed.append(head)
    staging.touched[address] = Live(live.id, None, live.shard, None)
    staging.bytes += live.size  # what is taken out counts as what is written: a batch stays short
    core.hot.drop(address)  # who comes now is told once this is durable
    return Accepted(live.id.key, head.turn)


def kept_because(live: Live, asked: RemoveInstance, now: TimeMs) -> str:
    """Why a cell may not go; nothing if it may."""
    head, state = live.head, None if live.cell is None else live.cell.state
    assert head is not None
    if head.quarantined or state is None:
        return "it is put aside until somebody has looked at it"
    if (asked.turn, asked.hash) != (head.turn, head.hash):
        return f"its last turn is {head.turn}, and another one than was said"
    if isinstance(state, Loop):
        return "" if state.closed is not None else "its loop is open"
    until = expiry_of(state) if isinstance(state, Instance) else None
    if until is None:
        return "nothing says how long it is kept"
    return "" if until <= now else f"its time is not over: {until - now} ms are left"
