"""Why: the causal chain that led to the present state, what comes now, and the next command."""

from collections.abc import Sequence
from typing import Any, Final

from pawlflow.kernel.children import child_id
from pawlflow.kernel.state import Instance
from pawlflow.kernel.summary import instance_state
from pawlflow.kernel.units import CANCELLED, Unit
from pawlflow.projections.alerts import alert_words, alerts_about, by_effect, ways_out
from pawlflow.projections.facts import Fact, Topic, facts_of
from pawlflow.projections.kin import Kin
from pawlflow.projections.outlook import PRESSING_MAX, outlook, pressing
from pawlflow.projections.plain import time_told
from pawlflow.projections.queues import Standing, standing_told
from pawlflow.projections.story import Story, Told, tell
from pawlflow.projections.units import blamed

CHAIN_MAX: Final = 40  # beyond this nobody reads a chain; its two ends say most
CHAIN_HEAD: Final = 10
LEVELS_MAX: Final = 3  # of children that are gone into; `why` of the last one goes on
CHILDREN_MAX: Final = 2  # of one instance
STUCK: Final = ("waiting", "escalated")  # somebody outside can move it
ENDED: Final = ("completed", "failed", "cancelled")


def why(
    story: Story,
    now: int | None = None,
    standing: Standing | None = None,
    kin: Kin | None = None,
    about: str | None = None,
    alerts: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Why the instance is where it is. With `now`, times are also told as distances.

    `standing` is its place in the line it waits in: another cell knows that. With `kin` it goes on
    into the children that are waited for. With the name of a step or item in `about`, the chain is
    the one that led to that. `alerts` are what the engine says that nobody can carry out.
    """
    told = tell(story)
    told.driven = kin is None or kin.driven
    chain = shortened(chosen(told, story, about))
    text, hints = outlook(told, now, standing)
    inside = [] if kin is None else children_of(told, now, kin, LEVELS_MAX)
    hints = hints_with(hints, inside)
    lacking = alerts_about(told.state, by_effect(alerts))
    text = "; ".join([*map(alert_words, lacking), text])
    hints = [*(way for alert in lacking for way in ways_out(told.id, alert)), *hints]
    return {
        "id": told.id,
        "state": instance_state(told.state),
        "because": [
            {"turn": fact.turn, "at": time_told(fact.at), "text": fact.text} for fact in chain
        ],
        "now": text_with(text, inside),
        "hint": hints[0],
        "hints": hints,
        "queue": standing_told(standing),
        "children": inside,
        "alerts": lacking,
    }


def chosen(told: Told, story: Story, about: str | None) -> list[Fact]:
    """The facts that explain the present state, and no others."""
    state = told.state
    if state.outcome == "completed":
        path = critical_path(told)
        return list(facts_of(story, lambda topic, place: is_on(path, topic, place)))
    unit = None if about is None else state.named(about)
    meant = subjects(told) if unit is None else {unit.step, unit.place}
    kept = list(facts_of(story, lambda topic, place: is_relevant(state, topic, place in meant)))
    paused = [fact for fact in kept if fact.topic == "pause"][-1:]
    others = without_passing([fact for fact in kept if fact.topic != "pause"])
    return sorted([*others, *paused], key=lambda fact: fact.turn)


def critical_path(told: Told) -> set[int]:
    """Back from the step that was done last, by the dependency that held each one up.

    Of a step with items, the one that was settled last goes with it.
    """
    order, plan, fans = told.settled, told.state.plan, told.state.fans
    step = max(range(len(plan.steps)), key=order.__getitem__)
    path = [step]
    while needs := plan.steps[step].needs:
        step = max(needs, key=order.__getitem__)
        path.append(step)
    found = [fans[step] for step in path if step in fans and fans[step].size]
    items = [range(fan.base, fan.base + fan.size) for fan in found]
    return {*path, *(max(places, key=order.__getitem__) for places in items)}


def is_on(path: set[int], topic: Topic, place: int) -> bool:
    """Does a fact belong to the chain of an instance that completed?"""
    return topic in ("start", "end") or (topic == "settled" and place in path)


def subjects(told: Told) -> set[int]:
    """The places that the present state is about: what decided the end, or what is open."""
    state, closing = told.state, told.state.closing
    unit = blamed(state)
    if closing is None:
        units = pressing(state)
        return {place for unit in units for place in (unit.step, unit.place)}
    if unit is not None:
        return {unit.step, unit.place}
    if closing.failure is None:
        return set()
    # The instance's own time was up: what it had waited for was cancelled then.
    cut_off = [place for place in told.settled if state.unit(place).status == CANCELLED]
    return set(cut_off[:PRESSING_MAX])


def is_relevant(state: Instance, topic: Topic, about: bool) -> bool:  # noqa: FBT001  # of one fact
    """Does a fact belong to the chain of an instance that did not complete?"""
    match topic:
        case "step" | "settled":
            return about
        case "undo":
            return state.closing is not None
        case "cancelled":
            return False
        case "pause":
            return state.paused
        case _:
            return True


def without_passing(facts: list[Fact]) -> list[Fact]:
    """Leave out the beginning of attempts whose end is told."""
    last = {(fact.topic == "undo", fact.place): fact for fact in facts}
    return [
        fact for fact in facts if not fact.passing or last[fact.topic == "undo", fact.place] is fact
    ]


def shortened(facts: list[Fact]) -> list[Fact]:
    """The two ends of a chain that is too long."""
    left_out = len(facts) - CHAIN_MAX
    if left_out <= 0:
        return facts
    first = facts[CHAIN_HEAD]
    gap = Fact(first.turn, first.at, "step", -1, f"… and {left_out} more like these …")
    return [*facts[:CHAIN_HEAD], gap, *facts[CHAIN_HEAD + left_out :]]


# Children


def children_of(told: Told, now: int | None, kin: Kin, levels: int) -> list[dict[str, Any]]:
    """The children that are waited for, or that decided the end: what each waits for itself."""
    units = [unit for unit in looked_into(told) if levels > 0]
    return [child_told(told.state, unit, now, kin, levels) for unit in units[:CHILDREN_MAX]]


def looked_into(told: Told) -> list[Unit]:
    """The units whose children say more."""
    state, unit = told.state, blamed(told.state)
    if state.closed is None:
        return [each for each in pressing(state) if each.wait == "child"]
    is_child = unit is not None and unit.attempt and state.plan.steps[unit.step].kind == "workflow"
    return [unit] if unit is not None and is_child else []


def child_told(
    state: Instance, unit: Unit, now: int | None, kin: Kin, levels: int
) -> dict[str, Any]:
    """A child: its state, what it waits for, and the commands that move it."""
    key, workflow = child_id(state, unit), state.plan.steps[unit.step].target
    who = {"step": state.name_of(unit), "workflow": workflow, "id": key}
    story = kin.story(key)
    if story is None:
        words = "it has not begun" if state.closed is None else "it never began"
        words = "it is over, and was removed" if kin.was_removed(key) else words
        return {**who, "state": None, "now": words, "hints": [], "children": []}
    told = tell(story)
    told.driven = kin.driven
    text, hints = outlook(told, now)
    inside = children_of(told, now, kin, levels - 1)
    return {
        **who,
        "state": instance_state(told.state),
        "now": text_with(text, inside),
        "hints": hints_with(hints, inside),
        "children": inside,
    }


def text_with(text: str, inside: list[dict[str, Any]]) -> str:
    """What comes now, with what the children say of it."""
    told = [f"{each['workflow']} {each['id']} {state_words(each)}" for each in inside]
    return "; ".join([text, *told])


def state_words(child: dict[str, Any]) -> str:
    """How a child is, and why."""
    return (
        f"is {child['state']}: {child['now']}" if child["state"] else f"is to come: {child['now']}"
    )


def hints_with(hints: list[str], inside: list[dict[str, Any]]) -> list[str]:
    """The commands that move it: instead of looking into a child, those that move the child."""
    told = {f"pawl why {each['id']}": each for each in inside if each["state"] not in ENDED}
    moves: list[str] = []
    for hint in hints:
        if hint not in told:
            moves.append(hint)
        elif told[hint]["state"] in STUCK:
            moves += told[hint]["hints"]
    return list(dict.fromkeys(moves)) or hints
