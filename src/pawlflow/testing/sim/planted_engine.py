"""Planted bugs in the engine: order of commit and publication, unknown outcomes, timers, caches."""

from typing import Any, Final

from msgspec.structs import replace

from pawlflow.engine import (
    cells,
    drivers,
    fair,
    outcomes,
    refusals,
    shard,
    staging,
    stepping,
    timers,
)
from pawlflow.engine.actions import Append, Publish
from pawlflow.engine.places import offer_of, shard_of
from pawlflow.engine.shard import Shards
from pawlflow.engine.staging import Staging
from pawlflow.kernel.draft import open_intents
from pawlflow.kernel.snapshot import SEAL_BYTES
from pawlflow.model.ids import Tenant
from pawlflow.model.intents import Call
from pawlflow.store.port import StoreConflictError, StoreFullError, StoreUnknownError
from pawlflow.testing.sim.patching import Change, real


def publish_before_flush() -> list[Change]:
    """Effects leave while the commit is still under way."""
    old = Shards.stage

    def stage(self: Shards, now: Any) -> None:
        old(self, now)
        if self.out and isinstance(self.out[-1], Append) and self.staging is not None:
            self.out.insert(len(self.out) - 1, Publish(tuple(self.staging.intents)))

    return [(Shards, "stage", stage)]


def reply_before_flush() -> list[Change]:
    """Callers are told while the commit is still under way."""
    old = Shards.stage

    def stage(self: Shards, now: Any) -> None:
        old(self, now)
        if self.out and isinstance(self.out[-1], Append) and self.staging is not None:
            outcomes.reply(self, self.staging)

    return [(Shards, "stage", stage)]


def no_ops_unfenced() -> list[Change]:
    """An answer that writes nothing is given without asking whether the shard is still ours."""
    old = Staging.seal

    def seal(self: Staging, id_: bytes, fences: Any) -> Any:
        needed = {each.head.shard for each in self.shards.values() if each.entries}
        needed |= {shard_of(offer.cell) for offer in self.offers if offer.mail}
        needed |= {shard for shard, _ in self.unreadable}
        return old(self, id_, [head for head in fences if head.shard in needed])

    return [(Staging, "seal", seal)]


def unknown_is_failure() -> list[Change]:
    """A commit of unknown outcome is tried again at once."""
    old = Shards.appended

    def appended(self: Shards, error: Any, now: Any) -> None:
        if isinstance(error, StoreUnknownError) and self.staging is not None:
            outcomes.try_again(self, self.staging)
        else:
            old(self, error, now)

    return [(Shards, "appended", appended)]


def unknown_is_success() -> list[Change]:
    """A commit of unknown outcome is taken for one that worked."""
    old = Shards.appended

    def appended(self: Shards, error: Any, now: Any) -> None:
        old(self, None if isinstance(error, StoreUnknownError) else error, now)

    return [(Shards, "appended", appended)]


def timers_lost() -> list[Change]:
    """After a restart nobody reads the deadlines that are in the store."""
    old = timers.Deadlines.__init__

    def init(self: timers.Deadlines) -> None:
        old(self)
        self.horizon = timers.FOREVER

    return [(timers.Deadlines, "__init__", init)]


def timers_not_noted() -> list[Change]:
    """Deadlines of new turns are not armed; only those read at the start are."""
    return [(timers.Deadlines, "note", lambda *_: None)]


def never_offered_again() -> list[Change]:
    """Neither recovery nor the sweep offers a call again."""
    return [*not_recovered(), (timers.Reoffers, "place", lambda *_: None)]


def not_recovered() -> list[Change]:
    """A new owner does not offer what was in flight."""

    def in_flight_read(self: Shards, _: Any) -> None:
        self.recovering = False
        self.recover_after = None

    return [(Shards, "in_flight_read", in_flight_read)]


def offered_as_new() -> list[Change]:
    """A call that is offered again has another identity."""

    def opened(state: Any) -> Any:
        found = open_intents(state)
        return [replace(i, id=b"\x00" * 32) if isinstance(i, Call) else i for i in found]

    return [(shard, "open_intents", opened)]


