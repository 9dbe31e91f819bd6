"""The times of schedules: cron lines and time zones, asked here, once, and journalled with inputs.

Data about time zones changes; what was decided by it does not. On the days of a clock change a line
with fixed minutes and hours fires once: a time that is left out at the moment the clock jumps over
it, a time that comes twice at the first. A line with `*` there goes by the time that passes.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from itertools import islice, takewhile
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from msgspec.structs import replace

from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.system.registry import Registry
from pawlflow.kernel.system.schedule import Schedule
from pawlflow.model.ids import TimeMs
from pawlflow.model.inputs import Input, Tick
from pawlflow.model.system import PublishDefinition
from pawlflow.model.timed import BackfillSchedule, Cron, PublishSchedule, ScheduleTick, SetSchedule

STARTS_MAX: Final = 100  # of one turn; the rest follows in the next
LATE_MS: Final = 60_000  # a start is on time within this: engines are busy, and clocks drift
ZONES_MAX: Final = 1_024
BACK_MS: Final = (60_000, 3_600_000, 86_400_000, 32 * 86_400_000, 366 * 86_400_000)


def admit_times(state: object, incoming: Input, now: TimeMs) -> Input | Rejected:
    """An input of a schedule or a registry, with the times that it asks for."""
    match state, incoming:
        case Registry(), PublishDefinition() | PublishSchedule():
            cron = incoming.cron if isinstance(incoming, PublishSchedule) else incoming.schedule
            wrong = None if cron is None else problem(cron)
            return incoming if wrong is None else Rejected("schedule.bad", wrong)
        case Schedule(), SetSchedule():
            return replace(incoming, next=next(times(incoming.cron, now), None))
        case Schedule(due=due, job=job), Tick() if job and due is not None and due <= now:
            return tick(job.cron, due, now)
        case Schedule(job=job), BackfillSchedule() if job:
            return page(job.cron, incoming, now)
        case _:
            return incoming


def problem(cron: Cron) -> str | None:
    """Why this machine cannot tell the times of a schedule."""
    try:
        never = next(times(cron, TimeMs(0)), None) is None
    except (CronSimError, LookupError, ValueError, OSError) as error:
        return f"{cron.line!r} in {cron.timezone!r}: {error}"
    return f"{cron.line!r} never comes" if never else None


def tick(cron: Cron, due: TimeMs, now: TimeMs) -> ScheduleTick:
    """What is to be started now, of all that was due until now, and when there is more."""
    if cron.catch_up == "last":
        found = latest(cron, due, now)
    else:
        late = now - LATE_MS + 1 if cron.catch_up == "none" else due
        found = between(cron, max(due, TimeMs(late)), now, STARTS_MAX)
    after = found[-1] if len(found) == STARTS_MAX else now
    return ScheduleTick(tuple(found), next(times(cron, after), None))


def page(cron: Cron, asked: BackfillSchedule, now: TimeMs) -> BackfillSchedule | Rejected:
    """The next times of a backfill, and where those after them begin."""
    if asked.last > now:
        return Rejected("schedule.future", "a backfill is of the past")
    found = between(cron, max(asked.first, TimeMs(0)), asked.last, STARTS_MAX + 1)
    rest = found[STARTS_MAX] if len(found) > STARTS_MAX else None
    return replace(asked, due=tuple(found[:STARTS_MAX]), rest=rest)


def latest(cron: Cron, first: TimeMs, now: TimeMs) -> list[TimeMs]:
    """The last time up to now, found by looking back further and further."""
    for back in BACK_MS:
        found = between(cron, max(first, TimeMs(now - back)), now)
        if found:
            return found[-1:]
    return between(cron, first, now)[-1:]


def between(cron: Cron, first: TimeMs, last: TimeMs, most: int | None = None) -> list[TimeMs]:
    """The times from one to another, both included, or the earliest of them."""
    found = takewhile(lambda time: time <= last, times(cron, TimeMs(first - 1)))
    return list(islice(found, most))


def times(cron: Cron, after: TimeMs) -> Iterator[TimeMs]:
    """Every time after one, in order; an end comes only if there is none in fifty years."""
    begin = datetime.fromtimestamp(after // 1000, zone(cron.timezone))
    last = after
    for found in CronSim(cron.line, begin):
        time = TimeMs(int(found.timestamp()) * 1000)
        if time > last:  # the hour that comes twice is begun anew by whoever asks inside of it
            last = time
            yield time


@lru_cache(ZONES_MAX)
def zone(name: str) -> tzinfo:
    """A time zone by its name. Raises ZoneInfoNotFoundError, a LookupError."""
    return UTC if name == "UTC" else ZoneInfo(name)
