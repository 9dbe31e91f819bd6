"""The turns of `pawl trace`, some lines each."""

from collections.abc import Iterable, Mapping
from typing import Any

from pawlflow.cli.lines import clean, clock, decision_text


def trace_lines(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """Some lines for each turn: what came in and from where, what happened, what was asked."""
    lines: list[str] = []
    for entry in entries:
        cause = caused(entry)
        lines.append(f"turn {entry['turn']} {clock(entry['at'])} {came_in(entry['input'])}{cause}")
        lines += [f"    {happened(event)}" for event in entry["events"]]
        for call in entry["calls"]:
            what = f"{called(call)} {clean(call['effect'])}"
            lines.append(f"    > {what} intent {call['intent'][:16]}")
            lines.append(f"      key {call['key']}")
        for child in entry.get("children", ()):
            what = f"{clean(child['step'])}#{child['attempt']} {clean(child['workflow'])}"
            lines.append(f"    > {what} child {clean(child['id'])}")
    return lines


def caused(entry: Mapping[str, Any]) -> str:
    """Where a turn comes from: an earlier one, and one of another instance."""
    found = [] if entry["caused_by"] is None else [f"turn {entry['caused_by']}"]
    origin = entry.get("origin")
    if origin is not None:
        turn = "" if origin["turn"] is None else f" turn {origin['turn']}"
        found.append(f"{clean(origin['workflow'])} {clean(origin['id'])}{turn}")
    return f"  <- {', '.join(found)}" if found else ""


def came_in(incoming: Mapping[str, Any]) -> str:
    """An input in a few words."""
    kind = "answer" if incoming.get("direction") == "ask" else incoming["kind"]
    step = called(incoming) if "step" in incoming else ""
    rest = [clean(incoming[key]) for key in ("event", "outcome", "how") if key in incoming]
    who = [f"by {clean(incoming['by'])}"] if "by" in incoming else []
    return " ".join(filter(None, (kind, step, *rest, *who)))


def called(told: Mapping[str, Any]) -> str:
    """An attempt by its number, or a step that policies are asked about, which is none."""
    undo = "undo/" if told.get("direction") == "undo" else ""
    numbered = "attempt" in told and told.get("direction") != "ask"
    return f"{undo}{clean(told['step'])}{'#' + str(told['attempt']) if numbered else ''}"


def happened(event: Mapping[str, Any]) -> str:
    """An event of the journal, and its names outside."""
    step = f" {clean(event['step'])}" if "step" in event else ""
    decided = f" {decision_text(event)}" if "decision" in event else ""
    names = ", ".join(event.get("published") or ())
    return f"{event['event']}{step}{decided}" + (f" => {names}" if names else "")
