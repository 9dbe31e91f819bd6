"""Planted bugs in the kernel: receipts, keys, budgets, deadlines, undo, slots."""

from heapq import heappop
from typing import Any, Final

from msgspec.structs import replace

from pawlflow.engine import staging, timers
from pawlflow.kernel import deadlines, decide, draft, evolve, mend, receipts, step, undo
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.state import RANK_INSTANCE, RANK_LEFT, RANK_UNDO, make_key, next_deadline
from pawlflow.kernel.system import slots
from pawlflow.kernel.units import RUNNING, SUCCEEDED
from pawlflow.model import events as ev
from pawlflow.model.ids import Tenant, TimeMs
from pawlflow.model.inputs import StartInstance
from pawlflow.model.payload import Payload
from pawlflow.testing.sim.patching import Change, real


def no_duplicate_guard() -> list[Change]:
    """A success that comes twice succeeds twice."""
    old = receipts.receive_success

    def receive(made: Draft, unit: Any, key: Any, incoming: Any) -> bool:
        if unit.status != SUCCEEDED:
            return old(made, unit, key, incoming)
        result = incoming.result or made.payload(None)
        made.emit(ev.StepSucceeded(unit.step, unit.item, incoming.attempt, result, 0, key.round))
        return True

    return [(receipts, "receive_success", receive)]


def failure_unbound() -> list[Change]:
    """A failure settles whatever attempt runs."""

    def receive(made: Draft, unit: Any, _: Any, incoming: Any) -> bool:
        if unit.status != RUNNING:
            return False
        if made.state.closing is not None:
            made.emit(ev.StepCancelled(unit.step, unit.item))
        else:
            mend.fail_attempt(made, unit, receipts.failure_in(made, incoming))
        return True

    return [(receipts, "receive_failure", receive)]


def success_unbound() -> list[Change]:
    """A success of an attempt that was never made settles the step."""
    old = receipts.receive_success

    def receive(made: Draft, unit: Any, key: Any, incoming: Any) -> bool:
        if incoming.attempt > unit.attempt > 0 and unit.status == RUNNING:
            result = incoming.result or made.payload(None)
            attempt = incoming.attempt
            made.emit(ev.StepSucceeded(unit.step, unit.item, attempt, result, 0, key.round))
            return True
        return old(made, unit, key, incoming)

    return [(receipts, "receive_success", receive)]


def key_per_attempt() -> list[Change]:
    """Every attempt has a step key of its own."""

    def key_of(state: Any, unit: Any, direction: Any) -> Any:
        attempt = unit.undo_attempt if direction == "undo" else unit.attempt
        return make_key(state, unit, direction, unit.round + 1_000 * (attempt - 1))

    return [(draft, "key_of", key_of)]


def forward_undo() -> list[Change]:
    """The step completed first is undone first."""
    old = undo.next_to_undo

    def next_to_undo(state: Any) -> Any:
        return state.undo_list[0] if old(state) is not None else None

    return [(undo, "next_to_undo", next_to_undo)]


def undo_forgets() -> list[Change]:
    """Only the step completed last is undone."""
    old = undo.next_to_undo

    def next_to_undo(state: Any) -> Any:
        done = any(unit is not None and unit.undo_attempt for unit in state.units)
        return None if done else old(state)

    return [(undo, "next_to_undo", next_to_undo)]


def chance_in_kernel() -> list[Change]:
    """A back-off is a little longer each time it is computed."""
    old = real(mend, "delay_ms")
    asked: list[int] = []

    def delay_ms(retry: Any, n: int) -> int:
        asked.append(n)
        return int(old(retry, n)) + len(asked) % 7

    return [(mend, "delay_ms", delay_ms)]


def clock_in_kernel() -> list[Change]:
    """The state remembers something that no event says."""
    begin = evolve.begin_turn

    def begin_turn(state: Any, stamps: Any) -> None:
        begin(state, stamps)
        if hasattr(state, "order"):
            state.order += state.turn % 3 == 2

    return [(step, "begin_turn", begin_turn)]


def not_absorbing() -> list[Change]:
    """A closed instance goes on."""

    def not_there(state: Any, incoming: Any) -> Any:
        if isinstance(incoming, StartInstance):
            return None if state.created is None else Rejected("instance.exists", "")
        return Rejected("instance.unknown", "") if state.created is None else None

    return [(decide, "not_there", not_there)]


