"""`pawl review`: what waits for a human, with its context, and their decision."""

from functools import partial
from typing import Any, Final, Literal

import click

from pawlflow.cli.act import act, audited, check_role
from pawlflow.cli.lines import short
from pawlflow.cli.look import story_in
from pawlflow.cli.output import CONFLICT, NOT_FOUND, USAGE, note, print_json
from pawlflow.cli.session import Session, head_of, person, reading, session
from pawlflow.engine import requests
from pawlflow.engine.clock import SystemClock
from pawlflow.model.codec import decode
from pawlflow.projections.plain import time_told
from pawlflow.projections.show import show as show_of
from pawlflow.projections.why import why as why_of
from pawlflow.store.port import Review, Store

STEP: Final = click.option("--step", help="The step, where ID is an instance with several open.")


@click.group(help="List, show, approve and reject what waits for a human.")
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
        "step": review.step or None,
        "kind": review.kind,
        "role": review.role,
        "due_at": time_told(review.due_at),
        "show": None if review.show is None else decode(review.show),
        "since": time_told(review.since),
        "workflow": review.cell.workflow,
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
        shown, told = show_of(story), why_of(story, SystemClock().now())
    waiting: dict[str, Any] = next(
        (each for each in shown["waiting"] if each["step"] == review.step), {}
    )
    if here.as_json:
        because = {"because": told["because"], "hints": hints_for(review, told)}
        print_json(row_of(review) | waiting | because | {"input": shown["input"]})
        return
    print_review(review, waiting, shown)
    from pawlflow.cli.render import why_text
    from pawlflow.cli.screen import draw

    draw(why_text(told))
    for hint in hints_for(review, told):
        if hint != told["hint"]:
            click.echo(f"      {hint}")


def print_review(review: Review, waiting: dict[str, Any], shown: dict[str, Any]) -> None:
    """What is asked, of whom, until when."""
    row = row_of(review)
    click.echo(f"{click.style(row['id'], bold=True)}  {review.kind}  {review.cell.workflow}")
    told = {
        "role": review.role or "anybody",
        "due": row["due_at"] or "never",
        "shows": None if row["show"] is None else short(row["show"]),
        "votes": ", ".join(waiting.get("votes") or []) or None,
        "not by": waiting.get("not_by"),
        "input": short(shown["input"]),
        "error": short(waiting["error"]["message"] or "") if waiting.get("error") else None,
    }
    for name, value in told.items():
        if value is not None:
            click.echo(f"  {name:<7} {value}")


def hints_for(review: Review, told: dict[str, Any]) -> list[str]:
    """The commands that decide it."""
    if review.kind == "quarantine":
        return ["pawl dlq ls", "pawl dlq redrive NUMBER", "pawl dlq discard NUMBER"]
    place = (f" {id_of(review)} ", f" {review.cell.key} {review.step} ")
    return [hint for hint in told["hints"] if any(each in f"{hint} " for each in place)]


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


def decision(verb: Literal["approve", "reject"], words: str) -> click.Command:
    """A verb that decides a gate."""

    @command.command(verb, help=words)
    @click.argument("key", metavar="ID")
    @STEP
    @click.option("--role", metavar="ROLE", help="In which role; the gate may ask for one.")
    @audited
    def decide(
        key: str,
        step: str | None,
        role: str | None,
        by: str | None,
        comment: str | None,
        **options: Any,
    ) -> None:
        here = session(options)
        check_role(here, role)
        instance, _, named = key.partition("/")
        wanted = step or named
        with reading(here) as store:
            if not wanted:
                wanted = review_at(here, store, key, None).step
            refuse_others(here, store, instance, wanted)
        who, tenant = by or person(), here.tenant
        made = partial(requests.decide, verb, wanted, tenant, by=who, role=role, comment=comment)
        act(here, instance, f"{verb} {wanted}".strip(), made)

    return decide


def refuse_others(here: Session, store: Store, instance: str, step: str) -> None:
    """Only a gate is approved or rejected: for the others, name the verb that decides them."""
    for each in store.reviews(here.tenant):
        if each.cell.key == instance and each.step == step and each.kind != "approval":
            ways = {
                "escalation": f"pawl resume|retry|reassign {instance} {step}, or pawl cancel",
                "quarantine": "pawl dlq ls, then pawl dlq redrive or discard",
            }
            message = f"{id_of(each)} is no gate but an {each.kind}: {ways[each.kind]}"
            if each.kind == "quarantine":
                message = f"{instance} was put aside: {ways[each.kind]}"
            here.end("approval.not_open", message, CONFLICT)


decision("approve", "Agree to a gate.")
decision("reject", "Refuse a gate.")


@command.command(help="Not in this version.")
@click.argument("key", metavar="ID")
def claim(key: str, **options: Any) -> None:
    """Claims come with the server."""
    del key
    here = session(options)
    here.end("cli.not_yet", "reviews are claimed through a server, which comes later", USAGE)
