"""Plain lines: changes, events and turns, one to a line, for pipes, logs and small terminals.

They are printed as they are, never read as markup.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

TEXT_MAX: Final = 160  # of one value on one line; `--json` has it whole
NAME_WIDTH_MAX: Final = 24
ITEMS_MAX: Final = 20  # of a step with a line each; of more, those that went wrong and every tenth
SPANS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"))
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
Shown = Mapping[str, Any]


class Change(msgspec.Struct, frozen=True):
    """One line to come. Of one instant, what ended is told before what began."""

    at: str
    rank: int
    name: str
    text: str


BEGAN, ENDED, GOES_ON, BECAME = range(4)


def lines_for(before: Shown | None, after: Shown) -> list[str]:
    """One line for each change between two objects of `show`; everything, if there is no first."""
    changes = [
        *began(before, after),
        *changed_steps(before, after),
        *changed_logs(before, after),
        *changed_children(before, after),
        *changed_votes(before, after),
        *changed_claims(before, after),
        *changed_budget(before, after),
        *changed_state(before, after),
    ]
    # Several turns may lie between the two: what happened first is told first.
    changes.sort(key=lambda change: (change.at, change.rank))
    names = [*after["steps"], *(change.name for change in changes if "/" in change.name)]
    width = min(max(map(len, names), default=0), NAME_WIDTH_MAX)
    return [f"{clock(c.at)} {clean(c.name):<{width}}  {c.text}" for c in changes]


def began(before: Shown | None, after: Shown) -> Iterator[Change]:
    """The first line of all."""
    if before is None:
        by = f" by {clean(after['by'])}" if after.get("by") else ""
        at = after.get("created_at") or after["started_at"] or ""
        text = f"{clean(after['workflow'])} v{after['version']} started{by}"
        yield Change(at, BEGAN, after["id"], text)


def changed_steps(before: Shown | None, after: Shown) -> Iterator[Change]:
    """A line for each step that moved, and for items as far as anybody would read them."""
    undone: list[str] = []
    for name, step in after["steps"].items():
        whole = after["steps"].get(step_of(name), step)
        many = "items" in whole and whole["items"]["total"] > ITEMS_MAX
        if "items" in step:
            yield from changed_fan(name, before, after)
        elif not many or is_loud(step):
            yield from changed_step(name, before, after)
            undone.append(name)
    # What was undone between two looks was undone last first.
    for name in sorted(undone, key=lambda each: after["steps"][each]["ended_at"] or "")[::-1]:
        yield from changed_undo(name, before, after)


def is_loud(step: Shown) -> bool:
    """Has an item, of many, a line of its own?"""
    state, undo = step["state"], step["undo"]
    return (
        "failed" in (state, undo) or state == "escalated" or (state == "skipped" and step["error"])
    )


def step_of(name: str) -> str:
    """The step of an item, by its name; a step is its own."""
    return name.partition("[")[0]


def changed_fan(name: str, before: Shown | None, after: Shown) -> Iterator[Change]:
    """A line if a step with items moved, or its items, if they are many, by a tenth."""
    step, was, now = after["steps"][name], step_in(before, name), after.get("updated_at") or ""
    items, then = step["items"], was.get("items") or {"total": 1, "done": 0}
    tenths = [10 * each["done"] // (each["total"] or 1) for each in (then, items)]
    further = items["total"] > ITEMS_MAX and tenths[0] != tenths[1]
    if step["state"] != was["state"] or further:
        rank = ENDED if step["ended_at"] else GOES_ON
        yield Change(time_of(step) or now, rank, name, step_text(step, now))
    if step["undo"] != was["undo"] and step["undo"] in UNDO_TEXTS:
        yield Change(now, ENDED, name, UNDO_TEXTS[step["undo"]])


def items_text(step: Shown) -> str:
    """How far the items of a step are: `57,310 of 100,000 (3 failed, 12 running)`."""
    items = step["items"]
    counts = {
        "failed": items["failed"],
        "escalated": items["escalated"],
        "running": items["running"] + items["waiting"] - items["escalated"],
        "held": items.get("held", 0),
        "skipped": items["skipped"],
        "cancelled": items["cancelled"],
    }
    rest = ", ".join(f"{n:,} {word}" for word, n in counts.items() if n)
    return f"{items['done']:,} of {items['total']:,}" + (f" ({rest})" if rest else "")


def changed_children(before: Shown | None, after: Shown) -> Iterator[Change]:
    """The lines of children, each under the step that waits for it: `ship/pack`."""
    known = (before or {}).get("family", {})
    steps = {child["id"]: child["step"] for child in after.get("children", ())}
    for key, child in after.get("family", {}).items():
        was, step = known.get(key), steps.get(key, key)
        for change in changed_steps(was, child):
            yield msgspec.structs.replace(change, name=f"{step}/{change.name}")
        for change in (*began(was, child), *changed_state(was, child)):
            text = f"child {child['id']}: {change.text}"
            yield msgspec.structs.replace(change, name=step, text=text)


def step_in(shown: Shown | None, name: str) -> Shown:
    """A step or item as it was; items come to be known later than steps."""
    return UNTOUCHED if shown is None else shown["steps"].get(name, UNTOUCHED)


def changed_step(name: str, before: Shown | None, after: Shown) -> Iterator[Change]:
    """A line if a step moved."""
    now, step = after.get("updated_at") or "", after["steps"][name]
    was = step_in(before, name)
    moved = any(was.get(k) != step.get(k) for k in ("state", "attempts", "checkpoint"))
    # A step that never began is cancelled by the close, which has its own line.
    if moved and (step["started_at"] or step["state"] != "cancelled"):
        rank = GOES_ON if step["state"] in ("ready", "running", "waiting") else ENDED
        yield Change(time_of(step) or now, rank, name, step_text(step, now))


def changed_undo(name: str, before: Shown | None, after: Shown) -> Iterator[Change]:
    """A line if the undo of a step moved."""
    now, step = after.get("updated_at") or "", after["steps"][name]
    was = step_in(before, name)
    if undo_of(was) != undo_of(step) and step["undo"] in UNDO_TEXTS:
        rank = GOES_ON if step["undo"] == "running" else ENDED
        yield Change(now, rank, name, undo_text(was, step))


def changed_logs(before: Shown | None, after: Shown) -> Iterator[Change]:
    """The lines that attempts wrote, once they have answered."""
    now = after.get("updated_at") or ""
    for name, step in after["steps"].items():
        was = step_in(before, name)
        for member, mark in (("log", "|"), ("undo_log", "undo |")):
            for said in step.get(member, ())[len(was.get(member, ())) :]:
                yield Change(step["ended_at"] or now, BEGAN, name, f"{mark} {short(said)}")


UNTOUCHED: Final[Shown] = {"state": "pending", "attempts": 0, "undo": "none"}


def time_of(step: Shown) -> str | None:
    """When a step came to be what it is, if that is told."""
    at = step["ended_at"]
    if at is None and step["state"] == "running" and (kept := step.get("checkpoint")):
        at = kept["at"]
    elif at is None and step["state"] == "running" and step["attempts"] == 1:
        at = step["started_at"]
    return None if at is None else str(at)


def step_text(step: Shown, now: str) -> str:
    """What a step has become."""
    state, until, error, kept = (step.get(k) for k in ("state", "until", "error", "checkpoint"))
    why = f" ({error['class']} {clean(error['code'])})" if error else ""
    count = f", attempt {step['attempts']}" if step["attempts"] > 1 else ""
    if "items" in step:
        return f"{state}{why} {items_text(step)}"
    match state:
        case "succeeded":
            given = "" if step["result"] in (None, {}) else f" {short(step['result'])}"
            return f"succeeded{count}{given}"
        case "ready" | "correcting" if step.get("held"):
            return f"{state}, held by the budget"
        case "backoff":
            return f"failed{why}, retry at {due(until, now)}"
        case "failed" if error:
            return f"failed{count}{why}: {short(error['message'])}"
        case "correcting":
            return f"refused{why}, to be corrected"
        case "waiting":
            return "waiting" + (f" until {due(until, now)}" if until else "")
        case "escalated":
            return f"escalated{why}: a human must decide"
        case "running":
            return f"running{count}" + (f", kept {clean(kept['name'])}" if kept else "")
        case _:
            return f"{state}{why}"


UNDO_TEXTS: Final = {
    "running": "undoing",
    "done": "undone",
    "failed": "undo failed",
    "waived": "undo waived",
}


def undo_of(step: Shown) -> tuple[Any, ...]:
    """What tells one moment of an undo from another."""
    return tuple(step.get(k) for k in ("undo", "undo_attempts", "undo_error", "undo_until"))


def undo_text(was: Shown, step: Shown) -> str:
    """What an undo has become. While it is tried again it is still running."""
    error, attempts = step.get("undo_error"), step.get("undo_attempts", 0)
    why = f" ({error['class']} {clean(error['code'])})" if error else ""
    if step["undo"] != "running":
        return UNDO_TEXTS[step["undo"]] + why
    if error and was.get("undo_attempts") == attempts:
        return f"undo failed{why}, retry at {clock(step.get('undo_until'))}"
    return "undoing" + (f", attempt {attempts}" if attempts > 1 else "")


def changed_votes(before: Shown | None, after: Shown) -> Iterator[Change]:
    """A line for each approval that was not the last one needed."""
    known = {wait["step"]: wait.get("votes") or [] for wait in (before or {}).get("waiting", ())}
    for wait in after["waiting"]:
        votes = wait.get("votes") or []
        for number, by in enumerate(votes, start=1):
            if by not in known.get(wait["step"], []):
                text = f"approved by {clean(by)}, {number} of {wait['quorum']}"
                yield Change(after.get("updated_at") or "", ENDED, wait["step"], text)


def changed_claims(before: Shown | None, after: Shown) -> Iterator[Change]:
    """A line for each review that somebody looks after now."""
    known = {wait["step"]: wait.get("claimed_by") for wait in (before or {}).get("waiting", ())}
    for wait in after["waiting"]:
        by = wait.get("claimed_by")
        if by not in (None, known.get(wait["step"])):
            text = f"claimed by {clean(by)}"
            yield Change(after.get("updated_at") or "", BECAME, wait["step"], text)


def changed_budget(before: Shown | None, after: Shown) -> Iterator[Change]:
    """A line for each step that the budget holds now, and for each limit that was raised."""
    was, now = before or {}, after.get("updated_at") or ""
    known = {wait["step"] for wait in was.get("waiting", ()) if wait["kind"] == "budget"}
    for wait in after["waiting"]:
        if wait["kind"] == "budget" and wait["step"] not in known:
            text = f"held by the budget: {held_text(wait)}"
            yield Change(wait["since"] or now, BECAME, wait["step"], text)
    for unit, limits in after.get("budget", {}).items():
        limit = was.get("budget", {}).get(unit, limits)["hard"]
        if limit != limits["hard"]:
            text = f"the hard limit of {unit} was raised to {limits['hard']}"
            yield Change(now, BEGAN, after["id"], text)


def held_text(wait: Shown) -> str:
    """What a step that the budget holds would need: `usd 1.2, and the hard limit is 1`."""
    return f"{wait['unit']} {wait['needed']}, and the hard limit is {wait['limit']}"


def changed_state(before: Shown | None, after: Shown) -> Iterator[Change]:
    """A line if the instance itself moved, was paused or let go."""
    now = after["closed_at"] or after.get("updated_at") or ""
    was = before or {}
    if bool(was.get("paused")) != bool(after.get("paused")):
        yield Change(now, BECAME, after["id"], "paused" if after["paused"] else "unpaused")
    if was.get("state") != after["state"]:
        rollback = "" if after["rollback"] == "none" else f", rollback {after['rollback']}"
        yield Change(now, BECAME, after["id"], f"{after['state']}{rollback}")


def lens_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The steps in the words of a lens, each with the index it has there."""
    rows = list(rows)
    width = max((len(row["step"]) for row in rows), default=0)
    for row in rows:
        yield f"  {row['index']:>3}  {clean(row['step']):<{width}}  {row['state']}"


