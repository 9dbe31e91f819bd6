"""A trace: the tasks of a workflow that somebody ran, what each waits for, how long each took."""

import msgspec

from pawlflow.definition.graph import sort_steps
from pawlflow.model.ids import DurationMs


class Task(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One task. `parents` are numbers of tasks; `id` is what the file calls it, if it does."""

    name: str
    id: str = ""
    kind: str = ""  # its program or category: what other tasks may share with it
    runtime_ms: DurationMs | None = None  # None: nobody wrote it down
    parents: tuple[int, ...] = ()


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded workflow. `notes` are what a reader passed over, in words."""

    name: str
    version: str
    tasks: tuple[Task, ...]
    makespan_ms: DurationMs | None = None
    notes: tuple[str, ...] = ()


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """What a graph of tasks is like."""

    tasks: int
    edges: int
    levels: int  # tasks on the longest chain
    widest: int  # tasks on the fullest level
    critical: tuple[int, ...]  # the tasks of a chain that takes longest, first to last
    critical_ms: DurationMs
    total_ms: DurationMs

    @property
    def parallelism(self) -> float:
        """How many tasks go on at a time, on average, if nothing but other tasks holds them up.

        Where nothing takes any time, as if everything took the same.
        """
        if not self.critical_ms:
            return self.tasks / max(1, self.levels)
        return self.total_ms / self.critical_ms


def measure(tasks: tuple[Task, ...]) -> Measures:
    """Levels and the critical path, in one pass along the order. The graph has no cycle."""
    order = sort_steps([task.parents for task in tasks])
    assert len(order) == len(tasks), "a cycle is refused before"
    ends = [0] * len(tasks)
    level = [0] * len(tasks)
    before: list[int | None] = [None] * len(tasks)  # the parent that is done last
    widths: list[int] = []

    def late(step: int) -> tuple[int, int]:
        return ends[step], level[step]  # of two that end together, the one behind more others

    for step in order:
        parents = tasks[step].parents
        if parents:
            level[step] = 1 + max(level[parent] for parent in parents)
            last = before[step] = max(parents, key=late)
            ends[step] = ends[last]
        ends[step] += tasks[step].runtime_ms or 0
        if level[step] == len(widths):
            widths.append(0)
        widths[level[step]] += 1
    critical = chain(before, max(order, key=late)) if tasks else ()
    return Measures(
        tasks=len(tasks),
        edges=sum(len(task.parents) for task in tasks),
        levels=len(widths),
        widest=max(widths, default=0),
        critical=critical,
        critical_ms=DurationMs(max(ends, default=0)),
        total_ms=DurationMs(sum(task.runtime_ms or 0 for task in tasks)),
    )


def chain(before: list[int | None], last: int) -> tuple[int, ...]:
    """The tasks that lead to one, each the last that the next had to wait for."""
    found = [last]
    while (parent := before[found[-1]]) is not None:
        found.append(parent)
    return tuple(reversed(found))
