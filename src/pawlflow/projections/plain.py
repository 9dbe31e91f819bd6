"""Plain values: what the views say of payloads, failures, times and ids, as JSON would hold it."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from pawlflow.model.failure import Failure
from pawlflow.model.payload import Payload

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MS: Final = 253_402_300_799_999  # the calendar's last moment, 9999-12-31T23:59:59.999Z


def value_of(payload: Payload | None) -> Any:
    """The value, or None if there is none or its bytes are gone."""
    return None if payload is None or payload.data is None else payload.value


def is_erased(payload: Payload | None) -> bool:
    """Was there a value whose bytes are gone?"""
    return payload is not None and payload.data is None


def failure_told(failure: Failure | None) -> dict[str, Any] | None:
    """A failure with its words, where they are still there."""
    if failure is None:
        return None
    told: dict[str, Any] = {"class": failure.kind, "code": failure.code}
    if is_erased(failure.detail):
        return told | {"message": None, "findings": [], "erased": True}
    return told | {"message": failure.message, "findings": failure.findings}


def time_told(ms: int | None) -> str | None:
    """A time by RFC 3339, in UTC with milliseconds; beyond the calendar, its last moment."""
    if ms is None:
        return None
    moment = EPOCH + timedelta(milliseconds=min(ms, LAST_MS))
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def uuid_told(raw: bytes) -> str:
    """The first 16 bytes of a hash as a UUID of version 8; a step key comes out as it is."""
    version, variant = raw[6] & 0x0F | 0x80, raw[8] & 0x3F | 0x80
    return str(UUID(bytes=raw[:6] + bytes((version, raw[7], variant)) + raw[9:16]))
