"""A schedule: one workflow, started at its times.

It reads neither a clock nor a time zone. When it is woken, admission says which times have come and
which is next, and both are journalled with the tick. An instance has the name of the schedule and
its time as its id, so that no crash, no second delivery and no backfill can start it twice.
"""

from collections import deque
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from pawlflow.definition.express import ExpressionError, Template, compile_template
from pawlflow.kernel.refused import Rejected
from pawlflow.kernel.system import System, SystemDraft, misplaced
from pawlflow.model.codec import CodecError, decode
from pawlflow.model.ids import CellId, Digest, InstanceId, TimeMs, WorkflowName
from pawlflow.model.inputs import Input, StartInstance, Tick
from pawlflow.model.payload import Payload, PayloadError, fits
from pawlflow.model.records import Record
from pawlflow.model.timed import (
    SCHEDULE,
    STARTER,
    BackfillSchedule,
    Cron,
    PauseSchedule,
    RemoveSchedule,
    ScheduleBackfilled,
    ScheduleChanged,
    ScheduleFired,
    ScheduleMissed,
    SchedulePaused,
    ScheduleRemoved,
    ScheduleTick,
    ScheduleUnpaused,
    SetSchedule,
    UnpauseSchedule,
    schedule_key,
)

FORMAT: Final = 1
RECENT_MAX: Final = 20  # times of starts that are remembered: for people
INPUTS_MAX: Final = 1_024  # compiled inputs kept; one takes a few kilobytes
ROOTS: Final = frozenset({"schedule"})
DAY_MS: Final = 86_400_000


class Job(Record, frozen=True, gc=False):
    """What is started, and when."""

    workflow: WorkflowName
    definition: Digest
    cron: Cron
    input: Payload


class Missed(Record, frozen=True, gc=False):
    """The last times for which nothing was started."""

    first: TimeMs
    until: TimeMs
    code: str


class Schedule(System):
    """Where a schedule stands."""

    __slots__ = ("fired", "job", "missed", "name", "next", "paused_at", "paused_by", "recent")

    def __init__(self, cell: CellId) -> None:
        super().__init__(cell)
        self.name = cell.key.removeprefix(schedule_key(""))
        self.job: Job | None = None  # None: there is no such schedule, or no longer
        self.next: TimeMs | None = None  # None: its times are over
        self.paused_by: str | None = None
        self.paused_at: TimeMs | None = None
        self.fired = 0
        self.recent: deque[TimeMs] = deque(maxlen=RECENT_MAX)
        self.missed: Missed | None = None

    @property
    def due(self) -> TimeMs | None:
        """Its next time, unless it is paused: then that time waits."""
        return self.next if self.paused_by is None else None


def decide(draft: SystemDraft[Schedule], incoming: Input) -> Rejected | None:
    """Apply one input to the draft. A refusal comes before the first event, or not at all."""
    state = draft.state
    if isinstance(incoming, SetSchedule):
        change(draft, incoming)
        return None
    if isinstance(incoming, Tick):  # it was due for nobody, or admission had made more of it
        return Rejected("timer.not_due", state.cell.key)
    if state.job is None:
        return Rejected("schedule.unknown", state.name)
    match incoming:
        case ScheduleTick():
            return fire(draft, incoming, state.job)
        case BackfillSchedule():
            return backfill(draft, incoming, state.job)
        case PauseSchedule() | UnpauseSchedule():
            return hold(draft, incoming)
        case RemoveSchedule():
            draft.emit(ScheduleRemoved())
            return None
        case _:
            return misplaced(state, incoming)


def change(draft: SystemDraft[Schedule], incoming: SetSchedule) -> None:
    """Take on what is published. With the same times it keeps its place, missed ones included."""
    state = draft.state
    kept = state.job is not None and times_of(state.job.cron) == times_of(incoming.cron)
    next_ = state.next if kept else incoming.next
    job = (incoming.workflow, incoming.definition, incoming.cron, incoming.input)
    draft.emit(ScheduleChanged(*job, next_))
    if incoming.paused is not None and incoming.paused != (state.paused_by is not None):
        draft.emit((SchedulePaused if incoming.paused else ScheduleUnpaused)(incoming.by))


def times_of(cron: Cron) -> tuple[str, str]:
    """What the times follow from."""
    return cron.line, cron.timezone


def fire(draft: SystemDraft[Schedule], incoming: ScheduleTick, job: Job) -> Rejected | None:
    """Start an instance for each time that has come, and wait for the next."""
    state = draft.state
    expected = state.due
    if expected is None or expected > state.now:
        return Rejected("timer.not_due", state.cell.key)
    if not incoming.due or incoming.due[0] > expected:
        until = incoming.due[0] if incoming.due else state.now
        draft.emit(ScheduleMissed(expected, until))
    started = start_all(draft, incoming.due, job)
    draft.emit(ScheduleFired(started, incoming.next))
    return None


def backfill(draft: SystemDraft[Schedule], incoming: BackfillSchedule, job: Job) -> Rejected | None:
    """Start what lies between two times; those that exist stay as they are. Then the next page."""
    if not incoming.due:
        return Rejected("schedule.nothing", draft.state.name)
    started = start_all(draft, incoming.due, job)
    draft.emit(ScheduleBackfilled(started, incoming.by))
    if incoming.rest is not None:
        again = BackfillSchedule(incoming.rest, incoming.last, incoming.by)
        draft.send(SCHEDULE, draft.state.cell.key, again)
    return None


