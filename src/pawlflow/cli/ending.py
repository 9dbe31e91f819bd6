"""How a verb that follows an instance ends: its output, its error, or what to do about neither."""

import asyncio
import sys
from collections.abc import Coroutine
from contextlib import redirect_stdout
from typing import Any, NoReturn

import click

from pawlflow.cli.follow import Task
from pawlflow.cli.lines import clean
from pawlflow.cli.output import FAILED, TRY_AGAIN, print_json
from pawlflow.cli.session import Session, told
from pawlflow.cli.typed import typed, wait_command


def follow_to_end(
    task: Task, following: Coroutine[Any, Any, dict[str, Any]], seconds: float | None
) -> NoReturn:
    """Follow an instance, within the time given, and end as it ends."""

    async def in_time() -> dict[str, Any]:
        async with asyncio.timeout(seconds):
            return await following

    here, key = task.here, task.key
    still = f"{key} is still open, and nothing of it is lost: `{wait_command(key)}` goes on"
    with told(here):
        try:
            with task.screen, redirect_stdout(sys.stderr):  # what steps print is not the output
                shown = asyncio.run(in_time())
        except TimeoutError:
            here.end("cli.timeout", still, TRY_AGAIN)
        except KeyboardInterrupt:
            click.echo(typed(still), err=True)
            raise
    conclude(here, shown)


def conclude(here: Session, shown: dict[str, Any]) -> NoReturn:
    """The output and 0, or the error and 1."""
    done = shown["state"] == "completed"
    if here.as_json:
        print_json(shown)
    elif done:
        print_json(shown["output"])
    else:
        click.echo(f"{click.style('error', fg='red', bold=True)}: {ended(shown)}", err=True)
        click.echo(typed(f"  pawl why {shown['id']}"), err=True)
    sys.exit(0 if done else FAILED)


def ended(shown: dict[str, Any]) -> str:
    """How an instance ended that did not complete."""
    error = shown["error"] or {}
    where = f" at {error['step']}" if error.get("step") else ""
    said = f": {clean(error['message'])} [{error['code']}]" if error.get("message") else ""
    rollback = "" if shown["rollback"] == "none" else f" (rollback {shown['rollback']})"
    return f"{shown['id']} {shown['state']}{where}{said}{rollback}"
