"""Letters: people deal with inputs that lie beside the turns of a cell, each of them once."""

from typing import Final

from pawlflow.engine.actions import Accepted
from pawlflow.engine.cells import Live
from pawlflow.engine.core import Core
from pawlflow.engine.fair import Offer
from pawlflow.engine.orphans import is_orphan
from pawlflow.engine.places import offer_of
from pawlflow.engine.refusals import Verdict, dispose, is_news
from pawlflow.engine.staging import Staged, Staging
from pawlflow.engine.system.beside import mark_of
from pawlflow.engine.system.removal import is_early, remove
from pawlflow.kernel.draft import Rejected
from pawlflow.model.codec import CodecError
from pawlflow.model.inputs import Input, Receipt, StartInstance
from pawlflow.model.operate import DiscardInput, RedriveInput, RemoveInstance
from pawlflow.model.payload import PayloadError
from pawlflow.model.reviews import SettleReview
from pawlflow.store.port import Mail

DEALT_WITH: Final = (RedriveInput, DiscardInput)  # a union would be made anew for every offer


def comes_early(staging: Staging, live: Live, offer: Offer) -> bool:
    """Must something be known, or durable, before this can be decided?"""
    return looks_beside(live, offer.input) or is_early(staging, offer)


def looks_beside(live: Live, incoming: Input) -> bool:
    """Must it be known first what lies beside the turns of the cell?"""
    if live.beside is not None:
        return False
    if isinstance(incoming, Receipt):
        closed = live.head is not None and live.head.closed_at is not None
        return closed and is_news(live, incoming)
    return isinstance(incoming, DEALT_WITH)


def resolve(
    core: Core, staging: Staging, staged: Staged, live: Live, offer: Offer
) -> Accepted | Rejected:
    """A human has dealt with something beside the turns of a cell; or the cell is to go."""
    if isinstance(offer.input, RemoveInstance):
        return remove(core, staging, staged, live, offer.input)
    if isinstance(offer.input, SettleReview):
        return settle_orphan(staging, staged, live, offer.input)
    return resolve_dead(core, staging, staged, live, offer)


def resolve_dead(
    core: Core, staging: Staging, staged: Staged, live: Live, offer: Offer
) -> Accepted | Rejected:
    """A human sends a dead input once more, or throws it away; the cell goes on."""
    incoming = offer.input
    assert isinstance(incoming, RedriveInput | DiscardInput)
    verb = "redriven" if isinstance(incoming, RedriveInput) else "discarded"
    if mark_of(verb, "", incoming) in (live.beside or ()):
        return Rejected("dlq.resolved", f"letter {incoming.entry} was dealt with already")
    mail = sent_again(offer, incoming, staged) if isinstance(incoming, RedriveInput) else None
    if isinstance(mail, Rejected):
        return mail
    detail = {"entry": incoming.entry, "by": incoming.by}
    dispose(staging, staged, live, incoming, Verdict(verb, "dlq.resolved", detail))
    if live.head is not None and live.head.quarantined:
        live.head = staging.quarantine(live, live.head, held=False, now=staged.now)
        core.hot.drop(offer.address)  # its live state was spoilt: it is read again
    if mail is not None:  # by mail: this turn of events must be durable first
        staging.mail.append(mail)
    return Accepted(live.id.key, 0 if live.head is None else live.head.turn)


def sent_again(offer: Offer, incoming: RedriveInput, staged: Staged) -> Mail | Rejected:
    """The input of a letter as mail, unless somebody was told already that it came to nothing."""
    data, beside = incoming.original.value
    mail = Mail(shard=staged.head.shard, cell=offer.cell, input=data, beside=beside)
    try:
        original = offer_of(mail).input
    except (CodecError, PayloadError) as error:
        return Rejected("mail.unreadable", str(error))
    parent = original.parent if isinstance(original, StartInstance) else None
    if parent is None:
        return mail
    told = f"{parent.key} was told that its step {parent.step} failed"
    return Rejected("dlq.answered", f"{told}: retry that step, and discard the letter")


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
