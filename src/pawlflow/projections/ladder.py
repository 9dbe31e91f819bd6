"""The ladder of a step: every attempt with what it was asked, what it gave, and why it was refused.

Told by the journal alone, so it can be told of any instance, at any turn.
"""

from collections.abc import Iterator
from typing import Any

from pawlflow.kernel.budget import plain_amount
from pawlflow.kernel.draft import feedback_of
from pawlflow.kernel.replay import apply_turn, read_turn
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import Key
from pawlflow.model import events as ev
from pawlflow.model.failure import Failure
from pawlflow.model.ids import TimeMs
from pawlflow.model.inputs import Receipt
from pawlflow.model.journal import Turn
from pawlflow.projections.plain import failure_told, time_told, value_of
from pawlflow.projections.story import Story, check_turn, unbegun

Place = tuple[int, int]  # step and item
Rung = dict[str, Any]
Ended = ev.StepBackedOff | ev.StepCorrecting | ev.StepFailed | ev.StepSkipped | ev.StepEscalated


def ladders(story: Story, at: int | None = None) -> dict[str, list[Rung]]:
    """The attempts of every step and item that was begun, by its name. Raises NoSuchTurnError."""
    check_turn(story, at)
    state = unbegun(story)
    found: dict[Place, dict[int, Rung]] = {}
    for data, _ in story.turns[:at]:
        turn = read_turn(data, story.payloads)
        key = state.keys.get(turn.input.key) if isinstance(turn.input, Receipt) else None
        for event in apply_turn(state, turn):
            tell_event(found, state, event)
        if key is not None and key.direction == "do" and isinstance(turn.input, Receipt):
            tell_receipt(found, state, key, turn)
    return {name: list(rungs.values()) for name, rungs in by_name(state, found)}


def by_name(
    state: Instance, found: dict[Place, dict[int, Rung]]
) -> Iterator[tuple[str, dict[int, Rung]]]:
    """The ladders in the order of the file, items by their number."""
    for (step, item), rungs in sorted(found.items()):
        name = state.plan.steps[step].name
        yield name if item < 0 else f"{name}[{item}]", rungs


def tell_event(found: dict[Place, dict[int, Rung]], state: Instance, event: ev.Event) -> None:
    """A rung more, or how one ended without an answer."""
    if isinstance(event, ev.StepStarted):
        unit = state.at(event.step, event.item)
        found.setdefault((event.step, event.item), {})[event.attempt] = {
            "attempt": event.attempt,
            "round": event.round,
            "outcome": "running",
            "input": value_of(unit.params),
            "feedback": None if event.mode != "correction" else said_to(unit),
            "output": None,
            "findings": [],
            "class": None,
            "code": None,
            "message": None,
            "started_at": time_told(state.now),
            "ended_at": None,
            "cost": None,
            "log": [],
        }
    elif isinstance(event, Ended) and event.attempt and event.failure is not None:
        rung = found.get((event.step, event.item), {}).get(event.attempt)
        if rung is not None and rung["ended_at"] is None:
            end(rung, "timed_out" if event.failure.kind == "timeout" else "failed", state.now)
            blame(rung, event.failure)
    elif isinstance(event, ev.StepCancelled | ev.StepSucceeded):
        for rung in found.get((event.step, event.item), {}).values():
            if rung["ended_at"] is None:  # overtaken by another attempt, or no longer wanted
                end(rung, "cancelled", state.now)


def said_to(unit: Any) -> list[Any] | None:
    """What a corrected attempt was told, unless it was erased."""
    erased = unit.refused is None or unit.refused.detail.data is None
    return None if erased else list(feedback_of(unit))


def tell_receipt(
    found: dict[Place, dict[int, Rung]], state: Instance, key: Key, turn: Turn
) -> None:
    """What an attempt answered, in time or late."""
    receipt = turn.input
    assert isinstance(receipt, Receipt)
    rung = found.get((key.step, key.item), {}).get(receipt.attempt)
    if rung is None:
        return
    rung["output"] = value_of(receipt.result)
    rung["cost"] = cost_of(state, key, receipt)
    rung["log"] = value_of(receipt.log) or []
    if receipt.outcome == "ok":
        late = rung["outcome"] in ("timed_out", "failed")
        end(rung, "succeeded_late" if late else "succeeded", turn.stamps.now)
    elif receipt.failure is not None:
        end(rung, "failed", turn.stamps.now)
        blame(rung, receipt.failure)


def cost_of(state: Instance, key: Key, receipt: Receipt) -> dict[str, float] | None:
    """What the executor says that it cost; a success that says nothing, what was set aside."""
    if receipt.usage is not None:
        said: dict[str, float] | None = value_of(receipt.usage)
        return said
    cost = state.plan.steps[key.step].cost
    if receipt.outcome != "ok" or not cost:
        return None
    return {name: plain_amount(amount) for name, amount in cost.items()}


def end(rung: Rung, outcome: str, now: TimeMs) -> None:
    """How and when an attempt ended."""
    rung["outcome"], rung["ended_at"] = outcome, time_told(now)


def blame(rung: Rung, failure: Failure) -> None:
    """Why it was refused."""
    told = failure_told(failure) or {}
    rung |= {name: told.get(name) for name in ("class", "code", "message")}
    rung["findings"] = told.get("findings", [])
