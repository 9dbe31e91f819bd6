"""PostgreSQL behind PgBouncer in transaction mode: the same promises, and pokes by looking."""

import asyncio
import logging
import shutil
import socket
import subprocess
import time
from contextlib import closing

import pytest

from pawlflow.app import open_store
from pawlflow.embedded import Pawl
from pawlflow.engine.clock import SystemClock
from pawlflow.moving import move
from pawlflow.sides import side_of
from pawlflow.store.postgres import PostgresStore
from pawlflow.store.postgres_health import health_of
from pawlflow.testing.conformance import StoreConformance
from pawlflow.testing.conformance_kit import Scribe, cell
from tests.servers import START_S, Postgres, free_port

CONFIG = """
[databases]
* = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 100
unix_socket_dir =
"""


class Bouncer:
    """A pooler of this run alone, as the user who runs the server."""

    def __init__(self, server: Postgres) -> None:
        self.server = server
        self.port = free_port()
        config = server.folder / "bouncer.ini"
        # `auth_type = any` wants the user of the database to be named.
        text = CONFIG.format(server=server.port, port=self.port)
        config.write_text(text.replace(f"port={server.port}", f"port={server.port} user=pawl"))
        config.chmod(0o644)
        program = shutil.which("pgbouncer")
        with (server.folder / "bouncer.log").open("ab") as log:
            words = [program, str(config)]
            self.process = subprocess.Popen(
                words, stdout=log, stderr=log, cwd=server.folder, **server.who
            )
        until = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert self.process.poll() is None, (server.folder / "bouncer.log").read_text()
                assert time.monotonic() < until
            else:
                return

    def url(self, **options):
        """A new store, through the pooler."""
        return self.server.fresh(**options).replace(f":{self.server.port}/", f":{self.port}/")

    def close(self) -> None:
        """End it by its id."""
        self.process.terminate()
        self.process.wait(START_S)


@pytest.fixture(scope="module")
def bouncer(postgres):
    """A pooler before the server."""
    if shutil.which("pgbouncer") is None:
        pytest.skip("no pgbouncer was found: install it with the system's packages")
    made = Bouncer(postgres)
    yield made
    made.close()


class TestPooledStore(StoreConformance):
    """Every promise of the port, through a pooler."""

    @pytest.fixture(autouse=True)
    def _schema(self, bouncer):
        self.url = bouncer.url()

    def open(self):
        """New and empty."""
        return PostgresStore(self.url)

    def reopen(self, store):
        """On what the closed one left."""
        store.close()
        return PostgresStore(self.url)


def test_a_pooler_is_noticed(bouncer, caplog):
    """Nobody could be heard through it: mail is looked for, and the way out is told."""
    store = PostgresStore(bouncer.url())
    store.claim()
    with caplog.at_level(logging.WARNING):
        assert store.listen() is None
    assert "pokes=HOST:PORT" in caplog.text
    store.close()


@pytest.mark.parametrize("direct", [False, True])
def test_an_engine_runs_behind_a_pooler(bouncer, postgres, direct):
    """With pokes from the server itself, or by looking for mail."""
    pokes = {"pokes": f"127.0.0.1:{postgres.port}"} if direct else {}
    url = bouncer.url(**pokes)

    async def run() -> dict[str, int]:
        pawl = Pawl(url)

        @pawl.effect("work")
        async def work(n):
            return {"n": n}

        pawl.effect("work.thread")(lambda n: {"n": n})
        pawl.load("tests/crash/flows.yaml")
        async with pawl:
            assert (pawl.pokes is not None) == direct
            assert (pawl.driver.safety_ms == 1_000) != direct
            runs = [await pawl.start("chain", {"n": n}, id=f"c-{n}") for n in range(20)]
            return [await run.result() for run in runs][-1]

    assert asyncio.run(run()) == {"n": 21}


@pytest.mark.req("R219")
def test_a_store_is_moved_through_a_pooler(bouncer, tmp_path):
    """Settings are those of one transaction, here too; and the doctor sees that it is there."""
    file, url = f"sqlite:///{tmp_path}/store.db", bouncer.url()
    with closing(open_store(file)) as store:
        scribe = Scribe(store)
        scribe.turn(cell("order-1"))
        scribe.commit()
    with closing(side_of(file)) as source, closing(side_of(url)) as target:
        assert move(source, target, SystemClock()).sizes["entries"] == 1
    assert health_of(url, SystemClock().now)["pooled"]
