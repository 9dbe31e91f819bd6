"""A disk that fails: what it did not take is never called done, and what was done is not lost."""

import asyncio
import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from pawlflow.embedded import Pawl
from pawlflow.engine import shard
from pawlflow.projections.proof import verify_store
from pawlflow.store.sqlite import SqliteStore
from pawlflow.trouble import Refused
from tests.crash.disk import cut_power
from tests.crash.parent import Nursery, Trial, check_world, outlines
from tests.crash.points import Fault
from tests.crash.stores import FLOWS, LARGE, register

DRIVERS = ["inline", "thread"]
FOREVER = 1_000_000_000
CLEAR = {"store.io", "store.unknown", "store.trouble", "store.full", "store.damaged"}


def survive(trial: Trial, fault: Fault, untouched: dict[str, object]) -> list[str]:
    """One life with a fault, a cut of the power, and a life without: what was said must stand."""
    said = trial.suffer(fault)
    cut_power(trial.path, random.Random(fault.nth))
    trial.check_copy()
    trial.finish()
    assert outlines(trial.path) == untouched
    check_world(trial)
    return said


def codes(said: list[str]) -> set[str]:
    """What a process said of its trouble, if it had any."""
    return {code for line in said if line.startswith("trouble") for code in line.split()[1:]}


def sweep(nursery: Nursery, folder: Path, driver: str, kind: Fault, step: int) -> Iterator[Trial]:
    """A new file for every nth operation, until the fault is no longer reached."""
    for nth in count(kind.nth, step):
        place = folder / str(nth)
        place.mkdir()
        pages = 20 if nth % 2 else 10_000
        trial = Trial(nursery, place / "pawl.db", driver, power=True, pages=pages)
        trial.fault = Fault(kind.operation, nth, kind.times, kind.full)
        yield trial
        if not trial.faulted:
            return


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(
    ("operation", "step"),
    [
        ("sync", 2),
        ("write", 41),
        ("read", 9),
    ],
)
def test_one_operation_fails(nursery, untouched, tmp_path, operation, step, driver):
    """The nth flush, write or read fails, for every n until none is reached (fault 5)."""
    one_fails(nursery, untouched, tmp_path, Fault(operation, 1), step, driver)


@pytest.mark.slow
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("operation", ["sync", "write", "read"])
def test_any_operation_fails(nursery, untouched, tmp_path, operation, driver):
    """The same with every n there is."""
    one_fails(nursery, untouched, tmp_path, Fault(operation, 1), 1, driver)


def one_fails(nursery, untouched, folder, kind, step, driver):
    """It goes on, or stops with a clear error; either way its word is good."""
    reached = 0
    for trial in sweep(nursery, folder, driver, kind, step):
        said = survive(trial, trial.fault, untouched)
        assert "end" in said or codes(said), said
        assert codes(said) <= CLEAR | {"closing", "IOError"}
        reached += trial.faulted
    assert reached >= 5


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("operation", ["sync", "write"])
def test_a_disk_that_stays_broken_stops_the_engine(nursery, untouched, tmp_path, operation, driver):
    """Whoever waits is told why; nothing is called done from then on."""
    trial = Trial(nursery, tmp_path / "pawl.db", driver, power=True, turns=1, hanging=2)
    said = survive(trial, Fault(operation, 5, FOREVER, after="open"), untouched)
    assert trial.faulted
    assert codes(said) & CLEAR


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("nth", [20, 120])
def test_a_full_disk_is_survived(nursery, untouched, tmp_path, nth, driver):
    """Twenty writes find no room, then there is some: what runs goes on, nothing is lost."""
    trial = Trial(nursery, tmp_path / "pawl.db", driver, power=True, turns=1)
    said = survive(trial, Fault("write", nth, 20, full=True, after="open"), untouched)
    assert trial.faulted
    assert said[-1] == "end"


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_full_disk_refuses_starts_only_while_it_is_full(nursery, untouched, tmp_path, driver):
    """The first starts find no room; when there is some, they are taken."""
    trial = Trial(nursery, tmp_path / "pawl.db", driver, power=True, turns=1, hanging=20)
    said = survive(trial, Fault("write", 1, 20, full=True, after="open"), untouched)
    assert trial.faulted
    assert any(line.startswith("full") for line in said)
    assert said[-1] == "end"


def test_a_store_without_room_refuses_starts_and_goes_on(tmp_path, monkeypatch):
    """SQLite's own limit: starts are refused with store.full, and what runs ends well after it."""
    monkeypatch.setattr(shard, "FULL_RETRY_MS", 10)
    path = tmp_path / "pawl.db"
    asyncio.run(fill_and_make_room(path))
    store = SqliteStore(path)
    assert verify_store(store).differences == []
    store.close()


async def fill_and_make_room(path: Path) -> None:
    """Fill a store to its limit, lift the limit, and see everything end."""
    pawl = Pawl(f"sqlite:///{path}")
    register(pawl)
    pawl.load(FLOWS)
    async with pawl:
        gate = await pawl.start("gate", {}, id="gate-1")
        count_ = await pawl.start("count", {}, id="count-1")
        assert isinstance(pawl.store, SqliteStore)
        db = pawl.store._db
        db.pragma("max_page_count", db.pragma("page_count") + 10)
        waiting = asyncio.ensure_future(pawl.signal("count-1", "tick", {"n": LARGE}))
        with pytest.raises(Refused) as refused:
            while True:
                await pawl.start("chain", {"n": 1})
        assert refused.value.code == "store.full"
        assert not waiting.done()
        db.pragma("max_page_count", 1_000_000)
        await waiting
        for n in range(3):
            await pawl.signal("count-1", "tick", {"n": n})
        assert await count_.result(timeout=30) == [LARGE, 0, 1, 2]
        await pawl.approve(gate.id, "sign-off", by="zoe", role="editor")
        await gate.result(timeout=30)
        await (await pawl.start("chain", {"n": 1})).result(timeout=30)
