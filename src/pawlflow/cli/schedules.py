"""`pawl schedules`: what starts by the clock, and what people do about it."""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, Final, Literal, NoReturn

import click
import msgspec

from pawlflow import requests
from pawlflow.app import owned_elsewhere, request
from pawlflow.cli.act import audited
from pawlflow.cli.lines import clean, short
from pawlflow.cli.output import CONFLICT, USAGE, count, note, print_json
from pawlflow.cli.session import Session, person, reading, refuse, session
from pawlflow.cli.system import system_state
from pawlflow.cli.typed import typed
from pawlflow.cli.values import moment_in
from pawlflow.engine.clock import SystemClock
from pawlflow.engine.system.schedules import between
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.system.registry import Registry
from pawlflow.kernel.system.schedule import Schedule, run_key
from pawlflow.model.ids import CellId, InstanceId, TimeMs
from pawlflow.model.inputs import Input
from pawlflow.model.system import registry_cell
from pawlflow.model.timed import schedule_key
from pawlflow.projections.plain import time_told
from pawlflow.projections.schedules import schedule_names, schedule_row, schedule_told
from pawlflow.store.port import Store

BACKFILL_MAX: Final = 10_000  # runs of one backfill: more is a period to be divided
LOOK_MAX: Final = 500  # instances looked for at a time
UPCOMING: Final = 5  # times told by `show`
SHOWN_MAX: Final = 10  # ids of a backfill that are printed; --json has all


@click.group(help="List, show, pause, unpause, backfill and remove what starts by the clock.")
def command(**_: Any) -> None:
    """The verbs are below."""


@command.command(help="List schedules: what they start, when next, and whether they are paused.")
def ls(**options: Any) -> None:
    """One line for each, by name."""
    here = session(options)
    with reading(here) as store:
        registry = registry_of(here, store)
        found = [state_of(here, store, name) for name in schedule_names(registry)]
        rows = [schedule_row(state, registry) for state in found if state.job is not None]
        idle = bool(rows) and not owned_elsewhere(store)
    if here.as_json:
        print_json(rows)
        return
    put_table(rows)
    if not rows:
        note(f"no schedule of tenant {here.tenant!r}: `pawl apply -f FILE` publishes one")
    tell_idle(idle=idle)


def put_table(rows: list[dict[str, Any]]) -> None:
    """Columns as wide as what stands in them."""
    lines = [("SCHEDULE", "WORKFLOW", "TIMES", "NEXT", "")] if rows else []
    for row in rows:
        next_ = "never" if row["next_at"] is None else row["next_at"][:16] + "Z"
        times = f"{row['schedule']} {row['timezone']}"
        lines.append(
            (row["name"], row["workflow"], times, next_, "paused" if row["paused"] else "")
        )
    widths = [max(len(line[at]) for line in lines) for at in range(4)] if lines else []
    for line in lines:
        cells = [f"{clean(cell):<{width}}" for cell, width in zip(line, widths, strict=False)]
        click.echo("  ".join([*cells, line[4]]).rstrip())


@command.command(help="Show a schedule: its times, what it started last, and what it missed.")
@click.argument("name")
def show(name: str, **options: Any) -> None:
    """With the states of its last runs, and its next times."""
    here = session(options)
    with reading(here) as store:
        registry, state = known(here, store, name)
        told = schedule_told(state, registry)
        keys = [InstanceId(each["id"]) for each in told["recent"]]
        states = states_of(here, store, keys)
        told["recent"] = [each | {"state": states.get(each["id"])} for each in told["recent"]]
        told["upcoming"] = upcoming(state)
        idle = not owned_elsewhere(store)
    if here.as_json:
        print_json(told)
        return
    put_schedule(told)
    tell_idle(idle=idle)


def upcoming(state: Schedule) -> list[str | None]:
    """Its next times."""
    if state.job is None or state.next is None:
        return []
    found = between(state.job.cron, state.next, FOREVER, UPCOMING)
    return [time_told(each) for each in found]


FOREVER: Final = TimeMs(1 << 60)


