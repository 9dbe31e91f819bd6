"""What lies between cells, as an outsider reads it: children, rates, schedules, batches.

Each is seen from both sides: what the system cell says, and what the instances say.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from pawlflow.engine.system.schedules import LATE_MS, STARTS_MAX
from pawlflow.model.batches import ActAnswered, BatchClosed, TargetsAdded
from pawlflow.model.events import InstanceCreated, InstanceStarted
from pawlflow.model.ids import CellId, InstanceId, StepKey, Tenant
from pawlflow.model.inputs import Receipt
from pawlflow.model.journal import Turn
from pawlflow.model.payload import Payload
from pawlflow.model.system import ChildStarted
from pawlflow.model.timed import (
    STARTER,
    RateGranted,
    RateLimited,
    ScheduleBackfilled,
    ScheduleChanged,
    ScheduleFired,
    ScheduleMissed,
    SchedulePaused,
    ScheduleUnpaused,
)
from pawlflow.testing.sim.audit import Audit, Report
from pawlflow.testing.sim.language import PERIODS

PUT_ASIDE: Final = frozenset({"cell.quarantined", "cell.raised"})
Attempt = tuple[Tenant, StepKey, int]


class Child:
    """An instance that another one asked for."""

    def __init__(self, id_: CellId) -> None:
        self.id = id_
        self.closed = self.completed = False
        self.output: Payload | None = None


class Rate:
    """The starts that a rate has let go."""

    def __init__(self) -> None:
        self.limit = self.per_ms = 0
        self.granted: dict[InstanceId, int] = {}


class Times:
    """A schedule, and the times it has started something for."""

    def __init__(self) -> None:
        self.period = 0
        self.catch_up = ""
        self.next: int | None = None
        self.fired: dict[int, None] = {}
        self.filled: dict[int, None] = {}  # afterwards, because somebody asked for it
        self.held = False


class Many:
    """One act on many."""

    def __init__(self) -> None:
        self.targets: dict[InstanceId, None] = {}
        self.answers: dict[InstanceId, str] = {}
        self.complete = self.closed = False


class Between:
    """All that instances and system cells say of each other."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.children: dict[Attempt, Child] = {}
        self.born: dict[tuple[Tenant, InstanceId], Child] = {}
        self.asked: dict[tuple[Tenant, InstanceId], None] = {}  # children, of the registry
        self.answered: dict[Attempt, None] = {}
        self.rates: dict[tuple[Tenant, InstanceId], Rate] = {}
        self.schedules: dict[tuple[Tenant, str], Times] = {}
        self.batches: dict[tuple[Tenant, str], Many] = {}
        self.acted: dict[tuple[Tenant, str, InstanceId], None] = {}

    def read(self, cell: CellId, turn: Turn) -> None:
        """One more turn of a system cell."""
        match cell.workflow:
            case "$registry":
                self.read_registry(cell, turn)
            case "$rate":
                self.read_rate(cell, turn)
            case "$schedule":
                self.read_schedule(cell, turn)
            case "$batch":
                self.read_batch(cell, turn)
            case _:
                pass  # slots and topics are watched from the instances

    def read_instance(self, audit: Audit, turn: Turn, known: dict[Any, Any]) -> None:
        """One more turn of an instance."""
        cell = audit.cell
        for event in turn.events:
            if isinstance(event, InstanceCreated):
                self.born_now(audit, event, known)
            elif isinstance(event, InstanceStarted) and audit.rate:
                rate = self.rates.get((cell.tenant, InstanceId(audit.rate)))
                if rate is None or cell.key not in rate.granted:
                    self.report("rate", cell, "it starts, and its rate does not know of it")
        if audit.closed and (cell.tenant, cell.key) in self.born:
            self.gone(self.born[cell.tenant, cell.key], turn)
        for receipt in audit.heard:
            self.judge(cell, receipt)
        audit.heard.clear()
        batch = getattr(turn.input, "batch", "")
        if batch:
            self.act(cell, batch)

    # Children

    def born_now(self, audit: Audit, event: InstanceCreated, known: dict[Any, Any]) -> None:
        """A child has exactly one parent, which asked for it in an attempt; once."""
        cell, parent = audit.cell, event.parent
        if event.by.startswith(STARTER) and parent is None:
            self.scheduled(cell, event.by.removeprefix(STARTER))
        if parent is None:
            return
        attempt = (cell.tenant, parent.step_key, parent.attempt)
        shadow = known.get((cell.tenant, parent.key))
        theirs = None if shadow is None or shadow.audit is None else shadow.audit
        if theirs is None or theirs.keys.get(parent.step_key, ("", "", ""))[2] != "do":
            self.report("child", cell, f"{parent.key} has never asked for it")
        if attempt in self.children:
            self.report("child", cell, f"{self.children[attempt].id.key} is of the same attempt")
        made = self.children[attempt] = Child(cell)
        self.born[cell.tenant, cell.key] = made

    def gone(self, child: Child, turn: Turn) -> None:
        """A child has closed."""
        child.closed = True
        for event in turn.events:
            output = getattr(event, "output", None)
            if output is not None:
                child.completed, child.output = True, output

    def judge(self, parent: CellId, receipt: Receipt) -> None:
        """A parent takes the answer of a child: its own one, once, and only when it has closed."""
        attempt = (parent.tenant, receipt.key, receipt.attempt)
        child = self.children.get(attempt)
        if attempt in self.answered:
            self.report("child", parent, f"attempt {receipt.attempt} is answered twice")
        if child is not None:  # a start that was put aside may be sent once more by a human
            self.answered[attempt] = None
        if receipt.outcome == "ok":
            if child is None or not child.completed or child.output != receipt.result:
                self.report("child", parent, "a result is taken that no child of it gave")
        elif child is not None and (not child.closed or child.completed):
            self.report("child", parent, f"{child.id.key} has not failed, as is taken")

    def read_registry(self, cell: CellId, turn: Turn) -> None:
        """A child is started once."""
        for event in turn.events:
            if isinstance(event, ChildStarted):
                if (cell.tenant, event.child) in self.asked:
                    self.report("child", cell, f"{event.child} is started twice")
                self.asked[cell.tenant, event.child] = None

    # Rates

    def read_rate(self, cell: CellId, turn: Turn) -> None:
        """No window of the span ever holds more starts than the limit."""
        rate = self.rates.setdefault((cell.tenant, cell.key), Rate())
        for event in turn.events:
            if isinstance(event, RateLimited):
                rate.limit, rate.per_ms = event.limit, event.per_ms
            elif isinstance(event, RateGranted):
                if event.key in rate.granted:
                    self.report("rate", cell, f"{event.key} is let go twice")
                rate.granted[event.key] = now = turn.stamps.now
                within = sum(1 for at in rate.granted.values() if at > now - rate.per_ms)
                if within > rate.limit:
                    self.report("rate", cell, f"{within} starts within {rate.per_ms} ms")

    # Schedules

    def scheduled(self, cell: CellId, name: str) -> None:
        """An instance was started by a schedule: at one of its times, which had come."""
        times = self.schedules.get((cell.tenant, name))
        due = time_in(cell.key)
        if times is None or (due not in times.fired and due not in times.filled):
            self.report("due", cell, "nothing was due then")

    def read_schedule(self, cell: CellId, turn: Turn) -> None:
        """Every time once, none early, none left out but as it says."""
        name = cell.key.removeprefix("$schedule/")
        times = self.schedules.setdefault((cell.tenant, name), Times())
        missed = any(isinstance(event, ScheduleMissed) for event in turn.events)
        for event in turn.events:
            if isinstance(event, ScheduleChanged):
                times.period = PERIODS[event.cron.line]
                times.catch_up = event.cron.catch_up
                if times.next is None:
                    times.next = after(times, turn.stamps.now)
            elif isinstance(event, ScheduleFired):
                self.fired(cell, times, event, turn.stamps.now, missed=missed)
                times.next = after(times, event.due[-1] if full(event.due) else turn.stamps.now)
                if event.next != times.next:
                    why = f"{event.next} is next, and should be {times.next}"
                    self.report("due", cell, why)
            elif isinstance(event, ScheduleBackfilled):
                self.filled(cell, times, turn.input)
            elif isinstance(event, SchedulePaused | ScheduleUnpaused):
                times.held = isinstance(event, SchedulePaused)

    def filled(self, cell: CellId, times: Times, asked: Any) -> None:
        """A past is made up for: every time of it, and no other."""
        first = -(-asked.first // times.period) * times.period
        wanted = list(range(first, asked.last + 1, times.period))[:STARTS_MAX]
        if list(asked.due) != wanted:
            self.report("due", cell, f"{asked.due} are made up for, asked were {wanted}")
        times.filled |= dict.fromkeys(wanted)

    def fired(
        self, cell: CellId, times: Times, event: ScheduleFired, now: int, *, missed: bool
    ) -> None:
        """What was to be started, of all that has come."""
        if times.held:
            self.report("due", cell, "it is held, and starts something")
        first, period = times.next or 0, times.period
        come = list(range(first, now + 1, period))
        match times.catch_up:
            case "all":
                wanted = come[:STARTS_MAX]
            case "last":
                wanted = come[-1:]
            case _:
                wanted = [due for due in come if due > now - LATE_MS]
        twice = [due for due in event.due if due in times.fired]
        if twice or list(event.due) != wanted:
            why = f"at {now} {list(event.due)} are started, due were {wanted}, again {twice}"
            self.report("due", cell, why)
        if missed != (wanted[:1] != [first]):
            self.report("due", cell, f"{first} was missed, and nobody says so; or not, and they do")
        times.fired |= dict.fromkeys(event.due)

    # Batches

    def read_batch(self, cell: CellId, turn: Turn) -> None:
        """Targets are fixed once; an answer is true; the end is when all have answered."""
        batch = self.batches.setdefault((cell.tenant, cell.key.removeprefix("$batch/")), Many())
        for event in turn.events:
            match event:
                case TargetsAdded():
                    batch.targets |= {key: None for _, key in event.targets.value}
                    batch.complete = event.complete
                case ActAnswered():
                    id_ = cell.key.removeprefix("$batch/")
                    acted = (cell.tenant, id_, event.key) in self.acted
                    # What was put aside may have been sent once more while this was in the mail.
                    late = acted and event.code in PUT_ASIDE
                    if acted == bool(event.code) and not late:
                        self.report("batch", cell, f"{event.key}: {event.code or 'done'} is untrue")
                    batch.answers[event.key] = event.code
                case BatchClosed():
                    batch.closed = True
                    codes = list(batch.answers.values())
                    done, gone = codes.count(""), codes.count("instance.unknown")
                    counts = (done, len(codes) - done - gone, gone)
                    if counts != (event.done, event.refused, event.gone):
                        self.report("batch", cell, f"it counts {event}, and it is {counts}")
                case _:
                    pass

    def act(self, cell: CellId, id_: str) -> None:
        """An act of a batch: on somebody who is meant, and once."""
        batch = self.batches.get((cell.tenant, id_))
        if batch is None or cell.key not in batch.targets:
            self.report("batch", cell, f"{id_} does not mean it")
        if (cell.tenant, id_, cell.key) in self.acted:
            self.report("batch", cell, f"{id_} acts on it twice")
        self.acted[cell.tenant, id_, cell.key] = None

    # The end

    def finish(self, known: Iterable[tuple[Tenant, InstanceId]], dead: set[Any]) -> None:
        """After the storm: every time has its instance, every batch its answers."""
        there = set(known)
        for (tenant, name), times in self.schedules.items():
            for due in {**times.fired, **times.filled}:
                key = run_at(name, due)
                if (tenant, key) not in there and (tenant, key) not in dead:
                    cell = CellId(tenant, name, key)  # type: ignore[arg-type]
                    self.report("due", cell, "was to be started, and is not there")
        for (tenant, id_), batch in self.batches.items():
            cell = CellId(tenant, "$batch", id_)  # type: ignore[arg-type]
            answered = batch.closed and batch.targets.keys() == batch.answers.keys()
            if batch.complete and not answered:
                self.report("batch", cell, f"{batch.targets} were meant, {batch.answers} answered")
        for attempt, child in self.children.items():
            if not child.closed:
                self.report("child", child.id, f"runs for ever, of {attempt}")


FORMAT: Final = "%Y-%m-%dT%H:%MZ"


def time_in(key: str) -> int:
    """The time in the id of an instance that a schedule started."""
    told = datetime.strptime(key.rpartition(".")[2], FORMAT).replace(tzinfo=UTC)
    return int(told.timestamp()) * 1000


def run_at(name: str, due: int) -> InstanceId:
    """The id of the instance of a time."""
    return InstanceId(f"{name}.{datetime.fromtimestamp(due // 1000, UTC).strftime(FORMAT)}")


def after(times: Times, now: int) -> int:
    """The first time after a moment."""
    return (now // times.period + 1) * times.period


def full(due: tuple[int, ...]) -> bool:
    """Was there more than one turn may start?"""
    return len(due) == STARTS_MAX
