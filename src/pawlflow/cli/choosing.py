"""Which instances a verb is about: the options that `ls` and the acts on many share."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from pawlflow.cli.session import Session
from pawlflow.engine.clock import SystemClock
from pawlflow.store.port import Filter, Store
from pawlflow.where import STATES, filter_of

F = TypeVar("F", bound=Callable[..., Any])
STATE: Final = click.option(
    "--state", "states", multiple=True, type=click.Choice(STATES), help="Only in it."
)
PAUSED: Final = (
    "paused"  # no state of its own: what is paused runs or waits, and starts nothing new
)
LISTED: Final = click.option(
    "--state", "states", multiple=True, type=click.Choice((*STATES, PAUSED)), help="Only in it."
)
WORKFLOW: Final = click.option("--workflow", metavar="NAME", help="Only of this workflow.")
WHERE: Final = click.option(
    "--where",
    multiple=True,
    metavar="EXPR",
    help="Only where this holds: repo == 'r1' && started_at > '-1h'. Several must all hold.",
)
DRY_RUN: Final = click.option("--dry-run", is_flag=True, help="Only say which it would be.")
YES: Final = click.option("--yes", is_flag=True, help="Do not ask.")


def choosing(command: F) -> F:
    """The options by which an act is for many instances."""
    return WHERE(STATE(WORKFLOW(DRY_RUN(YES(command)))))


def chose(options: Mapping[str, Any]) -> bool:
    """Does a filter say which instances are meant?"""
    return bool(options["where"] or options["states"] or options["workflow"])


def filter_in(here: Session, store: Store, options: Mapping[str, Any]) -> Filter:
    """The filter that the options stand for. Raises WhereError."""
    return filter_of(
        store,
        here.tenant,
        options["where"],
        now=SystemClock().now(),
        states=options["states"],
        workflow=options["workflow"],
    )
