"""What a person sees: an instance as a tree, its tables, and why it is where it is.

The only room that knows `rich`, so verbs import it when they have something to draw. Words of
others are never markup here, and never move the cursor.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from pawlflow.cli.lines import (
    clean,
    clock,
    error_text,
    history_lines,
    lines_for,
    ms_of,
    short,
    span,
    trace_lines,
)

__all__ = [
    "history_lines",
    "instance_tree",
    "instances_table",
    "lines_for",
    "reviews_table",
    "trace_lines",
    "why_text",
]

BAR_WIDTH: Final = 40  # half a terminal of 80 columns
STEPS_MAX: Final = 50  # more than a screen; a larger instance shows what is open or went wrong
QUIET: Final = ("pending", "ready", "succeeded", "skipped", "cancelled")
NAME_WIDTH_MAX: Final = 24  # longer names push their own line, not every line
ID_WIDTH: Final = 36  # a UUID
ID_WIDTH_BESIDE: Final = 24  # up to here a row of 80 columns has room for the workflow too
SHOWS_WIDTH: Final = 30
Shown = Mapping[str, Any]

SYMBOLS: Final[dict[str, tuple[str, str]]] = {
    "pending": ("○", "dim"),
    "ready": ("○", "cyan"),
    "running": ("●", "cyan"),
    "backoff": ("↻", "yellow"),
    "correcting": ("↻", "yellow"),
    "waiting": ("⏸", "yellow"),
    "escalated": ("⚑", "bold magenta"),
    "succeeded": ("✓", "green"),
    "failed": ("✗", "bold red"),
    "skipped": ("↷", "dim"),
    "cancelled": ("⊘", "dim"),
    # Of instances alone.
    "created": ("○", "dim"),
    "queued": ("○", "dim"),
    "compensating": ("↩", "magenta"),
    "completed": ("✓", "bold green"),
}
UNDO: Final[dict[str, tuple[str, str]]] = {
    "pending": ("↩ not undone", "magenta"),
    "running": ("↩ undoing", "magenta"),
    "done": ("↩ undone", "magenta"),
    "failed": ("↩ undo failed", "bold red"),
    "waived": ("↩ undo waived", "dim"),
}


def instance_tree(shown: Shown, now_ms: int | None = None) -> RenderableType:
    """An instance as `show` tells it: header, progress, every step, and what it waits for."""
    now = now_ms if now_ms is not None else ms_of(shown.get("updated_at"))
    tree = Tree(line(header(shown, now), Text("\n"), bar(shown)), guide_style="dim")
    names = told_steps(shown["steps"])
    width = min(max(map(len, names), default=0), NAME_WIDTH_MAX)
    for name in names:
        tree.add(step_label(name, shown["steps"][name], width, now))
    if len(names) < len(shown["steps"]):
        tree.add(line((rest_text(shown["steps"], names), "dim")))
    alone = shown["error"] and shown["error"]["step"] is None  # else it stands with its step
    ending = [line(("✗ ", "bold red"), error_text(shown["error"]))] if alone else []
    return Group(tree, *ending, *waiting_section(shown, now))


def told_steps(steps: Mapping[str, Shown]) -> list[str]:
    """All steps, or of very many those that a person would look for."""
    if len(steps) <= STEPS_MAX:
        return list(steps)
    loud = [
        n for n, s in steps.items() if s["state"] not in QUIET or s["undo"] in ("running", "failed")
    ]
    return loud[:STEPS_MAX]


def rest_text(steps: Mapping[str, Shown], told: Iterable[str]) -> str:
    """How many steps are not told one by one, by their state."""
    left = Counter(steps[name]["state"] for name in steps.keys() - set(told))
    counts = ", ".join(f"{n:,} {state}" for state, n in sorted(left.items()))
    return f"and {counts}"


def line(*parts: Text | tuple[str, str] | str) -> Text:
    """One line, or some, cut with an ellipsis where the terminal ends."""
    made = Text.assemble(*parts)
    made.no_wrap, made.overflow = True, "ellipsis"
    return made


def header(shown: Shown, now: int | None) -> Text:
    """Who it is, how it is, and for how long."""
    symbol, style = SYMBOLS[shown["state"]]
    took = took_text(shown["started_at"], shown["closed_at"], now)
    rollback = "" if shown["rollback"] == "none" else f", rollback {shown['rollback']}"
    paused = ("  paused", "yellow") if shown.get("paused") else ""
    workflow = f"  {clean(shown['workflow'])} v{shown['version']}  "
    return Text.assemble(
        (f"{symbol} ", style),
        (clean(shown["id"]), "bold"),
        workflow,
        (shown["state"] + rollback, style),
        (f"  {took}" if took else "", "dim"),
        paused,
    )


def bar(shown: Shown) -> Text:
    """How many steps are done. It reads without colour too."""
    progress = shown.get("progress") or {"done": 0, "total": len(shown["steps"])}
    done, total = progress["done"], progress["total"]
    filled = BAR_WIDTH * done // total if total else BAR_WIDTH
    style = "red" if shown["state"] in ("failed", "cancelled") else "green"
    rest = BAR_WIDTH - filled
    return Text.assemble(("━" * filled, style), ("╌" * rest, "dim"), f" {done}/{total}")


def took_text(began: str | None, ended: str | None, now: int | None) -> str:
    """How long something took, or has taken until now."""
    start, end = ms_of(began), ms_of(ended)
    end = now if end is None else end
    return "" if start is None or end is None else span(max(0, end - start))


def step_label(name: str, step: Shown, width: int, now: int | None) -> Text:
    """One step: symbol, name, what it does, and in a dim line what it gave or why not."""
    symbol, style = SYMBOLS[step["state"]]
    dim = "dim" if step["state"] in ("pending", "skipped", "cancelled") else ""
    head = [(f"{symbol} ", style), (f"{clean(name):<{width}}", dim)]
    if words := doing(step, now):
        head.append((f"  {words}", dim))
    if step["attempts"] > 1:
        head.append((f"  {step['attempts']} attempts", "yellow"))
    if step["undo"] in UNDO:
        undo, undo_style = UNDO[step["undo"]]
        head.append((f"  {undo}", undo_style))
    tail = [(f"\n  {below}", "dim") for below in step_below(step)]
    return line(*head, *tail)


def doing(step: Shown, now: int | None) -> str:
    """What a step does, or how long it took."""
    state, until = step["state"], step.get("until")
    took = took_text(step["started_at"], step["ended_at"], now)
    match state:
        case "pending":
            return ""
        case "succeeded":
            return took
        case "failed" | "cancelled":
            return f"{state} {took}" if took else state
        case "running":
            return f"running {took}{limit(until, ', until ', now)}"
        case "waiting":
            return f"{WAITS.get(step.get('kind', ''), 'waiting')}{limit(until, ', until ', now)}"
        case "backoff":
            return f"retry{limit(until, ' at ', now)}"
        case "correcting":
            return "to be corrected"
        case "escalated":
            return "a human must decide"
        case _:
            return str(state)


WAITS: Final = {
    "approval": "waiting for approval",
    "wait": "waiting for an event",
    "sleep": "sleeping",
}


def limit(until: str | None, word: str, now: int | None) -> str:
    """Until when, and how long that is."""
    due = ms_of(until)
    if due is None:
        return ""
    left = "" if now is None or due <= now else f" (in {span(due - now)})"
    return f"{word}{clock(until)[:8]}{left}"


def step_below(step: Shown) -> list[str]:
    """The result or the error, each on one short line; empty results say nothing."""
    lines = [error_text(step["error"])] if step["error"] else []
    if not lines and step["result"] not in (None, {}, [], ""):
        lines = [short(step["result"])]
    return lines + ([f"undo: {error_text(step['undo_error'])}"] if step.get("undo_error") else [])


def waiting_section(shown: Shown, now: int | None) -> list[RenderableType]:
    """What the instance waits for from outside, and the command that answers it."""
    rows: list[RenderableType] = []
    for wait in shown["waiting"]:
        took = took_text(wait["since"], None, now)
        words = f" {waited(wait)}{limit(wait['until'], ', until ', now)}"
        since = f", for {took}" if took and took != "0ms" else ""
        rows.append(line((f"⏸ {clean(wait['step'])}", "yellow"), words, (since, "dim")))
        if wait.get("hint"):
            rows.append(Padding(Text(clean(wait["hint"]), style="cyan"), (0, 0, 0, 2)))
    return [Text(""), *rows] if rows else []


def waited(wait: Shown) -> str:
    """What a wait is for."""
    role, votes, quorum = wait.get("role"), wait.get("votes") or (), wait.get("quorum", 1)
    match wait["kind"]:
        case "approval":
            by = f" by {clean(role)}" if role else ""
            given = f", {len(votes)} of {quorum} given" if quorum > 1 else ""
            return f"waits for approval{by}{given}"
        case "event":
            return f"waits for {clean(wait.get('event', 'an event'))}"
        case "timer":
            return "sleeps"
        case "escalation":
            return "needs a human's decision"
        case _:
            return "waits for its child workflow"


def why_text(told: Mapping[str, Any]) -> RenderableType:
    """The object of `why` on a page: the chain, what comes now, the next command."""
    symbol, style = SYMBOLS[told["state"]]
    title = Text.assemble((f"{symbol} ", style), (clean(told["id"]), "bold"), " is ")
    title.append(told["state"], style)
    chain, ending = Table.grid(padding=(0, 2)), Table.grid(padding=(0, 2))
    for fact in told["because"]:
        place = Text(f"  {clock(fact['at'])}  turn {fact['turn']}", style="dim", no_wrap=True)
        chain.add_row(place, Text(clean(fact["text"])))
    ending.add_row(Text("now", style="bold"), Text(clean(told["now"])))
    ending.add_row(Text("next", style="bold"), Text(clean(told["hint"]), style="cyan"))
    return Group(title, chain, ending)


def instances_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """The instances of `ls`; the tenant is told where there are several."""
    kept = list(rows)
    tenants = len({row["tenant"] for row in kept}) > 1
    # Beside long ids there is no room for names: the workflow goes below its id.
    stacked = max((len(row["id"]) for row in kept), default=0) > ID_WIDTH_BESIDE
    table = bare_table("INSTANCE")
    for name in ["WORKFLOW"] * (not stacked) + ["TENANT"] * tenants:
        table.add_column(name, overflow="fold")
    table.add_column("STATE", no_wrap=True)
    table.add_column("STARTED", no_wrap=True)
    table.add_column("TOOK", no_wrap=True, justify="right")
    for row in kept:
        rollback = "" if row["rollback"] == "none" else f" ↩ {row['rollback']}"
        symbol, style = SYMBOLS[row["state"]]
        workflow = Text(f"{clean(row['workflow'])} v{row['version']}")
        first = whole_id(row["id"])
        table.add_row(
            *([Text.assemble(first, "\n  ", workflow)] if stacked else [first, workflow]),
            *([Text(clean(row["tenant"]))] if tenants else []),
            Text(f"{symbol} {row['state']}{rollback}", style=style),
            Text(moment(row["started_at"])),
            Text(took_text(row["started_at"], row["closed_at"], None)),
        )
    return table


def reviews_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """The open decisions of `review ls`. The id is what `review approve` takes."""
    table = bare_table("REVIEW")
    table.add_column("KIND", no_wrap=True)
    table.add_column("ROLE", overflow="fold")
    table.add_column("DUE", no_wrap=True)
    table.add_column("SHOWS", overflow="ellipsis", max_width=SHOWS_WIDTH)
    for row in rows:
        shows = "" if row["show"] is None else short(row["show"])
        table.add_row(
            whole_id(row["id"]),
            Text(clean(row["kind"])),
            Text(clean(row["role"] or "anybody")),
            Text(moment(row["due_at"]) or "never"),
            Text(shows, style="dim", no_wrap=True),
        )
    return table


def bare_table(first: str) -> Table:
    """A table without lines: it survives a narrow terminal, a pipe and a copy."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(first, no_wrap=True)
    return table


def whole_id(text: str) -> Text:
    """An id on one line, for it is there to be copied; only a very long one is broken."""
    parts = [text[at : at + ID_WIDTH] for at in range(0, len(text), ID_WIDTH)]
    return Text("\n".join(map(clean, parts)), style="bold")


def moment(text: str | None) -> str:
    """Day and time, to the minute: `01-31 12:00`. The year is left to `show`."""
    return "" if text is None else text[5:16].replace("T", " ")
