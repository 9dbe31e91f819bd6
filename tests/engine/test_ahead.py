"""Stepping ahead: while a commit is under way the next batch is made on top of it."""

from collections import deque

import pytest

from pawlflow import requests
from pawlflow.engine import outcomes
from pawlflow.engine.actions import Append
from pawlflow.engine.cells import Hot, Live
from pawlflow.engine.shard import AHEAD_MS, Limits
from pawlflow.model.ids import CellId, InstanceId, TimeMs, WorkflowName
from pawlflow.model.inputs import Tick
from pawlflow.model.operate import DiscardInput
from pawlflow.store.memory import MemoryStore
from pawlflow.store.port import StoreConflictError, StoreFullError, StoreUnknownError
from tests.engine.kit import CHAIN, Bench, starting

NAP = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: nap}
spec:
  steps:
    - {name: rest, sleep: 10s}
"""


class Waiting(Bench):
    """A bench whose commits are answered when the test says so."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.held: deque = deque()
        self.holds = False
        self.engine.carry = self.carry

    def carry(self, action):
        if self.held or (self.holds and isinstance(action, Append)):
            self.held.append(action)
        else:
            self.engine.ask(action)()

    def pump(self):
        """All that can be done while nobody answers."""
        self.engine.drain()

    def answer(self, error=None):
        """The answer of the commit under way; with an error nothing was written."""
        first = self.held.popleft()
        assert isinstance(first, Append)
        if error is None:
            self.engine.ask(first)()
        else:
            self.core.appended(error, self.clock.now())
        while self.held and not isinstance(self.held[0], Append):
            self.engine.ask(self.held.popleft())()
        self.pump()

    def under_way(self):
        """The batch of the commit that nobody has answered."""
        return self.held[0].batch

    def fresh(self, key, text=CHAIN):
        """A start with an id of its own: there is nothing to be read before."""
        cell, begin = starting(key, text, "default", {})
        self.tokens += 1
        self.core.submit(cell, begin, self.tokens, fresh=True)
        return cell

    def end(self):
        """Answer everything."""
        self.holds = False
        while self.held:
            self.answer()
        self.engine.drain()


@pytest.fixture
def bench():
    made = Waiting()
    made.load(CHAIN)
    made.holds = True
    return made


def frames_of(batch):
    return {each.frame.shard: each.frame for each in batch.frames}


@pytest.mark.req("R142")
def test_the_next_batch_is_stepped_while_one_commits(bench):
    """Its turns are made, and nothing of it is told or let out before both are durable."""
    first = bench.fresh("one")
    bench.pump()
    bench.fresh("two")
    bench.pump()

    assert [each.cell.key for each in bench.under_way().heads] == ["one"]
    assert bench.core.making.turns == 1
    assert bench.core.inbox.count == 0
    assert bench.published == []

    bench.answer()
    assert [each.cell.key for each in bench.under_way().heads] == ["two"]
    assert [call.cell.key for call in bench.calls()] == ["one"]

    bench.answer()
    assert [call.cell.key for call in bench.calls()] == ["one", "two"]
    assert bench.state(first) == "running"


@pytest.mark.req("R142")
def test_one_cell_goes_on_ahead_of_its_own_commit(bench):
    """Two batches about one instance: the second frame is chained to the first, turn after turn."""
    cell = bench.start("one")
    bench.pump()
    bench.hand(cell, requests.signal("hello", {}, "default", "ann"))
    bench.pump()
    before = bench.under_way()
    bench.answer()
    after = bench.under_way()

    [shard] = frames_of(after)
    assert frames_of(after)[shard].prev == frames_of(before)[shard].hash
    assert frames_of(after)[shard].first == frames_of(before)[shard].last + 1
    assert [each.turn for each in (*before.heads, *after.heads)] == [1, 2]
    bench.end()
    assert bench.store.load([("default", "one")])["default", "one"].head.turn == 2


@pytest.mark.parametrize(
    "error",
    [
        StoreFullError("store.full", "no room"),
        StoreUnknownError("store.unknown", "cut"),
        StoreConflictError([]),
    ],
    ids=["full", "unknown", "fenced"],
)
@pytest.mark.req("R142", "R144")
def test_both_are_taken_back_when_the_first_fails(bench, error):
    """Their inputs wait again in their order, and are stepped on what is durable."""
    bench.holds = False
    cell = bench.start("one")
    bench.engine.drain()
    bench.holds = True
    tokens = []
    for n in range(3):
        tokens.append(bench.hand(cell, requests.signal(f"s{n}", {}, "default", "ann")))
        bench.pump()
    assert bench.core.making.turns == 2
    bench.answer(error)
    assert not bench.replies.keys() & set(tokens)

    bench.clock.time = TimeMs(bench.clock.time + 2_000)  # a full store is tried again then
    bench.pump()
    bench.end()

    assert [bench.replies[each].turn for each in tokens] == [2, 3, 4]
    story = bench.store.story(("default", "one"))
    assert [each.number for each in story.entries] == [1, 2, 3, 4]
    assert len(bench.calls()) == 1


