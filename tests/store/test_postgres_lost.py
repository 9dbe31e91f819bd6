"""Connections that are lost, at the worst moment too: neither outcome is assumed."""

import asyncio
import logging
import os
import signal
import threading
from contextlib import contextmanager

import pytest

from pawlflow.embedded import Pawl
from pawlflow.store.port import StoreConflictError, StoreUnknownError
from pawlflow.store.postgres import PostgresStore
from pawlflow.testing.conformance_kit import ACME, Scribe, cell, letter, refused
from tests.store.postgres_kit import Line

pytestmark = pytest.mark.req("R142", "R148", "R151")
ORDER = cell("order-1")
ADDRESS = (ACME, ORDER.key)
EVERY = tuple(range(32))


@pytest.fixture
def url(postgres):
    """A store of this test."""
    return postgres.fresh(wait=20)


@pytest.fixture
def line(postgres):
    """A line to the server that can be cut."""
    made = Line(postgres)
    yield made
    made.close()


@pytest.fixture
def store(line, url):
    """A store behind that line."""
    made = PostgresStore(line.url(url))
    yield made
    made.close()


@pytest.mark.parametrize(("fate", "applied"), [("lose", False), ("deafen", True)])
def test_a_commit_of_unknown_outcome_is_settled_by_its_batch(store, line, fate, applied):
    """The head that is read next tells whether it was applied: by the id of the batch."""
    scribe = Scribe(store)
    scribe.turn(ORDER)
    batch = scribe.batch()
    line.once(b".append(", fate)
    with pytest.raises(StoreUnknownError) as caught:
        store.append(batch)
    assert caught.value.code == "store.unknown"
    [head] = store.heads([0])
    assert (head.batch == batch.id, head.seq) == (applied, int(applied))
    assert head.epoch == scribe.heads[0].epoch
    assert (ADDRESS in store.load([ADDRESS])) == applied
    if not applied:
        store.append(batch)
        assert store.heads([0])[0].batch == batch.id


def test_a_commit_that_comes_late_is_not_applied_after_all(store, line):
    """Held up somewhere, it reaches the server after its sender has read the heads again."""
    scribe = Scribe(store)
    scribe.turn(ORDER, data=b"first")
    line.once(b".append(", "delay")
    late = scribe.batch()
    with pytest.raises(StoreUnknownError):
        store.append(late)
    [head] = store.heads([0])
    assert head.batch != late.id
    line.release()
    scribe.forget()
    scribe.turn(ORDER, data=b"second")
    scribe.commit()
    [turn] = store.load([ADDRESS])[ADDRESS].entries
    assert turn.data == b"second"


def test_a_commit_under_way_is_waited_for(store, line, postgres):
    """Its sender is gone, and it waits for a lock: the heads are told when it is over."""
    scribe = Scribe(store)
    scribe.turn(ORDER)
    batch = scribe.batch()
    found: list[object] = []
    with postgres.connect() as other:
        other.execute("BEGIN")
        other.execute(f"LOCK TABLE {store.where.schema}.frame IN SHARE MODE")
        line.once(b".append(", "deafen")
        with working(lambda: found.append(attempt(store, batch))):
            wait_blocked(postgres, f"%{store.where.schema}%append%")
            line_cut(line)
        assert isinstance(found[0], StoreUnknownError)
        with working(lambda: found.append(store.heads([0]))):
            wait_blocked(postgres, "%SET link%")
            other.execute("COMMIT")
    [[head]] = found[1:]
    assert (head.batch, head.seq) == (batch.id, 1)


@contextmanager
def working(work):
    """Something goes on beside the block, which ends when that has ended."""
    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join()


def wait_blocked(postgres, query):
    """Wait until a statement like this waits for a lock."""
    waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"
    with postgres.connect() as looks:
        while not looks.execute(waits, (query,)).fetchall():
            os.sched_yield()


def attempt(store, batch):
    """What comes of an append."""
    try:
        store.append(batch)
    except StoreUnknownError as unknown:
        return unknown
    return None


def line_cut(line):
    """Cut every call there is."""
    for end in list(line.open):
        try:
            end.shutdown(2)
        except OSError:
            continue


def test_a_read_is_made_again(store, line):
    """Whoever only looks does not notice, but for the time it takes."""
    scribe = Scribe(store)
    scribe.turn(ORDER)
    scribe.commit()
    for fate in ("lose", "deafen"):
        line.once(b"RECURSIVE turn", fate)
        assert ADDRESS in store.load([ADDRESS])
    assert line.cuts == 2


