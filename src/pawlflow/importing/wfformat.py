"""WfFormat, the JSON of WfCommons, read into a trace. Bytes in, a trace out; no file is touched.

Three layouts are in use. Up to 1.2 tasks are `workflow.jobs` and name each other; 1.3 and 1.4 call
them `workflow.tasks`, mostly with ids beside the names; since 1.5 `workflow.specification.tasks`
holds the graph, by id, and `workflow.execution.tasks` how it went. The layout is told by what is
there, not by `schemaVersion`: files of one version differ more than versions do.
"""

from typing import Any, Final

import msgspec

from pawlflow.definition.fields import DURATION_MAX_MS
from pawlflow.definition.graph import find_cycles, sort_steps
from pawlflow.definition.links import circle
from pawlflow.definition.report import listing, suggest
from pawlflow.importing.json_places import Path, path_text
from pawlflow.importing.problems import Problems, kind_of
from pawlflow.importing.trace import Task, Trace
from pawlflow.importing.wfformat_shape import (
    NAMES,
    NOTHING,
    TASK,
    File,
    Layout,
    Record,
    layout_of,
    program_of,
    text_of,
)
from pawlflow.model.ids import DurationMs

VERSIONS: Final = ("1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6")
UNKNOWN: Final = "unknown"
Links = list[tuple[int, ...]]  # for each task, what it waits for


def read_wfformat(data: bytes, file: str) -> Trace:
    """The trace of a file. Raises RefusedError with what is wrong with it."""
    problems = Problems(file, data)
    with problems.reading():
        whole = problems.read_as(File)
        layout = layout_of(whole.workflow, problems)
        tasks = read_tasks(layout, problems)
        problems.end()
        links, one_sided = link_tasks(tasks, layout, problems)
        problems.end()
        refuse_cycles(tasks, links, layout, problems)
        ran, strays = records_of(tasks, layout, problems)
        built = build(tasks, links, ran, layout, problems)
        makespan = seconds(layout.makespan, layout.makespan_path, problems)
        problems.end()
    version = text_of(whole.version) or UNKNOWN
    return Trace(
        name=text_of(whole.name),
        version=version,
        tasks=built,
        makespan_ms=makespan,
        notes=notes(version, one_sided, strays, built),
    )


class Named(msgspec.Struct, frozen=True, gc=False):
    """A task as it is written, and what it is called."""

    record: Record
    id: str
    name: str

    @property
    def label(self) -> str:
        """What a message calls it."""
        return self.id or self.name


def read_tasks(layout: Layout, problems: Problems) -> list[Named]:
    """The tasks with their names. What is no task is reported and left out."""
    tasks: list[Named] = []
    seen: dict[str, int] = {}
    for number, raw in enumerate(layout.tasks):
        path = (*layout.path, number)
        record = TASK.read(raw, path, problems)
        if record is None:
            continue
        task = Named(record, text_of(record.id), text_of(record.name))
        tasks.append(task)
        if not task.label:
            message = "the task has neither an id nor a name"
            problems.add(path, "wfformat.shape", message, "give each task an id of its own")
        if task.id and seen.setdefault(task.id, number) != number:
            first = path_text((*layout.path, seen[task.id]))
            problems.add(
                (*path, "id"),
                "wfformat.duplicate",
                f"the id {task.id!r} is given twice; the first is {first}",
                "give each task an id of its own, and mend the parents that mean this one",
            )
    return tasks


class Index:
    """Tasks by what others call them: ids are unique, names need not be."""

    def __init__(self, tasks: list[Named], *, by_id: bool) -> None:
        self.ids = {task.id: number for number, task in enumerate(tasks) if task.id}
        self.names: dict[str, int] = {}
        self.shared: set[str] = set()
        for number, task in enumerate(tasks):
            if task.name and self.names.setdefault(task.name, number) != number:
                self.shared.add(task.name)
        self.by_id = by_id

    def find(self, reference: str) -> int | None:
        """The task that is meant; None if there is none, or if it could be several."""
        named = None if reference in self.shared else self.names.get(reference)
        by_id = self.ids.get(reference)
        first, second = (by_id, named) if self.by_id else (named, by_id)
        return second if first is None else first


def link_tasks(tasks: list[Named], layout: Layout, problems: Problems) -> tuple[Links, int]:
    """What each task waits for, told by both sides; and how many edges only one side tells of.

    Older files list parents alone, some converters children alone. Where both are there they
    should agree; where they do not, an edge is an edge.
    """
    index = Index(tasks, by_id=layout.by_id)
    links: list[dict[int, None]] = []  # sets that keep their order
    for number, task in enumerate(tasks):
        path = (*layout.path, number, "parents")
        links.append(dict.fromkeys(references(task, task.record.parents, path, index, problems)))
    from_parents = sum(map(len, links))
    from_children = 0
    for number, task in enumerate(tasks):
        path = (*layout.path, number, "children")
        children = set(references(task, task.record.children, path, index, problems))
        from_children += len(children)
        for child in children:
            links[child][number] = None
    one_sided = 2 * sum(map(len, links)) - from_parents - from_children
    both = from_parents and from_children
    return list(map(tuple, links)), one_sided if both else 0