def put_schedule(told: dict[str, Any]) -> None:
    """A schedule on a page."""
    paused = f"  paused by {clean(told['paused_by'])}" if told["paused"] else ""
    click.echo(f"{click.style(told['name'], bold=True)}  starts {told['workflow']}{paused}")
    click.echo(f"  times     {told['schedule']} {told['timezone']}, catchUp {told['catch_up']}")
    if told["input"]:
        click.echo(f"  input     {short(told['input'])}")
    for at, each in enumerate(told["upcoming"]):
        click.echo(f"  {'' if at else 'next':<9} {each[:16]}Z")
    if told["missed"]:
        missed = told["missed"]
        why = f" [{missed['code']}]" if missed["code"] else ""
        click.echo(f"  missed    from {missed['first_at'][:16]}Z{why}")
    for at, each in enumerate(told["recent"]):
        state = each["state"] or typed("not started: see pawl dlq ls")
        click.echo(f"  {'' if at else 'started':<9} {each['id']}  {state}")


# Acting


def holding(verb: Literal["pause", "unpause"], words: str) -> click.Command:
    """A verb that holds a schedule back, or lets it go on."""

    @command.command(verb, help=words)
    @click.argument("name")
    @audited
    def hold(name: str, by: str | None, comment: str | None, **options: Any) -> None:
        here = session(options)
        made = requests.hold_schedule(verb, here.tenant, by=by or person(), comment=comment)
        act(here, name, verb, lambda cell: (cell, made))

    return hold


holding("pause", "Let a schedule start nothing; it keeps its place in time.")
holding("unpause", "Let a schedule go on; its catchUp says what becomes of what it missed.")


@command.command(help="Remove a schedule that was published as a document of its own.")
@click.argument("name")
@click.option("--by", help="Who acts; default the user of this terminal.")
def remove(name: str, by: str | None, **options: Any) -> None:
    """What it started goes on."""
    here = session(options)
    made = requests.withdraw_schedule(name, by or person())
    act(here, name, "remove", lambda cell: (registry_cell(cell.tenant), made), REMOVING)


REMOVING: Final = {
    "schedule.of_workflow": "publish the workflow without trigger.schedule, with a higher version"
}


def act(
    here: Session,
    name: str,
    verb: str,
    make: Callable[[CellId], tuple[CellId, Input]],
    ways: dict[str, str] | None = None,
) -> None:
    """Hand something in about a schedule, and say that it was taken."""
    with reading(here) as store:
        known(here, store, name)
        outcome = request(store, *make(requests.schedule_cell(here.tenant, name)))
    if isinstance(outcome, Rejected):
        refuse(here, f"{verb} of {name}", outcome, (ways or {}).get(outcome.code, ""))
    if here.as_json:
        print_json({"name": name, "act": verb, "accepted": True})
    else:
        click.echo(f"{name}: {verb} accepted")


class Period(msgspec.Struct, frozen=True):
    """What a backfill is about: every run between two times, and those that exist already."""

    first: TimeMs
    last: TimeMs
    keys: list[InstanceId]
    existing: set[InstanceId]

    @property
    def missing(self) -> list[InstanceId]:
        """The runs that it would start."""
        return [key for key in self.keys if key not in self.existing]


@command.command(help="Start the runs of a past period; those that exist are left as they are.")
@click.argument("name")
@click.option("--from", "since", required=True, metavar="TIME", help="2026-11-01, or -7d.")
@click.option("--to", "until", required=True, metavar="TIME", help="2026-11-15T06:00Z, or -1h.")
@click.option("--dry-run", is_flag=True, help="Only say what would be started.")
@click.option("--by", help="Who acts; default the user of this terminal.")
def backfill(
    name: str, since: str, until: str, dry_run: bool, by: str | None, **options: Any
) -> None:
    """Both ends are included. Ids are those of the schedule itself: nothing starts twice."""
    here = session(options)
    now = SystemClock().now()
    first, last = moment_in(here, since, "--from", now), moment_in(here, until, "--to", now)
    if first > last:
        here.end("cli.usage", "--from lies after --to: exchange them", USAGE)
    if last > now:
        message = "--to lies in the future: the schedule itself will start that"
        here.end("schedule.future", message, USAGE)
    with reading(here) as store:
        _, state = known(here, store, name)
        period = period_of(here, store, state, first, last)
        if period.missing and not dry_run:
            made = requests.backfill(first, last, by or person())
            outcome = request(store, requests.schedule_cell(here.tenant, name), made)
            if isinstance(outcome, Rejected):
                refuse(here, f"backfill of {name}", outcome)
    put_backfill(here, name, period, dry_run=dry_run)


