"""Reading a mapping by a table: one row per field, with the shape's name and a reader.

A reader turns a node into a value or reports why it cannot and returns BAD. It also carries the
JSON Schema of what it accepts, so that editors are told the same as the checker enforces.

BAD then stands for the value in whatever the mapping becomes, and reading goes on: one mistake does
not hide the next, and nothing is built of a document that has any. BAD is false and not None, so
who asks for a value finds none, and who asks whether the field was left out is told no.
"""

import re
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from pawlflow.definition.read import Node, plain
from pawlflow.definition.report import Report, listing, nearest, suggest
from pawlflow.model.ids import DurationMs


class Unread:
    """What stands for a value that could not be read."""

    def __bool__(self) -> bool:
        return False


BAD: Any = Unread()  # what a reader returns when it has reported an error
Read = Callable[[Node, Report, str], Any]
Schema = dict[str, Any]

NUMBER_MAX = 1_000_000_000  # counts beyond this are typing errors
TEXT_MAX = 10_000  # characters of a description or comment
DURATION = re.compile(
    r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m(?!s))?(?:([0-9]+)s)?(?:([0-9]+)ms)?\Z"
)
UNITS = ("d", "h", "m", "s", "ms")
UNITS_MS = (86_400_000, 3_600_000, 60_000, 1_000, 1)
DURATION_MAX_MS = 36_500 * 86_400_000  # a hundred years: sums with a clock stay far from 64 bits
DURATION_FORM = "a duration like 500ms, 30s, 5m, 2h, 1d or 1h30m"


class Reader(msgspec.Struct, frozen=True):
    """How a value is read, and what editors are told about it."""

    read: Read
    schema: Schema


class Field(msgspec.Struct, frozen=True):
    """One row: the field of the shape, how it is read, what it is for."""

    to: str
    reader: Reader
    doc: str
    required: bool = False


class Table:
    """The fields of one part of a document, by their YAML names."""

    def __init__(self, part: str, fields: dict[str, Field]) -> None:
        self.part = part
        self.fields = fields
        self.required = tuple(name for name, field in fields.items() if field.required)

    def schema(self) -> Schema:
        """What editors are told about the whole part."""
        properties = {
            name: {**field.reader.schema, "description": field.doc}
            for name, field in self.fields.items()
        }
        schema: Schema = {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
        }
        if self.required:
            schema["required"] = list(self.required)
        return schema

    def schema_with(self, how: str, *names: str) -> Schema:
        """The same, where `oneOf` or `anyOf` these fields must be there."""
        return {**self.schema(), how: [{"required": [name]} for name in names]}


def read_fields(node: Node, table: Table, report: Report) -> dict[str, Any]:
    """The readable fields of a mapping, by their names in the shape."""
    return without_bad(**(read_part(node, table, report) or {}))


def without_bad(**found: Any) -> dict[str, Any]:
    """The fields that could be read."""
    return {name: value for name, value in found.items() if value is not BAD}


def read_part(node: Node, table: Table, report: Report) -> Any:
    """The fields of a mapping by their names in the shape; BAD if it is none.

    BAD stands for each field that could not be read, is required and missing, or was probably meant
    by a name that no field has.
    """
    if not isinstance(node.value, dict):
        return misread(report, node, table.part, "a mapping of fields")
    found: dict[str, Any] = {}
    for name, child in node.value.items():
        field = table.fields.get(name)
        if field is None:
            refuse_unknown(node, name, table, report)
        else:
            found[field.to] = field.reader.read(child, report, name)
    said = written_in(node, table)
    for name in () if said is node.value else said:
        found.setdefault(table.fields[name].to, BAD)
    for name in table.required:
        if name not in said:
            report.error(
                node.place,
                "field.missing",
                f"{table.part} has no {name!r}",
                f"add {name}: {table.fields[name].doc}",
            )
            found[table.fields[name].to] = BAD
    return found


