"""Queues: where an instance stands that waits for a slot or for its rate, and for how long."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from pawlflow.definition.fields import duration_text
from pawlflow.kernel.state import Instance
from pawlflow.kernel.system import System
from pawlflow.kernel.system.line import Who
from pawlflow.kernel.system.rate import Rate
from pawlflow.kernel.system.slots import Slots
from pawlflow.kernel.system.starting import asking
from pawlflow.model.ids import InstanceId, TimeMs
from pawlflow.projections.plain import time_told

HOLDERS_MAX: Final = 20  # named; more are counted


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the line of a system cell."""

    kind: str  # "slot" or "rate"
    key: str  # the value of the key, in words
    limit: int
    ahead: int
    waiting: int
    per_ms: int | None = None
    starts_at: TimeMs | None = None  # of a rate: at the earliest, as it stands
    holders: Sequence[str] = ()


def awaited_cell(state: Instance) -> InstanceId | None:
    """The key of the system cell whose answer an instance waits for."""
    asked = asking(state) if state.closed is None else ""
    return InstanceId(state.slot if asked == "slot" else state.rate) if asked else None


def standing_in(found: System | None, who: Who) -> Standing | None:
    """Where an instance stands there, if it does."""
    if not isinstance(found, Slots | Rate) or who not in found.queue:
        return None
    line = [place[:2] for place in found.queue.places()]
    ahead = line.index(who)
    said: dict[str, Any] = {"key": found.label, "limit": found.limit, "ahead": ahead}
    said["waiting"] = len(line)
    if isinstance(found, Slots):
        holders = [key for _, key in found.holders][:HOLDERS_MAX]
        return Standing(kind="slot", holders=holders, **said)
    return Standing(kind="rate", per_ms=found.per_ms, starts_at=found.start_of(ahead), **said)


def standing_words(standing: Standing, starts: str) -> str:
    """What it waits for, and what is before it; `starts` tells the time of a rate."""
    many = "1 is" if standing.ahead == 1 else f"{standing.ahead} are"
    before = f"{many} before it" if standing.ahead else "it is the next"
    if standing.kind == "rate":
        limit = f"{standing.limit} per {duration_text(standing.per_ms or 0)}"
        return f"waits for its rate ({limit} of {standing.key!r}): {before}, starting at {starts}"
    held = ", ".join(standing.holders)
    return f"waits for a slot ({standing.limit} of {standing.key!r}): {before}, behind {held}"


def standing_told(standing: Standing | None) -> dict[str, Any] | None:
    """The same for programs."""
    if standing is None:
        return None
    told: dict[str, Any] = msgspec.to_builtins(standing)
    return told | {"starts_at": time_told(standing.starts_at)}
