"""The state of one instance, and the counters that make every question about it cheap.

Only `evolve` changes it. Beside the facts (which `state_bytes` writes) it keeps what follows from
them: counters per status, queues, the deadline heap, the look-up of step keys. Those are rebuilt
when a state is read back, and a property test holds them equal to a scan.
"""

from collections import deque
from heapq import heappop, heappush
from typing import Any, Final, Literal

import msgspec

from pawlflow.kernel.plan import Plan
from pawlflow.kernel.system import System
from pawlflow.model.events import Mode, Rollback, WaitKind
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM, CellId, RoleName, StepKey, TimeMs
from pawlflow.model.intents import Direction, StepKeyParts, step_key
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record

PENDING: Final = 0
READY: Final = 1
RUNNING: Final = 2
BACKOFF: Final = 3
CORRECTING: Final = 4
WAITING: Final = 5
ESCALATED: Final = 6
SUCCEEDED: Final = 7
FAILED: Final = 8
SKIPPED: Final = 9
CANCELLED: Final = 10
STATUS_NAMES: Final = (
    "pending",
    "ready",
    "running",
    "backoff",
    "correcting",
    "waiting",
    "escalated",
    "succeeded",
    "failed",
    "skipped",
    "cancelled",
)

UNDO_NONE: Final = 0
UNDO_PENDING: Final = 1  # on the list of what is to be undone, should it come to that
UNDO_RUNNING: Final = 2
UNDO_BACKOFF: Final = 3
UNDO_DONE: Final = 4
UNDO_FAILED: Final = 5


def is_open(status: int) -> bool:
    """Begun and not settled; escalated is open."""
    return READY <= status <= ESCALATED


class Vote(Record, frozen=True, gc=False):
    """One approval of a gate."""

    by: str
    role: RoleName | None


