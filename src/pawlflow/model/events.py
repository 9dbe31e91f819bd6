"""Events: what happened, one per transition, as it is journalled.

Each is a positional array led by its tag. What many begin with is in shared.py. Fields may be
appended, with defaults; none is ever removed, renamed or given another meaning.
"""

from typing import Literal

from pawlflow.model.budgets import Amount, BudgetEvent
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM, Digest, RoleName, TimeMs
from pawlflow.model.kin import Parent
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record
from pawlflow.model.reviews import ReviewEvent
from pawlflow.model.shared import OfAttempt, OfFailure, OfUnit
from pawlflow.model.system import SystemEvent

WaitKind = Literal["approval", "event", "timer", "child"]
SkipReason = Literal["on_failure", "condition", "upstream"]
Mode = Literal["plain", "correction", "reassigned"]  # plain: the first attempt, or a retry
Rollback = Literal["none", "full", "partial"]
StopReason = Literal["cancel", "timeout"]


class InstanceCreated(Record, frozen=True, tag="instance.created", gc=False):
    """The instance exists."""

    definition: Digest
    rules: int
    nonce: bytes
    input: Payload
    by: str
    slot: str = ""  # the key of the slots cell it asks, if it needs a slot
    parent: Parent | None = None
    search: Payload | None = None  # its search attributes, by name
    start_at: TimeMs | None = None  # it starts no sooner
    rate: str = ""  # the key of the rate cell it asks, if its starts are limited


class InstanceDue(Record, frozen=True, tag="instance.due", gc=False):
    """The time before which it was not to start has come."""


class InstanceGranted(Record, frozen=True, tag="instance.granted", gc=False):
    """The instance holds its slot; its rate is asked now."""


class InstanceQueued(Record, frozen=True, tag="instance.queued", gc=False):
    """The instance asked for its slot and its rate; `held` when it had to wait in line."""

    held: bool


class InstanceStarted(Record, frozen=True, tag="instance.started", gc=False):
    """The clock of the instance runs."""


class StepReady(OfUnit, frozen=True, tag="step.ready", gc=False):
    """Dependencies met, parameters fixed for this round."""

    params: Payload | None


class StepFanned(Record, frozen=True, tag="step.fanned", gc=False):
    """Dependencies met, and forEach gave so many items; each becomes ready by itself."""

    step: int
    size: int


class StepStarted(OfAttempt, frozen=True, tag="step.started", gc=False):
    """An attempt was dispatched."""

    round: int
    mode: Mode = "plain"


class StepWaiting(OfUnit, frozen=True, tag="step.waiting", gc=False):
    """A wait without a worker was opened."""

    kind: WaitKind
    until: TimeMs | None
    shown: Payload | None = None
    guarded: Payload | None = None  # what steps would be called with, by name, if it is granted


class StepSucceeded(OfAttempt, frozen=True, tag="step.succeeded", gc=False):
    """Done; it stays done."""

    result: Payload
    warnings: int = 0
    round: int = 0  # of an attempt; 0 for waits
    usage: tuple[Amount, ...] = ()  # what it truly cost, as far as its executor said so


class StepBackedOff(OfFailure, frozen=True, tag="step.backed_off", gc=False):
    """The attempt failed; the next one is due at `retry_at`."""

    retry_at: TimeMs


class StepCorrecting(OfFailure, frozen=True, tag="step.correcting", gc=False):
    """The result was refused; a new round begins with the findings as feedback."""


class StepFailed(OfFailure, frozen=True, tag="step.failed", gc=False):
    """Failed for good. `attempt` is 0 when no attempt was ever made."""


class StepSkipped(OfUnit, frozen=True, tag="step.skipped", gc=False):
    """Not done on purpose."""

    reason: SkipReason
    attempt: int = 0
    failure: Failure | None = None


class StepEscalated(OfFailure, frozen=True, tag="step.escalated", gc=False):
    """A human owns the decision now."""


class StepResumed(OfUnit, frozen=True, tag="step.resumed", gc=False):
    """A human let the step go on, with a fresh retry budget."""

    by: str
    how: Literal["resume", "retry", "reassign"]
    role: RoleName | None
    params: Payload | None
    comment: Payload | None


class StepRequeued(OfUnit, frozen=True, tag="step.requeued", gc=False):
    """A back-off is over; the step waits its turn for the next attempt."""


class StepCancelled(OfUnit, frozen=True, tag="step.cancelled", gc=False):
    """Stopped because the instance stops."""


class LateSuccess(OfAttempt, frozen=True, tag="step.late_success", gc=False):
    """A settled step turned out to have succeeded after all; `undo` if that joins the list."""

    result: Payload
    undo: bool
    round: int


class AttemptLeft(OfAttempt, frozen=True, tag="attempt.left", gc=False):
    """An attempt is no longer wanted, and may be at work: until it ends, or for its grace."""

    undo: bool
    round: int
    reason: StopReason
    until: TimeMs | None  # None: a child, which takes the time it needs
    id: bytes  # of its call; of a child none


