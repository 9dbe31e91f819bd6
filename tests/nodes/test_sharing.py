"""How nodes come to an even share without talking to each other."""

from hypothesis import given
from hypothesis import strategies as st

from pawlflow.engine.node import quota_of, share_of
from pawlflow.store.port import SHARDS
from pawlflow.store.sharing import View

NAMES = st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=7, unique=True)


def seen(node, members, owners, *, steady=True):
    """What a node sees."""
    return View(node=node, members=members, owners=owners, steady=steady)


@given(NAMES)
def test_all_shares_together_are_all_shards(members):
    """Nobody's share is more than one larger than another's."""
    quotas = [quota_of(each, members) for each in members]

    assert sum(quotas) == SHARDS
    assert max(quotas) - min(quotas) <= 1


@given(NAMES, st.lists(st.sampled_from([*"abcdefghij", None]), min_size=SHARDS, max_size=SHARDS))
def test_whoever_owned_what_a_few_looks_settle_it(members, before):
    """From any state: after each has looked three times, every shard has an owner, evenly."""
    owners = {shard: each if each in members else None for shard, each in enumerate(before)}
    for _ in range(3):
        for node in members:
            held = [shard for shard, owner in owners.items() if owner == node]
            share = share_of(seen(node, members, owners), held)
            assert share.lost == ()
            owners |= dict.fromkeys(share.release)
            owners |= dict.fromkeys(share.take, node)

    assert None not in owners.values()
    for node in members:
        assert list(owners.values()).count(node) == quota_of(node, members)


def test_what_is_settled_stays():
    """A node with its share does nothing."""
    owners = {shard: "ab"[shard % 2] for shard in range(SHARDS)}
    share = share_of(seen("a", ["a", "b"], owners), [s for s in owners if s % 2 == 0])

    assert (share.lost, share.release, share.take) == ((), (), ())


def test_what_another_one_has_taken_is_lost():
    """A node that slept still has its shards in mind."""
    owners = dict.fromkeys(range(SHARDS), "b")
    share = share_of(seen("a", ["a", "b"], owners), range(16))

    assert share.lost == tuple(range(16))
    assert share.take == ()


def test_after_an_absence_owners_get_the_time_to_come_back():
    """The store was away, so every lease has run out: nobody takes at once what others had."""
    owners = dict.fromkeys(range(16), "a") | dict.fromkeys(range(16, SHARDS))

    assert share_of(seen("a", ["a"], owners, steady=False), range(16)).take == ()
    assert share_of(seen("a", ["a"], owners), range(16)).take == tuple(range(16, SHARDS))


def test_what_it_owns_beyond_its_share_and_does_not_know_of_is_given_away():
    """Else nobody would ever work on it."""
    owners = dict.fromkeys(range(SHARDS), "a")
    share = share_of(seen("a", ["a", "b"], owners), range(12))

    assert share.take == tuple(range(12, 16))
    assert share.release == tuple(range(16, SHARDS))


def test_a_claim_whose_answer_was_lost_is_made_again():
    """The store says that it owns them, and it knows nothing of it."""
    owners = dict.fromkeys(range(SHARDS), "a")

    assert share_of(seen("a", ["a"], owners), range(8)).take == tuple(range(8, SHARDS))
