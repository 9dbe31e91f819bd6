"""Bars as SVG, by hand: no library, one picture, legible on paper."""

from collections.abc import Iterator, Mapping
from html import escape
from math import ceil, floor, log10
from pathlib import Path
from typing import Final

import msgspec

WIDTH, HEIGHT = 840, 440
LEFT, RIGHT, TOP, BOTTOM = 84, 16, 72, 64  # margins, for the words
COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7")  # told apart by the colour-blind too
TICKS: Final = 6  # lines across, about

Series = Mapping[str, Mapping[str, float]]  # engine -> group on the x axis -> height of its bar


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """What is drawn: bars side by side for each group, with their words."""

    title: str
    x: str
    y: str
    series: Series


def write_bars(path: Path, chart: Chart) -> None:
    """Draw into a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(bars(chart))


def bars(chart: Chart) -> str:
    """The picture as text."""
    highest = max(value for heights in chart.series.values() for value in heights.values())
    step = tick_step(highest)
    top = ceil(highest * 1.05 / step) * step  # the tallest bar has room for its number
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="13" fill="#222">'
    )
    body = [*words(chart), *grid(top, step), *columns(chart.series, top)]
    paper = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    return "\n".join([head, f"<title>{escape(chart.title)}</title>", paper, *body, "</svg>\n"])


def tick_step(highest: float) -> float:
    """A round distance between lines: 1, 2 or 5 times a power of ten."""
    rough = highest / TICKS
    power = 10.0 ** floor(log10(rough))
    return float(next(round_ * power for round_ in (1, 2, 5, 10) if round_ * power >= rough))


def words(chart: Chart) -> Iterator[str]:
    """The title, the names of the axes, and whose colour is whose."""
    yield text(LEFT, 26, chart.title, 'font-size="17" font-weight="bold"')
    yield text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, chart.x, 'text-anchor="middle"')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    yield text(18, middle, chart.y, f'text-anchor="middle" transform="rotate(-90 18 {middle})"')
    place = float(LEFT)
    for name, colour in zip(chart.series, COLOURS, strict=False):
        yield f'<rect x="{place}" y="42" width="13" height="13" fill="{colour}"/>'
        yield text(place + 19, 53, name)
        place += 44 + 7.5 * len(name)


def grid(top: float, step: float) -> Iterator[str]:
    """Lines across, each with its number."""
    for tick in range(round(top / step) + 1):
        y = height(tick * step, top)
        yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{"#ddd" if tick else "#222"}"/>'
        yield text(LEFT - 8, y + 4.5, f"{tick * step:,.10g}", 'text-anchor="end"')


def columns(series: Series, top: float) -> Iterator[str]:
    """The bars, group by group, each with its number above."""
    groups = list(dict.fromkeys(group for heights in series.values() for group in heights))
    room = (WIDTH - LEFT - RIGHT) / len(groups)
    thick = min(room * 0.8 / len(series), 72)
    for place, group in enumerate(groups):
        middle = LEFT + room * (place + 0.5)
        yield text(middle, HEIGHT - BOTTOM + 20, group, 'text-anchor="middle"')
        x = middle - thick * len(series) / 2
        for heights, colour in zip(series.values(), COLOURS, strict=False):
            if group in heights:
                yield from column(x, thick, colour, heights[group], top)
            x += thick


def column(x: float, thick: float, colour: str, value: float, top: float) -> Iterator[str]:
    """One bar."""
    y = height(value, top)
    tall = height(0, top) - y
    yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{thick:.1f}" height="{tall:.1f}" fill="{colour}"/>'
    yield text(x + thick / 2, y - 5, f"{value:,.0f}", 'text-anchor="middle" font-size="11"')


def height(value: float, top: float) -> float:
    """Where a value lies on the paper."""
    return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)


def text(x: float, y: float, said: str, more: str = "") -> str:
    """Words at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(said)}</text>'
