"""Outlook: what an instance waits for or how it ended, and the command that comes next."""

from itertools import chain
from shlex import quote
from typing import Final

from pawlflow.kernel.children import child_id
from pawlflow.kernel.gates import gate_of, role_of
from pawlflow.kernel.ladder import rung_of
from pawlflow.kernel.state import Instance
from pawlflow.kernel.summary import instance_state
from pawlflow.kernel.system.starting import asking
from pawlflow.kernel.units import (
    BACKOFF,
    CORRECTING,
    ESCALATED,
    FANNED,
    READY,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    UNDO_BACKOFF,
    UNDO_FAILED,
    WAITING,
    Closing,
    Unit,
)
from pawlflow.model.ids import NO_ITEM
from pawlflow.projections.budgets import held_text, held_told
from pawlflow.projections.facts import blame, listed, named
from pawlflow.projections.plain import time_told
from pawlflow.projections.policies import asking_text
from pawlflow.projections.queues import Standing, standing_words
from pawlflow.projections.story import Told
from pawlflow.projections.units import blamed, items_told

PRESSING: Final = (ESCALATED, WAITING, BACKOFF, RUNNING, CORRECTING, READY, FANNED)  # people first
PRESSING_MAX: Final = 5  # told one by one; more are counted
ABANDONED: Final = ", and nobody carries it out now: no process drives the store"
UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"))


def outlook(told: Told, now: int | None, standing: Standing | None = None) -> tuple[str, list[str]]:
    """What comes now, in words, and what may be done about it, the most useful first."""
    state = told.state
    if state.outcome is not None and state.closed is not None:
        return ended(told)
    if state.closing is not None:
        return winding_down(told, now)
    if state.started is None:
        return not_begun(told, now, standing)
    return going_on(told, now)


def not_begun(told: Told, now: int | None, standing: Standing | None) -> tuple[str, list[str]]:
    """An instance that waits for its time, or in a line."""
    state = told.state
    if state.start_at is not None:
        cancel = f"pawl cancel {told.id} --by NAME"
        return f"the instance starts at {when(state.start_at, now)}", [watch(told), cancel]
    words = QUEUED.get(asking(state), "waits for a free slot") if state.queued else "has not begun"
    if standing is not None:
        starts = "" if standing.starts_at is None else when(standing.starts_at, now)
        words = standing_words(standing, starts)
    since = when(state.now if state.created is None else state.created, now)
    return f"the instance {words}, since {since}", [watch(told)]


QUEUED: Final = {"rate": "waits for its rate"}


def pressing(state: Instance) -> list[Unit]:
    """The open steps and items that a person would ask about first."""
    units = sorted(map(state.unit, state.open), key=lambda unit: (unit.step, unit.item))
    alone = [unit for unit in units if unit.status != FANNED or not state.fans[unit.step].open]
    return sorted(alone, key=lambda unit: urgency(unit)[0])[:PRESSING_MAX]


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
    """The command for those who can only wait; where nobody drives the store, who does."""
    return f"pawl watch {told.id}" if told.driven else f"pawl wait {told.id} --worker MODULE"


# Closed


def ended(told: Told) -> tuple[str, list[str]]:
    """How a closed instance ended."""
    state = told.state
    look = f"pawl show {told.id}"
    took = distance((state.closed or 0) - (state.started or 0))
    if state.closing is None:
        return f"it completed after {took}: {done_told(state)}", [look]
    text = f"{verdict(state, state.closing)}; rollback {state.rollback}"
    units = chain(filter(None, state.units), state.items.values())
    stuck = [unit.place for unit in units if unit.undo == UNDO_FAILED]
    if stuck:
        names = named(state, stuck)
        hint = f"undo {names} by hand; see undo_error in: {look} --json"
        return f"{text}: {names} could not be undone", [hint, look]
    return text, list(dict.fromkeys([advice(state, state.closing, look), look]))


