"""Alerts: what an operator should know, as the engine told it last. Read from the journal."""

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any, Final

import msgspec

from pawlflow.kernel.replay import read_turn
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import RUNNING, UNDO_RUNNING, Unit
from pawlflow.model.ids import InstanceId, Tenant
from pawlflow.model.system import EmitEvent
from pawlflow.projections.reading import beside_of
from pawlflow.store.port import Store

EVENT: Final = "pawl.alerts"  # every change is told as this event, whole
KEY: Final = InstanceId(f"$topic/{EVENT}")
BACK: Final = (1, 16, 256, 4_096)  # turns looked back: others may listen, and be listed there
NO_EXECUTOR: Final = "effect.no_executor"
WORDS: Final = {"run": "@pawl.effect(NAME)", "agent": "@pawl.agent(ROLE)"}


class Said(msgspec.Struct, frozen=True):
    """What was told last of a tenant, and by which process."""

    alerts: Sequence[dict[str, Any]] = ()
    process: int | None = None
    at: str | None = None


def alerts_said(store: Store, tenant: Tenant) -> Said:
    """The alerts of a tenant as they were told last. It costs what came after them."""
    address = (tenant, KEY)
    image = store.load([address]).get(address)
    for back in BACK if image is not None else ():
        assert image is not None
        story = store.story(address, max(0, image.head.turn - back))
        if story is None:
            break
        payloads = {**beside_of(story.entries, tenant), **story.blobs}
        for entry in reversed(story.entries):
            incoming = read_turn(entry.data, payloads).input
            if isinstance(incoming, EmitEvent):
                return still_so(store, tenant, said_in(incoming.data.value))
    return Said()


def still_so(store: Store, tenant: Tenant, said: Said) -> Said:
    """Without alerts whose every instance has nothing in flight any more.

    Who told them may have been killed before it could take them back.
    """
    keys = {key for each in said.alerts for key in each["examples"]}
    addresses = [(tenant, InstanceId(key)) for key in keys]
    heads = {key: image.head for (_, key), image in store.load(addresses).items()}
    waiting = {key for key, head in heads.items() if head.closed_at is None and head.calls}
    kept = [
        each
        for each in said.alerts
        if each["instances"] > len(each["examples"]) or waiting.intersection(each["examples"])
    ]
    return msgspec.structs.replace(said, alerts=kept)


def said_in(data: Any) -> Said:
    """What an event says; one that somebody else has emitted under our name says nothing."""
    try:
        return msgspec.convert(data, Said)
    except msgspec.ValidationError:
        return Said()


Found = Mapping[tuple[str, str], dict[str, Any]]  # by kind (run, agent) and name


def by_effect(alerts: Sequence[dict[str, Any]]) -> Found:
    """Effects without an executor."""
    return {(each["kind"], each["effect"]): each for each in alerts if each["code"] == NO_EXECUTOR}


def unattended(state: Instance, unit: Unit, alerts: Found) -> dict[str, Any] | None:
    """The alert about the attempt, or the undo, of a unit that runs."""
    plan = state.plan.steps[unit.step]
    if not alerts or not plan.attempted:
        return None
    if unit.undo == UNDO_RUNNING and plan.undo is not None:
        return alerts.get(("agent" if plan.undo.by_agent else "run", plan.undo.target))
    if unit.status != RUNNING:
        return None
    if plan.by_agent:
        return alerts.get(("agent", unit.role or plan.target))
    return alerts.get(("run", plan.target))


def alerts_about(state: Instance, alerts: Found) -> list[dict[str, Any]]:
    """The alerts about what an instance waits for, each once."""
    places = dict.fromkeys([*state.open, *state.undoing]) if alerts else {}
    found = [unattended(state, state.unit(place), alerts) for place in places]
    return list({each["effect"]: each for each in found if each is not None}.values())


def alert_words(alert: Mapping[str, Any]) -> str:
    """An alert in words."""
    count = alert["instances"]
    many = "1 instance waits" if count == 1 else f"{count:,} instances wait"
    what = "the tasks of role" if alert["kind"] == "agent" else "the effect"
    why = f" ({alert['reason']})" if alert.get("reason") else ""
    return f"no executor for {what} {alert['effect']} since {alert['since']}{why}; {many} for it"


def ways_out(key: str, alert: Mapping[str, Any]) -> list[str]:
    """What may be done about it, as a shell takes it, the most useful first."""
    name, register = quote(str(alert["effect"])), WORDS[alert["kind"]]
    return [
        f"pawl wait {key} --worker MODULE  # one that has {name}; or register it: {register}",
        f"pawl wait {key} --stubs FILE  # answer by hand in its place",
        f"pawl cancel {key} --by NAME",
    ]
