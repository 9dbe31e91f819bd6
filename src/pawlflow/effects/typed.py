"""Typed arguments: what the journal keeps as plain values, a function may want as its own types.

A parameter annotated with a dataclass, a struct, an enum, a date or a pydantic model (also inside a
list, a mapping or an optional) gets one. Plain annotations get the value as it is.
"""

import inspect
import typing
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import inspect as types

Convert = Callable[[Any], Any]
MADE: Final = (
    *(types.StructType, types.DataclassType, types.NamedTupleType, types.EnumType),
    *(types.DateTimeType, types.DateType, types.TimeType, types.TimeDeltaType, types.UUIDType),
    types.DecimalType,
)


class ConvertError(Exception):
    """A value does not fit the type that the function asks for."""


def converters_of(fn: Callable[..., Any]) -> dict[str, Convert]:
    """How each parameter of a function is made; those that take plain values are left out."""
    try:
        hints = typing.get_type_hints(fn, include_extras=True)
    except Exception:  # noqa: BLE001  # annotations are users' code; what cannot be read is plain
        return {}
    wanted = {name: hints[name] for name in inspect.signature(fn).parameters if name in hints}
    made = {name: converter_of(hint) for name, hint in wanted.items() if name != "ctx"}
    return {name: convert for name, convert in made.items() if convert is not None}


def converter_of(hint: Any) -> Convert | None:
    """How a value becomes of this type; None if it is taken as it is."""
    try:
        if not holds_made(types.type_info(hint)):
            return None
    except (TypeError, ValueError):
        return None

    def convert(value: Any) -> Any:
        try:
            return msgspec.convert(value, hint, dec_hook=by_model)
        except (msgspec.ValidationError, ValueError) as error:
            raise ConvertError(str(error)) from error

    return convert


def holds_made(info: types.Type) -> bool:
    """Is there a type in this that a plain value is not?"""
    match info:
        case types.CustomType():
            return is_model(info.cls)
        case types.UnionType():
            return any(map(holds_made, info.types))
        case types.ListType() | types.SetType() | types.VarTupleType() | types.FrozenSetType():
            return not isinstance(info, types.ListType) or holds_made(info.item_type)
        case types.TupleType():
            return True
        case types.DictType():
            return holds_made(info.key_type) or holds_made(info.value_type)
        case types.TypedDictType():
            return any(holds_made(field.type) for field in info.fields)
        case _:
            return isinstance(info, MADE)


def is_model(kind: type) -> bool:
    """Is this a pydantic model?"""
    return callable(getattr(kind, "model_validate", None))


def by_model(kind: type, value: Any) -> Any:
    """A pydantic model by its own rules."""
    if not is_model(kind):
        raise NotImplementedError(f"{kind} is no model")
    return kind.model_validate(value)  # type: ignore[attr-defined]


def plain_of(value: Any) -> Any:
    """A value of users' types as plain values. Raises TypeError if it has no such form."""
    return msgspec.to_builtins(value, enc_hook=dumped)


def dumped(value: Any) -> Any:
    """A pydantic model as plain values."""
    dump = getattr(value, "model_dump", None)
    if not callable(dump):
        raise NotImplementedError(f"{type(value).__name__} has no plain form")
    return dump(mode="json")
