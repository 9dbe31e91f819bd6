"""Payloads: what a published event says, in plain values. docs/events.md lists the members.

Where one transition has several names, all of them carry the same payload.
"""

from typing import Any, Final

import msgspec

from pawlflow.definition.plan import StepPlan, UndoPlan
from pawlflow.kernel.budget import plain_amount
from pawlflow.kernel.children import child_id
from pawlflow.kernel.draft import ENGINE
from pawlflow.kernel.evolve import undone
from pawlflow.kernel.gates import gate_of, role_of
from pawlflow.kernel.ladder import rung_of
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import Fan, Unit
from pawlflow.model import events as ev
from pawlflow.model import reviews
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM
from pawlflow.model.kin import Parent
from pawlflow.model.payload import Payload
from pawlflow.projections.budgets import amounts_told
from pawlflow.projections.plain import failure_told, is_erased, time_told, value_of
from pawlflow.projections.policies import decision_told
from pawlflow.projections.units import error_of, items_of


def payload_of(
    state: Instance, event: ev.Event, stopping: ev.InstanceStopping | None
) -> dict[str, Any]:
    """What an event says, just after `state` has seen it; `stopping` decided that it would end."""
    told: dict[str, Any] = {}
    erased = False
    for field in msgspec.structs.fields(event):
        value = getattr(event, field.name)
        erased |= is_gone(value)
        if field.name not in UNSAID and says_something(field.name, value):
            told[RENAMED.get(field.name, field.name)] = plain(state, field.name, value)
    told |= added(state, event, stopping)
    return told | {"erased": True} if erased else told


UNSAID: Final = frozenset(
    {"nonce", "settles", "slot", "rate", "held", "number", "answer", "gate"}
)  # secrets, and inner details
RENAMED: Final = {"shown": "show", "definition": "definition_hash", "micros": "amount"}
COUNTS: Final = frozenset({"attempt", "round", "warnings"})  # zero: there was none
PLACES: Final = frozenset({"step", "item", "cause"})  # below zero: none
TIMES: Final = frozenset({"until", "retry_at", "start_at"})


def is_gone(value: Any) -> bool:
    """Is this a value, or a failure, whose bytes were erased?"""
    payload = value.detail if isinstance(value, Failure) else value
    return isinstance(payload, Payload) and is_erased(payload)


def says_something(name: str, value: Any) -> bool:
    """Leave out what is absent: no value, no item, a count or a list of nothing."""
    if name in COUNTS or isinstance(value, tuple | bytes):
        return bool(value)
    return value is not None and (name not in PLACES or value >= 0)


def plain(state: Instance, name: str, value: Any) -> Any:
    """One field in plain values."""
    if name in ("step", "cause"):
        return state.plan.steps[value].name
    if name in TIMES:
        return time_told(value)
    if isinstance(value, Payload):
        return value_of(value)
    if isinstance(value, Failure):
        return failure_told(value)
    if name == "micros":
        return plain_amount(value)
    if name in ("limits", "usage"):
        return amounts_told(value)
    if isinstance(value, Parent):  # not its step key: whoever has that can answer for the child
        return {"workflow": value.workflow, "id": value.key}
    return value.hex() if isinstance(value, bytes) else value


def added(state: Instance, event: ev.Event, stopping: ev.InstanceStopping | None) -> dict[str, Any]:
    """What the event leaves to the plan or the state, and a reader would look for."""
    match event:
        case ev.InstanceCreated():
            return {"workflow": state.plan.workflow, "version": state.plan.version}
        case ev.StepStarted(step=step, item=item):
            unit = state.at(step, item)
            return called(state.plan.steps[step]) | present(
                role=unit.role, until=time_told(unit.until)
            )
        case ev.UndoStarted(step=step):
            until = time_told(undone(state, event).undo_until)
            return called(state.plan.steps[step].undo) | present(until=until)
        case ev.UndoBackedOff():
            return {"direction": "undo"}
        case ev.StepWaiting(step=step, item=item):
            return added_wait(state, state.at(step, item))
        case ev.StepSucceeded(step=step, item=item) if item == NO_ITEM and step in state.fans:
            return added_results(state, state.fans[step])
        case ev.StepEscalated(step=step, item=item) | reviews.StepRaised(step=step, item=item):
            return added_escalation(state, state.at(step, item))
        case ev.CompensationStarted() | ev.InstanceFailed() | ev.InstanceCancelled():
            return added_end(state, event, stopping)
        case reviews.PolicyDecided(step=step, item=item):
            return decision_told(state.at(step, item))
        case _:
            return {}


def called(asked: StepPlan | UndoPlan | None) -> dict[str, Any]:
    """Whom an attempt was given to."""
    return {} if asked is None else {"agent" if asked.by_agent else "effect": asked.target}


def added_wait(state: Instance, unit: Unit) -> dict[str, Any]:
    """Whom a gate asks, or which event or child a wait is for."""
    plan, gate = state.plan.steps[unit.step], gate_of(state, unit)
    if gate is not None:
        return present(role=role_of(unit, gate)) | {"quorum": gate.quorum}
    if unit.wait == "child":
        return {"child": {"workflow": plan.target, "id": child_id(state, unit)}}
    return present(event=plan.event or None)


def added_escalation(state: Instance, unit: Unit) -> dict[str, Any]:
    """Why a human must decide, and with a ladder who, by which channel, and for how long."""
    told = present(failure=failure_told(unit.failure), until=time_told(unit.until))
    rung = rung_of(state, unit)
    if rung is None:
        return told
    return told | {"level": unit.level} | present(role=rung.role, channel=rung.channel)


def added_results(state: Instance, fan: Fan) -> dict[str, Any]:
    """What a step with forEach gave: the results of its items, null where there is none."""
    results = [item.result for item in items_of(state, fan)]
    gone = {"erased": True} if any(map(is_erased, results)) else {}
    return {"result": [value_of(result) for result in results]} | gone


def added_end(
    state: Instance, event: ev.Event, stopping: ev.InstanceStopping | None
) -> dict[str, Any]:
    """What decided the end, and of a cancel who and why."""
    error = error_of(state)
    told: dict[str, Any] = {"error": error}
    if isinstance(event, ev.CompensationStarted) and stopping is not None:
        told["outcome"] = stopping.outcome
    if error is not None and "erased" in error:
        told["erased"] = True
    if stopping is None or stopping.outcome != "cancelled":
        return told
    told |= present(by=None if stopping.by == ENGINE else stopping.by)
    if stopping.comment is None:
        return told
    gone = {"erased": True} if is_erased(stopping.comment) else {}
    return told | {"comment": value_of(stopping.comment)} | gone


def present(**members: Any) -> dict[str, Any]:
    """These members, but for those that are none."""
    return {name: value for name, value in members.items() if value is not None}
