"""Words: what an exception says, and where it was raised, whatever kind of exception it is."""

import traceback
from pathlib import PurePath


def words_of(error: BaseException) -> str:
    """What an exception says, if it can."""
    try:
        return str(error)
    except Exception as trouble:  # noqa: BLE001  # its __str__ is users' code, too
        return f"its own text raised {type(trouble).__name__}"


def where_of(error: BaseException) -> str:
    """The line that raised, for whoever reads the failure and not the log."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({PurePath(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""


def trace_of(error: BaseException) -> str:
    """The lines that led there. Not its words: they may hold a value."""
    return "".join(traceback.format_tb(error.__traceback__))