def tenant_not_in_address() -> list[Change]:
    """Cells are found by id alone."""
    old = fair.Inbox.put

    def put(self: Any, offer: Any, **how: Any) -> None:
        offer.address = (Tenant("acme"), offer.cell.key)
        old(self, offer, **how)

    return [(fair.Inbox, "put", put)]


def sends_in_memory() -> list[Change]:
    """What a turn sends is kept in memory until the commit, and only then put anywhere."""
    seal, committed = Staging.seal, outcomes.committed
    kept: dict[int, Any] = {}

    def hold(self: Staging, id_: bytes, fences: Any) -> Any:
        kept[id(self)], self.mail = self.mail, []
        return seal(self, id_, fences)

    def release(core: Any, staging_: Staging, now: Any) -> None:
        committed(core, staging_, now)
        for mail in kept.pop(id(staging_), ()):
            core.put(offer_of(mail))

    return [(Staging, "seal", hold), (outcomes, "committed", release)]


def kept_after(kind: type[Exception]) -> list[Change]:
    """After this kind of failed commit the live cells stay as the batch left them."""
    old, forget = Shards.appended, outcomes.forget

    def appended(self: Shards, error: Any, now: Any) -> None:
        if isinstance(error, kind):
            outcomes.forget = lambda *_: None
        try:
            old(self, error, now)
        finally:
            outcomes.forget = forget

    return [(Shards, "appended", appended)]


def kept_after_conflict() -> list[Change]:
    """Live cells of a fenced batch are not read again."""
    return kept_after(StoreConflictError)


def kept_after_full() -> list[Change]:
    """Live cells of a batch that found no room are not read again."""
    return kept_after(StoreFullError)


def full_drops_inputs() -> list[Change]:
    """Inputs of a batch that found no room are forgotten."""
    old = Shards.appended

    def appended(self: Shards, error: Any, now: Any) -> None:
        if isinstance(error, StoreFullError) and self.staging is not None:
            self.staging.offers = []
        old(self, error, now)

    return [(Shards, "appended", appended)]


def put_aside_nowhere() -> list[Change]:
    """The input that broke a cell is not kept."""
    return [(room, "put_aside", lambda *_: None) for room in (stepping, refusals)]


def cache_without_bound() -> list[Change]:
    """The least recently used cell stays."""
    return [(cells.Hot, "trim", lambda *_: None)]


def snapshot_of_next_turn() -> list[Change]:
    """A snapshot says that it is of another turn than it is."""
    old = staging.snapshot_of

    def snapshot_of(live: Any) -> Any:
        made = old(live)
        return None if made is None else replace(made, turn=made.turn + 1)

    return [(staging, "snapshot_of", snapshot_of)]


def snapshot_stale() -> list[Change]:
    """A snapshot holds the state of an earlier snapshot."""
    old = staging.snapshot_of
    kept: dict[int, Any] = {}

    def snapshot_of(live: Any) -> Any:
        made = old(live)
        if made is None:
            return None
        first = kept.setdefault(made.ref, made)
        return replace(made, data=first.data, beside=first.beside)

    return [(staging, "snapshot_of", snapshot_of)]


def snapshot_trusted() -> list[Change]:
    """A snapshot is used whatever it says."""

    def opened_state(_: Any, __: Any, kept: bytes, ___: Any) -> bytes:
        return kept[SEAL_BYTES:]

    return [(drivers, "is_trusted", lambda _: True), (cells, "opened_state", opened_state)]


def mail_skipped() -> list[Change]:
    """After a page of mail the next letter is passed over."""
    old = Shards.mail_read

    def mail_read(self: Shards, rows: Any) -> None:
        old(self, rows)
        self.mail_after += bool(rows)

    return [(Shards, "mail_read", mail_read)]


