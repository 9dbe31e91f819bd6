"""`pawl review`: what waits for a human, with its context, and their decision."""

from collections.abc import Callable
from functools import partial
from shlex import quote
from typing import Any, Final, Literal

import click

from pawlflow import requests
from pawlflow.cli.act import act, audited, check_role
from pawlflow.cli.attempts import decision_lines, ladder_lines
from pawlflow.cli.deadletters import letters_in
from pawlflow.cli.lines import clean, short, text_of
from pawlflow.cli.look import story_in
from pawlflow.cli.output import CONFLICT, NOT_FOUND, USAGE, note, print_json
from pawlflow.cli.session import Session, head_of, person, reading, session
from pawlflow.cli.typed import typed
from pawlflow.cli.values import json_of
from pawlflow.engine.clock import SystemClock
from pawlflow.kernel.heads import LATE
from pawlflow.model.codec import decode
from pawlflow.model.inputs import Receipt
from pawlflow.projections.decisions import decisions
from pawlflow.projections.history import trace_id
from pawlflow.projections.ladder import ladders
from pawlflow.projections.outlook import hints_for as hints_of
from pawlflow.projections.plain import time_told, value_of
from pawlflow.projections.show import show_waiting
from pawlflow.projections.story import Told, tell
from pawlflow.projections.why import why as why_of
from pawlflow.store.port import Review, Store

LINE_MAX: Final = 80  # of what is shown on one line; more gets a line for each of its members
STEP: Final = click.option("--step", help="The step, where ID is an instance with several open.")


@click.group(help="List, show, claim, approve, reject what waits for a human.")
def command(**_: Any) -> None:
    """The verbs are below."""


@command.command(help="List open reviews, oldest first.")
@click.option("--role", metavar="ROLE", help="Only for this role.")
def ls(role: str | None, **options: Any) -> None:
    """The id is what the other verbs take."""
    here = session(options)
    with reading(here) as store:
        rows = [row_of(each) for each in store.reviews(here.tenant) if role in (None, each.role)]
    if here.as_json:
        print_json(rows)
        return
    if not rows:
        note("nothing waits for a human")
        return
    from pawlflow.cli.render import reviews_table
    from pawlflow.cli.screen import draw

    draw(reviews_table(rows))


def row_of(review: Review) -> dict[str, Any]:
    """A review in a list."""
    return {
        "id": id_of(review),
        "instance": review.cell.key,
        "step": review.step.removesuffix(LATE) or None,
        "kind": review.kind,
        "role": review.role,
        "due_at": time_told(review.due_at),
        "show": None if review.show is None else decode(review.show),
        "since": time_told(review.since),
        "workflow": review.cell.workflow,
        "claimed_by": review.claimed_by,
    }


def id_of(review: Review) -> str:
    """What names a review: the instance and its step; an instance put aside is its own."""
    return f"{review.cell.key}/{review.step}" if review.step else review.cell.key


@command.command(help="Show what a review is about: what is asked, and how it came to that.")
@click.argument("key", metavar="ID")
@STEP
def show(key: str, step: str | None, **options: Any) -> None:
    """Everything a person needs to decide."""
    here = session(options)
    with reading(here) as store:
        review = review_at(here, store, key, step)
        story = story_in(here, store, review.cell.key)
        late = late_of(store, review)
    name = review.step.removesuffix(LATE)
    seen, told = tell(story), why_of(story, SystemClock().now(), about=name)
    unit = seen.state.named(name)
    waiting = {} if unit is None or late is not None else show_waiting(seen, unit)
    hints = [typed(hint) for hint in hints_for(review, seen)]
    shown = {
        "input": value_of(seen.state.input),
        "ladder": ladders(story).get(name, []),
        "decisions": decisions(story).get(name, []),
        "trace": trace_id(seen.state),
        **({} if late is None else {"late": late}),
    }
    if here.as_json:
        print_json(row_of(review) | waiting | {"because": told["because"], "hints": hints} | shown)
        return
    print_review(review, waiting, shown)
    from pawlflow.cli.render import why_text
    from pawlflow.cli.screen import draw

    draw(why_text(told | {"hint": hints[0]}))
    for hint in hints[1:]:
        click.echo(f"      {hint}")


