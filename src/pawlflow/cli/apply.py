"""`pawl apply -f PATH`: publish definitions under their names."""

from typing import Any

import click

from pawlflow.app import open_store
from pawlflow.cli.editions import note_changed
from pawlflow.cli.output import print_json
from pawlflow.cli.session import person, session, told
from pawlflow.cli.starting import publish
from pawlflow.cli.workflows import definitions_in
from pawlflow.definition.canonical import definition_bytes, hash_of_bytes
from pawlflow.definition.plan import plan_of
from pawlflow.definition.shape import Policy, Schedule
from pawlflow.govern.cedar import set_hash


@click.command(help="Publish the definitions of files and folders.")
@click.option("-f", "paths", multiple=True, required=True, metavar="PATH", help="File or folder.")
@click.option("--by", help="Who publishes; default the user of this terminal.")
def command(paths: tuple[str, ...], by: str | None, **options: Any) -> None:
    """All of them, or none if one is not valid."""
    here = session(options)
    rows: list[dict[str, Any]] = []
    with told(here):
        defined = definitions_in(here, list(paths))
        found = defined.workflows
        for workflow in found:
            plan_of(definition_bytes(workflow))  # what could not be run is not published
        note_changed(here, found)
        store = open_store(here.url)
        try:
            for policy in defined.policies:  # before anything that they govern
                new = publish(here, store, policy, by or person())
                rows.append(policy_row(policy, new=new))
            for workflow in found:
                new = publish(here, store, workflow, by or person())
                digest = hash_of_bytes(definition_bytes(workflow)).hex()
                rows.append(
                    {
                        "name": workflow.name,
                        "version": workflow.version,
                        "definition_hash": digest,
                        "status": "new" if new else "unchanged",
                    }
                )
            for schedule in defined.schedules:
                new = publish(here, store, schedule, by or person())
                rows.append(schedule_row(schedule, new=new))
        finally:
            store.close()
    if here.as_json:
        print_json(rows)
        return
    for row in rows:
        mark = click.style("new", fg="green") if row["status"] == "new" else "unchanged"
        if row.get("kind") == "Schedule":
            click.echo(f"{row['name']}  starts {row['workflow']} at {row['schedule']}  {mark}")
        elif row.get("kind") == "Policy":
            click.echo(f"policy {row['name']} v{row['version']}  {row['policy_hash'][:12]}  {mark}")
        else:
            click.echo(f"{row['name']} v{row['version']}  {row['definition_hash'][:12]}  {mark}")


def policy_row(policy: Policy, *, new: bool) -> dict[str, Any]:
    """A policy that was published."""
    return {
        "kind": "Policy",
        "name": policy.name,
        "version": policy.version,
        "policy_hash": set_hash([policy]).hex(),
        "status": "new" if new else "unchanged",
    }


def schedule_row(schedule: Schedule, *, new: bool) -> dict[str, Any]:
    """A schedule that was published."""
    return {
        "kind": "Schedule",
        "name": schedule.name,
        "workflow": schedule.workflow,
        "schedule": schedule.schedule,
        "status": "new" if new else "unchanged",
    }
