"""Time zones: is this the name of one? What time it is there is not asked here.

Their names come with the system, or with the package `tzdata` where it has none.
"""

from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

ZONES_MAX: Final = 1_024


@lru_cache(ZONES_MAX)
def is_zone(name: str) -> bool:
    """Is there a time zone of this name?"""
    try:
        ZoneInfo(name)
    except (LookupError, ValueError, OSError):  # no such file, no such name, or a folder
        return False
    return True


@lru_cache(1)
def zone_names() -> tuple[str, ...]:
    """All of them, for a suggestion."""
    return tuple(sorted(available_timezones()))
