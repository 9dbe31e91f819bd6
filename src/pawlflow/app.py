"""The composition root: the one place that names adapters.

It opens stores by URL, puts an engine on one, and gives the two doors in: through the engine of
this process, or, where another process owns the store, through the mailbox.
"""

import logging
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, cast, runtime_checkable

import apsw

from pawlflow.bus.port import Bus, BusError
from pawlflow.engine.actions import Accepted, Notify, Publish, Stopped
from pawlflow.engine.clock import Clock, SystemClock
from pawlflow.engine.drivers import SAFETY_MS, Engine, Outside
from pawlflow.engine.shard import Limits, Shards
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import CellId, InstanceId, TimeMs
from pawlflow.model.inputs import Input
from pawlflow.shedding import WAITING_MAX, letter, turned_away
from pawlflow.store.memory import MemoryStore
from pawlflow.store.poke import Pokes
from pawlflow.store.port import SHARDS, Mail, ShardHead, Store, StoreError, Taken
from pawlflow.store.postgres_url import is_postgres, masked
from pawlflow.store.sqlite import SqliteStore
from pawlflow.store.sqlite_backup import backup, restore
from pawlflow.store.sqlite_views import SqliteReadModels
from pawlflow.store.views import ReadModels
from pawlflow.telling import ToldOutside, listened_to, told_store

log = logging.getLogger("pawl.app")
NEVER: Final = TimeMs(1 << 60)
DEFAULT_URL: Final = "sqlite:///.pawl/pawl.db"
ANSWER_S_MAX: Final = 10.0  # for another process to take a request
UNHEARD_S_MAX: Final = 40.0  # the same, if it cannot be poked: it looks every 30 s by itself
LOOK_S: Final = (0.001, 0.05)  # between two looks at the answer: first, and at most
LOOK_MS: Final = 1_000  # between two looks of an owner on a server that it cannot hear
DRIVE_S: Final = 0.2  # of work as the owner between two looks at how far it is, at least
DRIVE_SHARE: Final = 10  # and so many times as long as a look takes
DRIVERS: Final = ("inline", "thread")


class UrlError(StoreError):
    """A URL that names no store this version knows."""


class Poked(Protocol):
    """Where an owner hears that there is mail."""

    def fileno(self) -> int:
        """What an event loop waits for."""
        ...

    def drain(self) -> int:
        """Forget the pokes that came."""
        ...

    def close(self) -> None:
        """Listen no longer."""
        ...


@runtime_checkable
class NetworkStore(Protocol):
    """A store on a server: what it offers beside the port. Only a URL loads its driver."""

    polite: bool

    def again(self) -> Store:
        """Another handle on it."""
        ...

    def listen(self) -> Poked | None:
        """Where its owner is poked, if it can be."""
        ...

    def poke(self) -> bool:
        """Poke its owner; False if there is none."""
        ...


def path_of(url: str) -> Path | None:
    """The file behind a URL; None for memory. Raises UrlError."""
    if url in ("memory:", "memory://"):
        return None
    if url.startswith("sqlite:///"):
        path = Path(url.removeprefix("sqlite:///")).expanduser()
        if path.name:
            return path
    if is_postgres(url):
        tools = "its own tools copy and restore it (pg_dump, pg_restore)"
        raise UrlError("store.url", f"{masked(url)} is a server, not a file: {tools}")
    known = "sqlite:///PATH, postgresql://USER@HOST/DATABASE or memory:"
    raise UrlError("store.url", f"{url!r} is no store: use {known}")


def open_store(url: str) -> Store:
    """A store to read from and post to; `claim` makes this process its owner."""
    if is_postgres(url):
        store: Store = postgres().PostgresStore(url)
        return store
    path = path_of(url)
    return MemoryStore() if path is None else SqliteStore(path)


def read_models_at(url: str, *, make: bool = True) -> ReadModels:
    """The read models of a store, made if they are missing. Raises StoreError without SQL."""
    if is_postgres(url):
        postgres()  # says what to install
        from pawlflow.store.postgres_views import PostgresReadModels

        return PostgresReadModels(url, make=make)
    path = path_of(url)
    if path is None:
        raise StoreError("views.no_sql", "what is in memory has no tables: name a file or a server")
    return SqliteReadModels(path, make=make)


def postgres() -> Any:
    """The adapter for servers, loaded when one is named. Raises UrlError without its driver."""
    try:
        from pawlflow.store import postgres as found
    except ImportError as missing:
        message = "PostgreSQL needs a driver: pip install 'pawlflow[postgres]'"
        raise UrlError("store.driver", message) from missing
    return found


