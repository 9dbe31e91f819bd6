"""Inputs: everything that may enter a cell. Imperative names; steps are named, not numbered."""

from typing import Literal

from pawlflow.model.failure import Failure
from pawlflow.model.ids import Digest, RoleName, StepKey, StepName
from pawlflow.model.operate import DiscardInput, RedriveInput
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record
from pawlflow.model.system import GrantSlot, HoldInstance, SystemInput


class StartInstance(Record, frozen=True, tag="start", gc=False):
    """Create the instance and begin."""

    definition: Digest
    input: Payload
    by: str


class Receipt(Record, frozen=True, tag="receipt", gc=False):
    """The outcome of one attempt, echoing the step key and attempt it was given."""

    key: StepKey
    attempt: int
    outcome: Literal["ok", "failed", "cancelled"]
    result: Payload | None = None
    failure: Failure | None = None
    warnings: int = 0
    log: Payload | None = None


class Tick(Record, frozen=True, tag="tick", gc=False):
    """A deadline of this cell has come."""


class Signal(Record, frozen=True, tag="signal", gc=False):
    """An event for this instance; kept until a wait matches it."""

    event: str
    data: Payload
    by: str


class DeliverEvent(Record, frozen=True, tag="deliver", gc=False):
    """A broadcast event; it reaches the waits open now and is not kept."""

    event: str
    data: Payload


class Approve(Record, frozen=True, tag="approve", gc=False):
    """A human agrees."""

    step: StepName
    by: str
    role: RoleName | None
    comment: Payload | None = None


class Reject(Record, frozen=True, tag="reject", gc=False):
    """A human refuses."""

    step: StepName
    by: str
    role: RoleName | None
    comment: Payload | None = None


class ResumeStep(Record, frozen=True, tag="resume", gc=False):
    """A human lets an escalated step go on; `retry` may change its input, `reassign` its role."""

    step: StepName
    by: str
    how: Literal["resume", "retry", "reassign"]
    role: RoleName | None = None
    params: Payload | None = None
    comment: Payload | None = None


class CancelInstance(Record, frozen=True, tag="cancel", gc=False):
    """A human stops the instance."""

    by: str
    comment: Payload | None = None


class PauseInstance(Record, frozen=True, tag="pause", gc=False):
    """Start nothing new until unpaused."""

    by: str
    comment: Payload | None = None


class UnpauseInstance(Record, frozen=True, tag="unpause", gc=False):
    """Go on after a pause."""

    by: str
    comment: Payload | None = None


Input = (
    StartInstance
    | Receipt
    | Tick
    | Signal
    | DeliverEvent
    | Approve
    | Reject
    | ResumeStep
    | CancelInstance
    | PauseInstance
    | UnpauseInstance
    | RedriveInput
    | DiscardInput
    | GrantSlot
    | HoldInstance
    | SystemInput
)
