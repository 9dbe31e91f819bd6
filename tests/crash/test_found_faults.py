"""Faults that crashes, broken disks and flipped bits brought to light, each with what must hold."""

import asyncio
import random
from pathlib import Path
from unittest import mock

import apsw
import msgspec
import pytest

from pawlflow import requests
from pawlflow.app import Nobody, engine_on
from pawlflow.embedded import Pawl
from pawlflow.engine import shard, staging
from pawlflow.engine.places import mail_of
from pawlflow.kernel import snapshot
from pawlflow.model.ids import InstanceId, Tenant
from pawlflow.projections.proof import verify_store
from pawlflow.store.memory import MemoryStore
from pawlflow.store.port import StoreError, StoreFullError
from pawlflow.store.sqlite import SqliteStore
from pawlflow.trouble import PawlError
from tests.crash.stores import FLOWS, register, sqlite_file

COUNT = (Tenant("default"), InstanceId("count-1"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store in which an instance has a snapshot."""
    return sqlite_file(tmp_path / "pawl.db")


def execute(path: Path, sql: str, *values: object) -> None:
    """Do something to a file that no program of ours does."""
    db = apsw.Connection(str(path))
    db.execute(sql, values)
    db.close()


async def ticks(path: Path) -> None:
    """Go on with the instance that has a snapshot."""
    pawl = Pawl(f"sqlite:///{path}")
    register(pawl)
    pawl.load(FLOWS)
    async with pawl:
        for n in range(4):
            await pawl.signal("count-1", "tick", {"n": n})


@pytest.mark.parametrize("seed", range(8))
def test_a_changed_snapshot_is_not_believed(path, seed):
    """One bit, and the engine would decide on a state that never was."""
    db = apsw.Connection(str(path))
    kept = bytearray(db.execute("SELECT data FROM snapshot").get)
    db.close()
    chance = random.Random(seed)
    kept[chance.randrange(len(kept))] ^= 1 << chance.randrange(8)
    execute(path, "UPDATE snapshot SET data = ?", bytes(kept))
    asyncio.run(ticks(path))
    execute(path, "DELETE FROM snapshot")
    store = SqliteStore(path)
    found, turns = verify_store(store).differences, store.load([COUNT])[COUNT].head
    store.close()
    assert found == []
    assert turns.state == "completed"


def test_a_snapshot_of_another_format_is_left_aside(path):
    """State bytes are a cache with a format number; an unknown one means: read the turns."""
    with mock.patch.object(snapshot, "SNAPSHOT_FORMAT", 99):
        asyncio.run(ticks(path))


@pytest.mark.parametrize("driver", ["inline", "thread"])
def test_who_waits_is_told_when_the_engine_breaks(driver):
    """A defect in staging stops the engine; the start that met it is answered too."""

    async def start() -> str:
        pawl = Pawl("memory:", driver=driver)
        register(pawl)
        pawl.load(FLOWS)
        await pawl.__aenter__()
        with mock.patch.object(staging.Staging, "add_turn", side_effect=ZeroDivisionError):
            try:
                async with asyncio.timeout(1):
                    await pawl.start("chain", {"n": 1})
            except PawlError as error:
                return error.code
            except TimeoutError:
                return "nothing"
        return "started"

    assert asyncio.run(start()) == "engine.broken"


class FullOnce(MemoryStore):
    """A store without room for the first batch."""

    room = False

    def append(self, batch):
        if not self.room:
            self.room = True
            raise StoreFullError("store.full", "no room")
        super().append(batch)


def test_unreadable_mail_is_answered_after_a_failed_commit(monkeypatch):
    """Its sender is told as soon as a commit gets through."""
    monkeypatch.setattr(shard, "FULL_RETRY_MS", 0)
    store = FullOnce()
    good = mail_of(requests.instance_cell("default", "a"), requests.signal("x", 1, "default", "me"))
    [number] = store.post([msgspec.structs.replace(good, input=b"\xff")])
    engine = engine_on(store, Nobody())
    for _ in range(5):
        engine.core.poked()
        engine.pump()
    answer = store.answer(number)
    assert answer is not None
    assert answer.code == "mail.unreadable"


def test_a_missing_shard_is_damage(path):
    """Damage is a StoreError that names the way out, whatever is missing."""
    execute(path, "DELETE FROM shard WHERE id = 7")
    store = SqliteStore(path)
    try:
        with pytest.raises(StoreError):
            store.claim()
    finally:
        store.close()


def test_a_changed_schema_is_damage(path):
    """A flipped bit in the text of the schema changes what every statement means."""
    execute(path, "DROP VIEW head; CREATE VIEW head AS SELECT ref, tenant, workflow, key FROM cell")
    with pytest.raises(StoreError):
        list(SqliteStore(path).refs())
