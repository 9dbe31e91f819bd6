"""Parsing: from tokens to a tree by precedence climbing. Only what really nests recurses."""

from collections.abc import Callable
from typing import TypeVar

from pawlflow.definition.express import tree
from pawlflow.definition.express.errors import ExpressionError, overflow_error, syntax_error
from pawlflow.definition.express.tokens import RESERVED, SOURCE_MAX, Token, tokenize, too_long

DEPTH_MAX = 64  # five Python frames a level: a third of the interpreter's recursion limit
LOWEST = 1
LEVELS = {"||": 1, "&&": 2, "+": 4, "-": 4, "*": 5, "/": 5, "%": 5} | dict.fromkeys(
    ["==", "!=", "<", "<=", ">", ">=", "in"], 3
)
SHOWN_MAX = 40  # characters of a word that a message repeats
INT_MIN, INT_MAX = -(2**63), 2**63 - 1

T = TypeVar("T")


def parse_source(source: str) -> tree.Node:
    """A whole expression, with or without `${ }` around it."""
    lead = len(source) - len(source.lstrip())
    if source.startswith("${", lead):
        node, end = parse_braced(source, lead + 2)
        if source[end:].strip():
            raise syntax_error("nothing may follow the closing '}'", end, "this is one expression")
        return node
    if len(source) > SOURCE_MAX:
        raise too_long(0)
    parser = Parser(tokenize(source, 0))
    node = parser.expression()
    end = parser.expect("end", "the end").offset
    if end < len(source):
        raise syntax_error("unexpected '}'", end, "remove it, or write the '{' that it closes")
    return node


def parse_braced(text: str, start: int) -> tuple[tree.Node, int]:
    """The expression that starts after a `${`, and the offset just after its `}`."""
    parser = Parser(tokenize(text, start))
    node = parser.expression()
    end = parser.expect("end", "'}'").offset
    if end == len(text):
        raise syntax_error("'${' is not closed", start - 2, "write $${ for a literal ${")
    return node, end + 1


# Words of other languages, and how CEL says it.
FOREIGN = {
    "and": "write && for and",
    "or": "write || for or",
    "not": "write ! for not",
    "is": "write == to compare",
    "=": "write == to compare",
}


ENDS = ("the end", "'}'")  # what the grammar wants where an expression is complete
EXAMPLE = "write an expression like input.count > 3"


def quoted(token: Token) -> str:
    """A word as messages show it; a long text is cut."""
    return repr(token.text) if len(token.text) <= SHOWN_MAX else f"{token.text[:SHOWN_MAX]!r}..."


