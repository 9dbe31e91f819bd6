"""The text of a file, and the way from an index in it to a line and a column.

Everything read from a file remembers indexes, and asks here for a `Place` only when there is
something to say about it: most files are right, and their places are never needed.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import repeat

from pawlflow.definition.finding import Place

LINE_END = re.compile(r"\r\n|\n|\r")
SPACE = " \t\r\n"
# What one character of a quoted scalar may look like in the file: '' in single quotes, and the
# escapes of double quotes, longest first (YAML 1.2, 5.7 and 7.3).
SINGLE = re.compile(r"''|.")
ENDS = r"(?:\r\n|\n|\r)"
EMPTY = rf"((?:[ \t]*{ENDS})*)[ \t]*"  # empty lines, and the indentation of the next one
DOUBLE = re.compile(
    rf"(\\{ENDS}){EMPTY}"  # joins lines and stands for nothing
    rf"|([ \t]*{ENDS}){EMPTY}"  # folds lines: into a space, or into the empty lines
    r"|[ \t]+|\\(?:x..|u.{4}|U.{8}|.)|.",
    re.DOTALL,
)
JOINED = 2  # characters by which two escapes of JSON are longer than the one they are read as


class Source:
    """One file: its name and its text."""

    def __init__(self, file: str, text: str, pairs: Sequence[int] = ()) -> None:
        self.file = file
        self.text = text
        self.pairs = pairs  # where in it an escape stands that the file has as two
        self.spelt: tuple[tuple[int, int], list[int]] = ((0, 0), [])  # the last one asked for

    @cached_property
    def line_starts(self) -> list[int]:
        """The index of the first character of each line."""
        return [0, *(end.end() for end in LINE_END.finditer(self.text))]

    def place(self, index: int) -> Place:
        """The line and column of the character at `index`, both counted from 1."""
        line = bisect_right(self.line_starts, index)
        start = self.line_starts[line - 1]
        joined = bisect_left(self.pairs, index) - bisect_left(self.pairs, start)
        return Place(self.file, line, index - start + 1 + JOINED * joined)

    def place_inside(self, start: int, end: int, value: str, offset: int) -> Place:
        """Where `value[offset]` stands in the file, `value` being the scalar at start:end.

        The start of the scalar, where that cannot be told.
        """
        if self.spelt[0] != (start, end):  # a long text may have many errors
            self.spelt = ((start, end), spelling(self.text[start:end], value))
        where = self.spelt[1]
        return self.place(start + (where[offset] if offset < len(where) else 0))


def spelling(raw: str, value: str) -> list[int]:
    """The index in `raw`, a scalar as it is written, of each character of `value`, and of its end.

    They are fewer where it cannot be told.
    """
    if not value:
        return []
    if raw[:1] == '"':
        return [*double_quoted(raw), len(raw) - 1]
    if LINE_END.search(raw):
        return list(folded(raw, value))
    if raw[:1] == "'":
        return [*(found.start() + 1 for found in SINGLE.finditer(raw[1:-1])), len(raw) - 1]
    return list(range(len(raw) + 1))


def double_quoted(raw: str) -> Iterator[int]:
    """The index of each character of a scalar in double quotes, on one line or on several."""
    for found in DOUBLE.finditer(raw, 1, len(raw) - 1):
        joins, after_join, folds, after_fold = found.groups()
        empty = after_join or after_fold or ""
        if empty:
            yield from (found.start() for _ in LINE_END.finditer(empty))
        elif found[0][0] in " \t" and folds is None:
            yield from range(*found.span())
        elif joins is None:
            yield found.start()


def folded(raw: str, value: str) -> Iterator[int]:
    """The same for any other scalar of several lines.

    Folding and indentation change runs of white space and nothing else, so the two texts are
    walked together, run by run. Where they disagree we know no more.
    """
    at, done = body_start(raw), 0
    if value[:1] not in SPACE:
        at = skip_space(raw, at)
    while done < len(value) and at < len(raw):
        if value[done] in SPACE and raw[at] in SPACE:
            done_next = skip_space(value, done)
            yield from repeat(at, done_next - done)
            at, done = skip_space(raw, at), done_next
        elif raw[at] == value[done]:
            yield at
            at += 2 if raw[at] == "'" and raw[0] == "'" else 1
            done += 1
        else:
            return
    if done == len(value):
        yield at


def body_start(raw: str) -> int:
    """Where the text of a scalar begins: after its quote, or after the line of its `|` or `>`."""
    if raw[0] in "|>":
        header = LINE_END.search(raw)
        return header.end() if header else len(raw)
    return 1 if raw[0] in "'\"" else 0


def skip_space(text: str, at: int) -> int:
    """The index of the first character from `at` on that is not white space."""
    while at < len(text) and text[at] in SPACE:
        at += 1
    return at
