"""Outlook: what an instance waits for or how it ended, and the command that comes next."""

from typing import Final

from pawlflow.kernel.state import (
    BACKOFF,
    CORRECTING,
    ESCALATED,
    READY,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    UNDO_BACKOFF,
    UNDO_FAILED,
    WAITING,
    Closing,
    Instance,
    Unit,
)
from pawlflow.kernel.summary import instance_state
from pawlflow.projections.facts import blame, listed
from pawlflow.projections.plain import time_told
from pawlflow.projections.story import Told

PRESSING: Final = (ESCALATED, WAITING, BACKOFF, RUNNING, CORRECTING, READY)  # people first
PRESSING_MAX: Final = 5  # told one by one; more are counted
UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"))


def outlook(told: Told, now: int | None) -> tuple[str, list[str]]:
    """What comes now, in words, and what may be done about it, the most useful first."""
    state = told.state
    if state.outcome is not None and state.closed is not None:
        return ended(told)
    if state.closing is not None:
        return winding_down(told, now)
    if state.started is None:
        words = "waits for a free slot" if state.queued else "has not begun"
        since = when(state.now if state.created is None else state.created, now)
        return f"the instance {words}, since {since}", [watch(told)]
    return going_on(told, now)


def pressing(state: Instance) -> list[Unit]:
    """The open steps that a person would ask about first."""
    units = [state.unit(step) for step in sorted(state.open)]
    return sorted(units, key=lambda unit: PRESSING.index(unit.status))[:PRESSING_MAX]


def when(at: int, now: int | None) -> str:
    """A time, and how far it is from now."""
    if now is None:
        return str(time_told(at))
    far = distance(abs(at - now))
    return f"{time_told(at)} ({f'in {far}' if at > now else f'{far} ago'})"


def distance(ms: int) -> str:
    """A span of time by its largest two units."""
    parts: list[str] = []
    for size, unit in UNITS:
        n, ms = divmod(ms, size)
        if n:
            parts.append(f"{n}{unit}")
    return " ".join(parts[:2]) or f"{ms}ms"


def watch(told: Told) -> str:
    """The command for those who can only wait."""
    return f"pawl watch {told.id}"


# Closed


def ended(told: Told) -> tuple[str, list[str]]:
    """How a closed instance ended."""
    state = told.state
    look = f"pawl show {told.id}"
    took = distance((state.closed or 0) - (state.started or 0))
    if state.closing is None:
        done, left = state.counts[SUCCEEDED], state.counts[SKIPPED]
        skipped = f", {left} skipped" if left else ""
        return f"it completed after {took}: {done} of its steps done{skipped}", [look]
    text = f"{verdict(state, state.closing)}; rollback {state.rollback}"
    stuck = [unit for unit in state.units if unit is not None and unit.undo == UNDO_FAILED]
    if stuck:
        names = [state.plan.steps[unit.step].name for unit in stuck]
        hint = f"undo {listed(names)} by hand; see undo_error in: {look} --json"
        return f"{text}: {listed(names)} could not be undone", [hint, look]
    return text, list(dict.fromkeys([advice(state, state.closing, look), look]))


def verdict(state: Instance, closing: Closing) -> str:
    """What decided the outcome."""
    if closing.failure is None:
        return f"{closing.by} cancelled it"
    reason = blame(closing.failure)
    if closing.step < 0:
        return f"the instance itself failed ({reason})"
    name, attempts = state.plan.steps[closing.step].name, state.unit(closing.step).attempt
    if closing.outcome == "cancelled":
        return f"{closing.by} rejected {name}, which cancelled the instance"
    tries = f" after {attempts} attempt{'s' if attempts > 1 else ''}" if attempts else ""
    return f"{name} failed{tries} ({reason})"


def advice(state: Instance, closing: Closing, look: str) -> str:
    """What error to look at, and what usually helps."""
    if closing.failure is None or closing.outcome == "cancelled":
        return look
    step = None if closing.step < 0 else state.plan.steps[closing.step].name
    where = "error" if step is None else f"steps.{step}.error"
    return f"{ADVICE[closing.failure.kind]}; see {where} in: {look} --json"


ADVICE: Final[dict[str, str]] = {
    "transient": "once the service answers again, start a new run; more retries may help",
    "external": "once the service answers again, start a new run; more retries may help",
    "agent": "read what the executor raised, correct it, and start a new run",
    "validation": "correct what the findings say, or allow corrections (maxCorrectionAttempts)",
    "timeout": "find out what took so long, or raise the timeout",
    "governance": "ask whoever refused it",
    "terminal": "correct what the message says, then start a new run",
    "unknown_outcome": "find out whether it happened before starting a new run",
}


# Stopping


def winding_down(told: Told, now: int | None) -> tuple[str, list[str]]:
    """An instance whose outcome is decided: attempts are being stopped, or work undone."""
    state = told.state
    if state.undoing is not None:
        unit = state.unit(state.undoing)
        return f"{undoing(told, unit, now)}{undo_rest(state)}", [watch(told)]
    running = [state.unit(step) for step in sorted(state.open)]
    names = listed([state.plan.steps[unit.step].name for unit in running])
    until = max((unit.until for unit in running if unit.until is not None), default=None)
    limit = "" if until is None else f", at most until {when(until, now)}"
    return f"it stops, and waits for the attempts of {names} to end{limit}", [watch(told)]


