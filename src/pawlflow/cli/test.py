"""`pawl test PATHS`: run scenarios in virtual time."""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, NoReturn

import click
import msgspec
from click.core import ParameterSource

from pawlflow.app import postgres
from pawlflow.cli.documents import Loaded, load_path
from pawlflow.cli.output import (
    CONFLICT,
    FAILED,
    INVALID,
    NOT_FOUND,
    count,
    fail,
    find_files,
    print_findings,
    print_json,
    read_file,
    setting,
)
from pawlflow.cli.session import EXITS
from pawlflow.definition.finding import Finding
from pawlflow.store.port import StoreError
from pawlflow.store.postgres_url import is_postgres, masked
from pawlflow.testing.crashes import crash_everywhere
from pawlflow.testing.runner import HostOn, InvalidScenarioError, Result, on_file, run_scenario
from pawlflow.testing.scenario import Scenario
from pawlflow.testing.telling_results import told


@click.command(help="Run scenarios in virtual time. Exit 0 all passed, 1 some failed, 3 invalid.")
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "--crash-everywhere",
    "crash",
    is_flag=True,
    help="Run each scenario again with a crash before and after every commit.",
)
@click.option("--crash-all", is_flag=True, help="The same, without sampling long scenarios.")
@click.option(
    "--journals",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the journal of each run in this folder.",
)
def command(
    paths: tuple[str, ...],
    crash: bool,
    crash_all: bool,
    journals: Path | None,
    as_json: bool | None,
    **_: Any,
) -> None:
    """Read everything first: an invalid file means that nothing is run."""
    json = bool(setting("as_json", as_json))
    found = [p for p in find_files(paths, as_json=json) if is_wanted(p, paths, as_json=json)]
    loaded = [load_path(path, as_json=json) for path in found]
    refuse_invalid(loaded, as_json=json)
    scenarios = [scenario for file in loaded for scenario in file.scenarios]
    if not scenarios:
        message = f"no document of kind: Scenario in {', '.join(paths)}"
        fail("cli.nothing", message, exit_code=NOT_FOUND, as_json=json)
    results: list[Result] = []
    invalid: list[Finding] = []
    crashes = Crashes(crash or crash_all, crash_all)
    with chosen_host(as_json=json) as host:
        for outcome in run_all(scenarios, crashes, host):
            (results if isinstance(outcome, Result) else invalid).append(outcome)  # type: ignore[arg-type]
    keep_journals(results, journals, as_json=json)
    if not json:
        print_findings(invalid, {file.name: file.text for file in loaded})
        for result in results:
            print_result(result)
    summarise(results, invalid, as_json=json)
    sys.exit(INVALID if invalid else 0 if all(r.passed for r in results) else FAILED)


def is_wanted(path: Path, paths: tuple[str, ...], *, as_json: bool) -> bool:
    """A file named by itself, or one in a folder that may hold a scenario."""
    return str(path) in paths or b"Scenario" in read_file(path, as_json=as_json)


@contextmanager
def chosen_host(*, as_json: bool) -> Iterator[HostOn | None]:
    """Where scenarios run: in memory, on new files by --db sqlite:..., or in a schema of their own.

    What the database that is named holds is never touched: a scenario needs an empty store. PAWL_DB
    is for other verbs.
    """
    url = typed_url()
    if url in (None, "memory:", "memory://"):
        yield None
    elif url.startswith("sqlite:"):
        with TemporaryDirectory(prefix="pawl-test-") as folder:
            yield on_file(Path(folder) / "pawl.db")
    elif is_postgres(url):
        with told_store(as_json=as_json), server().on_server(url) as host:
            yield host
    else:
        message = f"{masked(url)!r} is no store: use memory:, sqlite: or postgresql://..."
        fail("store.url", message, exit_code=2, as_json=as_json)


def server() -> Any:
    """How scenarios run on a server, with the driver for it."""
    postgres()
    from pawlflow.testing import on_server

    return on_server


@contextmanager
def told_store(*, as_json: bool) -> Iterator[None]:
    """A store that cannot be used ends the verb."""
    try:
        yield
    except StoreError as error:
        fail(error.code, str(error), exit_code=EXITS.get(error.code, CONFLICT), as_json=as_json)


