"""History: the published events of an instance, each in its envelope. The list of `history --json`.

Everything is derived, ids too, so that the same journal gives the same envelopes for ever and
whoever hears an event twice can tell.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from pawlflow.kernel.draft import ENGINE
from pawlflow.kernel.publish import published
from pawlflow.kernel.replay import apply_turn
from pawlflow.kernel.state import CANCELLED, PENDING, Instance
from pawlflow.model import events as ev
from pawlflow.model.codec import hash_of
from pawlflow.model.failure import Failure
from pawlflow.model.ids import Digest
from pawlflow.model.inputs import Input, Receipt
from pawlflow.model.journal import Turn
from pawlflow.model.payload import Payload
from pawlflow.model.records import write
from pawlflow.projections.causes import Causes, Place
from pawlflow.projections.plain import (
    error_told,
    failure_told,
    is_erased,
    time_told,
    uuid_told,
    value_of,
)
from pawlflow.projections.story import Story, sealed_turns, unbegun

SCHEMA_VERSION: Final = 1  # of the envelope; grows only with a breaking change


class Published(msgspec.Struct, frozen=True):
    """One published name: the event it stands for, and what it says."""

    name: str
    place: Place
    payload: dict[str, Any]


def history(story: Story) -> list[dict[str, Any]]:
    """One envelope for each published name, in order."""
    envelopes: list[dict[str, Any]] = []
    state, causes = unbegun(story), Causes()
    ids: dict[Place, str] = {}  # of the first name of each event
    for turn, sealed in sealed_turns(story):
        cause = causes.of(state, turn.input)
        first = (cause and ids.get(cause)) or input_id(sealed, turn.input)
        frame = envelope_frame(story, turn)
        for index, said in enumerate(publish_turn(state, turn, causes)):
            own = event_id(sealed, index)
            ids.setdefault(said.place, own)
            envelopes.append(
                {
                    "eventId": own,
                    "eventType": said.name,
                    **frame,
                    "traceId": trace_id(state),
                    "causationId": first if index == 0 else event_id(sealed, 0),
                    "sequence": len(envelopes) + 1,
                    "payload": said.payload,
                }
            )
    return envelopes


def envelope_frame(story: Story, turn: Turn) -> dict[str, Any]:
    """What all envelopes of a turn share."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "tenantId": story.cell.tenant,
        "correlationId": story.cell.key,
        "occurredAt": time_told(turn.stamps.now),
        "workflowInstanceId": story.cell.key,
        "actor": actor_of(turn.input),
    }


def actor_of(incoming: Input) -> str:
    """Who brought a turn about: a person, an executor, or the engine with its clocks."""
    if isinstance(incoming, Receipt):
        return "executor"
    by: str = getattr(incoming, "by", ENGINE)
    return by


def event_id(sealed: Digest, index: int) -> str:
    """The id of the published event at this index of a turn."""
    return uuid_told(hash_of("pawl.event-id.1", sealed, index))


def input_id(sealed: Digest, incoming: Input) -> str:
    """The id of a turn's input: the cause of what nothing earlier in the story caused."""
    return uuid_told(hash_of("pawl.input-id.1", sealed, write(incoming)))


def trace_id(state: Instance) -> str:
    """The id of a run, 32 hex digits. A hash, for step keys are made from the nonce itself.

    Whoever hears events must not be able to guess a key, and answer for an executor.
    """
    return hash_of("pawl.trace-id.1", state.nonce)[:16].hex()


def publish_turn(state: Instance, turn: Turn, causes: Causes) -> Iterator[Published]:
    """Let a turn have happened, and give what is published of it."""
    for index, event in enumerate(apply_turn(state, turn)):
        place = Place(turn.number, index)
        causes.see(state, event, place)
        names = published(state, event)
        never = never_begun(state) if len(names) > 1 and is_close(event) else []
        for step in never:
            untouched = {"step": state.plan.steps[step].name, "reason": "not_started"}
            yield Published("WorkflowStepCancelled", place, untouched)
        for name in names[len(never) :]:
            yield Published(name, place, payload_of(state, event))


def is_close(event: ev.Event) -> bool:
    """Does this event publish the cancellation of steps that never began?"""
    return isinstance(event, ev.InstanceFailed | ev.InstanceCancelled)


def never_begun(state: Instance) -> list[int]:
    """The steps that the close itself cancelled, in the order of the file."""
    return [
        step
        for step, unit in enumerate(state.units)
        if state.status(step) == CANCELLED and (unit is None or unit.status == PENDING)
    ]


def payload_of(state: Instance, event: ev.Event) -> dict[str, Any]:
    """What an event says, in plain values."""
    told: dict[str, Any] = {}
    erased = False
    for field in msgspec.structs.fields(event):
        value = getattr(event, field.name)
        erased |= is_gone(value)
        if field.name not in UNSAID and says_something(field.name, value):
            told[RENAMED.get(field.name, field.name)] = plain(state, field.name, value)
    told |= added(state, event)
    return told | {"erased": True} if erased else told


UNSAID: Final = frozenset({"nonce", "settles"})  # a secret; a detail of the kernel
RENAMED: Final = {"shown": "show"}
COUNTS: Final = frozenset({"attempt", "round", "warnings"})  # zero: there was none
TIMES: Final = frozenset({"until", "retry_at"})


def is_gone(value: Any) -> bool:
    """Is this a value, or a failure, whose bytes were erased?"""
    payload = value.detail if isinstance(value, Failure) else value
    return isinstance(payload, Payload) and is_erased(payload)


def says_something(name: str, value: Any) -> bool:
    """Leave out what is absent: no value, no item, a count of nothing."""
    if name in COUNTS:
        return bool(value)
    return value is not None and (name not in ("step", "item") or value >= 0)


def plain(state: Instance, name: str, value: Any) -> Any:
    """One field in plain values."""
    if name == "step":
        return state.plan.steps[value].name
    if name in TIMES:
        return time_told(value)
    if isinstance(value, Payload):
        return value_of(value)
    if isinstance(value, Failure):
        return failure_told(value)
    return value.hex() if isinstance(value, bytes) else value


def added(state: Instance, event: ev.Event) -> dict[str, Any]:
    """What the event leaves to the plan or the state, and a reader would look for."""
    match event:
        case ev.InstanceCreated():
            return {"workflow": state.plan.workflow, "version": state.plan.version}
        case ev.StepStarted(step=step):
            plan, role = state.plan.steps[step], state.unit(step).role
            asked = {"agent" if plan.by_agent else "effect": plan.target}
            return asked if role is None else asked | {"role": role}
        case ev.UndoStarted(step=step):
            undo = state.plan.steps[step].undo
            return {} if undo is None else {"agent" if undo.by_agent else "effect": undo.target}
        case ev.StepWaiting(step=step):
            return added_wait(state, step)
        case ev.InstanceFailed() | ev.InstanceCancelled():
            by = ENGINE if state.closing is None else state.closing.by
            return ({} if by == ENGINE else {"by": by}) | {"error": error_told(state)}
        case _:
            return {}


def added_wait(state: Instance, step: int) -> dict[str, Any]:
    """Whom a gate asks, or which event a wait is for."""
    plan = state.plan.steps[step]
    if plan.gate is not None:
        role = state.unit(step).role or plan.gate.role
        asked = {} if role is None else {"role": role}
        return {**asked, "quorum": plan.gate.quorum}
    return {"event": plan.event} if plan.event else {}
