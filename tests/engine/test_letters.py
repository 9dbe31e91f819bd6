"""Dead letters in the engine: each is dealt with once, and nobody is answered twice."""

import pytest

from pawlflow import requests
from pawlflow.engine.actions import Accepted
from pawlflow.engine.places import mail_of
from pawlflow.model.ids import StepKey, Tenant
from pawlflow.model.inputs import Receipt, StartInstance
from pawlflow.model.journal import Disposition
from pawlflow.model.operate import DiscardInput, RedriveInput
from pawlflow.model.payload import Payload
from pawlflow.model.records import read
from pawlflow.projections.proof import verify_store
from pawlflow.projections.reading import beside_of
from pawlflow.store.port import position
from pawlflow.store.sqlite import SqliteStore
from tests.engine.kit import CHAIN, Bench

DEFAULT = Tenant("default")
FAMILY = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: parent}
spec:
  steps:
    - {name: c, workflow: kid, onFailure: escalate}
    - {name: beside, run: do.it}
---
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: kid}
spec:
  steps: [{name: k, run: do.k}]
"""
TRIGGERED = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: tagged}
spec:
  input: {type: object, required: [repo]}
  trigger: {event: repo.tagged}
  steps: [{name: a, run: do.a}]
"""


@pytest.fixture
def bench(tmp_path):
    """An engine on a real file."""
    made = Bench(SqliteStore(tmp_path / "letters.db"))
    yield made
    made.store.close()


def again(bench):
    """Another engine on the same file: nothing is remembered but what was written."""
    path = bench.store.path
    bench.store.close()
    bench.__init__(SqliteStore(path))


def letters(bench):
    """What lies beside the turns, newest first: number and disposition."""
    found = bench.store.dispositions(DEFAULT, 100)
    return [
        (
            position(each.shard, each.seq),
            read(Disposition, each.entry.data, beside_of([each.entry], DEFAULT)),
        )
        for each in found
    ]


def kinds(bench):
    """The dispositions in short, newest first."""
    return [(letter.kind, letter.code) for _, letter in letters(bench)]


def redriving(number, letter):
    """An operator sends a letter once more."""
    mail = mail_of(letter.cell, letter.input)
    original = Payload.of([mail.input, mail.beside], DEFAULT)
    return RedriveInput(number, original, "ann")


def broken_at(monkeypatch, kind):
    """A program that raises on one kind of input."""
    real = __import__("pawlflow.engine.stepping", fromlist=["step"]).step

    def step(cell, incoming, stamps):
        if isinstance(incoming, kind) and cell.state.cell.workflow in ("chain", "kid"):
            raise ZeroDivisionError("a defect of ours")
        return real(cell, incoming, stamps)

    monkeypatch.setattr("pawlflow.engine.stepping.step", step)


def broken_receipt(bench, monkeypatch):
    """A chain whose first receipt broke its cell."""
    bench.load(CHAIN)
    cell = bench.start("i-1")
    bench.engine.drain()
    with monkeypatch.context() as patched:
        broken_at(patched, Receipt)
        bench.ok(bench.calls()[0], {"x": 1})
        bench.engine.drain()
    [(number, letter)] = letters(bench)
    return cell, number, letter


@pytest.mark.req("R155", "R224")
@pytest.mark.parametrize("restarts", [False, True], ids=["one engine", "another engine"])
@pytest.mark.parametrize("second", ["redrive", "discard"])
def test_a_letter_is_dealt_with_once(bench, monkeypatch, second, restarts):
    """Two operators who saw the same list: the second is refused, and the input goes once."""
    cell, number, letter = broken_receipt(bench, monkeypatch)
    first = redriving(number, letter)
    assert isinstance(bench.ask(cell, first), Accepted)
    bench.engine.drain()
    if restarts:
        again(bench)

    outcome = bench.ask(cell, first if second == "redrive" else DiscardInput(number, "eve"))

    assert (outcome.code, str(number) in outcome.detail) == ("dlq.resolved", True)
    bench.engine.drain()
    assert kinds(bench) == [
        ("rejected", "dlq.resolved"),
        ("redriven", "dlq.resolved"),
        ("dead", "cell.raised"),
    ]
    assert verify_store(bench.store).differences == []


@pytest.mark.req("R155", "R224")
def test_of_two_redrives_in_one_batch_one_counts(bench, monkeypatch):
    """Both were posted before the engine looked; they are taken in one commit."""
    cell, number, letter = broken_receipt(bench, monkeypatch)
    mail = [mail_of(cell, redriving(number, letter)) for _ in range(2)]
    posted = bench.store.post(mail)

    bench.core.poked()
    bench.engine.drain()

    assert [bench.store.answer(each).code for each in posted] == ["", "dlq.resolved"]
    assert kinds(bench).count(("redriven", "dlq.resolved")) == 1
    calls = [call.step for call in bench.calls()]
    assert calls.count("b") == 1


