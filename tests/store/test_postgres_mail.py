"""Mail on PostgreSQL: nothing is missed, whatever order commits come in; pokes; who is alive."""

import logging
import select

import pytest

from pawlflow.app import look_ms, owned_elsewhere, pokes_of, second_handle
from pawlflow.engine.drivers import SAFETY_MS
from pawlflow.store.port import Taken
from pawlflow.store.postgres import PostgresStore
from pawlflow.store.postgres_mail import Mailbox
from pawlflow.testing.conformance_kit import Scribe, cell, letter, refused
from tests.store.postgres_kit import Line

EVERY = tuple(range(32))
ORDER = cell("order-1")


@pytest.fixture
def url(postgres):
    """A store of this test."""
    return postgres.fresh()


@pytest.fixture
def store(url):
    """A store, closed at the end."""
    made = PostgresStore(url)
    yield made
    made.close()


class Sender:
    """Somebody whose transaction takes its time."""

    def __init__(self, postgres, schema):
        self.schema = schema
        self.db = postgres.connect()
        self.db.execute("BEGIN")

    def post(self, shard=0):
        """Draw an id, and do not commit yet."""
        row = self.db.execute(
            f"SELECT {self.schema}.post(ARRAY[%s]::int8[], ARRAY['acme'], ARRAY['order'], "
            "ARRAY['order-1'], ARRAY['x'::bytea], ARRAY[''::bytea], ARRAY[NULL]::bytea[])",
            (shard,),
        ).fetchone()
        return row[0][0]

    def commit(self):
        """Let it be seen."""
        self.db.execute("COMMIT")
        self.db.close()


@pytest.mark.req("R225")
def test_mail_that_commits_out_of_order_is_not_missed(store, postgres):
    """The id was drawn first and seen last: a reader who is beyond it gets it, and once."""
    schema = store.where.schema
    slow, quick = Sender(postgres, schema), Sender(postgres, schema)
    first, second = slow.post(), quick.post()
    assert first < second
    quick.commit()
    assert [mail.id for mail in store.mail(EVERY, 0, 10)] == [second]
    assert store.mail(EVERY, second, 10) == []
    slow.commit()
    assert [mail.id for mail in store.mail(EVERY, second, 10)] == [first]
    assert store.mail(EVERY, second, 10) == []
    assert [mail.id for mail in store.mail(EVERY, 0, 10)] == [first, second]


@pytest.mark.req("R225")
def test_mail_is_not_missed_between_full_pages(store, postgres):
    """Late mail comes with the next page; more of it than a page holds, with those after it."""
    schema = store.where.schema
    slow = [Sender(postgres, schema) for _ in range(5)]
    late = [each.post() for each in slow]
    ids = store.post([letter(ORDER) for _ in range(6)])
    seen = [mail.id for mail in store.mail(EVERY, 0, 2)]
    assert seen == ids[:2]
    for each in slow:
        each.commit()
    while page := [mail.id for mail in store.mail(EVERY, max(seen), 2)]:
        assert page == sorted(page)
        seen += page
    assert sorted(seen) == sorted([*late, *ids])
    assert len(seen) == len(set(seen))


def test_late_mail_of_other_shards_is_not_given(store, postgres):
    """And a transaction elsewhere that stays open makes nobody read anything twice."""
    schema = store.where.schema
    idle, slow = Sender(postgres, schema), Sender(postgres, schema)
    idle.post(shard=9)  # keeps the oldest running transaction where it is
    first = slow.post(shard=3)
    [second] = store.post([letter(ORDER)])
    assert [mail.id for mail in store.mail([0], 0, 10)] == [second]
    slow.commit()
    for _ in range(3):
        assert store.mail([0], second, 10) == []
    assert [mail.id for mail in store.mail([3], 0, 10)] == [first]
    idle.commit()


def test_after_a_lost_connection_everything_that_waits_is_read_again(postgres, url):
    """A failover may have forgotten what was shown: page by page, then as before."""
    line = Line(postgres)
    store = PostgresStore(line.url(url))
    ids = store.post([letter(ORDER) for _ in range(5)])
    assert len(store.mail(EVERY, 0, 10)) == 5
    for end in list(line.open):
        end.shutdown(2)
    pages = [[mail.id for mail in store.mail(EVERY, ids[-1], 2)] for _ in range(4)]
    assert pages == [ids[:2], ids[2:4], ids[4:], []]
    store.close()
    line.close()


