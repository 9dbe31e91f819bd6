"""Rates and schedules: the system cells that have a clock. What may enter them, and what happens.

A rate lets so many instances start within a span of time; a schedule starts a workflow at its
times. Cron lines and time zones are read by admission alone: what they say stands in the inputs.
"""

from hashlib import sha256
from typing import Final, Literal

from pawlflow.model.codec import encode
from pawlflow.model.ids import CellId, Digest, InstanceId, Tenant, TimeMs, WorkflowName
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record

RATE: Final = WorkflowName("$rate")
SCHEDULE: Final = WorkflowName("$schedule")
STARTER: Final = "schedule:"  # before the name of a schedule: who started its instances
KEY_DIGITS: Final = 32  # of a hash in a cell's key: 128 bits never meet by chance

CatchUp = Literal["none", "last", "all"]


def rate_key(workflow: str, value: object) -> InstanceId:
    """The rate that starts of a workflow with this key share."""
    return InstanceId(f"{RATE}/{workflow}/{sha256(encode(value)).hexdigest()[:KEY_DIGITS]}")


def schedule_key(name: str) -> InstanceId:
    """The key of the schedule with this name."""
    return InstanceId(f"{SCHEDULE}/{name}")


def schedule_cell(tenant: Tenant, name: str) -> CellId:
    """The cell that starts a workflow at its times."""
    return CellId(tenant, SCHEDULE, schedule_key(name))


class Cron(Record, frozen=True, gc=False):
    """The times of a schedule, and what becomes of those that were missed."""

    line: str  # five fields
    timezone: str
    catch_up: CatchUp


# Inputs of a rate; it answers an instance as slots do, by the records in inputs.py


class AskRate(Record, frozen=True, tag="rate.ask", gc=False):
    """An instance asks to start; `limit` may, within any span of `per_ms`."""

    workflow: WorkflowName
    key: InstanceId
    limit: int
    per_ms: int
    label: str
    priority: int = 0  # higher ones go first


class LeaveRate(Record, frozen=True, tag="rate.leave", gc=False):
    """An instance that waits to start no longer wants to."""

    workflow: WorkflowName
    key: InstanceId


# Inputs of a schedule; times are filled in by admission


class SetSchedule(Record, frozen=True, tag="schedule.set", gc=False):
    """Start this workflow, under this definition, at these times; `input` may hold `${...}`."""

    workflow: WorkflowName
    definition: Digest
    cron: Cron
    input: Payload
    by: str
    paused: bool | None = None  # None: as it is
    next: TimeMs | None = None  # the first time from now on


class RemoveSchedule(Record, frozen=True, tag="schedule.remove", gc=False):
    """Start nothing any more."""

    by: str


class ScheduleTick(Record, frozen=True, tag="schedule.tick", gc=False):
    """A tick, as admission knows it: these times are to be started, then `next` is waited for."""

    due: tuple[TimeMs, ...]
    next: TimeMs | None


class BackfillSchedule(Record, frozen=True, tag="schedule.backfill", gc=False):
    """Start what lies between two times of the past; `rest` is where the next turn goes on."""

    first: TimeMs
    last: TimeMs
    by: str
    due: tuple[TimeMs, ...] = ()
    rest: TimeMs | None = None


class PauseSchedule(Record, frozen=True, tag="schedule.pause", gc=False):
    """Start nothing until unpaused; the place in time is kept."""

    by: str
    comment: Payload | None = None


class UnpauseSchedule(Record, frozen=True, tag="schedule.unpause", gc=False):
    """Go on; what was missed is caught up as the schedule says."""

    by: str
    comment: Payload | None = None


# Inputs of the registry


class PublishSchedule(Record, frozen=True, tag="schedule.publish", gc=False):
    """Make a schedule that stands by itself known under its name."""

    name: str
    workflow: WorkflowName
    cron: Cron
    input: Payload
    paused: bool | None
    by: str


class WithdrawSchedule(Record, frozen=True, tag="schedule.withdraw", gc=False):
    """A schedule that stands by itself is no more."""

    name: str
    by: str


# Events of a rate


class RateLimited(Record, frozen=True, tag="rate.limited", gc=False):
    """How many may start within which span, from now on."""

    limit: int
    per_ms: int
    label: str


class RateGranted(Record, frozen=True, tag="rate.granted", gc=False):
    """The instance may start now."""

    workflow: WorkflowName
    key: InstanceId


class RateQueued(Record, frozen=True, tag="rate.queued", gc=False):
    """The instance waits, behind all of its priority who waited before."""

    workflow: WorkflowName
    key: InstanceId
    priority: int = 0


class RateLeft(Record, frozen=True, tag="rate.left", gc=False):
    """The instance waits no longer."""

    workflow: WorkflowName
    key: InstanceId


# Events of a schedule


class ScheduleChanged(Record, frozen=True, tag="schedule.changed", gc=False):
    """It starts this workflow at these times, first at `next`."""

    workflow: WorkflowName
    definition: Digest
    cron: Cron
    input: Payload
    next: TimeMs | None


class ScheduleRemoved(Record, frozen=True, tag="schedule.removed", gc=False):
    """It starts nothing any more."""


class ScheduleFired(Record, frozen=True, tag="schedule.fired", gc=False):
    """An instance was started for each of these times; `next` comes after them."""

    due: tuple[TimeMs, ...]
    next: TimeMs | None


class ScheduleMissed(Record, frozen=True, tag="schedule.missed", gc=False):
    """Nothing is started from `first` on, before `until`; with a `code`, for that one time."""

    first: TimeMs
    until: TimeMs
    code: str = ""


class ScheduleBackfilled(Record, frozen=True, tag="schedule.backfilled", gc=False):
    """An instance was started for each of these times of the past, unless there was one."""

    due: tuple[TimeMs, ...]
    by: str


class SchedulePaused(Record, frozen=True, tag="schedule.paused", gc=False):
    """Nothing is started."""

    by: str
    comment: Payload | None = None


class ScheduleUnpaused(Record, frozen=True, tag="schedule.unpaused", gc=False):
    """It goes on."""

    by: str
    comment: Payload | None = None


# Events of the registry


class SchedulePublished(Record, frozen=True, tag="schedule.published", gc=False):
    """The schedule is known under its name."""

    name: str
    workflow: WorkflowName
    cron: Cron
    input: Payload
    paused: bool | None
    by: str


class ScheduleWithdrawn(Record, frozen=True, tag="schedule.withdrawn", gc=False):
    """The schedule is no more."""

    name: str
    by: str


TimedInput = (
    AskRate
    | LeaveRate
    | SetSchedule
    | RemoveSchedule
    | ScheduleTick
    | BackfillSchedule
    | PauseSchedule
    | UnpauseSchedule
    | PublishSchedule
    | WithdrawSchedule
)
TimedEvent = (
    RateLimited
    | RateGranted
    | RateQueued
    | RateLeft
    | ScheduleChanged
    | ScheduleRemoved
    | ScheduleFired
    | ScheduleMissed
    | ScheduleBackfilled
    | SchedulePaused
    | ScheduleUnpaused
    | SchedulePublished
    | ScheduleWithdrawn
)
