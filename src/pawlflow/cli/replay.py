"""`pawl replay ID|--all`: decide every turn again and compare; exit 5 at the first difference."""

import sys
from typing import Any

import click

from pawlflow.cli.look import story_in
from pawlflow.cli.output import CONFLICT, USAGE, count, print_json
from pawlflow.cli.screen import progress_bar
from pawlflow.cli.session import Session, reading, session
from pawlflow.projections.proof import Report, verify_instance, verify_store
from pawlflow.store.port import Store


@click.command(help="Decide every turn again and compare; exit 5 at the first difference.")
@click.argument("key", metavar="ID", required=False)
@click.option("--all", "everything", is_flag=True, help="Every instance, chain and row.")
def command(key: str | None, everything: bool, **options: Any) -> None:
    """No effect is carried out: deciding has none."""
    here = session(options)
    if (key is None) != everything:
        here.end("cli.usage", "replay takes either the id of an instance, or --all", USAGE)
    with reading(here) as store:
        if key is None:
            replay_all(here, store)
        else:
            replay_one(here, store, key)


def replay_one(here: Session, store: Store, key: str) -> None:
    """One instance."""
    story = story_in(here, store, key)
    found = verify_instance(story)
    if here.as_json:
        same = found is None
        print_json({"id": key, "same": same, "turns": len(story.turns), "difference": found})
    elif found is None:
        click.echo(f"{same_mark()} {key}: {count(len(story.turns), 'turn')}, the same bytes")
    else:
        click.echo(f"{different_mark()} {key}: turn {found.turn}, {found.where}")
        click.echo(f"  recorded: {found.recorded}\n  derived:  {found.derived}")
    sys.exit(0 if found is None else CONFLICT)


def replay_all(here: Session, store: Store) -> None:
    """The whole store: chains, decisions, heads."""
    with progress_bar("replaying") as progress:
        report = verify_store(store, progress)
    if here.as_json:
        print_json({"same": not report.differences, **report_told(report)})
    else:
        print_report(report)
    sys.exit(CONFLICT if report.differences else 0)


def report_told(report: Report) -> dict[str, Any]:
    """A report as --json has it."""
    return {
        "instances": report.instances,
        "turns": report.turns,
        "removed": report.removed,
        "entries": report.entries,
        "frames": report.frames,
        "shards": report.shards,
        "live": report.live,
        "differences": [
            {
                "instance": None if each.cell is None else each.cell.key,
                "tenant": None if each.cell is None else each.cell.tenant,
                "turn": each.turn,
                "shard": each.shard,
                "seq": each.seq,
                "code": each.code,
                "message": each.message,
            }
            for each in report.differences
        ],
    }


def print_report(report: Report) -> None:
    """What was looked at, then what differs, the first of it first."""
    looked = f"{count(report.turns, 'turn')} of {count(report.instances, 'instance')}"
    chains = f"{count(report.frames, 'frame')} in {count(report.shards, 'shard')}"
    mark = different_mark() if report.differences else same_mark()
    rest = "" if report.differences else ", the same bytes"
    gone = f"; {report.removed:,} removed, their hashes stay" if report.removed else ""
    click.echo(f"{mark} {looked}; {chains}{rest}{gone}")
    for each in report.differences:
        whose = each.cell.key if each.cell else f"shard {each.shard}"
        turn = f" turn {each.turn}" if each.turn else ""
        click.echo(f"  {whose}{turn}: {each.message} [{each.code}]")
    if report.live:
        click.echo("  an owner went on meanwhile: what it wrote since then was left out")


def same_mark() -> str:
    """As `journal verify` marks it."""
    return click.style("SAME", fg="green")


def different_mark() -> str:
    """As `journal verify` marks it."""
    return click.style("DIFFERENT", fg="red")