def done_told(state: Instance) -> str:
    """How many steps were done, and how many items of them."""
    statuses = [unit.status for unit in state.units if unit is not None]
    done, left = statuses.count(SUCCEEDED), state.counts[SKIPPED]
    items = f" and {state.counts[SUCCEEDED] - done:,} items" if state.fans else ""
    return f"{done} of its steps{items} done" + (f", {left:,} skipped" if left else "")


def verdict(state: Instance, closing: Closing) -> str:
    """What decided the outcome."""
    if closing.failure is None:
        return f"{closing.by} cancelled it"
    reason = blame(closing.failure)
    unit = blamed(state)
    if unit is None:
        return f"the instance itself failed ({reason})"
    name, attempts = state.name_of(unit), unit.attempt
    if closing.outcome == "cancelled":
        return f"{closing.by} rejected {name}, which cancelled the instance"
    tries = f" after {attempts} attempt{'s' if attempts > 1 else ''}" if attempts else ""
    return f"{name} failed{tries} ({reason})"


def advice(state: Instance, closing: Closing, look: str) -> str:
    """What error to look at, and what usually helps."""
    if closing.failure is None or closing.outcome == "cancelled":
        return look
    unit = blamed(state)
    if unit is not None and unit.attempt and state.plan.steps[unit.step].kind == "workflow":
        return f"pawl why {child_id(state, unit)}"
    if unit is not None and closing.failure.code in POLICY_ADVICE:
        see = f"{path_of(state, unit)}.policy in: {look} --json"
        return f"{POLICY_ADVICE[closing.failure.code]}; see {see}"
    where = "error" if unit is None else f"{path_of(state, unit)}.error"
    return f"{ADVICE[closing.failure.kind]}; see {where} in: {look} --json"


def path_of(state: Instance, unit: Unit) -> str:
    """Where the object of `show` tells of a unit."""
    name = state.name_of(unit)
    return f"steps.{name}" if unit.item == NO_ITEM else f'steps["{name}"]'


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
POLICY_ADVICE: Final[dict[str, str]] = {
    "policy.denied": "`pawl policy show NAME` has the rule that denies it",
    "policy.roles": "let the rules that ask for an approval name one role",
    "policy.error": "correct the rule that cannot be evaluated, and start a new run",
    "policy.request": "correct what the step asks the policies, and start a new run",
    "policy.cedar_missing": "install Cedar where it runs, and start a new run",
    "policy.unavailable": "once the policies can be asked again, start a new run",
}


# Stopping


def winding_down(told: Told, now: int | None) -> tuple[str, list[str]]:
    """An instance whose outcome is decided: attempts are being stopped, or work undone."""
    state = told.state
    if state.undoing:
        units = [state.unit(place) for place in state.undoing]
        texts = [undoing(told, unit, now) for unit in units[:PRESSING_MAX]]
        more = len(units) - len(texts)
        texts += [f"{more} more are being undone"] if more else []
        return f"{'; '.join(texts)}{undo_rest(state)}", [watch(told)]
    return f"it stops, and waits for the attempts of {at_work(state, now)}", [watch(told)]


def at_work(state: Instance, now: int | None) -> str:
    """Whose attempts are waited for before anything else happens, and how long at most."""
    open_, left = [state.unit(place) for place in sorted(state.open)], list(state.left.values())
    units = open_ + [state.of_round(each.step, each.item, each.round) for each in left]
    names = named(state, list(dict.fromkeys(unit.place for unit in units)))
    ends = [unit.until for unit in open_] + [each.until for each in left]
    until = max((each for each in ends if each is not None), default=None)
    return f"{names} to end" + ("" if until is None else f", at most until {when(until, now)}")


def undoing(told: Told, unit: Unit, now: int | None) -> str:
    """The undo in flight."""
    name = told.state.name_of(unit)
    if unit.undo == UNDO_BACKOFF and unit.undo_until is not None:
        due = when(unit.undo_until, now)
        return f"undoing {name} is tried again at {due}, after {blame(unit.undo_failure)}"
    since = when(told.undo_since[unit.place], now)
    if not told.driven:
        return f"attempt {unit.undo_attempt} to undo {name} began at {since}{ABANDONED}"
    return f"attempt {unit.undo_attempt} to undo {name} has run since {since}"


