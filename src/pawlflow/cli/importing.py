"""`pawl import wfformat FILE`: a recorded graph as a workflow, and a scenario of its durations."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from pawlflow.cli.output import (
    CONFLICT,
    INVALID,
    NOT_FOUND,
    USAGE,
    count,
    fail,
    note,
    print_findings,
    print_json,
    read_file,
    setting,
)
from pawlflow.cli.screen import Progress, progress_bar
from pawlflow.definition.fields import duration_text
from pawlflow.definition.finding import RefusedError
from pawlflow.definition.read import BYTES_MAX
from pawlflow.importing.documents import Documents, TooLargeError, documents
from pawlflow.importing.names import step_names, workflow_name
from pawlflow.importing.trace import Measures, Trace, measure
from pawlflow.importing.wfformat import read_wfformat
from pawlflow.model.ids import WORKFLOW_NAME

TRACE_BYTES_MAX: Final = 512 << 20  # 50,000 tasks take 50 to 250 MB with their files and arguments
CHAIN_SHOWN: Final = 5  # tasks of the critical path that are named
STAGES: Final = 5  # read, understood, measured, put into words, written


@click.group(help="Make a workflow of a graph that was recorded elsewhere.")
def command(**_: Any) -> None:
    """The formats are below."""


@command.command(
    help="Read a trace of WfCommons (WfFormat 1.0 to 1.6) and write NAME.yaml, a step for each "
    "task, and NAME.scenario.yaml, which runs it with the recorded durations in virtual time and "
    "expects the critical path."
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--out",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Where to write both files; made if need be. Default: here.",
)
@click.option("--name", help="Of the workflow and the files. Default: from the file's name.")
@click.option("--force", is_flag=True, help="Replace what is there.")
def wfformat(
    file: Path, folder: Path, name: str | None, force: bool, as_json: bool | None, **_: Any
) -> None:
    """Nothing is written unless everything can be."""
    json = bool(setting("as_json", as_json))
    chosen = chosen_name(name, file, as_json=json)
    targets = (folder / f"{chosen}.yaml", folder / f"{chosen}.scenario.yaml")
    refuse_existing(targets, force=force, as_json=json)
    with progress_bar("importing") as progress:
        stage = stages(progress)
        data = read_trace(file, as_json=json)
        stage()
        trace = understood(data, file, as_json=json)
        stage()
        measures = measure(trace.tasks)
        stage()
        made = worded(trace, measures, chosen, file, as_json=json)
        stage()
        write_both(made, targets, as_json=json)
        stage()
    if json:
        print_json(told(made, trace, measures, file, targets))
    else:
        print_summary(trace, measures, targets)


def stages(progress: Progress | None) -> Callable[[], None]:
    """Tells whoever watches that one more is done."""
    done = 0

    def stage() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, STAGES)

    return stage


def chosen_name(given: str | None, file: Path, *, as_json: bool) -> str:
    """The name that was asked for, or the nearest to the file's."""
    if given is None:
        return workflow_name(file.name.removesuffix(".json"))
    if not WORKFLOW_NAME.match(given):
        near = workflow_name(given)
        message = f"--name: {given!r} is no name of a workflow; did you mean {near!r}?"
        fail("cli.usage", message, exit_code=USAGE, as_json=as_json)
    return given


def refuse_existing(targets: tuple[Path, Path], *, force: bool, as_json: bool) -> None:
    """Nothing is replaced by accident."""
    there = [str(path) for path in targets if path.exists()]
    if there and not force:
        message = f"{' and '.join(there)} would be replaced: give --name, -o DIR or --force"
        fail("cli.exists", message, exit_code=CONFLICT, as_json=as_json)


def read_trace(file: Path, *, as_json: bool) -> bytes:
    """The bytes of the file."""
    if not file.exists():
        fail("cli.not_found", f"no such file: {file}", exit_code=NOT_FOUND, as_json=as_json)
    data = read_file(file, as_json=as_json, bytes_max=TRACE_BYTES_MAX)
    if len(data) > TRACE_BYTES_MAX:
        message = f"{file} is larger than {TRACE_BYTES_MAX:,} bytes, which is the most that is read"
        fail("wfformat.too_large", message, exit_code=INVALID, as_json=as_json)
    return data