def start_not_idempotent() -> list[Change]:
    """A start that is asked for again is refused."""
    return [(stepping, "refused_start", lambda cell, offer, refused: refused)]


def chain_broken() -> list[Change]:
    """A frame is chained to the beginning instead of to the last one."""
    old = real(staging, "frame_of")

    def frame_of(number: int, _: Any, first: int, leaves: Any) -> Any:
        return old(number, bytes(32), first, leaves)

    return [(staging, "frame_of", frame_of)]


def queue_without_bound() -> list[Change]:
    """Nothing is ever turned away."""
    return [(Shards, "refuses", lambda *_: None)]


def ahead_kept() -> list[Change]:
    """What was stepped ahead of a commit that found no room is committed all the same."""
    old = Shards.appended

    def appended(self: Shards, error: Any, now: Any) -> None:
        kept = self.making
        if kept is None or not isinstance(error, StoreFullError):
            old(self, error, now)
            return
        self.making = None
        old(self, error, now)
        self.making = kept

    return [(Shards, "appended", appended)]


def ahead_offered() -> list[Change]:
    """Calls of turns that were stepped ahead are let out when silent ones are offered again."""
    old = Shards.offer_again

    def offer_again(self: Shards, now: Any) -> None:
        making, self.making = self.making, None
        old(self, now)
        self.making = making

    return [(Shards, "offer_again", offer_again)]


def ahead_overtakes() -> list[Change]:
    """A send that is stepped ahead overtakes the mail of the commit under way."""

    def delivers_at_once(self: Shards, address: Any) -> bool:
        unread = self.mail_waits or self.mail_reading
        return not unread and address in self.hot.cells and address not in self.inbox.waiting

    return [(Shards, "delivers_at_once", delivers_at_once)]


ENGINE_BUGS: Final = (
    ("ahead-kept", "turns on top of what was never written", ahead_kept),
    ("ahead-offered", "calls leave before their turn is durable", ahead_offered),
    ("ahead-overtakes", "a send ahead overtakes one being written", ahead_overtakes),
    ("publish-before-flush", "effects leave before the commit", publish_before_flush),
    ("reply-before-flush", "callers are told before the commit", reply_before_flush),
    ("no-ops-unfenced", "refusals are acknowledged without a fence", no_ops_unfenced),
    ("unknown-is-failure", "an unknown outcome is a failure", unknown_is_failure),
    ("unknown-is-success", "an unknown outcome is a success", unknown_is_success),
    ("timers-lost", "deadlines are not read after a restart", timers_lost),
    ("timers-not-noted", "deadlines of new turns are not armed", timers_not_noted),
    ("never-offered-again", "neither recovery nor sweep offer again", never_offered_again),
    ("not-recovered", "a new owner does not offer again", not_recovered, "no-sweep"),
    ("offered-as-new", "offered again under another identity", offered_as_new),
    ("tenant-not-in-address", "cells are found by id alone", tenant_not_in_address),
    ("sends-in-memory", "sends are not part of the commit", sends_in_memory),
    ("kept-after-conflict", "cells stay live after a fenced batch", kept_after_conflict),
    ("kept-after-full", "cells stay live after a batch without room", kept_after_full),
    ("full-drops-inputs", "inputs of a batch without room are lost", full_drops_inputs),
    ("put-aside-nowhere", "the input that broke a cell is lost", put_aside_nowhere),
    ("cache-without-bound", "the cache is never trimmed", cache_without_bound),
    ("snapshot-of-next-turn", "a snapshot is labelled with another turn", snapshot_of_next_turn),
    ("snapshot-stale", "a snapshot holds an older state", snapshot_stale),
    ("snapshot-trusted", "a rotten snapshot is used", snapshot_trusted),
    ("mail-skipped", "a letter is passed over", mail_skipped),
    ("start-not-idempotent", "a repeated start is refused", start_not_idempotent),
    ("chain-broken", "frames are chained to the wrong one", chain_broken),
    ("queue-without-bound", "starts are never turned away", queue_without_bound),
)
