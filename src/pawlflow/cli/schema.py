"""`pawl schema`: JSON Schema, of documents for editors and of events for whoever hears them."""

from collections.abc import Callable
from typing import Any, Final

import click

from pawlflow.cli.output import print_json
from pawlflow.cli.settings import settings_schema
from pawlflow.definition.schema import policy_schema, schedule_schema, workflow_schema
from pawlflow.projections.event_schema import events_schema
from pawlflow.testing.scenario import scenario_schema

SCHEMAS: Final[dict[str, Callable[[], dict[str, Any]]]] = {
    "workflow": workflow_schema,
    "scenario": scenario_schema,
    "schedule": schedule_schema,
    "policy": policy_schema,
    "events": events_schema,
    "settings": settings_schema,
}


@click.command(
    help="Print the JSON Schema of a document kind, for editors: "
    "`# yaml-language-server: $schema=pawl-workflow.json`; "
    "or of what `history --json` prints: `pawl schema events`; or of pawl.toml: `settings`."
)
@click.argument("kind", type=click.Choice(list(SCHEMAS)), default="workflow")
def command(kind: str, **_: Any) -> None:
    """Print it; it is JSON with or without --json."""
    print_json(SCHEMAS[kind]())
