"""Values in a flow: constants and Refs, as the templates and expressions of a definition."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from string import Formatter
from typing import Any, Final

import msgspec

from pawlflow.definition.express.errors import ExpressionError
from pawlflow.definition.express.tokens import tokenize
from pawlflow.effects.refs import (
    MEMBER,
    Expr,
    FlowError,
    Ref,
    constant,
    either,
    expr_of,
    expression,
    own,
    quoted,
    union,
)

SECRET: Final = "$secret"  # the name of the field
FIELD: Final = re.compile(r"(\w*)((?:\.\w+|\[[^\]]+\])*)")
MEMBERS: Final = re.compile(r"\.(\w+)|\[([^\]]+)\]")


def template_of(value: Any, read: set[str], *, secrets: bool = False) -> Any:
    """A value as a template; the steps it reads are added to `read`.

    Secrets are refused but where an executor will resolve them.
    """
    if isinstance(value, Ref):
        expr = own(value)
        read |= expr.steps
        return expr.template or f"${{ {expr.text} }}"
    value = constant(value)
    if isinstance(value, str):
        return value.replace("${", "$${")
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        if SECRET in value and not secrets:
            raise misplaced_secret(value[SECRET])
        return {
            text_key(key): template_of(each, read, secrets=secrets) for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [template_of(each, read, secrets=secrets) for each in value]
    return template_of(plain_of(value), read, secrets=secrets)


def text_key(key: object) -> str:
    """The keys of a mapping are texts."""
    if not isinstance(key, str):
        raise FlowError("flow.value", f"{key!r} is no text: the keys of a mapping are texts")
    return key


def plain_of(value: Any) -> Any:
    """A value of the user's types as plain values."""
    what, plain = type(value).__name__, value
    if not isinstance(value, bytes | bytearray | memoryview | set | frozenset):
        try:
            plain = msgspec.to_builtins(value)
        except (TypeError, RecursionError):
            plain = value
    if plain is value or isinstance(plain, type(value)):
        why = "has no order: use a list" if isinstance(value, set | frozenset) else "cannot be kept"
        raise FlowError(
            "flow.value",
            f"{what} {why}; a definition holds null, booleans, numbers, texts, lists and mappings. "
            "Make anything else inside a step",
        )
    return plain


def misplaced_secret(name: object) -> FlowError:
    """A secret where nobody would resolve it."""
    message = (
        f"secret({name!r}) is resolved only where a step or an agent is carried out: give it to "
        "one as an argument, by itself"
    )
    return FlowError("flow.secret", message)


def expression_of(value: Any, read: set[str], scope: str = "") -> str:
    """A condition: a Ref, a text in the language of expressions, or a function of `scope`."""
    if scope and isinstance(value, Callable) and not isinstance(value, Ref):  # type: ignore[arg-type]
        about: Ref[Any] = Ref(Expr(scope))
        value = value(about)
    if isinstance(value, Mapping) and SECRET in value:
        raise misplaced_secret(value[SECRET])
    if isinstance(value, str):
        return value
    expr = expression(value)
    read |= expr.steps
    return expr.text


def text(form: str, *values: Any, **named: Any) -> Ref[str]:
    """A text with values in it: `text("Order {} of {who}", order.id, who=request.name)`.

    What an f-string would be if there were values yet. `{0}` and `{x.id}` work, `{{` is a brace.
    """
    holes = Holes(form, values, named)
    pieces = holes.pieces()
    parts = [Expr(quoted(each)) if isinstance(each, str) else each for each in pieces]
    steps, tracing = union(parts), either(*parts)
    shown = [
        part.text if isinstance(piece, str) else f"string({part.text})"
        for piece, part in zip(pieces, parts, strict=True)
    ]
    whole = " + ".join(shown) or "''"
    if len(parts) == 1 and not isinstance(pieces[0], str):  # alone it would keep its type
        return Ref(Expr(whole, steps, tracing))
    binds = 5 if len(parts) > 1 else MEMBER
    return Ref(Expr(whole, steps, tracing, binds=binds, template=mixed(pieces)))


def mixed(pieces: list[str | Expr]) -> str:
    """A text with expressions in it, as a definition writes it."""
    written = ""
    for each in pieces:
        if isinstance(each, str):
            written += each.replace("${", "$${")
            continue
        bare = written.rstrip("$")
        if bare != written:  # before an expression a dollar would be read as an escape
            written = f"{bare}${{ '{written[len(bare) :]}' }}"
        written += f"${{ {each.text} }}"
    return written


