"""The text of a file, and the way from an index in it to a line and a column.

Everything read from a file remembers indexes, and asks here for a `Place` only when there is
something to say about it: most files are right, and their places are never needed.
"""

import re
from bisect import bisect_right
from functools import cached_property

from pawlflow.definition.finding import Place

LINE_END = re.compile(r"\r\n|\n|\r")
SPACE = " \t\r\n"
# What one character of a quoted scalar may look like in the file: '' in single quotes, and the
# escapes of double quotes, longest first (YAML 1.2, 5.7 and 7.3). A backslash before a line end
# joins lines and stands for nothing.
SINGLE = re.compile(r"''|.", re.DOTALL)
DOUBLE = re.compile(
    r"\\(?:x..|u.{4}|U.{8}|(?:\r\n|\r|\n)[ \t]*|.)|.",
    re.DOTALL,
)


class Source:
    """One file: its name and its text."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text

    @cached_property
    def line_starts(self) -> list[int]:
        """The index of the first character of each line."""
        return [0, *(end.end() for end in LINE_END.finditer(self.text))]

    def place(self, index: int) -> Place:
        """The line and column of the character at `index`, both counted from 1."""
        line = bisect_right(self.line_starts, index)
        return Place(self.file, line, index - self.line_starts[line - 1] + 1)

    def place_inside(self, start: int, end: int, value: str, offset: int) -> Place:
        """Where `value[offset]` stands in the file, `value` being the scalar at start:end."""
        raw = self.text[start:end]
        return self.place(start + locate(raw, value, offset))


def locate(raw: str, value: str, offset: int) -> int:
    """The index in `raw`, a scalar as it is written, of the character `value[offset]`.

    0, the start of the scalar, where that cannot be told.
    """
    if LINE_END.search(raw):
        return locate_folded(raw, value, offset)
    written = characters(raw)
    if offset < len(written):
        return written[offset]
    # An error at the end of the text: point just after the last character.
    return written[-1] + 1 if written else 0


def characters(raw: str) -> list[int]:
    """The index of each character of a scalar that is written on one line."""
    if raw[:1] == "'":
        return [found.start() + 1 for found in SINGLE.finditer(raw[1:-1])]
    if raw[:1] == '"':
        return [found.start() + 1 for found in DOUBLE.finditer(raw[1:-1])]
    return list(range(len(raw)))


def locate_folded(raw: str, value: str, offset: int) -> int:
    """As `locate`, for a scalar of several lines.

    Folding and indentation change runs of white space and nothing else, so the two texts are
    walked together, run by run. Where they disagree (an escape, say) we know only the start.
    """
    at, done = body_start(raw), 0
    if value[:1] not in SPACE:
        at = skip_space(raw, at)
    while done < offset:
        if at >= len(raw) or done >= len(value):
            return 0
        if value[done] in SPACE and raw[at] in SPACE:
            done_next = skip_space(value, done)
            if offset < done_next:
                return at
            at, done = skip_space(raw, at), done_next
        elif raw[at] == value[done]:
            at += 2 if raw[at] == "'" and raw[0] == "'" else 1
            done += 1
        else:
            return 0
    return at


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
