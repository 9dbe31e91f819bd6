"""The line of those who wait: higher priorities first, and first come, first served within one."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from pawlflow.model.ids import InstanceId, WorkflowName

Who = tuple[WorkflowName, InstanceId]
Place = tuple[WorkflowName, InstanceId, int]  # with its priority, as it is written


class Line:
    """Joining and leaving, from anywhere, cost as much as there are priorities at most."""

    __slots__ = ("priorities", "ranks")

    def __init__(self, places: Iterable[Place] = ()) -> None:
        self.ranks: dict[int, OrderedDict[Who, None]] = {}  # its fronts leave in O(1)
        self.priorities: dict[Who, int] = {}
        for workflow, key, priority in places:
            self.join((workflow, key), priority)

    def __len__(self) -> int:
        return len(self.priorities)

    def __contains__(self, who: Who) -> bool:
        return who in self.priorities

    def join(self, who: Who, priority: int) -> None:
        """Behind all of this priority."""
        self.priorities[who] = priority
        self.ranks.setdefault(priority, OrderedDict())[who] = None

    def leave(self, who: Who) -> None:
        """Out of the line, if it stands there."""
        priority = self.priorities.pop(who, None)
        if priority is not None:
            rank = self.ranks[priority]
            del rank[who]
            if not rank:
                del self.ranks[priority]

    def first(self) -> Who:
        """Who is next."""
        return next(iter(self.ranks[max(self.ranks)]))

    def ahead(self, priority: int) -> int:
        """How many would stand before one who joined now."""
        return sum(len(rank) for each, rank in self.ranks.items() if each >= priority)

    def places(self) -> Iterator[Place]:
        """Everybody, in order."""
        for priority in sorted(self.ranks, reverse=True):
            for workflow, key in self.ranks[priority]:
                yield workflow, key, priority
