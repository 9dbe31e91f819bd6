"""Sharing: how the nodes of a store come to an even share of its shards without talking.

Each looks at who is alive and who owns what, and gives away or takes what is its own to give or to
take. All who see the same agree; who sees something old is put right by the fence of the store.
"""

from collections.abc import Sequence

import msgspec

from pawlflow.store.port import SHARDS
from pawlflow.store.sharing import View


class Share(msgspec.Struct, frozen=True):
    """What a node is to do about its share."""

    lost: tuple[int, ...]  # it has them in mind, and another one owns them
    release: tuple[int, ...]  # they are more than its share, be it that it works on them or not
    take: tuple[int, ...]  # nobody has them, and they are within its share


def quota_of(node: str, members: Sequence[str]) -> int:
    """How many shards are a node's share: all shares together are all shards."""
    rank = sorted(members).index(node)
    return SHARDS // len(members) + (rank < SHARDS % len(members))


def share_of(view: View, held: Sequence[int]) -> Share:
    """What is to be done by a node that holds these shards."""
    lost = tuple(shard for shard in held if view.owners[shard] != view.node)
    mine = [shard for shard in held if shard not in lost]
    quota = quota_of(view.node, view.members)
    # After an absence of the store every lease has run out: owners get the time to say otherwise.
    free = [shard for shard, owner in view.owners.items() if owner is None] if view.steady else []
    forgotten = [s for s, owner in view.owners.items() if owner == view.node and s not in held]
    room = max(0, quota - len(mine))
    return Share(lost, (*mine[quota:], *forgotten[room:]), (*forgotten, *free)[:room])