class Holes:
    """What goes into the holes of a text, and that nothing is left over."""

    def __init__(self, form: str, values: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        self.form = form
        self.values = values
        self.named = named
        self.next = 0
        self.used: set[str | int] = set()

    def pieces(self) -> list[str | Expr]:
        """Texts and expressions in turn; texts that touch are one."""
        found: list[str | Expr] = []
        try:
            parsed = list(Formatter().parse(self.form))
        except ValueError as error:
            raise self.wrong(str(error)) from None
        for words, field, spec, conversion in parsed:
            found.append(words)
            if field is None:
                continue
            if spec or conversion:
                raise self.wrong("has a format: let a step write it so")
            value = self.value(field)
            found.append(value if isinstance(value, str) else expression(self.fit(value)))
        left = [*(set(range(len(self.values))) - self.used), *(self.named.keys() - self.used)]
        if left:
            raise self.wrong(f"does not use {', '.join(map(str, sorted(left, key=str)))}")
        return joined_texts(found)

    def value(self, field: str) -> Any:
        """The value of a hole: `{}`, `{0}`, `{name}`, and members of these."""
        name, rest = field_name_split(field)
        if name == "":
            name, self.next = self.next, self.next + 1
        if isinstance(name, int):
            if name >= len(self.values):
                raise self.wrong("has a value too few")
            value = self.values[name]
        elif name in self.named:
            value = self.named[name]
        else:
            raise self.wrong(f"has no value for {name!r}")
        self.used.add(name)
        for is_attribute, key in rest:
            value = getattr(value, str(key)) if is_attribute else value[key]
        return value

    def fit(self, value: Any) -> Any:
        """A secret has no place in a text."""
        if isinstance(value, Mapping) and SECRET in value:
            raise misplaced_secret(value[SECRET])
        return value

    def wrong(self, what: str) -> FlowError:
        """What is wrong with the text."""
        return FlowError("flow.text", f"text({self.form!r}) {what}")


def field_name_split(field: str) -> tuple[str | int, list[tuple[bool, str | int]]]:
    """The first name of a hole, and the members after it."""
    found = FIELD.fullmatch(field)
    if found is None:
        raise FlowError(
            "flow.text", f"{{{field}}} is no hole: write {{}}, {{0}}, {{name}} or {{name.id}}"
        )
    first, rest = found[1], found[2]
    members: list[tuple[bool, str | int]] = []
    for attribute, index in MEMBERS.findall(rest):
        members.append((bool(attribute), attribute or (int(index) if index.isdecimal() else index)))
    return (int(first) if first.isdecimal() else first), members


def joined_texts(pieces: list[str | Expr]) -> list[str | Expr]:
    """Texts that touch are one, and empty ones are none."""
    found: list[str | Expr] = []
    for each in pieces:
        if isinstance(each, str) and found and isinstance(found[-1], str):
            found[-1] += each
        elif each != "":
            found.append(each)
    return found


def expr(source: str, **values: Any) -> Ref[Any]:
    """An expression as it stands in YAML: `expr("size(items) > 3", items=order.items)`.

    The names in it are those of the arguments; `input`, `steps`, `item`, `index` and `instance`
    may be used as they are.
    """
    try:
        tokens = tokenize(source, 0)
    except ExpressionError as error:
        raise FlowError("flow.expression", f"expr({source!r}): {error}") from None
    parts: list[Expr] = []
    out, at = "", 0
    for place, token in enumerate(tokens):
        after_dot = place > 0 and tokens[place - 1].kind == "."
        if token.kind == "name" and token.text in values and not after_dot:
            part = expression(values[token.text])
            parts.append(part)
            out += source[at : token.offset] + part.inside(MEMBER)
            at = token.offset + len(token.text)
    return Ref(Expr(out + source[at:], union(parts), either(*parts), binds=0))


def secret(name: str) -> Any:
    """A secret by its name: resolved where the step is carried out, and nowhere else."""
    return {SECRET: name}


def duration_of(value: Any) -> str:
    """A duration as a definition writes it: `30s`, seconds, or a timedelta."""
    if isinstance(value, str):
        return value
    if isinstance(value, Ref) or not isinstance(value, int | float | timedelta):
        what = "a Ref" if isinstance(value, Ref) else repr(value)
        raise FlowError("flow.value", f"{what} is no duration: a definition has a fixed one")
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    milliseconds = round(seconds * 1000)
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"


def steps_named(after: Any) -> list[str | dict[str, str]]:
    """The steps that `after=` names: Refs, names, `success(...)`, one or several."""
    if after is None:
        return []
    if isinstance(after, Ref | str | dict):
        after = [after]
    if not isinstance(after, Iterable):
        raise FlowError("flow.after", f"after= takes what steps gave, not {type(after).__name__}")
    found: list[str | dict[str, str]] = []
    for each in after:
        if each is None:
            continue
        if isinstance(each, Ref):
            steps = sorted(own(each).steps)
            if not steps:
                raise FlowError("flow.after", f"{expr_of(each).text} comes from no step")
            found += steps
        elif isinstance(each, str | dict):
            found.append(each)
        else:
            raise FlowError("flow.after", f"after= takes what steps gave, not {each!r}")
    return found


def success(ref: Ref[Any]) -> dict[str, str]:
    """For `after=`: run only if this step succeeded; if it was skipped, so is this one."""
    steps = sorted(expr_of(ref).steps)
    if len(steps) != 1:
        raise FlowError("flow.after", "success() takes what one step gave")
    return {"step": steps[0], "require": "success"}
