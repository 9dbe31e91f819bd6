"""`pawl policy`: what governs steps: the policies in force, and how they would decide."""

from typing import Any, Final, NoReturn

import click

from pawlflow import requests
from pawlflow.app import is_there, request
from pawlflow.cli.act import audited
from pawlflow.cli.documents import load_path
from pawlflow.cli.lines import clean
from pawlflow.cli.output import DENIED, NOT_FOUND, USAGE, count, find_files, note, print_json
from pawlflow.cli.session import Session, person, reading, refuse, refuse_findings, session, told
from pawlflow.cli.values import json_of
from pawlflow.definition.shape import Policy
from pawlflow.govern.cedar import set_hash
from pawlflow.govern.deciding import answer
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.system.policies import Policy as Kept
from pawlflow.policing import in_force, policies_of, shape_of
from pawlflow.projections.plain import time_told, value_of

TYPES: Final = ("User", "Agent")
GATE: Final = ("role", "quorum", "expires_ms", "not_by_requester", "on_reject", "on_expire")
SAMPLE: Final = {"workflow": "workflow", "version": 1, "step": "step", "kind": "run"}


@click.group(help="List, show, try and retire the policies that govern steps.")
def command(**_: Any) -> None:
    """The verbs are below."""


@command.command(help="List policies: the newest version of each, and whether it is in force.")
@click.option("--all", "every", is_flag=True, help="Every version.")
def ls(every: bool, **options: Any) -> None:
    """One line for each, by name."""
    here = session(options)
    with reading(here) as store:
        found = policies_of(store, here.tenant)
        names = {} if found is None else found.names
        force = [] if found is None else found.in_force()
        rows = [
            row_of(kept, in_force=kept in force)
            for name in sorted(names)
            for version, kept in sorted(names[name].items())
            if every or version == max(names[name])
        ]
        hash_ = set_hash([shape_of(each) for each in force]).hex()
    if here.as_json:
        print_json(rows)
        return
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        state = click.style("in force", fg="green") if row["in_force"] else retired(row)
        click.echo(f"{row['name']:<{width}}  v{row['version']:<4} {state}")
    if rows:
        note(f"{count(len(force), 'policy', 'policies')} in force, together {hash_[:12] or 'none'}")
    else:
        note(f"no policy of tenant {here.tenant!r}: `pawl apply -f FILE` publishes one")


def row_of(kept: Kept, *, in_force: bool) -> dict[str, Any]:
    """A version of a policy."""
    return {
        "name": kept.name,
        "version": kept.version,
        "in_force": in_force,
        "published_by": kept.by,
        "published_at": time_told(kept.at),
        "retired_by": kept.retired_by,
        "retired_at": time_told(kept.retired_at),
    }


def retired(row: dict[str, Any]) -> str:
    """Why it is not in force."""
    if row["retired_at"] is None:
        return "replaced by a newer version"
    return f"retired by {clean(row['retired_by'])} at {row['retired_at'][:16]}Z"


@command.command(help="Show a policy: its text, and who put it in force.")
@click.argument("name")
@click.option("--version", type=int, help="Which; default the newest.")
def show(name: str, version: int | None, **options: Any) -> None:
    """With its text as it was published."""
    here = session(options)
    with reading(here) as store:
        found = policies_of(store, here.tenant)
        versions = {} if found is None else found.names.get(name, {})
        kept = versions.get(version or max(versions, default=0))
        if kept is None or found is None:
            known = {} if found is None else found.names
            unknown(here, name, [f"{each} v{n}" for each in sorted(known) for n in known[each]])
        text = value_of(kept.text)
        row = row_of(kept, in_force=kept in found.in_force())
    if here.as_json:
        print_json(row | {"versions": sorted(versions), "cedar": text})
        return
    state = "in force" if row["in_force"] else retired(row)
    click.echo(f"{click.style(name, bold=True)} v{kept.version}  {state}")
    click.echo(f"  published by {clean(kept.by)} at {row['published_at'][:16]}Z\n")
    click.echo("\n".join(f"  {clean(line)}" for line in str(text).splitlines()))


