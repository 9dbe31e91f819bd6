"""Inclusion: that one turn is in a frame, shown without showing the others (RFC 6962)."""

from collections.abc import Sequence
from hashlib import sha256

from pawlflow.model.ids import Digest
from pawlflow.model.journal import LEAF, NODE


def merkle_path(leaves: Sequence[Digest], index: int) -> list[tuple[bool, Digest]]:
    """The hashes that prove leaf `index`: (is the sibling on the right?, sibling), from below."""
    path: list[tuple[bool, Digest]] = []
    level = [Digest(sha256(LEAF + leaf).digest()) for leaf in leaves]
    while len(level) > 1:
        sibling = index ^ 1
        if sibling < len(level):
            path.append((sibling > index, level[sibling]))
        pairs = zip(level[::2], level[1::2], strict=False)
        odd = level[-1:] if len(level) % 2 else []
        level = [Digest(sha256(NODE + a + b).digest()) for a, b in pairs] + odd
        index //= 2
    return path


def proves(leaf: Digest, path: Sequence[tuple[bool, Digest]], root: Digest) -> bool:
    """Does this path lead from the leaf to the root?"""
    node = sha256(LEAF + leaf).digest()
    for on_the_right, sibling in path:
        pair = node + sibling if on_the_right else sibling + node
        node = sha256(NODE + pair).digest()
    return node == root