def no_op_turn() -> list[Change]:
    """A tick that finds nothing due is a turn all the same."""
    old = deadlines.tick

    def tick(made: Draft) -> Any:
        old(made)

    return [(deadlines, "tick", tick)]


def tick_early() -> list[Change]:
    """Deadlines fire two seconds early."""
    early = 2_000

    def tick(made: Draft) -> Any:
        state = made.state
        while (due := next_deadline(state)) is not None and due[0] <= made.now + early:
            heappop(state.deadlines)
            if due[1] == RANK_INSTANCE:
                deadlines.fire_instance(made)
            elif due[1] == RANK_UNDO:
                deadlines.fire_undo(made, state.unit(due[2]))
            elif due[1] == RANK_LEFT:
                made.emit(ev.AttemptEnded(*due[2]))
            else:
                deadlines.fire_step(made, state.unit(due[2]))
        return None if made.events else Rejected("timer.not_due", "")

    old = timers.Deadlines.take_due
    return [
        (deadlines, "tick", tick),
        (timers.Deadlines, "take_due", lambda self, now: old(self, now + early)),
    ]


def one_retry_more() -> list[Change]:
    """The budget of attempts is one too large."""
    old = mend.fail_attempt

    def fail_attempt(made: Draft, unit: Any, failure: Any) -> None:
        plan = made.state.plan.steps[unit.step]
        if mend.is_retried(plan, failure) and unit.retries == plan.retry.max_retries:
            at = TimeMs(made.now + 1_000)
            made.emit(ev.StepBackedOff(unit.step, unit.item, unit.attempt, failure, at))
        else:
            old(made, unit, failure)

    return [(mend, "fail_attempt", fail_attempt)]


def one_correction_more() -> list[Change]:
    """The budget of corrections is one too large."""
    old = mend.fail_attempt

    def fail_attempt(made: Draft, unit: Any, failure: Any) -> None:
        plan = made.state.plan.steps[unit.step]
        spent = unit.corrections == plan.max_corrections and unit.params is not None
        if failure.kind == "validation" and spent:
            made.emit(ev.StepCorrecting(unit.step, unit.item, unit.attempt, failure))
        else:
            old(made, unit, failure)

    return [(mend, "fail_attempt", fail_attempt)]


def slots_without_bound() -> list[Change]:
    """A slot is granted to everybody who asks."""
    return [(slots.Slots, "free", property(lambda _: 1))]


def value_of_another() -> list[Change]:
    """A value is addressed under another tenant."""
    return [(Draft, "payload", lambda _, value: Payload.of(value, Tenant("nobody")))]


def deadline_not_in_row() -> list[Change]:
    """The row of a cell does not say when it is due."""
    old = real(staging, "facts_of")
    return [(staging, "facts_of", lambda state: replace(old(state), due_at=None))]


def calls_not_in_row() -> list[Change]:
    """The row of a cell does not say that calls are in flight."""
    old = real(staging, "facts_of")
    return [(staging, "facts_of", lambda state: replace(old(state), calls=0))]


KERNEL_BUGS: Final = (
    ("no-duplicate-guard", "a success that comes twice counts twice", no_duplicate_guard),
    ("failure-unbound", "a failure settles any attempt", failure_unbound),
    ("success-unbound", "a success of no attempt settles the step", success_unbound),
    ("key-per-attempt", "the step key changes on a retry", key_per_attempt),
    ("forward-undo", "compensation in the order of completion", forward_undo),
    ("undo-forgets", "compensation stops after the first undo", undo_forgets),
    ("chance-in-kernel", "a decision is not the same twice", chance_in_kernel),
    ("clock-in-kernel", "the state knows what no event says", clock_in_kernel),
    ("not-absorbing", "a closed instance goes on", not_absorbing),
    ("no-op-turn", "a tick that does nothing is journalled", no_op_turn),
    ("tick-early", "deadlines fire early", tick_early),
    ("one-retry-more", "one attempt too many", one_retry_more),
    ("one-correction-more", "one correction too many", one_correction_more),
    ("slots-without-bound", "more slots are granted than there are", slots_without_bound),
    ("value-of-another", "a value is addressed under another tenant", value_of_another),
    ("deadline-not-in-row", "the row of a cell has no deadline", deadline_not_in_row),
    ("calls-not-in-row", "the row of a cell has no calls", calls_not_in_row),
)
