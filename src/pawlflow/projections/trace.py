"""Trace: the causal chain of a whole instance, turn by turn.

A receipt is tied to the call it answers by the identity of that call's intent; the start of a child
to the turn of its parent that asked for it, and its end to the turn of the parent that heard of it.
"""

from typing import Any

from pawlflow.kernel.replay import apply_turn
from pawlflow.kernel.state import Instance, key_of
from pawlflow.model.events import Event, StepStarted, UndoStarted
from pawlflow.model.ids import Digest, InstanceId, StepKey
from pawlflow.model.inputs import Input, Receipt, StartInstance
from pawlflow.model.intents import POLICY, Called, Direction, Stopped
from pawlflow.model.journal import Turn
from pawlflow.model.reviews import PolicyAsked, PolicyDecided
from pawlflow.model.system import StartChild
from pawlflow.projections.causes import Causes, Place
from pawlflow.projections.kin import Kin
from pawlflow.projections.plain import time_told, uuid_told, value_of
from pawlflow.projections.publish import published
from pawlflow.projections.story import Child, Story, child_of, sealed_turns, unbegun, unit_of

Asked = dict[tuple[StepKey, int], Digest]  # the intent of each attempt


def trace(story: Story, kin: Kin | None = None) -> list[dict[str, Any]]:
    """One entry for each turn: what came in, what happened, what was asked for, and the cause.

    With `kin`, a cause in another instance is told with its turn there.
    """
    entries: list[dict[str, Any]] = []
    state, causes = unbegun(story), Causes()
    asked: Asked = {}
    children: dict[tuple[StepKey, int], Child] = {}
    for turn, sealed in sealed_turns(story):
        cause = causes.of(state, turn.input)
        entry = {
            "turn": turn.number,
            "at": time_told(turn.stamps.now),
            "hash": sealed.hex(),
            "caused_by": None if cause is None else cause.turn,
            "origin": origin_of(story, turn.input, children, kin),
            "input": input_told(state, turn.input, asked),
        }
        entries.append(entry | trace_turn(state, turn, causes, asked))
        entries[-1]["children"] = [child_told(each) for each in trace_children(turn, children)]
    return entries


def trace_children(turn: Turn, known: dict[tuple[StepKey, int], Child]) -> list[Child]:
    """The children that a turn asked for, kept by what their answers will carry."""
    asked = [send.input for send in turn.sends if isinstance(send.input, StartChild)]
    made = [child_of(each, turn.number) for each in asked]
    known |= {
        (each.parent.step_key, each.parent.attempt): child
        for each, child in zip(asked, made, strict=True)
    }
    return made


def child_told(child: Child) -> dict[str, Any]:
    """A child that was asked for."""
    return {
        "step": child.step,
        "attempt": child.attempt,
        "workflow": child.workflow,
        "id": child.id,
    }


def origin_of(
    story: Story,
    incoming: Input,
    children: dict[tuple[StepKey, int], Child],
    kin: Kin | None,
) -> dict[str, Any] | None:
    """The turn of another instance that an input comes from: a child's end, a parent's wish."""
    if isinstance(incoming, StartInstance) and incoming.parent is not None:
        parent = incoming.parent
        told = {"id": parent.key, "workflow": parent.workflow}
        turn = None if kin is None else turn_that_asked(kin.story(parent.key), story.cell.key)
        return told | {"turn": turn, "step": parent.step, "attempt": parent.attempt}
    child = (
        children.get((incoming.key, incoming.attempt)) if isinstance(incoming, Receipt) else None
    )
    if child is None:
        return None
    head = None if kin is None else kin.head(child.id)
    turn = head.turn if head is not None and head.closed_at is not None else None
    return {"id": child.id, "workflow": child.workflow, "turn": turn}


def turn_that_asked(story: Story | None, child: InstanceId) -> int | None:
    """The turn of a parent that asked for a child."""
    for turn, _ in () if story is None else sealed_turns(story):
        if any(
            isinstance(send.input, StartChild) and send.input.child == child for send in turn.sends
        ):
            return turn.number
    return None


def trace_turn(state: Instance, turn: Turn, causes: Causes, asked: Asked) -> dict[str, Any]:
    """Let a turn have happened, and tell what it did."""
    events: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    intents = {record.event: record.id for record in turn.intents if isinstance(record, Called)}
    for index, event in enumerate(apply_turn(state, turn)):
        causes.see(state, event, Place(turn.number, index))
        events.append(event_told(state, event))
        if index in intents and isinstance(event, StepStarted | UndoStarted | PolicyAsked):
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
    unit = unit_of(state, event)
    if unit is not None:
        told["step"] = state.name_of(unit)
    if isinstance(event, PolicyDecided):
        said = value_of(event.answer) or {}
        told |= {"decision": event.decision, "clears": event.clears, "why": said.get("reason")}
    attempt: int = getattr(event, "attempt", 0)
    return told | {"attempt": attempt} if attempt else told


def call_told(
    state: Instance, event: StepStarted | UndoStarted | PolicyAsked, intent: Digest, asked: Asked
) -> dict[str, Any]:
    """An attempt that was asked for, or an answer of the policies."""
    plan, unit = state.plan.steps[event.step], unit_of(state, event)
    assert unit is not None, "an attempt is of a step"
    if isinstance(event, PolicyAsked):
        direction: Direction = "ask"
        attempt, effect = event.number, POLICY
    else:
        direction = "do" if isinstance(event, StepStarted) else "undo"
        target = plan if direction == "do" else plan.undo
        attempt, effect = event.attempt, "" if target is None else target.target
    key = key_of(state, unit, direction)
    asked[key, attempt] = intent
    return {
        "step": state.name_of(unit),
        "attempt": attempt,
        "direction": direction,
        "key": uuid_told(key),
        "effect": effect or None,
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
        name = state.name_of(state.of_round(key.step, key.item, key.round))
        told |= {"step": name, "direction": key.direction}
    intent = asked.get((incoming.key, incoming.attempt))
    return told if intent is None else told | {"intent": intent.hex()}


def tag_of(record: Event | Input) -> str:
    """The name a record has in the journal."""
    return str(type(record).__struct_config__.tag)
