"""Mail in fair order: one tenant's backlog does not stand before another's mail."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.model.ids import CellId, InstanceId, Tenant, WorkflowName
from pawlflow.store import fair_mail
from pawlflow.store.fair_mail import FairMail
from pawlflow.store.memory import MemoryStore
from pawlflow.store.port import Batch, Fence, Mail, Taken
from pawlflow.store.sqlite import SqliteStore

EVERY = range(32)


def mail(tenant, number, shard=0):
    cell = CellId(Tenant(tenant), WorkflowName("w"), InstanceId(f"i-{number}"))
    return Mail(shard=shard, cell=cell, input=b"%d" % number, beside=b"")


class Reader:
    """A caller as the engine is one: it says the highest id it was given."""

    def __init__(self, store):
        self.fair = FairMail(store)
        self.after = 0

    def page(self, limit, shards=EVERY):
        found = self.fair.read(shards, self.after, limit)
        self.after = max([self.after, *(each.id for each in found)])
        return [(each.cell.tenant, each.id) for each in found]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request, tmp_path):
    if request.param == "memory":
        made = MemoryStore()
    elif request.param == "sqlite":
        made = SqliteStore(tmp_path / "pawl.db")
    else:
        from pawlflow.store.postgres import PostgresStore

        made = PostgresStore(request.getfixturevalue("postgres").fresh())
    yield made
    made.close()


@pytest.mark.req("R214")
def test_a_backlog_of_one_tenant_does_not_stand_before_another(store):
    """10,000 rows of A lie before one of B: it comes with the second page, not the twentieth."""
    store.post([mail("a", n) for n in range(10_000)])
    [late] = store.post([mail("b", 0)])
    reader = Reader(store)

    first, second, third = reader.page(500), reader.page(500), reader.page(500)

    assert {tenant for tenant, _ in first} == {"a"}
    assert [id_ for tenant, id_ in (*second, *third) if tenant == "b"] == [late]
    assert len(first) == len(second) == len(third) == 500


@pytest.mark.req("R214", "R225")
def test_mail_that_comes_later_is_not_behind_the_backlog(store):
    """Whoever posts while a backlog is worked off is read with the next page."""
    store.post([mail("a", n) for n in range(2_000)])
    reader = Reader(store)
    pages = [reader.page(100), reader.page(100)]
    store.post([mail("b", 1), mail("c", 1)])

    pages.append(reader.page(100))

    assert {tenant for tenant, _ in pages[-1]} == {"a", "b", "c"}
    while page := reader.page(100):
        pages.append(page)
    ids = [id_ for page in pages for _, id_ in page]
    assert sorted(ids) == list(range(1, 2_003))
    assert all(len(page) == 100 for page in pages[:-1])


@pytest.mark.req("R225")
def test_who_begins_anew_is_given_everything_again(store):
    """Another highest id than was given: other shards, or another engine."""
    store.post([mail("a", n, shard=n % 2) for n in range(300)])
    reader = Reader(store)
    assert len(reader.page(100, [0])) == 100
    assert len(reader.page(100, [0])) == 50

    reader.after = 0
    found = [each for _ in range(4) for each in reader.page(100)]

    assert sorted(id_ for _, id_ in found) == list(range(1, 301))


@given(
    st.lists(st.lists(st.sampled_from("aabbc"), max_size=12), min_size=1, max_size=8),
    st.integers(1, 7),
    st.integers(1, 5),
    st.randoms(use_true_random=False),
)
@pytest.mark.req("R225", "R214")
def test_nothing_is_missed_twice_given_or_out_of_order(posts, limit, look, dice: random.Random):
    """Whatever is posted and taken between pages: each once, and each tenant's in order."""
    store = MemoryStore()
    [*heads] = store.claim()
    reader, seen, posted = Reader(store), [], 0
    kept, fair_mail.LINES_PAGE = fair_mail.LINES_PAGE, look
    try:
        for tenants in [*posts, *[[]] * 60]:
            posted += len(store.post([mail(each, 0) for each in tenants]))
            page = reader.page(limit)
            assert len(page) == min(limit, posted - len(seen))
            seen += page
            gone = dice.sample(page, dice.randint(0, len(page)))
            fences = [Fence(0, heads[0].epoch, heads[0].seq)]
            taken = [Taken(id_) for _, id_ in gone]
            store.append(Batch(id=b"x", fences=fences, taken=taken))
    finally:
        fair_mail.LINES_PAGE = kept

    assert sorted(id_ for _, id_ in seen) == list(range(1, posted + 1))
    for tenant in "abc":
        mine = [id_ for whose, id_ in seen if whose == tenant]
        assert mine == sorted(mine)
