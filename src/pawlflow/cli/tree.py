"""The tree of an instance: its steps, their items by a bar, and its children one level down."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text
from rich.tree import Tree

from pawlflow.cli.lines import (
    clean,
    clock,
    error_text,
    held_text,
    items_text,
    ms_of,
    short,
    span,
    step_of,
)
from pawlflow.cli.typed import typed

BAR_WIDTH: Final = 40  # half a terminal of 80 columns
LOG_MAX: Final = 3  # lines of a step; `show --step` has all
SMALL_BAR_WIDTH: Final = 16  # beside a name and its counts
CHILD_BAR_WIDTH: Final = 8  # beside an id that is there to be copied
STEPS_MAX: Final = 50  # more than a screen; a larger instance shows what is open or went wrong
ITEMS_MAX: Final = 10  # of a step that are told, whatever they are; of more, those to look for
LOUD_MAX: Final = 20  # of those; the others are counted
CHILD_STEPS_MAX: Final = 10  # of a child, so that several fit a screen
WAITING_MAX: Final = 10  # told with their commands
QUIET: Final = ("pending", "ready", "succeeded", "skipped", "cancelled")
URGENT: Final = {"escalated": 0, "failed": 1}  # of very many items, these are told before others
NAME_WIDTH_MAX: Final = 24  # longer names push their own line, not every line
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
    spent = (f"  {budget_text(shown)}", "dim") if shown.get("budget") else ""
    search = (f"\n{search_text(shown)}", "dim") if shown.get("search") else ""
    tree = Tree(line(header(shown, now), Text("\n"), bar(shown), spent, search), guide_style="dim")
    add_steps(tree, shown, STEPS_MAX, now)
    alone = shown["error"] and shown["error"]["step"] is None  # else it stands with its step
    ending = [line(("✗ ", "bold red"), error_text(shown["error"]))] if alone else []
    return Group(tree, *ending, *waiting_section(shown, now))


def search_text(shown: Shown) -> str:
    """What an instance may be found by: `city=Graz weight=3`."""
    return " ".join(f"{clean(name)}={short(value)}" for name, value in shown["search"].items())


def add_steps(tree: Tree, shown: Shown, most: int, now: int | None) -> None:
    """The steps of an instance, each with its items and children below it."""
    steps: Mapping[str, Shown] = shown["steps"]
    items: dict[str, list[str]] = {}
    for name in steps:
        items.setdefault(step_of(name), []).append(name)
    own = {name: steps[name] for name in items}
    names = told_steps(own, most)
    width = min(max(map(len, names), default=0), NAME_WIDTH_MAX)
    for name in names:
        node = tree.add(step_label(name, steps[name], width, now))
        add_items(node, shown, items[name][1:], now)
        add_children(node, shown, name, now)
    if len(names) < len(own):
        tree.add(line((rest_text(own, names), "dim")))


def told_steps(steps: Mapping[str, Shown], most: int) -> list[str]:
    """All steps, or of very many those that a person would look for."""
    return list(steps) if len(steps) <= most else [n for n in steps if is_loud(steps[n])][:most]


def is_loud(step: Shown) -> bool:
    """Would a person look for this one among many?"""
    quiet = step["state"] in QUIET and not step.get("held")
    return not quiet or step["undo"] in ("running", "failed")


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


# Items and children


def add_items(node: Tree, shown: Shown, names: list[str], now: int | None) -> None:
    """Few items one by one; of many those that are open or went wrong, up to a limit."""
    steps: Mapping[str, Shown] = shown["steps"]
    many = len(names) > ITEMS_MAX
    loud = [name for name in names if is_loud(steps[name])]
    first = {*sorted(loud, key=lambda name: URGENT.get(steps[name]["state"], 2))[:LOUD_MAX]}
    told = [name for name in loud if name in first] if many else names
    width = max(map(len, told), default=0)
    for name in told:
        item = node.add(step_label(name, steps[name], width, now))
        add_children(item, shown, name, now)
    left = len(loud) - len(told) if many else 0
    if left:
        node.add(line((f"and {left:,} more like these", "dim")))


def add_children(node: Tree, shown: Shown, step: str, now: int | None) -> None:
    """The child of a step, of its last attempt, with its own steps if it was looked at."""
    children = [child for child in shown.get("children", ()) if child["step"] == step]
    family = shown.get("family", {})
    for child in children[-1:]:
        member = family.get(child["id"])
        below = node.add(child_label(child, member, now))
        if member is not None and member["state"] != "completed":
            add_steps(below, member, CHILD_STEPS_MAX, now)


def child_label(child: Shown, member: Shown | None, now: int | None) -> Text:
    """A child: its workflow, id and state, and how far it is."""
    name = clean(child["workflow"])
    if member is None:
        state = child["state"] or "to come"
        symbol, style = SYMBOLS.get(state, SYMBOLS["pending"])
        return line((f"{symbol} ", style), f"{name} {clean(child['id'])}  ", (state, style))
    symbol, style = SYMBOLS[member["state"]]
    took = took_text(member["started_at"], member["closed_at"], now)
    progress = member["progress"]
    return line(
        (f"{symbol} ", style),
        f"{name} {clean(child['id'])}  ",
        (member["state"], style),
        "  ",
        bar_of(progress["done"], progress["total"], CHILD_BAR_WIDTH, bar_style(member["state"])),
        f" {progress['done']:,}/{progress['total']:,}",
        (f"  {took}" if took else "", "dim"),
    )


# One line each


def header(shown: Shown, now: int | None) -> Text:
    """Who it is, how it is, for how long, and whose child."""
    symbol, style = SYMBOLS[shown["state"]]
    took = took_text(shown["started_at"], shown["closed_at"], now)
    rollback = "" if shown["rollback"] == "none" else f", rollback {shown['rollback']}"
    paused = ("  paused", "yellow") if shown.get("paused") else ""
    workflow = f"  {clean(shown['workflow'])} v{shown['version']}  "
    later = shown.get("start_at") if shown["state"] == "created" else None
    starts = f"  starts {later[:16].replace('T', ' ')}" if later else ""
    parent = shown.get("parent")
    kin = f"  child of {clean(parent['id'])}/{clean(parent['step'])}" if parent else ""
    return Text.assemble(
        (f"{symbol} ", style),
        (clean(shown["id"]), "bold"),
        workflow,
        (shown["state"] + rollback, style),
        (f"  {took}" if took else starts, "dim"),
        paused,
        (kin, "dim"),
    )


def bar(shown: Shown) -> Text:
    """How many steps and items are done. It reads without colour too."""
    progress = shown.get("progress") or {"done": 0, "total": len(shown["steps"])}
    done, total = progress["done"], progress["total"]
    made = bar_of(done, total, BAR_WIDTH, bar_style(shown["state"]))
    return Text.assemble(made, f" {done}/{total}")


def bar_style(state: str) -> str:
    """The colour of a bar."""
    return "red" if state in ("failed", "cancelled") else "green"


def bar_of(done: int, total: int, width: int, style: str) -> Text:
    """A part of a whole."""
    filled = width * done // total if total else width
    return Text.assemble(("━" * filled, style), ("╌" * (width - filled), "dim"))


def budget_text(shown: Shown) -> str:
    """What was spent, of each unit of account: `usd 0.4 of 1 (0.4 reserved)`."""
    told = []
    for unit, each in shown["budget"].items():
        limit = "" if each["hard"] is None else f" of {each['hard']}"
        reserved = f" ({each['reserved']} reserved)" if each["reserved"] else ""
        told.append(f"{unit} {each['spent']}{limit}{reserved}")
    return ", ".join(told)


def took_text(began: str | None, ended: str | None, now: int | None) -> str:
    """How long something took, or has taken until now."""
    start, end = ms_of(began), ms_of(ended)
    end = now if end is None else end
    return "" if start is None or end is None else span(max(0, end - start))


def step_label(name: str, step: Shown, width: int, now: int | None) -> Text:
    """One step: symbol, name, what it does, and in a dim line what it gave or why not."""
    symbol, style = SYMBOLS[step["state"]]
    dim = "dim" if step["state"] in ("pending", "skipped", "cancelled") else ""
    head: list[Text | tuple[str, str] | str] = [
        (f"{symbol} ", style),
        (f"{clean(name):<{width}}", dim),
    ]
    if "items" in step:
        head += [f"  {items_text(step)}  ", items_bar(step)]
    if words := doing(step, now):
        head.append((f"  {words}", dim))
    if step["attempts"] > 1 and "items" not in step:
        head.append((f"  {step['attempts']} attempts", "yellow"))
    if step["undo"] in UNDO:
        undo, undo_style = UNDO[step["undo"]]
        head.append((f"  {undo}", undo_style))
    tail = [(f"\n  {below}", "dim") for below in step_below(step)]
    return line(*head, *tail)


def items_bar(step: Shown) -> Text:
    """How many items are settled."""
    items = step["items"]
    settled = items["done"] + items["skipped"] + items["failed"]
    return bar_of(settled, items["total"], SMALL_BAR_WIDTH, bar_style(step["state"]))


def doing(step: Shown, now: int | None) -> str:
    """What a step does, or how long it took."""
    state, until = step["state"], step.get("until")
    took = took_text(step["started_at"], step["ended_at"], now)
    if "items" in step:
        return took
    match state:
        case "pending":
            return ""
        case "succeeded":
            return took
        case "failed" | "cancelled":
            return f"{state} {took}" if took else state
        case "running":
            kept = step.get("checkpoint")
            at = f", kept {clean(kept['name'])} ({kept['count']:,})" if kept else ""
            return f"running {took}{at}{limit(until, ', until ', now)}"
        case "waiting":
            asked = (step.get("policy") or {}).get("decision") == "approval"
            what = WAITS.get(step.get("kind", ""), WAITS["approval"] if asked else "waiting")
            return f"{what}{limit(until, ', until ', now)}"
        case "backoff":
            return f"retry{limit(until, ' at ', now)}"
        case "correcting" if not step.get("held"):
            return "to be corrected"
        case "escalated":
            return "a human must decide"
        case _:
            return f"{state}, held by the budget" if step.get("held") else str(state)


WAITS: Final = {
    "approval": "waiting for approval",
    "wait": "waiting for an event",
    "sleep": "sleeping",
    "workflow": "waiting for its child",
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
    given = None if "items" in step else step["result"]  # the items say it
    if not lines and given not in (None, {}, [], ""):
        lines = [short(given)]
    lines += [f"undo: {error_text(step['undo_error'])}"] if step.get("undo_error") else []
    wrote = step.get("log", [])
    lines += [f"… {len(wrote) - LOG_MAX:,} lines of log before"] if len(wrote) > LOG_MAX else []
    return lines + [f"| {short(said)}" for said in wrote[-LOG_MAX:]]


# What it waits for


def waiting_section(shown: Shown, now: int | None) -> list[RenderableType]:
    """What the instance waits for from outside, and the command that answers it."""
    rows: list[RenderableType] = []
    waits = [wait for wait in shown["waiting"] if wait["kind"] != "child"]  # it stands in the tree
    for wait in waits[:WAITING_MAX]:
        took = took_text(wait["since"], None, now)
        claimed = f", claimed by {clean(wait['claimed_by'])}" if wait.get("claimed_by") else ""
        words = f" {waited(wait)}{limit(wait['until'], ', until ', now)}{claimed}"
        since = f", for {took}" if took and took != "0ms" else ""
        rows.append(line((f"⏸ {clean(wait['step'])}", "yellow"), words, (since, "dim")))
        if wait.get("hint"):
            rows.append(Padding(Text(clean(wait["hint"]), style="cyan"), (0, 0, 0, 2)))
    if len(waits) > WAITING_MAX:
        more = typed(f"and {len(waits) - WAITING_MAX:,} more wait: pawl review ls")
        rows.append(line((more, "dim")))
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
        case "executor":
            return f"waits for somebody who carries out {clean(wait['effect'])}"
        case "budget":
            return f"is held by the budget: {held_text(wait)}"
        case _:
            return "needs a human's decision"
