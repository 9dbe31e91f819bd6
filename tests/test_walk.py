"""The walk: one command through every room, in the order it passes them.

Read this first. A small shop takes an order, charges the card, and ships. We start it, let the
card be charged, crash, go on, see the parcel lost, and watch the money go back. Each test below is
one room; `make test` runs them, and so can you, one line at a time in a Python shell.
"""

from pawlflow.definition.canonical import definition_hash
from pawlflow.definition.load import load_workflows
from pawlflow.engine.admission import admit_start
from pawlflow.kernel.draft import Rejected, open_intents
from pawlflow.kernel.plan import compile_plan
from pawlflow.kernel.publish import published
from pawlflow.kernel.replay import fold, read_turn, verify
from pawlflow.kernel.state import next_deadline
from pawlflow.kernel.step import new_cell, step
from pawlflow.kernel.summary import instance_state, lens
from pawlflow.model.events import (
    InstanceCreated,
    InstanceQueued,
    InstanceStarted,
    StepReady,
    StepStarted,
)
from pawlflow.model.failure import failure_of
from pawlflow.model.ids import CellId
from pawlflow.model.inputs import Receipt, Tick
from pawlflow.model.intents import Call
from pawlflow.model.journal import Stamps, payloads_of, turn_hash
from pawlflow.model.payload import Payload

ORDER = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: order}
spec:
  timeout: 1h
  failurePolicy: compensate
  steps:
    - name: charge
      run: card.charge
      with: {amount: "${ input.amount }"}
      timeout: 30s
      undo: {run: card.refund, with: {charge: "${ result.id }"}}
    - name: ship
      run: parcel.send
      dependsOn: [charge]
      timeout: 10m
      undo: {run: parcel.recall}
