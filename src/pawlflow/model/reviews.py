"""Reviews: what happens around a human's decision, and what an approval is bound to."""

from hashlib import sha256
from typing import Final, Literal

from pawlflow.model.failure import Failure
from pawlflow.model.ids import Digest, DurationMs, RoleName, StepName
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record, write
from pawlflow.model.shared import OfUnit

Ruling = Literal["allow", "deny", "approval"]
NO_POLICY: Final = b""  # the hash of the policy in force, where none is


class StepReopened(Record, frozen=True, tag="step.reopened", gc=False):
    """A settled step runs again, in another round; `failure` says what it is to do better."""

    step: int
    failure: Failure | None = None


class FanFixed(Record, frozen=True, tag="fan.fixed", gc=False):
    """What the forEach of a step stands for, before something that it follows from changes."""

    step: int
    items: Payload


class StepBarred(OfUnit, frozen=True, tag="step.barred", gc=False):
    """Ready, but a gate has not agreed to what it would do: it waits outside of the line."""


class StepRaised(OfUnit, frozen=True, tag="step.raised", gc=False):
    """Nobody decided in time: the next rung of the escalation ladder is asked."""

    level: int


class GateBound(Record, frozen=True, tag="gate.bound", gc=False):
    """The grant of this gate holds for exactly this: digests by the name of step or item."""

    step: int
    digests: Payload


class GateVoided(Record, frozen=True, tag="gate.voided", gc=False):
    """What was asked about has changed: the gate asks again. `cause` is the step that would run."""

    step: int
    cause: int
    item: int


class PolicyGate(Record, frozen=True, gc=False):
    """Whom a policy asks to agree, and what follows if they do not."""

    role: RoleName | None
    quorum: int
    expires_ms: DurationMs | None
    not_by_requester: bool
    on_reject: Literal["cancel", "fail"] = "cancel"
    on_expire: Literal["escalate", "fail"] = "escalate"


class PolicyAsked(OfUnit, frozen=True, tag="policy.asked", gc=False):
    """The policies in force are asked about the next attempt, for the `number`th time."""

    number: int
    request: Payload


class PolicyDecided(OfUnit, frozen=True, tag="policy.decided", gc=False):
    """The answer, and the hash of the policies that gave it; `clears`: the attempt may begin."""

    number: int
    decision: Ruling
    policies: bytes
    answer: Payload
    clears: bool
    gate: PolicyGate | None = None


GateEvent = StepReopened | FanFixed | StepBarred | StepRaised | GateBound | GateVoided
ReviewEvent = GateEvent | PolicyAsked | PolicyDecided


class OfReview(Record, frozen=True):
    """What a human says about an open review. Begins several inputs, and stays as it is."""

    step: StepName
    by: str
    role: RoleName | None
    comment: Payload | None = None


class SettleReview(OfReview, frozen=True, tag="review.settle", gc=False):
    """A human has dealt with an effect that nobody waits for any more."""


class ApprovalParts(Record, frozen=True, tag="pawl.approval.1", gc=False):
    """What the digest of an approval is the hash of. No attempt: a plain retry is covered too."""

    effect: str
    params: Payload | None
    step: StepName
    item: int
    round: int
    definition: Digest
    policy: bytes = NO_POLICY


def approval_digest(parts: ApprovalParts) -> bytes:
    """What an approval of this call is bound to."""
    return sha256(write(parts)).digest()
