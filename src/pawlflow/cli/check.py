"""`pawl check FILES`: validate and lint definitions and scenarios."""

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from pawlflow.cli.documents import Loaded, load_path
from pawlflow.cli.modules import is_module, load_module
from pawlflow.cli.output import (
    INVALID,
    NOT_FOUND,
    count,
    find_files,
    print_findings,
    print_json,
    setting,
)
from pawlflow.cli.session import session
from pawlflow.definition.finding import Finding


@click.command(help="Validate and lint definitions and scenarios; exit 3 if anything is invalid.")
@click.argument("files", nargs=-1, required=True)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
def command(files: tuple[str, ...], strict: bool, as_json: bool | None, **options: Any) -> None:
    """Check everything given, and say all that was found."""
    json = bool(setting("as_json", as_json))
    modules = [given for given in files if is_module(given)]
    there = [given for given in files if Path(given).exists() and given not in modules]
    missing = [not_there(given) for given in files if is_missing(given)]
    paths = find_files(there, as_json=json) if there else []
    loaded = [load_path(path, as_json=json) for path in paths]
    known = [given for given in modules if not is_missing(given)]
    loaded += [load_module(session({**options, "as_json": as_json}), given) for given in known]
    findings = [found for file in loaded for found in file.findings] + missing
    if strict:
        findings = [stricter(found) for found in findings]
    errors = sum(found.severity == "error" for found in findings)
    if json:
        print_json(findings)
    else:
        report(loaded, findings, errors)
    sys.exit(NOT_FOUND if missing else INVALID if errors else 0)


# What a sound workflow may well have: parallel parts, a field for later, a stub too many.
ADVICE = frozenset(
    {
        "kind.later",
        "lint.disconnected",
        "lint.guards",
        "lint.unused",
        "lint.escalation",
        "lint.revise",
        "report.full",
        "scenario.stub_unused",
    }
)


def stricter(found: Finding) -> Finding:
    """A warning as an error, unless it is only advice."""
    advice = found.code in ADVICE
    return found if advice else msgspec.structs.replace(found, severity="error")


def is_missing(given: str) -> bool:
    """Does this path lead nowhere? Of a flow in a module, the module is looked for."""
    return not Path(given).exists() and (given.endswith(".py") or not is_module(given))


def not_there(given: str) -> Finding:
    """A path that leads nowhere is a finding like any other; the rest is checked."""
    return Finding(
        file=given,
        line=1,
        column=1,
        severity="error",
        code="cli.not_found",
        message=f"no such file: {given}",
        hint="check the spelling",
    )


def report(loaded: list[Loaded], findings: list[Finding], errors: int) -> None:
    """Findings first, then one line that sums up."""
    print_findings(findings, {file.name: file.text for file in loaded})
    workflows = sum(len(file.workflows) for file in loaded)
    scenarios = sum(len(file.scenarios) for file in loaded)
    schedules = sum(len(file.schedules) for file in loaded)
    beside = [count(schedules, "schedule")] if schedules else []
    policies = sum(len(file.policies) for file in loaded)
    beside += [count(policies, "policy", "policies")] if policies else []
    warnings = len(findings) - errors
    found = [count(workflows, "workflow"), *beside, count(scenarios, "scenario")]
    found += [count(errors, "error"), count(warnings, "warning")]
    click.echo(f"{count(len(loaded), 'file')}: {', '.join(found)}")
