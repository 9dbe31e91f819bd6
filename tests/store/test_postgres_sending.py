"""A commit that nobody waits for: the loop goes on, and its outcome is known all the same."""

import asyncio
import logging
import threading
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from pawlflow.driving import InlineDriver, SendingDriver
from pawlflow.embedded import Pawl
from pawlflow.store.port import StoreConflictError, StoreUnknownError
from pawlflow.store.postgres import PostgresStore
from pawlflow.testing.conformance_kit import ACME, Scribe, cell, refused
from tests.store.postgres_kit import Line
from tests.store.test_postgres_lost import effects, line_cut, wait_blocked

pytestmark = pytest.mark.req("R142", "R148", "R151", "R152")
ORDER = cell("order-1")
ADDRESS = (ACME, ORDER.key)


@pytest.fixture
def url(postgres):
    """A store of this test."""
    return postgres.fresh(wait=20)


@pytest.fixture
def store(url):
    """A handle, closed at the end."""
    made = PostgresStore(url)
    yield made
    made.close()


@contextmanager
def held_up(postgres, store):
    """No commit of a store comes to its end within the block."""
    with postgres.connect() as other:
        other.execute("BEGIN")
        other.execute(f"LOCK TABLE {store.where.schema}.frame IN SHARE MODE")
        yield lambda: wait_blocked(postgres, f"%{store.where.schema}%append%")
        other.execute("COMMIT")


# The store


def test_a_batch_that_was_begun_is_durable_at_its_end(store, postgres):
    """Until then its answer is simply not there, however often one looks."""
    scribe = Scribe(store)
    scribe.turn(ORDER)
    noticed: list[str] = []
    with held_up(postgres, store) as wait:
        begun = store.append_begin(scribe.batch(), lambda: noticed.append("noticed"))
        wait()
        assert [begun.answered() for _ in range(3)] == [False] * 3
    begun.end()
    assert begun.answered()
    assert ADDRESS in store.load([ADDRESS])
    assert noticed == []


def test_whatever_else_is_asked_comes_after_it(store, postgres):
    """A handle is one connection: who asks it waits, and who began is told that there is news."""
    scribe = Scribe(store)
    scribe.turn(ORDER)
    noticed: list[str] = []
    found: list[object] = []
    with held_up(postgres, store) as wait:
        begun = store.append_begin(scribe.batch(), lambda: noticed.append("noticed"))
        asking = threading.Thread(target=lambda: found.append(store.load([ADDRESS])))
        asking.start()
        wait()
        assert found == []
    asking.join()
    assert noticed == ["noticed"]
    assert ADDRESS in found[0]
    assert begun.answered()
    begun.end()


def test_a_batch_that_does_not_fit_is_refused_before_it_is_sent(store):
    """As `append` does: its author is wrong."""
    scribe = Scribe(store)
    scribe.turn(ORDER)
    headless = replace(scribe.batch(), heads=())
    refused("store.batch", lambda: store.append_begin(headless, lambda: None))
    assert store.load([ADDRESS]) == {}


def test_a_stale_fence_is_told_at_its_end(store, url):
    """Only the server knows that another has the shards now."""
    scribe = Scribe(store)
    scribe.turn(ORDER)
    newer = PostgresStore(url)
    newer.claim()
    begun = store.append_begin(scribe.batch(), lambda: None)
    with pytest.raises(StoreConflictError) as caught:
        begun.end()
    assert caught.value.shards == (0,)
    newer.close()


@pytest.mark.parametrize(("fate", "applied"), [("lose", False), ("deafen", True)])
def test_a_batch_whose_answer_is_lost_is_of_unknown_outcome(postgres, url, fate, applied):
    """Neither is assumed: the head that is read next tells by the id of the batch."""
    line = Line(postgres)
    store = PostgresStore(line.url(url))
    scribe = Scribe(store)
    scribe.turn(ORDER)
    batch = scribe.batch()
    line.once(b".append(", fate)
    with pytest.raises(StoreUnknownError):
        store.append_begin(batch, lambda: None).end()
    [head] = store.heads([0])
    assert (head.batch == batch.id) == applied
    store.close()
    line.close()


def test_a_batch_that_gave_way_goes_again(store, postgres):
    """The server chose it in a deadlock: nothing was written, so it is sent once more."""
    scribe = Scribe(store)
    scribe.turn(ORDER)
    schema = store.where.schema
    with postgres.connect() as other:
        other.execute("SET deadlock_timeout = '1h'")  # so the other one looks, and gives way
        other.execute("BEGIN")
        other.execute(f"LOCK TABLE {schema}.frame IN SHARE MODE")
        begun = store.append_begin(scribe.batch(), lambda: None)
        wait_blocked(postgres, f"%{schema}%append%")
        other.execute(f"SELECT 1 FROM {schema}.shard WHERE id = 0 FOR UPDATE")
        other.execute("COMMIT")
    begun.end()
    assert ADDRESS in store.load([ADDRESS])


