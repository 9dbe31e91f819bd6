"""`pawl signal`, `cancel` and the others that act: each is one input, committed and audited.

They work from a second terminal: the owner of the store takes them from its mailbox, and where
there is none they commit by themselves and let go.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Literal, TypeVar

import click
from msgspec.structs import replace

from pawlflow import requests
from pawlflow.app import owned_elsewhere, request
from pawlflow.batches import Operation
from pawlflow.cli.choosing import choosing
from pawlflow.cli.many import act_on_many, one_of, two_of
from pawlflow.cli.output import USAGE, note, print_json, undriven, waiting_limit
from pawlflow.cli.session import Session, person, reading, refuse, session, unknown_instance
from pawlflow.cli.values import json_of
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import ROLE_NAME, InstanceId
from pawlflow.model.inputs import Input
from pawlflow.store.port import Store

F = TypeVar("F", bound=Callable[..., Any])
BY: Final = click.option("--by", help="Who acts; default the user of this terminal.")
COMMENT: Final = click.option("--comment", metavar="TEXT", help="Why; kept with the act.")
DATA: Final = click.option("--data", metavar="JSON|@FILE", help="What the event says.")


ACTING: Final = click.option(
    *("--role", "acting"),
    metavar="ROLE",
    help="In which role; an escalation ladder may ask for one.",
)


def acting_in(here: Session, options: Mapping[str, Any], *, many: bool = False) -> str | None:
    """The role somebody acts in, if they say so; a rule of one review says nothing of many."""
    role: str | None = options.get("acting")
    check_role(here, role)
    if many and role is not None:
        here.end("cli.usage", "--role goes with one instance, not with --where", USAGE)
    return role


def audited(command: F) -> F:
    """Every act says who and why."""
    return BY(COMMENT(command))


def act(here: Session, key: str, what: str, make: Callable[[], Input]) -> None:
    """Make an input, hand it to an instance, and say that it was taken."""
    with reading(here) as store:
        hand_in(here, store, key, what, make())
        if here.as_json:
            print_json({"id": key, "act": what, "accepted": True})
            return
        click.echo(f"{key}: {what} accepted")
        tell_if_idle(here, store, key)


def hand_in(here: Session, store: Store, key: str, what: str, incoming: Input) -> None:
    """Durable when this returns; ends with 5 if it was refused, with 4 if nobody is there."""
    outcome = request(store, requests.instance_cell(here.tenant, key), incoming)
    if isinstance(outcome, Rejected):
        if outcome.code == "instance.unknown":
            unknown_instance(here, store, key)
        refuse(here, f"{what} of {key}", outcome)


def tell_if_idle(here: Session, store: Store, key: str) -> None:
    """Where nobody drives the store, what was asked for is committed, and waits."""
    address = (here.tenant, InstanceId(key))
    image = store.load([address]).get(address)
    if image is not None and image.head.closed_at is None and not owned_elsewhere(store):
        note(undriven(key))


@click.command(help="Tell one instance, or many; kept until a wait matches it.")
@click.argument("key", metavar="ID", required=False)
@click.argument("event", required=False)
@DATA
@choosing
@audited
def signal(  # the words of a verb
    key: str | None,
    event: str | None,
    data: str | None,
    by: str | None,
    comment: str | None,
    **options: Any,
) -> None:
    """The data is what `match` and the wait's result see. With --where, EVENT stands alone."""
    here = session(options)
    one, named = two_of(here, "signal", (key, event), options)
    value = json_of(here, data, "--data", default={})
    check_event(here, named)
    who = by or person()
    if one is None:
        asked = Operation(verb="signal", by=who, comment=comment, event=named, given=value)
        act_on_many(here, options, asked)
        return
    note_comment(comment)
    act(here, one, f"signal {named}", partial(requests.signal, named, value, here.tenant, who))


@click.command(help="Tell everybody who waits for, or is started by, an event.")
@click.argument("event")
@DATA
@audited
def emit(event: str, data: str | None, by: str | None, comment: str | None, **options: Any) -> None:
    """It reaches the waits that are open now, and is not kept for later ones."""
    here = session(options)
    value = json_of(here, data, "--data", default={})
    check_event(here, event)
    note_comment(comment)
    with reading(here) as store:
        incoming = requests.emit(event, value, here.tenant, by or person())
        outcome = request(
            store,
            requests.topic_cell(here.tenant, event),
            incoming,
            waiting_max=waiting_limit(),
        )
    if isinstance(outcome, Rejected):
        refuse(here, f"event {event}", outcome)
    if here.as_json:
        print_json({"event": event, "accepted": True})
    else:
        click.echo(f"{event}: accepted")


