"""Refs: what a value will be, while a flow is traced. Using one builds an expression.

A flow's function runs once, before anything has happened: there are no values yet. So every
operation on a Ref either writes down what is to be computed later, or is refused with the line
that did it and the way out.
"""

import math
import re
import sys
import sysconfig
from collections.abc import Generator, Iterable, Mapping
from contextvars import ContextVar
from enum import Enum
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar

from pawlflow.definition.express.tokens import KEYWORDS, RESERVED
from pawlflow.definition.finding import Place
from pawlflow.model.trouble import PawlError

T = TypeVar("T")
UNARY: Final = 7  # how tightly parts of an expression bind
MEMBER: Final = 8
PACKAGE: Final = "pawlflow."
LIBRARY: Final = sysconfig.get_paths()["stdlib"]
INT_MAX: Final = 2**63 - 1
SHOWN: Final = re.compile(r"<Ref [^>\n]*>")  # how a Ref shows itself, which is no value
TRACING: Final[ContextVar[Any]] = ContextVar("pawl_tracing", default=None)


class FlowError(PawlError):
    """A flow that cannot be traced: where in the user's code, and the way out."""

    def __init__(self, code: str, message: str, place: Place | None = None) -> None:
        self.place = place or here()
        self.said = message
        super().__init__(code, f"{self.place.file}:{self.place.line}: {message}")


class Expr:
    """An expression in the making: its text, how tightly it binds, and the steps it reads."""

    __slots__ = ("binds", "steps", "template", "text", "tracing")

    def __init__(
        self,
        text: str,
        steps: frozenset[str] = frozenset(),
        tracing: object = None,
        *,
        binds: int = MEMBER,
        template: str | None = None,
    ) -> None:
        self.text = text
        self.steps = steps
        self.tracing = tracing  # the trace it belongs to; None: any
        self.binds = binds
        self.template = template  # of text(): how it is written inside a value

    def inside(self, binds: int) -> str:
        """The text as a part of something that binds so tightly."""
        return self.text if self.binds >= binds else f"({self.text})"


if TYPE_CHECKING:
    # For type checkers a Ref is whatever is asked of it: `save(party.id)` takes a text later on.
    class Anything(Any):  # type: ignore[misc]
        """Compatible with every type."""
else:

    class Anything:
        """Nothing in particular."""

        __slots__ = ()


def no_operation(ref: "Ref[Any]", *_: object) -> NoReturn:
    """The language of expressions has no such operation."""
    raise misuse(ref, "this operation", "let a step compute it")


