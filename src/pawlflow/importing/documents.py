"""A trace as two documents: a workflow to run, and a scenario that holds it to its critical path.

Lines are written by hand: tens of thousands of steps in well under a second, the same bytes every
time, one step to a line where it fits.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from pawlflow.definition.fields import DURATION_MAX_MS, TEXT_MAX, duration_text
from pawlflow.definition.read import BYTES_MAX, NODES_MAX, STEPS_MAX
from pawlflow.importing.names import effect_name, step_names
from pawlflow.importing.trace import Measures, Task, Trace

LINE_MAX: Final = 100
# Plain words that YAML 1.2, or an older reader in somebody's editor, takes for something else.
NOT_PLAIN: Final = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
MINUTE: Final = 60_000
# Timeouts a person would have written; longer ones are whole days.
TIMEOUTS: Final = tuple(
    minutes * MINUTE
    for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 720, 1_440, 2_880, 5_760, 10_080)
)
DAY: Final = 1_440 * MINUTE
ROOM: Final = 2  # how much longer than recorded a task may take


class TooLargeError(Exception):
    """The documents would be more than `pawl` reads."""


class Documents(msgspec.Struct, frozen=True, kw_only=True):
    """The two files, as text."""

    name: str
    workflow_file: str
    workflow: str
    scenario_name: str
    scenario_file: str
    scenario: str


def documents(trace: Trace, measures: Measures, *, name: str, source: str) -> Documents:
    """Both documents of a trace. Raises TooLargeError if `pawl` would not read them."""
    refuse_many(len(trace.tasks), STEPS_MAX, "tasks", "steps")
    refuse_many(measures.critical_ms, DURATION_MAX_MS, "ms of critical path", "ms")
    names = step_names(trace.tasks)
    workflow_file, scenario_file = f"{name}.yaml", f"{name}.scenario.yaml"
    scenario_name = f"{name}-takes-its-critical-path"
    about = description(trace, source)
    head = workflow_head(trace, measures, name=name, source=source, about=about)
    steps = workflow_steps(trace.tasks, names)
    workflow = "\n".join([*head, *steps, ""])
    scenario = "\n".join(
        [
            *scenario_head(scenario_name, workflow_file, about),
            *scenario_stubs(trace.tasks, names),
            "  expect:",
            "    state: completed",
            f"    elapsed: {duration_text(measures.critical_ms)}",
            "",
        ]
    )
    refuse_many(values_in(measures), NODES_MAX, "values", "values")
    for text in (workflow, scenario):
        refuse_many(len(text.encode()), BYTES_MAX, "bytes of YAML", "bytes")
    return Documents(
        name=name,
        workflow_file=workflow_file,
        workflow=workflow,
        scenario_name=scenario_name,
        scenario_file=scenario_file,
        scenario=scenario,
    )


def refuse_many(found: int, most: int, what: str, unit: str) -> None:
    """Beyond what is read from a file, nothing is written."""
    if found > most:
        raise TooLargeError(f"{found:,} {what}; a file may hold at most {most:,} {unit}")


def values_in(measures: Measures) -> int:
    """How many values the workflow's reader will count: keys and what is under them."""
    return 50 + 9 * measures.tasks + measures.edges


def description(trace: Trace, source: str) -> str:
    """One line that names where it comes from."""
    version = "" if trace.version == "unknown" else f" {trace.version}"
    named = f", workflow {trace.name}" if trace.name else ""
    return f"Imported from {source} (WfFormat{version}){named}"


# The workflow


def workflow_head(
    trace: Trace, measures: Measures, *, name: str, source: str, about: str
) -> Iterator[str]:
    """Everything before the steps."""
    yield "apiVersion: pawl.dev/v1"
    yield "kind: Workflow"
    yield "metadata:"
    yield f"  name: {plain(name)}"
    yield "  annotations:"
    yield f"    source: {quoted(source)}"
    yield f"    workflow: {quoted(trace.name)}"
    yield f"    wfformat: {quoted(trace.version)}"
    yield "spec:"
    yield f"  description: {quoted(about)}"
    # One worker that does everything in turn, and anybody faster, is in time.
    longest = max(ROOM * measures.critical_ms, measures.total_ms)
    yield f"  timeout: {duration_text(timeout_for(longest))}"
    yield "  steps:"


def workflow_steps(tasks: Sequence[Task], names: Sequence[str]) -> Iterator[str]:
    """A line for each step, or several for one with many dependencies."""
    effects: dict[tuple[str, str], str] = {}
    written = [plain(name) for name in names]
    for task, name, step in zip(tasks, names, written, strict=True):
        asked = (task.kind, "" if task.kind else task.name)
        effect = effects.get(asked)
        if effect is None:
            effect = effects[asked] = plain(effect_name(task))
        timeout = duration_text(timeout_for(ROOM * (task.runtime_ms or 0)))
        line = f"    - {{name: {step}, run: {effect}, timeout: {timeout}"
        called = comment(task, name)
        if not task.parents:
            yield f"{line}}}{called}"
            continue
        parents = ", ".join([written[parent] for parent in task.parents])
        whole = f"{line}, dependsOn: [{parents}]}}"
        if len(whole) <= LINE_MAX:
            yield whole + called
        else:
            yield f"{line},{called}"
            yield "       dependsOn: ["
            yield from wrapped([written[parent] for parent in task.parents], " " * 9)
            yield "       ]}"


def comment(task: Task, name: str) -> str:
    """What the file calls a task whose step could not be called the same."""
    called = task.id or task.name
    if name in (called.lower(), task.name.lower()):
        return ""
    return f"  # {visible(called)[:200]}"


def wrapped(names: Sequence[str], indent: str) -> Iterator[str]:
    """Names with commas, in lines of a readable length."""
    line = indent
    for name in names:
        if len(line) + len(name) + 1 > LINE_MAX and line != indent:
            yield line.rstrip()
            line = indent
        line += f"{name}, "
    yield line.rstrip()


def timeout_for(ms: int) -> int:
    """The next timeout that a person would have written."""
    for timeout in TIMEOUTS:
        if ms <= timeout:
            return timeout
    return min(-(-ms // DAY) * DAY, DURATION_MAX_MS)


# The scenario


def scenario_head(name: str, workflow_file: str, about: str) -> Iterator[str]:
    """Everything before the stubs."""
    yield "apiVersion: pawl.dev/v1"
    yield "kind: Scenario"
    yield f"metadata: {{name: {name}}}"
    yield "spec:"
    yield f"  description: {quoted(f'{about}: every task takes as long as it took')}"
    yield f"  workflow: ./{workflow_file}"
    yield "  stubs:"


def scenario_stubs(tasks: Sequence[Task], names: Sequence[str]) -> Iterator[str]:
    """What each task answers, and when; one that was not timed answers at once."""
    for task, name in zip(tasks, names, strict=True):
        after = "" if task.runtime_ms is None else f", after: {duration_text(task.runtime_ms)}"
        yield f"    {plain(name)}: [{{ok: {{}}{after}}}]"


# Scalars


def plain(name: str) -> str:
    """A name as YAML writes it: as it is, unless it would be read as something else."""
    return f'"{name}"' if name in NOT_PLAIN else name


def quoted(text: str) -> str:
    """Any text in double quotes, without what cannot be seen."""
    body = visible(text)[: TEXT_MAX - 200].replace("\\", "\\\\").replace('"', '\\"')
    return f'"{body}"'


def visible(text: str) -> str:
    """The text with a space for everything that no reader would see."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text)
