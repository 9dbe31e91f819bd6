"""The mailbox: the only door between cells and processes, and nothing goes through it twice."""

import pytest

from pawlflow import requests
from pawlflow.engine.places import mail_of, shard_of
from pawlflow.model.ids import CellId
from pawlflow.model.journal import Disposition
from pawlflow.model.operate import DiscardInput, RedriveInput
from pawlflow.model.payload import Payload
from pawlflow.model.records import read, write
from pawlflow.projections.proof import verify_store
from pawlflow.projections.reading import story_of
from pawlflow.projections.show import show
from pawlflow.store.port import Mail, StoreUnknownError
from tests.engine.kit import CHAIN, Bench, starting

WAITS = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: waits}
spec:
  steps:
    - {name: w, wait: {event: go, match: event.to == instance.id}}
"""
QUEUES = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: queues}
spec:
  concurrency: {key: input.repo, limit: 1}
  steps:
    - {name: s, run: do.s}
"""


@pytest.fixture
def bench():
    made = Bench()
    made.load(WAITS)
    made.load(QUEUES)
    return made


def signal(key):
    """Mail with a signal that no wait matches, so that it is kept and can be counted."""
    cell = requests.instance_cell("default", key)
    return mail_of(cell, requests.signal("go", {"to": "nobody"}, "default", "ann"))


def shown(bench, key):
    return show(story_of(bench.store, "default", key))


def signals(bench, cell):
    """How many signals the journal of an instance holds."""
    story = story_of(bench.store, cell.tenant, cell.key)
    return sum(data.count(b"signal.received") for data, _ in story.turns)


@pytest.mark.req("R225")
def test_mail_is_taken_in_the_commit_that_answers_it(bench):
    """The row is there until the turn is durable, and gone with it."""
    cell = bench.start("i-1", WAITS)
    bench.engine.drain()
    [number] = bench.store.post([signal("i-1")])
    assert bench.store.answer(number) is None

    bench.core.poked()
    bench.engine.drain()

    assert bench.store.answer(number).code == ""
    assert bench.store.mail(range(32), 0, 10) == []
    assert signals(bench, cell) == 1


@pytest.mark.req("R225")
@pytest.mark.parametrize("applied", [True, False], ids=["applied", "lost"])
def test_mail_is_taken_once_whatever_becomes_of_the_commit(bench, applied):
    """Unknown, and applied or not: one signal in the journal, one answer for the sender."""
    cell = bench.start("i-1", WAITS)
    bench.engine.drain()
    [number] = bench.store.post([signal("i-1")])

    def cut(action):
        bench.fail = None
        if applied:
            bench.store.append(action.batch)
        return StoreUnknownError("store.unknown", "cut")

    bench.fail = cut
    bench.core.poked()
    bench.engine.drain()

    assert signals(bench, cell) == 1
    assert bench.store.answer(number).code == ""


@pytest.mark.req("R225")
def test_mail_outlives_its_owner(bench):
    """The owner dies with mail in hand: the next one finds it."""
    cell = bench.start("i-1", WAITS)
    bench.engine.drain()
    [number] = bench.store.post([signal("i-1")])
    bench.core.poked()
    bench.core.work(bench.clock.now())  # it has asked for the mail, and dies

    second = Bench(bench.store)
    second.engine.drain()

    assert signals(second, cell) == 1
    assert second.store.answer(number).code == ""


@pytest.mark.req("R154")
def test_a_refusal_is_told_to_the_sender_and_kept(bench):
    """Whoever posted learns why; the refused input is in the journal."""
    bench.start("i-1", WAITS)
    bench.engine.drain()
    cell = requests.instance_cell("default", "i-1")
    approve = requests.decide("approve", "w", "default", by="ann", role=None)
    [number] = bench.store.post([mail_of(cell, approve)])

    bench.core.poked()
    bench.engine.drain()

    assert bench.store.answer(number).code == "approval.not_open"
    [found] = bench.store.dispositions("default", 10)
    assert b"approval.not_open" in found.entry.data


def test_mail_for_nobody_is_refused(bench):
    """No instance of that id: the sender is told, the mailbox does not fill up."""
    [number] = bench.store.post([signal("nobody")])
    bench.core.poked()
    bench.engine.drain()
    assert bench.store.answer(number).code == "instance.unknown"


