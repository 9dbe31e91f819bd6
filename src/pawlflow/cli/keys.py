"""`pawl keys`: the keys by which executors sign what they tell."""

import os
from contextlib import closing
from typing import Any

import click

from pawlflow.app import open_store, request
from pawlflow.cli.act import BY
from pawlflow.cli.output import NOT_FOUND, USAGE, count, note, print_json
from pawlflow.cli.session import Session, person, reading, refuse, session, told
from pawlflow.kernel.draft import Rejected
from pawlflow.services.keys import Keys, Registered, keys_cell, registration
from pawlflow.services.signing import KEY_BYTES, new_pair
from pawlflow.store.port import Store


@click.group(help="Create, list and revoke keys of executors.")
def command(**_: Any) -> None:
    """The verbs are below."""


@command.command(help="Make a key. Its private half is printed once, and kept nowhere.")
@click.option("--executor", is_flag=True, help="For an executor, to sign completions with.")
@click.option("--comment", metavar="TEXT", default="", help="Whose it is.")
@BY
def create(executor: bool, comment: str, by: str | None, **options: Any) -> None:
    """The public half goes into the journal of the tenant; engines that run know it at once."""
    here = session(options)
    if not executor:
        here.end("cli.not_yet", "only keys of executors can be made yet: --executor", USAGE)
    with told(here):
        private, public = new_pair(os.urandom(KEY_BYTES))
        made = Registered(id=f"exec-{public[:12]}", public=public, comment=comment)
        with closing(open_store(here.url)) as store:
            register(here, store, made, by)
    if here.as_json:
        print_json({"id": made.id, "key": private, "public": public, "tenant": here.tenant})
        return
    click.echo(f"{made.id}: registered for tenant {here.tenant}; public half {public}")
    click.echo(f"PAWL_EXECUTOR_KEY={made.id}:{private}")
    note("the second line is the private half: it is shown this once")


@command.command(help="List the keys of the tenant.")
def ls(**options: Any) -> None:
    """Revoked ones stay in the list."""
    here = session(options)
    with reading(here) as store:
        found = list(Keys(store).of(here.tenant).values())
    if here.as_json:
        print_json([{"kind": "executor", **told_of(each)} for each in found])
        return
    for each in found:
        state = "revoked" if each.revoked else "valid"
        click.echo(f"{each.id}  executor  {state}  {each.public}  {each.comment}".rstrip())
    note(count(len(found), "key"))


@command.command(help="A key counts no longer; what it signed before stays.")
@click.argument("key_id", metavar="ID")
@BY
def revoke(key_id: str, by: str | None, **options: Any) -> None:
    """For good: make another one."""
    here = session(options)
    with reading(here) as store:
        if key_id not in Keys(store).of(here.tenant):
            message = f"tenant {here.tenant} has no key {key_id!r}: `pawl keys ls` lists them"
            here.end("keys.unknown", message, NOT_FOUND)
        register(here, store, Registered(id=key_id, revoked=True), by)
    if here.as_json:
        print_json({"id": key_id, "revoked": True})
    else:
        click.echo(f"{key_id}: revoked")


def register(here: Session, store: Store, said: Registered, by: str | None) -> None:
    """Put it on the record; durable when this returns."""
    incoming = registration(said, here.tenant, by or person())
    outcome = request(store, keys_cell(here.tenant), incoming)
    if isinstance(outcome, Rejected):
        refuse(here, f"key {said.id}", outcome)


def told_of(key: Registered) -> dict[str, Any]:
    """A key as --json has it."""
    return {
        "id": key.id,
        "public": key.public,
        "comment": key.comment,
        "revoked": key.revoked,
    }
