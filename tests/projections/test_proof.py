"""A store that was tampered with cannot pass: what was done is found, and its place is named."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from pawlflow.model.ids import CellId, Digest, InstanceId, Tenant, WorkflowName
from pawlflow.projections.proof import Problem, Report, verify_instance, verify_store
from pawlflow.projections.reading import story_of
from pawlflow.projections.story import Story
from pawlflow.store.memory import Memory, MemoryStore
from pawlflow.store.port import SHARDS, Head
from pawlflow.store.sqlite import SqliteStore
from tests.crash.stores import memory_store, sqlite_file
from tests.crash.tamperings import CHAIN, FRAME, TAMPERINGS, TURN, UNSEEN, Tampering


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with one of everything."""
    return sqlite_file(tmp_path_factory.mktemp("proof") / "whole.db")


def copied(whole: Path, tmp_path: Path, sql: str = "") -> Path:
    """A copy of the file, tampered with."""
    copy = tmp_path / "copy.db"
    shutil.copy(whole, copy)
    db = apsw.Connection(str(copy))
    db.create_scalar_function("changed", another)
    db.execute(sql)
    db.close()
    return copy


def another(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bytes):
        at = len(value) // 2
        return value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :] if value else b"\x00"
    if isinstance(value, str):
        return value + "x"
    return b"\x00" if value is None else value + 1


def proven(path: Path) -> Report:
    """What a proof says of a file."""
    store = SqliteStore(path)
    try:
        return verify_store(store)
    finally:
        store.close()


def fits(problem: Problem, tampering: Tampering, places: dict[str, Any]) -> bool:
    """Is this the problem that must be found, where it must be found?"""
    if problem.code != tampering.code:
        return False
    key = problem.cell.key if problem.cell else None
    kind, _, name = tampering.place.partition(" ")
    match kind:
        case "turn":
            found = (problem.shard, problem.seq, key, problem.turn)
            return found == places["turn 1" if name else "turn"]
        case "frame":
            return (problem.shard, problem.seq) == places["frame"]
        case "cell":
            return key == name
        case "shard":
            return problem.shard == places["shard of 2" if name else "shard"]
    return True


