"""What is wrong with a JSON file: each with its path, its place and the way out."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final, TypeVar

import msgspec

from pawlflow.definition.finding import Finding, Place, RefusedError
from pawlflow.definition.report import finding
from pawlflow.definition.source import Source
from pawlflow.importing.json_places import Path, index_of, path_text

PROBLEMS_MAX: Final = 20  # one wrong id is named by hundreds of tasks; nobody reads them all
BOM: Final = b"\xef\xbb\xbf"
BYTE: Final = re.compile(r" ?\(byte ([0-9]+)\)")
JSON_HINT: Final = "export it again; NaN, Infinity, comments and trailing commas are no JSON"

Shape = TypeVar("Shape")


class Problems:
    """The problems of one file, gathered so that one does not hide the next."""

    def __init__(self, file: str, data: bytes) -> None:
        self.file = file
        self.data = data.removeprefix(BOM)
        self.found: list[tuple[Path, str, str, str]] = []
        self.left_out = 0

    @cached_property
    def source(self) -> Source:
        """The text, for places; a sound file is never asked."""
        return Source(self.file, self.data.decode(errors="replace"))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Whatever keeps the file from being read inside becomes a RefusedError."""
        try:
            str(self.data, "utf-8")  # parts that are passed over are not looked at later
            yield
        except UnicodeDecodeError as error:
            message = f"byte 0x{self.data[error.start]:02x} is not UTF-8"
            raise self.not_json(error.start, message, "save the file as UTF-8") from None
        except RecursionError:
            message = "lists and objects are nested deeper than can be read"
            raise self.not_json(0, message, JSON_HINT) from None
        except msgspec.DecodeError as error:
            found = BYTE.search(str(error))
            byte = int(found[1]) if found else len(self.data)
            words = BYTE.sub("", str(error)).removeprefix("JSON is malformed: ")
            words = words if self.data.strip() else "the file is empty"
            raise self.not_json(byte, words, JSON_HINT) from None

    def not_json(self, byte: int, words: str, hint: str) -> RefusedError:
        """The error for what cannot be read at all, at the byte where that shows."""
        place = self.source.place(len(self.data[:byte].decode(errors="replace")))
        message = f"not JSON: {words[0].lower()}{words[1:]}"
        return RefusedError([finding(place, "error", "wfformat.json", message, hint)])

    def read_as(self, shape: type[Shape]) -> Shape:
        """The whole file. Raises RefusedError if it is something else."""
        try:
            return msgspec.json.decode(self.data, type=shape)
        except msgspec.ValidationError as error:
            message = f"this is no WfFormat: {str(error)[0].lower()}{str(error)[1:]}"
            self.add((), "wfformat.shape", message, "give an instance as WfCommons writes it")
            raise self.refusal() from None

    @property
    def full(self) -> bool:
        """Will one more not be shown? Then its words need not be found."""
        return len(self.found) >= PROBLEMS_MAX

    def add(self, path: Path, code: str, message: str, hint: str = "") -> None:
        """Something that is wrong at a path."""
        if self.full:
            self.left_out += 1
        else:
            self.found.append((path, code, message, hint))

    def end(self) -> None:
        """Raise RefusedError if anything was found so far."""
        if self.found:
            raise self.refusal()

    def refusal(self) -> RefusedError:
        """Everything that was found, with its places."""
        told = [self.told(*each) for each in self.found]
        if self.left_out:
            more = f"{self.left_out:,} more problems are not shown"
            last = Place(told[-1].file, told[-1].line, told[-1].column)
            told.append(finding(last, "warning", "report.full", more, "mend these and try again"))
        return RefusedError(told)

    def told(self, path: Path, code: str, message: str, hint: str) -> Finding:
        """One problem as a finding."""
        place = self.source.place(index_of(self.source.text, path))
        return finding(place, "error", code, f"{path_text(path)}: {message}", hint)


def kind_of(value: Any) -> str:
    """A value as a message names it."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case dict():
            return "an object"
        case list():
            return "a list"
        case str():
            return f"the text {value[:40]!r}" if value else "an empty text"
        case _:
            return f"the number {value!r}"[:60]
