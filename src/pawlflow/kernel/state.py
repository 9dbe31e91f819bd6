"""The state of one instance, and the counters that make every question about it cheap.

Only `evolve` changes it. Beside the facts (which `state_bytes` writes) it keeps what follows from
them: counters per status, queues, the deadline heap, the look-up of step keys. Those are rebuilt
when a state is read back, and a property test holds them equal to a scan.
"""

from heapq import heapify, heappop, heappush
from typing import Any, Final, Literal

from pawlflow.definition.plan import Plan
from pawlflow.kernel.system import System
from pawlflow.kernel.units import (
    CANCELLED,
    FANNED,
    PENDING,
    SUCCEEDED,
    UNDO_NONE,
    UNDO_PENDING,
    Closing,
    Done,
    Fan,
    Kept,
    Key,
    Unit,
)
from pawlflow.model.events import AttemptLeft, Rollback, WaitKind
from pawlflow.model.ids import NO_ITEM, CellId, StepKey, StepName, TimeMs
from pawlflow.model.intents import Direction, StepKeyParts, step_key
from pawlflow.model.kin import Parent
from pawlflow.model.payload import Payload

MICROS_MAX: Final = 2**63 - 1  # whatever is spent, it can be written down
Line = list[tuple[int, int, int]]  # a heap of (lower for higher priority, order, place)
Left = tuple[int, int, int, bool, int]  # step, item, attempt, undo, round


