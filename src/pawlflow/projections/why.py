"""Why: the causal chain that led to the present state, what comes now, and the next command."""

from typing import Any, Final

from pawlflow.kernel.plan import Plan
from pawlflow.kernel.state import Instance
from pawlflow.kernel.summary import instance_state
from pawlflow.projections.facts import Fact, facts_of
from pawlflow.projections.outlook import PRESSING_MAX, outlook, pressing
from pawlflow.projections.plain import time_told
from pawlflow.projections.story import Story, tell

CHAIN_MAX: Final = 40  # beyond this nobody reads a chain; its two ends say most
CHAIN_HEAD: Final = 10


def why(story: Story, now: int | None = None) -> dict[str, Any]:
    """Why the instance is where it is. With `now`, times are also told as distances."""
    told = tell(story)
    chain = shortened(chosen(told.state, list(facts_of(story))))
    text, hints = outlook(told, now)
    return {
        "id": told.id,
        "state": instance_state(told.state),
        "because": [
            {"turn": fact.turn, "at": time_told(fact.at), "text": fact.text} for fact in chain
        ],
        "now": text,
        "hint": hints[0],
        "hints": hints,
    }


def chosen(state: Instance, facts: list[Fact]) -> list[Fact]:
    """The facts that explain the present state, and no others."""
    if state.outcome == "completed":
        path = critical_path(state.plan, facts)
        last = {fact.step: fact for fact in facts if fact.topic == "settled"}
        steps = {last[step] for step in path}
        return [fact for fact in facts if fact.topic in ("start", "end") or fact in steps]
    about = subjects(state, facts)
    kept = [fact for fact in facts if is_relevant(state, fact, about)]
    paused = [fact for fact in facts if fact.topic == "pause"][-1:] if state.paused else []
    return sorted([*without_passing(kept), *paused], key=lambda fact: fact.turn)


def critical_path(plan: Plan, facts: list[Fact]) -> list[int]:
    """Back from the step that was done last, by the dependency that held each one up."""
    order = {fact.step: at for at, fact in enumerate(facts) if fact.topic == "settled"}
    step = max(order, key=order.__getitem__)
    path = [step]
    while needs := plan.steps[step].needs:
        step = max(needs, key=order.__getitem__)
        path.append(step)
    return path


def subjects(state: Instance, facts: list[Fact]) -> set[int]:
    """The steps that the present state is about: what decided the end, or what is open."""
    if state.closing is None:
        return {unit.step for unit in pressing(state)}
    if state.closing.step >= 0:
        return {state.closing.step}
    if state.closing.failure is None:
        return set()
    # The instance's own time was up: what it had waited for was cancelled then.
    cut_off = [fact.step for fact in facts if fact.topic == "cancelled"]
    return set(cut_off[:PRESSING_MAX])


def is_relevant(state: Instance, fact: Fact, about: set[int]) -> bool:
    """Does a fact belong to the chain of an instance that did not complete?"""
    match fact.topic:
        case "step" | "settled":
            return fact.step in about
        case "undo":
            return state.closing is not None
        case "cancelled" | "pause":
            return False
        case _:
            return True


def without_passing(facts: list[Fact]) -> list[Fact]:
    """Leave out the beginning of attempts whose end is told."""
    last = {(fact.topic == "undo", fact.step): fact for fact in facts}
    return [
        fact for fact in facts if not fact.passing or last[fact.topic == "undo", fact.step] is fact
    ]


def shortened(facts: list[Fact]) -> list[Fact]:
    """The two ends of a chain that is too long."""
    left_out = len(facts) - CHAIN_MAX
    if left_out <= 0:
        return facts
    first = facts[CHAIN_HEAD]
    gap = Fact(first.turn, first.at, "step", -1, f"… and {left_out} more like these …")
    return [*facts[:CHAIN_HEAD], gap, *facts[CHAIN_HEAD + left_out :]]
