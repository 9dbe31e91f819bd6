"""What a lab says when a test cannot go on: what is waited for, and the ways on."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pawlflow.definition.fields import duration_text
from pawlflow.model.ids import InstanceId, TimeMs
from pawlflow.model.trouble import PawlError
from pawlflow.projections.kin import Kin
from pawlflow.projections.plain import time_told
from pawlflow.projections.reading import story_of
from pawlflow.projections.show import show
from pawlflow.projections.why import why
from pawlflow.store.port import Address, Store
from pawlflow.testing.world import Called

LEVELS_MAX: Final = 3  # of children that are asked what they wait for


class LabError(PawlError):
    """A test asks a lab for what cannot be; the message says what can."""


class StillWaiting(LabError):  # noqa: N818  # what a run is
    """Nothing more can happen by itself, and the run is not closed."""


def waiting_told(
    store: Store, address: Address, now: TimeMs, to_come: Sequence[int], orphans: Sequence[str]
) -> str:
    """What an instance waits for, as `why` tells it, and what a test can do about it."""
    tenant, key = address
    told = why(story_of(store, tenant, key), now, None, Kin(store, tenant))
    acts: list[str] = []
    deadlines = list(to_come)
    look_for_ways(store, address, (acts, deadlines), LEVELS_MAX)
    ways = list(dict.fromkeys(acts))
    if deadlines:
        ways.append(f'skip("{duration_text(max(0, min(deadlines) - now))}"), to the next deadline')
    if orphans:
        named = ", ".join(sorted(set(orphans)))
        ways.append(f"script() or register what nobody carries out: {named}")
    if not ways:
        ways.append(f'signal("{key}", EVENT, DATA), cancel("{key}"), or skip() to a later time')
    lines = [
        f"{key} is {told['state']}, and nothing more can happen at {time_told(now)}:",
        f"  {told['now']}",
        "To go on, let the test do one of these first:",
        *(f"  {way}" for way in ways),
    ]
    return "\n".join(lines)


def look_for_ways(
    store: Store, address: Address, found: tuple[list[str], list[int]], levels: int
) -> None:
    """The acts that move an instance and the children it waits for, and their deadlines."""
    image = store.load([address]).get(address)
    if image is None or image.head.closed_at is not None:
        return
    tenant, key = address
    shown = show(story_of(store, tenant, key), kin=Kin(store, tenant))
    if shown["paused"]:
        found[0].append(f'unpause("{key}", by=NAME)')
    if image.head.due_at is not None:
        found[1].append(image.head.due_at)
    for waiting in shown["waiting"]:
        found[0].extend(acts_for(key, waiting))
        if waiting.get("child") is not None and levels:
            child = (tenant, InstanceId(waiting["child"]["id"]))
            look_for_ways(store, child, found, levels - 1)


def acts_for(key: str, waiting: dict[str, Any]) -> Iterator[str]:
    """What somebody outside may say to a step that waits."""
    step, role = waiting["step"], waiting.get("role")
    by = "by=NAME" if role is None else f'by=NAME, role="{role}"'
    match waiting["kind"]:
        case "approval":
            yield f'approve("{key}", "{step}", {by}), or reject()'
        case "event":
            yield f'signal("{key}", "{waiting["event"]}", DATA), or emit()'
        case "escalation":
            yield f'resume("{key}", "{step}", {by}), retry() or reassign()'
        case "budget":
            yield f'approve("{key}", "{step}", by=NAME, limits=LIMITS), or reject()'
        case _:  # a timer, or a child that is asked itself
            return


def functions_told(running: Sequence[Called], patience: float) -> str:
    """Functions that do not come to an end, and what to do about it."""
    places = [f"{each.name} ({each.step}#{each.attempt} of {each.instance})" for each in running]
    return (
        f"still running after {patience:g} real seconds: {', '.join(places)}\n"
        "Time stands still while a function runs. Let it wait in virtual time with "
        '`await lab.sleep("5m")`, or for ever with `await lab.sleep()`; script it instead '
        "(hang=True); or give it longer: Lab(patience=60)."
    )
