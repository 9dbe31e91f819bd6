"""What is logged, and how: `-v`, `PAWL_LOG` and `log` in pawl.toml. Without them, nothing."""

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Any, Final

import click

from pawlflow.cli.settings import KEYS, NOTHING, Settings, log_words

VERBOSE: Final = ("", "info", "debug")  # without, -v, -vv
ASKED: Final = "pawlflow.verbose"


def count_verbose(ctx: click.Context, _: click.Parameter, times: int) -> None:
    """How often -v was said, before the verb and after it; then the log is set up."""
    said = ctx.meta[ASKED] = ctx.meta.get(ASKED, 0) + times
    if ctx.parent is None or ctx.resilient_parsing:
        return
    settings: Settings = ctx.find_root().obj or NOTHING
    words = os.environ.get("PAWL_LOG", "").lower() or settings.values.get("log", "")
    if words and not log_words(words):
        from pawlflow.cli.output import USAGE, fail, setting

        message = f"PAWL_LOG={words} is no level: use {KEYS['log'].expected}"
        fail("cli.usage", message, exit_code=USAGE, as_json=bool(setting("as_json", None)))
    set_up(words.split(",") if words else [], VERBOSE[min(said, len(VERBOSE) - 1)])


def set_up(words: list[str], verbose: str) -> None:
    """Send what is asked for to standard error; -v says how much, if it was typed."""
    log = logging.getLogger("pawl")
    for handler in [each for each in log.handlers if isinstance(each, OurHandler)]:
        log.removeHandler(handler)  # set up anew, by the verb of a verb or in one process
    log.propagate = True
    log.setLevel(logging.NOTSET)
    level = verbose or next((word for word in words if word != "json"), "info" if words else "")
    if not level:
        if not log.handlers:
            log.addHandler(logging.NullHandler())
        return
    ours = OurHandler()
    ours.setFormatter(JsonLines() if "json" in words else Lines())
    log.addHandler(ours)
    log.setLevel(logging.getLevelNamesMapping()[level.upper()])
    log.propagate = False


class OurHandler(logging.StreamHandler):  # type: ignore[type-arg]  # of whatever stream is there
    """Standard error as it is when something is logged: tests, and pagers, replace it."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line; beside a live view it stands above it."""
        self.stream = sys.stderr
        super().emit(record)


class Lines(logging.Formatter):
    """For people: `12:00:01.250 info  shard.flushed turns=3 took_ms=1.2`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and the trace of an exception below it."""
        at = moment(record).strftime("%H:%M:%S.%f")[:-3]
        said = f"{at} {record.levelname.lower():<7} {record.getMessage()}"
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return said + trace


class JsonLines(logging.Formatter):
    """For machines: one JSON object to a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, who, what, and its fields by name."""
        fields: dict[str, Any] = getattr(record, "pawl", {})
        what = {"event": fields["event"]} if fields else {"message": record.getMessage()}
        line = {
            "at": moment(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            **what,
            **fields,
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def moment(record: logging.LogRecord) -> datetime:
    """When it was logged."""
    return datetime.fromtimestamp(record.created, UTC)
