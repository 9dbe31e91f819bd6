"""Outcomes: what follows the answer of a commit, whatever it was."""

from collections.abc import Sequence
from itertools import compress

from pawlflow.engine.actions import Notify, Publish, Reply, Stopped
from pawlflow.engine.core import Core
from pawlflow.engine.marks import reached
from pawlflow.engine.places import shard_of, shard_of_address
from pawlflow.engine.staging import Staging
from pawlflow.engine.timers import NOTHING_READ
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import TimeMs
from pawlflow.model.intents import Intent, Stop
from pawlflow.store.port import ShardHead


def committed(core: Core, staging: Staging, now: TimeMs) -> None:
    """The batch is durable: everything that waited for it may be seen now."""
    for moved in core.tips.values():
        owned = core.heads.get(moved.shard)
        if owned is not None and owned.epoch == moved.epoch:
            core.heads[moved.shard] = moved
    core.tips = {}
    ahead = core.unwritten()
    core.full_until = None
    core.unknowns = 0
    core.plans.add(staging.definitions)
    for head in staging.heads.values():
        if head.shard not in core.heads:  # handed over while it was written
            continue
        address = (head.cell.tenant, head.cell.key)
        core.deadlines.note(head)
        core.reoffers.heard(address, now, calls=0 if head.quarantined else head.calls)
        over = head.closed_at is not None and address not in core.inbox.waiting
        if over and address not in ahead:
            core.hot.drop(address)  # nothing more will happen to it
    core.held.difference_update(taken.id for taken in staging.taken)
    core.mail_waits = core.mail_waits or bool(staging.mail)
    intents: Sequence[Intent] = staging.intents
    if not core.heads.keys() >= staging.fenced.keys():
        calls = ((each.call if isinstance(each, Stop) else each) for each in intents)
        owned_now = [shard_of(call.cell) in core.heads for call in calls]
        intents = list(compress(intents, owned_now))
    if intents:
        core.out.append(Publish(tuple(intents)))
    reply(core, staging)
    if staging.committed:
        core.out.append(Notify(tuple(staging.committed)))
    core.hot.trim(ahead)
    if not ahead and core.buggify("cache.evict"):
        core.hot.clear()


def reply(core: Core, staging: Staging) -> None:
    """Tell every caller of this process what became of its input."""
    for offer, outcome in staging.outcomes:
        assert offer.token is not None
        core.out.append(Reply(offer.token, outcome))


def try_again(core: Core, staging: Staging) -> None:
    """Nothing was written: all is as it was before the batch."""
    core.staging, core.tips = None, {}
    take_back(core, staging)


def unmake(core: Core) -> None:
    """What was stepped on top of a commit that failed, or of shards that went, is taken back."""
    making, core.making = core.making, None
    if making is not None:
        reached("ahead.taken_back")
        take_back(core, making)


def take_back(core: Core, staging: Staging) -> None:
    """Forget every cell that a batch touched, and offer its inputs again."""
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
    if core.heads.keys().isdisjoint(shards):
        return
    unmake(core)
    gone = {shard for shard in shards if core.heads.pop(shard, None) is not None}
    core.tips = {shard: head for shard, head in core.tips.items() if shard not in gone}
    for address in [a for a, live in core.hot.cells.items() if live.shard in gone]:
        core.hot.drop(address)
    for address in [a for a in core.silent if shard_of_address(a) in gone]:
        del core.silent[address]
    for address in [a for a in core.reoffers.placed if shard_of_address(a) in gone]:
        core.reoffers.heard(address, 0, calls=0)
    core.out.append(Stopped(tuple(gone), "shard.elsewhere", why))
    for offer in core.inbox.remove(lambda address: shard_of_address(address) in gone):
        core.forward(offer)


def gain(core: Core, heads: Sequence[ShardHead]) -> None:
    """Own these shards too. What waits for them in the store is read from its beginning."""
    found = {head.shard: head for head in heads}
    lose(core, [shard for shard in found if shard in core.heads], "it was claimed again")
    core.heads |= found
    core.gains += 1
    core.mail_after, core.mail_waits = 0, True
    core.deadlines.horizon = NOTHING_READ
    earlier = {} if core.recover_after is None else core.recovered
    core.recover_after, core.recovered = 0, earlier | dict.fromkeys(found)


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
