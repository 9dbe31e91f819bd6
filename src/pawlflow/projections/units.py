"""Units: the steps of an instance and their items, by the names people know them by."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import (
    BACKOFF,
    CANCELLED,
    CORRECTING,
    ESCALATED,
    FAILED,
    FANNED,
    PENDING,
    READY,
    RUNNING,
    SKIPPED,
    STATUS_NAMES,
    SUCCEEDED,
    UNDO_BACKOFF,
    UNDO_DONE,
    UNDO_FAILED,
    UNDO_NONE,
    UNDO_PENDING,
    UNDO_RUNNING,
    WAITING,
    Fan,
    Unit,
)
from pawlflow.model.ids import NO_ITEM

UNDO_NAMES: Final[dict[int, str]] = {
    UNDO_PENDING: "pending",
    UNDO_RUNNING: "running",
    UNDO_BACKOFF: "running",
    UNDO_DONE: "done",
    UNDO_FAILED: "failed",
}
ITEMS_MAX: Final = 1_000  # of one step told one by one; of more, those that somebody looks for
WORST_UNDO: Final = ("failed", "pending", "running", "done", "not_required", "none")


def named_units(state: Instance) -> Iterator[tuple[str, Unit]]:
    """Every step in the order of the file, each followed by its items."""
    for plan in state.plan.steps:
        yield plan.name, state.units[plan.index] or Unit(plan.index, place=plan.index)
        fan = state.fans.get(plan.index)
        for unit in [] if fan is None else items_of(state, fan):
            yield f"{plan.name}[{unit.item}]", unit


def items_of(state: Instance, fan: Fan) -> list[Unit]:
    """The items of a fan; one that was never looked at is pending, or ended with the instance."""
    return [state.item(fan, item) for item in range(fan.size)]


def items_told(state: Instance, fan: Fan) -> dict[str, int]:
    """How many items there are, and how far they are; each is in one of the counts.

    Those that were escalated are among the waiting too.
    """
    looked = [state.unit(place) for place in range(fan.base, fan.base + fan.cursor)]
    counts = Counter(unit.status for unit in looked)
    held = sum(unit.held for unit in looked)
    counts[PENDING if state.closed is None else CANCELLED] += fan.size - fan.cursor
    at_work = counts[READY] + counts[RUNNING] + counts[BACKOFF] + counts[CORRECTING]
    return {
        "total": fan.size,
        "done": counts[SUCCEEDED],
        "running": at_work - held,
        "held": held,  # by the budget: ready, and somebody must agree
        "failed": counts[FAILED],
        "skipped": counts[SKIPPED],
        "waiting": counts[WAITING] + counts[ESCALATED],
        "escalated": counts[ESCALATED],
        "cancelled": counts[CANCELLED],
        "pending": counts[PENDING],
    }


def items_shown(state: Instance, fan: Fan) -> list[Unit]:
    """All items; of very many those that are open or did not succeed, the most pressing first."""
    if fan.size <= ITEMS_MAX:
        return items_of(state, fan)
    looked = (state.unit(place) for place in range(fan.base, fan.base + fan.cursor))
    loud = [unit for unit in looked if unit.status not in (SUCCEEDED, CANCELLED)]
    loud.sort(key=loudness)
    return sorted(loud[:ITEMS_MAX], key=lambda unit: unit.item)


def loudness(unit: Unit) -> int:
    """What goes first: what a human must decide, what failed, what is open, what was skipped."""
    if unit.status == SKIPPED:
        return 4 if unit.failure is None else 3
    return {ESCALATED: 0, FAILED: 1}.get(unit.status, 2)


def fan_of(state: Instance, unit: Unit) -> Fan | None:
    """The items that a unit stands for, if it is a step with forEach."""
    return state.fans.get(unit.step) if unit.item == NO_ITEM else None


def status_of(state: Instance, unit: Unit) -> str:
    """The status of a step or item, by name. What was never touched ends with its instance."""
    status = unit.status
    if status == PENDING and state.closed is not None:
        status = CANCELLED
    if status == FANNED:
        every = (state.unit(place) for place in state.open)
        items = [each for each in every if each.step == unit.step and each is not unit]
        if items and all(each.held or each.status in (WAITING, ESCALATED) for each in items):
            status = max(READY if each.held else each.status for each in items)  # it is stuck
    return STATUS_NAMES[status]


def undo_of(state: Instance, unit: Unit) -> str:
    """What became of the effect of a step or item; of a step with items, the worst."""
    if not state.compensating:
        return "none"
    runs = runs_of(state, unit) or [unit]  # over an empty list the step is all there is
    found = {undo_of_run(state, each) for each in runs}
    return next((name for name in WORST_UNDO if name in found), "none")


def runs_of(state: Instance, unit: Unit) -> list[Unit]:
    """Every run of a step or item, earlier ones too; of a step with items, all of theirs."""
    fan = fan_of(state, unit)
    if fan is None:
        places = state.earlier.get((unit.step, unit.item), [])
        found = [*map(state.unit, places), unit, state.named(state.name_of(unit)) or unit]
    else:
        keys = (key for key in state.earlier if key[0] == unit.step and key[1] != NO_ITEM)
        earlier = [state.unit(place) for key in keys for place in state.earlier[key]]
        found = [*earlier, *items_of(state, fan)]
    return list({each.place: each for each in found}.values())


def undo_attempts(state: Instance, unit: Unit) -> int:
    """How often undos of a step or item were started."""
    return sum(each.undo_attempt for each in runs_of(state, unit))


def undo_of_run(state: Instance, unit: Unit) -> str:
    """What became of the effect of one run."""
    if unit.undo == UNDO_NONE:
        read_only = unit.status == SUCCEEDED and not state.plan.steps[unit.step].mutates
        return "not_required" if read_only else "none"
    return UNDO_NAMES[unit.undo]


def blamed(state: Instance) -> Unit | None:
    """The step that decided the failure, or the item of it that did; None: the instance itself."""
    closing = state.closing
    if closing is None or closing.failure is None or closing.step < 0:
        return None
    return state.at(closing.step, closing.item)


def error_of(state: Instance) -> dict[str, Any] | None:
    """What decided the failure: the step (None: the instance itself), its class, code and words.

    If it was an item, `item` has its name and `attempts` are its own.
    """
    closing = state.closing
    if closing is None or closing.failure is None:
        return None
    unit, gone = blamed(state), closing.failure.detail.data is None
    told: dict[str, Any] = {
        "step": None if unit is None else state.plan.steps[unit.step].name,
        "class": closing.failure.kind,
        "code": closing.failure.code,
        "message": None if gone else closing.failure.message,
        "attempts": 0 if unit is None else unit.attempt,
    }
    if unit is not None and unit.item != NO_ITEM:
        told["item"] = state.name_of(unit)
    return told | {"erased": True} if gone else told
