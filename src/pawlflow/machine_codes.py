"""What the codes of machines mean, and of their types: cause, and the way out."""

from typing import Final

MACHINE_CODES: Final[dict[str, tuple[str, str]]] = {
    "machine.effect_invalid": (
        "The parameters, issuer_ref or key of an effect do not fit; a key has 32 bytes.",
        "Mend the machine.",
    ),
    "machine.effect_undeclared": (
        "A machine returned an effect that it does not declare.",
        "Declare it, or take it out.",
    ),
    "machine.event_invalid": (
        "An emitted event does not fit its type.",
        "Mend the machine.",
    ),
    "machine.event_undeclared": (
        "A machine emitted an event that it does not declare.",
        "Declare it, or take it out.",
    ),
    "machine.output_too_large": (
        "State, events and parameters of one turn are too large together.",
        "Store large values elsewhere and pass references.",
    ),
    "machine.state_invalid": (
        "The returned state does not fit the machine's state type.",
        "Mend the machine, or its type.",
    ),
    "machine.too_many_effects": (
        "A machine returned more effects in one turn than are allowed.",
        "Spread them over turns.",
    ),
    "machine.too_many_events": (
        "A machine emitted more events in one turn than are allowed.",
        "Spread them over turns.",
    ),
    "schema.key_type": (
        "A map of a machine's type has keys of a kind that cannot be keys.",
        "Use one of those the message names.",
    ),
    "schema.malformed": (
        "A machine's type is not written as types are.",
        "A type is a mapping with one key, such as {int: {}}; the message names the place.",
    ),
    "schema.recursive": (
        "A machine's type contains itself, without an end.",
        "Take the ref out, or keep the inner part under a key of its own.",
    ),
    "schema.too_large": (
        "A machine's type has too many parts, or is nested too deeply.",
        "Split it.",
    ),
    "schema.unknown_ref": (
        "A machine's type refers to one that nobody defines.",
        "Define it, or mend the name.",
    ),
    "type.duplicate_key": (
        "A map has two different values for one key.",
        "Keep one of them.",
    ),
    "type.format": ("A text is not in the form that its type asks for.", "Mend it."),
    "type.mismatch": (
        "A value is of another kind than its type asks for.",
        "Send what the message expects.",
    ),
    "type.missing_field": ("A record lacks a field.", "Send it; only options may be missing."),
    "type.range": ("A number is beyond what its type holds.", "Send a smaller one, or as text."),
    "type.unknown_field": (
        "A record has a field that its type does not know.",
        "Take it out, or mend its name.",
    ),
    "type.unknown_tag": (
        "A variant has a case that its type does not know.",
        "Use one of those the message names.",
    ),
}