def undo_rest(state: Instance) -> str:
    """What is still to be undone after this."""
    rest = state.undo_list[::-1]
    return f"; still to be undone: {named(state, rest)}" if rest else ""


# Open


def going_on(told: Told, now: int | None) -> tuple[str, list[str]]:
    """An instance with open steps: what each waits for, and who can move it."""
    state = told.state
    units = pressing(state)
    fans = [unit for unit in map(state.unit, sorted(state.open)) if unit.status == FANNED]
    texts = [open_fan(state, unit) for unit in fans if state.fans[unit.step].open]
    more = len(state.open) - len(units) - len(texts)
    texts = [*texts[:PRESSING_MAX], *(open_step(told, unit, now) for unit in units)]
    kinds = "steps and items" if state.fans else "steps"
    texts += [f"{more:,} more {kinds} are open"] if more > 0 else []
    hints = list(dict.fromkeys(hint for unit in units for hint in hints_for(told, unit)))
    hints = hints or [watch(told)]
    if state.left and not state.open:
        texts.append(f"it is done, and waits for attempts of {at_work(state, now)}")
    if not state.paused:
        return "; ".join(texts) or instance_state(state), hints
    held = f"{told.paused_by} paused it at {when(told.paused_at, now)}: nothing new starts"
    return "; ".join([held, *texts]), [f"pawl unpause {told.id} --by NAME", *hints]


def open_fan(state: Instance, whole: Unit) -> str:
    """How far the items of a step are; if none can go on by itself, those that hold it up."""
    fan, name = state.fans[whole.step], state.name_of(whole)
    counts = items_told(state, fan)
    others = [f"{counts[word]:,} {word}" for word in ("failed", "skipped") if counts[word]]
    rest = f" ({', '.join(others)})" if others else ""
    text = f"{counts['done']:,} of {fan.size:,} items of {name} are done{rest}"
    if counts["running"]:
        return text
    held = [unit for unit in map(state.unit, sorted(state.open)) if unit.step == whole.step]
    items = sorted((unit for unit in held if unit is not whole), key=urgency)
    return f"{text}, held up by {named(state, [unit.place for unit in items])}"


def urgency(unit: Unit) -> tuple[int, int]:
    """Those that a human must decide go first."""
    return 0 if unit.held else PRESSING.index(unit.status), unit.item


def open_step(told: Told, unit: Unit, now: int | None) -> str:
    """One open step or item: what it does or waits for, since when and until when."""
    plan, name = told.state.plan.steps[unit.step], told.state.name_of(unit)
    since = f"since {when(told.since[unit.place], now)}"
    until = "" if unit.until is None else when(unit.until, now)
    if unit.status == RUNNING and not told.driven:
        began = when(told.since[unit.place], now)
        return f"attempt {unit.attempt} of {name} ({plan.target}) began at {began}{ABANDONED}"
    if unit.status == RUNNING:
        limit = f", and times out at {until}" if until else ""
        return f"attempt {unit.attempt} of {name} ({plan.target}) has run {since}{limit}"
    if unit.status == BACKOFF:
        again = f"attempt {unit.attempt + 1}" if plan.attempted else "its next wait"
        return f"{name} backs off: {again} is due at {until}, after {blame(unit.failure)}"
    if unit.status == WAITING:
        limit = f", until {until}" if until else ""
        return f"{name} {awaited(told, unit)} {since}{limit}{claimed(unit)}"
    if unit.status == ESCALATED:
        reason = f"after {blame(unit.failure)}{rung_text(told.state, unit, until)}{claimed(unit)}"
        return f"{name} waits for a human's decision {since}, {reason}"
    next_ = "to be corrected" if unit.status == CORRECTING else "ready"
    if unit.held:
        held = f"since {when(unit.asked_at or 0, now)}"
        why = held_text(held_told(told.state, unit))
        return f"{name} is {next_}, but held by the budget {held}: {why}{claimed(unit)}"
    gates = [] if unit.order else gates_of(told.state, unit)
    what = f" for {listed(gates)} to agree" if gates else free_place(told.state)
    what = asking_text(unit) or what
    return f"{name} is {next_}, and waits{what} {since}"


