"""pg_dump of a store that is at work, and its restore: whole, and everything in it goes on."""

import asyncio
import subprocess

import pytest

from pawlflow.app import open_store
from pawlflow.embedded import Pawl
from pawlflow.projections.proof import verify_store
from tests.crash.child import Ledger, register
from tests.crash.stores import FLOWS

STARTED = 72
AHEAD = 18  # instances before the dump begins
KINDS = {"chain": {"n": 1}, "fan": {}, "saga": {}, "retry": {}, "nap": {}, "gate": {}}


def engine(url, folder, name):
    """An engine with the functions of the workflows."""
    pawl = Pawl(url)
    register(pawl, Ledger(folder / f"{name}.ledger"))
    pawl.load(FLOWS)
    return pawl


async def dumped(url, folder, words):
    """Start instances one after the other; a dump is made meanwhile."""
    async with engine(url, folder, "first") as pawl:
        for number in range(STARTED):
            workflow = [*KINDS][number % len(KINDS)]
            await pawl.start(workflow, KINDS[workflow], id=f"{workflow}-{number}")
            if number == AHEAD:
                dump = await asyncio.create_subprocess_exec(*map(str, words))
        assert await dump.wait() == 0


async def finished(url, folder):
    """Let everything that was restored come to its end."""
    async with engine(url, folder, "second") as pawl:
        keys = [row["id"] for row in pawl.list(limit=1_000)]
        for key in keys:
            if key.startswith("gate"):
                await decided(pawl, key)
        runs = (pawl.run(key).result(timeout="40s") for key in keys)
        await asyncio.gather(*runs, return_exceptions=True)
        return {row["id"]: row["state"] for row in pawl.list(limit=1_000)}


async def decided(pawl, key):
    """Agree once the gate asks."""
    async for told in pawl.run(key).events():
        if told["eventType"] == "ApprovalRequested":
            await pawl.approve(key, "sign-off", by="zoe", role="editor")
            return


@pytest.mark.req("R140", "R219")
def test_a_dump_of_a_store_at_work_is_whole_and_goes_on(postgres, tmp_path):
    """It is of one moment: chains, rows and decisions agree, and what was in flight ends."""
    url, file = postgres.fresh(), postgres.folder / "store.dump"
    schema = url.partition("schema=")[2]
    place = ["-h", "127.0.0.1", "-p", postgres.port, "-U", "pawl"]
    words = [
        postgres.bin / "pg_dump",
        *place,
        "-d",
        "pawl",
        "-n",
        schema,
        "-Fc",
        "-f",
        tmp_path / file.name,
    ]

    asyncio.run(dumped(url, tmp_path, words))

    postgres.execute("CREATE DATABASE restored", database="postgres")
    back = [postgres.bin / "pg_restore", *place, "-d", "restored", tmp_path / file.name]
    subprocess.run([str(word) for word in back], check=True, capture_output=True)
    other = url.replace("/pawl?", "/restored?")
    for where in (other, url):
        store = open_store(where)
        assert verify_store(store).differences == []
        store.close()
    ended = asyncio.run(finished(other, tmp_path))
    assert AHEAD <= len(ended) <= STARTED
    assert all(
        state == ("failed" if key.startswith("saga") else "completed")
        for key, state in ended.items()
    ), ended
    store = open_store(other)
    assert verify_store(store).differences == []
    store.close()
