"""The second opinion: it reads a journal by itself, so it can be told what it must not believe."""

import pytest

from pawlflow.definition.canonical import definition_bytes
from pawlflow.definition.plan import plan_of
from pawlflow.definition.shape import Edge, Gate, Retry, Step, Undo, Workflow
from pawlflow.model import events as ev
from pawlflow.model.batches import ActAnswered, TargetsAdded
from pawlflow.model.budgets import BudgetWarned
from pawlflow.model.failure import failure_of
from pawlflow.model.ids import CellId, InstanceId, Tenant, TimeMs, WorkflowName
from pawlflow.model.inputs import Approve, CancelInstance, Receipt, Reject, StartInstance, Tick
from pawlflow.model.journal import TURN_FORMAT, Stamps, Turn
from pawlflow.model.payload import Payload
from pawlflow.model.timed import Cron, RateGranted, RateLimited, ScheduleChanged, ScheduleFired
from pawlflow.testing.sim.audit import Audit
from pawlflow.testing.sim.audit_cells import Between
from pawlflow.testing.sim.audit_events import read_on
from pawlflow.testing.sim.flows import flows_of, instances_of
from pawlflow.testing.sim.language import ITEMS, ROOMS, WITH_ITEM, stirred_by
from pawlflow.testing.sim.setup import setup_of
from pawlflow.testing.sim.shadows import lists_of

TENANT = Tenant("acme")
CELL = CellId(TENANT, WorkflowName("w"), InstanceId("i"))
UNDO = Undo(kind="run", target="fx.undo")
NOTHING = Payload.of(None, TENANT)


def run(name, after=(), **fields):
    """A step with an executor."""
    return Step(
        name=name,
        kind="run",
        target="fx.do",
        depends_on=tuple(Edge(step=each) for each in after),
        **fields,
    )


class Told:
    """An audit that is told a journal, and what it found."""

    def __init__(self, *steps, given=None, **fields):
        data = definition_bytes(Workflow(name="w", steps=steps, **fields))
        self.found = []
        plan = plan_of(data)
        self.audit = Audit(CELL, plan, lists_of(data), self.report)
        self.now = 0
        start = StartInstance(plan.definition, Payload.of(given or {}, TENANT), "zoe")
        created = ev.InstanceCreated(plan.definition, 2, bytes(16), start.input, "zoe")
        self.tell(start, created, ev.InstanceQueued(held=False), ev.InstanceStarted())

    def report(self, monitor, _, why):
        self.found.append((monitor, why))

    def tell(self, incoming, *events):
        """One more turn."""
        self.now += 1_000
        stamps = Stamps(TimeMs(self.now), 1, b"")
        read_on(self.audit, Turn(TURN_FORMAT, 1, 2, stamps, incoming, events, (), ()))
        return self

    def does(self, step, item=-1, params=None):
        """A step or item is ready, begins and succeeds, in as many turns as that takes."""
        made = Payload.of({} if params is None else params, TENANT)
        ready = ev.StepReady(step, item, made)
        self.tell(Tick(), ready, ev.StepStarted(step, item, 1, 1))
        key = next(k for k, v in self.audit.keys.items() if v == (step, item, "do", 1))
        done = ev.StepSucceeded(step, item, 1, NOTHING, 0, 1)
        return self.tell(Receipt(key, 1, "ok", NOTHING), done)

    @property
    def monitors(self):
        """Which promises were broken."""
        return [monitor for monitor, _ in self.found]


FAN = {"for_each": ITEMS, "limit": 2, "params": WITH_ITEM}


