"""What each event means to the audit of an instance: which promises it could break."""

from collections.abc import Callable
from typing import Any, Final

from pawlflow.definition.rules import UNDOING_RULES
from pawlflow.model import events as ev
from pawlflow.model.ids import NO_ITEM
from pawlflow.model.inputs import GrantSlot, Receipt, Tick
from pawlflow.model.journal import Turn
from pawlflow.testing.sim.audit import INSTANCE, Audit, Fan, Line
from pawlflow.testing.sim.audit_policies import POLICIES, check_cleared
from pawlflow.testing.sim.audit_reviews import REVIEWS, check_guards, queue
from pawlflow.testing.sim.audit_undo import UNDOS, check_settled
from pawlflow.testing.sim.language import GIVEN, ITEMS, OPENED, WHEN_ITEM, WITH_ITEM


def read_on(audit: Audit, turn: Turn) -> None:
    """One more turn."""
    if audit.closed:
        audit.bad("7", f"turn {turn.number} after the end: {kind_of(turn.input)}")
    if not turn.events:
        audit.bad("8", f"turn {turn.number} says nothing: {kind_of(turn.input)}")
    if turn.stamps.now < audit.now:
        audit.bad("10", f"turn {turn.number} is of {turn.stamps.now}, before {audit.now}")
    audit.now = turn.stamps.now
    audit.input = turn.input
    audit.turn = turn
    audit.tick = isinstance(turn.input, Tick)
    if isinstance(turn.input, Receipt) and turn.input.outcome != "ok":
        audit.judge_failure(turn.input)
    if isinstance(turn.input, Receipt):
        audit.hear(turn.input)
    for event in turn.events:
        handler = HANDLERS.get(type(event))
        if handler is not None:
            handler(audit, event)


def on_created(audit: Audit, event: ev.InstanceCreated) -> None:
    """Once."""
    if audit.created:
        audit.bad("5", "created twice")
    audit.created = True
    audit.nonce = event.nonce
    audit.by = event.by
    audit.slot, audit.rate = event.slot, event.rate
    audit.given = event.input.value
    audit.start_at = event.start_at
    audit.arm(INSTANCE, event.start_at)


def on_due(audit: Audit, _: ev.InstanceDue) -> None:
    """The time to start has come."""
    audit.fire(INSTANCE, "the start")


def on_started(audit: Audit, _: ev.InstanceStarted) -> None:
    """The clock of the whole; not before its time, and not without leave."""
    if audit.started:
        audit.bad("5", "started twice")
    if audit.start_at is not None and audit.now < audit.start_at:
        audit.bad("15", f"it starts {audit.start_at - audit.now} ms early")
    if audit.rate and not (isinstance(audit.input, GrantSlot) and audit.input.rate):
        audit.bad("rate", "it starts, and its rate has not let it go")
    audit.started = True
    if audit.plan.timeout_ms is not None:
        audit.due[INSTANCE] = audit.now + audit.plan.timeout_ms


def on_fanned(audit: Audit, event: ev.StepFanned) -> None:
    """As many items as the list has, wherever it came from."""
    items = list_of(audit, event.step)
    if items is not None and len(items) != event.size:
        audit.bad("fan", f"s{event.step} has {event.size} items, the list {len(items)}")
    audit.line(event.step).queued = False
    audit.fans[event.step] = Fan(event.size, items)


def list_of(audit: Audit, step: int) -> list[Any] | None:
    """What forEach stands for, as an outsider reads it."""
    source = audit.lists.get(step, "")
    if source == ITEMS:
        given = audit.given if isinstance(audit.given, dict) else {}
        return list(given.get("items", GIVEN))
    name = source.removeprefix("steps.").removesuffix(".list")
    of = audit.plan.index.get(name)  # type: ignore[call-overload]
    line = None if of is None else audit.lines.get((of, NO_ITEM))
    return None if line is None or line.result is None else line.result.value.get("list")


def on_ready(audit: Audit, event: ev.StepReady) -> None:
    """Parameters are fixed, from the item if there is one."""
    line = audit.line(event.step, event.item)
    plan = audit.step(event.step)
    line.params = event.params
    queue(line)
    if event.item == NO_ITEM or event.params is None or audit.fans[event.step].items is None:
        return
    if plan.when_item and line.value <= 1:
        audit.bad("fan", f"{line} is not skipped, {WHEN_ITEM} is false for {line.value}")
    if plan.attempted and event.params.value != {"item": line.value, "i": line.item}:
        audit.bad("fan", f"{line} is given {event.params.value}, and is {line.value}: {WITH_ITEM}")


