"""Inclusion: that one turn is in a frame, shown without showing the others (RFC 6962)."""

from collections.abc import Sequence
from hashlib import sha256

from pawlflow.model.codec import hash_of
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


def root_over(leaf: Digest, index: int, size: int, siblings: Sequence[Digest]) -> Digest | None:
    """The root that these siblings lead to from leaf `index` of `size`; None if they do not fit.

    Which side a sibling stands on follows from the two numbers, so a proof shows the place as well.
    """
    if not 0 <= index < size:
        return None
    node, left = sha256(LEAF + leaf).digest(), list(reversed(siblings))
    while size > 1:
        if index ^ 1 < size:
            if not left:
                return None
            sibling = left.pop()
            node = sha256(NODE + (sibling + node if index % 2 else node + sibling)).digest()
        index, size = index // 2, (size + 1) // 2
    return Digest(node) if not left and index == 0 else None


def sealed_by(prev: Digest, first: int, last: int, root: Digest) -> Digest:
    """The hash of a frame, without its entries."""
    return Digest(hash_of("pawl.frame.1", prev, first, last, root))
