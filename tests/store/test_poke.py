"""Pokes are hints: heard if somebody listens, and never in the way."""

import os
import select
import socket
import stat
import subprocess
import sys

import pytest

from pawlflow.store.poke import NAME_BYTES_MAX, Pokes, poke, pokes_name
from pawlflow.testing.conformance_kit import refused
from tests.store.kit import unprivileged

pytestmark = pytest.mark.req("R228")


@pytest.fixture
def path(tmp_path):
    """Where a store would lie."""
    return tmp_path / "pawl.db"


def readable(pokes):
    """Would an event loop wake up?"""
    return bool(select.select([pokes], [], [], 0)[0])


def test_a_poke_is_heard(path):
    """It wakes the listener until it is drained."""
    pokes = Pokes(path)
    assert not readable(pokes)
    assert poke(path)
    assert poke(path)
    assert readable(pokes)
    assert pokes.drain() == 2
    assert not readable(pokes)
    assert pokes.drain() == 0
    pokes.close()


def test_nobody_listens(path):
    """No file, no folder, or a listener that has gone: False, and nothing raised."""
    assert not poke(path)
    assert not poke(path / "deeper" / "still")
    pokes = Pokes(path)
    pokes.close()
    assert not poke(path)
    assert list(path.parent.iterdir()) == []
    pokes.close()


def test_more_pokes_than_are_kept_are_heard_too(path):
    """A listener that is busy wakes up anyway."""
    pokes = Pokes(path)
    assert all(poke(path) for _ in range(2_000))
    assert pokes.drain() > 0
    pokes.close()


def test_what_a_killed_listener_left_is_swept_away(path):
    """Its socket's file is still there, and nobody hears it."""
    code = (
        "import os, sys; from pathlib import Path; from pawlflow.store.poke import Pokes\n"
        "pokes = Pokes(Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert pokes_name(path).exists()
    assert not poke(path)
    pokes = Pokes(path)
    assert poke(path)
    assert pokes.drain() == 1
    pokes.close()


def test_a_later_listener_is_not_swept_away(path):
    """Who closes removes its own socket, not the one that took its place."""
    first = Pokes(path)
    second = Pokes(path)
    first.close()
    assert poke(path)
    assert second.drain() == 1
    second.close()


def test_a_long_path_listens_elsewhere(tmp_path):
    """The system allows a socket about 100 bytes of name."""
    path = tmp_path / ("long-" * 30) / "pawl.db"
    path.parent.mkdir()
    pokes = Pokes(path)
    assert len(os.fsencode(pokes_name(path))) <= NAME_BYTES_MAX
    assert poke(path)
    assert pokes.drain() == 1
    pokes.close()
    assert not pokes_name(path).exists()


def test_one_file_has_one_name(tmp_path, path, monkeypatch):
    """By a link or from another folder, the owner is found."""
    pokes = Pokes(path)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert poke(link / "pawl.db")
    monkeypatch.chdir(tmp_path)
    assert poke(type(path)("pawl.db"))
    assert pokes.drain() == 2
    pokes.close()


def test_only_its_user_is_heard(path):
    """Mode 0600: others cannot wake it."""
    pokes = Pokes(path)
    assert stat.S_IMODE(pokes_name(path).stat().st_mode) == 0o600
    pokes.close()


def test_any_user_may_listen_where_it_may_write():
    """And is told what to do where it may not."""
    with unprivileged() as folder:
        pokes = Pokes(folder / "pawl.db")
        assert poke(folder / "pawl.db")
        pokes.close()
        folder.joinpath("shut").mkdir()
        folder.joinpath("shut").chmod(0o555)
        trouble = refused("store.poke", lambda: Pokes(folder / "shut" / "pawl.db"))
        assert "shut" in str(trouble)


def test_a_socket_of_another_kind_is_nobody(path):
    """A stream socket in that place does not hear pokes, and does not break them."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.bind(str(pokes_name(path)))
        assert not poke(path)
