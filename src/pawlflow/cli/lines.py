"""Plain lines: changes, events and turns, one to a line, for pipes, logs and small terminals.

They are printed as they are, never read as markup.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

TEXT_MAX: Final = 160  # of one value on one line; `--json` has it whole
NAME_WIDTH_MAX: Final = 24
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
        *(change for name in after["steps"] for change in changed_step(name, before, after)),
        *changed_votes(before, after),
        *changed_state(before, after),
    ]
    # Several turns may lie between the two: what happened first is told first.
    changes.sort(key=lambda change: (change.at, change.rank))
    width = min(max(map(len, after["steps"]), default=0), NAME_WIDTH_MAX)
    return [f"{clock(c.at)} {clean(c.name):<{width}}  {c.text}" for c in changes]


def began(before: Shown | None, after: Shown) -> Iterator[Change]:
    """The first line of all."""
    if before is None:
        by = f" by {clean(after['by'])}" if after.get("by") else ""
        at = after.get("created_at") or after["started_at"] or ""
        text = f"{clean(after['workflow'])} v{after['version']} started{by}"
        yield Change(at, BEGAN, after["id"], text)


def changed_step(name: str, before: Shown | None, after: Shown) -> Iterator[Change]:
    """A line if a step moved, and one if its undo did."""
    now, step = after.get("updated_at") or "", after["steps"][name]
    was = before["steps"][name] if before else UNTOUCHED
    moved = (was["state"], was["attempts"]) != (step["state"], step["attempts"])
    # A step that never began is cancelled by the close, which has its own line.
    if moved and (step["started_at"] or step["state"] != "cancelled"):
        rank = GOES_ON if step["state"] in ("ready", "running", "waiting") else ENDED
        yield Change(time_of(step) or now, rank, name, step_text(step, now))
    if undo_of(was) != undo_of(step) and step["undo"] in UNDO_TEXTS:
        rank = GOES_ON if step["undo"] == "running" else ENDED
        yield Change(now, rank, name, undo_text(was, step))


UNTOUCHED: Final[Shown] = {"state": "pending", "attempts": 0, "undo": "none"}


def time_of(step: Shown) -> str | None:
    """When a step came to be what it is, if that is told."""
    at = step["ended_at"]
    if at is None and step["state"] == "running" and step["attempts"] == 1:
        at = step["started_at"]
    return None if at is None else str(at)


def step_text(step: Shown, now: str) -> str:
    """What a step has become."""
    state, until, error = step["state"], step.get("until"), step["error"]
    why = f" ({error['class']} {clean(error['code'])})" if error else ""
    count = f", attempt {step['attempts']}" if step["attempts"] > 1 else ""
    match state:
        case "succeeded":
            given = "" if step["result"] in (None, {}) else f" {short(step['result'])}"
            return f"succeeded{count}{given}"
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
            return f"running{count}"
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


def changed_state(before: Shown | None, after: Shown) -> Iterator[Change]:
    """A line if the instance itself moved, was paused or let go."""
    now = after["closed_at"] or after.get("updated_at") or ""
    was = before or {}
    if bool(was.get("paused")) != bool(after.get("paused")):
        yield Change(now, BECAME, after["id"], "paused" if after["paused"] else "unpaused")
    if was.get("state") != after["state"]:
        rollback = "" if after["rollback"] == "none" else f", rollback {after['rollback']}"
        yield Change(now, BECAME, after["id"], f"{after['state']}{rollback}")


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
    step = f"{clean(payload['step'])}{attempt}" if "step" in payload else ""
    if payload.get("failure"):
        return f"{step} {error_text(payload['failure'])}".strip()
    told = next((payload[k] for k in SAID if payload.get(k) not in (None, {}, [])), None)
    said = "" if told is None else short(told)
    who = f"by {clean(payload['by'])}" if payload.get("by") else ""
    return " ".join(filter(None, (step, who, said)))


SAID: Final = ("result", "output", "comment", "reason", "event", "rollback", "input", "until")


def trace_lines(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """Some lines for each turn: what came in and from where, what happened, what was asked."""
    lines: list[str] = []
    for entry in entries:
        cause = "" if entry["caused_by"] is None else f"  <- turn {entry['caused_by']}"
        lines.append(f"turn {entry['turn']} {clock(entry['at'])} {came_in(entry['input'])}{cause}")
        lines += [f"    {happened(event)}" for event in entry["events"]]
        for call in entry["calls"]:
            undo = "undo/" if call.get("direction") == "undo" else ""
            what = f"{undo}{clean(call['step'])}#{call['attempt']} {clean(call['effect'])}"
            lines.append(f"    > {what} intent {call['intent'][:16]}")
            lines.append(f"      key {call['key']}")
    return lines


def came_in(incoming: Mapping[str, Any]) -> str:
    """An input in a few words."""
    undo = "undo/" if incoming.get("direction") == "undo" else ""
    attempt = f"#{incoming['attempt']}" if "attempt" in incoming else ""
    step = f"{undo}{clean(incoming['step'])}{attempt}" if "step" in incoming else ""
    rest = [clean(incoming[key]) for key in ("event", "outcome", "how") if key in incoming]
    who = [f"by {clean(incoming['by'])}"] if "by" in incoming else []
    return " ".join(filter(None, (incoming["kind"], step, *rest, *who)))


def happened(event: Mapping[str, Any]) -> str:
    """An event of the journal, and its names outside."""
    step = f" {clean(event['step'])}" if "step" in event else ""
    names = ", ".join(event.get("published") or ())
    return f"{event['event']}{step}" + (f" => {names}" if names else "")


# Words, times and spans


def clean(text: Any) -> str:
    """Somebody else's text on one line, with nothing in it that a terminal would obey."""
    return "".join(char if char.isprintable() else " " for char in str(text))


def short(value: Any) -> str:
    """A value on one line of bounded length."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = " ".join(clean(text).split())
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
