"""What every store checks, apart from any store."""

import pytest

from pawlflow.model.ids import Digest
from pawlflow.model.journal import instance_genesis, turn_hash
from pawlflow.store.check import image_of, mask_of
from pawlflow.store.port import Entry, Head
from pawlflow.testing.conformance_kit import cell, digest, refused

ORDER = cell("order-1")
FIRST = turn_hash(instance_genesis(ORDER), b"one")
SECOND = turn_hash(FIRST, b"two")
TURNS = [Entry(32, 1, b"one", FIRST), Entry(32, 2, b"two", SECOND)]


def head(turn: int, sealed: Digest) -> Head:
    return Head(ref=32, cell=ORDER, shard=0, turn=turn, hash=sealed, definition=b"")


def test_a_cell_is_what_its_turns_lead_to():
    """From its genesis over every turn to the hash of its head."""
    image = image_of(head(2, SECOND), None, TURNS, {})
    assert list(image.entries) == TURNS


@pytest.mark.parametrize(
    ("turn", "sealed", "entries"),
    [
        (3, SECOND, TURNS),
        (2, digest(1), TURNS),
        (1, FIRST, TURNS),
        (2, SECOND, TURNS[:1]),
        (2, SECOND, TURNS[1:]),
        (2, SECOND, []),
    ],
)
def test_a_head_that_its_turns_do_not_lead_to_is_damage(turn, sealed, entries):
    """Too few, too many, or others."""
    refused("store.damaged", lambda: image_of(head(turn, sealed), None, entries, {}))


def test_shards_are_bits():
    """One number stands for any set of them."""
    assert mask_of([]) == 0
    assert mask_of([0, 3]) == 0b1001
    assert mask_of(range(32)) == 2**32 - 1