def test_a_redrive_whose_commit_is_lost_is_tried_again(bench, monkeypatch):
    """Nothing was written, so nothing was dealt with."""
    cell, number, letter = broken_receipt(bench, monkeypatch)
    full = __import__("pawlflow.store.port", fromlist=["StoreFullError"]).StoreFullError
    faults = [full("store.full", "no room")]
    bench.fail = lambda action: faults.pop() if action.batch.frames and faults else None
    token = bench.hand(cell, redriving(number, letter))
    bench.engine.drain()
    bench.clock.time += 10_000

    bench.engine.drain()

    assert isinstance(bench.replies[token], Accepted)
    assert not faults
    assert kinds(bench) == [("redriven", "dlq.resolved"), ("dead", "cell.raised")]


@pytest.mark.req("R155", "R92")
def test_a_child_whose_failure_was_told_is_not_started_by_its_letter(bench, monkeypatch):
    """Its parent has an answer; another one would settle the step behind everybody's back."""
    bench.load(FAMILY)
    with monkeypatch.context() as patched:
        broken_at(patched, StartInstance)
        parent = bench.start("p-1", FAMILY)
        bench.engine.drain()
    [(number, letter)] = letters(bench)
    assert (letter.kind, letter.code, letter.cell.workflow) == ("dead", "cell.raised", "kid")
    before = bench.store.load([(DEFAULT, parent.key)])[DEFAULT, parent.key].head
    assert [(each.step, each.kind) for each in bench.store.reviews(DEFAULT)] == [
        ("c", "escalation")
    ]

    outcome = bench.ask(letter.cell, redriving(number, letter))
    bench.engine.drain()

    assert outcome.code == "dlq.answered"
    assert "p-1" in outcome.detail
    assert "c" in outcome.detail
    assert bench.store.load([(DEFAULT, parent.key)])[DEFAULT, parent.key].head == before
    assert (DEFAULT, letter.cell.key) not in bench.store.load([(DEFAULT, letter.cell.key)])
    # It is still there to be thrown away, and the parent's step to be tried again.
    assert isinstance(bench.ask(letter.cell, DiscardInput(number, "ann")), Accepted)
    retried = requests.resume("retry", "c", DEFAULT, by="ann")
    assert isinstance(bench.ask(parent, retried), Accepted)
    bench.engine.drain()
    assert [call.step for call in bench.calls()] == ["beside", "k"]
    assert verify_store(bench.store).differences == []


def test_a_letter_that_cannot_be_read_is_refused(bench, monkeypatch):
    """What an operator hands in is looked at before it is sent."""
    cell, number, _ = broken_receipt(bench, monkeypatch)
    odd = RedriveInput(number, Payload.of([b"\xff\xff", b""], DEFAULT), "ann")

    outcome = bench.ask(cell, odd)

    assert outcome.code == "mail.unreadable"
    assert bench.store.reviews(DEFAULT)[0].kind == "quarantine"


@pytest.mark.req("R45", "R154")
def test_a_start_by_an_event_that_is_refused_is_a_dead_letter(bench):
    """Whoever emitted the event was told that it is out: nobody else would hear of it."""
    bench.load(TRIGGERED)
    bench.engine.drain()
    topic = requests.topic_cell("default", "repo.tagged")

    bench.ask(topic, requests.emit("repo.tagged", {"tag": "v1"}, "default", "ann"))
    bench.engine.drain()

    [(number, letter)] = letters(bench)
    assert (letter.kind, letter.code) == ("dead", "input.invalid")
    assert letter.cell.workflow == "tagged"
    assert letter.input.by == "event:repo.tagged"
    assert "repo" in letter.detail.value
    # Sent once more it is refused once more, and that is not lost either.
    bench.ask(letter.cell, redriving(number, letter))
    bench.engine.drain()
    assert kinds(bench)[:2] == [("dead", "input.invalid"), ("redriven", "dlq.resolved")]
    assert verify_store(bench.store).differences == []


@pytest.mark.req("R119", "R155")
def test_a_letter_about_an_unknown_step_puts_nobody_aside(bench):
    """The store proves while it lies there, and when it was thrown away."""
    bench.load(CHAIN)
    cell = bench.start("i-1")
    bench.engine.drain()
    unknown = Receipt(StepKey(b"\x11" * 16), 1, "ok", Payload.of(1, DEFAULT))

    assert bench.ask(cell, unknown).code == "receipt.unknown"
    bench.engine.drain()
    assert kinds(bench) == [("dead", "receipt.unknown")]
    assert verify_store(bench.store).differences == []

    bench.ok(bench.calls()[0], {"x": 1})
    bench.engine.drain()
    [(number, _)] = letters(bench)
    assert isinstance(bench.ask(cell, DiscardInput(number, "ann")), Accepted)
    assert verify_store(bench.store).differences == []
