"""Instants: what falls on the same millisecond of virtual time, one cell after the other.

An engine on a real clock takes deadlines as they come. In a scenario the order must follow from the
workflow, and not from ids: the timeout of an instance goes before all that is below it, and else
the children before their parents, because what is done counts as done. Among equals it is the
order in which they were started.
"""

from collections.abc import Callable
from heapq import heappop, heappush

from pawlflow.engine.timers import Deadlines
from pawlflow.kernel.state import RANK_INSTANCE, Instance, next_deadline
from pawlflow.store.port import Address, Head

Place = tuple[int, int, int]


class Due:
    """When which cell is due, as the last durable turn of each says."""

    def __init__(self) -> None:
        self.now: dict[Address, int] = {}
        self.heap: list[tuple[int, Address]] = []

    def note(self, head: Head) -> None:
        """A cell has taken a turn."""
        address = (head.cell.tenant, head.cell.key)
        if head.due_at is None:
            self.now.pop(address, None)
        else:
            self.now[address] = head.due_at
            heappush(self.heap, (head.due_at, address))

    def next_at(self) -> int | None:
        """The earliest time that still stands."""
        while self.heap and self.now.get(self.heap[0][1]) != self.heap[0][0]:
            heappop(self.heap)
        return self.heap[0][0] if self.heap else None


class InOrder(Deadlines):
    """The deadlines of an engine, kept back until the host lets the next one go."""

    def __init__(self, place_of: Callable[[Address], Place]) -> None:
        super().__init__()
        self.place_of = place_of
        self.kept: dict[Address, None] = {}

    def take_due(self, now: int) -> list[Address]:
        """Nothing goes by itself: what one deadline leads to comes before the next."""
        self.kept |= dict.fromkeys(super().take_due(now))
        return []

    def first(self) -> Address | None:
        """The cell whose turn it is, if one is due."""
        address = (
            min(self.kept, key=self.place_of) if len(self.kept) > 1 else next(iter(self.kept), None)
        )
        if address is not None:
            del self.kept[address]
        return address


def place_among(state: Instance | None, born: int) -> Place:
    """Where a cell stands among those that are due in the same instant."""
    if state is None:  # no instance: it stands with those that have no parent
        return (1, 0, born)
    generation = 0 if state.parent is None else state.parent.generation
    due = next_deadline(state)
    if due is not None and due[1] == RANK_INSTANCE:
        return (0, generation, born)
    return (1, -generation, born)