class Instance:
    """A workflow instance: facts first, then what follows from them."""

    __slots__ = (
        *("asked", "attempts", "by", "cell", "closed", "closing", "compensating", "counts"),
        *("created", "deadlines", "do_keys", "done", "doomed", "earlier", "fans", "filling"),
        *("fresh", "granted", "held", "input", "items", "keys", "left", "limits", "listened"),
        *("listening", "loosened", "nonce", "now", "open", "openings", "order", "outcome"),
        *("output", "parent", "paused", "places", "plan", "queued", "rate", "remaining"),
        *("reserved", "rollback", "rules", "search", "signals", "signals_seen", "slot", "spent"),
        *("start_at", "started", "stopping", "turn", "undo_keys", "undo_list", "undoing"),
        *("undone_failed", "units", "values", "waits", "warned", "asking"),
    )

    def __init__(self, cell: CellId, plan: Plan) -> None:  # noqa: PLR0915  # all that is known
        self.cell = cell
        self.plan = plan
        # Facts.
        self.turn = self.rules = 0
        self.now = TimeMs(0)
        self.nonce, self.by = b"", ""
        self.slot = ""  # the key of the slots it needs one of, if any
        self.rate = ""  # the key of the rate its start counts for, if any
        self.granted = False  # it has its slot, and asks its rate
        self.start_at: TimeMs | None = None  # it waits for this time
        self.search: Payload | None = None  # what it may be found by
        self.parent: Parent | None = None
        self.input: Payload = ABSENT
        self.created: TimeMs | None = None
        self.queued = self.paused = self.compensating = False
        self.started: TimeMs | None = None
        self.closed: TimeMs | None = None
        self.closing: Closing | None = None
        self.outcome: Literal["completed", "failed", "cancelled"] | None = None
        self.rollback: Rollback = "none"
        self.output: Payload | None = None
        self.units: list[Unit | None] = [None] * len(plan.steps)
        self.items: dict[int, Unit] = {}  # units of items, by place
        self.done: dict[int, Done] = {}  # of items with nothing more to tell, by place
        self.fans: dict[int, Fan] = {}  # by step
        self.undo_list: list[int] = []  # completed units with an undo, in order of completion
        self.signals: dict[int, Kept] = {}
        self.signals_seen = self.order = 0  # numbers given out: to signals, and in lines
        self.places = len(plan.steps)  # given out: each step has one, then items and earlier runs
        self.spent: dict[str, int] = {}  # millionths, by unit of account
        self.limits: dict[str, int] = {}  # hard limits that were raised
        self.warned: dict[str, None] = {}  # soft limits that are passed
        self.left: dict[Left, AttemptLeft] = {}  # attempts that may still be at work
        # What follows from them.
        self.counts = [len(plan.steps), *[0] * FANNED]
        self.filling: set[int] = set()  # fans among the fresh: they may go on, or be done
        self.values: dict[int, list[Any]] = {}  # what forEach stands for, and results of fans
        self.waits: dict[WaitKind, int] = {}
        self.remaining = list(plan.needs)
        self.doomed: dict[int, int] = {}  # how many dependencies they require did not succeed
        self.earlier: dict[tuple[int, int], list[int]] = {}  # places of earlier runs, by unit
        self.fresh: list[int] = []  # steps not looked at yet in this turn; a heap
        self.open: dict[int, None] = {}  # places
        self.asking: dict[int, None] = {}  # those that wait for an answer of the policies
        self.attempts: Line = []  # ready for an executor; may hold some that left the line
        self.openings: Line = []  # ready, and no executor is needed
        self.reserved: dict[str, int] = {}  # by attempts that run
        self.held: Line = []  # ready, but for the budget; may hold some that are held no longer
        self.loosened = False  # in this turn: something was given back, or a limit raised
        self.listening: dict[str, dict[int, None]] = {}  # event -> open waits for it
        self.keys: dict[StepKey, Key] = {}
        self.do_keys: dict[int, StepKey] = {}  # of the present rounds, by place
        self.undo_keys: dict[int, StepKey] = {}
        self.undoing: dict[int, None] = {}  # units whose undo is under way
        self.undone_failed = self.stopping = 0  # undos; of what was left, all but children
        self.deadlines: list[tuple[int, int, Any]] = []  # due, rank, whose; may hold stale ones
        # What this turn changed, for those who must be told.
        self.asked: list[int] = []  # places that a human is asked about, or no longer; may repeat
        self.listened: dict[int, bool] = {}  # waits for events: was it open before this turn?

    def unit(self, place: int) -> Unit:
        """The unit at a place; that of a step is made if this is its first touch."""
        if place >= len(self.units):
            return self.items.get(place) or self.restored(self.done[place])
        unit = self.units[place]
        if unit is None:
            unit = self.units[place] = Unit(place, place=place)
        return unit

    def restored(self, done: Done) -> Unit:
        """What an item was that is done. To look at: what is done to it, the state does not see."""
        plan, item = self.plan.steps[done.step], done.place - self.fans[done.step].base
        unit = Unit(done.step, item, SUCCEEDED, 1, since=done.since, ended=done.ended)
        unit.result, unit.params, unit.place = done.result, done.params, done.place
        unit.wait = "child" if plan.kind == "workflow" else None
        unit.undo = UNDO_NONE if plan.undo is None else UNDO_PENDING
        return unit

    def item(self, fan: Fan, item: int) -> Unit:
        """An item of a fan; one that was never looked at is pending."""
        place = fan.base + item
        return self.unit(place) if item < fan.cursor else Unit(fan.step, item, place=place)

    def at(self, step: int, item: int) -> Unit:
        """The unit of a step, or of an item that has been looked at."""
        if item == NO_ITEM:
            return self.units[step] or self.unit(step)
        return self.unit(self.fans[step].base + item)

    def of_round(self, step: int, item: int, round_: int) -> Unit:
        """The unit that a round belongs to: an earlier run, or the one at work."""
        if not self.earlier:
            return self.at(step, item)
        earlier = map(self.unit, self.earlier.get((step, item), ()))
        return next((unit for unit in earlier if round_ <= unit.round), None) or self.at(step, item)

    def name_of(self, unit: Unit) -> StepName:
        """What people call a unit: `build`, or `build[2]`."""
        name = self.plan.steps[unit.step].name
        return name if unit.item == NO_ITEM else StepName(f"{name}[{unit.item}]")

    def named(self, name: str) -> Unit | None:
        """The unit that people call so."""
        step = self.plan.index.get(StepName(name))
        if step is not None:
            return self.unit(step)
        whole, _, item = name.removesuffix("]").partition("[")
        fan = self.fans.get(self.plan.index.get(StepName(whole), NO_ITEM))
        if fan is None or not item.isdecimal() or len(item) > len(str(fan.size)):
            return None
        known = int(item) < fan.size and f"{whole}[{int(item)}]" == name
        return self.item(fan, int(item)) if known else None

    def status(self, step: int) -> int:
        """The status of a step; steps never touched end with their instance."""
        unit = self.units[step]
        if unit is not None and unit.status != PENDING:
            return unit.status
        return PENDING if self.closed is None else CANCELLED

    def result_of(self, step: int) -> Any:
        """The result of a step, or None; of a fan the list of its items' results."""
        unit = self.units[step]
        fan = self.fans.get(step)
        if fan is not None and unit is not None:
            return self.results_of(fan, done=unit.status == SUCCEEDED)
        return None if unit is None or unit.result is None else unit.result.value

    def results_of(self, fan: Fan, *, done: bool) -> list[Any] | None:
        """The results of all items, null where there is none; kept once they cannot change."""
        if not done and self.unit(fan.step).round == 1:
            return None
        known = self.values.get(~fan.step) if done else None
        if known is None:
            units = (self.last_of(fan, item) for item in range(fan.size))
            known = [unit.result.value if unit.result else None for unit in units]
        if done:
            self.values[~fan.step] = known
        return known

    def last_of(self, fan: Fan, item: int) -> Unit:
        """An item; its earlier run, if it has not been looked at again."""
        unit, earlier = self.item(fan, item), self.earlier.get((fan.step, item))
        return self.unit(earlier[-1]) if earlier and unit.status == PENDING else unit

    def results(self, before: int | None) -> dict[str, Any]:
        """The results of all steps, or of those before one. Only for `steps` used by itself.

        It costs what it gives, which may be the whole workflow.
        """
        every = range(len(self.units)) if before is None else self.plan.ancestors(before)
        found = ((self.plan.steps[step].name, self.result_of(step)) for step in every)
        return {name: result for name, result in found if result is not None}