@pytest.mark.req("R215")
def test_items_are_looked_at_in_order_with_their_values_and_few_at_a_time():
    """All of them are done before their step is."""
    good = Told(run("a", **FAN), given={"items": [7, 8]})
    good.tell(Tick(), ev.StepFanned(0, 2))
    good.does(0, 0, {"item": 7, "i": 0}).does(0, 1, {"item": 8, "i": 1})
    good.tell(Tick(), ev.StepSucceeded(0, -1, 0, NOTHING))
    assert good.found == []

    for events, said in (
        ([ev.StepFanned(0, 3)], "has 3 items, the list 2"),
        ([ev.StepFanned(0, 2), ev.StepSkipped(0, 1, "condition")], "when 0 of 2 is next"),
        ([ev.StepFanned(0, 2), ev.StepSucceeded(0, -1, 0, NOTHING)], "is done at 0 of 2"),
        ([ev.StepFanned(0, 2), ev.StepReady(0, 0, NOTHING)], "is given None"),
    ):
        told = Told(run("a", **FAN), given={"items": [7, 8]}).tell(Tick(), *events)
        assert [monitor for monitor in told.monitors if monitor != "fan"] == []
        assert said in told.found[0][1]


@pytest.mark.req("R112", "R122")
@pytest.mark.parametrize(
    ("parallel", "order", "broken"),
    [
        (False, [2, 1, 0], []),
        (False, [1], ["6"]),
        (True, [2, 1], []),
        (True, [0], ["6"]),
    ],
)
def test_undo_goes_backwards_or_by_depth(parallel, order, broken):
    """`a` and `b` lie equally deep, `c` behind both; `b` is completed after `c` in no journal."""
    steps = (run("a", undo=UNDO), run("b", undo=UNDO), run("c", ("a", "b"), undo=UNDO))
    told = Told(*steps, parallel_undo=parallel).does(0).does(1).does(2)
    stopping = ev.InstanceStopping("cancelled", -1, None, "ann", compensate=True)
    told.tell(CancelInstance("ann"), stopping, ev.CompensationStarted())
    for step in order:
        told.tell(Tick(), ev.UndoStarted(step, -1, 1, NOTHING))
        if broken:
            break
        key = next(k for k, v in told.audit.keys.items() if v == (step, -1, "undo", 1))
        told.tell(Receipt(key, 1, "ok", NOTHING), ev.UndoDone(step, -1, 1))
    assert told.monitors == broken


@pytest.mark.req("R113")
@pytest.mark.parametrize(
    ("granted", "answer", "broken"),
    [
        (True, {"by": "ann"}, []),
        (True, {"by": "eve"}, ["6"]),
        (True, None, ["6"]),
        (False, None, []),
        (False, {"by": "ann"}, ["6"]),
    ],
)
def test_a_gate_is_undone_with_what_it_was_answered(granted, answer, broken):
    """Granted, or, where the definition asks for it, refused: then there is no answer."""
    gate = Step(name="g", kind="approval", gate=Gate(), undo=UNDO, undo_on_failure=True)
    told = Told(gate).tell(Tick(), ev.StepWaiting(0, -1, "approval", None))
    stopping = ev.InstanceStopping("cancelled", -1, None, "ann", compensate=True)
    if granted:
        result = Payload.of({"by": "ann"}, TENANT)
        told.tell(Approve("g", "ann", None), ev.GateGranted(0, "ann", None, None, result))
        told.tell(CancelInstance("ann"), stopping, ev.CompensationStarted())
    else:
        why = failure_of("governance", "approval.rejected", "no", tenant=TENANT)
        rejected = ev.GateRejected(0, "ann", None, None, why, settles=True)
        told.tell(Reject("g", "ann", None), rejected, stopping, ev.CompensationStarted())

    told.tell(Tick(), ev.UndoStarted(0, -1, 1, Payload.of({"answer": answer}, TENANT)))

    assert told.monitors == broken


def test_nothing_begins_after_the_outcome_is_decided():
    """No forward execution beside undoing."""
    told = Told(run("a"), run("b"))
    stopping = ev.InstanceStopping("cancelled", -1, None, "ann", compensate=True)
    told.tell(CancelInstance("ann"), stopping, ev.StepStarted(1, -1, 1, 1))
    assert told.monitors == ["6"]


