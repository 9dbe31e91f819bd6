"""A verb's session: which store, whose instances, and how it ends when something is wrong."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from getpass import getuser
from typing import Any, Final, NoReturn

import msgspec

from pawlflow.app import DEFAULT_URL, is_there, open_store, shown
from pawlflow.cli.output import (
    CONFLICT,
    INVALID,
    NOT_FOUND,
    TRY_AGAIN,
    UNREACHABLE,
    USAGE,
    fail,
    print_findings,
    print_json,
    setting,
)
from pawlflow.definition.finding import Finding
from pawlflow.errors import cause_of
from pawlflow.kernel.draft import Rejected
from pawlflow.model.codec import CodecError
from pawlflow.model.ids import InstanceId, Tenant
from pawlflow.model.payload import PayloadError
from pawlflow.projections.reading import UnknownInstanceError
from pawlflow.projections.removed import RemovedInstanceError, absent
from pawlflow.projections.story import NoSuchTurnError
from pawlflow.requests import BadRequestError, tenant_name
from pawlflow.store.port import Filter, Head, Store, StoreError
from pawlflow.trouble import BUSY, RETRY_AFTER_S, NoExecutor, PawlError

CLOSED: Final = ("completed", "failed", "cancelled")
CLOSE_MAX: Final = 1_000  # ids looked through for one that was meant

# What is neither refused nor broken; all other codes end with 5.
EXITS: Final = {
    **dict.fromkeys(("instance.id", "store.url", "tenant.bad", "event.name"), USAGE),
    **dict.fromkeys(("store.driver", "http.client", "receipt.key", "receipt.class"), USAGE),
    **dict.fromkeys(("http.endpoint", "http.refused"), INVALID),
    **dict.fromkeys(("nats.driver", "keys.form", "views.no_sql", "move.same"), USAGE),
    "nats.unreachable": UNREACHABLE,
    **dict.fromkeys(("time.bad", "schedule.name"), USAGE),
    **dict.fromkeys(("where.invalid", "where.unknown", "where.unindexed"), USAGE),
    "effect.no_executor": INVALID,
    **dict.fromkeys(
        (
            *("instance.unknown", "workflow.unknown", "definition.unknown", "turn.unknown"),
            *("review.unknown", "batch.unknown", "schedule.unknown", "step.unknown"),
            *(
                "policy.unknown",
                "receipt.unknown",
                "keys.unknown",
                "views.missing",
                "instance.removed",
            ),
        ),
        NOT_FOUND,
    ),
    **dict.fromkeys(
        ("store.busy", "store.full", "engine.overloaded", "shard.elsewhere"), TRY_AGAIN
    ),
    "store.unreachable": UNREACHABLE,
}


class Session(msgspec.Struct, frozen=True):
    """What the global options say."""

    url: str
    tenant: Tenant
    as_json: bool

    def end(self, code: str, message: str, exit_code: int | None = None) -> NoReturn:
        """End with an error, by its code."""
        found = EXITS.get(code, CONFLICT) if exit_code is None else exit_code
        fail(code, message, exit_code=found, as_json=self.as_json)


def session(options: Mapping[str, Any]) -> Session:
    """The session of a verb, from its global options."""
    as_json = bool(setting("as_json", options.get("as_json")))
    if setting("url", options.get("url")):
        message = "there is no server in this version: use --db, and leave --url and PAWL_URL out"
        fail("cli.not_yet", message, exit_code=USAGE, as_json=as_json)
    url = setting("db", options.get("db")) or DEFAULT_URL
    tenant = setting("tenant", options.get("tenant")) or "default"
    try:
        return Session(url, tenant_name(tenant), as_json)
    except BadRequestError as error:
        fail(error.code, str(error), exit_code=USAGE, as_json=as_json)


@contextmanager
def told(here: Session) -> Iterator[None]:
    """Whatever goes wrong inside ends the verb, with its code and the way out."""
    try:
        yield
    except NoExecutor as error:
        names = ", ".join(error.effects)
        why = f" ({error.reason})" if error.reason else ""
        ways = "give --worker MODULE, --endpoints FILE, or --stubs FILE"
        message = f"nothing here carries out {names}{why}: {ways}"
        here.end(error.code, message)
    except (StoreError, PawlError, BadRequestError) as error:
        here.end(error.code, str(error))
    except (UnknownInstanceError, NoSuchTurnError) as error:
        here.end(error.code, str(error))
    except (PayloadError, CodecError) as error:
        here.end(error.code, str(error), USAGE)


@contextmanager
def reading(here: Session) -> Iterator[Store]:
    """A store that exists, to look at or to post to. Nothing is made."""
    with told(here):
        if not is_there(here.url):
            where = shown(here.url).removeprefix("sqlite:///")
            message = (
                f"there is no store at {where}: `pawl start`, `run`, `apply` and `serve` "
                "make one; --db or PAWL_DB names another"
            )
            here.end("store.missing", message, NOT_FOUND)
        store = open_store(here.url)
        try:
            yield store
        finally:
            store.close()


def head_of(here: Session, store: Store, key: str) -> Head:
    """What may be asked of an instance at once; ends with 4 if there is none."""
    address = (here.tenant, InstanceId(key))
    image = store.load([address]).get(address)
    if image is None or key.startswith("$"):
        unknown_instance(here, store, key)
    return image.head


def unknown_instance(here: Session, store: Store, key: str) -> NoReturn:
    """There is no such instance: it was removed, or name those that may have been meant."""
    why = absent(store, here.tenant, key)
    if isinstance(why, RemovedInstanceError):
        here.end(why.code, str(why))
    known = store.instances(Filter(tenant=here.tenant, limit=CLOSE_MAX))
    ids = [head.cell.key for head in known]
    close = get_close_matches(key, ids, n=3) or [each for each in ids if each.startswith(key)][:3]
    hint = f"did you mean {' or '.join(close)}?" if close else "`pawl ls` lists them"
    message = f"no instance {key!r} of tenant {here.tenant!r} in {shown(here.url)}: {hint}"
    here.end("instance.unknown", message)


def unknown_workflow(here: Session, store: Store, name: str) -> NoReturn:
    """No workflow of this name was published: name those that were."""
    known = sorted({each.name for each in store.published(here.tenant)})
    close = get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"known are: {', '.join(known)}"
    if not known:
        hint = "none was published yet: name a file, or publish one with `pawl apply -f FILE`"
    here.end("workflow.unknown", f"no workflow {name!r}: {hint}")


def refuse(here: Session, what: str, refused: Rejected, way: str = "") -> NoReturn:
    """The engine said no: end with what was asked, and why not."""
    here.end(refused.code, refusal_told(what, refused, way))


def refusal_told(what: str, refused: Rejected, way: str = "") -> str:
    """What was asked, why it was refused, about what unless that is clear, and a way."""
    clear = refused.detail in ("", *what.split()) or what.endswith(f" {refused.detail}")
    detail = "" if clear else f" ({refused.detail})"
    way = way or (f"try again in {RETRY_AFTER_S} s" if refused.code in BUSY else "")
    hint = f"; {way}" if way else ""
    return f"{what} was refused: {cause_of(refused.code)}{detail}{hint}"


def refuse_findings(here: Session, findings: list[Finding], sources: dict[str, str]) -> NoReturn:
    """A file is not valid: every finding with its place, exit 3."""
    if here.as_json:
        first = findings[0]
        place = f"{first.file}:{first.line}:{first.column}"
        error = {"code": first.code, "message": f"{place}: {first.message}", "findings": findings}
        print_json({"error": error})
    else:
        print_findings(findings, sources)
    sys.exit(INVALID)


def person() -> str:
    """Who is at the keyboard, as the system knows them."""
    try:
        return getuser()
    except (KeyError, OSError):  # a container may have a user without a name
        return "cli"
