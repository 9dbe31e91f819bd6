"""What each event means to the audit of an instance: which promises it could break."""

from collections.abc import Callable
from typing import Any, Final

from pawlflow.model import events as ev
from pawlflow.model.inputs import Receipt, Tick
from pawlflow.model.journal import Turn
from pawlflow.testing.sim.audit import Audit

INSTANCE: Final = -1  # in place of a step: the timeout of the whole
UNDO: Final = 1_000  # added to a step: the deadline of its undo


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
    audit.tick = isinstance(turn.input, Tick)
    if isinstance(turn.input, Receipt) and turn.input.outcome != "ok":
        audit.judge_failure(turn.input)
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
    audit.slot = event.slot


def on_started(audit: Audit, _: ev.InstanceStarted) -> None:
    """The clock of the whole."""
    audit.started = True
    if audit.plan.timeout_ms is not None:
        audit.due[INSTANCE] = audit.now + audit.plan.timeout_ms


def on_ready(audit: Audit, event: ev.StepReady) -> None:
    """Parameters are fixed."""
    audit.line(event.step).ready = event.params is not None


def on_step_started(audit: Audit, event: ev.StepStarted) -> None:
    """Attempts are counted, and bounded."""
    line, plan = audit.line(event.step), audit.step(event.step)
    if event.attempt != line.attempt + 1 or event.round != line.round:
        audit.bad("19", f"attempt {event.attempt} round {event.round} after {line.attempt}")
    line.attempt = line.running = event.attempt
    audit.key(event.step, "do", line.round)
    audit.arm(event.step, None if plan.span_ms is None else audit.now + plan.span_ms)


def on_waiting(audit: Audit, event: ev.StepWaiting) -> None:
    """A wait is open."""
    audit.arm(event.step, event.until)


def on_succeeded(audit: Audit, event: ev.StepSucceeded) -> None:
    """Done, once; by an effect, if it was attempted."""
    plan = audit.step(event.step)
    if plan.attempted:
        audit.prove(f"s{event.step}")
    elif plan.kind == "sleep":
        audit.fire(event.step, f"s{event.step}")
    audit.settle(event.step)
    if plan.undo is not None:
        audit.stack.append(event.step)


def on_granted(audit: Audit, event: ev.GateGranted) -> None:
    """A gate is open."""
    audit.settle(event.step)


def on_gate_rejected(audit: Audit, event: ev.GateRejected) -> None:
    """A gate is shut for good."""
    if event.settles:
        audit.settle(event.step)


def on_backed_off(audit: Audit, event: ev.StepBackedOff) -> None:
    """Retries are bounded."""
    audit.by_time(event.step, event.failure)
    line = audit.line(event.step)
    line.running = 0
    line.retries += 1
    if line.retries > audit.step(event.step).retry.max_retries:
        audit.bad("19", f"retry {line.retries} of s{event.step}")
    audit.arm(event.step, event.retry_at)


def on_requeued(audit: Audit, event: ev.StepRequeued) -> None:
    """A back-off ends by time alone."""
    audit.fire(event.step, f"the back-off of s{event.step}")


def on_correcting(audit: Audit, event: ev.StepCorrecting) -> None:
    """Corrections are bounded, and each begins a round."""
    line = audit.line(event.step)
    line.running = 0
    line.corrections += 1
    line.round += 1
    audit.key(event.step, "do", line.round)
    if line.corrections > audit.step(event.step).max_corrections:
        audit.bad("19", f"correction {line.corrections} of s{event.step}")
    audit.arm(event.step, None)


def on_failed(audit: Audit, event: ev.StepFailed) -> None:
    """Given up."""
    audit.by_time(event.step, event.failure)
    audit.settle(event.step)
    audit.unsure(event.step, event.attempt, event.failure)


def on_skipped(audit: Audit, event: ev.StepSkipped) -> None:
    """Passed over."""
    if event.failure is not None:
        audit.by_time(event.step, event.failure)
    audit.settle(event.step)
    if event.failure is not None:
        audit.unsure(event.step, event.attempt, event.failure)


def on_escalated(audit: Audit, event: ev.StepEscalated) -> None:
    """A human decides; no deadline."""
    audit.by_time(event.step, event.failure)
    audit.line(event.step).running = 0
    audit.arm(event.step, None)


def on_resumed(audit: Audit, event: ev.StepResumed) -> None:
    """A fresh budget; with another input, another round."""
    line = audit.line(event.step)
    line.retries = line.corrections = 0
    if event.params is not None:
        if line.ready:
            line.round += 1
            audit.key(event.step, "do", line.round)
        line.ready = True


def on_step_cancelled(audit: Audit, event: ev.StepCancelled) -> None:
    """Stopped; by time only when the grace is over."""
    if audit.tick and audit.line(event.step).running:
        audit.fire(event.step, f"the grace of s{event.step}")
    audit.settle(event.step)


