"""Intents: effects declared by a turn, each with an identity of its own.

Two identities, for two readers. The step key is what the outside world sees: it stays the same over
retries, so that a service that did the work but lost the reply does not do it twice. The intent id
names one emission: this effect, these parameters, this attempt, of this instance.
"""

from hashlib import sha256
from typing import Any, Final, Literal

import msgspec

from pawlflow.model.ids import CellId, Digest, DurationMs, RoleName, StepKey, StepName, Tenant
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record, writer_for

Direction = Literal["do", "undo", "ask"]  # ask: may it be done? A policy answers
POLICY: Final = "sys/policy"  # the effect that asks the policies in force
UNPINNED: Final = b""  # hash of an effect that no manifest pins


class Called(Record, frozen=True, tag="call", gc=False):
    """The journalled form of a call: which event of the turn it belongs to, and its id."""

    event: int
    id: Digest


class Stopped(Record, frozen=True, tag="stop", gc=False):
    """The journalled form of a stop: the call that is no longer wanted, and why."""

    id: Digest
    reason: Literal["cancel", "timeout"]


IntentRecord = Called | Stopped


class Call(msgspec.Struct, frozen=True, gc=False):
    """An attempt to be carried out, with all an executor needs. Made from state when needed."""

    id: Digest
    cell: CellId
    key: StepKey
    attempt: int
    direction: Direction
    step: StepName
    item: int
    round: int
    by_agent: bool
    target: str  # the effect, or the agent's role
    role: RoleName | None  # set by a human who reassigned
    params: Payload
    feedback: tuple[Any, ...]
    timeout_ms: DurationMs | None
    heartbeat_ms: DurationMs | None  # the longest silence
    grace_ms: DurationMs  # to settle in once it is stopped


class Stop(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call that is no longer wanted."""

    call: Call
    reason: Literal["cancel", "timeout"]


Intent = Call | Stop


class StepKeyParts(Record, frozen=True, tag="pawl.step-key.1", gc=False):
    """What a step key is the hash of."""

    tenant: Tenant
    nonce: bytes
    direction: Direction
    step: StepName
    item: int
    round: int


class IntentParts(Record, frozen=True, tag="pawl.intent.1", gc=False):
    """What an intent id is the hash of. `effect_hash` is empty unless a manifest pins it."""

    effect: str
    effect_hash: bytes
    params: Payload
    key: StepKey
    attempt: int
    origin: CellId


def step_key(parts: StepKeyParts) -> StepKey:
    """The idempotency key given to the outside: a UUID, version 8. Nobody can guess it."""
    raw = sha256(_WRITE_KEY(parts)).digest()
    version, variant = raw[6] & 0x0F | 0x80, raw[8] & 0x3F | 0x80
    return StepKey(raw[:6] + bytes((version, raw[7], variant)) + raw[9:16])


def intent_id(parts: IntentParts) -> Digest:
    """The identity of one emission; equal parameters of two instances never share it."""
    return Digest(sha256(_WRITE_INTENT(parts)).digest())


_WRITE_KEY: Final = writer_for(StepKeyParts)
_WRITE_INTENT: Final = writer_for(IntentParts)