async def connect_bus(url: Any, name: str = "pawl") -> Bus:
    """A connection to NATS by its URL, or by a client that has one.

    Raises BusError without a server, or without its driver.
    """
    try:
        from pawlflow.bus.nats import NatsBus
    except ImportError as missing:
        message = "NATS needs a driver: pip install 'pawlflow[nats]'"
        raise BusError("nats.driver", message) from missing
    return await NatsBus.connect(url, name) if isinstance(url, str) else NatsBus(url, ours=False)


def is_there(url: str) -> bool:
    """Is there a store to look at? Nothing is made. Raises StoreError."""
    if is_postgres(url):
        return bool(postgres().is_there(url))
    path = path_of(url)
    return path is not None and path.exists() and (not path.is_file() or path.stat().st_size > 0)


def shown(url: str) -> str:
    """A store as it may be named to anybody: without a password."""
    return masked(url)


def considerate(url: str) -> str:
    """The URL for who drives a store only if nobody else does: a server lets owners be replaced."""
    if not is_postgres(url) or "claim=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}claim=free"


def second_handle(store: Store) -> Store:
    """Another handle on the same store, for another thread."""
    if isinstance(store, MemoryStore):
        return MemoryStore(store.shared)
    return cast("NetworkStore | SqliteStore", store).again()


def pokes_of(store: Store) -> Poked | None:
    """Where the owner of a store hears that there is mail. Without, it looks now and then."""
    if isinstance(store, NetworkStore):
        return store.listen()
    if not isinstance(store, SqliteStore):
        return None
    try:
        return Pokes(store.path, store.node)
    except StoreError as error:
        log.warning("%s", error)
        return None


def look_ms(store: Store, pokes: Poked | None) -> int:
    """How often the owner looks for mail though nobody has poked it."""
    return LOOK_MS if pokes is None and isinstance(store, NetworkStore) else SAFETY_MS


def engine_on(
    store: Store,
    outside: Outside,
    *,
    clock: Clock | None = None,
    limits: Limits | None = None,
    recover: bool = True,
    heads: Sequence[ShardHead] | None = None,
) -> Engine:
    """Own a store, or only these shards, and put an engine on it.

    Raises StoreError if another process owns it.
    """
    clock = clock or SystemClock()
    core = Shards(store.claim() if heads is None else heads, clock, limits=limits)
    core.took_over = dict.fromkeys(core.heads, clock.now())
    if not recover:  # nobody carries anything out: no attempt can be late
        core.recover_after, core.took_over = None, dict.fromkeys(core.heads, NEVER)
    if listened_to():
        return Engine(core, told_store(store, clock), clock, ToldOutside(outside))
    return Engine(core, store, clock, outside)


class Nobody:
    """Effects wait in the journal: whoever runs the engine next carries them out."""

    def publish(self, action: Publish) -> None:
        """Leave it for later."""

    def notify(self, action: Notify) -> None:
        """Nobody watches."""

    def stopped(self, action: Stopped) -> None:
        """Say why, where the request was made."""
        raise StoreError(action.code, action.message)


def request(
    store: Store, cell: CellId, incoming: Input, *, waiting_max: int = WAITING_MAX
) -> Accepted | Rejected:
    """Hand in an input from outside: by mail to the owner, or as the owner for a moment.

    A start, or an event, is turned away while so many of its tenant wait; nothing else is.
    Durable when this returns. Raises StoreError("store.busy") if an owner does not answer in time;
    the request is in its mailbox then, and will be taken.
    """
    mail = letter(cell, incoming, SystemClock().entropy())
    if (refused := shed(store, mail, waiting_max)) is not None:
        return refused
    [number] = store.post([mail])
    heard = owned_elsewhere(store)
    until = time.monotonic() + (ANSWER_S_MAX if heard else UNHEARD_S_MAX)
    wait = LOOK_S[0]
    while (taken := store.answer(number)) is None:
        if not owned_elsewhere(store):
            with momentary_owner(store) as engine:
                if engine is not None:
                    engine.drain()
                    continue
        if time.monotonic() > until:
            message = "the owner has not answered yet; the request is in its mailbox"
            raise StoreError("store.busy", message)
        time.sleep(wait)
        wait = min(2 * wait, LOOK_S[1])
    return outcome_of(taken, cell.key)


def shed(store: Store, mail: Mail, most: int) -> Rejected | None:
    """Is there no room for this in the mailbox? What a fallen owner left there is done first."""
    refused = turned_away(store, mail, most)
    if refused is not None and not owned_elsewhere(store):
        with momentary_owner(store) as engine:
            if engine is not None:
                engine.drain()
                return turned_away(store, mail, most)
    return refused