def references(
    task: Named, raw: msgspec.Raw, path: Path, index: Index, problems: Problems
) -> list[int]:
    """The tasks that a list names; what is missing is an empty list."""
    if raw is NOTHING:
        return []
    found = []
    for place, each in enumerate(NAMES.read(raw, path, problems) or ()):
        number = index.find(each if isinstance(each, str) else text_of(each))
        if number is None:
            refuse_reference(task, each, (*path, place), index, problems)
        else:
            found.append(number)
    return found


def refuse_reference(task: Named, value: Any, path: Path, index: Index, problems: Problems) -> None:
    """Say why a parent or child is no task."""
    reference, who = text_of(value), f"task {task.label!r}"
    if not reference:
        message = f"{who}: expected the id of a task; got {kind_of(value)}"
        problems.add(path, "wfformat.shape", message, "write ids as texts")
    elif reference in index.shared:
        message = f"{who}: several tasks are called {reference!r}"
        problems.add(path, "wfformat.ambiguous", message, "refer to tasks by id")
    else:
        known = index.ids if index.by_id or not index.names else index.names
        message = f"{who}: {reference!r} is not a task; tasks are: {listing(known)}"
        meant = "" if problems.full else suggest(reference, known)
        hint = meant or "add the task, or take the name out"
        problems.add(path, "wfformat.unknown", message, hint)


def refuse_cycles(tasks: list[Named], links: Links, layout: Layout, problems: Problems) -> None:
    """Tasks that wait for each other cannot have run: the file is wrong somewhere."""
    order = sort_steps(links)
    if len(order) < len(tasks):
        for cycle in find_cycles(links, order):
            names = [tasks[number].label for number in cycle]
            problems.add(
                (*layout.path, cycle[0], "parents"),
                "wfformat.cycle",
                f"tasks wait for each other in a circle: {circle(names)}",
                f"take {names[1 % len(names)]!r} out of the parents of {names[0]!r}, "
                "or another link of the circle",
            )
    problems.end()


def records_of(
    tasks: list[Named], layout: Layout, problems: Problems
) -> tuple[dict[int, tuple[int, Record]], int]:
    """The record of each task that ran, with its place; and how many records are of no task."""
    index = Index(tasks, by_id=True)
    ran: dict[int, tuple[int, Record]] = {}
    strays = 0
    for place, raw in enumerate(layout.records or ()):
        path = (*layout.records_path, place)
        record = TASK.read(raw, path, problems)
        if record is None:
            continue
        number = index.find(text_of(record.id) or text_of(record.name))
        if number is None:
            strays += 1
        elif ran.setdefault(number, (place, record))[0] != place:
            first = path_text((*layout.records_path, ran[number][0]))
            problems.add(
                path,
                "wfformat.duplicate",
                f"task {tasks[number].label!r} has two records; the first is {first}",
                "keep the one that counts",
            )
    return ran, strays


def build(
    tasks: list[Named],
    links: Links,
    ran: dict[int, tuple[int, Record]],
    layout: Layout,
    problems: Problems,
) -> tuple[Task, ...]:
    """The tasks with their kinds and runtimes; what the execution says goes first."""
    built = []
    for number, task in enumerate(tasks):
        place, record = ran.get(number, (None, task.record))
        runtime = None
        if place is not None:
            runtime = runtime_of(record, (*layout.records_path, place), problems)
        if runtime is None:
            runtime = runtime_of(task.record, (*layout.path, number), problems)
        built.append(
            Task(
                name=task.name or task.id,
                id=task.id,
                kind=program_of(record) or program_of(task.record),
                runtime_ms=runtime,
                parents=links[number],
            )
        )
    return tuple(built)


def runtime_of(record: Record, path: Path, problems: Problems) -> DurationMs | None:
    """How long a task took; None if nobody wrote it down."""
    if record.runtime_s is not None:
        return seconds(record.runtime_s, (*path, "runtimeInSeconds"), problems)
    return seconds(record.runtime, (*path, "runtime"), problems)


def seconds(value: Any, path: Path, problems: Problems) -> DurationMs | None:
    """Seconds in whole milliseconds, half of one counting as one; None if there are none."""
    if value is None:
        return None
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else -1
    if 0 <= number <= DURATION_MAX_MS / 1_000:
        return DurationMs(int(number * 1_000 + 0.5))
    problems.add(
        path,
        "wfformat.runtime",
        f"expected seconds, from 0 to a hundred years; got {kind_of(value)}",
        "mend it, or take it out: a task without a runtime answers at once",
    )
    return None


def notes(version: str, one_sided: int, strays: int, tasks: tuple[Task, ...]) -> tuple[str, ...]:
    """What was passed over, in words; nothing that keeps the graph from running."""
    found = []
    if version not in VERSIONS:
        known = f"{VERSIONS[0]} to {VERSIONS[-1]}"
        found.append(f"schemaVersion is {version}; this reader was written for {known}")
    if one_sided:
        found.append(f"{one_sided:,} edges stand in `parents` or `children` alone; all are kept")
    if strays:
        found.append(f"{strays:,} records of the execution are of no task, and left out")
    untimed = sum(task.runtime_ms is None for task in tasks)
    if untimed:
        found.append(f"{untimed:,} of {len(tasks):,} tasks have no runtime; they answer at once")
    return tuple(found)