"""
ORDER_1 = CellId("acme", "order", "o-1")


def test_1_a_definition_is_read_checked_and_compiled_once():
    """Text becomes a shape, the shape has a hash, and the hash has one plan of integers."""
    (workflow,), findings = load_workflows(ORDER, "order.yaml")
    assert findings == []

    plan = compile_plan(workflow)

    assert plan.definition == definition_hash(workflow)
    assert [step.name for step in plan.steps] == ["charge", "ship"]
    assert plan.steps[0].leads_to == ((1, False),)  # ship waits for charge
    assert plan.needs == (0, 1)


def test_2_admission_gives_its_verdict_before_anything_is_journalled():
    """The one door in: what does not fit is refused with a code, and leaves no trace."""
    shop = Shop("input: {type: object, required: [amount]}")

    refused = admit_start(shop.plan, {"amout": 12}, tenant="acme", by="zoe")
    admitted = admit_start(shop.plan, {"amount": 12}, tenant="acme", by="zoe")

    assert isinstance(refused, Rejected)
    assert refused.code == "input.invalid"
    assert admitted.definition == shop.plan.definition


def test_3_a_turn_is_one_input_and_everything_that_follows_from_it():
    """Created, queued, started, ready, dispatched: one decision, one commit, no gap between."""
    shop = Shop()

    turn = shop.start({"amount": 12})

    assert [type(event) for event in turn.turn.events] == [
        InstanceCreated,
        InstanceQueued,
        InstanceStarted,
        StepReady,
        StepStarted,
    ]
    (call,) = turn.intents
    assert (call.target, call.params.value, call.attempt) == ("card.charge", {"amount": 12}, 1)


def test_4_the_turn_becomes_bytes_chained_to_all_before():
    """Values enter by address; the hash of the last turn stands for the whole past."""
    shop = Shop()
    first = shop.start({"amount": 12})
    second = shop.answer("charge", {"id": "ch-1"})

    assert second.hash == turn_hash(first.hash, second.data)
    assert b"ch-1" not in second.data  # the value lies beside, and could be erased
    assert read_turn(second.data, shop.payloads) == second.turn


def test_5_a_crash_loses_nothing_that_was_journalled():
    """The journal tells the state; what was in flight is offered again with the same identity."""
    shop = Shop()
    shop.start({"amount": 12})
    asked = shop.answer("charge", {"id": "ch-1"}).intents

    shop.crash()

    assert tuple(open_intents(shop.cell.state)) == asked
    assert next_deadline(shop.cell.state)[0] == 10 * 60_000  # ship's, from the journalled time
    assert shop.answer("ship", {"parcel": 7}).turn.events
    assert instance_state(shop.cell.state) == "completed"


def test_6_a_late_or_doubled_answer_changes_nothing():
    """A success settles its step once; the second is refused, and the bytes stay the same."""
    shop = Shop()
    shop.start({"amount": 12})
    shop.answer("charge", {"id": "ch-1"})
    before = shop.cell.head

    again = shop.submit(shop.receipt("charge", {"id": "ch-2"}))

    assert again.code == "receipt.not_awaited"
    assert shop.cell.head == before


def test_7_a_failure_is_a_value_and_compensation_runs_backwards():
    """The parcel is lost: the step fails, and what was completed is undone with its own result."""
    shop = Shop()
    shop.start({"amount": 12})
    shop.answer("charge", {"id": "ch-1"})
    call = shop.calls["ship"]
    lost = failure_of("terminal", "parcel.lost", "it fell off the truck", tenant="acme")

    failed = shop.submit(Receipt(call.key, call.attempt, "failed", failure=lost))

    (refund,) = failed.intents
    assert (refund.direction, refund.target) == ("undo", "card.refund")
    assert refund.params.value == {"charge": "ch-1"}
    assert instance_state(shop.cell.state) == "compensating"
    shop.submit(Receipt(refund.key, refund.attempt, "ok"))
    assert (instance_state(shop.cell.state), shop.cell.state.rollback) == ("failed", "full")


def test_8_time_is_an_input_too():
    """Nothing in the kernel looks at a clock: a deadline comes in as a turn like any other."""
    shop = Shop()
    shop.start({"amount": 12})

    assert shop.submit(Tick(), now=29_999) == Rejected("timer.not_due", "o-1")
    shop.submit(Tick(), now=30_000)

    assert instance_state(shop.cell.state) == "failed"
    assert shop.cell.state.closing.failure.code == "step.timeout"


def test_9_the_outside_hears_of_it_in_its_own_words():
    """One event per transition inside; published names, and four vocabularies, outside."""
    shop = Shop()
    shop.start({"amount": 12})
    turn = shop.answer("charge", {"id": "ch-1"})

    names = [name for event in turn.turn.events for name in published(shop.cell.state, event)]

    assert names == [
        "AgentTaskCompleted",
        "WorkflowStepCompleted",
        "WorkflowStepReady",
        "AgentTaskAssigned",
    ]
    assert lens(shop.cell.state) == {
        "control-plane": "AwaitingAgent",
        "kernel": "waiting",
        "ioa": "executing",
        "ores": "in_progress",
    }


def test_10_replay_decides_it_all_again_and_finds_the_same_bytes():
    """Replay or die; and a changed byte is named by the turn it is in."""
    shop = Shop()
    shop.start({"amount": 12})
    shop.answer("charge", {"id": "ch-1"})
    shop.answer("ship", {"parcel": 7})

    assert verify(ORDER_1, shop.plan, shop.journal, shop.payloads) is None

    shop.journal[1] = shop.journal[1][0], shop.journal[0][1]  # somebody changed a hash
    found = verify(ORDER_1, shop.plan, shop.journal, shop.payloads)
    assert (found.turn, found.where) == (2, "chain")


# The rest is scaffolding: a cell, a journal, and somebody who answers.


class Shop:
    """One order: a live cell in front, its journal behind."""

    def __init__(self, more: str = "") -> None:
        (workflow,), _ = load_workflows(ORDER + f"  {more}\n", "order.yaml")
        self.plan = compile_plan(workflow)
        self.cell = new_cell(ORDER_1, self.plan)
        self.journal, self.payloads, self.calls = [], {}, {}

    def submit(self, incoming, now=0):
        """Decide, and journal what was decided; the shard will do this for many at a time."""
        stamps = Stamps(now, len(self.journal) + 1, b"sixteen bytes!!!")
        stepped = step(self.cell, incoming, stamps)
        if not isinstance(stepped, Rejected):
            self.journal.append((stepped.data, stepped.hash))
            self.payloads.update({p.addr: p.data for p in payloads_of(stepped.turn)})
            calls = [intent for intent in stepped.intents if isinstance(intent, Call)]
            self.calls.update({call.step: call for call in calls})
        return stepped

    def start(self, value):
        """Start the order."""
        return self.submit(admit_start(self.plan, value, tenant="acme", by="zoe"))

    def receipt(self, name, value):
        """What an executor sends back: the key and attempt it was given, and its result."""
        call = self.calls[name]
        return Receipt(call.key, call.attempt, "ok", Payload.of(value, "acme"))

    def answer(self, name, value):
        """The executor of a step succeeds."""
        return self.submit(self.receipt(name, value))

    def crash(self):
        """Forget everything but the journal."""
        journal = [data for data, _ in self.journal]
        self.cell = fold(ORDER_1, self.plan, journal, self.payloads)
