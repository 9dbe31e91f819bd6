"""Where: a filter as people write it, as the terms that a store looks up.

The grammar is that of expressions: comparisons with constants, joined by && and ||. A bare name is
a fact of the instance (state, workflow, started_at, ...) or else one of its search attributes;
`search.NAME` is always an attribute.
"""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import product
from typing import Any, Final, cast, get_args

from pawlflow.definition.canonical import definition_from_bytes
from pawlflow.definition.express import ExpressionError, tree
from pawlflow.definition.express.errors import did_you_mean, type_name
from pawlflow.definition.express.parse import parse_source
from pawlflow.kernel.summary import InstanceState
from pawlflow.model.ids import Tenant, TimeMs
from pawlflow.model.trouble import PawlError
from pawlflow.moments import moment_of
from pawlflow.requests import BadRequestError
from pawlflow.store.find import BUILTINS, TIMES, is_indexed
from pawlflow.store.port import Filter, Scalar, Store, Term

STATES: Final = get_args(InstanceState)
ATTRIBUTES: Final = "search"  # the name before the dot
WAYS_MAX: Final = 32  # alternatives of one filter: each is looked up by itself
VALUES_MAX: Final = 1_000  # of one `in`
FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
COMPARISONS: Final = ("==", "!=", "<", "<=", ">", ">=")
INT_MIN, INT_MAX = -(2**63), 2**63 - 1

Terms = tuple[Term, ...]
Where = tuple[Terms, ...]  # all terms of any of these


class WhereError(PawlError):
    """A filter that cannot be used; the message names the way out."""


def filter_of(  # what a filter consists of
    store: Store,
    tenant: Tenant,
    where: Sequence[str] = (),
    *,
    now: TimeMs,
    states: Sequence[str] = (),
    workflow: str | None = None,
) -> Filter:
    """A filter that the store can answer by an index. Raises WhereError."""
    parsed = parse_where(where, now)
    refuse_unknown(store, tenant, parsed)
    if not states and workflow is None:
        refuse_unindexed(parsed)
    return Filter(tenant=tenant, states=states, workflow=workflow, where=parsed)


def parse_where(texts: Sequence[str], now: TimeMs) -> Where:
    """Filters that must all hold. None at all: every instance. Raises WhereError."""
    if not texts:
        return ()
    parts = [Reader(text, now).read() for text in texts]
    return join(parts, " && ".join(texts))


def join(parts: Iterable[Where], text: str) -> Where:
    """All of these at once."""
    made: Where = ((),)
    for part in parts:
        if len(made) * len(part) > WAYS_MAX:
            message = f"{text!r} has more than {WAYS_MAX} alternatives: use `in`, or ask twice"
            raise WhereError("where.invalid", message)
        made = tuple((*left, *right) for left, right in product(made, part))
    return made


