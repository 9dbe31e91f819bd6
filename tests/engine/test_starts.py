"""Rates and delayed starts on the shard: by their own deadlines, whatever dies in between."""

import pytest
from msgspec.structs import replace

from pawlflow import requests
from tests.engine.kit import starting
from tests.engine.timed_kit import TENANT, World, ms, on_file, on_memory, told

LIMITED = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: mail}
spec:
  timeout: 1d
  priority: PRIORITY
  concurrency: {key: input.to, limit: 9}
  rate: {key: input.to, limit: 2, per: 1m}
  steps: [{name: a, run: do.a, timeout: 10m}]
"""
ORDINARY = LIMITED.replace("PRIORITY", "0")
URGENT = LIMITED.replace("PRIORITY", "7").replace("{name: mail}", "{name: mail, version: 2}")


@pytest.fixture(params=["memory", "sqlite"])
def stores(request, tmp_path):
    """A new store each, that outlives its engines."""
    made = iter(range(1_000))
    if request.param == "memory":
        return on_memory
    return lambda: on_file(tmp_path / f"pawl-{next(made)}.db")


def start(world: World, key: str, text: str = ORDINARY, at: str | None = None) -> str:
    """A start by mail, so that no crash loses it."""
    cell, begin = starting(key, text, TENANT, {"to": "ann"})
    return world.post(cell, begin if at is None else replace(begin, start_at=ms(at)))


def starts(world: World) -> dict[str, str | None]:
    """When each instance started, by its id."""
    heads = [each for each in world.bench.store.refs() if not each.cell.key.startswith("$")]
    return {
        head.cell.key: None if head.started_at is None else told(head.started_at)
        for head in sorted(heads, key=lambda head: head.cell.key)
    }


def played(store, crash=None) -> World:
    """Five of one key, two of them urgent, and one that is cancelled while it waits."""
    world = World(store, "2026-11-10T12:00Z")
    world.crash = crash
    world.apply(ORDINARY)
    for key in ("a", "b", "c", "d"):
        start(world, key)
    world.apply(URGENT)
    world.until("2026-11-10T12:00:20Z")
    start(world, "e", URGENT)
    start(world, "f", URGENT)
    cancel = requests.steer("cancel", TENANT, by="ann", comment=None)
    world.post(requests.instance_cell(TENANT, "e"), cancel)
    world.until("2026-11-10T12:05Z")
    return world


@pytest.mark.req("R86", "R214", "R226")
def test_a_rate_lets_them_start_by_its_own_deadline(stores):
    """Two a minute, the urgent one first; nobody has to ask again."""
    world = played(stores())

    assert starts(world) == {
        "a": "10T12:00:00",
        "b": "10T12:00:00",
        "c": "10T12:01:00",
        "d": "10T12:02:00",
        "e": None,
        "f": "10T12:01:00",
    }
    world.prove()


@pytest.mark.req("R214", "R148")
@pytest.mark.parametrize("when", ["before", "after"])
def test_nobody_is_forgotten_or_let_go_twice_wherever_the_engine_dies(stores, when):
    """Before or after any commit, every instance starts at the same time as in the calm.

    On a file some commits stand for all: each play takes a tenth of a second there.
    """
    calm = played(stores())
    every = 1 if stores is on_memory else 6
    for commit in range(1, calm.commits + 1, every):
        world = played(stores(), (commit, when))
        assert starts(world) == starts(calm), commit
        world.prove()


@pytest.mark.req("R215")
def test_an_instance_starts_at_its_time_and_later_only_if_nobody_was_there(stores):
    """The time is in the store, not in an engine."""
    world = World(stores(), "2026-11-10T12:00Z")
    world.apply(ORDINARY)
    start(world, "on-time", at="2026-11-10T13:00Z")
    start(world, "late", at="2026-11-10T15:00Z")
    start(world, "never", at="2026-11-10T16:00Z")
    assert start(world, "late", at="2026-11-10T14:00Z") == ""  # the same start, only once
    assert starts(world) == {"late": None, "never": None, "on-time": None}

    world.reborn()
    world.until("2026-11-10T14:30Z")
    world.asleep_until("2026-11-10T15:30Z")
    world.drain()
    cancel = requests.steer("cancel", TENANT, by="ann", comment=None)
    assert world.post(requests.instance_cell(TENANT, "never"), cancel) == ""
    world.until("2026-11-10T20:00Z")

    assert starts(world) == {"late": "10T15:30:00", "never": None, "on-time": "10T13:00:00"}
    world.prove()
