"""`pawl rebuild`: the rows behind the SQL views, built from the journal, or held against it."""

import sys
from typing import Any, Final

import click
import msgspec

from pawlflow.cli.output import CONFLICT, count, print_json
from pawlflow.cli.replay import different_mark, same_mark
from pawlflow.cli.screen import progress_bar
from pawlflow.cli.session import Session, reading, session
from pawlflow.projections.comparing import Compared
from pawlflow.readmodels import compare, rebuild

DIFFERENT: Final = "views.different"


@click.command(help="Build the SQL views of instances and steps again, from the journal.")
@click.option("--check", is_flag=True, help="Only compare; exit 5 at the first difference.")
def command(check: bool, **options: Any) -> None:
    """The engine may go on meanwhile; readers see the rows of before until each is replaced."""
    here = session(options)
    with reading(here):
        if check:
            check_rows(here)
        else:
            rebuild_rows(here)


def rebuild_rows(here: Session) -> None:
    """Build, and tell how much there was."""
    with progress_bar("rebuilding") as progress:
        built = rebuild(here.url, progress)
    if here.as_json:
        print_json(built)
        return
    rows = f"{count(built.instances, 'instance')}, {count(built.steps, 'step')}"
    gone = f"; {count(built.removed, 'row')} did not follow from it" if built.removed else ""
    click.echo(f"{rows}, built from {count(built.turns, 'turn')} of the journal{gone}")


def check_rows(here: Session) -> None:
    """Compare, and end with 5 if something differs."""
    with progress_bar("comparing") as progress:
        report = compare(here.url, progress)
    if here.as_json:
        print_json({"same": report.difference is None, **msgspec.structs.asdict(report)})
    else:
        print_report(report)
    sys.exit(0 if report.difference is None else CONFLICT)


def print_report(report: Compared) -> None:
    """What was looked at, then what differs."""
    looked = f"{count(report.instances, 'instance')}, {count(report.steps, 'step')}"
    if report.difference is None:
        click.echo(f"{same_mark()} {looked}, as the journal gives them")
    else:
        click.echo(f"{different_mark()} {report.difference.words} [{DIFFERENT}]")
    if report.behind:
        click.echo(f"  {count(report.behind, 'turn')} of the journal not in them yet")