class Ref(Anything, Generic[T]):
    """A value that a flow will have. Attributes and items are its members."""

    __slots__ = ("_expr",)

    def __init__(self, expr: Expr) -> None:
        object.__setattr__(self, "_expr", expr)

    # Members

    def __getattr__(self, name: str) -> "Ref[Any]":
        if name.startswith("__"):
            raise AttributeError(name)
        return member(self, name)

    def __getitem__(self, key: Any) -> "Ref[Any]":
        if isinstance(key, slice):
            raise misuse(self, "a slice of it", "let a step take the part it needs")
        return member(self, key)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise misuse(self, f"setting .{name}", COPY)

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise misuse(self, "setting an item", COPY)

    def __delattr__(self, name: str) -> NoReturn:
        raise misuse(self, f"deleting .{name}", COPY)

    def __delitem__(self, key: object) -> NoReturn:
        raise misuse(self, "deleting an item", COPY)

    def __copy__(self) -> "Ref[T]":
        return self

    def __deepcopy__(self, _: object) -> "Ref[T]":
        return self

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise misuse(self, "pickling it", "let a step keep what must be kept")

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: what will be a value is no function."""
        raise misuse(self, "calling it", "call a step with it instead")

    # What may be computed later

    def __eq__(self, other: object) -> "Ref[bool]":
        return joined(4, "==", self, other)

    def __ne__(self, other: object) -> "Ref[bool]":
        return joined(4, "!=", self, other)

    def __lt__(self, other: object) -> "Ref[bool]":
        return joined(4, "<", self, other)

    def __le__(self, other: object) -> "Ref[bool]":
        return joined(4, "<=", self, other)

    def __gt__(self, other: object) -> "Ref[bool]":
        return joined(4, ">", self, other)

    def __ge__(self, other: object) -> "Ref[bool]":
        return joined(4, ">=", self, other)

    def __and__(self, other: object) -> "Ref[bool]":
        return joined(3, "&&", self, other)

    def __rand__(self, other: object) -> "Ref[bool]":
        return joined(3, "&&", other, self)

    def __or__(self, other: object) -> "Ref[bool]":
        return joined(2, "||", self, other)

    def __ror__(self, other: object) -> "Ref[bool]":
        return joined(2, "||", other, self)

    def __add__(self, other: object) -> "Ref[Any]":
        return joined(5, "+", self, other)

    def __radd__(self, other: object) -> "Ref[Any]":
        return joined(5, "+", other, self)

    def __sub__(self, other: object) -> "Ref[Any]":
        return joined(5, "-", self, other)

    def __rsub__(self, other: object) -> "Ref[Any]":
        return joined(5, "-", other, self)

    def __mul__(self, other: object) -> "Ref[Any]":
        return joined(6, "*", self, other)

    def __rmul__(self, other: object) -> "Ref[Any]":
        return joined(6, "*", other, self)

    def __truediv__(self, other: object) -> "Ref[Any]":
        return joined(6, "/", self, other)

    def __rtruediv__(self, other: object) -> "Ref[Any]":
        return joined(6, "/", other, self)

    def __mod__(self, other: object) -> "Ref[Any]":
        return joined(6, "%", self, other)

    def __rmod__(self, other: object) -> "Ref[Any]":
        return joined(6, "%", other, self)

    def __invert__(self) -> "Ref[bool]":
        return before("!", self)

    def __neg__(self) -> "Ref[Any]":
        return before("-", self)

    # What needs a value now

    def __bool__(self) -> NoReturn:
        raise misuse(self, "if, and, or, not, in or a comparison's truth", WHEN)

    __abs__ = __round__ = __pow__ = __rpow__ = __floordiv__ = __rfloordiv__ = no_operation
    __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = no_operation
    __matmul__ = __rmatmul__ = __pos__ = __divmod__ = __rdivmod__ = __trunc__ = no_operation
    __floor__ = __ceil__ = __complex__ = __enter__ = __aiter__ = __aenter__ = no_operation
    __bytes__ = __fspath__ = no_operation

    def __iter__(self) -> NoReturn:
        raise misuse(self, "for, unpacking or a comprehension", "use each(items, step)")

    def __len__(self) -> NoReturn:
        raise misuse(self, "len()", 'use expr("size(x)", x=...), or let a step count')

    def __contains__(self, _: object) -> NoReturn:
        raise misuse(self, "in", 'use expr("a in b", a=..., b=...) with when=')

    def __str__(self) -> str:
        raise misuse(self, "str() or print()", TEXT)

    def __format__(self, _: str) -> str:
        raise misuse(self, "an f-string or format()", TEXT)

    def __hash__(self) -> int:
        raise misuse(self, "a set, a key of a dict, or hash()", "use its name as the key")

    def __int__(self) -> NoReturn:
        raise misuse(self, "int()", 'use expr("int(x)", x=...), or let a step convert it')

    def __float__(self) -> NoReturn:
        raise misuse(self, "float()", 'use expr("double(x)", x=...), or let a step convert it')

    def __index__(self) -> NoReturn:
        raise misuse(self, "an index or range()", "use each(items, step)")

    def __await__(self) -> Generator[Any, None, T]:
        raise misuse(self, "await", "call steps without await; they run when the flow is started")

    def __repr__(self) -> str:
        return f"<Ref {expr_of(self).text}>"


COPY: Final = "let a step return a changed copy"
WHEN: Final = "give the step when=, or decide inside a step"
TEXT: Final = 'use text("... {}", ref)'


def expr_of(ref: Ref[Any]) -> Expr:
    """The expression behind a Ref."""
    found: Expr = object.__getattribute__(ref, "_expr")
    return found


def misuse(ref: Ref[Any], how: str, way_out: str) -> FlowError:
    """A value is needed where there is none yet."""
    what = expr_of(ref).text
    message = (
        f"{what} has no value while the flow is traced, and {how} needs one: {way_out}. "
        "A flow's function runs once, to be read; its steps run later"
    )
    return FlowError("flow.ref_misuse", message)


def member(ref: Ref[Any], key: Any) -> Ref[Any]:
    """A member by its name, by a position, or by what another Ref will be."""
    expr = expr_of(ref)
    head = expr.inside(MEMBER)
    if isinstance(key, str) and is_name(key):
        return Ref(Expr(f"{head}.{key}", expr.steps, expr.tracing))
    if isinstance(key, int) and not isinstance(key, bool) and key < 0:
        raise misuse(ref, f"[{key}]", 'count from the front, or use expr("x[size(x) - 1]", x=...)')
    inner = expression(key)
    return Ref(Expr(f"{head}[{inner.text}]", expr.steps | inner.steps, either(expr, inner)))


def joined(binds: int, operator: str, left: object, right: object) -> Ref[Any]:
    """Two parts with an operator between them."""
    a, b = expression(left), expression(right)
    text = f"{a.inside(binds)} {operator} {b.inside(binds + 1)}"
    return Ref(Expr(text, a.steps | b.steps, either(a, b), binds=binds))


def before(operator: str, ref: Ref[Any]) -> Ref[Any]:
    """A part with an operator before it."""
    a = expression(ref)
    return Ref(Expr(f"{operator}{a.inside(MEMBER)}", a.steps, a.tracing, binds=UNARY))


def either(*parts: Expr) -> object:
    """The trace that parts belong to; they cannot be of two."""
    traces = {id(part.tracing): part.tracing for part in parts if part.tracing is not None}
    if len(traces) > 1:
        raise FlowError(
            "flow.foreign_ref",
            "a Ref of another flow is used here: what one flow made, another cannot read. "
            "Pass it on as input, or return it from a child",
        )
    return next(iter(traces.values()), None)


def own(ref: Ref[Any]) -> Expr:
    """The expression behind a Ref, if the flow that is traced made it."""
    expr = expr_of(ref)
    either(expr, Expr("", tracing=TRACING.get()))
    return expr


def constant(value: Any) -> Any:
    """A number or text as a definition can hold it; what is no such value is given back."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value) if -INT_MAX - 1 <= value <= INT_MAX else refuse(value, "64 bits at most")
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else refuse(value, "a finite number")
    if isinstance(value, str):
        if SHOWN.search(value):
            refuse(value, 'no Ref written into a text: use text("... {}", ref)')
        if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            refuse(value, "whole characters")
        return str(value)
    return value


