"""What a file offers to several processes of one machine, beside the port of a store."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pawlflow.store.poke import poke
from pawlflow.store.port import StoreError, Taken
from pawlflow.store.sharing import View
from pawlflow.store.sqlite_mail import SqliteMail
from pawlflow.store.sqlite_members import Members
from pawlflow.store.sqlite_owner import Ownership
from pawlflow.store.sqlite_seats import Seat, seats
from pawlflow.store.sqlite_work import Pen
from pawlflow.store.sqlite_write import read_answer

log = logging.getLogger("pawl.store")


class SqliteShared(SqliteMail):
    """The part of a store that says whose its shards are."""

    _owning: Ownership | None = None
    _seat: Seat | None = None

    @property
    def node(self) -> str:
        """What other nodes know this one by; nothing if it shares with nobody."""
        return "" if self._seat is None else self._seat.node

    def join(self, told: Callable[[View], bool]) -> Members:
        """Share the shards with other processes; `told` hears, on a thread, who is there."""
        owning = Ownership(self.path, shared=True)
        try:
            seat = Seat(self.path)
            try:
                members = Members(self.path, seat, told)
            except StoreError:
                seat.leave()
                raise
        except StoreError:
            owning.release()
            raise
        self._owning, self._seat = owning, seat
        self._pen.close()
        self._pen = Pen(self.path, patient=True)
        return members

    def _seated(self, shards: Sequence[int]) -> Sequence[int]:
        """Say that shards are this node's, as far as they are free: in a transaction.

        So only one says so at a time. Who shares with nobody has no need to say it.
        """
        if (seat := self._seat) is None:
            return shards
        others = [each for node, each in seats(self.path).items() if node != seat.node]
        taken = {shard for each in others for shard in each.shards}
        free = [shard for shard in shards if shard not in taken]
        return free if seat.own([*seat.shards, *free]) else ()

    def release(self, shards: Sequence[int]) -> None:
        """Let other processes have these shards."""
        assert self._seat is not None
        with self._writing("releasing shards"):
            self._seat.own([each for each in self._seat.shards if each not in shards])

    def poke(self, shards: Iterable[int] = ()) -> bool:
        """Tell the owners of these shards, or of any, that there is mail. False if none is."""
        if self._seat is None and poke(self.path):
            return True
        wanted = set(shards)
        try:
            found = seats(self.path)
        except StoreError as error:  # it is only a hint: they look by themselves as well
            log.warning("nobody is told that there is mail: %s", error)
            return False
        owners = [node for node, seat in found.items() if not wanted or wanted & set(seat.shards)]
        heard = [poke(self.path, node) for node in owners]
        return any(heard)

    def answers(self, mail: Sequence[int]) -> dict[int, Taken]:
        """What became of mail, as far as it no longer waits."""
        with self._reading("table refusal"):
            found = {each: read_answer(self._db, each) for each in mail}
        return {each: taken for each, taken in found.items() if taken is not None}

    def nodes(self) -> list[dict[str, Any]]:
        """Who shares it now, as an operator is told."""
        return [
            {
                "node": f"{each.pid} on {each.host}",
                "shards": len(each.shards),
                "alive": True,
                "lease_ms": 0,
            }
            for each in seats(self.path).values()
        ]
