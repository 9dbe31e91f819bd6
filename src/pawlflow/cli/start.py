"""`pawl start FILE|NAME`: commit a start and return."""

from typing import Any

import click
from msgspec.structs import replace

from pawlflow.app import owned_elsewhere
from pawlflow.cli.output import note, print_json, undriven
from pawlflow.cli.session import person, reading, session, told
from pawlflow.cli.starting import order_of, start_by_mail
from pawlflow.cli.values import json_of, moment_in
from pawlflow.engine.clock import SystemClock
from pawlflow.projections.plain import time_told


@click.command(help="Start a workflow, print the instance's id, and return.")
@click.argument("workflow", metavar="FILE|NAME|MODULE:FLOW")
@click.option("--input", "given", metavar="JSON|@FILE", help="The instance's input; default {}.")
@click.option("--id", "key", help="The instance's id; the same id and input start it once.")
@click.option("--at", metavar="TIME|+DURATION", help="Not before: 2026-11-15T06:00Z, or +10m.")
@click.option("--by", help="Who starts it; default the user of this terminal.")
def command(  # what a start consists of
    workflow: str,
    given: str | None,
    key: str | None,
    at: str | None,
    by: str | None,
    **options: Any,
) -> None:
    """Start it; durable when the id is printed."""
    here = session(options)
    value = json_of(here, given, "--input", default={})
    later = None if at is None else moment_in(here, at, "--at", SystemClock().now())
    order = replace(order_of(here, workflow, key, value, by or person()), at=later)
    with told(here):
        existing = start_by_mail(here, order)
    if here.as_json:
        timed = {} if later is None else {"start_at": time_told(later)}
        print_json({"id": order.key, "existing": existing, **timed})
        return
    click.echo(order.key)
    if existing:
        note(f"{order.key} was started before, with the same input")
        return
    with reading(here) as store:
        if not owned_elsewhere(store):
            note(undriven(order.key))
