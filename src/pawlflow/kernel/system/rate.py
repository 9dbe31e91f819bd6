"""A rate: how many instances of a workflow with one key may start within a span of time.

Whoever comes while there is room starts at once. The others wait in line, higher priorities first,
and each starts as soon as the oldest start is as long ago as the span: no window of that length,
wherever it begins, ever holds more starts than the limit.
"""

from collections import deque
from typing import Final

from pawlflow.kernel.refused import Rejected
from pawlflow.kernel.system import System, SystemDraft, misplaced
from pawlflow.kernel.system.line import Line, Place, Who
from pawlflow.model.ids import CellId, TimeMs
from pawlflow.model.inputs import GrantSlot, HoldInstance, Input, Tick
from pawlflow.model.records import Record
from pawlflow.model.timed import (
    AskRate,
    LeaveRate,
    RateGranted,
    RateLeft,
    RateLimited,
    RateQueued,
)

FORMAT: Final = 1
# Of one turn: a limit that is raised must not make a turn without bound. Part of the rules.
GRANTS_MAX: Final = 256


class Rate(System):
    """The starts that still count, and who waits."""

    __slots__ = ("count", "label", "limit", "per_ms", "queue", "starts")

    def __init__(self, cell: CellId) -> None:
        super().__init__(cell)
        self.limit = 0  # until the first asks
        self.per_ms = 0
        self.label = ""
        self.starts: deque[tuple[TimeMs, int]] = deque()  # how many at which time, oldest first
        self.queue = Line()
        self.count = 0  # of these starts

    @property
    def due(self) -> TimeMs | None:
        """When the next of those who wait may start."""
        return self.start_of(0) if self.queue else None

    @property
    def room(self) -> int:
        """How many may start now: starts as long ago as the span count no more."""
        room = self.limit - self.count
        for at, count in self.starts:  # oldest first; the next grant forgets what is past
            if at > self.now - self.per_ms:
                break
            room += count
        return room

    def start_of(self, ahead: int) -> TimeMs:
        """When one may start who has so many in front of it, if nobody comes or leaves there."""
        spans, place = divmod(ahead, self.limit)
        wanted = place + 1 + self.count - self.limit  # of the starts: so many must be past then
        free_at: int = self.now
        for at, count in self.starts:
            if wanted <= 0:
                break
            wanted -= count
            free_at = at + self.per_ms
        return TimeMs(free_at + spans * self.per_ms)


def decide(draft: SystemDraft[Rate], incoming: Input) -> Rejected | None:
    """Apply one input to the draft. A refusal comes before the first event, or not at all."""
    match incoming:
        case AskRate():
            return ask(draft, incoming)
        case LeaveRate():
            return leave(draft, incoming)
        case Tick():
            grant_waiting(draft)
            return None if draft.events else Rejected("timer.not_due", draft.state.cell.key)
        case _:
            return misplaced(draft.state, incoming)


def ask(draft: SystemDraft[Rate], incoming: AskRate) -> Rejected | None:
    """Let the instance start, or wait. The limit is the one of whoever asked last."""
    state = draft.state
    who = (incoming.workflow, incoming.key)
    if who in state.queue:
        return Rejected("rate.asked", incoming.key)
    limited = (incoming.limit, incoming.per_ms, incoming.label)
    if limited != (state.limit, state.per_ms, state.label):
        draft.emit(RateLimited(*limited))
        grant_waiting(draft)
    if state.room > 0 and not state.queue:
        grant(draft, who)
    else:
        ahead = state.queue.ahead(incoming.priority)
        draft.emit(RateQueued(*who, incoming.priority))
        draft.send(*who, HoldInstance(ahead, rate=True))
    return None


def leave(draft: SystemDraft[Rate], incoming: LeaveRate) -> Rejected | None:
    """One less in the line; a start that was granted stays one."""
    who = (incoming.workflow, incoming.key)
    if who not in draft.state.queue:
        return Rejected("rate.not_awaited", incoming.key)
    draft.emit(RateLeft(*who))
    return None


def grant_waiting(draft: SystemDraft[Rate]) -> None:
    """Let those start who waited, in order, as far as there is room; the rest is due again."""
    state = draft.state
    for _ in range(min(state.room, len(state.queue), GRANTS_MAX)):
        grant(draft, state.queue.first())


def grant(draft: SystemDraft[Rate], who: Who) -> None:
    """The instance may start."""
    draft.emit(RateGranted(*who))
    draft.send(*who, GrantSlot(rate=True))


# Evolve


def on_limited(state: Rate, event: RateLimited) -> None:
    """As many may start now, within another span."""
    state.limit = event.limit
    state.per_ms = event.per_ms
    state.label = event.label


def on_granted(state: Rate, event: RateGranted) -> None:
    """One more start that counts; those that no longer do are forgotten."""
    state.queue.leave((event.workflow, event.key))
    starts = state.starts
    while starts and starts[0][0] <= state.now - state.per_ms:
        state.count -= starts.popleft()[1]
    same = starts.pop()[1] if starts and starts[-1][0] == state.now else 0
    starts.append((state.now, same + 1))
    state.count += 1


def on_queued(state: Rate, event: RateQueued) -> None:
    """Behind all others of its priority."""
    state.queue.join((event.workflow, event.key), event.priority)


def on_left(state: Rate, event: RateLeft) -> None:
    """Out of the line."""
    state.queue.leave((event.workflow, event.key))


# What is written


class RateFacts(Record, frozen=True):
    """The facts of a rate, in order."""

    format: int
    turn: int
    now: TimeMs
    rules: int
    limit: int
    per_ms: int
    label: str
    starts: tuple[tuple[TimeMs, int], ...]
    queue: tuple[Place, ...]


def facts_of(state: Rate) -> RateFacts:
    """All that a state is rebuilt from."""
    return RateFacts(
        FORMAT,
        state.turn,
        state.now,
        state.rules,
        state.limit,
        state.per_ms,
        state.label,
        tuple(state.starts),
        tuple(state.queue.places()),
    )


def from_facts(found: RateFacts, cell: CellId) -> Rate:
    """The state these are the facts of."""
    state = Rate(cell)
    state.limit = found.limit
    state.per_ms = found.per_ms
    state.label = found.label
    state.starts = deque(found.starts)
    state.count = sum(count for _, count in found.starts)
    state.queue = Line(found.queue)
    return state
