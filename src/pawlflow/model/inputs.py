"""Inputs: everything that may enter a cell. Imperative names; steps are named, not numbered."""

from typing import Literal

from pawlflow.model.failure import Failure
from pawlflow.model.ids import Digest, RoleName, StepKey, StepName, TimeMs
from pawlflow.model.kin import Parent
from pawlflow.model.operate import DiscardInput, RedriveInput, RemoveInstance
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record
from pawlflow.model.reviews import OfReview, SettleReview
from pawlflow.model.system import SystemInput


class StartInstance(Record, frozen=True, tag="start", gc=False):
    """Create the instance and begin, at once or not before a time."""

    definition: Digest
    input: Payload
    by: str
    parent: Parent | None = None
    start_at: TimeMs | None = None


class Receipt(Record, frozen=True, tag="receipt", gc=False):
    """The outcome of one attempt, echoing the step key and attempt it was given."""

    key: StepKey
    attempt: int
    outcome: Literal["ok", "failed", "cancelled"]
    result: Payload | None = None
    failure: Failure | None = None
    warnings: int = 0
    log: Payload | None = None
    usage: Payload | None = None  # what it cost, by unit of account


class Tick(Record, frozen=True, tag="tick", gc=False):
    """A deadline of this cell has come."""


class Signal(Record, frozen=True, tag="signal", gc=False):
    """An event for this instance; kept until a wait matches it."""

    event: str
    data: Payload
    by: str
    batch: str = ""  # the operation it is part of


class DeliverEvent(Record, frozen=True, tag="deliver", gc=False):
    """A broadcast event; it reaches the waits open now and is not kept."""

    event: str
    data: Payload


class Approve(OfReview, frozen=True, tag="approve", gc=False):
    """A human agrees; to a step held by its budget, by raising the limits."""

    limits: Payload | None = None  # new hard limits, by unit of account


class Reject(OfReview, frozen=True, tag="reject", gc=False):
    """A human refuses."""


class ClaimReview(OfReview, frozen=True, tag="claim", gc=False):
    """A human says that they look after an open review; it binds nobody else."""


class ResumeStep(Record, frozen=True, tag="resume", gc=False):
    """A human lets an escalated step go on; `retry` may change its input, `reassign` its role."""

    step: StepName  # empty: all that are escalated
    by: str
    how: Literal["resume", "retry", "reassign"]
    role: RoleName | None = None
    params: Payload | None = None
    comment: Payload | None = None
    batch: str = ""
    acting: RoleName | None = None  # in which role they act, where an escalation ladder asks


class CancelInstance(Record, frozen=True, tag="cancel", gc=False):
    """A human stops the instance."""

    by: str
    comment: Payload | None = None
    batch: str = ""
    acting: RoleName | None = None  # in which role they act, where an escalation ladder asks


class PauseInstance(Record, frozen=True, tag="pause", gc=False):
    """Start nothing new until unpaused."""

    by: str
    comment: Payload | None = None
    batch: str = ""


class UnpauseInstance(Record, frozen=True, tag="unpause", gc=False):
    """Go on after a pause."""

    by: str
    comment: Payload | None = None
    batch: str = ""


class GrantSlot(Record, frozen=True, tag="slot.grant", gc=False):
    """What was asked for is yours: the slot, or (`rate`) the start."""

    rate: bool = False


class HoldInstance(Record, frozen=True, tag="slot.hold", gc=False):
    """Not yet, says the cell that was asked; `ahead` instances wait in front of this one."""

    ahead: int
    rate: bool = False


Input = (
    StartInstance
    | Receipt
    | Tick
    | Signal
    | DeliverEvent
    | Approve
    | Reject
    | ClaimReview
    | ResumeStep
    | CancelInstance
    | PauseInstance
    | UnpauseInstance
    | RedriveInput
    | DiscardInput
    | RemoveInstance
    | SettleReview
    | GrantSlot
    | HoldInstance
    | SystemInput
)
