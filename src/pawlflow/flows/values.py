"""Values in a flow: constants and Refs, as the templates and expressions of a definition."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from pawlflow.definition.express.errors import ExpressionError
from pawlflow.definition.express.tokens import tokenize
from pawlflow.effects.refs import (
    MEMBER,
    Expr,
    FlowError,
    Ref,
    either,
    expr_of,
    expression,
    quoted,
    union,
)

HOLE: Final = re.compile(r"\{\{|\}\}|\{(\w*)\}")


def template_of(value: Any, read: set[str]) -> Any:
    """A value as a template; the steps it reads are added to `read`."""
    if isinstance(value, Ref):
        expr = expr_of(value)
        read |= expr.steps
        return expr.template or f"${{ {expr.text} }}"
    if isinstance(value, str):
        return value.replace("${", "$${")
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise FlowError(
                    "flow.value", f"{key!r} is no text: the keys of a mapping are texts"
                )
        return {key: template_of(each, read) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [template_of(each, read) for each in value]
    try:
        plain = msgspec.to_builtins(value)
    except TypeError:
        plain = value
    if plain is value or isinstance(plain, type(value)):
        raise FlowError(
            "flow.value",
            f"{type(value).__name__} cannot be kept in a definition; "
            "use null, booleans, numbers, texts, lists and mappings, or make it inside a step",
        )
    return template_of(plain, read)


def expression_of(value: Any, read: set[str], scope: str = "") -> str:
    """A condition: a Ref, a text in the language of expressions, or a function of `scope`."""
    if scope and isinstance(value, Callable) and not isinstance(value, Ref):  # type: ignore[arg-type]
        about: Ref[Any] = Ref(Expr(scope))
        value = value(about)
    if isinstance(value, str):
        return value
    expr = expression(value)
    read |= expr.steps
    return expr.text


def text(form: str, *values: Any, **named: Any) -> Ref[str]:
    """A text with values in it: `text("Order {} of {who}", order.id, who=request.name)`.

    What an f-string would be if there were values yet. `{{` and `}}` are braces.
    """
    rest = list(values)
    written: list[str] = []
    parts: list[Expr] = []
    at = 0

    def literal(words: str) -> None:
        if words:
            written.append(words.replace("${", "$${"))
            parts.append(Expr(quoted(words)))

    for hole in HOLE.finditer(form):
        literal(form[at : hole.start()])
        at = hole.end()
        if hole[0] in ("{{", "}}"):
            literal(hole[0][0])
            continue
        value = value_for(hole[1], rest, named, form)
        if isinstance(value, str):
            literal(value)
            continue
        expr = expression(value)
        written.append(f"${{ {expr.text} }}")
        parts.append(Expr(f"string({expr.text})", expr.steps, expr.tracing))
    literal(form[at:])
    if rest:
        raise FlowError("flow.text", f"text({form!r}) has {len(rest)} values too many")
    whole = " + ".join(part.text for part in parts) or "''"
    if len(parts) == 1 and written[0].startswith("${"):  # alone it would keep its type
        return Ref(Expr(whole, union(parts), either(*parts)))
    return Ref(Expr(whole, union(parts), either(*parts), binds=5, template="".join(written)))


def value_for(name: str, rest: list[Any], named: Mapping[str, Any], form: str) -> Any:
    """What goes into a hole: the value of that name, or the next one."""
    if name and not name.isdecimal():
        if name not in named:
            raise FlowError("flow.text", f"text({form!r}) has no value for {name!r}")
        return named[name]
    if not rest:
        raise FlowError("flow.text", f"text({form!r}) has a value too few")
    return rest.pop(0)


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
    return {"$secret": name}


def duration_of(value: str | float | timedelta) -> str:
    """A duration as a definition writes it: `30s`, seconds, or a timedelta."""
    if isinstance(value, str):
        return value
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    milliseconds = round(seconds * 1000)
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"


def steps_named(after: Any) -> list[str | dict[str, str]]:
    """The steps that `after=` names: Refs, names, `success(...)`, one or several."""
    if isinstance(after, Ref | str | dict):
        after = [after]
    if not isinstance(after, Iterable):
        raise FlowError("flow.after", f"after= takes what steps gave, not {type(after).__name__}")
    found: list[str | dict[str, str]] = []
    for each in after:
        if isinstance(each, Ref):
            steps = sorted(expr_of(each).steps)
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
