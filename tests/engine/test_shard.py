"""The shard core: what goes into a commit, what waits for it, and what survives its failure."""

from functools import partial

import pytest

from pawlflow import requests
from pawlflow.engine.actions import Accepted
from pawlflow.engine.cells import Hot
from pawlflow.engine.fair import QUANTUM_TURNS
from pawlflow.engine.shard import TURNS_MAX, Limits
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import TimeMs
from pawlflow.store.port import (
    StoreError,
    StoreFullError,
    StoreUnknownError,
)
from tests.engine.kit import CHAIN, Bench, starting

WAITING = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: parked}
spec:
  steps:
    - {name: nap, sleep: 10s}
"""


@pytest.fixture
def bench():
    made = Bench()
    made.load(CHAIN)
    made.published.clear()
    made.appended.clear()
    return made


def run_to_end(bench):
    """Answer every call until there is none."""
    done = 0
    while done < len(bench.calls()):
        for call in bench.calls()[done:]:
            bench.ok(call, {"n": done})
            done += 1
        bench.engine.drain()


@pytest.mark.req("R27", "R148")
def test_nothing_leaves_before_the_commit(bench):
    """Neither effect, reply nor notice is seen while the commit is under way."""
    seen = []
    bench.fail = lambda _: seen.append((len(bench.published), dict(bench.replies))) and None

    bench.start("i-1")
    bench.engine.drain()

    assert seen == [(0, {1: bench.replies[1]})]  # only the answer to the kit's own publishing
    assert [call.step for call in bench.calls()] == ["a"]
    assert isinstance(bench.replies[2], Accepted)


@pytest.mark.req("R152")
def test_many_instances_share_a_commit(bench):
    """Starts that wait together are committed together, a frame per shard."""
    for i in range(200):
        bench.start(f"i-{i}")

    bench.engine.drain()

    sizes = [sum(len(f.entries) for f in each.batch.frames) for each in bench.appended]
    assert sizes == [200]
    shards = [frame.frame.shard for frame in bench.appended[0].batch.frames]
    assert len(shards) == len(set(shards)) == 32


def test_a_commit_is_bounded_by_turns_bytes_and_time(bench):
    """500 turns, a number of bytes, or the time stepping takes: whichever comes first."""
    for i in range(TURNS_MAX + 20):
        bench.start(f"i-{i}")
    bench.engine.drain()
    assert [turns(each) for each in bench.appended] == [TURNS_MAX, 20]

    small = Bench(limits=Limits(bytes=2_000))
    small.load(CHAIN)
    small.appended.clear()
    for i in range(20):
        small.start(f"i-{i}")
    small.engine.drain()
    assert max(turns(each) for each in small.appended) < 10

    slow = Bench()
    slow.load(CHAIN)
    slow.appended.clear()
    slow.clock.stopwatch = iter(range(1, 10_000)).__next__  # every look takes a second
    for i in range(5):
        slow.start(f"i-{i}")
    slow.engine.drain()
    assert [turns(each) for each in slow.appended] == [1, 1, 1, 1, 1]


def turns(action):
    """How many entries a batch holds."""
    return sum(len(frame.entries) for frame in action.batch.frames)


@pytest.mark.req("R171", "R52")
def test_a_loud_tenant_does_not_keep_a_quiet_one_waiting():
    """Ten thousand inputs of one tenant wait like ten of another: by quanta, in turn."""
    bench = Bench(limits=Limits(turns=64))
    bench.load(CHAIN, "loud")
    bench.load(CHAIN, "quiet")
    bench.appended.clear()
    for i in range(1_000):
        bench.start(f"l-{i}", tenant="loud")
    for i in range(10):
        bench.start(f"q-{i}", tenant="quiet")

    bench.engine.drain()

    order = [head.cell.tenant for action in bench.appended for head in action.batch.heads]
    assert max(i for i, tenant in enumerate(order) if tenant == "quiet") < 4 * QUANTUM_TURNS


@pytest.mark.req("R40")
def test_receipts_go_before_starts_but_starts_are_not_starved(bench):
    """What continues work is stepped first; a share of each batch is kept for beginnings."""
    for i in range(600):
        bench.start(f"i-{i}")
    bench.engine.drain()
    calls = bench.calls()
    bench.appended.clear()

    for i in range(100):
        bench.core.submit(*starting(f"new-{i}", CHAIN, "default", {}), fresh=True)
    for call in calls:
        bench.ok(call)
    bench.engine.drain()

    first = bench.appended[0].batch
    starts = [head for head in first.heads if head.turn == 1]
    assert 0 < len(starts) <= 64
    assert len(first.heads) - len(starts) >= 400


def test_starts_are_shed_when_too_many_wait(bench):
    """Beginnings are refused first; what continues work is still taken."""
    bench.core.limits = Limits(starts=200)
    for i in range(100):
        bench.start(f"i-{i}")
    cell, begin = starting("one-too-many", CHAIN, "default", {})
    token = bench.hand(cell, begin)
    refused = [each for each in bench.core.out if each.token == token]
    assert refused[0].outcome.code == "engine.overloaded"


@pytest.mark.req("R93")
def test_starting_twice_is_starting_once(bench):
    """The same id and input: the same instance. Another input: a conflict."""
    cell, begin = starting("same", CHAIN, "default", {"x": 1})
    _, other = starting("same", CHAIN, "default", {"x": 2})

    first = bench.ask(cell, begin)
    again = bench.ask(cell, begin)
    conflict = bench.ask(cell, other)

    assert (first.existing, again.existing) == (False, True)
    assert conflict == Rejected("instance.conflict", "same was started as chain with another input")


@pytest.mark.req("R134")
def test_claiming_twice_is_claiming_once(bench):
    """The same person again: fine, and no turn. Another: refused, and on the record."""
    gated = CHAIN.replace("{name: a, run: do.a}", "{name: a, approval: {}}")
    bench.load(gated)
    cell = bench.start("same", gated)
    bench.engine.drain()
    claim = partial(requests.decide, "claim", "a", "default", role=None)

    first = bench.ask(cell, claim(by="ann"))
    again = bench.ask(cell, claim(by="ann"))
    other = bench.ask(cell, claim(by="bob"))

    assert (first.existing, again.existing) == (False, True)
    assert first.turn == again.turn
    assert other == Rejected("review.held", "a is claimed by ann")
    assert len(bench.store.dispositions("default", 10)) == 1
    assert [each.claimed_by for each in bench.store.reviews("default")] == ["ann"]


@pytest.mark.req("R28")
def test_an_unknown_commit_that_was_lost_is_made_again(bench):
    """Nothing is assumed: the head is read, and the inputs are stepped again on what is there."""
    bench.fail = once(StoreUnknownError("store.unknown", "cut"))

    cell = bench.start("i-1")
    bench.engine.drain()

    assert isinstance(bench.replies[2], Accepted)
    assert bench.state(cell) == "running"
    assert len(bench.calls()) == 1
    assert len(bench.appended) == 2


def test_an_unknown_commit_that_was_applied_is_not_made_twice(bench):
    """The batch's id in the head tells that it stands; its effects go out once."""

    def applied(action):
        bench.fail = None
        bench.store.append(action.batch)
        return StoreUnknownError("store.unknown", "cut after it was durable")

    bench.fail = applied
    cell = bench.start("i-1")
    bench.engine.drain()

    assert isinstance(bench.replies[2], Accepted)
    assert len(bench.appended) == 1
    run_to_end(bench)
    assert bench.state(cell) == "completed"


