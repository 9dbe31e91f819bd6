"""A PostgreSQL server that is slow: what waits is bounded, starts are shed, receipts never."""

import asyncio
import threading

import pytest

from pawlflow import Overloaded, Pawl
from pawlflow.engine.shard import Limits
from tests.store.postgres_kit import Line

TWO = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: two}
spec:
  steps:
    - {name: w, wait: {event: go}}
    - {name: s, run: work, dependsOn: [w]}
"""
ROOM = 200


class Slow(Line):
    """A line on which commits stand still until they are let through."""

    def __init__(self, server):
        self.through = threading.Event()
        self.through.set()
        self.standing = threading.Event()
        super().__init__(server)
        self.watch = self.hold

    def hold(self, data):
        if b"append(" in data and not self.through.is_set():
            self.standing.set()
            self.through.wait(30)
        return "pass"


@pytest.mark.req("R214")
def test_a_slow_server_sheds_starts_and_takes_everything_else(postgres, tmp_path):
    """While a commit stands still: so many starts wait, no more; signals and receipts are taken."""
    (tmp_path / "two.yaml").write_text(TWO)
    line = Slow(postgres)

    async def main():
        url = line.url(postgres.fresh())
        async with Pawl(url, driver="thread", limits=Limits(starts=ROOM)) as pawl:
            pawl.load(tmp_path / "two.yaml")
            ended = asyncio.Queue()

            @pawl.effect("work")
            async def work(ctx):
                ended.put_nowait(ctx.instance)

            running = await pawl.start_many("two", [(f"r-{n}", {}) for n in range(50)])
            line.through.clear()
            first = asyncio.ensure_future(pawl.start("two", id="first"))
            await asyncio.to_thread(line.standing.wait, 20)
            inbox = pawl.driver.engine.core.inbox

            starts = [asyncio.ensure_future(pawl.start("two", tenant="a")) for _ in range(1_000)]
            others = [asyncio.ensure_future(pawl.start("two", tenant="b")) for _ in range(10)]
            signals = [asyncio.ensure_future(pawl.signal(each.id, "go")) for each in running]
            shed = 0
            while not (shed and all(each.done() for each in starts[ROOM:])):
                await asyncio.sleep(0)
                shed = sum(each.done() for each in starts)
            assert inbox.starts <= ROOM
            assert inbox.count <= ROOM + len(signals)
            assert not any(each.done() for each in (first, *others, *signals))

            line.through.set()
            told = await asyncio.gather(*starts, return_exceptions=True)
            for each in (first, *others, *signals):
                await each
            done = [await ended.get() for _ in running]
            return told, done

    try:
        told, done = asyncio.run(main())
    finally:
        line.close()

    refused = [each for each in told if isinstance(each, Overloaded)]
    assert len(told) - len(refused) == ROOM // 2
    assert {(each.code, each.retry_after_s) for each in refused} == {("engine.overloaded", 5)}
    assert sorted(done) == sorted(f"r-{n}" for n in range(50))
