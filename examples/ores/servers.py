"""PostgreSQL and NATS from what the machine has: in a folder of their own, on loopback alone."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

START_S = 30.0
PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql*/bin", "/opt/homebrew/bin", "/usr/local/bin")
SETTINGS = {"listen_addresses": "127.0.0.1", "fsync": "off", "max_connections": "80"}


class NoServerError(Exception):
    """There is no server, and no program to start one."""


class Servers(AbstractContextManager["Servers"]):
    """Servers that are gone at the end; those that are given by a URL are left alone."""

    def __init__(self, database: str | None, nats: str | None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ores-"))
        self.started: list[subprocess.Popen[bytes]] = []
        try:
            self.database = database or self.start_postgres()
            self.nats = nats or self.start_nats()
        except BaseException:
            self.__exit__()
            raise

    def start_postgres(self) -> str:
        """A cluster of its own, whose every word is forgotten at the end."""
        initdb = program("initdb", "--db postgresql://USER@HOST/DATABASE", PLACES)
        port, data, who = free_port(), self.folder / "postgres", unprivileged()
        data.mkdir()
        if who:
            self.folder.chmod(0o711)
            os.chown(data, who["user"], who["group"])
        words = [initdb, "-D", data, "-U", "ores", "--auth=trust", "-E", "UTF8", "--no-sync"]
        made = subprocess.run(words, capture_output=True, text=True, check=False, cwd="/", **who)
        if made.returncode:
            raise NoServerError(f"PostgreSQL cannot be set up: {made.stderr.strip()}")
        settings = {**SETTINGS, "port": port, "unix_socket_directories": data}
        options = [word for each in settings.items() for word in ("-c", f"{each[0]}={each[1]}")]
        self.start("postgres", [initdb.with_name("postgres"), "-D", data, *options], port, **who)
        return f"postgresql://ores@127.0.0.1:{port}/postgres"

    def start_nats(self) -> str:
        """A server with JetStream."""
        nats = program(
            "nats-server", "--nats nats://HOST:PORT", (str(Path(sys.executable).parent),)
        )
        port, place = free_port(), self.folder / "nats"
        self.start("nats", [nats, "-a", "127.0.0.1", "-p", port, "-js", "-sd", place], port)
        return f"nats://127.0.0.1:{port}"

    def start(self, name: str, words: list[Any], port: int, **who: Any) -> None:
        """Start a server, and wait until it takes connections."""
        log = self.folder / f"{name}.log"
        with log.open("wb") as out:
            command = [str(word) for word in words]
            server = subprocess.Popen(
                command, stdout=out, stderr=out, start_new_session=True, cwd="/", **who
            )
        self.started.append(server)
        until = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                if server.poll() is not None or time.monotonic() > until:
                    raise NoServerError(f"{name} did not start: {log.read_text()[-500:]}") from None
                time.sleep(0.05)
            else:
                return

    def __exit__(self, *_: object) -> None:
        """End what was started here, and remove its folder."""
        for each in reversed(self.started):
            each.terminate()
            try:
                each.wait(10)
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def program(name: str, otherwise: str, places: tuple[str, ...]) -> Path:
    """A program of the machine. Raises NoServerError, which names the way out."""
    beside = [Path(each) for each in places if "*" not in each]
    found = [each for place in places for each in sorted(Path("/").glob(f"{place[1:]}/{name}"))]
    found += [each / name for each in beside if (each / name).exists()]
    if here := shutil.which(name):
        found.append(Path(here).resolve())
    if not found:
        raise NoServerError(f"{name} is not installed: install it, or give {otherwise}")
    return found[-1]


def unprivileged() -> dict[str, Any]:
    """How a program is started as somebody without rights: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    found = pwd.getpwnam("nobody")
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
