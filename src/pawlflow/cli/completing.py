"""`pawl complete KEY`: say what became of an attempt that an endpoint took to do later."""

from typing import Any

import click

from pawlflow.app import request
from pawlflow.cli.act import tell_if_idle
from pawlflow.cli.output import USAGE, print_json
from pawlflow.cli.session import reading, refuse, session
from pawlflow.cli.values import json_of
from pawlflow.completing import CLASSES, Completion, awaited_in, check, key_in, receipt_of
from pawlflow.kernel.draft import Rejected

NOT_GIVEN: Any = object()


@click.command(help="Complete an attempt that was left open, by the key of its request.")
@click.argument("key")
@click.option("--result", metavar="JSON|@FILE", help="It succeeded, with this; default null.")
@click.option(
    "--fail",
    metavar="CLASS",
    is_flag=False,
    flag_value="terminal",
    help=f"It failed: {', '.join(CLASSES)}; terminal if none is named.",
)
@click.option("--message", metavar="TEXT", default="", help="With --fail: what went wrong.")
@click.option("--findings", metavar="JSON|@FILE", help="With --fail validation: a list, for next.")
@click.option("--attempt", type=click.IntRange(1), help="Of which attempt; default the present.")
@click.option("--usage", metavar="JSON", help='What it cost, such as {"usd": 0.02}.')
@click.option("--instance", metavar="ID", help="Whose; without, open instances are looked through.")
def command(  # noqa: PLR0913  # its options
    key: str,
    result: str | None,
    fail: str | None,
    message: str,
    findings: str | None,
    attempt: int | None,
    usage: str | None,
    instance: str | None,
    **options: Any,
) -> None:
    """Durable when it returns; 4 if nobody knows the key, 5 if it is no longer awaited."""
    here = session(options)
    listed = json_of(here, findings, "--findings", default=[])
    spent = json_of(here, usage, "--usage")
    value = json_of(here, result, "--result", default=NOT_GIVEN)
    if fail is not None and value is not NOT_GIVEN:
        here.end("cli.usage", "give --result or --fail, not both", USAGE)
    if fail is None and (message or listed):
        here.end("cli.usage", "--message and --findings go with --fail", USAGE)
    if spent is not None and not isinstance(spent, dict):
        here.end("cli.usage", "--usage is a mapping of units to amounts", USAGE)
    said = Completion(
        result=None if value is NOT_GIVEN else value,
        fail=fail,
        message=message,
        findings=listed if isinstance(listed, list) else [listed],
        attempt=attempt,
        usage=spent,
    )
    with reading(here) as store:
        check(said)
        awaited = awaited_in(store, here.tenant, key, instance)
        outcome = request(store, awaited.cell, receipt_of(awaited, key_in(key), said))
        if isinstance(outcome, Rejected):
            refuse(here, f"completion of {awaited.unit} of {awaited.cell.key}", outcome)
        told = {"id": awaited.cell.key, "step": awaited.unit, "key": key, "accepted": True}
        if here.as_json:
            print_json(told)
            return
        click.echo(f"{awaited.cell.key}: completion of {awaited.unit} accepted")
        tell_if_idle(here, store, awaited.cell.key)