def print_review(review: Review, waiting: dict[str, Any], shown: dict[str, Any]) -> None:
    """What is asked, of whom, until when."""
    row = row_of(review)
    click.echo(f"{click.style(row['id'], bold=True)}  {review.kind}  {review.cell.workflow}")
    told = {
        "role": review.role or "anybody",
        "claimed": review.claimed_by,
        "due": row["due_at"] or "never",
        "shows": None if review.kind == "budget" else whole(row["show"]),
        **{name: waiting.get(name) for name in BUDGET},  # as it is now, not when it was asked
        "votes": ", ".join(waiting.get("votes") or []) or None,
        "not by": waiting.get("not_by"),
        "input": short(shown["input"]),
        "error": short(waiting["error"]["message"] or "") if waiting.get("error") else None,
        "guards": whole(waiting.get("guards")),
        "late": whole(shown.get("late")),
    }
    said = {name: value for name, value in told.items() if value is not None}
    width = max(map(len, ("claimed", *said)))
    for name, value in said.items():
        for nth, line in enumerate(str(value).split("\n")):
            click.echo(f"  {'' if nth else name:<{width}} {line}")
    for line in (*ladder_lines(shown["ladder"]), *decision_lines(shown["decisions"])):
        click.echo(line)


def whole(value: Any) -> str | None:
    """What somebody is to agree to: all of it, a line for each member if it is long."""
    line = None if value is None else clean(text_of(value))
    if line is None or len(line) <= LINE_MAX or not isinstance(value, dict):
        return line
    return "\n".join(f"{clean(name)}: {clean(text_of(each))}" for name, each in value.items())


BUDGET: Final = ("unit", "limit", "spent", "reserved", "needed")


def hints_for(review: Review, seen: Told) -> list[str]:
    """The commands that decide it."""
    if review.kind == "quarantine":
        return ["pawl dlq ls", "pawl dlq redrive NUMBER", "pawl dlq discard NUMBER"]
    if review.kind == "effect.orphaned":
        return [f"pawl review settle {quote(id_of(review))} --by NAME --comment TEXT"]
    unit = seen.state.named(review.step)
    return [f"pawl why {review.cell.key}"] if unit is None else hints_of(seen, unit)


def review_at(here: Session, store: Store, key: str, step: str | None) -> Review:
    """The open review of an id; an instance alone stands for the only one it has."""
    instance, _, named = key.partition("/")
    head_of(here, store, instance)
    mine = [each for each in store.reviews(here.tenant) if each.cell.key == instance]
    wanted = step or named
    found = [each for each in mine if each.step == wanted] if wanted else mine
    known = ", ".join(map(id_of, mine)) or "none"
    if not found:
        message = f"no review {key!r} is open; of {instance} are open: {known}"
        here.end("review.unknown", message, NOT_FOUND)
    if len(found) > 1:
        message = f"{instance} has several open reviews: name one of {known}"
        here.end("review.several", message, USAGE)
    return found[0]


Verb = Literal["approve", "reject", "claim"]
RAISED: Final = click.option(
    *("--limits", "limits"),
    metavar="JSON|@FILE",
    help="New hard limits of a budget, such as '{\"usd\": 10}'; default what the step needs.",
)
LIMITS: Final[dict[Verb, Callable[[Any], Any]]] = {
    "approve": RAISED,
    "reject": lambda command: command,
    "claim": lambda command: command,
}


def speaking(verb: Verb, words: str) -> click.Command:
    """A verb by which somebody says something about a review."""

    @command.command(verb, help=words)
    @click.argument("key", metavar="ID")
    @STEP
    @click.option("--role", metavar="ROLE", help="In which role; the gate may ask for one.")
    @LIMITS[verb]
    @audited
    def speak(
        key: str,
        step: str | None,
        role: str | None,
        by: str | None,
        comment: str | None,
        limits: str | None = None,
        **options: Any,
    ) -> None:
        here = session(options)
        check_role(here, role)
        raised = json_of(here, limits, "--limits", default=requests.NOT_GIVEN)
        instance, _, named = key.partition("/")
        wanted = step or named
        with reading(here) as store:
            if not wanted:
                wanted = review_at(here, store, key, None).step
            review = open_review(here, store, instance, wanted)
        refuse_others(here, review, verb)
        who, tenant = by or person(), here.tenant
        said = {"by": who, "role": role, "comment": comment, "limits": raised}
        made = partial(requests.decide, verb, wanted, tenant, **said)
        act(here, instance, f"{verb} {wanted}", made)
        tell_if_asked_again(here, review, verb)

    return speak