def understood(data: bytes, file: Path, *, as_json: bool) -> Trace:
    """The trace; or everything that is wrong with the file, exit 3."""
    try:
        return read_wfformat(data, str(file))
    except RefusedError as error:
        if as_json:
            print_json({"error": error_told(error)})
        else:
            # The lines of a file that no editor opens are not worth splitting it for.
            small = len(data) <= BYTES_MAX
            text = data.decode(errors="replace").removeprefix("\ufeff") if small else ""
            print_findings(error.findings, {str(file): text})
            click.echo("nothing was written", err=True)
    raise SystemExit(INVALID)


def error_told(error: RefusedError) -> dict[str, Any]:
    """A refusal as --json has it."""
    return {"code": error.findings[0].code, "message": str(error), "findings": error.findings}


def worded(trace: Trace, measures: Measures, name: str, file: Path, *, as_json: bool) -> Documents:
    """The documents; or the limit that they would break, exit 3."""
    try:
        return documents(trace, measures, name=name, source=file.name)
    except TooLargeError as error:
        message = f"{file}: {error}, and no setting raises that in this version: split the trace"
        fail("wfformat.too_large", message, exit_code=INVALID, as_json=as_json)


def write_both(made: Documents, targets: tuple[Path, Path], *, as_json: bool) -> None:
    """Write beside, then put in place: a full disk leaves no half of a file."""
    texts = zip(targets, (made.workflow, made.scenario), strict=True)
    beside = [(path, path.with_name(f".{path.name}.part"), text) for path, text in texts]
    try:
        targets[0].parent.mkdir(parents=True, exist_ok=True)
        try:
            for _, part, text in beside:
                part.write_bytes(text.encode())
            for path, part, _ in beside:
                part.replace(path)
        finally:
            for _, part, _ in beside:
                part.unlink(missing_ok=True)
    except OSError as error:
        message = f"cannot write to {targets[0].parent}: {error.strerror}"
        fail("cli.unwritable", message, exit_code=NOT_FOUND, as_json=as_json)


def told(
    made: Documents, trace: Trace, measures: Measures, file: Path, targets: tuple[Path, Path]
) -> dict[str, Any]:
    """What was made, for machines."""
    names = step_names(trace.tasks)
    return {
        "workflow": made.name,
        "source": str(file),
        "source_workflow": trace.name,
        "schema_version": trace.version,
        "files": {"workflow": str(targets[0]), "scenario": str(targets[1])},
        "tasks": measures.tasks,
        "edges": measures.edges,
        "levels": measures.levels,
        "widest": measures.widest,
        "critical_path_ms": measures.critical_ms,
        "critical_path": [names[number] for number in measures.critical],
        "runtimes_ms": measures.total_ms,
        "parallelism": round(measures.parallelism, 3),
        "makespan_ms": trace.makespan_ms,
        "notes": trace.notes,
    }


def print_summary(trace: Trace, measures: Measures, targets: tuple[Path, Path]) -> None:
    """What was made, for people."""
    for words in trace.notes:
        note(words)
    click.echo(f"{targets[0]}: {count(measures.tasks, 'step')}, {count(measures.edges, 'edge')}")
    wide = f"at most {measures.widest:,} side by side"
    click.echo(f"  levels         {measures.levels:,}, {wide}")
    click.echo(f"  critical path  {duration_text(measures.critical_ms)}: {chain(trace, measures)}")
    click.echo(f"  all runtimes   {duration_text(measures.total_ms)}")
    click.echo(f"  parallelism    {measures.parallelism:.1f} tasks at a time, on average")
    if trace.makespan_ms is not None:
        click.echo(f"  recorded       {duration_text(trace.makespan_ms)} from start to end")
    click.echo(f"{targets[1]}: the same durations, in virtual time")
    click.echo(f"next: pawl test {targets[1]}")


def chain(trace: Trace, measures: Measures) -> str:
    """The tasks of the critical path, without the middle of a long one."""
    names = [trace.tasks[number].name for number in measures.critical]
    if len(names) > CHAIN_SHOWN:
        left_out = len(names) - CHAIN_SHOWN + 1
        names = [*names[: CHAIN_SHOWN - 2], f"({left_out:,} more)", names[-1]]
    return " -> ".join(names)
