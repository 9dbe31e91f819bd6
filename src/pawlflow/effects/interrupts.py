"""Interrupts: a function that leaves with sys.exit has failed; a signal ends the whole program."""

import asyncio
import inspect
import signal
from collections.abc import Awaitable, Callable, Iterator
from dis import opmap
from functools import partial
from types import CodeType, TracebackType
from typing import Any, Final, TypeVar

T = TypeVar("T")
RAISE: Final = opmap["RAISE_VARARGS"]


class Left(Exception):  # noqa: N818  # of a part of an attempt; its cause is what was raised
    """A function raised what would end the whole program, were it to leave a task."""


def is_for_all(error: BaseException) -> bool:
    """Is this meant for the program, and not for one attempt: cancelled, or ended by a signal?"""
    if isinstance(error, Exception | GeneratorExit):
        return False
    return isinstance(error, asyncio.CancelledError) or is_by_signal(error)


def is_by_signal(error: BaseException) -> bool:
    """Did a signal raise this, wherever the program was, rather than the code that it was in?

    What a handler raises has the handler in its trace. That of Ctrl-C is not written in Python: an
    interrupted line is then where it came from, though nothing is raised there.
    """
    handlers = set(handlers_now())
    last: TracebackType | None = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        last, trace = trace, trace.tb_next
    if not isinstance(error, KeyboardInterrupt) or last is None:
        return False
    return last.tb_frame.f_code.co_code[last.tb_lasti] != RAISE


def handlers_now() -> Iterator[CodeType]:
    """What runs when a signal comes, as far as it is written in Python."""
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while isinstance(handler, partial):  # as asyncio.run sets its own
            handler = handler.func
        code = getattr(inspect.unwrap(handler) if callable(handler) else None, "__code__", None)
        if code is not None:
            yield code


def called(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function in a thread. A future cannot carry back all that it may raise."""
    try:
        return fn(*args, **kwargs)
    except StopIteration as error:
        raise RuntimeError("StopIteration left the function") from error
    except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:  # no signal comes to a thread
        raise Left(type(error).__name__) from error


async def kept_inside(part: Awaitable[T]) -> T:
    """Wait for something in a task of its own, which SystemExit would leave for the event loop."""
    try:
        return await part
    except BaseException as error:
        if isinstance(error, Exception) or is_for_all(error):
            raise
        raise Left(type(error).__name__) from error
