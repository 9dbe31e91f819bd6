"""The veil: what a value looks like to those who may read rows, and not what is confidential.

Secrets are references in the journal, and stay so. Beside them inputs, commands and results may
hold passwords that somebody gave as data. Hidden is what a schema marks (`writeOnly`, `format:
password`, `x-secret`), what lies under the name of a password, token or key, the password of a
URL, and a value that the input was marked for wherever it turns up again in the same instance.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from pawlflow.model.codec import decode_trusted
from pawlflow.model.payload import Payload
from pawlflow.store.port import INLINE_BYTES_MAX

HIDDEN: Final = "[hidden]"
LENGTH_MIN: Final = 4  # a shorter value could not be told from other text
FOUND_MAX: Final = 1_000  # values looked for inside longer texts; equal ones are always found
ENDINGS: Final = (
    *("password", "passwd", "passphrase", "passcode", "secret", "token", "apikey", "accesskey"),
    *("secretkey", "privatekey", "signingkey", "encryptionkey", "authorization", "credential"),
    *("credentials", "cookie", "connectionstring"),
)
WHOLE: Final = ("pwd", "pin", "otp", "cvv", "cvc", "jwt", "auth")
OTHER_SIGNS: Final = re.compile(r"[^a-z0-9]+")
IN_URL: Final = re.compile(r"(://[^\s/:@?#]*:)[^\s/@]+@")
BEARER: Final = re.compile(r"(?i)\b(bearer|authorization:\s*\w+)\s+[^\s\"',;]{6,}")


class Veil:
    """What is hidden in the rows of one instance. It follows from its input and definition."""

    def __init__(self, input_: Payload | None = None, schema: bytes | None = None) -> None:
        """Look for what the input marks; one whose bytes are gone marks nothing."""
        self.schema = Schema.of(schema)
        self.equal: set[str] = set()
        self.inside: list[str] = []
        if input_ is not None and input_.data is not None:
            self.equal.update(marked_in(input_.value, self.schema))
            self.inside = sorted(self.equal, key=lambda text: (-len(text), text))[:FOUND_MAX]

    def json(self, payload: Payload | None, schema: "Schema | None" = None) -> str:
        """A value as JSON; nothing if there is none. A large or erased one is only named."""
        if payload is None:
            return ""
        if payload.data is None or len(payload.data) > INLINE_BYTES_MAX:
            return f'{{"$omitted":"{payload.addr.hex()}"}}'
        return msgspec.json.encode(self.cover(payload.value, schema or NO_SCHEMA)).decode()

    def text(self, words: str) -> str:
        """Words of people and programs. PostgreSQL keeps no nul in a text."""
        if words in self.equal:
            return HIDDEN
        for value in self.inside:
            if value in words:
                words = words.replace(value, HIDDEN)
        if "://" in words:
            words = IN_URL.sub(rf"\1{HIDDEN}@", words)
        return BEARER.sub(rf"\1 {HIDDEN}", words).replace("\0", "\ufffd")

    def cover(self, value: Any, schema: "Schema") -> Any:
        """The value with what is confidential hidden."""
        if isinstance(value, str):
            return HIDDEN if schema.marks() else self.text(value)
        if gives_nothing_away(value):
            return value
        if schema.marks():
            return HIDDEN
        if isinstance(value, dict):
            return {self.text(key): self.field(key, each, schema) for key, each in value.items()}
        if isinstance(value, list):
            items = schema.inner(None)
            return [self.cover(each, items) for each in value]
        return value

    def field(self, key: str, value: Any, schema: "Schema") -> Any:
        """A field of a value, by what its name or the schema says."""
        if is_confidential(key):
            return value if gives_nothing_away(value) else HIDDEN
        return self.cover(value, schema.inner(key))


class Schema:
    """What a JSON Schema says of a value or of a part of it, as far as it concerns the veil."""

    def __init__(self, parts: list[Any], root: Any) -> None:
        self.parts = list(variants(parts, root))
        self.root = root

    @classmethod
    def of(cls, data: bytes | None) -> "Schema":
        """A schema from its canonical bytes."""
        if data is None:
            return NO_SCHEMA
        root = decode_trusted(data)
        return cls([root], root)

    def marks(self) -> bool:
        """Is what it describes confidential?"""
        return any(is_marked(each) for each in self.parts)

    def inner(self, key: str | None) -> "Schema":
        """What it says of a field, or with None of the items of a list."""
        found = [part for each in self.parts for part in parts_of(each, key)]
        return Schema(found, self.root) if found else NO_SCHEMA


def marked_in(value: Any, schema: Schema) -> Iterator[str]:
    """The texts of a value that a schema or a name marks, if they are long enough to be found."""
    rest: list[tuple[Any, Schema, bool]] = [(value, schema, False)]
    while rest:
        part, says, hidden = rest.pop()
        hidden = hidden or says.marks()
        if isinstance(part, str):
            if hidden and len(part) >= LENGTH_MIN:
                yield part
        elif gives_nothing_away(part):
            continue
        elif isinstance(part, dict):
            fields = part.items()
            rest += [(v, says.inner(k), hidden or is_confidential(k)) for k, v in fields]
        elif isinstance(part, list):
            items = says.inner(None)
            rest += [(each, items, hidden) for each in part]


def gives_nothing_away(value: Any) -> bool:
    """Truths and nulls, and secrets by their names alone."""
    if isinstance(value, dict):
        return len(value) == 1 and isinstance(value.get("$secret"), str)
    return value is None or isinstance(value, bool)


def parts_of(schema: dict[str, Any], key: str | None) -> Iterator[Any]:
    """The schemas that one schema holds for a field, or for items."""
    if key is None:
        yield from (schema[word] for word in ("items", "contains") if word in schema)
        yield from schema.get("prefixItems", ())
        return
    named = schema.get("properties", {})
    if key in named:
        yield named[key]
    else:
        yield schema.get("additionalProperties")
    yield from schema.get("patternProperties", {}).values()  # rather too much than too little


def variants(schemas: list[Any], root: Any) -> Iterator[dict[str, Any]]:
    """Schemas, and those that they refer to or are put together from, each once."""
    rest, seen = list(schemas), set[int]()
    while rest:
        schema = rest.pop()
        if not isinstance(schema, dict) or id(schema) in seen:
            continue
        seen.add(id(schema))
        yield schema
        for word in ("allOf", "anyOf", "oneOf"):
            rest += schema.get(word, ())
        rest += [schema.get(word) for word in ("if", "then", "else")]
        if isinstance(target := schema.get("$ref"), str):
            rest.append(resolved(root, target))


def resolved(root: Any, target: str) -> Any:
    """What a reference inside a schema leads to; nothing if it leads elsewhere."""
    if not target.startswith("#"):
        return None
    found = root
    for part in target[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found


def is_marked(schema: dict[str, Any]) -> bool:
    """Does a schema say that what it describes is confidential?"""
    said = schema.get("writeOnly") is True or schema.get("x-secret") is True
    return said or schema.get("format") == "password"


def is_confidential(name: str) -> bool:
    """Is this the name of a password, a token or a key?"""
    plain = OTHER_SIGNS.sub("", name.lower())
    return plain.endswith(ENDINGS) or plain in WHOLE


NO_SCHEMA: Final = Schema([], None)
