"""A bell between threads that can be waited for together with a connection."""

import socket
from select import POLLIN, poll
from typing import Final

_READ_BYTES: Final = 4_096


class Wake:
    """One thread rings, another one waits."""

    def __init__(self) -> None:
        self._near, self._far = socket.socketpair()
        self._near.settimeout(0)
        self._far.settimeout(0)

    def set(self) -> None:
        """Ring."""
        try:
            self._far.send(b"!")
        except BlockingIOError:
            return  # it rings already

    def wait(self, seconds: float, *others: int) -> None:
        """Wait for the bell, for something to read at one of the others, or until it is time."""
        looks = poll()
        for each in (self._near.fileno(), *others):
            looks.register(each, POLLIN)
        looks.poll(seconds * 1000)
        try:
            self._near.recv(_READ_BYTES)
        except BlockingIOError:
            return

    def close(self) -> None:
        """Nobody rings any more."""
        self._near.close()
        self._far.close()
