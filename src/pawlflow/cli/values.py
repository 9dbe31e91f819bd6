"""Values from the command line: JSON in its place, files after an @, spans of time."""

import json
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

from pawlflow.cli.lines import clean
from pawlflow.cli.output import USAGE, read_file
from pawlflow.cli.session import Session
from pawlflow.definition.fields import duration_ms
from pawlflow.model.codec import CodecError
from pawlflow.model.ids import TimeMs
from pawlflow.model.payload import PAYLOAD_BYTES_MAX, Payload, PayloadError
from pawlflow.moments import moment_of
from pawlflow.requests import BadRequestError

STDIN: Final = "@-"
SHOWN_MAX: Final = 30  # characters, from where the trouble is


def json_of(here: Session, given: str | None, option: str, *, default: Any = None) -> Any:
    """The value of an option: JSON, `@FILE` with JSON in it, or `@-` for standard input."""
    if given is None:
        return default
    source, text = source_of(here, given, option)
    try:
        value = json.loads(text, parse_constant=refuse_constant, object_pairs_hook=object_of)
        Payload.of(value, here.tenant)
    except json.JSONDecodeError as error:
        place = f"{source}:{error.lineno}:{error.colno}"
        rest = text[error.pos : error.pos + SHOWN_MAX] or "the end"
        message = f"{place}: this is no JSON: {error.msg}, at {clean(rest)}"
        here.end("cli.json", message, USAGE)
    except (CodecError, PayloadError) as error:
        here.end(error.code, f"{source}: {error}", USAGE)
    except (ValueError, RecursionError) as error:
        here.end("cli.json", f"{source}: this is no JSON that can be kept: {error}", USAGE)
    return value


def source_of(here: Session, given: str, option: str) -> tuple[str, str]:
    """Where the text of an option comes from, and the text."""
    if given == STDIN:
        text = sys.stdin.read(PAYLOAD_BYTES_MAX + 1)
        check_size(here, "standard input", len(text))
        return "standard input", text
    if not given.startswith("@"):
        return option, given
    path = Path(given[1:])
    data = read_file(path, as_json=here.as_json, bytes_max=PAYLOAD_BYTES_MAX)
    check_size(here, str(path), len(data))
    try:
        return str(path), data.decode()
    except UnicodeDecodeError as error:
        here.end("cli.json", f"{path}: this is no UTF-8 text: {error.reason}", USAGE)


def check_size(here: Session, source: str, size: int) -> None:
    """What is longer than can be kept was not read to its end: it would look like broken JSON."""
    if size > PAYLOAD_BYTES_MAX:
        message = f"{source} is too large: at most {PAYLOAD_BYTES_MAX:,} bytes are accepted"
        here.end("payload.too_large", message, USAGE)


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Of two members with one name, one would be lost without a word."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise ValueError(f"the key {twice[:SHOWN_MAX]!r} stands twice in one object")
    return made


def refuse_constant(name: str) -> NoReturn:
    """NaN and Infinity are no JSON, though Python would read them."""
    raise ValueError(f"{name} is no number")


def moment_in(here: Session, given: str, option: str, now: TimeMs) -> TimeMs:
    """A time of the calendar, or so long from now: 2026-11-15T06:00Z, +10m, -7d."""
    try:
        return moment_of(given, now)
    except BadRequestError as error:
        here.end(error.code, f"{option}: {error}", USAGE)


def seconds_of(here: Session, given: str | None) -> float | None:
    """A span of time as in the documents: 500ms, 30s, 5m; a bare number means seconds."""
    if given is None:
        return None
    found = duration_ms(given)
    if found is None and given.isdecimal():
        found = duration_ms(f"{given}s")
    if found is None:
        message = f"--timeout: {given!r} is no span of time: write 500ms, 30s, 5m or 2h"
        here.end("cli.usage", message, USAGE)
    return found / 1000