def on_late(audit: Audit, event: ev.LateSuccess) -> None:
    """It had happened after all: said once."""
    line = audit.line(event.step)
    if line.late:
        audit.bad("7", f"s{event.step} is late twice")
    line.late = True
    audit.prove(f"s{event.step}, late,")
    if event.undo:
        audit.stack.append(event.step)


def on_stopping(audit: Audit, event: ev.InstanceStopping) -> None:
    """What runs gets its grace; the timeout of the whole is over."""
    if audit.tick and event.failure is not None and event.failure.code == "workflow.timeout":
        audit.fire(INSTANCE, "the workflow's timeout")
    audit.due.pop(INSTANCE, None)
    for step, line in audit.lines.items():
        if line.running and not line.done:
            audit.due[step] = audit.now + audit.step(step).grace_ms


def on_undo_started(audit: Audit, event: ev.UndoStarted) -> None:
    """The step completed last, and no other."""
    step, plan = event.step, audit.step(event.step)
    if event.attempt == 1:
        begin_undo(audit, step)
    else:
        audit.fire(step + UNDO, f"the back-off of undoing s{step}")
    if audit.undoing != step or event.attempt != audit.undo_attempts.get(step, 0) + 1:
        audit.bad("19", f"attempt {event.attempt} to undo s{step}")
    audit.undo_attempts[step] = event.attempt
    audit.key(step, "undo", audit.line(step).round)
    span = plan.undo.span_ms if plan.undo else None
    audit.arm(step + UNDO, None if span is None else audit.now + span)


def begin_undo(audit: Audit, step: int) -> None:
    """One at a time, last first."""
    if audit.undoing is not None or not audit.stack or audit.stack[-1] != step:
        audit.bad("6", f"s{step} is undone while {audit.stack} are to be undone, last first")
    audit.undoing = step
    audit.undo_retries = 0


def on_undo_backed_off(audit: Audit, event: ev.UndoBackedOff) -> None:
    """Bounded as well."""
    if audit.tick and event.failure.kind == "timeout":
        audit.fire(event.step + UNDO, f"the timeout of undoing s{event.step}")
    plan = audit.step(event.step).undo
    audit.undo_retries += 1
    if plan is None or audit.undo_retries > plan.retry.max_retries:
        audit.bad("19", f"retry {audit.undo_retries} of undoing s{event.step}")
    audit.arm(event.step + UNDO, event.retry_at)


def on_undo_done(audit: Audit, event: ev.UndoDone) -> None:
    """One less."""
    audit.prove(f"undoing s{event.step}")
    end_undo(audit, event.step)


def on_undo_failed(audit: Audit, event: ev.UndoFailed) -> None:
    """It stays done."""
    if audit.tick and event.failure.kind == "timeout":
        audit.fire(event.step + UNDO, f"the timeout of undoing s{event.step}")
    if event.attempt == 0:
        begin_undo(audit, event.step)
    audit.undo_failed = True
    end_undo(audit, event.step)


def end_undo(audit: Audit, step: int) -> None:
    """Off the list."""
    if audit.undoing != step:
        audit.bad("6", f"s{step} was not being undone")
    audit.undoing = None
    audit.stack.remove(step)
    audit.arm(step + UNDO, None)


def on_closed(audit: Audit, event: Any) -> None:
    """The end. A full rollback leaves nothing."""
    audit.closed = True
    rollback = getattr(event, "rollback", "none")
    if rollback == "full" and (audit.stack or audit.undo_failed):
        audit.bad("6", f"a full rollback left {audit.stack}")
    if rollback == "partial" and not audit.undo_failed:
        audit.bad("6", "a partial rollback without a failed undo")


HANDLERS: Final[dict[type, Callable[[Audit, Any], None]]] = {
    ev.InstanceCreated: on_created,
    ev.InstanceStarted: on_started,
    ev.StepReady: on_ready,
    ev.StepStarted: on_step_started,
    ev.StepWaiting: on_waiting,
    ev.StepSucceeded: on_succeeded,
    ev.GateGranted: on_granted,
    ev.GateRejected: on_gate_rejected,
    ev.StepBackedOff: on_backed_off,
    ev.StepRequeued: on_requeued,
    ev.StepCorrecting: on_correcting,
    ev.StepFailed: on_failed,
    ev.StepSkipped: on_skipped,
    ev.StepEscalated: on_escalated,
    ev.StepResumed: on_resumed,
    ev.StepCancelled: on_step_cancelled,
    ev.LateSuccess: on_late,
    ev.InstanceStopping: on_stopping,
    ev.UndoStarted: on_undo_started,
    ev.UndoBackedOff: on_undo_backed_off,
    ev.UndoDone: on_undo_done,
    ev.UndoFailed: on_undo_failed,
    ev.InstanceCompleted: on_closed,
    ev.InstanceFailed: on_closed,
    ev.InstanceCancelled: on_closed,
}


def kind_of(incoming: object) -> str:
    """An input in one word."""
    return type(incoming).__name__
