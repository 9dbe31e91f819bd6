"""The schema of published events: JSON Schema 2020-12, made from the table of names.

`history --json` is a list of events; a line of `watch --json` is one, at the anchor `event`.
Members may be added to an event at any time, so what is not listed is allowed.
"""

from typing import Any, Final

from pawlflow.projections.event_table import (
    ENVELOPE,
    EVENTS,
    MEMBERS,
    OPTIONAL,
    Published,
    Schema,
)

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_ID: Final = "urn:pawl:schema:events:1"  # grows with `schemaVersion`


def events_schema() -> Schema:
    """What `history --json` prints."""
    return {
        "$schema": DRAFT,
        "$id": SCHEMA_ID,
        "title": "Pawl: the published events of an instance",
        "type": "array",
        "items": {"$ref": "#event"},
        "$defs": {
            "event": event_schema(),
            **{name: payload_schema(name, said) for name, said in EVENTS.items()},
        },
    }


def payload_schema_id(name: str) -> str:
    """The address of the schema of one payload: what a CloudEvent calls its `dataschema`."""
    return f"{SCHEMA_ID}#{name}"


def event_schema() -> Schema:
    """The envelope, and by its type the payload."""
    return {
        "$anchor": "event",
        "type": "object",
        "required": [name for name in ENVELOPE if name not in OPTIONAL],
        "properties": {name: described(*said) for name, said in ENVELOPE.items()},
        "allOf": [
            {
                "if": {"properties": {"eventType": {"const": name}}, "required": ["eventType"]},
                "then": {"properties": {"payload": {"$ref": f"#{name}"}}},
            }
            for name in EVENTS
        ],
    }


def payload_schema(name: str, said: Published) -> Schema:
    """What one name says."""
    members = {*said.always, *said.sometimes, *said.either, "erased"}
    schema: dict[str, Any] = {
        "$anchor": name,
        "description": said.meaning,
        "type": "object",
        "required": list(said.always),
        "properties": {each: described(*MEMBERS[each]) for each in MEMBERS if each in members},
    }
    if said.either:
        schema["oneOf"] = [{"required": [each]} for each in said.either]
    return schema


def described(words: str, schema: Schema) -> Schema:
    """A member with its description."""
    return {**schema, "description": words}