def written_in(node: Node, table: Table) -> Collection[str]:
    """The fields that a mapping has, or has under a name that is nearly theirs."""
    if not isinstance(node.value, dict):
        return ()
    if node.value.keys() <= table.fields.keys():
        return node.value
    meant = {name if name in table.fields else nearest(name, table.fields) for name in node.value}
    return [name for name in table.fields if name in meant]


def refuse_unknown(node: Node, name: str, table: Table, report: Report) -> None:
    """A field nobody reads is a typing error more often than a wish."""
    meant = suggest(name, table.fields)
    known = "" if meant else f"; its fields are: {', '.join(table.fields)}"
    report.error(
        node.place_of(name),
        "field.unknown",
        f"{table.part} has no field {name!r}{known}",
        meant or "remove it, or keep notes in metadata.annotations",
    )


def misread(report: Report, node: Node, name: str, expected: str, code: str = "field.type") -> Any:
    """Report a value of the wrong kind."""
    hint = "give it a value, or remove it" if node.value is None else f"write {expected}"
    report.error(node.place, code, f"{name}: expected {expected}; got {shown(node)}", hint)
    return BAD


def shown(node: Node) -> str:
    """A value as a message names it."""
    match node.value:
        case None:
            return "nothing"
        case bool():
            return "true" if node.value else "false"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str() if len(node.value) > 80:
            return f"{node.value[:80]!r}..."
        case _:
            return repr(node.value)


def struct(shape: Callable[..., Any], table: Table) -> Reader:
    """A mapping that becomes a shape, with BAD in place of what is wrong in it."""

    def read(node: Node, report: Report, _: str) -> Any:
        found = read_part(node, table, report)
        return BAD if found is BAD else shape(**found)

    return Reader(read, table.schema())


def list_of(reader: Reader, what: str) -> Reader:
    """A list; its items are read one by one, bad ones are left out."""

    def read(node: Node, report: Report, name: str) -> Any:
        if not isinstance(node.value, list):
            return misread(report, node, name, f"a list of {what}")
        found = [reader.read(item, report, name) for item in node.value]
        return tuple(value for value in found if value is not BAD)

    return Reader(read, {"type": "array", "items": reader.schema})


WORD_CUTOFF = 0.75  # of fixed words: `permanent` is not a slip for `transient`


def choice(*values: str) -> Reader:
    """One of a few words."""
    values = tuple(dict.fromkeys(values))

    def read(node: Node, report: Report, name: str) -> Any:
        if isinstance(node.value, str) and node.value in values:
            return node.value
        near = suggest(node.value, values, WORD_CUTOFF) if isinstance(node.value, str) else ""
        report.error(
            node.place,
            "field.value",
            f"{name}: expected one of {listing(values)}; got {shown(node)}",
            near or f"use one of {listing(values)}",
        )
        return BAD

    return Reader(read, {"enum": list(values)})


def integer(least: int, most: int = NUMBER_MAX) -> Reader:
    """A whole number within bounds."""
    expected = f"a whole number from {least} to {most}"

    def read(node: Node, report: Report, name: str) -> Any:
        if type(node.value) is not int:
            return misread(report, node, name, expected)
        if not least <= node.value <= most:
            return misread(report, node, name, expected, "field.value")
        return node.value

    return Reader(read, {"type": "integer", "minimum": least, "maximum": most})


def read_amount(node: Node, report: Report, name: str) -> Any:
    """A number that is not negative."""
    if type(node.value) not in (int, float):
        return misread(report, node, name, "a number")
    if not 0 <= node.value <= NUMBER_MAX:
        return misread(report, node, name, f"a number from 0 to {NUMBER_MAX}", "field.value")
    return node.value


def read_flag(node: Node, report: Report, name: str) -> Any:
    """True or false."""
    if type(node.value) is bool:
        return node.value
    return misread(report, node, name, "true or false")


def read_text(node: Node, report: Report, name: str) -> Any:
    """A text of sensible length."""
    if not isinstance(node.value, str) or not node.value.strip():
        return misread(report, node, name, "a text")
    if len(node.value) > TEXT_MAX:
        return misread(report, node, name, f"at most {TEXT_MAX:,} characters", "field.value")
    return node.value