def on_step_started(audit: Audit, event: ev.StepStarted) -> None:
    """Attempts are counted and bounded, and the most urgent goes first."""
    line, plan = audit.line(event.step, event.item), audit.step(event.step)
    begin_attempt(audit, line)
    if event.attempt != line.attempt or event.round != line.round:
        audit.bad("19", f"attempt {event.attempt} round {event.round}, expected {line.attempt}")
    urgent = [o for o in audit.lines.values() if o.queued and audit.attempted(o)]
    passed = [o for o in urgent if audit.step(o.step).priority > plan.priority]
    if passed:
        audit.bad("order", f"{line} begins before {passed}, which are more urgent")
    line.queued = False
    audit.money.begin(plan.cost, line)
    places = audit.plan.max_parallel
    if places is not None and sum(1 for _ in audit.running()) > places:
        audit.bad("12", f"more than {places} attempts at one time")
    audit.arm(line, None if plan.span_ms is None else audit.now + plan.span_ms)


def begin_attempt(audit: Audit, line: Line) -> None:
    """One more, of an executor or a child."""
    if audit.stopping:
        audit.bad("6", f"{line} begins after the instance was to stop")
    if line.done or line.running:
        audit.bad("7", f"{line} begins, and was done or at work")
    check_guards(audit, line)
    check_cleared(audit, line)
    line.attempt += 1
    line.running = line.attempt
    audit.key(line, "do", line.round)


def on_waiting(audit: Audit, event: ev.StepWaiting) -> None:
    """A wait is open."""
    line = audit.line(event.step, event.item)
    line.queued = False
    if event.kind == "child":
        begin_attempt(audit, line)
        audit.expect_child(line, audit.key(line, "do", line.round))
    elif event.kind == "approval":
        line.voters, line.granted, line.asks = [], None, "approval"
    line.opened = audit.step(event.step).kind in OPENED
    audit.arm(line, event.until)


def on_succeeded(audit: Audit, event: ev.StepSucceeded) -> None:
    """Done, once; by an effect, if it was attempted; when all items are, if it has some."""
    line, plan = audit.line(event.step, event.item), audit.step(event.step)
    if audit.is_whole(line):
        fan = audit.fans[event.step]
        if fan.next != fan.size or fan.open:
            audit.bad("fan", f"s{event.step} is done at {fan.next} of {fan.size}")
    elif plan.attempted or plan.kind == "workflow":
        audit.prove(line, f"{line}")
        if event.attempt != line.running:
            audit.unwanted(line)
            audit.leave(line, "do", line.running)
        audit.money.spend(plan.cost, getattr(audit.input, "usage", None))
    elif plan.kind == "sleep":
        audit.fire(line, f"{line}")
    line.result = event.result
    audit.settle(line)
    audit.to_undo(line)


def on_backed_off(audit: Audit, event: ev.StepBackedOff) -> None:
    """Retries are bounded."""
    line = audit.line(event.step, event.item)
    audit.by_time(line, event.failure)
    audit.fail(line, event.failure)
    line.retries += 1
    if line.retries > audit.step(event.step).retry.max_retries:
        audit.bad("19", f"retry {line.retries} of {line}")
    audit.arm(line, event.retry_at)


def on_requeued(audit: Audit, event: ev.StepRequeued) -> None:
    """A back-off ends by time alone."""
    line = audit.line(event.step, event.item)
    audit.fire(line, f"the back-off of {line}")
    queue(line)


def on_correcting(audit: Audit, event: ev.StepCorrecting) -> None:
    """Corrections are bounded, and each begins a round."""
    line = audit.line(event.step, event.item)
    audit.fail(line, event.failure)
    line.corrections += 1
    line.round += 1
    audit.key(line, "do", line.round)
    if line.corrections > audit.step(event.step).max_corrections:
        audit.bad("19", f"correction {line.corrections} of {line}")
    audit.arm(line, None)
    queue(line)


def on_failed(audit: Audit, event: ev.StepFailed) -> None:
    """Given up."""
    line = audit.line(event.step, event.item)
    if not audit.is_whole(line):
        audit.by_time(line, event.failure)
    audit.settle(line)
    audit.unsure(line, event.attempt, event.failure)


