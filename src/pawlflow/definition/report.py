"""Where findings of one file are gathered, and what similar name was probably meant."""

from collections.abc import Collection
from difflib import get_close_matches
from itertools import islice

from pawlflow.definition.finding import Finding, Place, Severity

FINDINGS_MAX = 200  # nobody reads more at once, and a hostile file should not fill a terminal
CANDIDATES_MAX = 2_000  # comparing with more names would make many typos in a big file slow
SHOWN_MAX = 12  # names listed in a message before "and n more"


class EnoughError(Exception):
    """The report is full; whoever started the reading catches this and returns what there is."""


class Report:
    """The findings of one file, in the order they were made."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.errors = 0
        self.left_out = 0  # warnings beyond the limit

    def error(self, place: Place, code: str, message: str, hint: str = "") -> None:
        """Something that must be changed. Raises EnoughError when there are too many of them."""
        self.errors += 1
        self.findings.append(finding(place, "error", code, message, hint))
        if self.errors >= FINDINGS_MAX:
            raise EnoughError

    def warning(self, place: Place, code: str, message: str, hint: str = "") -> None:
        """Something that should be changed."""
        if len(self.findings) - self.errors < FINDINGS_MAX:
            self.findings.append(finding(place, "warning", code, message, hint))
        else:
            self.left_out += 1

    def sorted(self) -> list[Finding]:
        """All findings by position, without those that only follow from a mistake of reading.

        An alias, for example, is read as nothing; that nothing is then no list either.
        """
        unread: dict[tuple[str, int, int], Finding] = {}
        for found in self.findings:
            if found.code.startswith("yaml."):
                unread.setdefault(spot(found), found)
        kept = [found for found in self.findings if unread.get(spot(found), found) is found]
        kept.sort(key=spot)
        return [*kept, *self.closing_words(kept)]

    def closing_words(self, kept: list[Finding]) -> list[Finding]:
        """Say so when not everything is said."""
        if self.errors >= FINDINGS_MAX:
            message = f"more than {FINDINGS_MAX} errors; reading stopped here"
        elif self.left_out:
            message = f"{self.left_out:,} more warnings are not shown"
        else:
            return []
        last = Place(*spot(kept[-1]))
        return [finding(last, "warning", "report.full", message, "mend these and check again")]


def finding(place: Place, severity: Severity, code: str, message: str, hint: str) -> Finding:
    """A finding at a place."""
    return Finding(
        file=place.file,
        line=place.line,
        column=place.column,
        severity=severity,
        code=code,
        message=message,
        hint=hint,
    )


def spot(found: Finding) -> tuple[str, int, int]:
    """The position of a finding, as something to compare."""
    return found.file, found.line, found.column


def suggest(word: str, known: Collection[str], cutoff: float = 0.6) -> str:
    """`did you mean ...?` when a known name is close to the word, else nothing."""
    close = nearest(word, known, cutoff)
    return f"did you mean {close!r}?" if close else ""


def nearest(word: str, known: Collection[str], cutoff: float = 0.6) -> str | None:
    """The known name that is close to the word."""
    candidates = list(islice(known, CANDIDATES_MAX))
    folded = {name.lower().replace("_", "").replace("-", ""): name for name in candidates}
    close = folded.get(word.lower().replace("_", "").replace("-", ""))
    if close is None:
        matches = get_close_matches(word[:80], candidates, n=1, cutoff=cutoff)
        close = matches[0] if matches else None
    return close


def listing(names: Collection[str]) -> str:
    """The names for a message, with a count in place of what would be too long."""
    shown = ", ".join(islice(names, SHOWN_MAX))
    more = len(names) - SHOWN_MAX
    return f"{shown} and {more} more" if more > 0 else shown or "none"