@pytest.mark.req("R205")
def test_a_budget_is_reckoned_from_costs_and_receipts():
    """Nothing begins beyond the limit, a warning is said once, and sums are sums."""
    told = Told(run("a", cost={"usd": 2}), budget={"usd": {"soft": 1, "hard": 3}})
    told.tell(Tick(), ev.StepReady(0, -1, NOTHING), ev.StepStarted(0, -1, 1, 1))
    assert told.audit.money.reserved["usd"] == 2_000_000
    told.tell(Tick(), BudgetWarned("usd", 2_000_000))
    key = next(iter(told.audit.keys))
    usage = Payload.of({"usd": 2.5}, TENANT)
    done = ev.StepSucceeded(0, -1, 1, NOTHING, 0, 1)
    told.tell(Receipt(key, 1, "ok", NOTHING, usage=usage), done)
    told.audit.money.settle({"usd": 2_500_000}, {})
    assert told.found == []

    told.audit.money.settle({"usd": 2_000_000}, {})
    told.tell(Tick(), BudgetWarned("usd", 2_500_000))
    told.audit.money.begin({"usd": 1_000_000}, "more")
    assert told.monitors == ["13", "13", "13"]


def test_a_quorum_is_that_many_people():
    """One person is not two; and who begins what a gate guards has its approval."""
    gate = Step(name="g", kind="approval", gate=Gate(quorum=2, guards=("a",)))
    told = Told(gate, run("a"))
    told.tell(Tick(), ev.StepWaiting(0, -1, "approval", None))
    told.tell(Approve("g", "ann", None), ev.GateVoted(0, "ann", None, None))
    told.tell(Approve("g", "ann", None), ev.GateGranted(0, "ann", None, None, NOTHING))
    assert told.found[0] == ("16", "ann votes for s0 twice")
    told.tell(Tick(), ev.StepReady(1, -1, NOTHING), ev.StepStarted(1, -1, 1, 1))
    assert "has not approved" in told.found[1][1]


def system(kind, key):
    """A system cell."""
    return CellId(TENANT, WorkflowName(kind), InstanceId(f"{kind}/{key}"))


@pytest.mark.req("R214", "R215", "R226")
@pytest.mark.parametrize(
    ("cell", "turns", "broken"),
    [
        ("$rate", [(0, RateLimited(1, 5_000, "")), (0, "a"), (5_000, "b")], []),
        ("$rate", [(0, RateLimited(1, 5_000, "")), (0, "a"), (4_999, "b")], ["rate"]),
        ("$rate", [(0, RateLimited(9, 5_000, "")), (0, "a"), (9_000, "a")], ["rate"]),
        ("$schedule", [(130_000, ScheduleFired((120_000,), 240_000))], []),
        ("$schedule", [(130_000, ScheduleFired((120_000,), 120_000))], ["due"]),
        ("$schedule", [(500_000, ScheduleFired((480_000,), 600_000))], ["due"]),
        ("$batch", [(0, ActAnswered(InstanceId("i"), ""))], ["batch"]),
    ],
)
def test_system_cells_are_held_to_what_they_promise(cell, turns, broken):
    """Windows, times and answers, from the events alone."""
    found = []
    between = Between(lambda monitor, *_: found.append(monitor))
    where = system(cell, "w")
    job = (WorkflowName("w"), b"", Cron("*/2 * * * *", "UTC", "all"), NOTHING)
    first = ScheduleChanged(*job, TimeMs(120_000))
    first = (
        TargetsAdded(Payload.of([["w", "i"]], TENANT), complete=True) if cell == "$batch" else first
    )
    told = [] if cell == "$rate" else [(1, first)]
    for at, event in [*told, *turns]:
        made = RateGranted(WorkflowName("w"), event) if isinstance(event, str) else event
        stamps = Stamps(TimeMs(at), 1, b"")
        between.read(where, Turn(TURN_FORMAT, 1, 2, stamps, Tick(), (made,), (), ()))
    assert found == broken


