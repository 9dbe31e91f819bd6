"""`pawl dlq`: inputs that broke their cell, to be sent once more or thrown away."""

from typing import Any, NoReturn

import click

from pawlflow.app import request
from pawlflow.cli.act import audited, tell_if_idle
from pawlflow.cli.deadletters import (
    Letter,
    is_whole,
    letter_told,
    letters_in,
    open_letters,
    original_of,
    resolved_in,
    summary_of,
)
from pawlflow.cli.lines import short
from pawlflow.cli.output import CONFLICT, NOT_FOUND, count, note, print_json
from pawlflow.cli.session import Session, person, reading, refuse, session
from pawlflow.cli.typed import typed
from pawlflow.kernel.draft import Rejected
from pawlflow.model.inputs import Input
from pawlflow.model.operate import DiscardInput, RedriveInput
from pawlflow.requests import words
from pawlflow.store.port import Store


@click.group(help="List, show, redrive and discard inputs that broke a cell.")
def command(**_: Any) -> None:
    """The verbs are below."""


@command.command(help="List dead letters, newest first.")
@click.option("--all", "everything", is_flag=True, help="Refused inputs and resolved ones too.")
def ls(everything: bool, **options: Any) -> None:
    """Each has a number; the other verbs take it."""
    here = session(options)
    with reading(here) as store:
        letters = letters_in(store, here.tenant)
    done = resolved_in(letters)
    rows = [letter_told(each, done) for each in open_letters(letters, everything=everything)]
    if here.as_json:
        print_json(rows)
        return
    for row in rows:
        what = f"{row['instance']}: {row['input']['kind']}"
        said = f"{row['kind']} [{row['code']}] {short(summary_of(row))}"
        click.echo(f"{row['number']:>8}  {row['at']}  {what}  {said}")
    note(f"{count(len(rows), 'letter')}" + ("" if everything else "; --all has refusals too"))


@command.command(help="Show a dead letter: its input, and what went wrong.")
@click.argument("number", type=int)
def show(number: int, **options: Any) -> None:
    """Everything that is known about it."""
    here = session(options)
    with reading(here) as store:
        letters = letters_in(store, here.tenant)
    row = letter_told(letter_at(here, letters, number), resolved_in(letters))
    row["hints"] = [typed(hint) for hint in row["hints"]]
    if here.as_json:
        print_json(row)
        return
    click.echo(f"{number}  {row['kind']} [{row['code']}]  {row['at']}")
    click.echo(f"  instance  {row['instance']} ({row['workflow']})")
    for name, value in row["input"].items():
        click.echo(f"  {name:<9} {short(value)}")
    click.echo("  because")
    for line in str(row["detail"]).splitlines():
        click.echo(f"    {short(line)}")
    if row["resolved"]:
        click.echo(f"  it was {row['resolved']}")
    for at, hint in enumerate(row["hints"]):
        click.echo(f"  {'' if at else 'next':<9} {hint}")


def letter_at(here: Session, letters: list[Letter], number: int) -> Letter:
    """The letter of a number; ends with 4 if there is none."""
    found = [each for each in letters if each.number == number]
    if not found:
        here.end("dlq.unknown", f"no dead letter {number}: `pawl dlq ls` lists them", NOT_FOUND)
    return found[0]


@command.command(help="Send a dead letter once more; its cell goes on.")
@click.argument("number", type=int)
@audited
def redrive(number: int, by: str | None, comment: str | None, **options: Any) -> None:
    """First mend what made it break."""
    here = session(options)
    with reading(here) as store:
        letter = open_at(here, store, number)
        if not is_whole(letter):
            message = f"values of letter {number} were erased: it can only be discarded"
            here.end("payload.erased", message, CONFLICT)
        original, said = original_of(letter), words(comment, here.tenant)
        resolve(here, store, letter, RedriveInput(number, original, by or person(), said))
    say(here, letter, "redriven")


@command.command(help="Throw a dead letter away; its cell goes on.")
@click.argument("number", type=int)
@audited
def discard(number: int, by: str | None, comment: str | None, **options: Any) -> None:
    """What it asked for will not happen."""
    here = session(options)
    with reading(here) as store:
        letter = open_at(here, store, number)
        said = words(comment, here.tenant)
        resolve(here, store, letter, DiscardInput(number, by or person(), said))
    say(here, letter, "discarded")


def open_at(here: Session, store: Store, number: int) -> Letter:
    """A dead letter that nobody has dealt with."""
    letters = letters_in(store, here.tenant)
    letter = letter_at(here, letters, number)
    how = resolved_in(letters).get(number)
    if how is not None:
        not_open(here, f"letter {number} was {how} already")
    if letter.disposed.kind != "dead":
        not_open(here, f"letter {number} is no dead letter: it was {letter.disposed.kind}")
    return letter


def not_open(here: Session, message: str) -> NoReturn:
    """There is nothing to decide about this one."""
    here.end("dlq.resolved", message, CONFLICT)


def resolve(here: Session, store: Store, letter: Letter, incoming: Input) -> None:
    """Hand in what was decided."""
    outcome = request(store, letter.disposed.cell, incoming)
    if isinstance(outcome, Rejected):
        refuse(here, f"letter {letter.number}", outcome)
    if not here.as_json:
        tell_if_idle(here, store, letter.disposed.cell.key)


def say(here: Session, letter: Letter, how: str) -> None:
    """What became of it."""
    if here.as_json:
        print_json({"number": letter.number, "instance": letter.disposed.cell.key, "act": how})
    else:
        click.echo(f"{letter.disposed.cell.key}: letter {letter.number} {how}")
