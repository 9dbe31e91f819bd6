"""What PostgreSQL's errors mean to an operator: one code each, and the way out."""

from typing import Final

import psycopg

from pawlflow.store.check import wrong
from pawlflow.store.marks import mark_from, refused
from pawlflow.store.port import StoreConflictError, StoreError, StoreFullError, StoreUnknownError
from pawlflow.store.postgres_url import Where, scrubbed

FENCED: Final = "PW001"
UNFIT: Final = "PW002"
MOVED: Final = "PW003"
AGAIN: Final = ("40001", "40P01")  # two transactions met, and one gave way: nothing was written
READ_ONLY: Final = "25006"  # a standby: the one that writes is elsewhere now
FULL: Final = "53100"
NO_CONNECTION: Final = "53300"
RIGHTS: Final = ("42501", "28000", "28P01")
NO_TABLE: Final = ("42P01", "3F000", "42883")
DAMAGED: Final = ("XX001", "XX002")


def told(trouble: psycopg.Error, where: Where, place: str) -> StoreError:
    """An error of PostgreSQL in the words of the port; `place` says what was being done."""
    state, words = trouble.sqlstate or "", scrubbed(trouble, where)
    if state == FENCED:
        return StoreConflictError(
            [int(each) for each in (trouble.diag.message_detail or "").split(",")]
        )
    if state == MOVED:
        mark = mark_from(trouble.diag.message_detail)
        assert mark is not None
        return refused(where.told, mark)
    if state == UNFIT:
        return wrong(trouble.diag.message_primary or words)
    if state == FULL:
        return StoreFullError(
            "store.full",
            f"{where.told} has no room for more, {place}; nothing was written, nothing is lost: "
            "free space on the disk of the server, and go on",
        )
    if state.startswith("23") or state in ("22021", "22P05"):
        return wrong(f"{trouble.diag.message_primary or words}, {place}")
    if state in RIGHTS:
        return no_rights(where, f"{place}: {words}")
    if state in (*NO_TABLE, *DAMAGED):
        return odd(where, place, words)
    if state.startswith(("53", "55", "57014")):
        return StoreError(
            "store.busy", f"{where.told} has too much to do, {place}: {words}: try again"
        )
    if state in ("58030", "58P01"):
        return StoreError(
            "store.io",
            f"the disk of {where.told} failed, {place}: {words}; nothing was written: look at the "
            "disk of the server and at its log",
        )
    return StoreError("store.trouble", f"{where.told} cannot be used, {place}: {state} {words}")


def odd(where: Where, place: str, what: object) -> StoreError:
    """Something in the database is not as we write it."""
    return StoreError(
        "store.damaged",
        f"{where.told} is damaged, reading {place}: {what}; `pawl doctor` lists the damage; "
        "bring a backup back with the tools of PostgreSQL",
    )


def unknown(trouble: Exception, where: Where, place: str) -> StoreUnknownError:
    """The connection was lost after a write was sent, and before its answer came."""
    return StoreUnknownError(
        "store.unknown",
        f"the connection to {where.told} was lost, {place}: {scrubbed(trouble, where)}; it is not "
        "known whether it is durable: read the heads again",
    )


def unreachable(trouble: Exception | None, where: Where) -> StoreError:
    """There is no server that would take a connection."""
    return StoreError(
        "store.unreachable",
        f"{where.told} cannot be reached: {scrubbed(trouble, where)}; nothing was written: look "
        "whether the server runs, and at host, port, user and database of the URL",
    )


def no_rights(where: Where, what: str) -> StoreError:
    """The role of the URL may not do this."""
    return StoreError(
        "store.rights",
        f"{where.told} does not allow this, {what}; let the role create the schema "
        f"{where.schema!r} or own it: see docs/postgres.md",
    )


def not_ours(where: Where, what: str) -> StoreError:
    """The schema is somebody else's; it was not touched."""
    return StoreError(
        "store.not_ours",
        f"the schema {where.schema!r} of {where.told} {what}, not a store of pawlflow; it was left "
        "as it is: name another with the option schema",
    )


def newer(where: Where, found: int, known: int) -> StoreError:
    """The database was written by a later version of pawlflow."""
    return StoreError(
        "store.newer",
        f"{where.told} has version {found}, and this pawlflow knows versions up to {known}: "
        "upgrade pawlflow",
    )


def owned(where: Where, holder: str) -> StoreError:
    """Somebody else owns the store, and is alive."""
    return StoreError(
        "store.owned",
        f"{where.told} is owned by process {holder}: stop that one first, or work through it "
        "(reading and posting need no ownership)",
    )


def closed() -> StoreError:
    """It was closed."""
    return StoreError("store.closed", "this store is closed: open it again")