def settle(store: Store, look: Callable[[], tuple[bool, int]]) -> None:
    """Work until what was posted is done: beside an owner by looking, else as the owner.

    `look` says whether it is, and how far it is. Raises StoreError("store.busy") if it goes no
    further for a while; what was posted is still in the mailbox then, and will be taken.
    """
    far, until, wait = None, 0.0, LOOK_S[0]
    while not (seen := look())[0]:
        now = time.monotonic()
        if far != seen[1]:
            far, until = seen[1], now + UNHEARD_S_MAX
        elif now > until:
            raise StoreError("store.busy", "it goes no further; what is left is in the mailbox")
        if not owned_elsewhere(store):
            with momentary_owner(store) as engine:
                if engine is not None and drive(engine, look):
                    return
        took = time.monotonic() - now
        time.sleep(max(wait, took))
        wait = min(2 * wait, LOOK_S[1])


def drive(engine: Engine, look: Callable[[], tuple[bool, int]]) -> bool:
    """Work as the owner until it is done, or nothing is left to do; looking is a small part."""
    wake: TimeMs | None = engine.clock.now()
    share = DRIVE_S
    while wake is not None and wake <= engine.clock.now():
        until = time.monotonic() + share
        while wake is not None and wake <= engine.clock.now() and time.monotonic() < until:
            wake = engine.pump()
        began = time.monotonic()
        if look()[0]:
            return True
        share = max(DRIVE_S, DRIVE_SHARE * (time.monotonic() - began))
    return False


def owned_elsewhere(store: Store) -> bool:
    """Does another process own the store? If so, it is told that there is mail."""
    return isinstance(store, NetworkStore | SqliteStore) and store.poke()


@contextmanager
def momentary_owner(store: Store) -> Iterator[Engine | None]:
    """Own the store just long enough to commit; None if somebody else was faster."""
    own = second_handle(store)
    if isinstance(own, NetworkStore):
        own.polite = True
    try:
        try:
            engine: Engine | None = engine_on(own, Nobody(), recover=False)
        except StoreError as error:
            if error.code != "store.owned":
                raise
            engine = None
        yield engine
    finally:
        own.close()


def outcome_of(taken: Taken, key: InstanceId) -> Accepted | Rejected:
    """What became of a request."""
    return Rejected(taken.code, taken.detail) if taken.code else Accepted(key, 0)


# For `pawl backup`, `pawl restore` and `pawl doctor`: what only an adapter can do or know


def backup_store(url: str, to: Path, progress: Callable[[int, int], object] | None = None) -> None:
    """Copy a store into a file while it is at work; durable when this returns."""
    backup(file_of(url), to.absolute(), progress)


def restore_store(url: str, source: Path) -> Path | None:
    """Put a backup in the place of a store that nobody owns; gives where the old one is kept."""
    return restore(source.absolute(), file_of(url).absolute())


def examine(url: str, *, deep: bool = False) -> dict[str, Any]:
    """What an operator may want to know of a store, and what is wrong with it. Changes nothing."""
    if is_postgres(url):
        return examine_server(url, deep=deep)
    path = file_of(url)
    store = SqliteStore(path)
    try:
        wrong = store.integrity() if deep else store.quick_check()
        ends: list[str] = []
        for head in store.heads(range(SHARDS)):
            try:
                store.check_end(head)
            except StoreError as error:
                ends.append(str(error))
        log = path.with_name(path.name + "-wal")
        return store.facts() | {
            "wal": log.stat().st_size if log.exists() else 0,
            "free": shutil.disk_usage(path.parent).free,
            "damage": wrong,
            "ends": ends,
        }
    finally:
        store.close()


def examine_server(url: str, *, deep: bool) -> dict[str, Any]:
    """The same of a store on a server, whose disk is not ours to look at."""
    store = postgres().PostgresStore(url)
    from pawlflow.store.postgres_health import health_of

    try:
        damage, ends = store.integrity(deep=deep)
        facts: dict[str, Any] = store.facts()
        return facts | health_of(url, SystemClock().now) | {"damage": damage, "ends": ends}
    finally:
        store.close()


def libraries() -> dict[str, str]:
    """The versions of what the stores are made of."""
    return {"apsw": apsw.apsw_version(), "sqlite": apsw.sqlite_lib_version()}


def file_of(url: str) -> Path:
    """The file behind a URL. Raises UrlError if there is none."""
    path = path_of(url)
    if path is None:
        raise UrlError("store.url", "what is in memory is gone with its process: name a file")
    return path