def places_of(path: Path) -> dict[str, Any]:
    """Where the things are that are tampered with."""
    db = apsw.Connection(str(path))
    (frame, at, turn, ref) = db.execute(
        f"SELECT pos, at, {TURN}, {CHAIN} FROM frame WHERE pos = {FRAME}"
    ).fetchone()
    registry = db.execute("SELECT pos FROM frame WHERE at <= 2 ORDER BY at DESC LIMIT 1").get
    db.close()
    shard = frame % SHARDS
    return {
        "frame": (shard, frame // SHARDS),
        "turn": (shard, frame // SHARDS + turn - at, "chain-1", 3),
        "turn 1": (shard, ref // SHARDS, "chain-1", 1),
        "shard": shard,
        "shard of 2": registry % SHARDS,
    }


def test_a_whole_store_passes(whole, tmp_path):
    """Everything there is was looked at, and nothing is wrong with it."""
    steps: list[tuple[int, int]] = []
    store = SqliteStore(copied(whole, tmp_path))
    report = verify_store(store, lambda done, total: steps.append((done, total)))
    counted = {
        name: store._db.execute(f"SELECT count(*) FROM {table}").get
        for name, table in (("frames", "frame"), ("entries", "entry"))
    }
    store.close()
    assert report.differences == []
    assert (report.shards, report.instances, report.live) == (32, 8, False)
    assert counted == {"frames": report.frames, "entries": report.entries}
    assert report.turns == report.entries - 3
    assert steps == sorted(steps)
    assert all(done <= total for done, total in steps)


def test_a_store_in_memory_passes():
    """The same, without a file."""
    report = verify_store(memory_store())
    assert report.differences == []
    assert report.instances == 8


def test_an_empty_store_passes(tmp_path):
    """Nothing is wrong with nothing."""
    assert proven(tmp_path / "new.db") == Report(shards=32, differences=[])


@pytest.mark.parametrize("tampering", TAMPERINGS, ids=lambda t: f"{t.what} {t.code}")
def test_tampering_is_found(whole, tmp_path, tampering):
    """Alter, delete, insert, reorder, truncate any row: the proof names it (RELIABILITY 1, 26)."""
    report = proven(copied(whole, tmp_path, tampering.sql))
    places = places_of(whole)
    assert any(fits(each, tampering, places) for each in report.differences), report.differences


@pytest.mark.parametrize("unseen", UNSEEN, ids=lambda t: t.what)
def test_what_cannot_be_seen_changes_nothing(whole, tmp_path, unseen):
    """Rows outside every chain: no answer follows from them."""
    before, after = SqliteStore(whole), SqliteStore(copied(whole, tmp_path, unseen.sql))
    try:
        assert verify_store(after).differences == []
        assert list(before.refs()) == list(after.refs())
    finally:
        before.close()
        after.close()


def test_rewriting_history_whole_is_found_by_deciding_again(whole, tmp_path):
    """Somebody who mends every hash still cannot make the kernel decide otherwise."""
    store = SqliteStore(copied(whole, tmp_path))
    story = story_of(store, Tenant("default"), InstanceId("chain-1"))
    store.close()
    forged = [*story.turns[:2], (story.turns[1][0], Digest(b"\x00" * 32)), *story.turns[3:]]
    assert verify_instance(story) is None
    differs = verify_instance(Story(story.cell, story.definition, forged, story.payloads))
    assert differs is not None
    assert (differs.turn, differs.where) == (3, "number")


def alter_turn(memory: Memory) -> None:
    ref = memory.addresses[Tenant("default"), InstanceId("chain-1")]
    memory.turns[ref][2] = msgspec.structs.replace(memory.turns[ref][2], data=b"\x00")


def alter_head(memory: Memory) -> None:
    ref = memory.addresses[Tenant("default"), InstanceId("chain-1")]
    memory.cells[ref] = msgspec.structs.replace(memory.cells[ref], state="failed")


def cut_frame(memory: Memory) -> None:
    ref = memory.addresses[Tenant("default"), InstanceId("chain-1")]
    memory.frames[ref % SHARDS].pop()


def forget_deadline(memory: Memory) -> None:
    memory.due.keys.clear()


def forget_calls(memory: Memory) -> None:
    memory.calls.keys.clear()


def forget_listing(memory: Memory) -> None:
    memory.index.instances.clear()


def orphan(memory: Memory) -> None:
    ref = memory.addresses.pop((Tenant("default"), InstanceId("saga-1")))
    memory.refs.remove(ref)


def misname(memory: Memory) -> None:
    ref = memory.addresses[Tenant("default"), InstanceId("chain-1")]
    memory.addresses[Tenant("default"), InstanceId("chain-1")] = next(
        other for other in memory.cells if other != ref
    )


@pytest.mark.parametrize(
    ("tamper", "code", "key"),
    [
        (alter_turn,      "store.damaged",  "chain-1"),
        (alter_head,      "cell.head",      "chain-1"),
        (cut_frame,       "journal.head",   None),
        (forget_deadline, "store.index",    "gate-1"),
        (forget_calls,    "store.index",    "stuck-1"),
        (forget_listing,  "store.index",    "saga-1"),
        (orphan,          "journal.orphan", None),
        (misname,         "cell.lost",      "chain-1"),
    ],
)  # fmt: skip
def test_tampering_in_memory_is_found(tamper: Callable[[Memory], None], code, key):
    """The proof reads a store by its port alone."""
    store = memory_store()
    assert isinstance(store, MemoryStore)
    tamper(store.shared)
    found = [(each.code, each.cell and each.cell.key) for each in verify_store(store).differences]
    assert (code, key) in found


class Busy(MemoryStore):
    """A store whose owner goes on while it is read."""

    def refs(self):
        for head in super().refs():
            yield head
            self.claim([0])

    def reviews(self, tenant):
        raise AssertionError("what is found by an index is not judged beside an owner")


def test_a_store_at_work_can_be_proven():
    """What an owner writes meanwhile is left out, and the report says so."""
    store = memory_store()
    assert isinstance(store, MemoryStore)
    report = verify_store(Busy(store.shared))
    assert report.live
    assert report.differences == []


class Raising(MemoryStore):
    """A store with one cell that nobody can read."""

    def story(self, cell):
        if cell[1] == "chain-1":
            raise RecursionError("too deep")
        return super().story(cell)


def test_a_program_that_raises_does_not_end_the_proof():
    """The cell is named, and the others are looked at."""
    store = memory_store()
    assert isinstance(store, MemoryStore)
    report = verify_store(Raising(store.shared))
    chain = CellId(Tenant("default"), WorkflowName("chain"), InstanceId("chain-1"))
    assert [(each.code, each.cell) for each in report.differences] == [("replay.raised", chain)]
    assert report.instances == 7


def test_heads_are_what_the_test_thinks():
    """Every column of a head is held against something: a new one needs a tampering above."""
    assert len(Head.__struct_fields__) == 15
