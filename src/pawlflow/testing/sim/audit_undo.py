"""The audit of compensation: what may be undone, when, and what must be over before."""

from collections.abc import Callable
from typing import Any, Final

from pawlflow.definition.rules import UNDOING_RULES
from pawlflow.model import events as ev
from pawlflow.model.inputs import Receipt
from pawlflow.model.intents import Direction
from pawlflow.testing.sim.audit import Audit, Line

UNDO: Final = "undo"  # beside a line: the deadline of its undo


def on_undo_started(audit: Audit, event: ev.UndoStarted) -> None:
    """The step completed last, and no other."""
    line, plan = audit.undone(event.step, event.item, event.round), audit.step(event.step)
    if event.attempt == 1:
        begin_undo(audit, line)
    else:
        audit.fire((line, UNDO), f"the back-off of undoing {line}")
    if line not in audit.undoing or event.attempt != line.undo_attempt + 1:
        audit.bad("19", f"attempt {event.attempt} to undo {line}")
    said = event.params.value or {}
    if line.value is not None and "item" in said and said["item"] != line.value:
        audit.bad("6", f"{line} was {line.value}, and {said} is undone")
    answer = None if line.result is None else line.result.value
    known = {"answer": answer, "result": answer, "r": (answer or {}).get("n")}
    wrong = [name for name, value in said.items() if known.get(name, value) != value]
    if wrong and audit.plan.rules >= UNDOING_RULES:
        audit.bad("6", f"{line} was answered {answer}, and {said} is undone")
    line.undo_attempt = event.attempt
    audit.key(line, "undo", line.round)
    span = plan.undo.span_ms if plan.undo else None
    audit.arm((line, UNDO), None if span is None else audit.now + span)


def begin_undo(audit: Audit, line: Line) -> None:
    """One at a time, last first; or, all at once, nothing before what lies deeper."""
    if any(True for _ in audit.running()):
        audit.bad("6", f"{line} is undone while attempts run")
    check_settled(audit, f"{line} is undone")
    if audit.plan.parallel_undo:
        depth = audit.depths[line.step]
        deeper = [o for o in (*audit.stack, *audit.undoing) if audit.depths[o.step] > depth]
        if deeper or line not in audit.stack:
            audit.bad("6", f"{line} is undone before {deeper}, which lie deeper")
    elif audit.undoing or not audit.stack or audit.stack[-1] is not line:
        audit.bad("6", f"{line} is undone while {audit.stack} are to be undone, last first")
    audit.stack.remove(line)
    audit.undoing.append(line)


def check_settled(audit: Audit, what: str) -> None:
    """Not before all that was left is over, or has had its grace."""
    if audit.still_at_work():
        audit.bad("settled", f"{what} while {audit.still_at_work()} may be at work")


def on_attempt_ended(audit: Audit, event: ev.AttemptEnded) -> None:
    """By time only when its grace is over."""
    direction: Direction = "undo" if event.undo else "do"
    left = (event.step, event.item, direction, event.round, event.attempt)
    if left in audit.still_at_work():
        audit.bad("15", f"the grace of attempt {event.attempt} of s{event.step} ends early")
    audit.left.pop(left, None)


def on_undo_backed_off(audit: Audit, event: ev.UndoBackedOff) -> None:
    """Bounded as well."""
    line = audit.undone(event.step, event.item, event.round)
    if audit.tick and event.failure.kind == "timeout":
        audit.fire((line, UNDO), f"the timeout of undoing {line}")
        audit.leave(line, "undo", line.undo_attempt)
    plan = audit.step(event.step).undo
    line.undo_retries += 1
    if plan is None or line.undo_retries > plan.retry.max_retries:
        audit.bad("19", f"retry {line.undo_retries} of undoing {line}")
    audit.arm((line, UNDO), event.retry_at)


def on_undo_done(audit: Audit, event: ev.UndoDone) -> None:
    """One less."""
    line = audit.undone(event.step, event.item, event.round)
    if isinstance(audit.input, Receipt):
        audit.succeeded.append(audit.input.key)
    else:
        audit.bad("4", f"undoing {line} succeeded without a receipt")
    end_undo(audit, line)


def on_undo_failed(audit: Audit, event: ev.UndoFailed) -> None:
    """It stays done."""
    line = audit.undone(event.step, event.item, event.round)
    if audit.tick and event.failure.kind == "timeout":
        audit.fire((line, UNDO), f"the timeout of undoing {line}")
        audit.leave(line, "undo", line.undo_attempt)
    if event.attempt == 0:
        begin_undo(audit, line)
    audit.undo_failed = True
    end_undo(audit, line)


def end_undo(audit: Audit, line: Line) -> None:
    """Off the list."""
    if line not in audit.undoing:
        audit.bad("6", f"{line} was not being undone")
    audit.undoing.remove(line)
    audit.arm((line, UNDO), None)


UNDOS: Final[dict[type, Callable[[Audit, Any], None]]] = {
    ev.AttemptEnded: on_attempt_ended,
    ev.UndoStarted: on_undo_started,
    ev.UndoBackedOff: on_undo_backed_off,
    ev.UndoDone: on_undo_done,
    ev.UndoFailed: on_undo_failed,
}