def read_any(node: Node, _: Report, __: str) -> Any:
    """Any value, as it is."""
    return plain(node)


def name_of(pattern: re.Pattern[str], what: str, reserved: frozenset[str] = frozenset()) -> Reader:
    """A name by its pattern."""
    form = pattern.pattern.removesuffix(r"\Z")

    def read(node: Node, report: Report, name: str) -> Any:
        value = node.value
        if not isinstance(value, str):
            return misread(report, node, name, f"the name of {what}")
        if value in reserved:
            report.error(
                node.place,
                "name.reserved",
                f"{name}: {value!r} is a word of the engine and cannot name {what}",
                "choose another name",
            )
            return BAD
        if not pattern.match(value):
            report.error(
                node.place,
                "name.bad",
                f"{name}: {shown(node)} is not a name of {what}; names match {form}",
                name_hint(value, pattern),
            )
            return BAD
        return value

    schema: Schema = {"type": "string", "pattern": f"^{form}$"}
    return Reader(read, {**schema, "not": {"enum": sorted(reserved)}} if reserved else schema)


def name_hint(value: str, pattern: re.Pattern[str]) -> str:
    """The nearest right name, if simple repairs lead to one."""
    repaired = re.sub(r"[^A-Za-z0-9._/-]+", "-", value).strip("-")
    for guess in (repaired, repaired.lower(), re.sub(r"[^a-z0-9_-]+", "-", repaired.lower())):
        if guess != value and pattern.match(guess):
            return f"did you mean {guess!r}?"
    return "use letters, digits and hyphens, starting with a letter"


def duration_ms(text: str) -> DurationMs | None:
    """The milliseconds of a duration, or None if it is not one."""
    found = DURATION.match(text)
    if not found or not text or len(text) > 64:
        return None
    parts = zip(found.groups(), UNITS_MS, strict=True)
    return DurationMs(sum(int(count) * unit for count, unit in parts if count))


def duration_text(ms: int) -> str:
    """A duration as a definition writes it."""
    text = ""
    for unit, size in zip(UNITS, UNITS_MS, strict=True):
        count, ms = divmod(ms, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def duration(*, zero: bool = False) -> Reader:
    """A span of time in milliseconds; `zero` also lets `0` and `0s` pass."""

    def read(node: Node, report: Report, name: str) -> Any:
        found = duration_ms(node.value) if isinstance(node.value, str) else None
        if zero and node.value == 0 and type(node.value) is int:
            found = DurationMs(0)
        if found is not None and (zero or found > 0) and found <= DURATION_MAX_MS:
            return found
        report.error(
            node.place,
            "duration.bad",
            f"{name}: expected {DURATION_FORM}; got {shown(node)}",
            duration_hint(node, found),
        )
        return BAD

    pattern = DURATION.pattern.removesuffix(r"\Z").replace("(?!s)", "")
    units = {
        "type": "string",
        "minLength": 2,
        "pattern": f"^{pattern.replace('([0-9]+)', '[0-9]+')}$",
    }
    return Reader(read, {"anyOf": [units, {"const": 0}]} if zero else units)


def duration_hint(node: Node, found: DurationMs | None) -> str:
    """What was probably meant."""
    if found is not None:
        return "use more than zero and at most 36500d"
    if type(node.value) is int and node.value > 0:
        return f"write the unit: {node.value}s"
    return "units are d, h, m, s and ms, largest first, without spaces"


ANY = Reader(read_any, {})
AMOUNT = Reader(read_amount, {"type": "number", "minimum": 0, "maximum": NUMBER_MAX})
FLAG = Reader(read_flag, {"type": "boolean"})
TEXT = Reader(read_text, {"type": "string", "minLength": 1, "maxLength": TEXT_MAX})
TIMEOUT = duration()
DELAY = duration(zero=True)
