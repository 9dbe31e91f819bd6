"""What a plain scalar means: the core schema of YAML 1.2 (10.3.2), minus what JSON cannot say."""

import math
import re
from typing import Final

INT_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 64) - 1  # what canonical CBOR holds without tags
DIGITS_MAX = 64  # enough for any 64-bit number with some zeros before it; int() never sees more

WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
NUMBER_START = frozenset("+-.0123456789")
DECIMAL = re.compile(r"[-+]?[0-9]+\Z")
OCTAL = re.compile(r"0o[0-7]+\Z")
HEX = re.compile(r"0x[0-9a-fA-F]+\Z")
FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")


class ScalarError(ValueError):
    """A plain scalar that has no value here."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


def resolve(text: str) -> str | int | float | bool | None:
    """The value of a plain scalar."""
    if text in WORDS:
        return WORDS[text]
    if text[0] not in NUMBER_START:
        return text
    return resolve_number(text)


def resolve_number(text: str) -> str | int | float:
    """A number, or the text itself if it only starts like one (`1:30`, `-x`, `1.2.3`)."""
    if DECIMAL.match(text):
        return bounded(text, 10, text)
    if OCTAL.match(text):
        return bounded(text, 8, text[2:])
    if HEX.match(text):
        return bounded(text, 16, text[2:])
    if FLOAT.match(text):
        return finite(text)
    if NOT_FINITE.match(text):
        raise not_finite(text)
    return text


def bounded(text: str, base: int, digits: str) -> int:
    """An integer of at most 64 bits."""
    if len(digits) <= DIGITS_MAX:
        number = int(digits, base)
        if INT_MIN <= number <= INT_MAX:
            return number
    shown = text if len(text) <= DIGITS_MAX else f"{text[:20]}... ({len(text):,} digits)"
    raise ScalarError(
        "yaml.number",
        f"the number {shown} does not fit into 64 bits",
        "put it into quotes to keep it as a text",
    )


def finite(text: str) -> float:
    """A float that JSON and CBOR can carry."""
    number = float(text)
    if math.isinf(number):
        raise not_finite(text)
    return number


def not_finite(text: str) -> ScalarError:
    """Infinity and NaN have no canonical form that compares, so no value may hold them."""
    return ScalarError(
        "yaml.number",
        f"{text} is not a finite number",
        "leave it out, or put it into quotes to keep it as a text",
    )
