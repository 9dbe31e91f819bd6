"""Tokens: the words of an expression, each with its offset in the text it stands in."""

import math
import re
from typing import Any, NamedTuple

from pawlflow.definition.express.errors import ExpressionError, overflow_error, syntax_error

SOURCE_MAX = 16_384  # characters; a condition is a line or two, what is longer is a program
KEYWORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
RESERVED = frozenset(
    """as break const continue else for function if import let loop package namespace return var
    void while""".split()  # noqa: SIM905 (one line of words reads better than seventeen lines)
)


class Token(NamedTuple):
    """`kind` is "literal", "name", "end", or the operator itself."""

    kind: str
    text: str
    offset: int
    value: Any = None


def tokenize(source: str, start: int) -> list[Token]:
    """All tokens from `start` up to the end of the text or a `}` that nothing opened."""
    tokens: list[Token] = []
    braces = 0
    at = start
    while at < len(source):
        found = TOKEN.match(source, at)
        if not found:
            raise unreadable(source, at)
        token = read_token(found)
        braces += (token.kind == "{") - (token.kind == "}")
        if braces < 0:
            break
        at = found.end()
        if at - start > SOURCE_MAX:
            raise too_long(start)
        if token.kind != "space":
            tokens.append(token)
    tokens.append(Token("end", "", at))
    return tokens


def too_long(offset: int) -> ExpressionError:
    """More text than an expression may have."""
    message = f"an expression may have {SOURCE_MAX} characters, this one has more"
    return ExpressionError("expression.too_long", message, offset=offset)


def unreadable(source: str, at: int) -> ExpressionError:
    """No token begins here: say which kind was meant."""
    if source[at] in "'\"":
        hint = f"write {source[at]} where the string ends"
        return syntax_error("the string that starts here is not closed", at, hint)
    hint = STRAY.get(source[at], "remove it, or put quotes around the text it is part of")
    return syntax_error(f"unexpected character {source[at]!r}", at, hint)


# Characters that are half an operator, or one of another language.
STRAY = {
    "=": "did you mean '=='?",
    "&": "did you mean '&&'?",
    "|": "did you mean '||'?",
    "$": "inside of an expression there is no $; write input.name",
}


# Raw strings come first (their prefix is a letter), and long quotes before short ones. No
# alternative can match the same text in two ways, so that a hostile source is read in linear time.
TOKEN = re.compile(
    r"""
    (?P<space>(?:[\t\n\f\r ]|//[^\n]*)+)
    |(?P<bytes>[bB])?(?:
        [rR](?:'''(?P<raw3>[\s\S]*?)'''|\"""(?P<raw4>[\s\S]*?)\"""
              |'(?P<raw1>[^'\n\r]*)'|"(?P<raw2>[^"\n\r]*)")
        |'''(?P<long1>(?:[^\\]|\\[\s\S])*?)'''
        |\"""(?P<long2>(?:[^\\]|\\[\s\S])*?)\"""
        |'(?P<short1>(?:[^'\\\n\r]|\\[^\n\r])*)'
        |"(?P<short2>(?:[^"\\\n\r]|\\[^\n\r])*)")
    |(?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+
               |\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<int>0[xX][0-9a-fA-F]+|[0-9]+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |`(?P<quoted>[A-Za-z0-9_./\ -]+)`
    |(?P<operator>&&|\|\||[<>=!]=|[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE,
)
ESCAPE = re.compile(
    r"""\\(?:[xX](?P<hex>[0-9a-fA-F]{2})|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})
    |(?P<octal>[0-3][0-7]{2})|(?P<plain>[abfnrtv\\?"'`]))""",
    re.VERBOSE,
)
AS_IT_IS = "write the character itself"
PLAIN = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


def read_token(found: re.Match[str]) -> Token:
    """The token that a match of `TOKEN` stands for."""
    kind, text, offset = str(found.lastgroup), found.group(), found.start()
    match kind:
        case "space":
            return Token("space", text, offset)
        case "operator":
            return Token(text, text, offset)
        case "name" if text in KEYWORDS:
            return Token("literal", text, offset, KEYWORDS[text])
        case "name":
            return Token("in" if text == "in" else "name", text, offset)
        case "quoted":
            return Token("quoted", found[kind], offset)
        case "int":
            return Token("literal", text, offset, read_int(text, offset))
        case "double":
            return Token("literal", text, offset, read_double(text, offset))
        case _:
            return Token("literal", text, offset, read_string(found, kind))


def read_int(text: str, offset: int) -> int:
    """An integer; the parser, which knows the sign, checks the range."""
    digits = text.lstrip("0xX")
    if len(digits) > 20:  # Longer than 64 bits in any base, and int() refuses very long ones.
        raise out_of_range(text, offset)
    return int(text, 16 if text[1:2] in ("x", "X") else 10)


def read_double(text: str, offset: int) -> float:
    """A finite double."""
    value = float(text)
    if math.isinf(value):
        raise out_of_range(text, offset)
    return value


def out_of_range(text: str, offset: int) -> ExpressionError:
    """A number literal that no 64-bit integer or double can hold."""
    error = overflow_error(text if len(text) <= 40 else f"{text[:40]}...")
    error.offset = offset
    return error


def read_string(found: re.Match[str], kind: str) -> str | bytes:
    """A string or bytes literal, its escapes decoded unless it is raw."""
    body, is_bytes = found[kind], found["bytes"] is not None
    if kind.startswith("raw"):
        return body.encode("utf-8", "surrogatepass") if is_bytes else body
    parts: list[bytes] = []
    at = 0
    while (slash := body.find("\\", at)) >= 0:
        escape = ESCAPE.match(body, slash)
        if not escape:
            raise syntax_error("unknown escape sequence", found.start(kind) + slash, "write \\\\")
        parts.append(body[at:slash].encode("utf-8", "surrogatepass"))
        parts.append(read_escape(escape, found.start(kind) + slash, is_bytes=is_bytes))
        at = escape.end()
    parts.append(body[at:].encode("utf-8", "surrogatepass"))
    joined = b"".join(parts)
    return joined if is_bytes else joined.decode("utf-8", "surrogatepass")


def read_escape(escape: re.Match[str], offset: int, *, is_bytes: bool) -> bytes:
    """The bytes of one escape: a code point in UTF-8, or in a bytes literal a single byte."""
    kind = str(escape.lastgroup)
    text = escape[kind]
    if kind == "plain":
        return PLAIN.get(text, text).encode()
    number = int(text, 8 if kind == "octal" else 16)
    if not is_bytes:
        if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
            raise syntax_error(
                f"\\{escape.group()[1:]} is not a Unicode character", offset, AS_IT_IS
            )
        return chr(number).encode()
    if kind in ("short", "long"):
        message = "a bytes literal takes \\x and octal escapes only"
        raise syntax_error(message, offset, "write each byte as \\x and two digits")
    return bytes([number])
