"""`pawl test PATHS`: run scenarios in virtual time."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import click
import msgspec

from pawlflow.cli.check import count
from pawlflow.cli.documents import Loaded, load_path
from pawlflow.cli.output import (
    FAILED,
    INVALID,
    NOT_FOUND,
    fail,
    find_files,
    print_findings,
    print_json,
    setting,
)
from pawlflow.definition.finding import Finding
from pawlflow.testing.crashes import crash_everywhere
from pawlflow.testing.runner import InvalidScenarioError, Result, run_scenario
from pawlflow.testing.scenario import Scenario


@click.command(help="Run scenarios in virtual time. Exit 0 all passed, 1 some failed, 3 invalid.")
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "--crash-everywhere",
    "crash",
    is_flag=True,
    help="Run each scenario again with a crash before and after every commit.",
)
@click.option("--crash-all", is_flag=True, help="The same, without sampling long scenarios.")
def command(
    paths: tuple[str, ...], crash: bool, crash_all: bool, as_json: bool | None, **given: Any
) -> None:
    """Read everything first: an invalid file means that nothing is run."""
    json = bool(setting("as_json", as_json))
    refuse_stores(setting("db", given["db"]), as_json=json)
    loaded = [load_path(path, as_json=json) for path in find_files(paths, as_json=json)]
    refuse_invalid(loaded, as_json=json)
    scenarios = [scenario for file in loaded for scenario in file.scenarios]
    if not scenarios:
        message = f"no document of kind: Scenario in {', '.join(paths)}"
        fail("cli.nothing", message, exit_code=NOT_FOUND, as_json=json)
    try:
        results = list(run_all(scenarios, crash=crash or crash_all, everything=crash_all))
    except InvalidScenarioError as error:
        refuse([error.finding], loaded, as_json=json)
    for result in () if json else results:
        print_result(result)
    summarise(results, as_json=json)
    sys.exit(0 if all(result.passed for result in results) else FAILED)


def refuse_stores(db: str | None, *, as_json: bool) -> None:
    """Scenarios run in memory in this version."""
    if db not in (None, "memory:"):
        message = f"scenarios run in memory; --db {db} is not possible yet"
        fail("cli.not_yet", message, exit_code=2, as_json=as_json)


def refuse_invalid(loaded: list[Loaded], *, as_json: bool) -> None:
    """End with exit 3 if any scenario file has an error; workflow files beside them too."""
    errors = [found for file in loaded for found in file.findings if found.severity == "error"]
    if errors:
        refuse(errors, loaded, as_json=as_json)


def refuse(errors: list[Finding], loaded: list[Loaded], *, as_json: bool) -> NoReturn:
    """Say what is wrong with the files, and end."""
    if as_json:
        print_json({"passed": 0, "failed": 0, "scenarios": [], "findings": errors})
    else:
        print_findings(errors, {file.name: file.text for file in loaded})
        click.echo(f"{count(len(errors), 'error')}: nothing was run", err=True)
    sys.exit(INVALID)


def run_all(scenarios: list[Scenario], *, crash: bool, everything: bool) -> Iterator[Result]:
    """Run them one after the other."""
    for scenario in with_progress(scenarios):
        result = run_scenario(scenario)
        yield crash_everywhere(scenario, result, everything=everything) if crash else result


def with_progress(scenarios: list[Scenario]) -> Iterable[Scenario]:
    """A progress bar where somebody watches, and only for work worth watching."""
    if not sys.stderr.isatty() or len(scenarios) < 20:
        yield from scenarios
        return
    with click.progressbar(scenarios, label="scenarios", file=sys.stderr) as bar:
        yield from bar


def print_result(result: Result) -> None:
    """A line per scenario; on failure, expected against actual."""
    mark = click.style("PASS", fg="green") if result.passed else click.style("FAIL", fg="red")
    crashes = f", {result.crashes} crash points" if result.crashes else ""
    sampled = " (a seeded sample; --crash-all tries all)" if result.sampled else ""
    click.echo(f"{mark} {result.name} ({count(result.turns, 'turn')}{crashes}{sampled})")
    for found in result.failures:
        click.echo("  " + found.message.replace("\n", "\n  "))


def summarise(results: list[Result], *, as_json: bool) -> None:
    """How it went, for people or for machines."""
    passed = sum(result.passed for result in results)
    failed = len(results) - passed
    if as_json:
        scenarios = [as_dict(result) for result in results]
        print_json({"passed": passed, "failed": failed, "scenarios": scenarios})
    else:
        click.echo(f"{passed} passed, {failed} failed")


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
    }