def period_of(here: Session, store: Store, state: Schedule, first: TimeMs, last: TimeMs) -> Period:
    """Every run of a period; ends with 5 if there are more than a backfill takes."""
    assert state.job is not None, "a schedule that is known has a job"
    due = between(state.job.cron, first, last, BACKFILL_MAX + 1)
    if len(due) > BACKFILL_MAX:
        after = f"up to {time_told(due[BACKFILL_MAX - 1])}"
        message = f"more than {BACKFILL_MAX:,} runs lie there: divide the period, first {after}"
        here.end("schedule.too_many", message, CONFLICT)
    keys = [run_key(state.name, each) for each in due]
    return Period(first, last, keys, set(states_of(here, store, keys)))


def put_backfill(here: Session, name: str, period: Period, *, dry_run: bool) -> None:
    """What was started, or would be."""
    missing, existing = period.missing, len(period.existing)
    if here.as_json:
        print_json(
            {
                "name": name,
                "from": time_told(period.first),
                "to": time_told(period.last),
                "dry_run": dry_run,
                "runs": len(period.keys),
                "existing": existing,
                "started": 0 if dry_run else len(missing),
                "ids": missing,
            }
        )
        return
    word = "would be started" if dry_run else "started"
    click.echo(f"{name}: {count(len(missing), 'run')} {word}, {existing:,} exist already")
    for key in missing[:SHOWN_MAX]:
        click.echo(f"  {key}")
    if len(missing) > SHOWN_MAX:
        click.echo(f"  and {len(missing) - SHOWN_MAX:,} more; --json has all")


# Looking


def registry_of(here: Session, store: Store) -> Registry:
    """The registry of a tenant; an empty one if nothing was published."""
    cell = registry_cell(here.tenant)
    found = system_state(here, store, cell.key)
    return found if isinstance(found, Registry) else Registry(cell)


def state_of(here: Session, store: Store, name: str) -> Schedule:
    """The state of a schedule; without a job if it has not heard of it yet."""
    found = system_state(here, store, schedule_key(name))
    cell = requests.schedule_cell(here.tenant, name)
    return found if isinstance(found, Schedule) else Schedule(cell)


def known(here: Session, store: Store, name: str) -> tuple[Registry, Schedule]:
    """A schedule of this name; ends with 4 if there is none."""
    registry = registry_of(here, store)
    names = schedule_names(registry)
    state = state_of(here, store, name)
    if name not in names or state.job is None:
        unknown(here, name, names)
    return registry, state


def unknown(here: Session, name: str, names: list[str]) -> NoReturn:
    """There is no such schedule: name those that may have been meant."""
    close = get_close_matches(name, names, n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "`pawl schedules ls` lists them"
    here.end("schedule.unknown", f"no schedule {name!r} of tenant {here.tenant!r}: {hint}")


def states_of(here: Session, store: Store, keys: list[InstanceId]) -> dict[InstanceId, str]:
    """The states of those that exist, by id."""
    found: dict[InstanceId, str] = {}
    for at in range(0, len(keys), LOOK_MAX):
        images = store.load([(here.tenant, key) for key in keys[at : at + LOOK_MAX]])
        found |= {key: image.head.state for (_, key), image in images.items()}
    return found


def tell_idle(*, idle: bool) -> None:
    """Where nobody drives the store, its times pass."""
    if idle:
        note("nobody drives this store now: what is due starts when somebody does, by its catchUp")
