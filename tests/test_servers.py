"""The servers of the tests are real, of this run alone, and run as nobody of importance."""

import os
import socket
from pathlib import Path


def test_postgres_runs_without_rights_and_on_loopback(postgres):
    """As root it is somebody else; its folder lies directly under the temporary one."""
    assert postgres.folder.parent == Path(os.environ.get("TMPDIR", "/tmp"))
    [(version,)] = postgres.execute("SELECT current_setting('server_version_num')::int / 10000")
    assert version >= 15
    [(addresses,)] = postgres.execute("SHOW listen_addresses")
    assert addresses == "127.0.0.1"
    assert postgres.process is not None
    assert Path(f"/proc/{postgres.process.pid}").stat().st_uid != 0


def test_nats_has_jetstream(nats):
    """Started when it is asked for; its first words say what it can do."""
    with socket.create_connection(("127.0.0.1", nats.port)) as line:
        words = line.recv(4_096)
    assert words.startswith(b"INFO")
    assert b'"jetstream":true' in words
