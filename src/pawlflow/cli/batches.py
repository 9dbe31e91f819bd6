"""`pawl batches`: acts on many instances, who did them, why, and what became of each."""

from typing import Any, Final

import click

from pawlflow.app import owned_elsewhere
from pawlflow.batches import batch_of, batches_of, results_of, told
from pawlflow.cli.lines import clean
from pawlflow.cli.many import follow, line_of
from pawlflow.cli.output import note, print_json
from pawlflow.cli.session import reading, session

LIMIT: Final = 20  # batches on a page
RESULTS_MAX: Final = 50  # listed whole; of more, what a person would look for
FACTS: Final = ("act", "where", "by", "comment", "opened_at", "closed_at")
COUNTS: Final = ("matched", "done", "refused", "gone", "pending")


@click.group(help="List, show and follow acts on many instances.")
def command(**_: Any) -> None:
    """The verbs are below."""


@command.command(help="List batches, newest first.")
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000),
    default=LIMIT,
    show_default=True,
    help="How many at most.",
)
@click.option("--after", metavar="ID", default="", help="Go on below this one.")
def ls(limit: int, after: str, **options: Any) -> None:
    """Who did what to how many."""
    here = session(options)
    with reading(here) as store:
        rows = [told(batch) for batch in batches_of(store, here.tenant, limit, after)]
    if here.as_json:
        print_json(rows)
        return
    if not rows:
        note("no act was for many instances yet: `pawl cancel --where EXPR` is one")
        return
    from pawlflow.cli.render import batches_table
    from pawlflow.cli.screen import draw

    draw(batches_table(rows))
    if len(rows) == limit:
        note(f"there may be more: pawl batches ls --after {rows[-1]['id']}")


@command.command(help="Show a batch: who, when, why, which, and what became of each.")
@click.argument("key", metavar="ID")
def show(key: str, **options: Any) -> None:
    """As far as it is; it works while the batch is under way."""
    here = session(options)
    with reading(here) as store:
        batch = batch_of(store, here.tenant, key)
        idle = batch.closed is None and not owned_elsewhere(store)
    shown, results = told(batch), results_of(batch)
    if here.as_json:
        print_json(shown | {"results": results})
        return
    click.echo(f"{click.style(batch.id, bold=True)}  {shown['state']}")
    for name in FACTS:
        if shown[name] is not None:
            click.echo(f"  {name.removesuffix('_at'):<8} {clean(str(shown[name]))}")
    click.echo("  " + ", ".join(f"{shown[name]:,} {name}" for name in COUNTS))
    listed = results
    if len(results) > RESULTS_MAX:
        listed = [each for each in results if each["result"] in ("refused", "gone")]
    for each in listed:
        click.echo(line_of(each))
    if len(listed) < len(results):
        note("what is done or pending is not listed; --json has all")
    if idle:
        note(f"nobody drives this store now: `pawl batches wait {key}` takes it to its end")


@command.command(help="Follow a batch to its end, driving it if nobody does.")
@click.argument("key", metavar="ID")
def wait(key: str, **options: Any) -> None:
    """As the verb that began it would have; 5 if some were refused."""
    here = session(options)
    with reading(here) as store:
        batch_of(store, here.tenant, key)
        follow(here, store, key)
