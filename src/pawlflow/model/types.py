"""Types: the schema language of spec 002, and the one canonical value behind all its spellings.

A type is plain data, as AgentOS writes it: `{"record": {"id": {"uuid": {}}, "next": {"option":
{"int": {}}}}}`; a `ref` names another type. A value is checked against its type and brought into
canonical form before it is hashed or journalled, so that sugar never changes an identity.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

import msgspec

from pawlflow.model.codec import DEPTH_MAX, INT_MAX, INT_MIN, encode, hash_of
from pawlflow.model.ids import Digest

Type = Mapping[str, Any]
Refs = Mapping[str, Type]
Check = Callable[[Any], Any]
Path = tuple[str, ...]

NO_REFS: Final[Refs] = MappingProxyType({})
NODES_MAX: Final = 10_000  # of an expanded type: refs to refs can double at every level
STEPS_MAX: Final = DEPTH_MAX - 4  # so that types and their values stay within the codec's depth
KEY_TYPES: Final = ("int", "nat", "text", "uuid", "hash")
PAIR_KEYS: Final = ("int", "nat")  # no text: such maps are stored as a list of [key, value]
TAG: Final = "$tag"
VALUE: Final = "$value"
HASH: Final = re.compile(r"sha256:[0-9a-f]{64}\Z")
UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.IGNORECASE | re.ASCII)
DECIMAL: Final = re.compile(r"[+-]?[0-9]{1,64}(\.[0-9]{1,64})?([eE][+-]?[0-9]{1,5})?\Z")
DECIMAL_DIGITS_MAX: Final = 34  # this and the two below: IEEE 754 decimal128
DECIMAL_LOWEST: Final = -6176  # exponent of the last digit
DECIMAL_HIGHEST: Final = 6144  # exponent of the first digit


class TypeMismatch(Exception):  # noqa: N818
    """A value that its type does not admit. It tells the kind of what it got, never the content."""

    def __init__(self, code: str, path: str, expected: str, got: str) -> None:
        super().__init__(f"${path}: expected {expected}, got {got}")
        self.code = code
        self.path = path
        self.expected = expected
        self.got = got

    def inside(self, step: str | int) -> "TypeMismatch":
        """Return the same trouble as seen from the container that holds it under `step`."""
        return TypeMismatch(self.code, _step(step) + self.path, self.expected, self.got)


class SchemaError(Exception):
    """A type that cannot be used: malformed, recursive, too large, or naming what is not there."""

    def __init__(self, code: str, path: Path, detail: str) -> None:
        super().__init__(f"${''.join(map(_step, path))}: {detail}")
        self.code = code
        self.path = path


class Schema(msgspec.Struct, frozen=True, kw_only=True):
    """A type made ready: checked, expanded, identified, and compiled into one function."""

    identity: Digest
    type: Type
    canonicalise: Check


def schema_of(type_: Type, refs: Refs = NO_REFS) -> Schema:
    """Return the type made ready; raises SchemaError. Keep it: this walks the whole type."""
    expanded = _Expansion(refs).expand(type_, (), ())
    identity = Digest(hash_of("pawl.schema.1", expanded))
    return Schema(identity=identity, type=expanded, canonicalise=_compile(expanded))


def canonicalise(type_: Type, value: object, refs: Refs = NO_REFS) -> Any:
    """Return the canonical form of a value; raises TypeMismatch if the type does not admit it."""
    return schema_of(type_, refs).canonicalise(value)


def schema_identity(type_: Type, refs: Refs = NO_REFS) -> Digest:
    """Return the hash of the type's full expansion, whatever its refs are called."""
    return schema_of(type_, refs).identity


def value_hash(schema: Schema, value: object) -> Digest:
    """Return the hash of a typed value. Equal bytes under two schemas never share it."""
    return Digest(hash_of("pawl.value.1", schema.identity, encode(schema.canonicalise(value))))


