"""Slots: who may run at one time, of all instances of a workflow that share a concurrency key.

Higher priorities first, and first come, first served within one. An instance asks before it starts,
is granted a slot or told to wait, and gives back what it has when it closes.
"""

from typing import Final

from pawlflow.kernel.refused import Rejected
from pawlflow.kernel.system import System, SystemDraft, misplaced
from pawlflow.kernel.system.line import Line, Place, Who
from pawlflow.model.ids import CellId, InstanceId, TimeMs, WorkflowName
from pawlflow.model.inputs import GrantSlot, HoldInstance, Input
from pawlflow.model.records import Record
from pawlflow.model.system import (
    SLOTS,
    AcquireSlot,
    Continue,
    ReleaseSlot,
    SlotLimited,
    SlotQueued,
    SlotReleased,
    SlotTaken,
)

FORMAT: Final = 2  # 2: those who wait have a priority
# Of one turn: a limit that is raised must not make a turn without bound. Part of the rules.
GRANTS_MAX: Final = 256


class Slots(System):
    """The slots of one key: who holds one, and who waits in which order."""

    __slots__ = ("holders", "label", "limit", "queue")

    def __init__(self, cell: CellId) -> None:
        super().__init__(cell)
        self.limit = 0  # until the first asks
        self.label = ""
        self.holders: dict[Who, None] = {}
        self.queue = Line()

    @property
    def free(self) -> int:
        """Slots that nobody holds; below 0 after the limit was lowered."""
        return self.limit - len(self.holders)


def decide(draft: SystemDraft[Slots], incoming: Input) -> Rejected | None:
    """Apply one input to the draft. A refusal comes before the first event, or not at all."""
    match incoming:
        case AcquireSlot():
            return acquire(draft, incoming)
        case ReleaseSlot():
            return release(draft, incoming)
        case Continue():
            grant_free(draft)
            return None if draft.events else Rejected("continue.nothing", draft.state.cell.key)
        case _:
            return misplaced(draft.state, incoming)


def acquire(draft: SystemDraft[Slots], incoming: AcquireSlot) -> Rejected | None:
    """Grant a slot, or let the instance wait. The limit is the one of whoever asked last."""
    state = draft.state
    who = (incoming.workflow, incoming.key)
    if who in state.holders or who in state.queue:
        return Rejected("slot.asked", incoming.key)
    if (incoming.limit, incoming.label) != (state.limit, state.label):
        draft.emit(SlotLimited(incoming.limit, incoming.label))
        grant_free(draft)
    if state.free > 0 and not state.queue:
        grant(draft, who)
    else:
        ahead = state.queue.ahead(incoming.priority)
        draft.emit(SlotQueued(*who, incoming.priority))
        draft.send(*who, HoldInstance(ahead))
    return None


def release(draft: SystemDraft[Slots], incoming: ReleaseSlot) -> Rejected | None:
    """Take back a slot, or a place in the queue; what is free goes to those who wait."""
    state = draft.state
    who = (incoming.workflow, incoming.key)
    if who not in state.holders and who not in state.queue:
        return Rejected("slot.not_held", incoming.key)
    draft.emit(SlotReleased(*who))
    grant_free(draft)
    return None


def grant_free(draft: SystemDraft[Slots]) -> None:
    """Give free slots to those who wait, in order; if they are many, go on in another turn."""
    state = draft.state
    for _ in range(min(state.free, len(state.queue), GRANTS_MAX)):
        grant(draft, state.queue.first())
    if state.free > 0 and state.queue:
        draft.send(SLOTS, state.cell.key, Continue())


def grant(draft: SystemDraft[Slots], who: Who) -> None:
    """The instance may run."""
    draft.emit(SlotTaken(*who))
    draft.send(*who, GrantSlot())


# Evolve


def on_limited(state: Slots, event: SlotLimited) -> None:
    """As many may hold a slot now."""
    state.limit = event.limit
    state.label = event.label


def on_taken(state: Slots, event: SlotTaken) -> None:
    """From the queue, if it stood there, to the holders."""
    who = (event.workflow, event.key)
    state.queue.leave(who)
    state.holders[who] = None


def on_queued(state: Slots, event: SlotQueued) -> None:
    """Behind all others of its priority."""
    state.queue.join((event.workflow, event.key), event.priority)


def on_released(state: Slots, event: SlotReleased) -> None:
    """It is neither here nor there."""
    who = (event.workflow, event.key)
    state.queue.leave(who)
    state.holders.pop(who, None)


# What is written


class SlotsFacts(Record, frozen=True):
    """The facts of slots, in order."""

    format: int
    turn: int
    now: TimeMs
    rules: int
    limit: int
    label: str
    holders: tuple[tuple[WorkflowName, InstanceId], ...]
    queue: tuple[Place, ...]


def facts_of(state: Slots) -> SlotsFacts:
    """All that a state is rebuilt from."""
    return SlotsFacts(
        FORMAT,
        state.turn,
        state.now,
        state.rules,
        state.limit,
        state.label,
        tuple(state.holders),
        tuple(state.queue.places()),
    )


def from_facts(found: SlotsFacts, cell: CellId) -> Slots:
    """The state these are the facts of."""
    state = Slots(cell)
    state.limit = found.limit
    state.label = found.label
    state.holders = dict.fromkeys(found.holders)
    state.queue = Line(found.queue)
    return state
