"""Five-field cron lines: is this one? When it fires is the schedule's business, not ours."""

import re
from typing import NamedTuple

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
DAYS_MAX = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
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
    return never_problem(*fields[2:])


def never_problem(days: str, months: str, weekdays: str) -> str:
    """Why no day is ever like that; empty if one is.

    With a `*` in front of either, day of month and day of week must both match, else one of them.
    """
    least = min(first_of(part, SPANS[2]) for part in days.split(","))
    both = days.startswith("*") or weekdays.startswith("*")
    longest = max(DAYS_MAX[month - 1] for month in months_of(months))
    return f"no month of {months!r} has a day {least}" if both and least > longest else ""


def first_of(part: str, span: Span) -> int:
    """The first number that a part stands for."""
    return number_of(part.partition("/")[0].partition("-")[0], span) or span.least


def months_of(field: str) -> list[int]:
    """The months that a field stands for; those of a range are all counted."""
    found: list[int] = []
    for part in field.split(","):
        whole, _, every = part.partition("/")
        first, _, last = whole.partition("-")
        least = first_of(part, SPANS[3])
        end = number_of(last, SPANS[3]) if last else None
        most = 12 if end is None and (every or first == "*") else end or least
        found += range(least, most + 1, int(every or 1))
    return found


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
