"""Places: where in a text of Cedar something is wrong.

The parser says what it did not expect, and not where. A text that ends too early is told from one
that goes on wrongly, so the first token after which it is wrong is found by halves.
"""

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

import msgspec

TOKEN: Final = re.compile(
    r'"(?:\\.|[^"\\])*"|//[^\n]*|[A-Za-z_]\w*|\d+|::|==|!=|<=|>=|&&|\|\||\?\w+|\S', re.DOTALL
)
QUOTED: Final = re.compile(r"`([^`]+)`|'([^']+)'|: @?([^\s@]+)$")
EARLY: Final = "unexpected end of input"


class Trouble(msgspec.Struct, frozen=True):
    """Something wrong with a text, and at which character."""

    offset: int
    code: str
    message: str
    hint: str


def tokens_of(text: str, begin: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Where the tokens of a text begin and end; comments are none."""
    found = TOKEN.finditer(text, begin, len(text) if end is None else end)
    return [each.span() for each in found if not each.group().startswith("//")]


def spans_of(text: str) -> list[tuple[int, int]]:
    """Where each policy of a text begins and ends; the last may be unfinished."""
    spans: list[tuple[int, int]] = []
    begin: int | None = None
    for at, end in tokens_of(text):
        begin = at if begin is None else begin
        if text[at:end] == ";":
            spans.append((begin, end))
            begin = None
    return spans if begin is None else [*spans, (begin, len(text))]


def place_of_error(text: str, said: str, judge: Callable[[str], str]) -> Trouble:
    """The first policy that is none, and what in it: `judge` says what is wrong with a text."""
    for begin, end in spans_of(text):
        words = judge(text[begin:end])
        if words:
            at = begin + offset_in(text[begin:end], words, judge)
            return Trouble(at, "policy.syntax", f"not Cedar: {words}", hint_of(words))
    return Trouble(0, "policy.syntax", f"not Cedar: {said}", hint_of(said))


def offset_in(policy: str, words: str, judge: Callable[[str], str]) -> int:
    """Where one policy goes wrong."""
    tokens = tokens_of(policy)
    if words == EARLY:
        return tokens[-1][1] - 1
    if "number too large" in words:
        return max(tokens, key=lambda each: (policy[each[0]].isdigit(), each[1] - each[0]))[0]
    last = len(tokens) - 1
    wrong = bisect_left(tokens, 1, key=lambda each: int(judge(policy[: each[1]]) != EARLY))
    if wrong < last or words.startswith(("unexpected token", "invalid token")):
        named = "".join(next(iter(QUOTED.findall(words)), ()))
        before = [at for at, end in tokens[: wrong + 1] if policy[at:end] == named]
        return before[-1] if before else tokens[min(wrong, last)][0]
    # It can be read to its end, and means nothing: what the words name is looked for.
    for named in reversed([next(filter(None, found)) for found in QUOTED.findall(words)]):
        if words.startswith("duplicate annotation"):
            return policy.rfind(f"@{named}")
        exact = [at for at, end in tokens if policy[at:end] == named]
        if exact or named in policy:
            return exact[0] if exact else policy.find(named)
    return 0


def hint_of(words: str) -> str:
    """The likely way out."""
    if words == EARLY:
        return "end each policy with ; and close every bracket"
    if "policy effect" in words:
        return "a policy begins with permit or forbid"
    if "variable" in words:
        return "the names are principal, action, resource and context"
    if "invalid token" in words:
        return 'close the text with "'
    return "see the Cedar policy syntax; numbers are whole, texts stand in double quotes"


def place_of_rule(text: str, span: tuple[int, int], annotation: str) -> int:
    """Where an annotation of a policy stands; its beginning, if it has none of that name."""
    found = re.compile(rf"@\s*{annotation}\b").search(text, *span)
    return span[0] if found is None else found.start()
