"""The walk: one command through every room, in the order it passes them.

Read this first. A small shop takes an order, charges the card, and ships. We start it, let the
card be charged, crash, go on, see the parcel lost, and watch the money go back. Tests 1 to 10 stay
with the door and the kernel, where all is decided; 11 to 14 go through the shard, the store, the
effects and the views around it. docs/walk.md is the map. `make test` runs them, and so can you.
"""

import asyncio

import pytest

from pawlflow import Pawl, requests
from pawlflow.definition.canonical import definition_hash
from pawlflow.definition.load import load_workflows
from pawlflow.definition.plan import compile_plan
from pawlflow.engine.actions import Accepted, Append, Notify, Publish, Reply, Stopped
from pawlflow.engine.admission import admit_start
from pawlflow.engine.drivers import Engine
from pawlflow.engine.shard import Shards
from pawlflow.kernel.draft import Rejected, open_intents
from pawlflow.kernel.replay import fold, read_turn
from pawlflow.kernel.state import next_deadline
from pawlflow.kernel.step import new_cell, step
from pawlflow.kernel.summary import instance_state
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
from pawlflow.projections.history import history
from pawlflow.projections.lenses import lens
from pawlflow.projections.publish import published
from pawlflow.projections.reading import story_of
from pawlflow.projections.show import show
from pawlflow.projections.trace import trace
from pawlflow.projections.verify import verify
from pawlflow.projections.why import why
from pawlflow.store.memory import MemoryStore
from pawlflow.store.port import StoreConflictError
from pawlflow.testing.host import VirtualClock

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
ORDER_2 = CellId("acme", "order", "o-2")


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
    assert shop.cell.state.closing.failure.code == "step.timeout"  # who charges was told to stop
    shop.submit(Receipt(shop.calls["charge"].key, 1, "cancelled"), now=30_100)
    assert instance_state(shop.cell.state) == "failed"


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


def test_11_the_shard_commits_many_and_only_then_lets_anything_out():
    """Two orders, one transaction; while it is under way, nobody outside hears a word."""
    house = House()
    house.core.submit(ORDER_1, house.order({"amount": 12}), token=1)
    house.core.submit(ORDER_2, house.order({"amount": 30}), token=2)

    (append,) = house.work()
    assert [head.cell for head in append.batch.heads] == [ORDER_1, ORDER_2]
    assert house.work() == []

    house.commit(append)
    publish, *replies, notify = house.work()
    assert [call.params.value for call in publish.intents] == [{"amount": 12}, {"amount": 30}]
    assert replies == [Reply(1, Accepted("o-1", turn=1)), Reply(2, Accepted("o-2", turn=1))]
    assert [turn.cell for turn in notify.turns] == [ORDER_1, ORDER_2]


def test_12_the_store_keeps_it_for_whoever_comes_next():
    """Another engine goes on with the same identities; the first one can write nothing more."""
    first = House()
    first.submit(ORDER_1, first.order({"amount": 12}))
    asked = first.calls["charge"]

    second = House(first.store)
    (offered,) = second.work()
    assert offered == Publish((asked,), again=True)

    second.submit(ORDER_1, second.ok("charge", {"id": "ch-1"}))
    assert second.calls["ship"].cell == ORDER_1

    first.core.submit(ORDER_1, first.ok("charge", {"id": "ch-2"}))
    (too_late,) = first.work()
    with pytest.raises(StoreConflictError):
        first.store.append(too_late.batch)


def test_13_a_function_carries_it_out_and_its_receipt_comes_back_through_the_same_door():
    """What the function was given comes back with its result, and becomes a turn like any other."""
    given = []

    async def charge(amount, ctx):
        given.append((amount, ctx.key, ctx.attempt))
        return {"id": "ch-1"}

    def send():  # a plain function runs in a thread
        return {"parcel": 7}

    undos = {"card.refund": send, "parcel.recall": send}  # no start without, and never asked
    story = asyncio.run(buy({"card.charge": charge, "parcel.send": send, **undos}))

    start, charged, sent = (turn["input"] for turn in trace(story))
    assert [start["kind"], charged["kind"], sent["kind"]] == ["start", "receipt", "receipt"]
    assert given == [(12, charged["key"], charged["attempt"])]
    assert show(story)["steps"]["ship"]["result"] == {"parcel": 7}