def test_mail_of_unknown_outcome_is_told_as_such(store, line):
    """The sender must look, or send with a key: it may have been posted."""
    line.once(b".post(", "deafen")
    with pytest.raises(StoreUnknownError):
        store.post([letter(ORDER, key="k")])
    [mail] = store.mail(EVERY, 0, 10)
    assert store.post([letter(ORDER, key="k")]) == [mail.id]


def test_an_idle_connection_that_was_cut_is_made_again_before_anything_is_sent(store, line):
    """Nothing is unknown: nothing was sent."""
    scribe = Scribe(store)
    line_cut(line)
    scribe.turn(ORDER)
    scribe.commit()
    line_cut(line)
    assert len(store.post([letter(ORDER)])) == 1


def test_a_server_that_stays_away_is_told(line, url):
    """After the time that the URL gives it, and by a code that scripts can tell."""
    store = PostgresStore(line.url(url).replace("wait=20", "wait=0.2"))
    line.close()
    trouble = refused("store.unreachable", lambda: store.heads([0]))
    assert "fish" not in str(trouble)
    store.close()
    refused("store.closed", lambda: store.heads([0]))


def test_of_two_owners_only_the_newest_commits(url):
    """The older one is fenced as a whole, writes nothing, acknowledges nothing."""
    older, newer = PostgresStore(url), PostgresStore(url)
    one = Scribe(older)
    [mail] = older.post([letter(ORDER)])
    two = Scribe(newer)
    one.turn(ORDER)
    for batch in (one.batch(), one.batch(fences=[0])):
        with pytest.raises(StoreConflictError) as caught:
            older.append(batch)
        assert caught.value.shards == (0,)
    two.turn(ORDER)
    two.commit()
    assert [each.id for each in older.mail(EVERY, 0, 10)] == [mail]
    for store in (older, newer):
        store.close()


# Engines


def effects(pawl, done):
    """Effects that note what they did, by key."""

    @pawl.effect("work")
    async def work(n, ctx):
        done.append(ctx.key)
        return {"n": n}

    pawl.effect("work.thread")(lambda n: {"n": n})
    pawl.load("tests/crash/flows.yaml")


@pytest.mark.parametrize("driver", ["inline", "thread"])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_a_server_may_restart_under_an_engine(postgres, url, driver, how):
    """In order or by a crash: nothing acknowledged is lost, and all that runs is finished."""
    done: list[str] = []

    async def run() -> list[object]:
        async with Pawl(url, driver=driver) as pawl:
            effects(pawl, done)
            first = await pawl.start("chain", {"n": 1}, id="before")
            await first.result()
            postgres.restart(how)
            runs = [await pawl.start("chain", {"n": n}, id=f"after-{n}") for n in range(5)]
            return [await run.result() for run in runs]

    results = asyncio.run(run())
    assert len(results) == 5
    assert len(done) == len(set(done))
    store = PostgresStore(url)
    assert store.integrity(deep=True) == ([], [])
    store.close()


@pytest.mark.parametrize("fate", ["lose", "deafen", "delay"])
def test_an_engine_survives_every_kind_of_cut(line, url, fate):
    """A commit is cut again and again; each run ends once, and each step was done once."""
    done: list[str] = []

    async def run() -> None:
        async with Pawl(line.url(url)) as pawl:
            effects(pawl, done)
            for n in range(4):
                line.once(b".append(", fate)
                run = await pawl.start("chain", {"n": n}, id=f"chain-{n}")
                line.release()
                await run.result()

    asyncio.run(run())
    assert line.cuts >= 4
    assert len(done) == len(set(done))


def test_an_older_engine_stops_when_another_takes_over(url):
    """It says so by its code, and whoever waits is told."""

    async def run() -> str:
        async with Pawl(url) as older:
            effects(older, [])
            await (await older.start("chain", {"n": 1}, id="one")).result()
            async with Pawl(url) as newer:
                effects(newer, [])
                with pytest.raises(Exception) as caught:
                    await older.start("chain", {"n": 2}, id="two")
                await (await newer.start("chain", {"n": 2}, id="two")).result()
            return caught.value.code

    assert asyncio.run(run()) == "shard.elsewhere"


def test_what_is_lost_and_found_is_logged_without_the_password(store, line, caplog):
    """An operator sees that the connection was lost, and that it is back."""
    scribe = Scribe(store)
    scribe.turn(ORDER)
    line.once(b".append(", "lose")
    with caplog.at_level(logging.DEBUG), pytest.raises(StoreUnknownError):
        scribe.commit()
    store.heads([0])
    text = caplog.text
    assert "was lost" in text
    assert "again" in text
    assert "fish" not in text
