"""Reading a regular expression: from RE2 syntax to a program with relative jumps.

Jumps are relative, so that a piece of program can be joined and repeated like a list.
"""

import re
from typing import NamedTuple, NoReturn, TypeAlias

from pawlflow.definition.express.errors import ExpressionError

PATTERN_MAX = 1_000  # characters: what is longer was made by a program, and not for reading
PROGRAM_MAX = 2_000  # instructions: what one character of text can cost at most
REPEAT_MAX = 1_000  # as in RE2
GROUPS_MAX = 64  # nested; four Python frames each
CODE_MAX = 0x10FFFF
COUNT = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")

Ranges: TypeAlias = tuple[tuple[int, int], ...]


class CharSet(NamedTuple):
    """One character out of ranges of code points. `fold`: ASCII letters in either case."""

    ranges: Ranges
    negated: bool = False
    fold: bool = False

    def holds(self, char: str) -> bool:
        """Whether this character is one of them."""
        found = in_ranges(ord(char), self.ranges)
        if self.fold and not found and char.isascii():
            found = in_ranges(ord(char.swapcase()), self.ranges)
        return found != self.negated


class Assertion(NamedTuple):
    """A condition on the place between two characters."""

    kind: str


class Go(NamedTuple):
    """Go on at each of these distances."""

    distances: tuple[int, ...]


Program: TypeAlias = list[CharSet | Assertion | Go]


def in_ranges(code: int, ranges: Ranges) -> bool:
    """Whether a code point lies in one of the ranges."""
    return any(low <= code <= high for low, high in ranges)


def span(text: str) -> Ranges:
    """Ranges written as pairs of characters: "azAZ"."""
    return tuple((ord(low), ord(high)) for low, high in zip(text[::2], text[1::2], strict=True))


def complement(ranges: Ranges) -> Ranges:
    """Everything outside these ranges, which are in order and apart."""
    starts = (0, *(high + 1 for _, high in ranges))
    ends = (*(low - 1 for low, _ in ranges), CODE_MAX)
    return tuple(zip(starts, ends, strict=True))


ANY = CharSet(((0, CODE_MAX),))
NOT_NEWLINE = CharSet(span("\n\n"), negated=True)
CLASSES = {"d": span("09"), "w": span("09AZ__az"), "s": span("\t\n\f\r  ")}
POSIX = {
    "alnum": span("09AZaz"),
    "alpha": span("AZaz"),
    "ascii": span("\0\x7f"),
    "blank": span("\t\t  "),
    "cntrl": span("\0\x1f\x7f\x7f"),
    "digit": span("09"),
    "graph": span("!~"),
    "lower": span("az"),
    "print": span(" ~"),
    "punct": span("!/:@[`{~"),
    "space": span("\t\r  "),
    "upper": span("AZ"),
    "word": span("09AZ__az"),
    "xdigit": span("09AFaf"),
}
CONTROLS = dict(zip("aftnrv", "\a\f\t\n\r\v", strict=True))
ASSERTIONS = {"A": "begin", "z": "end", "b": "word", "B": "not_word"}


def parse_regex(pattern: str) -> Program:
    """The program of a pattern; raises `expression.regex` naming the place in the pattern."""
    reader = Reader(pattern)
    if len(pattern) > PATTERN_MAX:
        reader.fail(f"a pattern may have {PATTERN_MAX} characters, this one has {len(pattern)}")
    program = reader.alternatives()
    if reader.at < len(pattern):
        reader.fail("')' without '('")
    return program