def tell_if_asked_again(here: Session, before: Review | None, verb: Verb) -> None:
    """An approval of what is no longer so is kept, and void: say it, for it looks like a grant."""
    if verb != "approve" or before is None or here.as_json:
        return
    with reading(here) as store:
        after = open_review(here, store, before.cell.key, before.step)
    if after is not None and after.kind == before.kind and after.since != before.since:
        note(f"what it approves had changed, so it asks again: {show_command(after)}")


def show_command(review: Review) -> str:
    """How to look at a review."""
    return f"pawl review show {quote(id_of(review))}"


def open_review(here: Session, store: Store, instance: str, step: str) -> Review | None:
    """The review of a step, if it is open."""
    mine = (each for each in store.reviews(here.tenant) if each.cell.key == instance)
    return next((each for each in mine if each.step == step), None)


def refuse_others(here: Session, review: Review | None, verb: Verb) -> None:
    """Only gates and budgets are approved or rejected: for others, name the verb that decides."""
    if review is None or review.kind in ("approval", "budget"):
        return
    instance = review.cell.key
    if review.kind == "quarantine":
        message = f"{instance} was put aside: pawl dlq ls, then pawl dlq redrive or discard"
        here.end("cell.quarantined" if verb == "claim" else "approval.not_open", message, CONFLICT)
    if review.kind == "effect.orphaned":
        settle = f"pawl review settle {quote(id_of(review))} --comment TEXT"
        message = f"{id_of(review)} has happened already: {settle}"
        here.end("approval.not_open", message, CONFLICT)
    if verb != "claim":
        target = f"{instance} {quote(review.step)}"
        way = f"`pawl resume {target}`, `pawl retry {target}` or `pawl cancel {instance}`"
        message = f"{id_of(review)} is no gate but an {review.kind}: {way}"
        here.end("approval.not_open", message, CONFLICT)


@command.command(help="Say what became of an effect that nobody waited for any more.")
@click.argument("key", metavar="ID")
@STEP
@click.option("--role", metavar="ROLE", help="In which role.")
@audited
def settle(
    key: str,
    step: str | None,
    role: str | None,
    by: str | None,
    comment: str | None,
    **options: Any,
) -> None:
    """It was undone by hand, or may stand: the words are kept, and nobody is asked again."""
    here = session(options)
    check_role(here, role)
    if not comment:
        here.end("cli.usage", "say with --comment what was done about it", USAGE)
    with reading(here) as store:
        review = review_at(here, store, key, step)
    if review.kind != "effect.orphaned":
        message = f"{id_of(review)} is of kind {review.kind}: {show_command(review)}"
        here.end("review.unknown", message, CONFLICT)
    said: Any = {"by": by or person(), "role": role, "comment": comment}
    made = partial(requests.settle, review.step, here.tenant, **said)
    act(here, review.cell.key, f"settle {review.step}", made)


def late_of(store: Store, review: Review) -> dict[str, Any] | None:
    """What came too late, of an effect that nobody waits for: in the journal, or beside it."""
    if review.kind != "effect.orphaned":
        return None
    mine = [each.disposed for each in letters_in(store, review.cell.tenant)]
    for disposed in mine:
        about = value_of(disposed.detail) == {"review": review.step}
        if about and disposed.cell == review.cell and isinstance(disposed.input, Receipt):
            result = value_of(disposed.input.result)
            return {"at": time_told(disposed.at), "result": result}
    return {"at": time_told(review.since)}


speaking("approve", "Agree to a gate, or raise the budget for a step that it holds.")
speaking("reject", "Refuse a gate, or to raise the budget: the step fails.")
speaking("claim", "Look after a review; it binds nobody: others may still decide.")