def undoing(told: Told, unit: Unit, now: int | None) -> str:
    """The undo in flight."""
    name = told.state.plan.steps[unit.step].name
    if unit.undo == UNDO_BACKOFF and unit.undo_until is not None:
        due = when(unit.undo_until, now)
        return f"undoing {name} is tried again at {due}, after {blame(unit.undo_failure)}"
    since = when(told.undo_since[unit.step], now)
    return f"attempt {unit.undo_attempt} to undo {name} has run since {since}"


def undo_rest(state: Instance) -> str:
    """What is still to be undone after this one."""
    rest = [state.plan.steps[step].name for step in reversed(state.undo_list)]
    others = [name for name in rest if state.plan.index[name] != state.undoing]
    return f"; still to be undone: {listed(others)}" if others else ""


# Open


def going_on(told: Told, now: int | None) -> tuple[str, list[str]]:
    """An instance with open steps: what each waits for, and who can move it."""
    state = told.state
    units = pressing(state)
    texts = [open_step(told, unit, now) for unit in units]
    more = len(state.open) - len(units)
    texts += [f"{more} more steps are open"] if more else []
    hints = list(dict.fromkeys(hint for unit in units for hint in hints_for(told, unit)))
    hints = hints or [watch(told)]
    if not state.paused:
        return "; ".join(texts) or instance_state(state), hints
    held = f"{told.paused_by} paused it at {when(told.paused_at, now)}: nothing new starts"
    return "; ".join([held, *texts]), [f"pawl unpause {told.id} --by NAME", *hints]


def open_step(told: Told, unit: Unit, now: int | None) -> str:
    """One open step: what it does or waits for, since when and until when."""
    plan = told.state.plan.steps[unit.step]
    since = f"since {when(told.since[unit.step], now)}"
    until = "" if unit.until is None else when(unit.until, now)
    if unit.status == RUNNING:
        limit = f", and times out at {until}" if until else ""
        return f"attempt {unit.attempt} of {plan.name} ({plan.target}) has run {since}{limit}"
    if unit.status == BACKOFF:
        again = f"attempt {unit.attempt + 1}" if plan.attempted else "its next wait"
        return f"{plan.name} backs off: {again} is due at {until}, after {blame(unit.failure)}"
    if unit.status == WAITING:
        return f"{plan.name} {awaited(told, unit)} {since}" + (f", until {until}" if until else "")
    if unit.status == ESCALATED:
        return f"{plan.name} waits for a human's decision {since}, after {blame(unit.failure)}"
    next_ = "to be corrected" if unit.status == CORRECTING else "ready"
    return f"{plan.name} is {next_}, and waits{free_place(told.state)} {since}"


def free_place(state: Instance) -> str:
    """What a ready step waits for, unless it is the pause."""
    limit = state.plan.max_parallel
    return "" if state.paused or limit is None else f" for a free place (maxParallel {limit})"


def awaited(told: Told, unit: Unit) -> str:
    """What a wait is for."""
    plan = told.state.plan.steps[unit.step]
    match unit.wait:
        case "event":
            return f"waits for the event {plan.event}"
        case "timer":
            return "sleeps"
        case "child":
            return "waits for its child workflow"
        case _:
            return f"waits for approval{asked(told, unit)}"


def asked(told: Told, unit: Unit) -> str:
    """Whom a gate asks, and who has agreed already."""
    gate = told.state.plan.steps[unit.step].gate
    if gate is None:
        return ""
    role = unit.role or gate.role
    words = f" by {role}" if role else ""
    if gate.not_by_requester:
        words += f" (not {told.state.by})"
    if gate.quorum > 1:
        names = f" ({listed([vote.by for vote in unit.votes])})" if unit.votes else ""
        words += f", {len(unit.votes)} of {gate.quorum} given{names},"
    return words


def hints_for(told: Told, unit: Unit) -> list[str]:
    """The commands that move an open step on."""
    plan = told.state.plan.steps[unit.step]
    if unit.status == ESCALATED:
        target = f"{told.id} {plan.name}"
        other = [f"pawl reassign {target} --to ROLE --by NAME"] if plan.kind != "run" else []
        edited = [f"pawl retry {target} --with '{{...}}' --by NAME"] if plan.attempted else []
        stop = f"pawl cancel {told.id} --by NAME"
        return [f"pawl resume {target} --by NAME", *edited, *other, stop]
    if unit.status != WAITING or unit.wait in ("timer", "child"):
        return [watch(told)]
    if unit.wait == "event":
        return [f"pawl signal {told.id} {plan.event} --data '{{...}}'"]
    role = unit.role or (plan.gate.role if plan.gate else None)
    decide = f"{told.id}/{plan.name} --by NAME" + (f" --role {role}" if role else "")
    return [f"pawl review approve {decide}", f"pawl review reject {decide}"]
