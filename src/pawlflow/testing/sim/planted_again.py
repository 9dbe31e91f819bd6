"""Bugs that were in the engine until the simulator found them, planted once more.

They are the proof that it would find them again.
"""

from typing import Any, Final

from msgspec.structs import replace

from pawlflow.engine import admission, outcomes, refusals, shard, stepping, timers
from pawlflow.engine.plans import Plans
from pawlflow.engine.shard import FULL_RETRY_MS, Shards
from pawlflow.kernel import snapshot, state
from pawlflow.kernel.draft import Rejected
from pawlflow.model.inputs import StartInstance
from pawlflow.model.timed import STARTER
from pawlflow.testing.sim.patching import Change, real


def sends_overtake() -> list[Change]:
    """A send that is stepped in its batch overtakes an older one that went by mail."""

    def delivers_at_once(self: Shards, address: Any) -> bool:
        return address in self.hot.cells

    return [(Shards, "delivers_at_once", delivers_at_once)]


def lost_but_silent() -> list[Change]:
    """Cells of lost shards are asked for again and again."""
    old = outcomes.lose

    def lose(core: Any, shards: Any, why: str) -> None:
        silent = {**core.silent, **dict.fromkeys(core.reoffers.placed)}
        old(core, shards, why)
        core.silent.update(silent)

    return [(outcomes, "lose", lose)]


def full_for_ever() -> list[Change]:
    """A store that was full is taken for full until something is committed."""
    old = Shards.stage

    def stage(self: Shards, now: Any) -> None:
        until = self.full_until
        old(self, now)
        if self.staging is None:
            self.full_until = until

    return [(Shards, "stage", stage)]


def full_by_the_clock() -> list[Change]:
    """A store that was full is tried again by a clock that may be set back."""
    old = Shards.stage

    def stage(self: Shards, now: Any) -> None:
        if self.full_until is None or now >= self.full_until - FULL_RETRY_MS:
            old(self, now)

    return [(Shards, "stage", stage)]


def tick_lost() -> list[Change]:
    """A tick that comes too early, because the clock was set back, takes its deadline with it."""
    old = real(stepping, "step_offer")

    def step_offer(core: Any, *rest: Any) -> None:
        core.deadlines.note = lambda _: None
        try:
            old(core, *rest)
        finally:
            del core.deadlines.note

    return [(shard, "step_offer", step_offer)]


def unreadable_forgotten() -> list[Change]:
    """Unreadable mail of a batch that failed is not refused again."""
    old = outcomes.try_again

    def try_again(core: Any, staging: Any) -> None:
        kept = list(core.unreadable)
        old(core, staging)
        core.unreadable = kept

    return [(outcomes, "try_again", try_again)]


def unknown_for_ever() -> list[Change]:
    """A definition that was not there is never looked for again."""
    return [(Plans, "look_again", lambda _: None)]


def mail_alone_is_lost() -> list[Change]:
    """A batch of unknown outcome that only acknowledged mail is tried again, though applied."""
    old = Shards.heads_read

    def heads_read(self: Shards, heads: Any, now: Any) -> None:
        staging = self.staging
        if staging is not None and not any(each.entries for each in staging.shards.values()):
            outcomes.try_again(self, staging)
        else:
            old(self, heads, now)

    return [(Shards, "heads_read", heads_read)]


def broken_before_birth() -> list[Change]:
    """An input that breaks a cell before its first turn is not put aside."""
    old = real(stepping, "quarantine")

    def quarantine(*parts: Any) -> Any:
        live = parts[3]
        return Rejected("cell.raised", "") if live.head is None else old(*parts)

    return [(stepping, "quarantine", quarantine)]


def idle_ticks_kept() -> list[Change]:
    """What cells and clocks say too late is put on the record."""
    return [(refusals, "BETWEEN_CELLS", ())]


def start_deadline_stays() -> list[Change]:
    """The time to start stays a deadline, and is taken for the workflow's timeout."""
    old = state.is_armed

    def is_armed(found: Any, due: int, rank: int, place: int) -> bool:
        return (
            found.closing is None if rank == state.RANK_INSTANCE else old(found, due, rank, place)
        )

    return [(state, "is_armed", is_armed)]


def held_cut_off() -> list[Change]:
    """Of too many deadlines those are forgotten, too, that the store will not bring again."""
    old = timers.Deadlines.hold

    def hold(self: timers.Deadlines, head: Any, until: int) -> None:
        late = self.late
        old(self, head, until)
        self.late = late
        if (until, head.ref) in self.held:
            self.held[until, head.ref] = False

    return [(timers.Deadlines, "hold", hold)]


def child_put_aside() -> list[Change]:
    """The refused child of an instance that a schedule started is a dead letter as well."""

    def is_scheduled(incoming: Any) -> bool:
        return isinstance(incoming, StartInstance) and incoming.by.startswith(STARTER)

    return [(refusals, "is_scheduled", is_scheduled)]


def usage_lost_with_check() -> list[Change]:
    """A result that does not fit its schema has cost nothing."""
    old = real(admission, "admit_receipt")

    def admit_receipt(found: Any, receipt: Any) -> Any:
        made = old(found, receipt)
        return made if made is receipt else replace(made, usage=None)

    return [(admission, "admit_receipt", admit_receipt)]


def question_guessed() -> list[Change]:
    """A cell that is read again knows keys of questions that it never asked."""
    old = real(snapshot, "know_keys")

    def know_keys(found: Any, unit: Any) -> None:
        old(found, unit)
        if found.plan.steps[unit.step].policy is not None and state.has_keys(found, unit):
            state.make_key(found, unit, "ask", unit.round)

    return [(snapshot, "know_keys", know_keys)]


def unread_after_gain() -> list[Change]:
    """Who gains shards looks for their deadlines once its own have run out."""

    def must_read(self: timers.Deadlines) -> bool:
        out = len(self.heap) == self.late
        return out and self.horizon != timers.FOREVER and not self.reading

    return [(timers.Deadlines, "must_read", must_read)]


BUGS_AGAIN: Final = (
    ("sends-overtake", "a send overtakes an older one in the mail", sends_overtake),
    ("lost-but-silent", "cells of lost shards are read for ever", lost_but_silent),
    ("full-for-ever", "starts are refused after the disk was full", full_for_ever),
    ("full-by-the-clock", "nothing goes on until the clock says so", full_by_the_clock),
    ("tick-lost", "a deadline is lost when the clock is set back", tick_lost),
    ("unreadable-forgotten", "unreadable mail waits for ever", unreadable_forgotten),
    ("unknown-for-ever", "a definition published later is not found", unknown_for_ever),
    ("mail-alone-is-lost", "an applied acknowledgement is made again", mail_alone_is_lost),
    ("broken-before-birth", "what breaks a new cell is lost", broken_before_birth),
    ("held-cut-off", "a deadline that is held back is lost", held_cut_off),
    ("child-put-aside", "a refused child is told of and put aside", child_put_aside),
    ("start-deadline-stays", "the time to start is a timeout", start_deadline_stays),
    ("usage-lost-with-check", "a refused result costs nothing", usage_lost_with_check),
    ("unread-after-gain", "deadlines of shards that were gained wait", unread_after_gain),
    ("question-guessed", "a question that was not asked is known", question_guessed),
    ("idle-ticks-kept", "ticks that did nothing are journalled", idle_ticks_kept),
)