def typed_url() -> str | None:
    """The --db of this call, if it was typed."""
    here = click.get_current_context()
    for ctx in (here, here.parent):
        typed = ctx is not None and ctx.get_parameter_source("db") is ParameterSource.COMMANDLINE
        if ctx is not None and typed:
            return str(ctx.params["db"])
    return None


def refuse_invalid(loaded: list[Loaded], *, as_json: bool) -> None:
    """End with exit 3 if any scenario file has an error; workflow files beside them too."""
    errors = [found for file in loaded for found in file.findings if found.severity == "error"]
    if errors:
        # A package that is missing here is missing for every file: that is said once.
        same = [found for found in errors if found.code == "policy.cedar_missing"]
        others = [found for found in errors if found.code != "policy.cedar_missing"]
        refuse([*same[:1], *others], loaded, as_json=as_json)


def refuse(errors: list[Finding], loaded: list[Loaded], *, as_json: bool) -> NoReturn:
    """Say what is wrong with the files, and end."""
    if as_json:
        print_json({"passed": 0, "failed": 0, "scenarios": [], "findings": errors})
    else:
        print_findings(errors, {file.name: file.text for file in loaded})
        click.echo(f"{count(len(errors), 'error')}: nothing was run", err=True)
    sys.exit(INVALID)


class Crashes(NamedTuple):
    """Whether scenarios are run again with crashes, and with all of them."""

    wanted: bool
    everything: bool


def run_all(
    scenarios: list[Scenario], crashes: Crashes, host: HostOn | None
) -> Iterator[Result | Finding]:
    """Run them one after the other; one that cannot be run does not hide the others."""
    for scenario in with_progress(scenarios):
        try:
            result = run_scenario(scenario, host=host)
            if crashes.wanted:
                everything = crashes.everything
                result = crash_everywhere(scenario, result, everything=everything, host=host)
            yield result
        except InvalidScenarioError as error:
            yield error.finding


def keep_journals(results: list[Result], folder: Path | None, *, as_json: bool) -> None:
    """Write the journal of each run, named like its scenario."""
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, result in zip(file_names(results), results, strict=True):
            (folder / f"{name}.journal").write_bytes(result.journal)
    except OSError as error:
        message = f"cannot write to {folder}: {error.strerror}"
        fail("cli.unwritable", message, exit_code=NOT_FOUND, as_json=as_json)


def with_progress(scenarios: list[Scenario]) -> Iterable[Scenario]:
    """A progress bar where somebody watches, and only for work worth watching."""
    if not sys.stderr.isatty() or len(scenarios) < 20:
        yield from scenarios
        return
    with click.progressbar(scenarios, label="scenarios", file=sys.stderr) as bar:
        yield from bar


def file_names(results: list[Result]) -> list[str]:
    """A name for each journal; scenarios of the same name are numbered."""
    seen: Counter[str] = Counter()
    names: list[str] = []
    for result in results:
        name = re.sub(r"[^A-Za-z0-9._-]", "-", result.name)
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return names


def print_result(result: Result) -> None:
    """A line per scenario; on failure, expected against actual."""
    mark = click.style("PASS", fg="green") if result.passed else click.style("FAIL", fg="red")
    for line in told(result, mark):
        click.echo(line)


def summarise(results: list[Result], invalid: list[Finding], *, as_json: bool) -> None:
    """How it went, for people or for machines."""
    passed = sum(result.passed for result in results)
    failed = len(results) - passed
    if as_json:
        scenarios = [as_dict(result) for result in results]
        counted = {"passed": passed, "failed": failed, "scenarios": scenarios}
        print_json({**counted, "findings": invalid} if invalid else counted)
        return
    click.echo(f"{passed} passed, {failed} failed")
    if invalid:
        click.echo(f"{count(len(invalid), 'scenario')} could not be run", err=True)


def as_dict(result: Result) -> dict[str, Any]:
    """A result as `--json` promises it."""
    return {
        "name": result.name,
        "file": result.file,
        "passed": result.passed,
        "failures": [msgspec.structs.asdict(found) for found in result.failures],
        "actual": result.actual,
        "turns": result.turns,
        "crashes": result.crashes,
        "sampled": result.sampled,
        "failure": result.failure,
        "refused": result.refused,
    }