def hold(
    draft: SystemDraft[Schedule], incoming: PauseSchedule | UnpauseSchedule
) -> Rejected | None:
    """Start nothing, or go on."""
    state = draft.state
    wanted = isinstance(incoming, PauseSchedule)
    if wanted == (state.paused_by is not None):
        return Rejected("schedule.paused" if wanted else "schedule.not_paused", state.name)
    event = SchedulePaused if wanted else ScheduleUnpaused
    draft.emit(event(incoming.by, incoming.comment))
    return None


def start_all(draft: SystemDraft[Schedule], due: Iterable[TimeMs], job: Job) -> tuple[TimeMs, ...]:
    """Send a start for each of these times whose input can be made."""
    state, started = draft.state, list[TimeMs]()
    for time in due:
        made = input_at(state, job, time)
        if isinstance(made, str):
            draft.emit(ScheduleMissed(time, time, made))
            continue
        start = StartInstance(job.definition, made, f"{STARTER}{state.name}")
        draft.send(job.workflow, run_key(state.name, time), start)
        started.append(time)
    return tuple(started)


def input_at(state: Schedule, job: Job, due: TimeMs) -> Payload | str:
    """The input of the run at a time, or the code of what is wrong with it."""
    assert job.input.data is not None, "the input of a schedule lies beside it"
    about = {"name": state.name, "due": moment(due)}
    try:
        program = compiled(job.input.data)
        if program.constant:
            return job.input
        made = program.evaluate([about] * len(program.refs))
        return Payload.of(made, state.cell.tenant) if fits(made) else "payload.too_large"
    except (ExpressionError, CodecError, PayloadError) as error:
        return error.code


@lru_cache(INPUTS_MAX)
def compiled(data: bytes) -> Template:
    """The input of a schedule, compiled. Raises ExpressionError: `pawl check` has said so."""
    value: Any = decode(data)
    return compile_template(value, roots=ROOTS)


def run_key(name: str, due: TimeMs) -> InstanceId:
    """The id of the instance that a schedule starts at a time; cron knows no seconds."""
    return InstanceId(f"{name}.{moment(due)[:16]}Z")


def moment(at: TimeMs) -> str:
    """A time by RFC 3339, in UTC, to the second."""
    days, ms = divmod(at, DAY_MS)
    seconds = ms // 1000
    year, month, day = date_of(days)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{year:04}-{month:02}-{day:02}T{clock}Z"


def date_of(days: int) -> tuple[int, int, int]:
    """The day so many days after 1970-01-01, in years that begin in March: February ends them."""
    eras, rest = divmod(days + 719_468, 146_097)  # since 0000-03-01; an era has 400 years
    years = (rest - rest // 1_460 + rest // 36_524 - rest // 146_096) // 365
    rest -= 365 * years + years // 4 - years // 100
    month = (5 * rest + 2) // 153
    day = rest - (153 * month + 2) // 5 + 1
    return years + eras * 400 + (month > 9), (month + 2) % 12 + 1, day


# Evolve


def on_changed(state: Schedule, event: ScheduleChanged) -> None:
    """Another job, or the same at other times."""
    state.job = Job(event.workflow, event.definition, event.cron, event.input)
    state.next = event.next


def on_removed(state: Schedule, _: ScheduleRemoved) -> None:
    """Whoever publishes it again begins anew."""
    state.job = state.next = state.paused_by = state.paused_at = state.missed = None
    state.recent.clear()
    state.fired = 0


def on_fired(state: Schedule, event: ScheduleFired) -> None:
    """On to the next time."""
    state.next = event.next
    state.recent.extend(event.due)
    state.fired += len(event.due)


def on_missed(state: Schedule, event: ScheduleMissed) -> None:
    """For people to see."""
    state.missed = Missed(event.first, event.until, event.code)


def on_backfilled(_: Schedule, __: ScheduleBackfilled) -> None:
    """What is past changes nothing about what comes."""


def on_paused(state: Schedule, event: SchedulePaused) -> None:
    """By whom, and since when."""
    state.paused_by, state.paused_at = event.by, state.now


def on_unpaused(state: Schedule, _: ScheduleUnpaused) -> None:
    """Due again, and at once if its time has passed."""
    state.paused_by = state.paused_at = None


# What is written


class ScheduleFacts(Record, frozen=True):
    """The facts of a schedule, in order."""

    format: int
    turn: int
    now: TimeMs
    rules: int
    job: Job | None
    next: TimeMs | None
    paused_by: str | None
    paused_at: TimeMs | None
    fired: int
    recent: tuple[TimeMs, ...]
    missed: Missed | None


def facts_of(state: Schedule) -> ScheduleFacts:
    """All that a state is rebuilt from."""
    return ScheduleFacts(
        FORMAT,
        state.turn,
        state.now,
        state.rules,
        state.job,
        state.next,
        state.paused_by,
        state.paused_at,
        state.fired,
        tuple(state.recent),
        state.missed,
    )


def from_facts(found: ScheduleFacts, cell: CellId) -> Schedule:
    """The state these are the facts of."""
    state = Schedule(cell)
    state.job, state.next = found.job, found.next
    state.paused_by, state.paused_at = found.paused_by, found.paused_at
    state.fired, state.missed = found.fired, found.missed
    state.recent.extend(found.recent)
    return state
