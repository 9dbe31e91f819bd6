"""The port of a bus, documented by what it guarantees.

A bus is only a hint: the journal decides. Whatever it loses is sent again, whatever it brings twice
changes nothing.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from pawlflow.model.trouble import PawlError


class BusError(PawlError):
    """The bus is unwell. `code` is stable, the message names the way out."""


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """Where messages of some subjects are kept until they were taken, or are too old."""

    name: str
    subjects: tuple[str, ...]
    once: bool  # a message goes when it was acknowledged; otherwise it stays until it is too old
    age_s: float


class Consumer(msgspec.Struct, frozen=True, kw_only=True):
    """Who takes the messages of a stream: one of all that have this name, each message."""

    stream: str
    name: str
    subjects: tuple[str, ...]
    deliver: str  # the subject on which they come
    ack_s: float  # unless acknowledged in this time, a message comes again
    pending_max: int  # that were brought and not acknowledged yet
    about: Mapping[str, str] = {}  # what others may know of it


class Letter(NamedTuple):
    """A message that is to be sent."""

    subject: str
    data: bytes
    headers: Mapping[str, str]


class Echo(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says about a stream or a consumer, held against what was asked for."""

    name: str
    differs: Mapping[str, tuple[str, str]] = {}  # wanted and found, by the name of the setting
    waiting: int = 0  # messages that nobody was brought yet
    unanswered: int = 0  # messages that were brought, and not acknowledged
    bytes: int = 0


class BusFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a server is. Without streams nothing can be kept; then it says why."""

    version: str
    streams: bool
    why: str = ""
    used: int = 0  # bytes
    used_max: int = -1  # bytes; -1: as much as its disk has
    message_max: int = 0  # bytes


class Message(Protocol):
    """A message as it came."""

    @property
    def subject(self) -> str:
        """What it is about."""
        ...

    @property
    def data(self) -> bytes:
        """What it says."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """What is said about it."""
        ...

    async def ack(self) -> None:
        """It was taken, and need not come again."""
        ...

    async def later(self, seconds: float) -> None:
        """It could not be taken: let it come again after a while."""
        ...

    async def working(self) -> None:
        """It takes longer; let it not come again yet."""
        ...


Heard = Callable[[Message], Awaitable[None]]
HeardAll = Callable[[Sequence[Message]], Awaitable[None]]
Answered = Callable[[Message], Awaitable[bytes]]


class Bus(Protocol):
    """A connection to a bus. It is used on one event loop."""

    @property
    def bytes_max(self) -> int:
        """How large a message may be."""
        ...

    async def keep(self, stream: Stream) -> bool:
        """Have a stream for these subjects, beside those it has; True if it had to be made.

        What the server says it made is compared. Raises BusError.
        """
        ...

    async def take(self, consumer: Consumer, heard: HeardAll) -> None:
        """Have a consumer and listen to it: what comes together is heard together, in order.

        Nobody waits for more to come. Said again, only what is missing is made. Raises BusError.
        """
        ...

    async def taker(self, stream: str, name: str) -> Mapping[str, str] | None:
        """What is said about a consumer; None unless somebody listens to it now.

        Raises BusError.
        """
        ...

    async def publish(self, subject: str, data: bytes, headers: Mapping[str, str]) -> None:
        """Say something; a stream has it when this returns. Raises BusError."""
        ...

    async def publish_all(self, letters: Sequence[Letter]) -> None:
        """Say all of this, in order; streams have it when this returns.

        One answer of a stream stands for all that was said on its subject before. Raises BusError:
        then any part of it may have been heard, and all of it is to be said again.
        """
        ...

    async def send(self, subject: str, data: bytes, headers: Mapping[str, str]) -> None:
        """Say something to whoever listens now. Raises BusError."""
        ...

    async def ask(self, subject: str, data: bytes, seconds: float) -> bytes:
        """Ask, and wait for the answer. Raises BusError if there is none."""
        ...

    async def answer(self, subject: str, group: str, answered: Answered) -> None:
        """Answer what is asked; of a group, one does."""
        ...

    async def listen(self, subject: str, heard: Heard) -> None:
        """Hear what is said from now on; it is kept nowhere."""
        ...

    async def facts(self) -> BusFacts:
        """What the server is. Raises BusError."""
        ...

    async def stream_echo(self, stream: Stream) -> Echo | None:
        """How a stream differs from what is asked for; None if there is none. Changes nothing."""
        ...

    async def consumer_echo(self, consumer: Consumer) -> Echo | None:
        """How a consumer differs from what is asked for; None if there is none."""
        ...

    async def consumers(self, stream: str) -> list[tuple[str, tuple[str, ...], int]]:
        """Who takes messages of a stream: name, subjects, and how many at a time."""
        ...

    async def hush(self) -> None:
        """Hear no more. What was heard may still be acknowledged, and things may be said."""
        ...

    async def close(self) -> None:
        """Finish what was heard, and hear no more."""
        ...
