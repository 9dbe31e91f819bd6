"""Sampling: a value that fits a JSON Schema, as far as its plain words go."""

from typing import Any, Final

from pawlflow.testing.sim.chance import Dice

DEPTH_MAX: Final = 12
INTS: Final = (0, 1, 2, 7, 40, 1_000)
TEXTS: Final = ("a", "b", "order-7", "2026-01-31")


def sample(schema: Any, dice: Dice, site: str, depth: int = 0) -> Any:
    """A value for a schema; `{}` where it says nothing. Whether it fits is for others to judge."""
    if not isinstance(schema, dict) or depth > DEPTH_MAX:
        return {} if depth == 0 else None
    for word in ("examples", "enum"):
        if schema.get(word):
            return dice.pick(f"{site}:{word}", schema[word])
    for word in ("const", "default", "example"):
        if word in schema:
            return schema[word]
    for word in ("anyOf", "oneOf"):
        if schema.get(word):
            return sample(dice.pick(f"{site}:{word}", schema[word]), dice, site, depth + 1)
    if schema.get("allOf"):
        whole: dict[str, Any] = {}
        for part in schema["allOf"]:
            whole |= part if isinstance(part, dict) else {}
        return sample(whole, dice, site, depth + 1)
    return of_type(schema, dice, site, depth)


def of_type(schema: dict[str, Any], dice: Dice, site: str, depth: int) -> Any:
    """By its type; an object where there is none."""
    kind = schema.get("type", "object" if depth == 0 or "properties" in schema else None)
    if isinstance(kind, list):
        kind = dice.pick(f"{site}:type", kind)
    match kind:
        case "object":
            return an_object(schema, dice, site, depth)
        case "array":
            low = schema.get("minItems", 0)
            high = max(low, min(schema.get("maxItems", 3), low + 3))
            size = dice.between(f"{site}:size", low, high)
            inner = schema.get("items", {"type": "string"})
            return [sample(inner, dice, f"{site}[{i}]", depth + 1) for i in range(size)]
        case "integer":
            return int(number(schema, dice, site))
        case "number":
            return number(schema, dice, site)
        case "boolean":
            return dice.roll(site) < 0.5
        case "string":
            text = dice.pick(site, TEXTS).ljust(schema.get("minLength", 0), "x")
            return text[: schema.get("maxLength", len(text))]
        case _:
            return None


def an_object(schema: dict[str, Any], dice: Dice, site: str, depth: int) -> dict[str, Any]:
    """What is required, and what else there may be now and then."""
    known = schema.get("properties", {})
    required = schema.get("required", [])
    wanted = [name for name in known if name in required or dice.roll(f"{site}.{name}:there") < 0.5]
    wanted += [name for name in required if name not in known]
    inner = {name: known.get(name, {"type": "string"}) for name in wanted}
    return {name: sample(inner[name], dice, f"{site}.{name}", depth + 1) for name in wanted}


def number(schema: dict[str, Any], dice: Dice, site: str) -> float | int:
    """A number between its bounds, the bounds themselves among them."""
    whole = schema.get("type") == "integer"
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + ("exclusiveMinimum" in schema))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    last = low + INTS[-1] if high is None else high - ("maximum" not in schema)
    options = [min(option, last) for option in (low, last, *(low + step for step in INTS))]
    anywhere = dice.between(f"{site}:any", 0, max(0, int(last - low)))
    found = low + anywhere if dice.roll(f"{site}:edge") < 0.5 else dice.pick(site, options)
    return int(found) if whole else found