class _Expansion:
    """One walk over a type: checks its form, and puts what the refs name in their place."""

    def __init__(self, refs: Refs) -> None:
        self.refs = refs
        self.nodes = 0

    def expand(self, type_: object, path: Path, above: Path) -> dict[str, Any]:
        """Return the type without refs; `above` names the refs it stands within."""
        self.nodes += 1
        if self.nodes > NODES_MAX or len(path) + len(above) > STEPS_MAX:
            detail = f"a type has at most {NODES_MAX} parts and {STEPS_MAX} steps inward"
            raise SchemaError("schema.too_large", path, detail)
        form, body = _form(type_, path)
        path = (*path, form)
        match form:
            case "ref":
                return self.expand_ref(body, path[:-1], above)
            case "record" | "variant":
                return {form: self.expand_fields(body, path, above)}
            case "list" | "set" | "option":
                return {form: self.expand(body, path, above)}
            case "map":
                return {form: self.expand_map(body, path, above)}
            case _:
                return {form: _primitive(form, body, path)}

    def expand_ref(self, name: object, path: Path, above: Path) -> dict[str, Any]:
        """Return the type of this name."""
        if not isinstance(name, str) or name not in self.refs:
            raise SchemaError("schema.unknown_ref", path, f"no type is called {name!r}")
        if name in above:
            raise SchemaError("schema.recursive", path, f"{' > '.join((*above, name))} never ends")
        return self.expand(self.refs[name], path, (*above, name))

    def expand_fields(self, body: object, path: Path, above: Path) -> dict[str, Any]:
        """Return the fields of a record or the cases of a variant, in canonical order."""
        if not isinstance(body, Mapping) or not all(isinstance(name, str) for name in body):
            raise SchemaError("schema.malformed", path, "names and their types are missing")
        if path[-1] == "variant" and not all(name and name[0] != "$" for name in body):
            raise SchemaError("schema.malformed", path, "a tag is a name that starts without $")
        names = sorted(body, key=encode)
        return {name: self.expand(body[name], (*path, name), above) for name in names}

    def expand_map(self, body: object, path: Path, above: Path) -> dict[str, Any]:
        """Return the key and value types of a map."""
        if not isinstance(body, Mapping) or set(body) != {"key", "value"}:
            raise SchemaError("schema.malformed", path, "a map has a key type and a value type")
        key = self.expand(body["key"], (*path, "key"), above)
        if next(iter(key)) not in KEY_TYPES:
            detail = f"the key of a map is one of {', '.join(KEY_TYPES)}"
            raise SchemaError("schema.key_type", (*path, "key"), detail)
        return {"key": key, "value": self.expand(body["value"], (*path, "value"), above)}


def _form(type_: object, path: Path) -> tuple[str, Any]:
    if not isinstance(type_, Mapping) or len(type_) != 1:
        raise SchemaError("schema.malformed", path, "a type has one key, as {'int': {}} has")
    [(form, body)] = type_.items()
    return form, body


def _primitive(form: str, body: object, path: Path) -> dict[str, Any]:
    if form not in _PRIMITIVES or body != {}:
        detail = f"{form!r} is no type, or should have the body {{}}"
        raise SchemaError("schema.malformed", path[:-1], detail)
    return {}


def _compile(expanded: Type) -> Check:
    """Return the function that checks a value and brings it into canonical form."""
    [(form, body)] = expanded.items()
    return _PRIMITIVES[form] if form in _PRIMITIVES else _COMPOSITES[form](body)


def _record(fields: Mapping[str, Type]) -> Check:
    checks = [(name, _compile(inner)) for name, inner in fields.items()]
    required = [name for name, inner in fields.items() if "option" not in inner]

    def check(value: object) -> dict[str, Any]:
        if type(value) is not dict:
            raise _mismatch("a record", value)
        if not value.keys() <= fields.keys():
            raise _unknown("field", next(name for name in value if name not in fields), fields)
        for name in required:
            if name not in value:
                raise TypeMismatch("type.missing_field", _step(name), "a value", "nothing")
        record: dict[str, Any] = {}
        try:
            for name, inner in checks:
                record[name] = inner(value.get(name))
        except TypeMismatch as trouble:
            raise trouble.inside(checks[len(record)][0]) from None
        return record

    return check


def _variant(cases: Mapping[str, Type]) -> Check:
    checks = {tag: _compile(inner) for tag, inner in cases.items()}

    def check(value: object) -> dict[str, Any]:
        tag, inner = _tagged(value)
        if tag not in checks:
            raise _unknown("tag", tag, cases)
        try:
            return {TAG: tag, VALUE: checks[tag](inner)}
        except TypeMismatch as trouble:
            raise trouble.inside(tag) from None

    return check


def _tagged(value: object) -> tuple[Any, Any]:
    """Return tag and value of `{"$tag": T, "$value": V}` or of its short form `{T: V}`."""
    if type(value) is dict and value.keys() == {TAG, VALUE} and type(value[TAG]) is str:
        return value[TAG], value[VALUE]
    if type(value) is dict and len(value) == 1:
        [(tag, inner)] = value.items()
        return tag, inner
    raise _mismatch("a variant", value)


def _list(item: Type) -> Check:
    inner = _compile(item)

    def check(value: object) -> list[Any]:
        if type(value) is not list and type(value) is not tuple:
            raise _mismatch("a list", value)
        items: list[Any] = []
        try:
            for each in value:
                items.append(inner(each))  # noqa: PERF401 - the length tells where it failed
        except TypeMismatch as trouble:
            raise trouble.inside(len(items)) from None
        return items

    return check


def _set(item: Type) -> Check:
    listed = _list(item)

    def check(value: object) -> list[Any]:
        items = {encode(each): each for each in listed(value)}
        return [items[key] for key in sorted(items)]

    return check


