"""`pawl schema`: JSON Schema for editors."""

from typing import Any

import click

from pawlflow.cli.output import print_json
from pawlflow.definition.schema import workflow_schema
from pawlflow.testing.scenario import scenario_schema


@click.command(
    help="Print the JSON Schema of a document kind, for editors: "
    "`# yaml-language-server: $schema=pawl-workflow.json`."
)
@click.argument("kind", type=click.Choice(["workflow", "scenario"]), default="workflow")
def command(kind: str, **_: Any) -> None:
    """Print it; it is JSON with or without --json."""
    print_json(workflow_schema() if kind == "workflow" else scenario_schema())
