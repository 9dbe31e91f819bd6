"""Outcomes: what follows the answer of a commit, whatever it was."""

from collections.abc import Sequence

from pawlflow.engine.actions import Notify, Publish, Reply, Stopped
from pawlflow.engine.core import Core
from pawlflow.engine.places import shard_of_address
from pawlflow.engine.staging import Staging
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import TimeMs


def committed(core: Core, staging: Staging, now: TimeMs) -> None:
    """The batch is durable: everything that waited for it may be seen now."""
    for moved in staging.new_heads():
        if moved.shard in core.heads:
            core.heads[moved.shard] = moved
    core.full_until = None
    core.unknowns = 0
    core.plans.add(staging.definitions)
    for head in staging.heads.values():
        address = (head.cell.tenant, head.cell.key)
        core.deadlines.note(head)
        core.reoffers.heard(address, now, calls=0 if head.quarantined else head.calls)
        if head.closed_at is not None and address not in core.inbox.waiting:
            core.hot.drop(address)  # nothing more will happen to it
    core.held.difference_update(taken.id for taken in staging.taken)
    core.mail_waits = core.mail_waits or bool(staging.mail)
    if staging.intents:
        core.out.append(Publish(tuple(staging.intents)))
    reply(core, staging)
    if staging.committed:
        core.out.append(Notify(tuple(staging.committed)))
    core.hot.trim()
    if core.buggify("cache.evict"):
        core.hot.clear()


def reply(core: Core, staging: Staging) -> None:
    """Tell every caller of this process what became of its input."""
    for offer, outcome in staging.outcomes:
        assert offer.token is not None
        core.out.append(Reply(offer.token, outcome))


def try_again(core: Core, staging: Staging) -> None:
    """Nothing was written: forget every cell the batch touched, and offer its inputs again."""
    core.staging = None
    forget(core, staging)
    core.unreadable += staging.unreadable
    for offer in reversed(staging.offers):
        refused = core.refuses(offer.cell, offer.input) if offer.token is not None else None
        if refused is not None and offer.token is not None:
            core.out.append(Reply(offer.token, refused))
        else:
            core.put(offer, front=True)


def forget(core: Core, staging: Staging) -> None:
    """Drop the cells a batch touched; they are read again when needed."""
    for address in staging.touched:
        core.hot.drop(address)
        core.inbox.place(address, hot=False)


def lose(core: Core, shards: Sequence[int], why: str) -> None:
    """Other nodes own these shards: say nothing more about them."""
    gone = {shard for shard in shards if core.heads.pop(shard, None) is not None}
    for address in [a for a, live in core.hot.cells.items() if live.shard in gone]:
        core.hot.drop(address)
    for address in [a for a in core.silent if shard_of_address(a) in gone]:
        del core.silent[address]
    for address in [a for a in core.reoffers.placed if shard_of_address(a) in gone]:
        core.reoffers.heard(address, 0, calls=0)
    core.out.append(Stopped(tuple(gone), "shard.elsewhere", why))
    for offer in core.inbox.remove(lambda address: shard_of_address(address) in gone):
        core.held.discard(offer.mail)
        if offer.token is not None:
            refused = Rejected("shard.elsewhere", "another node owns it now")
            core.out.append(Reply(offer.token, refused))


def stop(core: Core, code: str, message: str) -> None:
    """The store failed: nothing is known to be durable any more, so nothing more is said."""
    core.stopped = Stopped(tuple(core.heads), code, message)
    core.out.append(core.stopped)
    batches, core.staging, core.making = (core.staging, core.making), None, None
    refused = Rejected(code, message)
    taken = [offer for staging in batches if staging for offer in staging.offers]
    offers = [*taken, *core.inbox.remove(lambda _: True)]
    for offer in offers:
        if offer.token is not None:
            core.out.append(Reply(offer.token, refused))
