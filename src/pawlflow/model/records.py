"""Records: the fixed shapes of the journal, and the fast way to their canonical bytes.

A record is a positional array: its tag, then its fields. The shape is known beforehand, so one
writer is generated per type; it has every head that can be known and inlines the rest. The bytes
are those that `codec.encode` gives for the same array, at a third of the cost.
"""

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import inspect

from pawlflow.model.codec import (
    ARRAY_HEADS,
    BYTES_HEADS,
    INTS,
    TEXT_HEADS,
    CodecError,
    decode,
    encode,
    head,
    integer,
)
from pawlflow.model.payload import ADDRESS_BYTES, Payload

RecordWriter = Callable[[Any], bytes]
RecordReader = Callable[[bytes | list[Any], Mapping[bytes, bytes]], Any]


class Record(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The base of all that is journalled. Fields may be appended, with defaults; none may go."""


def write(record: msgspec.Struct) -> bytes:
    """Return the canonical bytes of a record; payloads appear as their addresses."""
    return writer_for(type(record))(record)


def read(kind: Any, source: bytes | list[Any], payloads: Mapping[bytes, bytes]) -> Any:
    """Return the record of type `kind`, or of a union, from its bytes or its decoded array.

    A payload whose bytes are not among `payloads` reads as erased. Raises CodecError for bytes that
    are not canonical, and for arrays that are no such record, or a longer one than we know.
    """
    return reader_for(kind)(source, payloads)


def array_head(size: int) -> bytes:
    """Return the head of an array of this many items."""
    return ARRAY_HEADS[size] if size < 256 else head(4, size)


@cache
def writer_for(struct_type: type[msgspec.Struct]) -> RecordWriter:
    """Return the function that writes records of this type; it is generated once."""
    info = inspect.type_info(struct_type)
    if not isinstance(info, inspect.StructType) or not info.array_like:
        raise TypeError(f"{struct_type.__name__} is not a record: declare it array_like=True")
    tag = [] if info.tag is None else [info.tag]
    scope = _Scope()
    forms: list[tuple[str, list[str]]] = []
    least = max((at for at, field in enumerate(info.fields, start=1) if field.required), default=0)
    for size in range(len(info.fields), least - 1, -1):
        start = array_head(len(tag) + size) + b"".join(map(encode, tag))
        parts = [scope.constant(start)]
        for field in info.fields[:size]:
            parts += _parts(field.type, f"record.{field.name}", scope)
        more = "True" if size == least else _says_more(info.fields[size - 1], scope)
        forms.append((more, parts))
    return scope.function(struct_type.__name__, forms)


@cache
def reader_for(kind: Any) -> RecordReader:
    """Return `read` for one type. Worth keeping for a union: to hash one costs 1 µs."""
    _check_closed(inspect.type_info(kind))
    # msgspec keeps what it learns about a type in structs alone. Converting to a union of 30
    # records costs 20 µs, and 0.9 µs inside this box.
    box = msgspec.defstruct("Box", [("value", kind)], array_like=True)

    def reader(source: bytes | list[Any], payloads: Mapping[bytes, bytes]) -> Any:
        def payload(_type: type, addr: object) -> Payload:
            if type(addr) is not bytes or len(addr) != ADDRESS_BYTES:
                raise ValueError(f"a payload is named by {ADDRESS_BYTES} bytes")
            return Payload(addr, payloads.get(addr))

        value = decode(source) if isinstance(source, bytes) else source
        try:
            boxed: Any = msgspec.convert([value], box, builtin_types=(bytes,), dec_hook=payload)
        except msgspec.ValidationError as trouble:
            detail = str(trouble).replace("`$[0]", "`$", 1)
            raise CodecError("codec.record", detail) from trouble
        return boxed.value

    return reader


def _says_more(field: inspect.Field, scope: "_Scope") -> str:
    """Return the condition under which a record cannot be written without this field.

    Fields at the end that hold their defaults are left out. So a field that is appended one day
    does not change the bytes of any record that was written before.
    """
    if field.default is None:
        return f"record.{field.name} is not None"
    return f"record.{field.name} != {scope.constant(field.default)}"


class _Scope:
    """The names of one generated function: constants outside, variables inside."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = dict(_NAMES)
        self.count = 0

    def variable(self) -> str:
        """Return a name that is not used yet."""
        self.count += 1
        return f"x{self.count}"

    def constant(self, value: object) -> str:
        """Return the name by which the function finds this object."""
        name = self.variable()
        self.names[name] = value
        return name

    def function(self, name: str, forms: list[tuple[str, list[str]]]) -> RecordWriter:
        """Make the function that joins the expressions over `record` whose condition holds."""
        lines = [f"        if {when}: return join(({', '.join(each)},))" for when, each in forms]
        source = _SOURCE.format(forms="\n".join(lines))
        exec(compile(source, f"<writer of {name}>", "exec"), self.names)
        written: RecordWriter = self.names["written"]
        return written


_SOURCE: Final = """
def written(record):
    try:
{forms}
    except unfit as trouble:
        raise refusal(record, trouble) from trouble
"""


def _refusal(record: object, trouble: Exception) -> CodecError:
    kind = type(record).__name__
    return CodecError("codec.record", f"a field of {kind} does not have its type: {trouble!r}")


def _parts(info: inspect.Type, value: str, scope: _Scope) -> list[str]:  # noqa: C901  # one table
    """Return the expressions whose bytes, one after the other, are those of `value`."""
    match info:
        case inspect.IntType():
            x = scope.variable()
            return [f"INTS[{x}] if -256 <= ({x} := {value}) < 1024 else integer({x})"]
        case inspect.BoolType():
            return [f"BOOLS[{value}]"]
        case inspect.StrType():
            return _parts_sized("TEXT", 3, f"{value}.encode()", scope)
        case inspect.BytesType():
            return _parts_sized("BYTES", 2, value, scope)
        case inspect.CustomType() if info.cls is Payload:
            return _parts_sized("BYTES", 2, f"{value}.addr", scope)
        case inspect.LiteralType():
            return [f"{scope.constant({each: encode(each) for each in info.values})}[{value}]"]
        case inspect.StructType():
            return [f"{scope.constant(writer_for(info.cls))}({value})"]
        case inspect.UnionType(includes_none=True):
            return _parts_optional(info, value, scope)
        case inspect.UnionType():
            return [f"{scope.constant(_Writers(info.types))}[type({value})]({value})"]
        case inspect.TupleType():
            return _parts_tuple(info, value, scope)
        case inspect.VarTupleType():
            return _parts_sequence(info.item_type, value, scope)
        case _:
            raise _no_form(info)


def _parts_sized(heads: str, major: int, value: str, scope: _Scope) -> list[str]:
    x, size = scope.variable(), scope.variable()
    measured = f"({size} := len({x} := {value}))"
    return [f"{heads}[{size}] if {measured} < 256 else head({major}, {size})", x]


def _parts_optional(info: inspect.UnionType, value: str, scope: _Scope) -> list[str]:
    rest = tuple(each for each in info.types if not isinstance(each, inspect.NoneType))
    x = scope.variable()
    parts = _parts(rest[0] if len(rest) == 1 else inspect.UnionType(rest), x, scope)
    present = " + ".join(f"({part})" for part in parts)
    return [f"NULL if ({x} := {value}) is None else {present}"]


def _parts_tuple(info: inspect.TupleType, value: str, scope: _Scope) -> list[str]:
    size, x = len(info.item_types), scope.variable()
    parts = [f"{scope.constant({size: array_head(size)})}[len({x} := {value})]"]
    for at, item in enumerate(info.item_types):
        parts += _parts(item, f"{x}[{at}]", scope)
    return parts


def _parts_sequence(item: inspect.Type, value: str, scope: _Scope) -> list[str]:
    kinds = item.types if isinstance(item, inspect.UnionType) else (item,)
    if all(isinstance(each, inspect.StructType) for each in kinds):  # each by its own writer
        writers, x = scope.constant(_Writers(kinds)), scope.variable()
        return [f"records({writers}, {x}) if ({x} := {value}) else EMPTY"]
    inner = _Scope()
    writer = inner.function(f"items of {value}", [("True", _parts(item, "record", inner))])
    return [f"sequence({scope.constant(writer)}, {value})"]


class _Writers(dict[type, RecordWriter]):
    """Writers of the members of a union, each made when it is first needed: import stays fast."""

    def __init__(self, members: tuple[inspect.Type, ...]) -> None:
        self.kinds = {_record_of(each) for each in members}

    def __missing__(self, kind: type) -> RecordWriter:
        if kind not in self.kinds:
            raise KeyError(kind)
        self[kind] = writer_for(kind)
        return self[kind]


def _records(writers: dict[type, RecordWriter], items: tuple[Any, ...]) -> bytes:
    return array_head(len(items)) + b"".join([writers[type(each)](each) for each in items])


def _sequence(writer: RecordWriter, items: tuple[Any, ...]) -> bytes:
    return array_head(len(items)) + b"".join(map(writer, items))


def _record_of(info: inspect.Type) -> type:
    if isinstance(info, inspect.StructType):
        return info.cls
    raise _no_form(info)


def _no_form(info: object) -> TypeError:
    return TypeError(f"{info} has no record form; free values belong in a Payload")


def _check_closed(info: inspect.Type) -> None:
    """Refuse types that would silently drop fields which a newer version has appended."""
    if isinstance(info, inspect.StructType) and not info.forbid_unknown_fields:
        raise TypeError(f"{info.cls.__name__} must be declared forbid_unknown_fields=True")
    for each in types_inside(info):
        _check_closed(each)


def types_inside(info: inspect.Type) -> tuple[inspect.Type, ...]:
    """The types of which a type of records is made, one level down."""
    match info:
        case inspect.StructType():
            return tuple(field.type for field in info.fields)
        case inspect.UnionType():
            return info.types
        case inspect.VarTupleType():
            return (info.item_type,)
        case inspect.TupleType():
            return info.item_types
        case _:
            return ()


# What generated code may name. Whatever it raises on a value of another type is a refusal.
_NAMES: Final[dict[str, Any]] = {
    "INTS": INTS,
    "TEXT": TEXT_HEADS,
    "BYTES": BYTES_HEADS,
    "BOOLS": {False: encode(False), True: encode(True)},  # noqa: FBT003
    "NULL": encode(None),
    "integer": integer,
    "head": head,
    "sequence": _sequence,
    "records": _records,
    "EMPTY": array_head(0),
    "join": b"".join,
    "unfit": (AttributeError, LookupError, TypeError, UnicodeEncodeError, struct.error),
    "refusal": _refusal,
}