def test_what_was_begun_is_waited_for_by_who_closes(url):
    """Its answer came, or nobody will ever know it: no connection is left in the middle."""
    store = PostgresStore(url)
    scribe = Scribe(store)
    scribe.turn(ORDER)
    store.append_begin(scribe.batch(), lambda: None)
    store.close()
    again = PostgresStore(url)
    assert ADDRESS in again.load([ADDRESS])
    assert again.owner() is None
    again.close()


# The engine


def engine(url):
    """An engine on a store, with its default driver."""
    return Pawl(url)


def test_the_loop_goes_on_while_the_server_commits(postgres, url):
    """A start waits for its commit; whatever else is on the loop does not."""

    async def run() -> None:
        async with engine(url) as pawl:
            assert type(pawl.driver) is SendingDriver
            effects(pawl, [])
            await (await pawl.start("chain", {"n": 1}, id="before")).result()
            with held_up(postgres, pawl.store) as wait:
                start = asyncio.ensure_future(pawl.start("chain", {"n": 2}, id="held"))
                await asyncio.to_thread(wait)
                for _ in range(100):
                    await asyncio.sleep(0)
                assert not start.done()
            await (await start).result()

    asyncio.run(run())


def test_what_is_asked_of_the_store_meanwhile_waits_its_turn(postgres, url):
    """A cell must be read while a commit is under way; both are done, one after the other."""

    async def run() -> None:
        async with engine(url) as pawl:
            effects(pawl, [])
            await (await pawl.start("chain", {"n": 1}, id="one")).result()
            with held_up(postgres, pawl.store) as wait:
                first = asyncio.ensure_future(pawl.start("chain", {"n": 2}, id="two"))
                await asyncio.to_thread(wait)
                second = asyncio.ensure_future(pawl.start("chain", {"n": 3}, id="three"))
                while not pawl.driver.asked:  # noqa: ASYNC110
                    await asyncio.sleep(0)
                assert not first.done()
            for each in (first, second):
                await (await each).result()
            assert not pawl.driver.asked

    asyncio.run(run())


def test_who_uses_the_store_beside_the_engine_does_not_stop_it(postgres, url):
    """The answer is read by somebody else, and the engine hears of it all the same."""

    async def run() -> None:
        async with engine(url) as pawl:
            effects(pawl, [])
            await (await pawl.start("chain", {"n": 1}, id="one")).result()
            with held_up(postgres, pawl.store) as wait:
                start = asyncio.ensure_future(pawl.start("chain", {"n": 2}, id="two"))
                await asyncio.to_thread(wait)
            assert pawl.store.owner() is not None
            await (await start).result()

    asyncio.run(run())


def test_an_engine_that_is_left_waits_for_the_commit_under_way(postgres, url):
    """A receipt nobody waits for is in it: its effect is not carried out again."""
    done: list[str] = []

    async def run() -> None:
        pawl = await engine(url).open()
        effects(pawl, done)
        with held_up(postgres, pawl.store) as wait:
            start = asyncio.ensure_future(pawl.start("chain", {"n": 1}, id="one"))
            await asyncio.to_thread(wait)
        await start
        while pawl.driver.sent is None or not done:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await pawl.close()
        async with engine(url) as again:
            effects(again, done)
            await again.run("one").result()

    asyncio.run(run())
    assert len(done) == len(set(done))


def test_a_connection_that_is_cut_while_the_loop_goes_on_is_made_again(postgres, url):
    """The loop sees its end; the batch is looked up by its id, and goes again if it must."""
    done: list[str] = []
    line = Line(postgres)

    async def run() -> None:
        async with engine(line.url(url)) as pawl:
            effects(pawl, done)
            await (await pawl.start("chain", {"n": 1}, id="one")).result()
            with held_up(postgres, pawl.store) as wait:
                start = asyncio.ensure_future(pawl.start("chain", {"n": 2}, id="two"))
                await asyncio.to_thread(wait)
                line_cut(line)
            await (await start).result()

    asyncio.run(run())
    line.close()
    assert len(done) == len(set(done))


def test_commits_are_told_to_the_log_when_they_are_over(postgres, url, caplog):
    """With how much was in them, as those of other stores."""

    async def run() -> None:
        async with engine(url) as pawl:
            effects(pawl, [])
            await (await pawl.start("chain", {"n": 1}, id="one")).result()

    with caplog.at_level(logging.INFO, "pawl.engine"):
        asyncio.run(run())
    told = [each.pawl for each in caplog.records if each.name == "pawl.engine"]
    flushed = [each for each in told if each["event"] == "shard.flushed"]
    assert [each["turns"] for each in flushed][-4:] == [1, 1, 1, 1]
    assert all(each["took_ms"] >= 0 for each in flushed)


def test_a_store_in_this_process_is_used_as_before(tmp_path):
    """There is nobody who could commit meanwhile."""

    async def run() -> type:
        async with Pawl(f"sqlite:///{tmp_path}/pawl.db") as pawl:
            return type(pawl.driver)

    assert asyncio.run(run()) is InlineDriver