def unknown(here: Session, name: str, known: list[str]) -> NoReturn:
    """There is no such policy."""
    names = ", ".join(known) or "none"
    here.end("policy.unknown", f"no policy {name!r}, or not this version; there are: {names}")


@command.command(help="Let a policy no longer be in force; a higher version may be published.")
@click.argument("name")
@audited
def retire(name: str, by: str | None, comment: str | None, **options: Any) -> None:
    """Durable when this returns."""
    here = session(options)
    with reading(here) as store:
        asked = requests.retire_policy(name, here.tenant, by or person(), comment)
        outcome = request(store, requests.policies_cell(here.tenant), asked)
        if isinstance(outcome, Rejected):
            refuse(here, f"policy {name}", outcome)
        left = [each.name for each in in_force(store, here.tenant)]
    if here.as_json:
        print_json({"name": name, "in_force": False, "left": left})
        return
    click.echo(f"{name} is retired")
    note(f"still in force: {', '.join(left)}" if left else "no policy is left: all is allowed now")


@command.command(
    help="Ask policies by hand: those of files, or without FILES those in force. "
    "Exit 0 allowed, 6 denied or to be approved."
)
@click.argument("files", nargs=-1)
@click.option("--action", required=True, metavar="A", help="Such as release:promote.")
@click.option("--resource", metavar="JSON", help="Its attributes; @FILE reads a file.")
@click.option("--principal", metavar="WHO", help="User:NAME or Agent:ROLE; default you.")
@click.option("--context", metavar="JSON", help="What else is known: params, effect, attempt ...")
def test(  # what a request consists of
    files: tuple[str, ...],
    action: str,
    resource: str | None,
    principal: str | None,
    context: str | None,
    **options: Any,
) -> None:
    """Says which rule decided."""
    here = session(options)
    kind, _, name = (principal or f"User:{person()}").rpartition(":")
    if (kind or "User") not in TYPES or not name:
        message = f"--principal {principal!r}: give User:NAME or Agent:ROLE"
        here.end("cli.usage", message, USAGE)
    given = json_of(here, context, "--context", default={})
    about = {**SAMPLE, "tenant": here.tenant, "requester": name, "params": {}}
    asked = {
        "action": action,
        "principal": {"type": kind or "User", "id": name},
        "resource": json_of(here, resource, "--resource", default={}),
        "context": about | given if isinstance(given, dict) else given,
    }
    if not isinstance(asked["context"], dict):
        here.end("cli.usage", "--context is no mapping", USAGE)
    with told(here):
        said = answer(asked, policies_in(here, files) if files else published(here))
    if here.as_json:
        gate = {"gate": dict(zip(GATE, said["gate"], strict=True))} if "gate" in said else {}
        print_json(said | gate | {"hash": said["hash"].hex()})
    else:
        colour = {"allow": "green", "deny": "red"}.get(said["decision"], "yellow")
        word = {"allow": "allowed", "deny": "denied", "approval": "to be approved"}
        mark, reason = word[said["decision"]], clean(said["reason"])
        rest = reason.removeprefix(mark)
        click.echo(click.style(mark, fg=colour) + (rest if rest != reason else f": {reason}"))
    click.get_current_context().exit(0 if said["decision"] == "allow" else DENIED)


def policies_in(here: Session, files: tuple[str, ...]) -> list[Policy]:
    """The policies of files, of each name the highest version; ends with 3 if one is not valid."""
    paths = find_files(list(files), as_json=here.as_json)
    loaded = [load_path(path, as_json=here.as_json) for path in paths]
    errors = [found for file in loaded for found in file.findings if found.severity == "error"]
    if errors:
        refuse_findings(here, errors, {file.name: file.text for file in loaded})
    every = [policy for file in loaded for policy in file.policies]
    if not every:
        message = f"no document of kind: Policy in {', '.join(files)}"
        here.end("cli.nothing", message, NOT_FOUND)
    highest = {each.name: each for each in sorted(every, key=lambda each: each.version)}
    return list(highest.values())


def published(here: Session) -> list[Policy]:
    """The policies in force; where there is no store, none are."""
    if not is_there(here.url):
        return []
    with reading(here) as store:
        return in_force(store, here.tenant)
