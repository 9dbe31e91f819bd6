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
from pawlflow.model.payload import PAYLOAD_BYTES_MAX, Payload, PayloadError

STDIN: Final = "@-"
SHOWN_MAX: Final = 30  # characters, from where the trouble is


def json_of(here: Session, given: str | None, option: str, *, default: Any = None) -> Any:
    """The value of an option: JSON, `@FILE` with JSON in it, or `@-` for standard input."""
    if given is None:
        return default
    source, text = source_of(here, given, option)
    try:
        value = json.loads(text, parse_constant=refuse_constant)
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
        return "standard input", sys.stdin.read(PAYLOAD_BYTES_MAX + 1)
    if not given.startswith("@"):
        return option, given
    path = Path(given[1:])
    data = read_file(path, as_json=here.as_json, bytes_max=PAYLOAD_BYTES_MAX)
    try:
        return str(path), data.decode()
    except UnicodeDecodeError as error:
        here.end("cli.json", f"{path}: this is no UTF-8 text: {error.reason}", USAGE)


def refuse_constant(name: str) -> NoReturn:
    """NaN and Infinity are no JSON, though Python would read them."""
    raise ValueError(f"{name} is no number")


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
