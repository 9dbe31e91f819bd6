"""Trace: the causal chain of a whole instance, turn by turn.

A receipt is tied to the call it answers by the identity of that call's intent.
"""

from typing import Any

from pawlflow.kernel.publish import published
from pawlflow.kernel.replay import apply_turn
from pawlflow.kernel.state import Instance, key_of
from pawlflow.model.events import Event, StepStarted, UndoStarted
from pawlflow.model.ids import Digest, StepKey
from pawlflow.model.inputs import Input, Receipt
from pawlflow.model.intents import Called, Direction, Stopped
from pawlflow.model.journal import Turn
from pawlflow.projections.causes import Causes, Place
from pawlflow.projections.plain import time_told, uuid_told
from pawlflow.projections.story import Story, sealed_turns, unbegun

Asked = dict[tuple[StepKey, int], Digest]  # the intent of each attempt


def trace(story: Story) -> list[dict[str, Any]]:
    """One entry for each turn: what came in, what happened, what was asked for, and the cause."""
    entries: list[dict[str, Any]] = []
    state, causes = unbegun(story), Causes()
    asked: Asked = {}
    for turn, sealed in sealed_turns(story):
        cause = causes.of(state, turn.input)
        entry = {
            "turn": turn.number,
            "at": time_told(turn.stamps.now),
            "hash": sealed.hex(),
            "caused_by": None if cause is None else cause.turn,
            "input": input_told(state, turn.input, asked),
        }
        entries.append(entry | trace_turn(state, turn, causes, asked))
    return entries


def trace_turn(state: Instance, turn: Turn, causes: Causes, asked: Asked) -> dict[str, Any]:
    """Let a turn have happened, and tell what it did."""
    events: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    intents = {record.event: record.id for record in turn.intents if isinstance(record, Called)}
    for index, event in enumerate(apply_turn(state, turn)):
        causes.see(state, event, Place(turn.number, index))
        events.append(event_told(state, event))
        if index in intents and isinstance(event, StepStarted | UndoStarted):
            calls.append(call_told(state, event, intents[index], asked))
    stops = [
        {"intent": record.id.hex(), "reason": record.reason}
        for record in turn.intents
        if isinstance(record, Stopped)
    ]
    return {"events": events, "calls": calls, "stops": stops}


def event_told(state: Instance, event: Event) -> dict[str, Any]:
    """An event by its name, the names it is published under, and what it is about."""
    told: dict[str, Any] = {"event": tag_of(event), "published": published(state, event)}
    step: int = getattr(event, "step", -1)
    if step >= 0:
        told["step"] = state.plan.steps[step].name
    attempt: int = getattr(event, "attempt", 0)
    return told | {"attempt": attempt} if attempt else told


def call_told(
    state: Instance, event: StepStarted | UndoStarted, intent: Digest, asked: Asked
) -> dict[str, Any]:
    """An attempt that was asked for."""
    plan = state.plan.steps[event.step]
    direction: Direction = "do" if isinstance(event, StepStarted) else "undo"
    target = plan if direction == "do" else plan.undo
    key = key_of(state, state.unit(event.step), direction)
    asked[key, event.attempt] = intent
    return {
        "step": plan.name,
        "attempt": event.attempt,
        "direction": direction,
        "key": uuid_told(key),
        "effect": None if target is None else target.target,
        "intent": intent.hex(),
    }


def input_told(state: Instance, incoming: Input, asked: Asked) -> dict[str, Any]:
    """What came in, told before it is applied."""
    told: dict[str, Any] = {"kind": tag_of(incoming)}
    for name in ("by", "step", "attempt", "event", "outcome", "role", "how"):
        value = getattr(incoming, name, None)
        if value is not None:
            told[name] = value
    if isinstance(incoming, Receipt):
        told |= answered(state, incoming, asked)
    return told


def answered(state: Instance, incoming: Receipt, asked: Asked) -> dict[str, Any]:
    """The call that a receipt answers."""
    told: dict[str, Any] = {"key": uuid_told(incoming.key)}
    key = state.keys.get(incoming.key)
    if key is not None:
        told |= {"step": state.plan.steps[key.step].name, "direction": key.direction}
    intent = asked.get((incoming.key, incoming.attempt))
    return told if intent is None else told | {"intent": intent.hex()}


def tag_of(record: Event | Input) -> str:
    """The name a record has in the journal."""
    return str(type(record).__struct_config__.tag)
