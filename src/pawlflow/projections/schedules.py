"""Schedules as `pawl schedules` shows them: the registry knows their names, and each its own."""

from collections.abc import Iterator
from typing import Any

from pawlflow.kernel.system.registry import Registry
from pawlflow.kernel.system.schedule import Schedule, run_key
from pawlflow.projections.plain import time_told, value_of


def schedule_names(registry: Registry) -> list[str]:
    """Every schedule of a tenant by its name: those of workflows, and those that stand beside."""
    own = (name for name, found in registry.newest.items() if found.schedule is not None)
    return sorted([*own, *registry.schedules])


def schedule_row(state: Schedule, registry: Registry) -> dict[str, Any]:
    """A schedule in a list. A job it has: it is listed by nobody else."""
    job = state.job
    assert job is not None, "a schedule without a job is none"
    return {
        "name": state.name,
        "workflow": job.workflow,
        "schedule": job.cron.line,
        "timezone": job.cron.timezone,
        "catch_up": job.cron.catch_up,
        "paused": state.paused_by is not None,
        "next_at": time_told(state.next),
        "last_at": time_told(state.recent[-1]) if state.recent else None,
        "from": "document" if state.name in registry.schedules else "workflow",
    }


def schedule_told(state: Schedule, registry: Registry) -> dict[str, Any]:
    """A schedule with all that is known of it."""
    row, job, missed = schedule_row(state, registry), state.job, state.missed
    assert job is not None
    return row | {
        "definition_hash": job.definition.hex(),
        "input": value_of(job.input),
        "paused_by": state.paused_by,
        "paused_at": time_told(state.paused_at),
        "fired": state.fired,
        "missed": None
        if missed is None
        else {
            "first_at": time_told(missed.first),
            "until": time_told(missed.until),
            "code": missed.code or None,
        },
        "recent": list(recent_told(state)),
    }


def recent_told(state: Schedule) -> Iterator[dict[str, Any]]:
    """The instances it started last, newest first."""
    for due in reversed(state.recent):
        yield {"id": run_key(state.name, due), "due_at": time_told(due)}