def refuse(value: object, wanted: str) -> NoReturn:
    """A constant that no definition can hold."""
    raise FlowError("flow.value", f"{value!r} cannot be kept in a definition: {wanted}")


def expression(value: object) -> Expr:
    """A value as an expression: a Ref's own, or that of a constant."""
    if isinstance(value, Ref):
        return own(value)
    value = constant(value)
    if value is None:
        return Expr("null")
    if isinstance(value, bool):
        return Expr("true" if value else "false")
    if isinstance(value, int | float):
        return Expr(repr(value), binds=MEMBER if value >= 0 else UNARY)
    if isinstance(value, str):
        return Expr(quoted(value))
    if isinstance(value, list | tuple):
        parts = [expression(each) for each in value]
        text = ", ".join(part.text for part in parts)
        return Expr(f"[{text}]", union(parts), either(*parts))
    if isinstance(value, Mapping):
        pairs = [(expression(str(key)), expression(each)) for key, each in value.items()]
        text = ", ".join(f"{key.text}: {each.text}" for key, each in pairs)
        parts = [each for _, each in pairs]
        return Expr(f"{{{text}}}", union(parts), either(*parts))
    raise FlowError(
        "flow.value",
        f"{type(value).__name__} cannot stand in an expression; "
        "use null, booleans, numbers, texts, lists and mappings",
    )


def union(parts: Iterable[Expr]) -> frozenset[str]:
    """All steps that parts read."""
    return frozenset().union(*(part.steps for part in parts))


def quoted(text: str) -> str:
    """A text as it stands in an expression."""
    named = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return (
        "'"
        + "".join(named.get(c, c if c.isprintable() else f"\\U{ord(c):08x}") for c in text)
        + "'"
    )


def is_name(word: str) -> bool:
    """May this follow a dot?"""
    known = word in RESERVED or word in KEYWORDS or word == "in"
    return word.isascii() and word.isidentifier() and not known


def here() -> Place:
    """Where the user's code is at work: the innermost line that is not ours."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
    while frame is not None and not is_users(frame):
        frame = frame.f_back
    if frame is None:
        return Place("<unknown>", 0, 0)
    spans = list(frame.f_code.co_positions())
    column = spans[frame.f_lasti // 2][2] if frame.f_lasti // 2 < len(spans) else 0
    return Place(frame.f_code.co_filename, frame.f_lineno, (column or 0) + 1)


def is_users(frame: FrameType) -> bool:
    """Is this code of the user: neither ours, nor the standard library's?"""
    file = frame.f_code.co_filename
    if frame.f_globals.get("__name__", "").startswith(PACKAGE) or file.startswith("<frozen "):
        return False
    return not file.startswith(LIBRARY) or "site-packages" in file
