"""The parts of a WfFormat file that are read, and where each layout keeps them.

A recorded file is mostly file names, arguments and machines. What is not listed here is passed over
without being made into objects: a file of 50,000 tasks holds a million values that nobody asks for.
"""

from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw

from pawlflow.definition.report import listing
from pawlflow.importing.json_places import Path
from pawlflow.importing.problems import Problems, kind_of

NOTHING: Final = Raw(b"null")  # what is missing is treated like null
SHAPE_HINT: Final = (
    "WfFormat is an object with schemaVersion and workflow.tasks, "
    "or workflow.specification.tasks; WfCommons documents it"
)
OPENING: Final = {ord("{"): "an object", ord("["): "a list"}


class File(msgspec.Struct, gc=False):
    """The whole file."""

    name: Any = None
    version: Any = msgspec.field(default=None, name="schemaVersion")
    workflow: Raw = NOTHING


class Workflow(msgspec.Struct, gc=False):
    """`workflow`: the tasks themselves up to 1.4, the way to them since."""

    name: Any = None
    specification: Raw = NOTHING
    execution: Raw = NOTHING
    tasks: Raw = NOTHING
    jobs: Raw = NOTHING
    makespan: Any = None
    makespan_s: Any = msgspec.field(default=None, name="makespanInSeconds")


class Part(msgspec.Struct, gc=False):
    """`workflow.specification` or `workflow.execution`."""

    tasks: Raw = NOTHING
    makespan_s: Any = msgspec.field(default=None, name="makespanInSeconds")


class Record(msgspec.Struct, gc=False):
    """A task, or the record of how it went: layouts divide these fields differently."""

    id: Any = None
    name: Any = None
    category: Any = None
    command: Raw = NOTHING
    parents: Raw = NOTHING  # lists that live as long as the tasks would be the collector's burden
    children: Raw = NOTHING
    runtime: Any = None
    runtime_s: Any = msgspec.field(default=None, name="runtimeInSeconds")


class Command(msgspec.Struct, gc=False):
    """What a task ran."""

    program: Any = None


Shape = TypeVar("Shape")


class Decoder(Generic[Shape]):
    """Reads a value as a shape, or says what it is instead."""

    def __init__(self, shape: Any, what: str, hint: str = SHAPE_HINT) -> None:
        self.decoder: msgspec.json.Decoder[Shape] = msgspec.json.Decoder(shape)
        self.what = what
        self.hint = hint

    def read(self, raw: Raw, path: Path, problems: Problems) -> Shape | None:
        """The value; None if it is none of the kind, which is then a problem."""
        try:
            return self.decoder.decode(raw)
        except msgspec.ValidationError as error:
            problems.add(path, "wfformat.shape", self.complaint(raw, str(error)), self.hint)
            return None

    def complaint(self, raw: Raw, said: str) -> str:
        """What is wrong: another kind of value, or a number that no reader holds."""
        if "out of range" in said:
            return f"not readable: {said}"
        return f"expected {self.what}; got {raw_kind(raw)}"


WORKFLOW: Final[Decoder[Workflow]] = Decoder(Workflow, "an object")
PART: Final[Decoder[Part]] = Decoder(Part, "an object")
TASKS: Final[Decoder[list[Raw]]] = Decoder(list[Raw], "a list of tasks")
TASK: Final[Decoder[Record]] = Decoder(
    Record, "a task, which is an object", "mend the value, or take the task out"
)
NAMES: Final[Decoder[list[Any] | None]] = Decoder(
    list[Any] | None, "a list of tasks", "write a list of ids, or [] for none"
)
PROGRAM: Final = msgspec.json.Decoder(Command)


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Where a file keeps its tasks, and how they went."""

    tasks: list[Raw]
    path: Path
    records: list[Raw] | None = None  # None: each task holds its own
    records_path: Path = ()
    makespan: Any = None
    makespan_path: Path = ()
    by_id: bool  # tasks refer to each other by id; before 1.5 by name


def layout_of(raw: Raw, problems: Problems) -> Layout:
    """Which layout this is, by what is there. Raises RefusedError if it is none."""
    path: Path = ("workflow",)
    workflow = WORKFLOW.read(raw, path, problems)
    if workflow is None:
        raise problems.refusal()
    if raw_kind(workflow.specification) != "nothing":
        return divided(workflow, problems)
    for name in ("tasks", "jobs"):
        tasks: Raw = getattr(workflow, name)
        if raw_kind(tasks) != "nothing":
            field = "makespan" if workflow.makespan_s is None else "makespanInSeconds"
            return Layout(
                tasks=some_tasks(tasks, (*path, name), problems),
                path=(*path, name),
                makespan=workflow.makespan if field == "makespan" else workflow.makespan_s,
                makespan_path=(*path, field),
                by_id=False,
            )
    message = f"no tasks here; the fields are {fields_of(raw)}"
    problems.add(path, "wfformat.shape", message, SHAPE_HINT)
    raise problems.refusal()


def divided(workflow: Workflow, problems: Problems) -> Layout:
    """The layout since 1.5: what was to be done, and how it went."""
    path: Path = ("workflow", "specification")
    ran_path: Path = ("workflow", "execution")
    wanted = PART.read(workflow.specification, path, problems)
    if wanted is None:
        raise problems.refusal()
    tasks = some_tasks(wanted.tasks, (*path, "tasks"), problems)
    ran: Part | None = None
    records: list[Raw] = []
    if raw_kind(workflow.execution) != "nothing":
        ran = PART.read(workflow.execution, ran_path, problems)
    if ran is not None and raw_kind(ran.tasks) != "nothing":
        records = TASKS.read(ran.tasks, (*ran_path, "tasks"), problems) or []
    return Layout(
        tasks=tasks,
        path=(*path, "tasks"),
        records=records,
        records_path=(*ran_path, "tasks"),
        makespan=None if ran is None else ran.makespan_s,
        makespan_path=(*ran_path, "makespanInSeconds"),
        by_id=True,
    )


def some_tasks(raw: Raw, path: Path, problems: Problems) -> list[Raw]:
    """The tasks: a list, and not an empty one."""
    tasks = TASKS.read(raw, path, problems)
    if tasks == []:
        message = "the list of tasks is empty"
        problems.add(path, "wfformat.shape", message, "a workflow has at least one task")
    if not tasks:
        raise problems.refusal()
    return tasks


def program_of(record: Record) -> str:
    """What was run: the program, or else the category."""
    if record.command is not NOTHING:
        try:
            program = text_of(PROGRAM.decode(record.command).program)
        except msgspec.ValidationError:  # a command of another form tells us nothing
            program = ""
        if program:
            return program
    return text_of(record.category)


def text_of(value: Any) -> str:
    """A name or an id: a text, or a whole number as some tools write it. Else nothing."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def raw_kind(raw: Raw) -> str:
    """What kind of value this is, in words."""
    data = bytes(memoryview(raw)[:100]).lstrip()
    return OPENING.get(data[0]) or kind_of(msgspec.json.decode(raw))


def fields_of(raw: Raw) -> str:
    """The names of an object's fields, for a message."""
    return listing(msgspec.json.decode(raw, type=dict[str, Raw])) or "none"