class Reader:
    """One text, and what is said of it if it cannot be used."""

    def __init__(self, text: str, now: TimeMs) -> None:
        self.text = text
        self.now = now

    def read(self) -> Where:
        """The alternatives that a text stands for."""
        try:
            return self.alternatives(parse_source(self.text))
        except ExpressionError as error:
            hint = f"; {error.hint}" if error.hint else ""
            raise self.no(f"{error.message}{place(error.offset)}{hint}") from error

    def no(self, why: str) -> WhereError:
        """The text is no filter."""
        return WhereError("where.invalid", f"{self.text!r} is no filter: {why}")

    def alternatives(self, node: tree.Node) -> Where:
        """The terms of a part of the text, by alternatives."""
        match node:
            case tree.Logic("||", terms):
                found = [each for term in terms for each in self.alternatives(term)]
                if len(found) > WAYS_MAX:
                    raise self.no(f"it has more than {WAYS_MAX} alternatives; use `in`")
                return tuple(found)
            case tree.Logic(_, terms):
                return join([self.alternatives(term) for term in terms], self.text)
            case tree.Chain(first, ((op, second),)) if op in COMPARISONS:
                return ((self.comparison(first, op, second),),)
            case tree.Chain(first, (("in", second),)):
                return ((self.membership(first, second),),)
            case tree.Unary("!", times, operand):
                return ((self.truth(operand, holds=times == 2),),)
            case tree.Name() | tree.Access():
                return ((self.truth(node, holds=True),),)
            case _:
                raise self.no("it takes comparisons like repo == 'r1', joined by && and ||")

    def comparison(self, first: tree.Node, op: str, second: tree.Node) -> Term:
        """A name and a constant, on either side."""
        if isinstance(first, tree.Literal) and not isinstance(second, tree.Literal):
            first, second, op = second, first, FLIPPED.get(op, op)
        name, builtin = self.name(first)
        if not isinstance(second, tree.Literal):
            raise self.no(f"{name} must be compared with a constant")
        value = self.value(name, second.value, builtin=builtin)
        if op in FLIPPED and (value is None or isinstance(value, bool)):
            raise self.no(
                f"{type_name(value)} is neither less nor more than anything; use == or !="
            )
        return Term(name, cast("Any", op), (value,), builtin)

    def membership(self, first: tree.Node, second: tree.Node) -> Term:
        """A name, and constants of which it must be one."""
        name, builtin = self.name(first)
        items = second.items if isinstance(second, tree.ListOf) else ()
        constants = [each.value for each in items if isinstance(each, tree.Literal)]
        if not isinstance(second, tree.ListOf) or len(constants) < len(items):
            raise self.no(f"{name} in [..] takes a list of constants")
        if len(constants) > VALUES_MAX:
            raise self.no(f"a list has at most {VALUES_MAX} constants, this one {len(constants)}")
        values = tuple(self.value(name, each, builtin=builtin) for each in constants)
        return Term(name, "==", values, builtin)

    def truth(self, node: tree.Node, *, holds: bool) -> Term:
        """A name alone: it must be true, or with `!` false."""
        if not isinstance(node, tree.Name | tree.Access):
            raise self.no("`!` stands before a name; turn a comparison around instead: != for ==")
        name, builtin = self.name(node)
        if builtin:
            raise self.no(f"{name} must be compared with something")
        return Term(name, "==", (holds,), builtin)

    def name(self, node: tree.Node) -> tuple[str, bool]:
        """What a name stands for: an attribute, or a fact of the instance."""
        path = list(self.path(node))
        if path[0] == ATTRIBUTES and len(path) > 1:
            return ".".join(path[1:]), False
        name = ".".join(path)
        return name, name in BUILTINS

    def path(self, node: tree.Node) -> Iterator[str]:
        """The parts of a name with dots, or in brackets."""
        match node:
            case tree.Name(name):
                yield name
            case tree.Access(base, tree.Literal(str(key))):
                yield from self.path(base)
                yield key
            case tree.Chain(tree.Name(first), (("-", tree.Name(second)), *_)):
                raise self.no(f"a name with a hyphen is written {ATTRIBUTES}['{first}-{second}']")
            case _:
                raise self.no("a comparison takes a name and a constant")

    def value(self, name: str, value: Any, *, builtin: bool) -> Scalar:
        """A constant, as the thing is kept that it is compared with."""
        if not isinstance(value, Scalar):
            raise self.no(f"{name} holds text, numbers, true, false or null")
        if isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
            raise self.no(f"{value} has more than 64 bits")
        if not builtin:
            return value
        if name in TIMES:
            return None if value is None else self.time(name, value)
        if name == "state" and value not in STATES:
            raise self.no(f"{value!r} is no state; {did_you_mean(str(value), STATES)}")
        wanted = int if name == "version" else str
        if not isinstance(value, wanted) or isinstance(value, bool):
            kind = "a number" if name == "version" else "text"
            raise self.no(f"{name} is {kind}, not {type_name(value)}")
        return value

    def time(self, name: str, value: Scalar) -> int:
        """A moment by RFC 3339, or so long before or after now; without a zone it is UTC."""
        try:
            return moment_of(value if isinstance(value, str) else "", self.now)
        except BadRequestError as error:
            wanted = "a time like '2026-01-31T12:00:00Z', '2026-01-31', or '-1h' for an hour ago"
            raise self.no(f"{name} is {wanted}") from error


def place(offset: int | None) -> str:
    """Where in the text something is wrong, counted from 1."""
    return "" if offset is None else f" at {offset + 1}"


# What a store knows


def refuse_unindexed(where: Where) -> None:
    """Every alternative must lead somewhere: a store never looks at all it has."""
    for terms in where:
        if not any(is_indexed(term) for term in terms):
            names = ", ".join(dict.fromkeys(term.name for term in terms))
            message = (
                f"no index leads from {names} like that: compare an attribute by ==, in, < or >, "
                "or add a state, a workflow or a time"
            )
            raise WhereError("where.unindexed", message)


def refuse_unknown(store: Store, tenant: Tenant, where: Where) -> None:
    """An attribute that no instance has and no definition declares is a slip of the pen."""
    asked = {term.name for terms in where for term in terms if not term.builtin}
    missing = asked.difference(store.attribute_names(tenant)) if asked else set()
    if not missing:
        return
    known = {*store.attribute_names(tenant), *declared(store, tenant)}
    for name in sorted(missing - known):
        near = get_close_matches(name, [*known, *BUILTINS], n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        names, facts = ", ".join(sorted(known)) or "none", ", ".join(BUILTINS)
        message = f"no attribute {name!r}: {hint}known are {names}; and of every instance {facts}"
        raise WhereError("where.unknown", message)


def declared(store: Store, tenant: Tenant) -> set[str]:
    """The attributes that published definitions declare; read only to tell a slip from a wish."""
    hashes = [each.definition for each in store.published(tenant)]
    found = store.definitions(hashes).values()
    return {name for data in found for name in definition_from_bytes(data).search}
