"""What a person sees: an instance as a tree, its tables, and why it is where it is.

Rooms that know `rich` are imported by verbs when they have something to draw. Words of others are
never markup here, and never move the cursor.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pawlflow.cli.lines import (
    clean,
    clock,
    history_lines,
    lines_for,
    short,
)
from pawlflow.cli.trace_lines import trace_lines
from pawlflow.cli.tree import SYMBOLS, instance_tree, line, took_text

__all__ = [
    "batches_table",
    "history_lines",
    "instance_lines",
    "instance_tree",
    "instances_table",
    "lines_cut",
    "lines_for",
    "reviews_table",
    "trace_lines",
    "why_text",
]

SCREEN_WIDTH: Final = 80
GAP: Final = 2  # between two columns
ID_WIDTH: Final = 36  # a UUID
ID_WIDTH_MIN: Final = 16  # of a shortened one; a narrower terminal cuts other columns
ID_WIDTH_BESIDE: Final = 24  # up to here a row of 80 columns has room for the workflow too
SHOWS_WIDTH: Final = 30


def lines_cut(lines: Iterable[str]) -> RenderableType:
    """Plain lines, none longer than the terminal is wide."""
    return Group(*(line(each) for each in lines))


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


def instances_table(rows: Iterable[Mapping[str, Any]], width: int = SCREEN_WIDTH) -> Table:
    """The instances of `ls` on a terminal; the tenant is told where there are several."""
    kept = list(rows)
    tenants = len({row["tenant"] for row in kept}) > 1
    # Beside long ids there is no room for names: the workflow goes below its id.
    stacked = max((len(row["id"]) for row in kept), default=0) > ID_WIDTH_BESIDE
    made = [instance_cells(row) for row in kept]
    beside = ("workflow",) * (not stacked) + ("tenant",) * tenants
    columns = ("id", *beside, "state", "started", "took")
    taken = sum(GAP + max(len(cells[name]) for cells in (TITLES, *made)) for name in columns[1:])
    table = bare_table(TITLES["id"])
    for name in columns[1:]:
        folds = name in beside
        side: Any = "right" if name == "took" else "left"
        overflow: Any = "fold" if folds else "ellipsis"
        table.add_column(TITLES[name], no_wrap=not folds, overflow=overflow, justify=side)
    for row, cells in zip(kept, made, strict=True):
        first = Text(shortened(cells["id"], max(ID_WIDTH_MIN, width - taken)), style="bold")
        below = [Text.assemble(first, "\n  ", cells["workflow"])] if stacked else [first]
        rest = [Text(cells[name]) for name in columns[1:]]
        rest[len(beside)].stylize(SYMBOLS[row["state"]][1])
        table.add_row(*below, *rest)
    return table


def instance_lines(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The same in a pipe: a line for each, however long its id is, and nothing is left out."""
    kept = [instance_cells(row) for row in rows]
    tenants = len({cells["tenant"] for cells in kept}) > 1
    names = [name for name in TITLES if tenants or name != "tenant"]
    widths = {name: max(len(cells[name]) for cells in (TITLES, *kept)) for name in names}
    return [
        (" " * GAP).join(f"{cells[name]:<{widths[name]}}" for name in names).rstrip()
        for cells in (TITLES, *kept)
    ]


TITLES: Final = {
    "id": "INSTANCE",
    "workflow": "WORKFLOW",
    "tenant": "TENANT",
    "state": "STATE",
    "started": "STARTED",
    "took": "TOOK",
}


def instance_cells(row: Mapping[str, Any]) -> dict[str, str]:
    """What a list says of an instance."""
    rollback = "" if row["rollback"] == "none" else f" ↩ {row['rollback']}"
    paused = ", paused" if row.get("paused") else ""
    return {
        "id": clean(row["id"]),
        "workflow": f"{clean(row['workflow'])} v{row['version']}",
        "tenant": clean(row["tenant"]),
        "state": f"{SYMBOLS[row['state']][0]} {row['state']}{paused}{rollback}",
        "started": moment(row["started_at"]),
        "took": took_text(row["started_at"], row["closed_at"], None),
    }


def shortened(text: str, width: int) -> str:
    """A long id without its middle: its ends tell it from others, and it stays on its line."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def reviews_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """The open decisions of `review ls`. The id is what `review approve` takes."""
    kept = list(rows)
    claimed = any(row["claimed_by"] for row in kept)  # a column that says nothing takes no room
    table = bare_table("REVIEW")
    table.add_column("KIND", no_wrap=True)
    for name in ["ROLE"] + ["CLAIMED BY"] * claimed:
        table.add_column(name, overflow="fold")
    table.add_column("DUE", no_wrap=True)
    table.add_column("SHOWS", overflow="ellipsis", max_width=SHOWS_WIDTH)
    for row in kept:
        shows = "" if row["show"] is None else short(row["show"])
        table.add_row(
            whole_id(row["id"]),
            Text(clean(row["kind"])),
            Text(clean(row["role"] or "anybody")),
            *([Text(clean(row["claimed_by"] or ""))] if claimed else []),
            Text(moment(row["due_at"]) or "never"),
            Text(shows, style="dim", no_wrap=True),
        )
    return table


def batches_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """The acts on many of `batches ls`. The id is what `batches show` takes."""
    table = bare_table("BATCH")
    for name in ("ACT", "STATE", "BY", "DONE", "OPENED"):
        table.add_column(name, no_wrap=True)
    table.add_column("WHERE", overflow="ellipsis", no_wrap=True, max_width=SHOWS_WIDTH)
    for row in rows:
        bad = f", {row['refused']:,} refused" if row["refused"] else ""
        table.add_row(
            whole_id(row["id"]),
            Text(clean(row["act"])),
            Text(row["state"]),
            Text(clean(row["by"])),
            Text(f"{row['done']:,} of {row['matched']:,}{bad}", style="red" if bad else ""),
            Text(moment(row["opened_at"]) or ""),
            Text(clean(row["where"]), style="dim"),
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
