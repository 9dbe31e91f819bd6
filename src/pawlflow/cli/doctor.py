"""`pawl doctor`: the machine and the store, each thing checked and said in a line."""

import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import click

from pawlflow.app import examine, is_there, libraries, open_store, shown
from pawlflow.cli.doctor_servers import Check, bus_checks, library, owner_words, server_checks
from pawlflow.cli.effective import in_effect
from pawlflow.cli.output import CONFLICT, UNREACHABLE, print_json, sized
from pawlflow.cli.session import Session, session, told
from pawlflow.cli.typed import typed
from pawlflow.policing import unread_policies
from pawlflow.projections.alerts import alert_words, alerts_said
from pawlflow.store.marks import refused
from pawlflow.store.port import StoreError

PYTHON_MIN: Final = (3, 11)
SQLITE_MIN: Final = (3, 51, 3)  # older ones may lose a commit at a WAL reset (sqlite.org/wal.html)
FREE_MIN: Final = 1 << 30  # bytes; a busy store writes that much in minutes
WAL_MAX: Final = 1 << 28  # bytes; beyond, some reader keeps the log from being emptied
COLORS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}
AWAY: Final = ("store.unreachable", "nats.unreachable")
MOUNTS: Final = Path("/proc/mounts")
FAR: Final = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "glusterfs", "sshfs")


@click.command(help="Check the machine, the store and NATS; exit 5 if unsafe, 69 if unreachable.")
@click.option("--deep", is_flag=True, help="Read every page and every frame.")
@click.option(
    "--nats", envvar="PAWL_NATS", metavar="URL", help="A NATS server, too.", show_envvar=True
)
def command(deep: bool, nats: str | None, **options: Any) -> None:
    """A line for each check: ok, warn or fail."""
    here = session(options)
    with told(here):
        there = looks_there(here)
    checks = [*machine(), *store_checks(here, deep=deep, there=there)]
    alerts = alerts_in(here) if there else ()
    checks += [Check("alert", "warn", alert_words(alert)) for alert in alerts]
    checks += bus_checks(nats) if nats else ()
    settings = in_effect(click.get_current_context())
    if here.as_json:
        fine = all(each.status != "fail" for each in checks)
        print_json({"ok": fine, "checks": checks, "alerts": alerts, "settings": settings})
    else:
        for each in checks:
            mark = click.style(f"{each.status:<4}", fg=COLORS[each.status])
            click.echo(f"{mark}  {each.name:<10} {typed(each.detail)}")
        click.echo("\n".join(["", "settings", *map(setting_line, settings)]))
    sys.exit(exit_code(checks))


def exit_code(checks: Sequence[Check]) -> int:
    """Unsafe before unreachable; warnings are no failure."""
    failed = [each for each in checks if each.status == "fail"]
    if not failed:
        return 0
    return UNREACHABLE if all(each.code in AWAY for each in failed) else CONFLICT


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
        yield Check("store", "fail", f"{error} [{error.code}]", error.code)
        return
    size = sized(found["size"])
    yield Check("store", "ok", f"{found['path']}, version {found['version']}, {size}")
    if found["move"] is not None:
        moved = refused(found["path"], found["move"])
        yield Check("move", "warn", f"{moved} [{moved.code}]", moved.code)
    yield Check("owner", "ok", owner_words(found))
    yield from policy_check(here)
    yield damage_check("pages", found["damage"], "all pages fit together")
    yield damage_check("journals", found["ends"], "every journal ends where its head says")
    if found["kind"] == "postgres":
        yield library("psycopg")
        yield from server_checks(found)
        return
    yield from far_check(Path(found["path"]))
    yield limit_check("log", found["wal"], found["wal"] <= WAL_MAX, "a reader holds it up")
    yield limit_check("disk", found["free"], found["free"] >= FREE_MIN, "free some space")


def far_check(path: Path) -> Iterator[Check]:
    """A file on another machine: locks and shared memory do not reach that far."""
    try:
        lines = [line.split() for line in MOUNTS.read_text().splitlines()]
    except OSError:
        return
    above = [path, *path.parents]
    mounts = [(Path(line[1]), line[2]) for line in lines if Path(line[1]) in above]
    if not mounts:
        return
    kind = max(mounts, key=lambda each: len(each[0].parts))[1].removeprefix("fuse.")
    if kind in FAR:
        words = "SQLite needs a local disk: move the file to one, or the store to PostgreSQL"
        yield Check("filesystem", "fail", f"{path} is on {kind}: {words}")


def alerts_in(here: Session) -> Sequence[dict[str, Any]]:
    """What the engine said last that somebody should act on."""
    try:
        with closing(open_store(here.url)) as store:
            return alerts_said(store, here.tenant).alerts
    except StoreError:
        return ()  # the checks say what is wrong with it


def policy_check(here: Session) -> Iterator[Check]:
    """Policies in force, and whether anybody here can read them."""
    try:
        with closing(open_store(here.url)) as store:
            governed = unread_policies(store, here.tenant)
    except StoreError:
        return  # the checks say what is wrong with it
    if governed:
        yield Check("policies", "fail", governed, "policy.cedar_missing")


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
