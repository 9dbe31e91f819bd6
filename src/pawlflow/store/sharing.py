"""What a store on a server offers to several nodes, beside its port."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from pawlflow.store.port import Store, Taken


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What a node sees when it says that it is alive."""

    node: str  # who looks
    members: Sequence[str]  # the nodes that are alive and share, the one that looks among them
    owners: Mapping[int, str | None]  # by shard; None: nobody who is alive
    steady: bool = True  # its own lease had not run out meanwhile
    began: float = 0.0  # when it looked, by a clock that never goes back


class Membership(Protocol):
    """A node among others: it says that it is alive, and hears who else is."""

    node: str

    def look(self) -> None:
        """Look at once."""
        ...

    def tell(self) -> None:
        """Let the others look at once."""
        ...

    def close(self) -> None:
        """Be a node no longer. Its shards are anybody's, and the others are told."""
        ...


@runtime_checkable
class SharedStore(Store, Protocol):
    """A store whose shards several nodes may own, each some of them."""

    def join(self, told: Callable[[View], bool]) -> Membership:
        """Share the shards with other nodes; `told` hears, on a thread, who is there.

        The lease is renewed as long as `told` says that this is right.
        """
        ...

    def release(self, shards: Sequence[int]) -> None:
        """Let other nodes have these shards."""
        ...

    def again(self) -> Store:
        """Another handle on it."""
        ...

    def poke(self, shards: Iterable[int] = ()) -> bool:
        """Tell the owners of these shards, or of any, that there is mail. False if none is."""
        ...

    def answers(self, mail: Sequence[int]) -> dict[int, Taken]:
        """What became of mail, as far as it no longer waits."""
        ...
