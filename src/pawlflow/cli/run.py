"""`pawl run FILE|NAME|MODULE:FLOW`: start, show it live, print its output."""

from pathlib import Path
from typing import Any

import click

from pawlflow.app import considerate
from pawlflow.cli.ending import follow_to_end
from pawlflow.cli.endpoints import add_endpoints
from pawlflow.cli.executors import Executors, executors_of, secrets_in, stubs_in
from pawlflow.cli.follow import OwnedError, Task, drive, see_through
from pawlflow.cli.modules import with_steps
from pawlflow.cli.screen import screen_for
from pawlflow.cli.session import Session, person, reading, session
from pawlflow.cli.starting import Order, admitted, order_of, start_by_mail
from pawlflow.cli.values import json_of, seconds_of
from pawlflow.cli.workflows import with_published
from pawlflow.embedded import Pawl
from pawlflow.runs import Run


@click.command(help="Start a workflow, show it live, print its output; exit 1 if it failed.")
@click.argument("workflow", metavar="FILE|NAME|MODULE:FLOW")
@click.option("--input", "given", metavar="JSON|@FILE", help="The instance's input; default {}.")
@click.option("--id", "key", help="The instance's id; the same id and input start it once.")
@click.option("--worker", metavar="MODULE", help="A module (or .py file) of @step functions.")
@click.option(
    "--endpoints", type=click.Path(path_type=Path), help="A file of effects done by HTTP."
)
@click.option("--stubs", type=click.Path(path_type=Path), help="Answers in place of executors.")
@click.option("--secrets", type=click.Path(path_type=Path), help="A file, or folder, of secrets.")
@click.option("--by", help="Who starts it; default the user of this terminal.")
@click.option("--timeout", metavar="5m", help="Leave after this time, with 75; it goes on later.")
def command(  # noqa: PLR0913  # its options
    workflow: str,
    given: str | None,
    key: str | None,
    worker: str | None,
    endpoints: Path | None,
    stubs: Path | None,
    secrets: Path | None,
    by: str | None,
    timeout: str | None,
    **options: Any,
) -> None:
    """Start it, follow it, and end as it ends."""
    here = session(options)
    seconds = seconds_of(here, timeout)
    value = json_of(here, given, "--input", default={})
    order = order_of(here, workflow, key, value, by or person())
    admitted(here, order)
    executors = executors_for(here, order, worker, stubs)
    executors.secrets = secrets_in(here, secrets)
    add_endpoints(here, executors, endpoints)
    task = Task(here, order.key, executors, screen_for(err=True, quiet=here.as_json))
    follow_to_end(task, start_and_follow(task, order), seconds)


def executors_for(here: Session, order: Order, worker: str | None, stubs: Path | None) -> Executors:
    """Whoever carries out the steps of this run."""
    executors = with_steps(executors_of(here, worker), order.chosen)
    if stubs is not None:
        chosen = order.chosen
        known = (chosen.workflow, *chosen.unpublished[1:])
        if not chosen.unpublished:
            with reading(here) as store:
                known = with_published(store, here.tenant, chosen.workflow)
        listed = stubs_in(here, stubs, known)
        executors.use_stubs(listed, here.tenant, order.key)
    return executors


async def start_and_follow(task: Task, order: Order) -> dict[str, Any]:
    """Start it in this process, or by mail where another drives the store."""
    here = task.here
    pawl = Pawl(considerate(here.url), tenant=here.tenant)
    for workflow in order.chosen.unpublished:
        pawl.add(workflow)
    pawl.unscheduled += order.chosen.schedules
    pawl.unruled += order.chosen.policies

    async def begin(entered: Pawl) -> Run:
        address = (here.tenant, order.key)
        existing = address in entered.reader.load([address])
        name = order.chosen.workflow.name
        run = await entered.start(name, order.input, id=order.key, by=order.by)
        if existing:
            task.screen.say(f"{order.key} was started before, with the same input")
        return run

    try:
        return await drive(task, begin, pawl)
    except OwnedError:
        start_by_mail(here, order)
        return await see_through(task)