@pytest.mark.req("R151")
def test_a_fenced_node_says_nothing_more(bench):
    """Another node owns the shards: no effect, no acceptance, only "elsewhere"."""
    other = Bench(bench.store)
    cell = bench.start("i-1")

    bench.engine.drain()

    assert bench.replies[2].code == "shard.elsewhere"
    assert bench.calls() == []
    assert bench.trouble
    other.start("i-1")
    other.engine.drain()
    assert other.state(cell) == "running"


def test_a_full_store_refuses_starts_and_keeps_the_rest(bench):
    """New starts are refused, what runs goes on by itself once there is room again."""
    cell = bench.start("i-1")
    bench.engine.drain()
    bench.fail = lambda _: StoreFullError("store.full", "no room")
    bench.ok(bench.calls()[0])
    wake = bench.engine.pump()
    assert wake == bench.clock.time + 1_000

    refused = bench.ask(*starting("i-2", CHAIN, "default", {}))
    assert refused.code == "store.full"

    bench.fail = None
    bench.clock.time = TimeMs(wake)
    bench.engine.drain()
    assert [call.step for call in bench.calls()] == ["a", "b"]
    run_to_end(bench)
    assert bench.state(cell) == "completed"


def test_a_store_that_fails_stops_everything(bench):
    """An error nobody can name: nothing more is promised, and everybody who waits is told."""
    bench.fail = lambda _: StoreError("store.damaged", "the disk is on fire")
    bench.start("i-1")
    bench.engine.drain()

    assert bench.replies[2] == Rejected("store.damaged", "the disk is on fire")
    assert bench.ask(*starting("i-2", CHAIN, "default", {})).code == "store.damaged"
    assert bench.calls() == []


