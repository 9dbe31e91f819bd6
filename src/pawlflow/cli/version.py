"""`pawl version`."""

import platform
from importlib.metadata import version
from typing import Any

import click

from pawlflow.cli.output import print_json, setting


@click.command(help="Print the version.")
def command(as_json: bool | None, **_: Any) -> None:
    """Print it."""
    found = version("pawlflow")
    if setting("as_json", as_json):
        print_json({"version": found, "python": platform.python_version()})
    else:
        click.echo(f"pawl {found}")
