"""Show: one instance as it is, or as it was after any turn. The object of `show --json`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from pawlflow.definition.shape import Gate
from pawlflow.kernel.children import child_id
from pawlflow.kernel.gates import gate_of, role_of
from pawlflow.kernel.ladder import rung_of
from pawlflow.kernel.summary import instance_state
from pawlflow.kernel.units import (
    BACKOFF,
    ESCALATED,
    PENDING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    Fan,
    Unit,
)
from pawlflow.model.ids import NO_ITEM
from pawlflow.model.kin import Parent
from pawlflow.model.payload import Payload
from pawlflow.model.reviews import PolicyGate
from pawlflow.projections.alerts import Found, by_effect, unattended, ways_out
from pawlflow.projections.budgets import budget_told, held_told
from pawlflow.projections.decisions import decisions
from pawlflow.projections.kin import Kin
from pawlflow.projections.ladder import ladders
from pawlflow.projections.lenses import lens, lens_steps
from pawlflow.projections.outlook import hints_for
from pawlflow.projections.plain import failure_told, is_erased, time_told, value_of
from pawlflow.projections.policies import policy_shown
from pawlflow.projections.story import Child, NoSuchTurnError, Story, Told, tell
from pawlflow.projections.units import (
    error_of,
    fan_of,
    items_of,
    items_shown,
    items_told,
    status_of,
    undo_attempts,
    undo_of,
)

__all__ = ["NoSuchTurnError", "show", "show_told"]

WAITING_MAX: Final = 1_000  # told one by one; what a human must decide goes first
CHILDREN_MAX: Final = 1_000  # the same; those that have not answered well go first


def show(
    story: Story,
    at: int | None = None,
    through: str | None = None,
    kin: Kin | None = None,
    alerts: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """The instance after turn `at`, or after the last. Raises NoSuchTurnError.

    With the name of a lens in `through`, `lens_steps` has the steps in its words too. With `kin`
    children are told as they are now, which means nothing after an earlier turn; and with `alerts`
    the attempts that nobody can carry out.
    """
    told = tell(story, at)
    shown = show_told(told, through, kin if at is None else None)
    shown["waiting"] += executors_awaited(told, by_effect(alerts)) if at is None else []
    shown["steps"] = with_past(story, shown["steps"], at)
    return shown


def with_past(
    story: Story, steps: dict[str, dict[str, Any]], at: int | None = None
) -> dict[str, dict[str, Any]]:
    """Steps by name, each with its attempts and with what people said about it."""
    rungs, said = ladders(story, at), decisions(story, at)
    return {
        name: step | {"ladder": rungs.get(name, []), "decisions": said.get(name, [])}
        for name, step in steps.items()
    }


def show_told(told: Told, through: str | None = None, kin: Kin | None = None) -> dict[str, Any]:
    """The same of a story that has been told."""
    state, plan = told.state, told.state.plan
    units = list(units_shown(told))
    return {
        "id": state.cell.key,
        "tenant": state.cell.tenant,
        "workflow": plan.workflow,
        "version": plan.version,
        "definition_hash": plan.definition.hex(),
        "state": instance_state(state),
        "rollback": state.rollback,
        "lens": lens(state),
        "input": value_of(state.input),
        "output": value_of(state.output),
        "error": error_of(state),
        "started_at": time_told(state.started),
        "closed_at": time_told(state.closed),
        "turns": state.turn,
        "steps": {state.name_of(unit): show_unit(told, unit) for unit in units},
        "waiting": [show_waiting(told, unit) for unit in waiting_units(told)],
        "budget": budget_told(state),
        "paused": state.paused,
        "by": state.by,
        "search": {} if state.search is None else value_of(state.search),
        "created_at": time_told(state.created),
        "start_at": time_told(state.start_at),
        "updated_at": time_told(state.now) if state.turn else None,
        "progress": {  # items count from the moment they are known
            "done": state.counts[SUCCEEDED] + state.counts[SKIPPED],
            "total": len(plan.steps) + sum(fan.size for fan in state.fans.values()),
        },
        "parent": parent_told(state.parent),
        "children": [child_told(child, kin) for child in children_shown(told)],
        "children_total": len(told.children),
        "erased": erased_in(told, units),
        **({} if through is None else {"lens_steps": lens_steps(state, through, units)}),
    }


def units_shown(told: Told) -> Iterator[Unit]:
    """Every step in the order of the file, each followed by the items of it that are shown."""
    state = told.state
    for plan in state.plan.steps:
        yield state.units[plan.index] or Unit(plan.index, place=plan.index)
        fan = state.fans.get(plan.index)
        yield from [] if fan is None else items_shown(state, fan)


def show_unit(told: Told, unit: Unit) -> dict[str, Any]:
    """A step or item: how far it came, what it gave or why not, what became of its effect."""
    state, plan = told.state, told.state.plan.steps[unit.step]
    # What no event touched is cancelled by the close itself.
    never = unit.status == PENDING and state.closed is not None
    until = unit.until if unit.status in (RUNNING, BACKOFF, WAITING) else None
    shown = {
        "state": status_of(state, unit),
        "attempts": unit.attempt,
        "undo": undo_of(state, unit),
        "result": value_of(unit.result),
        "error": None if unit.status == SUCCEEDED else failure_told(unit.failure),
        "started_at": time_told(told.opened.get(unit.place)),
        "ended_at": time_told(state.closed if never else unit.ended),
        "feedback": unit.feedback,
        "kind": plan.kind,
        "held": unit.held,
        "until": time_told(until),
        "warnings": unit.warnings,
        "undo_attempts": undo_attempts(state, unit),
        "undo_error": failure_told(unit.undo_failure),
        "undo_until": time_told(unit.undo_until),
        "log": lines_in(told.logs.get(unit.place, ())),
        "undo_log": lines_in(told.undo_logs.get(unit.place, ())),
    }
    if unit.asking is not None:
        shown["policy"] = policy_shown(unit)
    fan = fan_of(state, unit)
    return shown if fan is None else shown | show_items(told, unit, fan)


def lines_in(logs: Iterable[Payload]) -> list[str]:
    """What attempts wrote, as far as it was not erased."""
    return [line for each in logs for line in value_of(each) or ()]


def show_items(told: Told, whole: Unit, fan: Fan) -> dict[str, Any]:
    """What a step with forEach says of all its items."""
    state = told.state
    items = items_of(state, fan)
    counts = items_told(state, fan) | {"shown": len(items_shown(state, fan))}
    done = whole.status == SUCCEEDED
    return {
        "result": [value_of(item.result) for item in items] if done else None,
        "warnings": sum(item.warnings for item in items),
        "items": counts,
    }


# What it waits for


def waiting_units(told: Told) -> list[Unit]:
    """The units that wait for somebody outside; of very many, those for people first."""
    units = (told.state.unit(place) for place in told.state.open)
    found = [unit for unit in units if unit.held or unit.status in (WAITING, ESCALATED)]
    found.sort(key=lambda u: (u.status != ESCALATED and not u.held, u.wait == "child"))
    return sorted(found[:WAITING_MAX], key=lambda unit: (unit.step, unit.item))


def show_waiting(told: Told, unit: Unit) -> dict[str, Any]:
    """What an open step or item waits for from outside."""
    state, plan = told.state, told.state.plan.steps[unit.step]
    name, escalated = state.name_of(unit), unit.status == ESCALATED
    gate = gate_of(state, unit)
    if unit.held:
        return held_waiting(told, unit)
    waiting: dict[str, Any] = {
        "step": name,
        "kind": "escalation" if escalated else unit.wait,
        "since": time_told(told.since[unit.place]),
        "until": time_told(unit.until),
        "hint": hints_for(told, unit)[0],
    }
    if escalated:
        rung = rung_of(state, unit)
        asked = {} if rung is None else {"role": rung.role, "channel": rung.channel}
        level = {} if rung is None else {"level": unit.level}
        above = [each.role for each in state.plan.ladder[unit.level :]] if rung else []
        return (
            waiting
            | asked
            | level
            | ({"then": above} if above else {})
            | ({} if gate is None else {"gate": gate_asked(told, unit, gate)})
            | {
                "review": f"{state.cell.key}/{name}",
                "claimed_by": unit.claimed_by,
                "error": failure_told(unit.failure),
            }
        )
    if unit.wait == "event":
        return waiting | {"event": plan.event}
    if unit.wait == "child":
        return waiting | {"child": {"workflow": plan.target, "id": child_id(state, unit)}}
    if gate is None:
        return waiting
    return waiting | {
        "review": f"{state.cell.key}/{name}",
        "role": role_of(unit, gate),
        "quorum": gate.quorum,
        "votes": [vote.by for vote in unit.votes],
        "not_by": state.by if gate.not_by_requester else None,
        "claimed_by": unit.claimed_by,
        "show": value_of(unit.shown),
        **({} if unit.guarded is None else {"guards": value_of(unit.guarded)}),
    }


def gate_asked(told: Told, unit: Unit, gate: Gate | PolicyGate) -> dict[str, Any]:
    """Whom a gate had asked before its time was up or somebody refused it."""
    role = role_of(unit, gate)
    votes = [vote.by for vote in unit.votes]
    return {"role": role, "since": time_told(told.opened.get(unit.place)), "votes": votes}


def executors_awaited(told: Told, alerts: Found) -> list[dict[str, Any]]:
    """Attempts and undos that wait for somebody who can carry them out."""
    state = told.state
    places = dict.fromkeys([*state.open, *state.undoing]) if alerts else {}
    units = [state.unit(place) for place in places]
    found = [(unit, unattended(state, unit, alerts)) for unit in units]
    return [
        {
            "step": state.name_of(unit),
            "kind": "executor",
            "since": alert["since"],
            "until": None,
            "hint": ways_out(told.id, alert)[0],
            "effect": alert["effect"],
        }
        for unit, alert in found[:WAITING_MAX]
        if alert is not None
    ]


def held_waiting(told: Told, unit: Unit) -> dict[str, Any]:
    """A step that the budget holds, with the figures of now."""
    name = told.state.name_of(unit)
    return {
        "step": name,
        "kind": "budget",
        "since": time_told(unit.asked_at),
        "until": None,
        "hint": hints_for(told, unit)[0],
        "review": f"{told.id}/{name}",
        "claimed_by": unit.claimed_by,
        **held_told(told.state, unit),
    }


# Kin


def parent_told(parent: Parent | None) -> dict[str, Any] | None:
    """The instance that waits for this one, and the step of it that does."""
    if parent is None:
        return None
    return {"workflow": parent.workflow, "id": parent.key, "step": parent.step}


def children_shown(told: Told) -> list[Child]:
    """All children in the order they were asked for; of very many the most pressing ones."""
    every = list(told.children.values())
    if len(every) > CHILDREN_MAX:
        every.sort(key=lambda child: (child.heard == "completed", child.heard is not None))
        every = sorted(every[:CHILDREN_MAX], key=lambda child: child.turn)
    return every


def child_told(child: Child, kin: Kin | None) -> dict[str, Any]:
    """A child and its state: as it is now, or as its parent heard where nobody else knows."""
    head = None if kin is None else kin.head(child.id)
    heard = head is None and (kin is None or kin.was_removed(child.id))
    return {
        "step": child.step,
        "workflow": child.workflow,
        "id": child.id,
        "attempt": child.attempt,
        "state": head.state if head else child.heard if heard else None,
    }


# Values that are gone


def erased_in(told: Told, units: list[Unit]) -> list[str]:
    """The paths of values that are null only because their bytes are gone."""
    return [path for path, payload in values_in(told, units) if is_erased(payload)]


def values_in(told: Told, units: list[Unit]) -> Iterator[tuple[str, Payload | None]]:
    """Every value that is shown, with its path."""
    state = told.state
    if state.created is not None:
        yield "input", state.input
    yield "search", state.search
    yield "output", state.output
    for unit in units:
        path = f"steps.{state.name_of(unit)}"
        yield f"{path}.result", unit.result if unit.item != NO_ITEM else result_in(told, unit)
        yield f"{path}.show", unit.shown
        if unit.failure is not None and unit.status != SUCCEEDED:
            yield f"{path}.error", unit.failure.detail


def result_in(told: Told, unit: Unit) -> Payload | None:
    """The result of a step; of its items one that is gone, if there is such."""
    fan = fan_of(told.state, unit)
    if fan is None or unit.status != SUCCEEDED:
        return unit.result
    results = (item.result for item in items_of(told.state, fan))
    return next(filter(is_erased, results), None)
