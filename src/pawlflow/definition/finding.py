"""What a reader has to say about a file: where, how bad, and the way out."""

from typing import Literal

import msgspec

Severity = Literal["error", "warning"]


class Place(msgspec.Struct, frozen=True):
    """A position in a file; line and column count from 1."""

    file: str
    line: int
    column: int


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One error or warning. `hint` says what to do about it."""

    file: str
    line: int
    column: int
    severity: Severity
    code: str
    message: str
    hint: str = ""


class RefusedError(Exception):
    """A document that cannot be used, with everything found in it."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        first = findings[0]
        super().__init__(f"{first.file}:{first.line}:{first.column}: {first.message}")