def _map(types: Mapping[str, Type]) -> Check:
    key_check, value_check = _compile(types["key"]), _compile(types["value"])
    in_pairs = next(iter(types["key"])) in PAIR_KEYS

    def check(value: object) -> list[list[Any]] | dict[str, Any]:
        entries: dict[bytes, list[Any]] = {}
        for at, (key, item) in enumerate(_pairs(value)):
            try:
                entry = [key_check(key), value_check(item)]
            except TypeMismatch as trouble:
                raise trouble.inside(key if isinstance(key, str) else at) from None
            known = entries.setdefault(encode(entry[0]), entry)
            if known is not entry and encode(known) != encode(entry):
                raise TypeMismatch("type.duplicate_key", _step(at), "one value per key", "two")
        pairs = [entries[key] for key in sorted(entries)]
        return pairs if in_pairs else dict(pairs)

    return check


def _pairs(value: object) -> Iterable[tuple[Any, Any]]:
    if type(value) is dict:
        return value.items()
    if type(value) is not list and type(value) is not tuple:
        raise _mismatch("a map, or a list of [key, value]", value)
    for at, pair in enumerate(value):
        if type(pair) not in (list, tuple) or len(pair) != 2:
            raise _mismatch("[key, value]", pair).inside(at)
    return value


def _option(item: Type) -> Check:
    inner = _compile(item)
    return lambda value: None if value is None else inner(value)


def _bool(value: object) -> bool:
    if type(value) is bool:
        return value
    raise _mismatch("true or false", value)


def _integer(name: str, lowest: int, highest: int) -> Check:
    def check(value: object) -> int:
        if type(value) is not int:
            raise _mismatch(f"{name}, an integer", value)
        if lowest <= value <= highest:
            return value
        raise TypeMismatch("type.range", "", f"{name} from {lowest} to {highest}", _kind(value))

    return check


def _text(value: object) -> str:
    if type(value) is not str:
        raise _mismatch("text", value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise TypeMismatch("type.format", "", "text", "a lone surrogate") from None
    return value


def _bytes(value: object) -> bytes:
    if type(value) is bytes:
        return value
    if type(value) is not str:
        raise _mismatch("bytes, or their base64", value)
    try:
        raw = b64decode(value, validate=True)
    except ValueError:
        raw = b""
    # Also refuses texts that differ in the unused bits of their last digit.
    if b64encode(raw).decode() == value:
        return raw
    raise _malformed("bytes in base64")


def _hash(value: object) -> str:
    if HASH.match(text := _text(value)):
        return text
    raise _malformed("sha256: and 64 hex digits")


def _uuid(value: object) -> str:
    if UUID.match(text := _text(value)):
        return text.lower()
    raise _malformed("a uuid as text")


def _dec128(value: object) -> str:
    if not DECIMAL.match(text := _text(value)):
        raise _malformed("a decimal number as text")
    number = Decimal(text)
    _, digits, last = number.as_tuple()
    within = int(last) >= DECIMAL_LOWEST and number.adjusted() <= DECIMAL_HIGHEST
    if within and len(digits) <= DECIMAL_DIGITS_MAX:
        return str(number)
    raise TypeMismatch("type.range", "", "a decimal128", "a number beyond it")


def _unit(value: object) -> dict[str, Any]:
    if value is None or value == {}:
        return {}
    raise _mismatch("nothing, null or {}", value)


def _mismatch(expected: str, value: object) -> TypeMismatch:
    return TypeMismatch("type.mismatch", "", expected, _kind(value))


def _malformed(expected: str) -> TypeMismatch:
    return TypeMismatch("type.format", "", expected, "other text")


def _unknown(what: str, name: object, known: Iterable[str]) -> TypeMismatch:
    return TypeMismatch(f"type.unknown_{what}", _step(str(name)), " or ".join(known), f"no {what}")


def _kind(value: object) -> str:
    if type(value) is int:
        return f"an integer of {value.bit_length()} bits"
    return _KINDS.get(type(value), type(value).__name__)


def _step(step: str | int) -> str:
    return f".{step}" if isinstance(step, str) and step.isidentifier() else f"[{step!r}]"


_KINDS: Final = {type(None): "null", str: "text", list: "a list", dict: "a map"}
_PRIMITIVES: Final[Mapping[str, Check]] = {
    "bool": _bool,
    "int": _integer("int", INT_MIN, -INT_MIN - 1),
    "nat": _integer("nat", 0, INT_MAX),
    "dec128": _dec128,
    "bytes": _bytes,
    "text": _text,
    "time": _integer("time", 0, INT_MAX),
    "duration": _integer("duration", INT_MIN, -INT_MIN - 1),
    "hash": _hash,
    "uuid": _uuid,
    "unit": _unit,
}
_COMPOSITES: Final[Mapping[str, Callable[[Any], Check]]] = {
    "record": _record,
    "variant": _variant,
    "list": _list,
    "set": _set,
    "map": _map,
    "option": _option,
}