class Reader:
    """A cursor over a pattern, and the flags in force where it stands."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.flags = ""
        self.groups = 0

    def fail(self, message: str) -> NoReturn:
        """Refuse the pattern here."""
        where = f"at character {min(self.at, len(self.pattern)) + 1} of the pattern"
        raise ExpressionError("expression.regex", f"{message}, {where}")

    def peek(self) -> str:
        """The next character, or nothing at the end."""
        return self.pattern[self.at : self.at + 1]

    def take(self) -> str:
        """Step over the next character, which must be there."""
        char = self.peek()
        if not char:
            self.fail("the pattern ends too early")
        self.at += 1
        return char

    def accept(self, text: str) -> bool:
        """Step over this text if it comes next."""
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) * found
        return found

    def sized(self, program: Program) -> Program:
        """The program, if it is not too large."""
        if len(program) > PROGRAM_MAX:
            self.fail(f"the pattern needs more than {PROGRAM_MAX} states")
        return program

    def alternatives(self) -> Program:
        """`a|b|c`."""
        branches = [self.sequence()]
        while self.accept("|"):
            branches.append(self.sequence())
        program = branches.pop()
        while branches:
            branch = branches.pop()
            skip = Go((len(program) + 1,))
            program = self.sized([Go((1, len(branch) + 2)), *branch, skip, *program])
        return program

    def sequence(self) -> Program:
        """Pieces one after the other."""
        program: Program = []
        while self.peek() not in ("", "|", ")"):
            program += self.repeated(self.atom())
            self.sized(program)
        return program

    def repeated(self, piece: Program) -> Program:
        """A piece and the quantifier after it. Lazy ones match the same texts."""
        bounds = self.quantifier()
        if bounds is None:
            return piece
        self.accept("?")
        if self.peek() in ("*", "+", "?"):
            self.fail("a quantifier after a quantifier")
        low, high = bounds
        if (low if high is None else high) * (len(piece) + 1) > PROGRAM_MAX:
            self.fail(f"the pattern needs more than {PROGRAM_MAX} states")
        optional = [Go((1, len(piece) + 1)), *piece]
        if high is not None:
            return piece * low + optional * (high - low)
        if low:
            return [*(piece * low), Go((-len(piece), 1))]
        return [Go((1, len(piece) + 2)), *piece, Go((-len(piece) - 1,))]

    def quantifier(self) -> tuple[int, int | None] | None:
        """The bounds of `*`, `+`, `?` or `{m,n}`; None when there is none."""
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.accept(sign):
                return bounds
        return self.counted() if self.peek() == "{" else None

    def counted(self) -> tuple[int, int | None] | None:
        """`{m}`, `{m,}` or `{m,n}`; any other brace stands for itself, as in RE2."""
        found = COUNT.match(self.pattern, self.at)
        if not found:
            return None
        low, comma, high = found.groups()
        least = int(low)
        most = None if comma and not high else int(high or low)
        if not least <= (REPEAT_MAX if most is None else most) <= REPEAT_MAX:
            self.fail(f"{found[0][:20]} is no range within {REPEAT_MAX}")
        self.at = found.end()
        return least, most

    def atom(self) -> Program:
        """One character, class, group or assertion."""
        char = self.take()
        match char:
            case "(":
                return self.group()
            case "[":
                return [self.bracket()]
            case ".":
                return [ANY if "s" in self.flags else NOT_NEWLINE]
            case "^":
                return [Assertion("line_begin" if "m" in self.flags else "begin")]
            case "$":
                return [Assertion("line_end" if "m" in self.flags else "end")]
            case "\\":
                return [self.escaped()]
            case _:
                return [self.literal(char)]

    def literal(self, char: str) -> CharSet:
        """A character that stands for itself."""
        self.at -= 1
        if self.quantifier():
            self.fail(f"{char!r} has nothing to repeat")
        self.at += 1
        return CharSet(((ord(char), ord(char)),), fold="i" in self.flags)

    def group(self) -> Program:
        """`(...)` in all its forms; what it captures is not kept."""
        self.groups += 1
        if self.groups > GROUPS_MAX:
            self.fail(f"groups may be nested {GROUPS_MAX} deep")
        outer = self.flags
        if self.accept("?") and not self.named_group() and self.set_flags():
            self.groups -= 1
            return []  # The flags hold up to the end of the group around.
        program = self.alternatives()
        if not self.accept(")"):
            self.fail("'(' is not closed")
        self.flags = outer
        self.groups -= 1
        return program

    def named_group(self) -> bool:
        """Step over `P<name>` or `<name>`."""
        if not self.accept("P<") and not self.accept("<"):
            return False
        name, closed, _ = self.pattern[self.at :].partition(">")
        if not closed or not (name.isascii() and name.replace("_", "x").isalnum()):
            self.fail("a group's name is letters, digits and '_', and ends with '>'")
        self.at += len(name) + 1
        return True

    def set_flags(self) -> bool:
        """Read the flags of `(?flags)` and `(?flags:...)`; whether it was the first form."""
        on = True
        while (char := self.take()) not in (")", ":"):
            if char == "-" and on:
                on = False
            elif char in "imsU":
                self.flags = self.flags.replace(char, "") + char * on
            else:
                self.at -= 1
                self.fail(f"(?{char} is not supported: look-around and the like are not linear")
        return char == ")"

    def escaped(self) -> CharSet | Assertion:
        """What follows a backslash outside brackets."""
        if self.peek() in ASSERTIONS and self.peek():
            return Assertion(ASSERTIONS[self.take()])
        return CharSet(self.escape(), fold="i" in self.flags)

    def escape(self) -> Ranges:
        r"""What follows a backslash: a class such as `\d`, or one character."""
        char = self.take()
        if char.lower() in CLASSES:
            ranges = CLASSES[char.lower()]
            return ranges if char.islower() else complement(ranges)
        code = ord(CONTROLS.get(char, char))
        if char == "x":
            code = self.number(16, 2)
        elif char in "01234567":
            self.at -= 1
            code = self.number(8, 3)
        elif char not in CONTROLS and (char.isalnum() or not char.isascii()):
            self.at -= 1
            self.fail(f"unknown escape \\{char}")
        return ((code, code),)

    def number(self, base: int, width: int) -> int:
        r"""The digits of `\x7f`, `\x{10ffff}` or `\017`."""
        braced = base == 16 and self.accept("{")
        digits = ""
        while self.peek() and self.peek() in "0123456789abcdefABCDEF"[: base + 6 * (base > 8)]:
            digits += self.take()
            if len(digits) == (6 if braced else width):
                break
        enough = 2 if base == 16 or digits[:1] != "0" else 1  # a digit alone: a back reference
        complete = self.accept("}") if braced else len(digits) >= enough
        if not complete or not digits or int(digits, base) > CODE_MAX:
            self.fail("not a character's number")
        return int(digits, base)

    def bracket(self) -> CharSet:
        r"""`[a-z\d[:alpha:]]`; a bracket that closes at once stands for itself."""
        negated = self.accept("^")
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self.peek() != "]":
            first = False
            ranges += self.posix() if self.accept("[:") else self.bracket_item()
        self.take()
        return CharSet(tuple(ranges), negated=negated, fold="i" in self.flags)

    def posix(self) -> Ranges:
        """`[:alpha:]` or `[:^alpha:]`, after its opening."""
        negated = self.accept("^")
        name, closed, _ = self.pattern[self.at :].partition(":]")
        if not closed or name not in POSIX:
            self.fail(f"unknown class [:{name[:20]}:]")
        self.at += len(name) + 2
        return complement(POSIX[name]) if negated else POSIX[name]

    def bracket_item(self) -> Ranges:
        """One character, escape or range inside brackets."""
        low = self.bracket_char()
        ahead = self.pattern[self.at : self.at + 2]
        if ahead[:1] != "-" or ahead == "-]" or len(low) > 1 or low[0][0] != low[0][1]:
            return low
        self.take()
        high = self.bracket_char()
        if len(high) > 1 or high[0][0] != high[0][1] or high[0] < low[0]:
            self.fail("a range runs from one character up to another")
        return ((low[0][0], high[0][0]),)

    def bracket_char(self) -> Ranges:
        """A character or an escape."""
        char = self.take()
        return self.escape() if char == "\\" else ((ord(char), ord(char)),)
