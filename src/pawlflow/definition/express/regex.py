"""Regular expressions in linear time: RE2's syntax, less what needs Unicode tables.

A pattern becomes a program of small instructions (Thompson 1968). Running it keeps the list of all
places the program can be at, so that no text makes it go back (Cox, "Regular Expression Matching
Can Be Simple And Fast", 2007). Lists met once are remembered with what follows them: a DFA, grown
as needed. What it holds depends on the pattern alone, so sharing it changes no result.
"""

# Closures are made by the thousand: unevaluated annotations spare each a tuple of its own.
from __future__ import annotations

from pawlflow.definition.express.regex_parse import CharSet, Go, parse_regex

MEMORY_MAX = 500_000  # machine words a pattern may remember: 4 MB
EDGE_WORDS = 64  # what a remembered transition takes, besides the places it leads to
STEPS_PER_UNIT = 4  # places visited per unit of cost: a whole budget is then a second at worst
WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class Regex:
    """A compiled pattern. Raises `expression.regex` when it is malformed."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.program = parse_regex(pattern)
        self.size = len(self.program) + 1
        self.start = State((0,), "")
        self.states: dict[tuple[tuple[int, ...], str], State] = {}
        self.room = MEMORY_MAX

    def cost(self, text: str) -> int:
        """What searching this text may cost, whatever is remembered: length times states."""
        return len(text) * self.size // STEPS_PER_UNIT

    def search(self, text: str) -> bool:
        """Whether the pattern matches somewhere in the text."""
        state = self.start
        for char in text:
            state = state.edges.get(char) or self.advance(state, char)
            if state is MATCHED:
                return True
        return self.follow(state, "") is None

    def advance(self, state: State, char: str) -> State:
        """The state after one more character, remembered while there is room."""
        places = self.follow(state, char)
        if places is None:
            target = MATCHED
        else:
            moved = [at + 1 for at, chars in places if chars.holds(char)]
            # A match may begin anywhere: the program starts again at every character.
            key = ((0, *sorted(moved)), side(char))
            target = self.states.get(key) or State(*key)
            if self.room > 0:
                self.states[key] = target
        if self.room > 0:
            state.edges[char] = target
            self.room -= EDGE_WORDS + len(target.places)
        return target

    def follow(self, state: State, after: str) -> list[tuple[int, CharSet]] | None:
        """All places that wait for a character, given the next one; None if the end is reached."""
        seen = bytearray(self.size)
        todo = list(state.places)
        waiting: list[tuple[int, CharSet]] = []
        while todo:
            at = todo.pop()
            if seen[at]:
                continue
            seen[at] = 1
            if at == len(self.program):
                return None
            step = self.program[at]
            if isinstance(step, CharSet):
                waiting.append((at, step))
            elif isinstance(step, Go):
                todo += [at + distance for distance in step.distances]
            elif asserts(step.kind, state.before, after):
                todo.append(at + 1)
        return waiting


class State:
    """Places in the program, the kind of character before, and what follows each character."""

    __slots__ = ("before", "edges", "places")

    def __init__(self, places: tuple[int, ...], before: str) -> None:
        self.places = places
        self.before = before
        self.edges: dict[str, State] = {}


MATCHED = State((), "")


def side(char: str) -> str:
    """What assertions can tell about a neighbour: newline, part of a word, or neither."""
    return "\n" if char == "\n" else "w" if char in WORD else " "


def asserts(kind: str, before: str, after: str) -> bool:
    """Whether an assertion holds between two characters; an edge of the text is empty."""
    match kind:
        case "begin":
            return not before
        case "end":
            return not after
        case "line_begin":
            return before in ("", "\n")
        case "line_end":
            return after in ("", "\n")
        case _:
            return ((before in WORD) != (after in WORD)) == (kind == "word")
