"""Deadlines in memory: whenever one moves an entry is left behind, and these must not pile up."""

import pytest
from msgspec.structs import replace

from pawlflow.definition.finding import Place
from pawlflow.definition.load import load_workflows
from pawlflow.engine import timers
from pawlflow.engine.timers import Deadlines
from pawlflow.testing.runner import Play, on_memory, plan_started
from pawlflow.testing.scenario import Answer, Scenario
from tests.engine.kit import Bench

STEPS = 300
CHAIN = "\n".join(
    [
        "apiVersion: pawl.dev/v1",
        "kind: Workflow",
        "metadata: {name: chain}",
        "spec:",
        "  timeout: 1d",
        "  mode: sequence",
        "  steps:",
        *(f"    - {{name: s{i}, run: do.it, timeout: 1m}}" for i in range(STEPS)),
    ]
)


class Counting(Deadlines):
    """Counts the looks."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def take_due(self, now):
        found = super().take_due(now)
        self.looks += len(found)
        return found


def head_of_a_chain():
    """The row of an instance that has a deadline."""
    bench = Bench()
    bench.load(CHAIN)
    bench.start("c-1", CHAIN)
    bench.engine.drain()
    (head,) = [turn.head for turn in bench.turns if turn.cell.key == "c-1"]
    return head


@pytest.mark.req("R221", "R106")
def test_a_long_chain_is_looked_at_once_for_each_deadline_it_had():
    """Each step's timeout is past when the chain is a minute on: one look, in vain, and no more."""
    (workflow,), _ = load_workflows(CHAIN, "chain.yaml")
    answers = {step.name: (Answer(ok={}, after_ms=1_000),) for step in workflow.steps}
    place = Place("c", 1, 1)
    scenario = Scenario(name="c", file="c", place=place, workflows=(workflow,), stubs=answers)
    play = Play(scenario, plan_started(scenario), None, on_memory)
    deadlines = play.host.engine.core.deadlines = Counting()

    play.run()

    assert play.host.state.closed == STEPS * 1_000
    assert deadlines.looks <= STEPS


def test_what_is_noted_twice_is_held_once():
    """By a turn, a look in vain, a page of the store: the same cell and time are one entry."""
    head = head_of_a_chain()
    deadlines = Deadlines()
    deadlines.read([])

    for _ in range(3):
        deadlines.note(head)
        deadlines.read([head])

    assert deadlines.next_at() == head.due_at
    assert deadlines.take_due(head.due_at) == [("default", "c-1")]
    assert (deadlines.take_due(head.due_at), deadlines.next_at()) == ([], None)
    deadlines.note(head)  # the clock was set back: it is due once more
    assert len(deadlines.take_due(head.due_at)) == 1


def test_a_deadline_that_is_held_back_is_not_left_to_the_store(monkeypatch):
    """Its row says an earlier time: behind the horizon nobody would read it again."""
    monkeypatch.setattr(timers, "HELD_MAX", 4)
    head = head_of_a_chain()
    deadlines = Deadlines()
    deadlines.read([])
    late = head.due_at + 1_000_000

    deadlines.hold(head, late)
    for i in range(5):
        deadlines.note(replace(head, ref=head.ref + 1 + i, due_at=head.due_at + i))

    assert deadlines.horizon < (late, 0)
    assert len(deadlines.heap) == 3
    assert [entry[0] for entry in deadlines.heap if entry[1] == head.ref] == [late]
    while deadlines.heap:
        deadlines.take_due(deadlines.next_at())
    assert (deadlines.held, deadlines.late) == ({}, 0)


@pytest.mark.req("R213")
def test_a_horizon_never_passes_over_what_was_left_to_the_store(monkeypatch):
    """Not even if much is held back: a row behind the horizon is read when its time comes."""
    monkeypatch.setattr(timers, "HELD_MAX", 2)
    head = head_of_a_chain()
    deadlines = Deadlines()
    deadlines.read([])

    for ref, due in ((1, 10), (2, 20), (3, 30)):
        deadlines.note(replace(head, ref=ref, due_at=due))
    assert deadlines.horizon == (10, 1)
    for ref in (7, 8, 9):
        deadlines.hold(replace(head, ref=ref, due_at=5), 25)
    for ref, due in ((4, 1), (5, 2)):
        deadlines.note(replace(head, ref=ref, due_at=due))

    assert deadlines.horizon < (20, 2)
    deadlines.take_due(10)
    assert deadlines.must_read()


@pytest.mark.req("R149", "R213")
def test_shards_that_were_gained_do_not_wait_for_a_deadline_far_away(monkeypatch):
    """What is held does not keep a node from reading: not at once, and not page by page."""
    monkeypatch.setattr(timers, "PAGE", 2)
    head = head_of_a_chain()
    rows = [replace(head, ref=ref, due_at=due) for ref, due in ((1, 10), (2, 20), (3, 30))]
    far = replace(head, ref=9, due_at=1_000_000)
    deadlines = Deadlines()
    deadlines.read([far])
    assert not deadlines.must_read()

    deadlines.horizon = timers.NOTHING_READ  # as shards are gained
    deadlines.note(rows[0])
    assert deadlines.must_read()
    deadlines.read([far], stale=True)  # it was asked for before
    assert deadlines.must_read()
    deadlines.read(rows[:2])
    assert not deadlines.must_read()
    assert len(deadlines.take_due(20)) == 2
    assert deadlines.must_read()
    deadlines.read([rows[2]])
    assert (deadlines.next_at(), deadlines.must_read()) == (30, False)
