"""The one byte form of a definition, and its hash: what instances are pinned to.

Layout, comments and the order of keys in the file do not reach it; defaults are left out, so a
field added later with a default leaves the hashes of older definitions as they are.
"""

from functools import cache
from typing import Any, Final

import msgspec

from pawlflow.definition.shape import Workflow
from pawlflow.model.codec import CodecError, decode, encode, hash_of, head
from pawlflow.model.ids import Digest

DOMAIN: Final = "pawl.definition.1"


def definition_hash(workflow: Workflow) -> Digest:
    """The identity of a definition: equal exactly when the definitions are."""
    return hash_of_bytes(definition_bytes(workflow))


def hash_of_bytes(data: bytes) -> Digest:
    """The identity of a definition by its canonical bytes."""
    return Digest(hash_of(DOMAIN, data))


def definition_bytes(workflow: Workflow) -> bytes:
    """The canonical CBOR of a workflow: of `written(workflow)`, one step after another.

    All steps as plain values at once would be several objects each for Python's collector to walk,
    and a step of a large definition would cost more than one of a small.
    """
    rest = written(msgspec.structs.replace(workflow, steps=()))
    try:
        # In as many lists as a value has containers around it, so that it may be as deep.
        steps = [encode([[written(step)]])[2:] for step in workflow.steps]
        values = {name: encode([value])[1:] for name, value in rest.items()}
    except CodecError:
        return encode(written(workflow))  # raises the same, and says where
    values["steps"] = head(4, len(steps)) + b"".join(steps)
    entries = sorted((encode(name), value) for name, value in values.items())
    return head(5, len(entries)) + b"".join(part for entry in entries for part in entry)


def definition_from_bytes(data: bytes) -> Workflow:
    """The workflow that `definition_bytes` wrote. Raises CodecError or ValidationError."""
    return msgspec.convert(decode(data), Workflow)


def written(value: Any) -> Any:
    """A shape as plain values, without the fields that are at their default.

    msgspec's own `omit_defaults` compares by identity, so that a default which the file writes
    out would stay, and change the hash.
    """
    if isinstance(value, msgspec.Struct):
        return {
            name: written(field)
            for name, default in defaults_of(type(value))
            if (field := getattr(value, name)) != default or type(field) is not type(default)
        }
    if isinstance(value, tuple):
        return [written(item) for item in value]
    return value


@cache
def defaults_of(shape: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    """The fields of a shape with their defaults; a required one has a default no value equals."""
    return tuple((field.name, default_of(field)) for field in msgspec.structs.fields(shape))


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    """What a field holds when nothing is said."""
    if field.default_factory is msgspec.NODEFAULT:
        return field.default
    return field.default_factory()