class Parser:
    """A cursor over the tokens; each method reads one construct of the grammar."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.at]

    def take(self) -> Token:
        """Step over the next token."""
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, kind: str) -> bool:
        """Step over the next token if it is of this kind."""
        found = self.token.kind == kind
        self.at += found
        return found

    def expect(self, kind: str, wanted: str = "") -> Token:
        """Step over a token of this kind, which must come now."""
        if self.token.kind != kind:
            raise self.unexpected(wanted or repr(kind))
        return self.take() if kind != "end" else self.token

    def unexpected(self, wanted: str) -> ExpressionError:
        """The next token is not what the grammar wants here."""
        found = quoted(self.token) if self.token.text else "the end"
        hint = FOREIGN.get(self.token.text) or self.way_out(wanted, found)
        return syntax_error(f"expected {wanted}, found {found}", self.token.offset, hint)

    def way_out(self, wanted: str, found: str) -> str:
        """What to write, and between which words."""
        before = quoted(self.tokens[self.at - 1]) if self.at else ""
        if wanted in ENDS:
            return f"remove {found}, or write an operator like && or + before it"
        if found == "the end":
            return f"write {wanted} after {before}" if before else EXAMPLE
        return f"write {wanted} between {before} and {found}" if before else f"remove {found}"

    def expression(self) -> tree.Node:
        """`a ? b : c ? d : e`: a loop, because only the part after the colon may go on."""
        branches: list[tuple[tree.Node, tree.Node]] = []
        value = self.binary(LOWEST)
        while self.accept("?"):
            then = self.binary(LOWEST)
            self.expect(":")
            branches.append((value, then))
            value = self.binary(LOWEST)
        return tree.Choice(tuple(branches), value) if branches else value

    def binary(self, level: int) -> tree.Node:
        """Operators of this precedence and above."""
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise too_deep(self.token.offset)
        left = self.unary()
        while (next_level := LEVELS.get(self.token.kind, 0)) >= level:
            left = self.chain(left, next_level)
        self.depth -= 1
        return left

    def chain(self, first: tree.Node, level: int) -> tree.Node:
        """All operators of one precedence that follow each other, as one flat node."""
        rest: list[tuple[str, tree.Node]] = []
        while LEVELS.get(self.token.kind) == level:
            rest.append((self.take().kind, self.binary(level + 1)))
        operator = rest[0][0]
        if operator in ("&&", "||"):
            return tree.Logic(operator, (first, *(term for _, term in rest)))
        return tree.Chain(first, tuple(rest))

    def unary(self) -> tree.Node:
        """`!!x` and `--x`. The minus just before a number belongs to the number."""
        operator, times = self.token.kind, 0
        if operator in ("!", "-"):
            while self.token.kind == operator and not self.at_negative_number():
                self.take()
                times += 1
        operand = self.postfix(self.primary())
        return tree.Unary(operator, 2 - times % 2, operand) if times else operand

    def at_negative_number(self) -> bool:
        """Whether a minus and a number literal come next."""
        if self.token.kind != "-":
            return False
        return type(self.tokens[self.at + 1].value) in (int, float)

    def postfix(self, node: tree.Node) -> tree.Node:
        """`.member`, `.method(...)` and `[index]`, any number of them."""
        while self.token.kind in (".", "["):
            if self.accept("."):
                node = self.member(node)
            else:
                self.take()
                offset = self.token.offset
                node = tree.Access(node, self.expression(), offset)
                self.expect("]")
        return node

    def member(self, base: tree.Node) -> tree.Node:
        """The name after a dot: reserved words are allowed here, as in CEL."""
        if self.token.kind not in ("name", "quoted"):
            raise self.unexpected("a member's name")
        name = self.take()
        if name.kind == "name" and self.accept("("):
            return tree.Call(name.text, base, self.arguments(), name.offset)
        return tree.Access(base, tree.Literal(name.text, name.offset), name.offset)

    def primary(self) -> tree.Node:
        """A literal, a name, a call, or something in brackets."""
        token = self.token
        if token.kind == "literal" or self.at_negative_number():
            return self.literal()
        match token.kind:
            case "name":
                return self.name()
            case "(":
                self.take()
                inner = self.expression()
                self.expect(")")
                return inner
            case "[":
                self.take()
                return tree.ListOf(self.items("]", self.expression))
            case "{":
                self.take()
                return tree.MapOf(self.items("}", self.entry))
            case _:
                raise self.unexpected("a value")

    def literal(self) -> tree.Node:
        """A constant; an integer must fit 64 bits together with its sign."""
        token = self.token
        negative = self.accept("-")
        value = self.take().value
        if negative:
            value = -value
        if type(value) is int and not INT_MIN <= value <= INT_MAX:
            error = overflow_error(str(value))
            error.offset = token.offset
            raise error
        return tree.Literal(value, token.offset)

    def name(self) -> tree.Node:
        """A root, a macro's variable, or a call."""
        token = self.take()
        if token.text in RESERVED:
            message = f"{token.text!r} is a reserved word of CEL"
            hint = f"use another name; a key is written input['{token.text}']"
            raise syntax_error(message, token.offset, hint)
        if self.accept("("):
            return tree.Call(token.text, None, self.arguments(), token.offset)
        return tree.Name(token.text, token.offset)

    def arguments(self) -> tuple[tree.Node, ...]:
        """The arguments of a call, after its opening bracket."""
        if self.accept(")"):
            return ()
        found = [self.expression()]
        while self.accept(","):
            found.append(self.expression())
        self.expect(")", "',' or ')'")
        return tuple(found)

    def items(self, close: str, read: Callable[[], T]) -> tuple[T, ...]:
        """What a list or map holds, up to its closing bracket; a comma may end it."""
        found: list[T] = []
        while not self.accept(close):
            found.append(read())
            if not self.accept(","):
                self.expect(close, f"',' or {close!r}")
                break
        return tuple(found)

    def entry(self) -> tuple[tree.Node, tree.Node]:
        """`key: value` of a map."""
        key = self.expression()
        self.expect(":")
        return key, self.expression()


def too_deep(offset: int) -> ExpressionError:
    """More nesting than anyone writes by hand."""
    message = f"an expression may be nested {DEPTH_MAX} levels deep, this one is deeper"
    return ExpressionError("expression.too_deep", message, offset=offset)