def test_14_whoever_asks_is_told_from_the_journal():
    """What is, what was, what was published, and why: each follows from the turns alone."""
    house = House()
    house.submit(ORDER_1, house.order({"amount": 12}))
    house.submit(ORDER_1, house.ok("charge", {"id": "ch-1"}))
    ship = house.calls["ship"]
    lost = failure_of("terminal", "parcel.lost", "it fell off the truck", tenant="acme")
    house.submit(ORDER_1, Receipt(ship.key, ship.attempt, "failed", failure=lost))
    house.submit(ORDER_1, house.ok("undo/charge", None))

    story = story_of(house.store, "acme", "o-1")

    assert (show(story)["state"], show(story)["rollback"]) == ("failed", "full")
    assert show(story, at=2)["steps"]["ship"]["state"] == "running"
    published_names = [envelope["eventType"] for envelope in history(story)]
    assert published_names[-2:] == ["WorkflowStepCompensated", "WorkflowInstanceFailed"]
    assert [because["text"] for because in why(story)["because"]] == [
        "zoe started order v1",
        "ship was ready: charge was the last it needed",
        "attempt 1 of ship failed (terminal, parcel.lost: it fell off the truck), for good",
        "so the instance fails; what was done is undone",
        "compensation began, to undo charge",
        "charge was undone",
        "the instance closed as failed, rollback full",
    ]


# The rest is scaffolding: a cell and its journal, an engine in the hand, and somebody who answers.


class Shop:
    """One order: a live cell in front, its journal behind."""

    def __init__(self, more: str = "") -> None:
        (workflow,), _ = load_workflows(ORDER + f"  {more}\n", "order.yaml")
        self.plan = compile_plan(workflow)
        self.cell = new_cell(ORDER_1, self.plan)
        self.journal, self.payloads, self.calls = [], {}, {}

    def submit(self, incoming, now=0):
        """Decide, and journal what was decided; the shard does this for many at a time."""
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


class House:
    """A shard core on a store. It asks, and we answer as a driver does; commits, by hand."""

    def __init__(self, store=None):
        self.store, self.clock, self.calls = store or MemoryStore(), VirtualClock("walk"), {}
        self.core = Shards(self.store.claim(), self.clock)
        self.engine = Engine(self.core, self.store, self.clock, None)
        (self.workflow,), _ = load_workflows(ORDER, "order.yaml")
        if store is None:
            publish = requests.publish(self.workflow, "acme", "zoe")
            self.submit(requests.registry_cell("acme"), publish)

    def work(self):
        """Everything the core wants now but reading, which is done for it."""
        out = []
        while actions := self.core.work(self.clock.now()):
            for action in actions:
                if isinstance(action, Append | Publish | Reply | Notify | Stopped):
                    out.append(action)
                else:
                    self.engine.perform(action)
        calls = [call for action in out if isinstance(action, Publish) for call in action.intents]
        self.calls |= {("undo/" if c.direction == "undo" else "") + c.step: c for c in calls}
        return out

    def commit(self, append):
        """Make a batch durable, and say so."""
        self.store.append(append.batch)
        self.core.appended(None, self.clock.now())

    def submit(self, cell, incoming):
        """Hand in an input, and commit until nothing is left to do."""
        self.core.submit(cell, incoming)
        while appends := [action for action in self.work() if isinstance(action, Append)]:
            self.commit(appends[0])

    def order(self, value):
        """The start of an order."""
        return admit_start(compile_plan(self.workflow), value, tenant="acme", by="zoe")

    def ok(self, name, value):
        """The executor of a step, or of its undo, succeeds."""
        call = self.calls[name]
        return Receipt(call.key, call.attempt, "ok", Payload.of(value, "acme"))


async def buy(functions):
    """An order in an engine of one's own: these functions carry it out. Gives its story."""
    (workflow,), _ = load_workflows(ORDER, "order.yaml")
    async with Pawl("memory:", tenant="acme") as pawl:
        pawl.add(workflow)
        for name, function in functions.items():
            pawl.effect(name)(function)
        run = await pawl.start("order", {"amount": 12}, id="o-1")
        await run.result(timeout="10s")
        return story_of(pawl.reader, "acme", "o-1")
