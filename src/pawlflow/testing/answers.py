"""Answers: what a scripted step says to a call, as a test writes it down."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final, get_args

import msgspec

from pawlflow.definition.fields import duration_ms
from pawlflow.effects.context import Correctable, Terminal, Transient
from pawlflow.model.codec import CodecError
from pawlflow.model.failure import FailureClass, failure_of
from pawlflow.model.ids import DurationMs
from pawlflow.model.inputs import Receipt
from pawlflow.model.intents import Call
from pawlflow.model.payload import Payload

Span = str | float | timedelta  # "90s", seconds, or a timedelta
CLASSES: Final = get_args(FailureClass)


class Ok(msgspec.Struct, frozen=True):
    """A success, with this result."""

    result: Any = None
    after: Span = 0
    twice: bool = False  # deliver the receipt a second time
    usage: dict[str, float] | None = None  # what the attempt says that it cost


class Fail(msgspec.Struct, frozen=True):
    """A failure of a class: `Fail.transient()`, `Fail.terminal("no such card")`."""

    kind: FailureClass
    message: str = ""
    after: Span = 0
    findings: tuple[Any, ...] = ()
    code: str = "effect.failed"
    usage: dict[str, float] | None = None

    def __post_init__(self) -> None:
        if self.kind not in CLASSES:
            raise ValueError(f"{self.kind!r} is no class of failures: {', '.join(CLASSES)}")

    @classmethod
    def transient(cls, message: str = "", *, after: Span = 0) -> "Fail":
        """As if the function had raised Transient: tried again by the retryPolicy."""
        return cls("transient", message, after, code="effect.transient")

    @classmethod
    def terminal(cls, message: str = "", *, after: Span = 0) -> "Fail":
        """As if the function had raised Terminal: not tried again."""
        return cls("terminal", message, after, code="effect.terminal")

    @classmethod
    def correctable(cls, findings: Any, message: str = "", *, after: Span = 0) -> "Fail":
        """As if the function had raised Correctable: another round, with these findings."""
        listed = tuple(findings) if isinstance(findings, list | tuple) else (findings,)
        return cls("validation", message, after, listed, code="effect.correctable")

    @classmethod
    def raised(cls, message: str = "", *, after: Span = 0) -> "Fail":
        """As if the function had raised any other exception."""
        return cls("agent", message, after, code="effect.raised")

    @classmethod
    def external(cls, message: str = "", *, after: Span = 0) -> "Fail":
        """As if somebody else's service had failed."""
        return cls("external", message, after)


class Hang(msgspec.Struct, frozen=True):
    """No answer, ever: what happens to an attempt whose process is gone."""


class Real(msgspec.Struct, frozen=True):
    """The registered function carries this call out."""


Answer = Ok | Fail | Hang | Real
Dynamic = Callable[[Any], Any]  # what was called, to whatever may stand in a script


class Script:
    """The answers of one name, in order; the last one repeats."""

    def __init__(self, name: str, answers: Any, *, after: Span | None, each: bool) -> None:
        given = list(answers) if isinstance(answers, list | tuple) else [answers]
        if not given:
            message = f"script({name!r}, []) says nothing: give at least one answer, or unscript()"
            raise ValueError(message)
        self.answers: list[Answer | Dynamic] = [
            one if is_dynamic(one) else answer_of(one, after) for one in given
        ]
        self.after = after
        self.each = each
        self.asked: dict[tuple[str, ...], int] = {}

    def next(self, who: tuple[str, ...], called: Any) -> Answer:
        """What comes now, for whoever asks: all together, or each from the beginning."""
        whose = who if self.each else ()
        place = self.asked[whose] = self.asked.get(whose, 0) + 1
        found = self.answers[min(place, len(self.answers)) - 1]
        if isinstance(found, Ok | Fail | Hang | Real):
            return found
        return answer_of(found(called), self.after)


def is_dynamic(given: Any) -> bool:
    """Is this a function that makes the answer, when it is asked?"""
    return callable(given) and not isinstance(given, type)


def answer_of(given: Any, after: Span | None) -> Answer:
    """An answer as it is meant: a plain value is a success, an exception a failure."""
    answer = plain_answer(given)
    if isinstance(answer, Ok | Fail):
        if after is not None and answer.after == 0:
            answer = msgspec.structs.replace(answer, after=after)
        span_ms(answer.after)  # a span that is none should be told where it is written
    return answer


def plain_answer(given: Any) -> Answer:
    """The same, without its delay."""
    match given:
        case Ok() | Fail() | Hang() | Real():
            return given
        case type() if given in (Ok, Hang, Real):
            made: Answer = given()
            return made
        case Transient():
            return Fail.transient(str(given))
        case Terminal():
            return Fail.terminal(str(given))
        case Correctable():
            return Fail.correctable(given.findings, str(given))
        case BaseException():
            return Fail.raised(f"{type(given).__name__}: {given}")
        case type() if issubclass(given, BaseException):
            return plain_answer(given())
        case type():
            raise TypeError(f"{given.__name__} is a class, and no answer: give a value of it")
        case _:
            return Ok(given)


def receipts_of(call: Call, answer: Ok | Fail) -> Sequence[Receipt]:
    """What an executor would send."""
    tenant = call.cell.tenant
    usage = None if answer.usage is None else Payload.of(answer.usage, tenant)
    if isinstance(answer, Ok):
        result = payload_of(answer.result, call)
        receipt = Receipt(call.key, call.attempt, "ok", result, usage=usage)
        return (receipt, receipt) if answer.twice else (receipt,)
    said = answer.message or f"scripted {answer.kind} failure"
    failure = failure_of(
        answer.kind, answer.code, said, tenant=tenant, findings=list(answer.findings)
    )
    return (Receipt(call.key, call.attempt, "failed", failure=failure, usage=usage),)


def payload_of(result: Any, call: Call) -> Payload:
    """A result as a journal keeps it; dataclasses and structs become maps."""
    try:
        return Payload.of(result, call.cell.tenant)
    except CodecError:
        return Payload.of(msgspec.to_builtins(result), call.cell.tenant)


def span_ms(span: Span) -> DurationMs:
    """A span of virtual time. Raises ValueError."""
    if isinstance(span, timedelta):
        ms: int | None = span // timedelta(milliseconds=1)
    elif isinstance(span, str):
        ms = duration_ms(span)
    else:
        ms = round(span * 1000)
    if ms is None or ms < 0:
        raise ValueError(f"{span!r} is no span of time: write 500ms, 90s, 5m, 2h or 3d")
    return DurationMs(ms)
