"""Moments as people write them: a time of the calendar, or so long from now."""

from datetime import UTC, datetime, timedelta
from typing import Final

from pawlflow.definition.fields import duration_ms
from pawlflow.model.ids import TimeMs
from pawlflow.requests import BadRequestError

Moment = str | datetime | timedelta
FORM: Final = "a time like 2026-11-15T06:00Z, or +10m for ten minutes from now"
LAST_MS: Final = TimeMs(253_370_764_800_000)  # the year 9999: what can be written can be read


def moment_of(given: Moment, now: TimeMs) -> TimeMs:
    """The time that is meant. Raises BadRequestError."""
    if isinstance(given, timedelta):
        return checked(now + given // timedelta(milliseconds=1), given)
    if isinstance(given, datetime):
        return time_of(given, given)
    sign, span = given[:1], duration_ms(given[1:])
    if sign in ("+", "-") and span is not None:
        return checked(now + span if sign == "+" else now - span, given)
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        raise BadRequestError("time.bad", f"{given!r} is no time: write {FORM}") from None
    return time_of(found if found.tzinfo else found.replace(tzinfo=UTC), given)


def time_of(found: datetime, given: object) -> TimeMs:
    """A time of the calendar; without a zone nobody can tell which one it is."""
    if found.tzinfo is None:
        message = f"{given!r} has no time zone: give it tzinfo, for example datetime.UTC"
        raise BadRequestError("time.bad", message)
    return checked((found - EPOCH) // timedelta(milliseconds=1), given)


def checked(ms: int, given: object) -> TimeMs:
    """A time that a journal can hold and a calendar can show."""
    if not 0 <= ms <= LAST_MS:
        raise BadRequestError("time.bad", f"{given!r} lies before 1970 or after the year 9999")
    return TimeMs(ms)


EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