class Unit(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """One step's life in one instance. Made when the step is first touched."""

    step: int
    item: int = NO_ITEM
    status: int = PENDING
    attempt: int = 0  # attempts started, of all rounds
    round: int = 1
    retries: int = 0  # used of the present budget
    corrections: int = 0
    feedback: int = 0  # corrections whose findings were delivered
    mode: Mode = "plain"  # how the next attempt will be announced
    order: int = 0  # its place in the line when it last became ready
    until: TimeMs | None = None  # when the present status ends by itself
    since: TimeMs | None = None  # first opened
    ended: TimeMs | None = None
    params: Payload | None = None
    past: tuple[Payload, ...] = ()  # the parameters of earlier rounds
    result: Payload | None = None
    failure: Failure | None = None
    refused: Failure | None = None  # what this round is to correct
    warnings: int = 0
    role: RoleName | None = None
    wait: WaitKind | None = None
    shown: Payload | None = None
    votes: tuple[Vote, ...] = ()
    late: Payload | None = None  # the result of a success that came after the step was settled
    undo: int = UNDO_NONE
    undo_attempt: int = 0
    undo_retries: int = 0
    undo_until: TimeMs | None = None
    undo_params: Payload | None = None
    undo_failure: Failure | None = None


class Closing(Record, frozen=True, gc=False):
    """The outcome that was decided before the instance closed."""

    outcome: Literal["failed", "cancelled"]
    step: int
    failure: Failure | None
    by: str
    compensate: bool


class Kept(Record, frozen=True, gc=False):
    """A signal that no wait has taken yet."""

    number: int
    event: str
    data: Payload


class Key(Record, frozen=True, gc=False):
    """What a step key stands for."""

    step: int
    item: int
    direction: Direction
    round: int


class Instance:
    """A workflow instance: facts first, then what follows from them."""

    __slots__ = (
        "asked",
        "attempts",
        "by",
        "cell",
        "closed",
        "closing",
        "compensating",
        "counts",
        "created",
        "deadlines",
        "do_keys",
        "doomed",
        "fresh",
        "input",
        "keys",
        "listened",
        "listening",
        "nonce",
        "now",
        "open",
        "openings",
        "order",
        "outcome",
        "output",
        "paused",
        "plan",
        "queued",
        "remaining",
        "rollback",
        "rules",
        "signals",
        "signals_seen",
        "slot",
        "started",
        "turn",
        "undo_keys",
        "undo_list",
        "undoing",
        "undone_failed",
        "units",
        "waits",
    )

    def __init__(self, cell: CellId, plan: Plan) -> None:
        self.cell = cell
        self.plan = plan
        # Facts.
        self.turn = 0
        self.now = TimeMs(0)
        self.rules = 0
        self.nonce = b""
        self.by = ""
        self.slot = ""  # the key of the slots it needs one of, if any
        self.input: Payload = ABSENT
        self.created: TimeMs | None = None
        self.queued = self.paused = False
        self.started: TimeMs | None = None
        self.closed: TimeMs | None = None
        self.closing: Closing | None = None
        self.compensating = False  # no attempt is left, undoing has begun
        self.outcome: Literal["completed", "failed", "cancelled"] | None = None
        self.rollback: Rollback = "none"
        self.output: Payload | None = None
        self.units: list[Unit | None] = [None] * len(plan.steps)
        self.undo_list: list[int] = []  # completed steps with an undo, in order of completion
        self.signals: dict[int, Kept] = {}
        self.signals_seen = 0
        self.order = 0  # places given out in the line of ready steps
        # What follows from them.
        self.counts = [len(plan.steps), *[0] * CANCELLED]
        self.waits: dict[WaitKind, int] = {}
        self.remaining = list(plan.needs)
        self.doomed: set[int] = set()  # a dependency they require did not succeed
        self.fresh: list[int] = []  # dependencies met in this turn, not yet looked at
        self.open: dict[int, None] = {}
        self.attempts: deque[tuple[int, int]] = deque()  # (order, step) ready for an executor
        self.openings: deque[tuple[int, int]] = deque()  # (order, step) ready, no executor needed
        self.listening: dict[str, dict[int, None]] = {}  # event -> open waits for it
        self.keys: dict[StepKey, Key] = {}
        self.do_keys: list[StepKey | None] = [None] * len(plan.steps)  # of the present rounds
        self.undo_keys: dict[int, StepKey] = {}
        self.undoing: int | None = None
        self.undone_failed = 0
        self.deadlines: list[tuple[int, int, int]] = []  # (due, rank, step); may hold stale ones
        # What this turn changed, for those who must be told.
        self.asked: list[int] = []  # steps that a human is asked about, or no longer; may repeat
        self.listened: dict[int, bool] = {}  # waits for events: was it open before this turn?

    def unit(self, step: int) -> Unit:
        """The unit of a step, made if this is its first touch."""
        unit = self.units[step]
        if unit is None:
            unit = self.units[step] = Unit(step)
        return unit

    def status(self, step: int) -> int:
        """The status of a step; steps never touched end with their instance."""
        unit = self.units[step]
        if unit is not None and unit.status != PENDING:
            return unit.status
        return PENDING if self.closed is None else CANCELLED

    def result_of(self, step: int) -> Any:
        """The result of a step, or None."""
        unit = self.units[step]
        return None if unit is None or unit.result is None else unit.result.value

    def results(self, before: int | None) -> dict[str, Any]:
        """The results of all steps, or of those before one. Only for `steps` used by itself.

        It costs what it gives, which may be the whole workflow.
        """
        every = range(len(self.units)) if before is None else self.plan.ancestors(before)
        found = ((self.plan.steps[step].name, self.result_of(step)) for step in every)
        return {name: result for name, result in found if result is not None}


State = Instance | System  # of a cell

ABSENT: Final = Payload(b"", None)  # stands for the input before the instance exists

RANK_INSTANCE: Final = 0  # the workflow's own timeout wins over all others
RANK_STEP: Final = 1
RANK_UNDO: Final = 2


def arm(state: Instance, due: TimeMs, rank: int, step: int) -> None:
    """Remember a deadline."""
    heappush(state.deadlines, (due, rank, step))


def next_deadline(state: State) -> tuple[TimeMs, int, int] | None:
    """The earliest deadline that still means something; stale ones are dropped on the way."""
    if isinstance(state, System):
        return None
    heap = state.deadlines
    while heap:
        due, rank, step = heap[0]
        if is_armed(state, due, rank, step):
            return TimeMs(due), rank, step
        heappop(heap)
    return None


def is_armed(state: Instance, due: int, rank: int, step: int) -> bool:
    """Does this entry of the heap still stand for something?"""
    if rank == RANK_INSTANCE:
        return state.closing is None
    unit = state.unit(step)
    return due == (unit.until if rank == RANK_STEP else unit.undo_until)


def key_of(state: Instance, unit: Unit, direction: Direction) -> StepKey:
    """The step key of a unit's present round."""
    if direction == "do":
        made = state.do_keys[unit.step]
        if made is None:
            made = state.do_keys[unit.step] = make_key(state, unit, "do", unit.round)
    else:
        made = state.undo_keys.get(unit.step)
        if made is None:
            made = state.undo_keys[unit.step] = make_key(state, unit, "undo", unit.round)
    return made


def make_key(state: Instance, unit: Unit, direction: Direction, round_: int) -> StepKey:
    """The step key of any round, and the look-up by which receipts find their unit."""
    name = state.plan.steps[unit.step].name
    tenant, nonce = state.cell.tenant, state.nonce
    key = step_key(StepKeyParts(tenant, nonce, direction, name, unit.item, round_))
    state.keys[key] = Key(unit.step, unit.item, direction, round_)
    return key