def once(error):
    """A fault that happens at the first commit only."""
    left = [error]
    return lambda _: left.pop() if left else None


@pytest.mark.req("R39", "R143")
def test_a_new_owner_offers_open_calls_again_with_the_same_identity(bench):
    """Whether or not they were published: every open call, same id, same key."""
    bench.start("i-1")
    bench.engine.drain()
    [before] = bench.calls()

    second = Bench(bench.store)
    second.engine.drain()

    [after] = second.calls()
    assert (after.id, after.key, after.attempt) == (before.id, before.key, before.attempt)
    assert second.published[0].again


@pytest.mark.req("R150")
def test_silent_calls_are_offered_again_after_30_seconds_then_less_often(bench):
    """A lost command needs no restart: 30 s, then doubling."""
    bench.start("i-1")
    bench.engine.drain()
    begun = bench.clock.time
    seen = []
    while len(seen) < 4:
        before = len(bench.published)
        wake = bench.engine.pump()
        if len(bench.published) > before:
            seen.append((bench.clock.time - begun) // 1000)
        bench.clock.time = TimeMs(wake)

    assert seen == [31, 92, 213, 454]
    assert len({call.id for call in bench.calls()}) == 1


@pytest.mark.req("R106", "R109")
def test_deadlines_beyond_memory_fire_from_the_store(bench):
    """Only the earliest thousand are in memory; the rest are read when those run out."""
    bench.load(WAITING)
    for i in range(2_500):
        bench.start(f"p-{i}", WAITING)
    wake = bench.engine.pump()
    assert len(bench.core.deadlines.heap) <= 8_192
    again = Bench(bench.store)
    again.clock.time = TimeMs(wake - 1)
    again.engine.drain()
    assert len(again.core.deadlines.heap) <= 1_000

    again.clock.time = TimeMs(wake)
    again.engine.drain()

    closed = [turn for turn in again.turns if turn.head.state == "completed"]
    assert len({turn.cell.key for turn in closed}) == len(closed) == 2_500


@pytest.mark.req("R54", "R213")
def test_the_hot_cache_is_bounded_and_eviction_changes_nothing():
    """With room for three cells, forty instances still finish as they should."""
    bench = Bench(hot=Hot(3, 1_000_000))
    bench.load(CHAIN)
    cells = [bench.start(f"i-{i}") for i in range(40)]
    bench.engine.drain()
    assert len(bench.core.hot.cells) <= 3
    run_to_end(bench)
    assert {bench.state(cell) for cell in cells} == {"completed"}
    assert len(bench.core.hot.cells) <= 3


@pytest.mark.req("R224", "R16")
def test_a_program_that_raises_is_put_aside_and_the_others_go_on(bench, monkeypatch):
    """Its input is a dead letter with all that belongs to it; a human may send it once more."""
    good, bad = bench.start("good"), bench.start("bad")
    bench.engine.drain()
    real = __import__("pawlflow.engine.stepping", fromlist=["step"]).step

    def broken(cell, incoming, stamps):
        if cell.state.cell.key == "bad":
            raise ZeroDivisionError("a defect of ours")
        return real(cell, incoming, stamps)

    monkeypatch.setattr("pawlflow.engine.stepping.step", broken)
    run_to_end(bench)
    assert bench.state(good) == "completed"
    assert bench.store.reviews("default")[0].kind == "quarantine"
    [dead] = bench.store.dispositions("default", 10)
    assert b"cell.raised" in dead.entry.data
    monkeypatch.undo()

    refused = bench.ask(bad, requests.steer("pause", "default", by="ann", comment=None))
    assert refused.code == "cell.quarantined"