def history_lines(envelopes: Iterable[Mapping[str, Any]]) -> list[str]:
    """One line for each published event."""
    return [
        f"{e['sequence']:>4} {clock(e['occurredAt'])} {e['eventType']:<30} "
        f"{payload_text(e['payload'])}".rstrip()
        for e in envelopes
    ]


def payload_text(payload: Mapping[str, Any]) -> str:
    """What an event was about, and the part of its payload that matters most."""
    attempt = f"#{payload['attempt']}" if payload.get("attempt") else ""
    item = f"[{payload['item']}]" if "item" in payload else ""
    step = f"{clean(payload['step'])}{item}{attempt}" if "step" in payload else ""
    if payload.get("failure"):
        return f"{step} {error_text(payload['failure'])}".strip()
    if "decision" in payload:
        return f"{step} {decision_text(payload)}"
    told = next((payload[k] for k in SAID if payload.get(k) not in (None, {}, [])), None)
    said = "" if told is None else short(told)
    who = f"by {clean(payload['by'])}" if payload.get("by") else ""
    unit = clean(payload["unit"]) if "amount" in payload else ""
    return " ".join(filter(None, (step, who, unit, said)))


def decision_text(told: Mapping[str, Any]) -> str:
    """What policies decided, and why; of an approval also that it was given."""
    given = told["decision"] == "approval" and told.get("clears")
    return (
        f"{told['decision']}{' was given' if given else ''}: {clean(told.get('why') or 'erased')}"
    )