@pytest.mark.req("R151")
def test_what_is_ahead_goes_with_a_shard_that_goes(bench):
    """Another node owns the shard: what was stepped ahead for it is forwarded, unsaid."""
    bench.forwarded = []
    bench.engine.forward = bench.forwarded.append
    cell = bench.start("one")
    bench.pump()
    bench.hand(cell, requests.signal("hello", {}, "default", "ann"))
    bench.pump()
    [shard] = bench.core.making.shards

    outcomes.lose(bench.core, [shard], "it moved")
    bench.pump()

    assert [each.input.event for each in bench.forwarded] == ["hello"]
    assert bench.core.tips == {}
    bench.answer()
    assert shard not in bench.core.heads
    assert bench.published == []


@pytest.mark.req("R211")
def test_a_deadline_of_the_time_between_waits_for_its_own_batch():
    """All turns of a batch have one time; nothing is stepped ahead for longer than is told."""
    bench = Waiting()
    for text in (CHAIN, NAP):
        bench.load(text)
    bench.start("nap", NAP)
    bench.engine.drain()
    bench.holds = True
    bench.fresh("one")
    bench.pump()
    bench.clock.time = TimeMs(bench.clock.time + 9_990)
    bench.fresh("two")
    bench.pump()
    began = bench.clock.time
    bench.clock.time = TimeMs(began + 30)  # the nap is over now
    bench.fresh("three")
    bench.pump()
    bench.clock.time = TimeMs(began + AHEAD_MS + 1)
    bench.fresh("four")
    bench.pump()
    assert bench.core.next_wake() is None  # an answer comes before that
    assert bench.core.inbox.count == 1

    bench.answer()
    batch = bench.under_way()
    assert sorted(each.cell.key for each in batch.heads) == ["three", "two"]
    assert {each.now for each in batch.frames} == {began}
    bench.answer()
    assert sorted(each.cell.key for each in bench.under_way().heads) == ["four", "nap"]
    bench.end()
    assert bench.state(CellId("default", WorkflowName("nap"), InstanceId("nap"))) == "completed"


@pytest.mark.req("R142")
def test_what_looks_at_the_store_is_not_stepped_ahead(bench):
    """A letter is looked up beside the turns of its cell: all of them must be durable first."""
    bench.start("one")
    bench.pump()
    cell = requests.instance_cell("default", "one")
    token = bench.hand(cell, DiscardInput(7, "ann"))
    after = bench.start("two")
    bench.pump()
    assert token not in bench.replies
    assert bench.core.inbox.count >= 1

    bench.end()
    assert token in bench.replies
    assert bench.state(after) == "running"


def test_cells_that_are_ahead_stay_in_memory():
    """Whatever the bounds of the cache: they could only be read as they were before."""
    hot = Hot(cells_max=1)
    for key in ("a", "b", "c", "d"):
        hot.put(Live(CellId("t", WorkflowName("w"), InstanceId(key)), None, 0, None))
    hot.trim({("t", "a"): None, ("t", "c"): None})
    assert {key for _, key in hot.cells} == {"a", "c"}
    hot.trim()
    assert len(hot.cells) == 1


@pytest.mark.req("R142")
def test_a_cell_that_closes_is_kept_while_more_is_ahead(bench):
    """Closed by one batch, asked something by the next: it is not read between them."""
    bench.holds = False
    cell = bench.start("one")
    for _ in range(2):
        bench.engine.drain()
        bench.ok(bench.calls()[-1])
    bench.holds = True
    bench.pump()
    token = bench.hand(cell, requests.signal("late", {}, "default", "ann"))
    bench.pump()
    assert bench.core.making.touched
    bench.answer()
    assert ("default", "one") in bench.core.hot
    bench.end()
    assert bench.replies[token].code == "instance.closed"
    assert len(bench.store.dispositions("default", 10)) == 1


def test_a_small_cache_and_small_batches_change_nothing():
    """Two hundred instances, a cache of three and batches of two: all of them run to their end."""
    bench = Waiting(MemoryStore(), hot=Hot(cells_max=3), limits=Limits(turns=2))
    bench.load(CHAIN)
    bench.holds = True
    cells = [bench.start(f"i-{n}") for n in range(200)]
    answered = 0
    while answered < 400 or bench.held:
        for call in bench.calls()[answered:]:
            bench.ok(call)
        answered = len(bench.calls())
        bench.pump()
        if bench.held:
            bench.answer()
    assert {bench.state(cell) for cell in cells} == {"completed"}
    assert len({(call.key, call.attempt) for call in bench.calls()}) == 400


@pytest.mark.req("R142")
def test_a_batch_that_came_to_nothing_does_not_hold_up_what_waits(bench):
    """Stepped ahead, refused without a word, and too old to go on with: the next begins anew."""
    cell = bench.fresh("one")
    bench.pump()
    bench.core.submit(cell, Tick())  # it has no deadline: nobody is told
    bench.pump()
    assert bench.core.making is not None
    assert not bench.core.making.answers_something()
    bench.clock.time = TimeMs(bench.clock.time + AHEAD_MS + 1)
    token = bench.hand(cell, requests.signal("hello", {}, "default", "ann"))
    bench.pump()
    assert token not in bench.replies

    bench.answer()
    assert bench.held, "the signal is being committed"
    bench.end()
    assert bench.replies[token].turn == 2