def check_event(here: Session, event: str) -> None:
    """An event has a name like an effect has."""
    try:
        requests.event_name(event)
    except requests.BadRequestError as error:
        here.end(error.code, str(error))


def note_comment(comment: str | None) -> None:
    """Signals and events carry data; the journal has no place for words about them."""
    if comment is not None:
        note("a comment on an event is not kept: put it into --data")


Steering = Literal["cancel", "pause", "unpause"]


def steering(verb: Steering, words: str) -> click.Command:
    """A verb that stops an instance, holds it back, or lets it go on."""

    @click.command(verb, help=words)
    @click.argument("key", metavar="ID", required=False)
    @choosing
    @audited
    def command(key: str | None, by: str | None, comment: str | None, **options: Any) -> None:
        here = session(options)
        one, who = one_of(here, verb, key, options), by or person()
        role = acting_in(here, options, many=one is None)
        if one is None:
            act_on_many(here, options, Operation(verb=verb, by=who, comment=comment))
            return
        said: Any = {"by": who, "comment": comment, "acting": role}
        act(here, one, verb, partial(requests.steer, verb, here.tenant, **said))

    return command


cancel = ACTING(
    steering("cancel", "Stop instances; under failurePolicy compensate their work is undone.")
)
pause = steering("pause", "Start nothing new in instances; what runs goes on.")
unpause = steering("unpause", "Let paused instances go on.")


@click.command(help="Let an escalated step go on, with fresh retries; with --where, of many.")
@click.argument("key", metavar="ID", required=False)
@click.argument("step", required=False)
@choosing
@ACTING
@audited
def resume(
    key: str | None, step: str | None, by: str | None, comment: str | None, **options: Any
) -> None:
    """On an expired gate it asks again. With --where, without STEP: all that are escalated."""
    here = session(options)
    go_on(here, Operation(verb="resume", by=by or person(), comment=comment), (key, step), options)


def go_on(
    here: Session,
    asked: Operation,
    words: tuple[str | None, str | None],
    options: Mapping[str, Any],
) -> None:
    """Resume or retry one step of one instance, or steps of many."""
    one, step = two_of(here, asked.verb, words, options)
    role = acting_in(here, options, many=one is None)
    if one is None:
        act_on_many(here, options, replace(asked, step=step))
        return
    if not step:
        here.end("cli.usage", f"{asked.verb} takes an ID and a STEP", USAGE)
    verb: Any = asked.verb
    said = {"by": asked.by, "params": asked.given, "comment": asked.comment, "acting": role}
    act(here, one, f"{verb} {step}", partial(requests.resume, verb, step, here.tenant, **said))


@click.command(help="Give an escalated step to another role.")
@click.argument("key", metavar="ID")
@click.argument("step")
@click.option("--to", "role", required=True, metavar="ROLE", help="The role it goes to.")
@ACTING
@audited
def reassign(
    key: str, step: str, role: str, by: str | None, comment: str | None, **options: Any
) -> None:
    """An agent's task or a gate, for somebody else to do."""
    here = session(options)
    check_role(here, role)
    acting = acting_in(here, options)
    said: Any = {"by": by or person(), "role": role, "comment": comment, "acting": acting}
    made = partial(requests.resume, "reassign", step, here.tenant, **said)
    act(here, key, f"reassign {step} to {role}", made)


def check_role(here: Session, role: str | None) -> None:
    """A role has a name."""
    if role is not None and not ROLE_NAME.match(role):
        message = f"{role!r} is no role: a letter, then letters, digits, . _ or -"
        here.end("cli.usage", message, USAGE)


@click.command(help="Try an escalated step again, with another input if one is given.")
@click.argument("key", metavar="ID", required=False)
@click.argument("step", required=False)
@click.option("--with", "given", metavar="JSON|@FILE", help="The step's input instead of its own.")
@choosing
@ACTING
@audited
def retry(  # the words of a verb
    key: str | None,
    step: str | None,
    given: str | None,
    by: str | None,
    comment: str | None,
    **options: Any,
) -> None:
    """Retries begin anew. With --where, without STEP: all that are escalated."""
    here = session(options)
    params = json_of(here, given, "--with", default=requests.NOT_GIVEN)
    asked = Operation(verb="retry", by=by or person(), comment=comment, given=params)
    go_on(here, asked, (key, step), options)
