"""A failover under load: the replica that commits wait for takes over, and nothing is lost."""

import asyncio
import logging
import signal

import pytest

from pawlflow.embedded import Pawl
from pawlflow.store.port import Filter
from pawlflow.store.postgres import PostgresStore
from pawlflow.testing.conformance_kit import Scribe, refused
from tests.servers import NoServerError, Postgres


@pytest.fixture
def pair():
    """A server and its replica."""
    try:
        primary = Postgres()
    except NoServerError as trouble:
        pytest.skip(str(trouble))
    try:
        replica = Postgres(primary)
        yield primary, replica
        replica.remove()
    finally:
        primary.remove()


def wait_for(primary, state):
    """Wait until the replica follows like this."""
    while primary.execute("SELECT sync_state FROM pg_stat_replication") != [(state,)]:
        pass


@pytest.mark.req("R142", "R151")
def test_an_engine_goes_on_with_the_replica(pair, caplog):
    """A URL that names both; what was acknowledged is there, and the old epochs are too."""
    primary, replica = pair
    wait_for(primary, "async")
    both = primary.url.replace("127.0.0.1", f"127.0.0.1:{replica.port},127.0.0.1")
    with caplog.at_level(logging.WARNING):
        loose = PostgresStore(both)
        loose.claim()
    assert "replicas that commits do not wait for" in caplog.text
    loose.close()
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'replica'")
    primary.execute("SELECT pg_reload_conf()")
    wait_for(primary, "sync")
    acknowledged: list[str] = []

    async def run() -> None:
        pawl = Pawl(both)

        @pawl.effect("work")
        async def work(n):
            return {"n": n}

        pawl.effect("work.thread")(lambda n: {"n": n})
        pawl.load("tests/crash/flows.yaml")
        async with pawl:
            runs = []
            for n in range(12):
                if n == 6:
                    primary.stop(signal.SIGQUIT)
                    replica.execute("SELECT pg_promote()")
                runs.append(await pawl.start("chain", {"n": n}, id=f"c-{n}"))
                acknowledged.append(f"c-{n}")
            for run in runs:
                await run.result()

    asyncio.run(run())
    store = PostgresStore(both)
    heads = store.instances(Filter(tenant="default", limit=100))
    assert {head.cell.key: head.state for head in heads} == dict.fromkeys(acknowledged, "completed")
    assert store.integrity(deep=True) == ([], [])
    epochs = [head.epoch for head in store.heads(range(32))]
    assert len(set(epochs)) == 1
    assert Scribe(store).heads[0].epoch == epochs[0] + 1
    store.close()


def test_a_replica_alone_is_not_taken_for_the_store(pair):
    """It can be read from, and written nowhere: it is no place for an owner."""
    _, replica = pair
    trouble = refused("store.unreachable", lambda: PostgresStore(replica.url))
    assert "read-only" in str(trouble)
