"""`pawl doctor`: the machine and the store, each thing checked and said in a line."""

import platform
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal

import click
import msgspec

from pawlflow.app import examine, libraries, path_of
from pawlflow.cli.output import CONFLICT, print_json
from pawlflow.cli.session import Session, session, told
from pawlflow.store.port import StoreError

PYTHON_MIN: Final = (3, 11)
SQLITE_MIN: Final = (3, 51, 3)  # older ones may lose a commit at a WAL reset (sqlite.org/wal.html)
FREE_MIN: Final = 1 << 30  # bytes; a busy store writes that much in minutes
WAL_MAX: Final = 1 << 28  # bytes; beyond, some reader keeps the log from being emptied
COLORS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}
UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: str


@click.command(help="Check the machine and the store; exit 5 if something is wrong.")
@click.option("--deep", is_flag=True, help="Read every page and every frame.")
def command(deep: bool, **options: Any) -> None:
    """A line for each check: ok, warn or fail."""
    here = session(options)
    with told(here):
        path = path_of(here.url)
    checks = [*machine(), *store_checks(here, path, deep=deep)]
    if here.as_json:
        print_json({"ok": all(each.status != "fail" for each in checks), "checks": checks})
    else:
        for each in checks:
            mark = click.style(f"{each.status:<4}", fg=COLORS[each.status])
            click.echo(f"{mark}  {each.name:<10} {each.detail}")
    sys.exit(CONFLICT if any(each.status == "fail" for each in checks) else 0)


def machine() -> Iterator[Check]:
    """Python and the libraries."""
    new_enough = sys.version_info >= PYTHON_MIN
    yield Check("python", "ok" if new_enough else "fail", platform.python_version())
    yield Check("pawlflow", "ok", version("pawlflow"))
    found = libraries()
    sqlite = tuple(map(int, found["sqlite"].split(".")))
    detail = f"SQLite {found['sqlite']}, apsw {found['apsw']}"
    if sqlite < SQLITE_MIN:
        wanted = ".".join(map(str, SQLITE_MIN))
        yield Check("sqlite", "warn", f"{detail}; {wanted} is safer: upgrade apsw")
    else:
        yield Check("sqlite", "ok", detail)


def store_checks(here: Session, path: Path | None, *, deep: bool) -> Iterator[Check]:
    """The file, and what is in it."""
    if path is None or not path.exists():
        where = here.url if path is None else path
        yield Check("store", "warn", f"nothing is at {where} yet: `pawl start` makes it")
        return
    try:
        found = examine(here.url, deep=deep)
    except StoreError as error:
        yield Check("store", "fail", f"{error} [{error.code}]")
        return
    size = sized(found["size"])
    yield Check("store", "ok", f"{found['path']}, version {found['version']}, {size}")
    owner = "nobody drives it now" if found["owner"] is None else f"process {found['owner']}"
    yield Check("owner", "ok", owner)
    yield damage_check("pages", found["damage"], "all pages fit together")
    yield damage_check("journals", found["ends"], "every journal ends where its head says")
    yield limit_check("log", found["wal"], found["wal"] <= WAL_MAX, "a reader holds it up")
    yield limit_check("disk", found["free"], found["free"] >= FREE_MIN, "free some space")


def damage_check(name: str, found: list[str], fine: str) -> Check:
    """What is damaged, if anything."""
    if not found:
        return Check(name, "ok", fine)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return Check(name, "fail", f"{found[0]}{more}; `pawl restore` brings a backup back")


def limit_check(name: str, size: int, fine: bool, way_out: str) -> Check:
    """A size that should stay within its limit."""
    word = {"log": "the log beside it has", "disk": "free on its disk:"}[name]
    detail = f"{word} {sized(size)}"
    return Check(name, "ok" if fine else "warn", detail if fine else f"{detail}: {way_out}")


def sized(count: int) -> str:
    """A number of bytes, by the unit that suits it."""
    amount = float(count)
    for unit in UNITS:
        if amount < 1024 or unit == UNITS[-1]:
            return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.1f} {unit}"
        amount /= 1024
    return f"{count:,} bytes"