@pytest.mark.req("R226")
@pytest.mark.parametrize(
    ("code", "broken"),
    [
        ("", []),
        ("cell.quarantined", []),
        ("instance.closed", ["batch"]),
    ],
)
def test_what_was_put_aside_may_be_done_before_its_batch_hears_of_either(code, broken):
    """A refusal that was true when it was sent is no lie; any other one of what is done is."""
    found = []
    between = Between(lambda monitor, *_: found.append(monitor))
    targets = TargetsAdded(Payload.of([["w", "i"]], TENANT), complete=True)
    stamps = Stamps(TimeMs(1), 1, b"")

    between.read(system("$batch", "b"), Turn(TURN_FORMAT, 1, 2, stamps, Tick(), (targets,), (), ()))
    between.act(CELL, "b")
    answer = ActAnswered(InstanceId("i"), code)
    between.read(system("$batch", "b"), Turn(TURN_FORMAT, 2, 2, stamps, Tick(), (answer,), (), ()))

    assert found == broken


def test_every_part_of_the_language_is_drawn_and_may_be_left_out():
    """By some seeds and not by others; without any, nothing of it is in a definition."""
    drawn = [setup_of(seed).rooms for seed in range(200)]
    for room in ROOMS:
        assert 0 < sum(room in rooms for rooms in drawn) < 200
    assert () in drawn
    assert stirred_by(("revise", "fans")) == {"client.changes"}

    plain = setup_of(next(seed for seed in range(200) if not setup_of(seed).rooms))
    flows = flows_of(plain)
    assert all(step.for_each is None for flow in flows for step in flow.workflow.steps)
    assert all(planned.later_ms == 0 for planned in instances_of(plain, flows))


@pytest.mark.req("R117", "R215")
@pytest.mark.parametrize(
    ("failed", "undone", "broken"), [(True, None, []), (True, {"v": 1}, ["6"]), (False, None, [])]
)
def test_what_failed_and_was_stopped_is_undone_without_a_result(failed, undone, broken):
    """An attempt that was cancelled has not failed, and is not undone."""
    told = Told(run("a", undo=UNDO, undo_on_failure=True, retry=Retry(max_retries=1)))
    told.tell(Tick(), ev.StepReady(0, -1, NOTHING), ev.StepStarted(0, -1, 1, 1))
    if failed:
        key = next(iter(told.audit.keys))
        why = failure_of("transient", "effect.failed", "no", tenant=TENANT)
        backed_off = ev.StepBackedOff(0, -1, 1, why, TimeMs(60_000))
        told.tell(Receipt(key, 1, "failed", failure=why), backed_off)
    stopping = ev.InstanceStopping("cancelled", -1, None, "ann", compensate=True)
    told.tell(CancelInstance("ann"), stopping)
    told.tell(Receipt(bytes(32), 1, "ok"), ev.StepCancelled(0, -1), ev.CompensationStarted())
    assert len(told.audit.stack) == failed

    if failed:
        params = Payload.of({"result": undone}, TENANT)
        told.tell(Tick(), ev.UndoStarted(0, -1, 1, params))

    assert told.monitors == broken


@pytest.mark.req("R117", "R215")
@pytest.mark.parametrize(("listed", "broken"), [(True, []), (False, ["6"])])
def test_a_late_success_is_to_be_undone_before_it_comes_to_that(listed, broken):
    """It was skipped, and the instance goes on."""
    told = Told(run("a", undo=UNDO, on_failure="skip"))
    told.tell(Tick(), ev.StepReady(0, -1, NOTHING), ev.StepStarted(0, -1, 1, 1))
    key = next(iter(told.audit.keys))
    why = failure_of("terminal", "effect.failed", "no", tenant=TENANT)
    skipped = ev.StepSkipped(0, -1, "on_failure", 1, why)
    told.tell(Receipt(key, 1, "failed", failure=why), skipped)

    late = ev.LateSuccess(0, -1, 1, NOTHING, listed, 1)
    told.tell(Receipt(key, 1, "ok", NOTHING), late)

    assert told.monitors == broken