SAID: Final = (
    *("result", "output", "limits", "comment", "reason", "event", "rollback", "input", "until"),
    *("show", "amount"),
)


# Words, times and spans


def clean(text: Any) -> str:
    """Somebody else's text on one line, with nothing in it that a terminal would obey."""
    return "".join(char if char.isprintable() else " " for char in str(text))


def text_of(value: Any) -> str:
    """A value as JSON; a text as it is."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def short(value: Any) -> str:
    """A value on one line of bounded length."""
    text = " ".join(clean(text_of(value)).split())
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


def error_text(error: Mapping[str, Any]) -> str:
    """A failure: class, code, and its words if they are still there."""
    said = "(erased)" if error["message"] is None else short(error["message"])
    return f"{error['class']} {clean(error['code'])}: {said}"


def clock(text: str | None) -> str:
    """The time of day of an RFC 3339 time, with milliseconds."""
    return "--:--:--.---" if not text else text[11:23]


def due(until: str | None, now: str) -> str:
    """The time of day of something to come, with its date if that is not today's."""
    return clock(until) if not until or until[:10] == now[:10] else f"{until[:10]} {clock(until)}"


def ms_of(text: str | None) -> int | None:
    """The milliseconds of an RFC 3339 time."""
    if text is None:
        return None
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(milliseconds=1)


def span(ms: int) -> str:
    """How long, by the largest two units; short spans with a tenth of a second."""
    if ms < 1_000:
        return f"{ms}ms"
    if ms < 60_000:
        return f"{ms // 100 / 10:g}s"
    parts: list[str] = []
    for size, unit in SPANS:
        n, ms = divmod(ms, size)
        if n:
            parts.append(f"{n}{unit}")
    return " ".join(parts[:2])
