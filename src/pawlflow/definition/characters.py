"""From the bytes of a file to its characters: those that everybody sees as they are."""

import re

from pawlflow.definition.finding import Place
from pawlflow.definition.source import JOINED, Source

# Raw control characters, surrogates and non-characters. YAML forbids most of them; terminals and
# editors show none of them, so nobody who reviews the file would see what it says.
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]"
)
# YAML 1.1, and so libyaml, ends a line at these, YAML 1.2, JSON and editors do not: what stands
# behind them could be another key to one and the same text to the other.
LINE_BREAKS = "\x85\u2028\u2029"
UNSEEN = re.compile(f"{UNPRINTABLE.pattern}|[{LINE_BREAKS}]")
# A backslash that is escaped itself begins no escape.
PAIR = re.compile(
    r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
)


class ReadError(Exception):
    """Reading cannot go on after this."""

    def __init__(self, place: Place, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.place, self.code, self.message, self.hint = place, code, message, hint


def read_source(text: str | bytes, file: str, *, bytes_max: int) -> Source:
    """The characters of a file, without its byte order mark. Raises ReadError."""
    size = len(text) if isinstance(text, bytes) else len(text.encode(errors="surrogatepass"))
    if size > bytes_max:
        raise ReadError(
            Place(file, 1, 1),
            "yaml.too_large",
            f"the file is larger than {bytes_max:,} bytes, which is the most that is read",
            "split it into several files, or raise the limit in the settings",
        )
    if isinstance(text, bytes):
        text = decode(text, file)
    text = text.removeprefix("\ufeff")
    refuse_unseen(text, file)
    return joined_pairs(text, file)


def refuse_unseen(text: str, file: str) -> None:
    """Refuse the first character that a reader of the file would not see, or see as another."""
    found = UNSEEN.search(text)
    if found is None:
        return
    code, name = ord(found[0]), f"the character U+{ord(found[0]):04X}"
    place = Source(file, text).place(found.start())
    if found[0] in LINE_BREAKS:
        raise ReadError(
            place,
            "yaml.line_break",
            f"{name} ends a line to some readers of YAML and to others does not",
            f"write it as \\u{code:04x} in double quotes, or end the line as usual",
        )
    raise ReadError(
        place,
        "yaml.control",
        f"{name} cannot be seen and may not stand in a definition",
        "remove it; inside a text, write it by its meaning (a tab as \\t in double quotes)",
    )


def joined_pairs(text: str, file: str) -> Source:
    """JSON writes characters beyond U+FFFF as two escapes, which YAML does not know."""
    if "\\ud" not in text and "\\uD" not in text:
        return Source(file, text)
    pairs: list[int] = []

    def joined(found: re.Match[str]) -> str:
        pairs.append(found.end(1) - JOINED * len(pairs))
        return f"{found[1]}\\U{ord(json_character(found)):08x}"

    return Source(file, PAIR.sub(joined, text), pairs)


def json_character(found: re.Match[str]) -> str:
    """The character of a high and a low surrogate."""
    return bytes.fromhex(found[2] + found[3]).decode("utf-16-be")


def decode(data: bytes, file: str) -> str:
    """The bytes as UTF-8 text."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        raise ReadError(
            Source(file, before).place(len(before)),
            "yaml.not_utf8",
            f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8",
            "save the file as UTF-8",
        ) from None
