"""Pokes: a word across processes that mail waits. A hint and nothing more: the mail is durable."""

import os
import socket
from hashlib import sha256
from pathlib import Path
from typing import Final

from pawlflow.store.port import StoreError

NAME_BYTES_MAX: Final = 100  # Linux allows a socket 107 bytes of name, macOS 103
FAR: Final = Path("/tmp")  # not TMPDIR: owner and sender may differ in it
_READ_BYTES: Final = 64


class Pokes:
    """The listening end, kept by the owner of a store's file; `fileno` can be waited for."""

    def __init__(self, path: Path, node: str = "", what: str = "poke") -> None:
        """Listen beside this file. What a killed owner left there is swept away."""
        self._name = pokes_name(path, node, what)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._socket.settimeout(0)
            self._name.unlink(missing_ok=True)
            self._socket.bind(str(self._name))
            self._name.chmod(0o600)
            self._inode = self._name.stat().st_ino
        except OSError as trouble:
            self._socket.close()
            raise StoreError(
                "store.poke",
                f"nobody can be heard at {self._name}: {trouble}; let this user write to that "
                "folder, or name a shorter path for the store",
            ) from trouble

    def fileno(self) -> int:
        """What a selector or an event loop waits for: readable when poked."""
        return self._socket.fileno()

    def drain(self) -> int:
        """Forget the pokes that came, and tell how many there were."""
        count = 0
        while True:
            try:
                self._socket.recv(_READ_BYTES)
            except BlockingIOError:
                return count
            count += 1

    def close(self) -> None:
        """Listen no longer, and take the socket's file away unless it is already another's."""
        self._socket.close()
        try:
            if self._name.stat().st_ino == self._inode:
                self._name.unlink()
        except FileNotFoundError:
            return


def poke(path: Path, node: str = "", what: str = "poke") -> bool:
    """Tell the owner of this file, or a node that shares it. False if nobody listens."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(0)
            sender.sendto(b"!", str(pokes_name(path, node, what)))
    except BlockingIOError:
        return True  # so many pokes wait already that it will wake up
    except OSError:
        return False
    return True


def pokes_name(path: Path, node: str = "", what: str = "poke") -> Path:
    """Where somebody listens: beside the file, or elsewhere if that name is too long."""
    real = os.path.realpath(path)
    beside = Path(f"{real}.nodes/{node}.{what}" if node else f"{real}.{what}")
    if len(os.fsencode(beside)) <= NAME_BYTES_MAX:
        return beside
    digest = sha256(os.fsencode(real)).hexdigest()[:32]
    return FAR / f"pawl-{digest}{node and '-'}{node}.{what}"
