"""`pawl doctor`: the machine and the store, each thing checked and said in a line."""

import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib.metadata import version
from typing import Any, Final, Literal

import click
import msgspec

from pawlflow.app import examine, is_there, libraries, open_store, shown
from pawlflow.cli.effective import in_effect
from pawlflow.cli.output import CONFLICT, print_json
from pawlflow.cli.session import Session, session, told
from pawlflow.cli.typed import typed
from pawlflow.projections.alerts import alert_words, alerts_said
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
        there = looks_there(here)
    checks = [*machine(), *store_checks(here, deep=deep, there=there)]
    alerts = alerts_in(here) if there else ()
    checks += [Check("alert", "warn", alert_words(alert)) for alert in alerts]
    settings = in_effect(click.get_current_context())
    if here.as_json:
        fine = all(each.status != "fail" for each in checks)
        print_json({"ok": fine, "checks": checks, "alerts": alerts, "settings": settings})
    else:
        for each in checks:
            mark = click.style(f"{each.status:<4}", fg=COLORS[each.status])
            click.echo(f"{mark}  {each.name:<10} {typed(each.detail)}")
        click.echo("\n".join(["", "settings", *map(setting_line, settings)]))
    sys.exit(CONFLICT if any(each.status == "fail" for each in checks) else 0)


def setting_line(setting: dict[str, Any]) -> str:
    """One setting, and where it comes from."""
    value = setting["value"]
    plain = "-" if value is None else str(value).lower() if isinstance(value, bool) else value
    source = f"{setting['source']} {setting['where']}".rstrip()
    return f"      {setting['name']:<13} {plain}  ({source})"


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


def looks_there(here: Session) -> bool:
    """Is there a store? One that cannot be asked is there, and will say what is wrong with it."""
    try:
        return is_there(here.url)
    except StoreError as error:
        if error.code in ("store.url", "store.driver"):
            raise
        return True


def store_checks(here: Session, *, deep: bool, there: bool) -> Iterator[Check]:
    """The store, and what is in it."""
    if not there:
        where = shown(here.url).removeprefix("sqlite:///")
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
    if found["kind"] == "postgres":
        yield from server_checks(found)
        return
    yield limit_check("log", found["wal"], found["wal"] <= WAL_MAX, "a reader holds it up")
    yield limit_check("disk", found["free"], found["free"] >= FREE_MIN, "free some space")


def server_checks(found: dict[str, Any]) -> Iterator[Check]:
    """How a server keeps what it is given."""
    risky = [name for name in ("fsync", "full_page_writes") if found[name] == "off"]
    detail = f"PostgreSQL {found['server']}, database {found['database']}, {found['schema']}"
    yield Check("server", "ok", detail)
    if risky:
        words = f"{', '.join(risky)} is off: a crash of the machine may lose what was acknowledged"
        yield Check("flushing", "warn", words)
    else:
        yield Check("flushing", "ok", "every commit is flushed")
    if found["replicas"] and not found["synchronous_standby_names"]:
        words = "commits wait for none of them: a failover may lose what was acknowledged"
        yield Check("replicas", "warn", f"{found['replicas']}; {words}")
    elif found["replicas"]:
        yield Check("replicas", "ok", f"{found['replicas']}, and commits wait")


def alerts_in(here: Session) -> Sequence[dict[str, Any]]:
    """What the engine said last that somebody should act on."""
    try:
        with closing(open_store(here.url)) as store:
            return alerts_said(store, here.tenant).alerts
    except StoreError:
        return ()  # the checks say what is wrong with it


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