class AttemptEnded(OfAttempt, frozen=True, tag="attempt.ended", gc=False):
    """An attempt that was left is over, or its grace is."""

    undo: bool
    round: int


class OfGate(Record, frozen=True):
    """A human has decided about a gate. Begins three events, and stays as it is."""

    step: int
    by: str
    role: RoleName | None
    comment: Payload | None


class GateVoted(OfGate, frozen=True, tag="gate.voted", gc=False):
    """One approval of several needed."""

    item: int = NO_ITEM  # of the step, where a policy asked for it


class GateGranted(OfGate, frozen=True, tag="gate.granted", gc=False):
    """The last approval needed; the gate is open."""

    result: Payload
    item: int = NO_ITEM  # of the step, where a policy asked for it
    digest: bytes = b""  # then: of what was agreed to


class GateRejected(OfGate, frozen=True, tag="gate.rejected", gc=False):
    """A human refused; `settles` when that alone fails the step."""

    failure: Failure
    settles: bool
    item: int = NO_ITEM  # of the step, where a policy asked for it


class ReviewClaimed(OfUnit, frozen=True, tag="review.claimed", gc=False):
    """A human looks after the review of this step: a gate, or an escalation."""

    by: str
    role: RoleName | None
    comment: Payload | None


class SignalReceived(Record, frozen=True, tag="signal.received", gc=False):
    """A signal was kept."""

    event: str
    data: Payload
    by: str


class SignalTaken(Record, frozen=True, tag="signal.taken", gc=False):
    """The kept signal with this number was consumed by a wait."""

    number: int
    step: int
    item: int


class EventDelivered(Record, frozen=True, tag="event.delivered", gc=False):
    """A broadcast event met this wait."""

    event: str
    data: Payload
    step: int
    item: int


class InstancePaused(Record, frozen=True, tag="instance.paused", gc=False):
    """Nothing new starts."""

    by: str
    comment: Payload | None


class InstanceUnpaused(Record, frozen=True, tag="instance.unpaused", gc=False):
    """Starting is allowed again."""

    by: str
    comment: Payload | None


class InstanceStopping(Record, frozen=True, tag="instance.stopping", gc=False):
    """The outcome is decided, and whether work is undone; attempts in flight are being stopped."""

    outcome: Literal["failed", "cancelled"]
    step: int
    failure: Failure | None
    by: str
    compensate: bool
    comment: Payload | None = None
    item: int = NO_ITEM  # of the step that decided it


class CompensationStarted(Record, frozen=True, tag="compensation.started", gc=False):
    """Every attempt has settled; completed steps are undone now, last first."""


class UndoStarted(OfAttempt, frozen=True, tag="undo.started", gc=False):
    """An undo was dispatched."""

    params: Payload
    round: int = 0  # of a run that was put aside; 0: of the last one


class UndoBackedOff(OfFailure, frozen=True, tag="undo.backed_off", gc=False):
    """The undo failed; the next attempt is due at `retry_at`."""

    retry_at: TimeMs
    round: int = 0  # of a run that was put aside; 0: of the last one


class UndoDone(OfAttempt, frozen=True, tag="undo.done", gc=False):
    """The step's effect is undone."""

    round: int = 0  # of a run that was put aside; 0: of the last one


class UndoFailed(OfFailure, frozen=True, tag="undo.failed", gc=False):
    """The step's effect could not be undone."""

    round: int = 0  # of a run that was put aside; 0: of the last one


class InstanceCompleted(Record, frozen=True, tag="instance.completed", gc=False):
    """All steps are done."""

    output: Payload


class InstanceFailed(Record, frozen=True, tag="instance.failed", gc=False):
    """Closed without success."""

    rollback: Rollback


class InstanceCancelled(Record, frozen=True, tag="instance.cancelled", gc=False):
    """Closed by a human."""

    rollback: Rollback


StartEvent = InstanceCreated | InstanceDue | InstanceGranted | InstanceQueued | InstanceStarted
StepEvent = StepReady | StepFanned | StepStarted | StepWaiting | StepRequeued | StepResumed
TroubleEvent = StepBackedOff | StepCorrecting | StepEscalated | AttemptLeft | AttemptEnded
EndEvent = StepSucceeded | StepFailed | StepSkipped | StepCancelled | LateSuccess
GateEvent = GateVoted | GateGranted | GateRejected | ReviewClaimed
OutsideEvent = SignalReceived | SignalTaken | EventDelivered | InstancePaused | InstanceUnpaused
UndoEvent = CompensationStarted | UndoStarted | UndoBackedOff | UndoDone | UndoFailed
CloseEvent = InstanceStopping | InstanceCompleted | InstanceFailed | InstanceCancelled
LifeEvent = StartEvent | StepEvent | TroubleEvent | EndEvent | GateEvent | UndoEvent | CloseEvent
Event = LifeEvent | OutsideEvent | BudgetEvent | ReviewEvent | SystemEvent
