"""Units: what is known of one step, or of one item of it, and the small records beside it."""

from typing import Final, Literal

import msgspec

from pawlflow.model.events import Mode, WaitKind
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM, RoleName, TimeMs
from pawlflow.model.intents import Direction
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record
from pawlflow.model.reviews import PolicyDecided

PENDING: Final = 0
READY: Final = 1
RUNNING: Final = 2
BACKOFF: Final = 3
CORRECTING: Final = 4
WAITING: Final = 5
ESCALATED: Final = 6
SUCCEEDED: Final = 7
FAILED: Final = 8
SKIPPED: Final = 9
CANCELLED: Final = 10
FANNED: Final = 11  # of a step with forEach: its items are at work
NAMES: Final = "pending ready running backoff correcting waiting escalated succeeded failed skipped"
STATUS_NAMES: Final = (*NAMES.split(), "cancelled", "running")

UNDO_NONE: Final = 0
UNDO_PENDING: Final = 1  # on the list of what is to be undone, should it come to that
UNDO_RUNNING: Final = 2
UNDO_BACKOFF: Final = 3
UNDO_DONE: Final = 4
UNDO_FAILED: Final = 5


def is_open(status: int) -> bool:
    """Begun and not settled; escalated is open."""
    return READY <= status <= ESCALATED or status == FANNED


class Vote(Record, frozen=True, gc=False):
    """One approval of a gate."""

    by: str
    role: RoleName | None


class Asking(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """What policies were asked about a unit, and how they answered."""

    number: int  # how often it was asked
    request: Payload
    order: int  # its place in the line, which it left meanwhile
    decided: PolicyDecided | None = None  # None: no answer has come yet
    cleared: TimeMs | None = None  # since when what was asked about may be done
    granted: bytes = b""  # the digest of what was agreed to, where an approval was required
    since: int = 0  # its place among all that began, and was asked


class Unit(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """The life of one step, or of one item of it. Made when it is first touched."""

    step: int
    item: int = NO_ITEM
    status: int = PENDING
    attempt: int = 0  # attempts started, of all rounds
    round: int = 1
    retries: int = 0  # used of the present budget
    corrections: int = 0
    feedback: int = 0  # corrections whose findings were delivered
    mode: Mode = "plain"  # how the next attempt will be announced
    order: int = 0  # its place in the line when it last became ready
    until: TimeMs | None = None  # when the present status ends by itself
    since: TimeMs | None = None  # first opened
    ended: TimeMs | None = None
    params: Payload | None = None
    past: tuple[Payload, ...] = ()  # the parameters of earlier rounds
    result: Payload | None = None
    failure: Failure | None = None
    refused: Failure | None = None  # what this round is to correct
    warnings: int = 0
    role: RoleName | None = None
    wait: WaitKind | None = None
    shown: Payload | None = None
    votes: tuple[Vote, ...] = ()
    late: Payload | None = None  # the result of a success that came after the step was settled
    undo: int = UNDO_NONE
    undo_attempt: int = 0
    undo_retries: int = 0
    undo_until: TimeMs | None = None
    undo_params: Payload | None = None
    undo_failure: Failure | None = None
    asked_at: TimeMs | None = None  # when the review began that is open, or was last
    claimed_by: str | None = None  # who looks after it
    held: bool = False  # by the budget: ready, and not in line
    guarded: Payload | None = None  # of a gate: what it asked about last
    approved: Payload | None = None  # of a gate: the digests of what was granted
    level: int = 0  # the rung of the escalation ladder that is asked
    over: bool = False  # an earlier run, put aside; another unit stands for the step
    items: Payload | None = None  # of such an item: the list it was of
    place: int = 0  # its number among all units: the step's, or one behind them for an item
    asking: Asking | None = None  # of the policies

    def is_attempted(self) -> bool:
        """Is somebody else at work on this now: an executor, or a child?"""
        return self.status == RUNNING or (self.status == WAITING and self.wait == "child")


class Done(Record, frozen=True, gc=False):
    """An item that succeeded at its first attempt: there is little more to be known about it."""

    step: int
    place: int
    since: TimeMs | None
    ended: TimeMs | None
    result: Payload
    params: Payload | None  # for its undo, if it has one


class Fan(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """The items of a step with forEach: `limit` of them at a time, from a cursor on."""

    step: int
    base: int  # the place of the first item
    size: int
    cursor: int = 0  # the next item to look at
    open: int = 0  # items that are not settled
    items: Payload | None = None  # the list, where it may not be found in what it follows from


class Closing(Record, frozen=True, gc=False):
    """The outcome that was decided before the instance closed."""

    outcome: Literal["failed", "cancelled"]
    step: int
    failure: Failure | None
    by: str
    compensate: bool
    item: int = NO_ITEM  # of the step, that decided it


class Kept(Record, frozen=True, gc=False):
    """A signal that no wait has taken yet."""

    number: int
    event: str
    data: Payload


class Key(Record, frozen=True, gc=False):
    """What a step key stands for."""

    step: int
    item: int
    direction: Direction
    round: int
