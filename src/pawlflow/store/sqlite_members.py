"""A node among others on one file: it looks who else is there, on a thread of its own."""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pawlflow.store.poke import Pokes, poke
from pawlflow.store.port import SHARDS, StoreError
from pawlflow.store.sharing import View
from pawlflow.store.sqlite_seats import Seat, names, seats
from pawlflow.store.wake import Wake

log = logging.getLogger("pawl.store")
LOOK_S: Final = 1.0  # between two looks: one that was killed says nothing


class Members:
    """What one node knows of the others, and they of it."""

    def __init__(self, path: Path, seat: Seat, told: Callable[[View], bool]) -> None:
        """Join. Raises StoreError where nobody can be heard."""
        self.node = seat.node
        self._path = path
        self._seat = seat
        self._told = told
        self._ended = False
        self._heard = Pokes(path, self.node, "look")
        self._wake = Wake()
        self._thread = threading.Thread(target=self._work, name="pawl-node", daemon=True)
        self._thread.start()
        self.tell()

    def look(self) -> None:
        """Look at once."""
        self._wake.set()

    def tell(self) -> None:
        """Let the others look at once."""
        try:
            others = [node for node in names(self._path) if node != self.node]
        except StoreError as error:  # they look by themselves as well
            log.warning("node %s could not tell the others: %s", self.node, error)
            return
        for node in others:
            poke(self._path, node, "look")

    def close(self) -> None:
        """Be a node no longer; the others are told."""
        self._ended = True
        self._wake.set()
        self._thread.join()
        self._heard.close()
        self._seat.leave()
        self.tell()
        self._wake.close()

    def _work(self) -> None:
        """On the thread: look, and wait."""
        while not self._ended:
            try:
                self._look()
            except StoreError as error:
                log.warning("node %s is not seen: %s", self.node, error)
            self._wake.wait(LOOK_S, self._heard.fileno())
            self._heard.drain()

    def _look(self) -> None:
        """Tell what is seen. A node that cannot work is not alive, until it can again."""
        began = time.monotonic()
        owners: dict[int, str | None] = dict.fromkeys(range(SHARDS))
        others = seats(self._path)
        others.pop(self.node, None)
        for node, seated in others.items():
            owners |= dict.fromkeys(seated.shards, node)
            if node < self.node:  # should two say that they own the same, the first has it
                self._seat.drop(seated.shards)
        owners |= dict.fromkeys(self._seat.shards, self.node)
        members = (self.node, *others)
        if self._told(View(node=self.node, members=members, owners=owners, began=began)):
            self._seat.take()
        else:
            self._seat.leave()