def on_skipped(audit: Audit, event: ev.StepSkipped) -> None:
    """Passed over."""
    line = audit.line(event.step, event.item)
    if event.failure is not None:
        audit.by_time(line, event.failure)
    by_item = event.reason == "condition" and event.item != NO_ITEM
    if by_item and line.value is not None and line.value > 1:
        audit.bad("fan", f"{line} is skipped, and {WHEN_ITEM} holds for {line.value}")
    line.skipped, line.result = True, None
    audit.settle(line)
    if event.failure is not None:
        audit.unsure(line, event.attempt, event.failure)


def on_step_cancelled(audit: Audit, event: ev.StepCancelled) -> None:
    """Stopped; by time only when the grace is over, a child only when it has answered."""
    line = audit.line(event.step, event.item)
    if line.running and audit.is_child(line) and not isinstance(audit.input, Receipt):
        audit.bad("child", f"{line} ends, and its child has not answered")
    if audit.tick and line.running:
        audit.fire(line, f"the grace of {line}")
    if line.failure is not None and audit.plan.rules >= UNDOING_RULES:
        audit.unsure(line, line.failed, line.failure)
    audit.settle(line)


def on_late(audit: Audit, event: ev.LateSuccess) -> None:
    """It had happened after all: said once."""
    line = audit.of_round(event.step, event.item, event.round)
    if line.late:
        audit.bad("7", f"{line} is late twice")
    line.late, line.result = True, event.result
    listed = audit.step(line.step).undo is not None and audit.plan.rules >= UNDOING_RULES
    if listed and not audit.stopping and event.undo == (line in audit.stack):
        audit.bad("6", f"{line} succeeded late, and is not undone once, should it come to that")
    audit.prove(line, f"{line}, late,")
    audit.money.spend({}, getattr(audit.input, "usage", None))
    if event.undo:
        audit.stack.append(line)


def on_stopping(audit: Audit, event: ev.InstanceStopping) -> None:
    """What runs gets its grace, children are told; the timeout of the whole is over."""
    if audit.tick and event.failure is not None and event.failure.code == "workflow.timeout":
        audit.fire(INSTANCE, "the workflow's timeout")
    audit.due.pop(INSTANCE, None)
    audit.stopping = True
    for line in audit.lines.values():
        line.queued = False
        if not line.running or line.done:
            continue
        audit.unwanted(line)
        child = audit.is_child(line)
        audit.arm(line, None if child else audit.now + audit.step(line.step).grace_ms)


def on_closed(audit: Audit, event: Any) -> None:
    """The end. A full rollback leaves nothing, and no child is left behind."""
    audit.closed = True
    check_settled(audit, "closed")
    rollback = getattr(event, "rollback", "none")
    if rollback == "full" and (audit.stack or audit.undoing or audit.undo_failed):
        audit.bad("6", f"a full rollback left {audit.stack}")
    if rollback == "partial" and not audit.undo_failed:
        audit.bad("6", "a partial rollback without a failed undo")
    left = [line for line in audit.lines.values() if line.running]
    if left:
        children = any(audit.is_child(line) for line in left)
        audit.bad("child" if children else "7", f"closed while {left} are at work")
    if isinstance(event, ev.InstanceCompleted):
        undone = [step.name for step in audit.plan.steps if not audit.line(step.index).done]
        if undone:
            audit.bad("7", f"completed, and {undone} are not done")


HANDLERS: Final[dict[type, Callable[[Audit, Any], None]]] = {
    ev.InstanceCreated: on_created,
    ev.InstanceDue: on_due,
    ev.InstanceStarted: on_started,
    ev.StepFanned: on_fanned,
    ev.StepReady: on_ready,
    ev.StepStarted: on_step_started,
    ev.StepWaiting: on_waiting,
    ev.StepSucceeded: on_succeeded,
    ev.StepBackedOff: on_backed_off,
    ev.StepRequeued: on_requeued,
    ev.StepCorrecting: on_correcting,
    ev.StepFailed: on_failed,
    ev.StepSkipped: on_skipped,
    ev.StepCancelled: on_step_cancelled,
    ev.LateSuccess: on_late,
    ev.InstanceStopping: on_stopping,
    ev.InstanceCompleted: on_closed,
    ev.InstanceFailed: on_closed,
    ev.InstanceCancelled: on_closed,
    **REVIEWS,
    **POLICIES,
    **UNDOS,
}


def kind_of(incoming: object) -> str:
    """An input in one word."""
    return type(incoming).__name__
