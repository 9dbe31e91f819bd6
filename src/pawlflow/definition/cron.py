"""Five-field cron lines: is this one? When it fires is the schedule's business, not ours."""

import re
from typing import NamedTuple

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
PART = re.compile(r"(?:\*|(\w+)(?:-(\w+))?)(?:/([0-9]{1,4}))?\Z", re.ASCII)


class Span(NamedTuple):
    """One of the five fields: what it counts, and from where to where."""

    what: str
    least: int
    most: int
    names: tuple[str, ...] = ()  # the first name stands for `least`


SPANS = (
    Span("minute", 0, 59),
    Span("hour", 0, 23),
    Span("day of month", 1, 31),
    Span("month", 1, 12, MONTHS),
    Span("day of week", 0, 7, DAYS),  # 7 is Sunday too
)


def cron_problem(line: str) -> str:
    """Why a line is not five-field cron; empty if it is."""
    fields = line.split()
    if len(fields) != len(SPANS):
        return f"it has {len(fields)} fields, not five"
    for field, span in zip(fields, SPANS, strict=True):
        for part in field.split(","):
            if problem := part_problem(part, span):
                return problem
    return ""


def part_problem(part: str, span: Span) -> str:
    """Why one part of a comma list is wrong; empty if it is right."""
    found = PART.match(part)
    if not found:
        return f"{part!r} is not a {span.what}"
    first, last, every = found.groups()
    if every is not None and int(every) == 0:
        return f"{part!r} repeats every 0"
    numbers = [number_of(text, span) for text in (first, last) if text is not None]
    if None in numbers:
        return f"{part!r} is not a {span.what} from {span.least} to {span.most}"
    if len(numbers) == 2 and numbers != sorted(numbers, key=lambda number: number or 0):
        return f"{part!r} runs backwards"
    return ""


def number_of(text: str, span: Span) -> int | None:
    """The number a text stands for in a field, or None."""
    if text.lower() in span.names:
        return span.least + span.names.index(text.lower())
    if text.isascii() and text.isdecimal() and span.least <= int(text[:9]) <= span.most:
        return int(text)
    return None