def test_mail_that_is_no_input_is_refused(bench):
    """Bytes that cannot be read do not stop the shard."""
    cell = CellId("default", "", "i-1")
    [number] = bench.store.post(
        [Mail(shard=shard_of(cell), cell=cell, input=b"\xff\xff", beside=b"")]
    )
    bench.core.poked()
    bench.engine.drain()
    assert bench.store.answer(number).code == "mail.unreadable"


@pytest.mark.req("R86", "R226", "R214")
def test_slots_are_granted_one_after_the_other(bench):
    """Two wait while one runs; each close lets the next begin, across shards, by mail."""
    for i in range(3):
        bench.start(f"q-{i}", QUEUES, repo="same")
    bench.engine.drain()
    states = sorted(shown(bench, f"q-{i}")["state"] for i in range(3))
    assert states == ["queued", "queued", "running"]

    for _ in range(3):
        bench.ok(bench.calls()[-1])
        bench.engine.drain()

    assert {shown(bench, f"q-{i}")["state"] for i in range(3)} == {"completed"}
    assert len(bench.calls()) == 3


@pytest.mark.req("R45", "R226")
def test_an_event_reaches_the_wait_it_is_for(bench):
    """The topic knows who waits for which value; the others are not touched."""
    for i in range(40):
        bench.start(f"w-{i}", WAITS)
    bench.engine.drain()
    bench.turns.clear()

    cell = requests.topic_cell("default", "go")
    bench.ask(cell, requests.emit("go", {"to": "w-7"}, "default", "ann"))
    bench.engine.drain()

    assert shown(bench, "w-7")["state"] == "completed"
    touched = {turn.cell.key for turn in bench.turns} - {"$topic/go"}
    assert touched == {"w-7"}


@pytest.mark.req("R155", "R224")
@pytest.mark.parametrize("verb", ["redrive", "discard"])
def test_a_dead_letter_is_sent_once_more_or_thrown_away(verb, monkeypatch):
    """The cell goes on; what became of the letter is on the record beside it."""
    bench = Bench()
    bench.load(CHAIN)
    cell = bench.start("i-1")
    bench.engine.drain()

    def broken(*_):
        raise RuntimeError("a defect")

    with monkeypatch.context() as patched:
        patched.setattr("pawlflow.engine.stepping.step", broken)
        bench.ok(bench.calls()[0], {"x": 1})
        bench.engine.drain()
    [dead] = bench.store.dispositions("default", 10)
    entry = dead.seq * 32 + dead.shard
    letter: Disposition = read(Disposition, dead.entry.data, {})
    original = Payload.of([write(letter.input), dead.entry.beside], "default")
    made = RedriveInput(entry, original, "ann") if verb == "redrive" else DiscardInput(entry, "ann")

    bench.ask(cell, made)
    bench.engine.drain()

    assert bench.store.reviews("default") == []
    steps = shown(bench, "i-1")["steps"]
    expected = ("succeeded", "running") if verb == "redrive" else ("running", "pending")
    assert (steps["a"]["state"], steps["b"]["state"]) == expected
    kinds = [
        read(Disposition, each.entry.data, {}).kind
        for each in bench.store.dispositions("default", 10)
    ]
    assert kinds == ["redriven" if verb == "redrive" else "discarded", "dead"]


@pytest.mark.req("R224")
def test_a_start_that_breaks_is_a_dead_letter_too(monkeypatch):
    """There is no instance to put aside, but its input is kept and can be sent once more."""
    bench = Bench()
    bench.load(CHAIN)
    cell, begin = starting("i-1", CHAIN, "default", {"x": 1})

    def broken(*_):
        raise RuntimeError("a defect")

    with monkeypatch.context() as patched:
        patched.setattr("pawlflow.engine.stepping.step", broken)
        [number] = bench.store.post([mail_of(cell, begin)])
        bench.core.poked()
        bench.engine.drain()
    assert bench.store.answer(number).code == "cell.raised"
    [dead] = bench.store.dispositions("default", 10)
    letter: Disposition = read(Disposition, dead.entry.data, {})
    original = Payload.of([write(letter.input), dead.entry.beside], "default")

    bench.ask(letter.cell, RedriveInput(dead.seq * 32 + dead.shard, original, "ann"))
    bench.engine.drain()

    assert shown(bench, "i-1")["state"] == "running"
    assert shown(bench, "i-1")["input"] == {"x": 1}
    assert verify_store(bench.store).differences == []
