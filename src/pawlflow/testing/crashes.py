"""Crash everywhere: the same scenario again, once for each point where the host can die."""

from random import Random  # noqa: TID251  # seeded by the scenario's name
from typing import Any, Final

import msgspec

from pawlflow.testing.compare import Mismatch, shown
from pawlflow.testing.host import Crash
from pawlflow.testing.runner import HostOn, Result, run_scenario
from pawlflow.testing.scenario import Scenario

TURNS_MAX: Final = 200  # crash points grow with turns, and each costs a whole run


def crash_everywhere(
    scenario: Scenario, calm: Result, *, everything: bool = False, host: HostOn | None = None
) -> Result:
    """Crash before and after the commit of every turn; nothing may come out differently."""
    turns = list(range(1, calm.turns + 1))
    sampled = calm.turns > TURNS_MAX and not everything
    if sampled:
        turns = sorted(Random(scenario.name).sample(turns, TURNS_MAX))
    points = [Crash(turn, when) for turn in turns for when in ("before", "after")]
    failures = list(calm.failures)
    for point in points:
        again = run_scenario(scenario, point, host)
        failures += differences(point, calm.actual, again)
    return msgspec.structs.replace(calm, failures=failures, crashes=len(points), sampled=sampled)


def differences(point: Crash, calm: dict[str, Any], again: Result) -> list[Mismatch]:
    """What the crash changed, and whether the journal it left still replays."""
    where = f"crash {point.when} the commit of turn {point.turn}"
    changed = [
        Mismatch(
            f"crash.{field}",
            calm[field],
            again.actual[field],
            f"{where}: {field} became {shown(again.actual[field])}, was {shown(calm[field])}",
        )
        for field in calm
        if calm[field] != again.actual[field]
    ]
    return changed + [found for found in again.failures if found.field == "replay"]
