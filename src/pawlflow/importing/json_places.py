"""Where in a JSON file a value stands: looked up when there is something to say about it.

The fast reader keeps no places, and a sound file needs none. So the text is read again, only as far
as the value and without keeping anything.
"""

import json
import re
from collections.abc import Sequence
from typing import Final

Path = tuple[str | int, ...]

SPACE: Final = re.compile(r"[ \t\r\n]*")
PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
SKIP: Final = json.JSONDecoder(strict=False, parse_int=str)  # a number may be of any length


def path_text(path: Sequence[str | int]) -> str:
    """A path as people write it: `$.workflow.tasks[3].parents[0]`."""
    return "$" + "".join(map(part_text, path))


def part_text(part: str | int) -> str:
    """One part of a path."""
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if PLAIN_KEY.match(part) else f"[{json.dumps(part)}]"


def index_of(text: str, path: Path) -> int:
    """The index at which the value of a path begins; of the nearest one around it if it is missing.

    The text is JSON: whoever asks has read it before.
    """
    at = after_space(text, 0)
    for part in path:
        found = in_list(text, at, part) if isinstance(part, int) else in_object(text, at, part)
        if found is None:
            return at
        at = found
    return at


def in_object(text: str, at: int, key: str) -> int | None:
    """The index of the value under a key; of the last one, as readers take it."""
    if text[at] != "{":
        return None
    found = None
    at = after_space(text, at + 1)
    while text[at] == '"':
        name, at = SKIP.raw_decode(text, at)
        at = after_space(text, after_space(text, at) + 1)
        if name == key:
            found = at
        at = after_comma(text, skipped(text, at))
    return found


def in_list(text: str, at: int, number: int) -> int | None:
    """The index of an item."""
    if text[at] != "[":
        return None
    at = after_space(text, at + 1)
    while number and text[at] != "]":
        at = after_comma(text, skipped(text, at))
        number -= 1
    return at if text[at] != "]" else None


def skipped(text: str, at: int) -> int:
    """The index behind the value that begins here."""
    return SKIP.raw_decode(text, at)[1]


def after_comma(text: str, at: int) -> int:
    """The index of the next entry, or of the bracket that ends them."""
    at = after_space(text, at)
    return after_space(text, at + 1) if text[at] == "," else at


def after_space(text: str, at: int) -> int:
    """The index of the next character that says something."""
    found = SPACE.match(text, at)
    return found.end() if found else at
