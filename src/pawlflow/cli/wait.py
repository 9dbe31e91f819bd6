"""`pawl wait ID`: follow an instance until it is closed, driving it if nobody does."""

from pathlib import Path
from typing import Any

import click

from pawlflow.cli.ending import conclude, follow_to_end
from pawlflow.cli.endpoints import add_endpoints
from pawlflow.cli.executors import executors_of, secrets_in, stubs_in
from pawlflow.cli.follow import Task, see_through, shown_now
from pawlflow.cli.screen import screen_for
from pawlflow.cli.session import head_of, reading, session
from pawlflow.cli.values import seconds_of
from pawlflow.cli.workflows import with_published
from pawlflow.definition.canonical import definition_from_bytes
from pawlflow.model.ids import Digest, InstanceId


@click.command(help="Follow an instance until it is closed, driving it if nobody else does.")
@click.argument("key", metavar="ID")
@click.option("--timeout", metavar="5m", help="Leave after this time, with 75.")
@click.option("--worker", metavar="MODULE", help="A module (or .py file) of @step functions.")
@click.option(
    "--endpoints", type=click.Path(path_type=Path), help="A file of effects done by HTTP."
)
@click.option("--stubs", type=click.Path(path_type=Path), help="Answers in place of executors.")
@click.option("--secrets", type=click.Path(path_type=Path), help="A file, or folder, of secrets.")
def command(  # its options
    key: str,
    timeout: str | None,
    worker: str | None,
    endpoints: Path | None,
    stubs: Path | None,
    secrets: Path | None,
    **options: Any,
) -> None:
    """End as the instance ends: 0 completed, 1 failed or cancelled, 75 not yet."""
    here = session(options)
    seconds = seconds_of(here, timeout)
    executors = executors_of(here, worker)
    executors.secrets = secrets_in(here, secrets)
    add_endpoints(here, executors, endpoints)
    with reading(here) as store:
        head = head_of(here, store, key)
        if head.closed_at is not None:
            conclude(here, shown_now(here, store, key))
        wanted = Digest(head.definition)
        definition = definition_from_bytes(store.definitions([wanted])[wanted])
        known = with_published(store, here.tenant, definition)
    if stubs is not None:
        listed = stubs_in(here, stubs, known)
        executors.use_stubs(listed, here.tenant, InstanceId(key))
    screen = screen_for(err=True, quiet=here.as_json)
    task = Task(here, InstanceId(key), executors, screen)
    follow_to_end(task, see_through(task), seconds)