State = Instance | System  # of a cell

ABSENT: Final = Payload(b"", None)  # stands for the input before the instance exists

STALE_MIN: Final = 64  # deadlines without meaning that are not worth looking for
RANK_INSTANCE: Final = 0  # the workflow's own timeout wins over all others
RANK_STEP: Final = 1
RANK_UNDO: Final = 2
RANK_LEFT: Final = 3


def arm(state: Instance, due: TimeMs, rank: int, place: int | Left) -> None:
    """Remember a deadline. Where most have lost their meaning, these are forgotten."""
    heap = state.deadlines
    if len(heap) > STALE_MIN + 2 * (len(state.open) + len(state.undoing) + len(state.left)):
        heap[:] = dict.fromkeys(entry for entry in heap if is_armed(state, *entry))
        heapify(heap)
    heappush(heap, (due, rank, place))


def next_deadline(state: State) -> tuple[TimeMs, int, Any] | None:
    """The earliest deadline that still means something; stale ones are dropped on the way."""
    if isinstance(state, System):
        return None if state.due is None else (state.due, RANK_INSTANCE, -1)
    heap = state.deadlines
    while heap:
        due, rank, place = heap[0]
        if is_armed(state, due, rank, place):
            return TimeMs(due), rank, place
        heappop(heap)
    return None


def is_armed(state: Instance, due: int, rank: int, place: Any) -> bool:
    """Does this entry of the heap still stand for something?"""
    if rank == RANK_INSTANCE:  # its time to start, and then its own timeout
        span = state.plan.timeout_ms
        ends = state.start_at if state.started is None else span and state.started + span
        done = state.left and not state.open and not state.counts[PENDING]  # all but the close
        return state.closing is None and due == ends and not done
    if rank == RANK_LEFT:
        return place in state.left and due == state.left[place].until
    unit = state.unit(place)
    return due == (unit.until if rank == RANK_STEP else unit.undo_until)


def key_of(state: Instance, unit: Unit, direction: Direction) -> StepKey:
    """The step key of a unit's present round."""
    if direction == "ask":
        return make_key(state, unit, direction, unit.round)
    keys = state.do_keys if direction == "do" else state.undo_keys
    made = keys.get(unit.place)
    if made is None:
        made = keys[unit.place] = make_key(state, unit, direction, unit.round)
    return made


def has_keys(state: Instance, unit: Unit) -> bool:
    """Is it called itself? Of a step with forEach its items are."""
    return unit.item != NO_ITEM or state.plan.steps[unit.step].for_each is None


def make_key(state: Instance, unit: Unit, direction: Direction, round_: int) -> StepKey:
    """The step key of any round, and the look-up by which receipts find their unit."""
    name = state.plan.steps[unit.step].name
    tenant, nonce = state.cell.tenant, state.nonce
    key = step_key(StepKeyParts(tenant, nonce, direction, name, unit.item, round_))
    state.keys[key] = Key(unit.step, unit.item, direction, round_)
    return key