def gates_of(state: Instance, unit: Unit) -> list[str]:
    """The gates that have not agreed to what a step would do."""
    gates = (state.unit(gate) for gate in state.plan.guarded_by.get(unit.step, ()))
    return [state.name_of(gate) for gate in gates if gate.status not in (SUCCEEDED, SKIPPED)]


def rung_text(state: Instance, unit: Unit, until: str) -> str:
    """Who is asked about an escalation, and who comes after them."""
    rung = rung_of(state, unit)
    if rung is None:
        return ""
    above = state.plan.ladder[unit.level :]
    then = f", and from {until} on {above[0].role}" if above and until else ""
    return f"; {rung.role} is asked (level {unit.level}){then}"


def claimed(unit: Unit) -> str:
    """Who looks after a review, if anybody said so."""
    return "" if unit.claimed_by is None else f"; {unit.claimed_by} looks after it"


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
            return f"waits for its child {plan.target} {child_id(told.state, unit)}"
        case _:
            return f"waits for approval{asked(told, unit)}"


def asked(told: Told, unit: Unit) -> str:
    """Whom a gate asks, and who has agreed already."""
    gate = gate_of(told.state, unit)
    if gate is None:
        return ""
    role = role_of(unit, gate)
    words = f" by {role}" if role else ""
    if gate.not_by_requester:
        words += f" (not {told.state.by})"
    if gate.quorum > 1:
        names = f" ({listed([vote.by for vote in unit.votes])})" if unit.votes else ""
        words += f", {len(unit.votes)} of {gate.quorum} given{names},"
    return words


def hints_for(told: Told, unit: Unit) -> list[str]:
    """The commands that move an open step or item on, as a shell takes them."""
    plan, name = told.state.plan.steps[unit.step], told.state.name_of(unit)
    if unit.status == ESCALATED:
        target = f"{told.id} {quote(name)}"
        rung = rung_of(told.state, unit)
        by = "--by NAME" if rung is None else f"--by NAME --role {rung.role}"
        other = [f"pawl reassign {target} --to ROLE {by}"] if plan.kind != "run" else []
        edited = [f"pawl retry {target} --with '{{...}}' {by}"] if plan.attempted else []
        return [f"pawl resume {target} {by}", *edited, *other, f"pawl cancel {told.id} {by}"]
    if unit.held:
        return budget_hints(told, unit)
    if unit.status == WAITING and unit.wait == "child":
        return [f"pawl why {child_id(told.state, unit)}", watch(told)]
    if unit.status != WAITING or unit.wait == "timer":
        return [watch(told)]
    if unit.wait == "event":
        return [f"pawl signal {told.id} {plan.event} --data '{{...}}'"]
    gate = gate_of(told.state, unit)
    role = None if gate is None else role_of(unit, gate)
    decide = quote(f"{told.id}/{name}") + " --by NAME" + (f" --role {role}" if role else "")
    return [f"pawl review approve {decide}", f"pawl review reject {decide}"]


def budget_hints(told: Told, unit: Unit) -> list[str]:
    """What may be done about a step that the budget holds: raise the limit, or do without it."""
    place = quote(f"{told.id}/{told.state.name_of(unit)}")
    held = held_told(told.state, unit)
    limits = f'{{"{held["unit"]}": {held["needed"]}}}'
    return [
        f"pawl review approve {place} --by NAME --limits '{limits}'",
        f"pawl review reject {place} --by NAME",
    ]
