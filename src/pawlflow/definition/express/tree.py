"""The tree of an expression. Chains are flat, so that long text does not become deep trees."""

from typing import Any, NamedTuple, TypeAlias


class Literal(NamedTuple):
    """A constant: null, bool, int, double, string or bytes."""

    value: Any
    offset: int


class Name(NamedTuple):
    """A root or a macro's variable."""

    name: str
    offset: int


class Access(NamedTuple):
    """`base.key` (a literal key, at the key's offset) or `base[key]`."""

    base: "Node"
    key: "Node"
    offset: int


class Call(NamedTuple):
    """`function(arguments)`, or `receiver.function(arguments)`."""

    function: str
    receiver: "Node | None"
    arguments: "tuple[Node, ...]"
    offset: int


class Unary(NamedTuple):
    """`!` or `-`, once or twice: more of the same changes nothing."""

    operator: str
    times: int
    operand: "Node"


class Chain(NamedTuple):
    """Operators of one precedence, from left to right: `first + a - b`."""

    first: "Node"
    rest: "tuple[tuple[str, Node], ...]"


class Logic(NamedTuple):
    """`a && b && c` or `a || b || c`."""

    operator: str
    terms: "tuple[Node, ...]"


class Choice(NamedTuple):
    """`a ? b : c ? d : e` as branches (a, b), (c, d) and an otherwise."""

    branches: "tuple[tuple[Node, Node], ...]"
    otherwise: "Node"


class ListOf(NamedTuple):
    """`[a, b]`."""

    items: "tuple[Node, ...]"


class MapOf(NamedTuple):
    """`{k: v}`."""

    entries: "tuple[tuple[Node, Node], ...]"


Node: TypeAlias = Literal | Name | Access | Call | Unary | Chain | Logic | Choice | ListOf | MapOf