def test_a_reader_remembers_only_what_it_must(store):
    """After a page that was not full there is nothing to remember but the moment."""
    box: Mailbox = store._mailbox
    store.post([letter(ORDER) for _ in range(3)])
    store.mail(EVERY, 0, 2)
    assert (box.moment is not None, box.given, box.floor) == (True, set(), None)


# Pokes and signs of life


def heard(pokes, seconds=5.0):
    """Does an event loop wake up in time?"""
    return bool(select.select([pokes], [], [], seconds)[0])


@pytest.mark.req("R228")
def test_an_owner_is_poked(store, url):
    """By whoever has mail for it; and it is known to be alive as long as it listens."""
    store.claim()
    pokes = pokes_of(store)
    assert look_ms(store, pokes) == SAFETY_MS
    other = PostgresStore(url)
    assert owned_elsewhere(other)
    assert heard(pokes)
    assert pokes.drain() == 1
    assert not heard(pokes, 0)
    pokes.close()
    assert not other.poke()
    store.close()
    other.close()


def test_who_cannot_listen_looks_once_a_second(postgres):
    """Its lease says that it is alive: it runs on with every look and every commit."""
    url = postgres.fresh(pokes="off")
    store, other = PostgresStore(url), PostgresStore(url)
    scribe = Scribe(store)
    assert pokes_of(store) is None
    assert look_ms(store, None) == 1_000
    assert other.poke()
    expire(postgres, store)
    assert not other.poke()
    store.mail(EVERY, 0, 10)
    assert other.poke()
    expire(postgres, store)
    scribe.turn(ORDER)
    scribe.commit()
    assert other.poke()
    store.close()
    assert other.owner() is None
    other.close()


def expire(postgres, store):
    """Let time pass."""
    postgres.execute(f"UPDATE {store.where.schema}.node SET lease_until = now()")


def test_a_polite_claim_leaves_an_owner_alone(url):
    """The commands of a second terminal own a store only if nobody drives it."""
    owner, guest = PostgresStore(url), PostgresStore(url + "&claim=free")
    scribe = Scribe(owner)
    pokes = owner.listen()
    trouble = refused("store.owned", guest.claim)
    assert "process" in str(trouble)
    scribe.turn(ORDER)
    scribe.commit()
    pokes.close()
    owner.close()
    assert len(guest.claim()) == 32
    second = second_handle(guest)
    assert second.polite
    second.close()
    guest.close()


def test_a_listener_comes_back_after_a_restart(postgres, url):
    """It listens again by itself, and wakes its owner: there may have been pokes meanwhile."""
    store = PostgresStore(url)
    store.claim()
    pokes = store.listen()
    postgres.restart()
    assert heard(pokes, 10)
    pokes.drain()
    assert store.poke()
    assert heard(pokes)
    pokes.close()
    store.close()


def test_pokes_may_come_from_another_address(postgres, caplog):
    """`pokes=HOST:PORT` where the URL leads to a pooler; where nobody answers, that is told."""
    url = postgres.fresh(pokes=f"127.0.0.1:{postgres.port}")
    store = PostgresStore(url)
    store.claim()
    pokes = store.listen()
    assert store.poke()
    assert heard(pokes)
    pokes.close()
    store.close()
    nowhere = PostgresStore(postgres.fresh(pokes="127.0.0.1:1"))
    with caplog.at_level(logging.WARNING):
        assert nowhere.listen() is None
    assert "fish" not in caplog.text
    nowhere.close()


def test_mail_is_taken_with_the_turn_that_answers_it(store):
    """And its sender is told, across handles."""
    scribe = Scribe(store)
    other = second_handle(store)
    [mail] = other.post([letter(ORDER)])
    scribe.turn(ORDER)
    scribe.commit(taken=[Taken(mail, "no", "because")])
    assert other.answer(mail) == Taken(mail, "no", "because")
    other.close()
