"""The bus on NATS with JetStream."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Self, TypeVar

import nats
from nats import errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import APIError, NotFoundError

from pawlflow.bus import nats_echo as echo
from pawlflow.bus.nats_words import compare, config_of, consumer_of, fits, size_of
from pawlflow.bus.port import (
    Answered,
    BusError,
    BusFacts,
    Consumer,
    Echo,
    Heard,
    HeardAll,
    Letter,
    Stream,
)

log = logging.getLogger("pawl.nats")
T = TypeVar("T")
VERSION_MIN: Final = (2, 10)
ANSWER_S: Final = 5.0  # for the server
CONNECT_S: Final = 5.0
OVERLAP: Final = 10065  # the server's code: another stream has the subject
IN_USE: Final = 10058  # the server's code: somebody else has made the stream meanwhile
KEEPING_MAX: Final = 20  # rounds: as many services may come at once, and change one stream
KEEPING_S: Final = 0.02  # before the second round, and so much more before each one after it
GONE: Final = (errors.Error, APIError, OSError, TimeoutError)  # what a lost server looks like


class NatsMessage:
    """A message of NATS."""

    __slots__ = ("msg",)

    def __init__(self, msg: Msg) -> None:
        self.msg = msg

    @property
    def subject(self) -> str:
        """What it is about."""
        return self.msg.subject

    @property
    def data(self) -> bytes:
        """What it says."""
        return self.msg.data

    @property
    def headers(self) -> Mapping[str, str]:
        """What is said about it."""
        return self.msg.headers or {}

    async def ack(self) -> None:
        """It was taken. Should this be lost, it comes again, and changes nothing."""
        await self.quietly(self.msg.ack())

    async def later(self, seconds: float) -> None:
        """Let it come again."""
        await self.quietly(self.msg.nak(delay=seconds))

    async def working(self) -> None:
        """Let it not come again yet."""
        await self.quietly(self.msg.in_progress())

    async def quietly(self, said: Awaitable[Any]) -> None:
        """A word to a server that is gone: it would have changed nothing."""
        try:
            await said
        except GONE as error:
            log.debug("not acknowledged: %s", error)


class NatsBus:
    """A connection that comes back by itself."""

    def __init__(self, client: Client, *, ours: bool = True) -> None:
        self.client = client
        self.ours = ours  # to be closed
        self.js = client.jetstream(timeout=ANSWER_S)
        self.listening: dict[str, Any] = {}
        self.at_work: set[asyncio.Task[None]] = set()

    @classmethod
    async def connect(cls, url: str, name: str) -> Self:
        """Connect. Raises BusError if nobody is there, or if the server is too old."""
        try:
            client = await asyncio.wait_for(
                nats.connect(
                    url,
                    name=name,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=0.25,
                    error_cb=noted,
                ),
                CONNECT_S,
            )
        except GONE as error:
            message = f"no NATS server answers at {shown(url)}: {words_of(error)}"
            raise BusError("nats.unreachable", message) from error
        found = client.connected_server_version
        if (found.major, found.minor) < VERSION_MIN:
            await client.close()
            message = f"nats-server {found.major}.{found.minor} is too old: 2.10 or newer is needed"
            raise BusError("nats.version", message)
        return cls(client)

    @property
    def bytes_max(self) -> int:
        """How large a message may be."""
        return self.client.max_payload

    # Streams

    async def keep(self, stream: Stream) -> bool:
        """Have a stream for these subjects, beside those it has."""
        made = False
        for number in range(1, KEEPING_MAX + 1):
            try:
                try:
                    info = await self.js.stream_info(stream.name)
                except NotFoundError:
                    info = await self.js.add_stream(config_of(stream, stream.subjects))
                    made = True
                missing = set(stream.subjects) - set(info.config.subjects or ())
                if not missing:
                    compare(stream, info.config)
                    return made
                # What others add between our reading and our writing is lost to them, and the
                # other way round: the server compares nothing. So whoever wrote reads again.
                subjects = (*(info.config.subjects or ()), *sorted(missing))
                info = await self.js.update_stream(config_of(stream, subjects))
            except APIError as error:
                if error.err_code != IN_USE:
                    code = "nats.overlap" if error.err_code == OVERLAP else "nats.stream"
                    message = f"the stream {stream.name} cannot be kept: {error.description}"
                    raise BusError(code, message) from error
            except GONE as error:
                raise lost(error) from error
            await asyncio.sleep(number * KEEPING_S)
        message = f"the stream {stream.name} is changed by others again and again: look who it is"
        raise BusError("nats.stream", message)

    async def take(self, consumer: Consumer, heard: HeardAll) -> None:
        """Have a consumer and listen to it."""
        wanted = consumer_of(consumer)
        try:
            try:
                info = await self.js.consumer_info(consumer.stream, consumer.name)
                same = fits(info.config, wanted)
            except NotFoundError:
                same = False
            if not same:
                await self.js.add_consumer(consumer.stream, wanted)
            if consumer.deliver not in self.listening:
                self.listening[consumer.deliver] = await self.client.subscribe(
                    consumer.deliver, queue=consumer.name, cb=self.task_for_all(heard)
                )
        except APIError as error:
            message = f"the consumer {consumer.name} cannot be made: {error.description}"
            raise BusError("nats.stream", message) from error
        except GONE as error:
            raise lost(error) from error

    async def taker(self, stream: str, name: str) -> Mapping[str, str] | None:
        """What is said about a consumer that somebody listens to: the server knows."""
        try:
            info = await self.js.consumer_info(stream, name)
        except NotFoundError:
            return None
        except GONE as error:
            raise lost(error) from error
        return (info.config.metadata or {}) if info.push_bound else None

    def task_for_all(self, heard: HeardAll) -> Callable[[Msg], Awaitable[None]]:
        """A task for all messages that the connection has read by now."""
        arrived: list[NatsMessage] = []
        loop = asyncio.get_running_loop()

        def begin() -> None:
            together = arrived.copy()
            arrived.clear()
            self.begin(guarded_all(heard, together))

        async def note(msg: Msg) -> None:
            if not arrived:
                loop.call_soon(begin)
            arrived.append(NatsMessage(msg))

        return note

    def task_for(self, heard: Heard) -> Callable[[Msg], Awaitable[None]]:
        """A task for each message: many are heard while one waits for its commit."""

        async def begin(msg: Msg) -> None:
            self.begin(guarded(heard, NatsMessage(msg)))

        return begin

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin with something, and know of it."""
        task = asyncio.ensure_future(work)
        self.at_work.add(task)
        task.add_done_callback(self.at_work.discard)

    # Saying and asking

    async def publish(self, subject: str, data: bytes, headers: Mapping[str, str]) -> None:
        """Say something; a stream has it when this returns."""
        self.refuse_too_large(data, headers)
        try:
            await self.js.publish(subject, data, headers=dict(headers), timeout=ANSWER_S)
        except GONE as error:
            raise lost(error) from error

    def refuse_too_large(self, data: bytes, headers: Mapping[str, str]) -> None:
        """A server hangs up on a message that is too large: it is not sent. Raises BusError."""
        size = len(data) + size_of(headers)
        if size > self.bytes_max:
            message = f"{size:,} bytes are more than the NATS server takes (its max_payload)"
            raise BusError("nats.too_large", message)

    async def publish_all(self, letters: Sequence[Letter]) -> None:
        """Say all of this, in order; the last on each subject is answered for all before it.

        A stream takes what one connection says in the order in which it is said. If the connection
        was another one in between, the part before may be lost.
        """
        for _, data, headers in letters:
            self.refuse_too_large(data, headers)
        last = {letter.subject: letter for letter in letters}
        connection = self.client.stats["reconnects"]
        try:
            for letter in letters:
                if last[letter.subject] is not letter:
                    subject, data, headers = letter
                    await self.client.publish(subject, data, headers=dict(headers))
        except GONE as error:
            raise lost(error) from error
        await asyncio.gather(*(self.publish(*letter) for letter in last.values()))
        if self.client.stats["reconnects"] != connection:
            raise BusError("nats.unreachable", "the connection to NATS was made anew meanwhile")

    async def send(self, subject: str, data: bytes, headers: Mapping[str, str]) -> None:
        """Say something to whoever listens now."""
        try:
            await self.client.publish(subject, data, headers=dict(headers))
        except GONE as error:
            raise lost(error) from error

    async def ask(self, subject: str, data: bytes, seconds: float) -> bytes:
        """Ask, and wait for the answer."""
        try:
            answer: bytes = (await self.client.request(subject, data, timeout=seconds)).data
        except GONE as error:
            raise lost(error) from error
        return answer

    async def answer(self, subject: str, group: str, answered: Answered) -> None:
        """Answer what is asked; of a group, one does."""

        async def reply(message: Any) -> None:
            said = await answered(message)
            if message.msg.reply:
                await message.quietly(message.msg.respond(said))

        await self.hear(subject, group, reply)

    async def listen(self, subject: str, heard: Heard) -> None:
        """Hear what is said from now on."""
        await self.hear(subject, "", heard)

    async def hear(self, subject: str, group: str, heard: Heard) -> None:
        """Subscribe; whatever is said once this returns is heard."""
        try:
            self.listening[subject] = await self.client.subscribe(
                subject, queue=group, cb=self.task_for(heard)
            )
            await self.client.flush()
        except GONE as error:
            raise lost(error) from error

    # For who looks after it

    async def facts(self) -> BusFacts:
        """What the server is."""
        found = self.client.connected_server_version
        version = f"{found.major}.{found.minor}.{found.patch}"
        try:
            return await echo.facts_of(self.js, version, self.client.max_payload)
        except GONE as error:
            return BusFacts(version=version, streams=False, why=words_of(error))

    async def stream_echo(self, stream: Stream) -> Echo | None:
        """How a stream differs from what is asked for."""
        wanted = config_of(stream, stream.subjects)
        return await heard_of(echo.stream_echo(self.js, wanted))

    async def consumer_echo(self, consumer: Consumer) -> Echo | None:
        """How a consumer differs from what is asked for."""
        wanted = consumer_of(consumer)
        return await heard_of(echo.consumer_echo(self.js, consumer.stream, wanted))

    async def consumers(self, stream: str) -> list[tuple[str, tuple[str, ...], int]]:
        """Who takes messages of a stream."""
        return await heard_of(echo.consumers_of(self.js, stream))

    async def hush(self) -> None:
        """Hear no more."""
        listening, self.listening = self.listening, {}
        for each in listening.values():
            try:
                await each.unsubscribe()
            except GONE as error:
                log.debug("not unsubscribed: %s", error)

    async def close(self) -> None:
        """Finish what was heard, and hear no more."""
        await self.hush()
        if self.at_work:
            await asyncio.wait(self.at_work, timeout=ANSWER_S)
        if self.ours:
            try:
                await asyncio.wait_for(self.client.flush(), 1)
            except GONE as error:
                log.debug("not flushed: %s", error)
            try:
                await self.client.close()
            except GONE as error:
                log.debug("the server was gone already: %s", error)


async def guarded(heard: Heard, message: NatsMessage) -> None:
    """A message that breaks its handler is not acknowledged, and comes again."""
    try:
        await heard(message)
    except Exception:
        log.exception("a message on %s was not taken", message.subject)


async def guarded_all(heard: HeardAll, messages: Sequence[NatsMessage]) -> None:
    """Messages that break their handler are not acknowledged, and come again."""
    try:
        await heard(messages)
    except Exception:
        log.exception("%d messages on %s were not taken", len(messages), messages[0].subject)


async def noted(error: Exception) -> None:
    """What goes wrong with a connection; it is made again."""
    log.warning("NATS: %s", words_of(error))


def words_of(error: BaseException) -> str:
    """What went wrong, in words."""
    return str(error) or type(error).__name__


async def heard_of(answer: Awaitable[T]) -> T:
    """What the server answers. Raises BusError if it does not."""
    try:
        return await answer
    except GONE as error:
        raise lost(error) from error


def lost(error: BaseException) -> BusError:
    """The server, or the stream, did not answer."""
    return BusError("nats.unreachable", f"NATS did not take it: {words_of(error)}")


def shown(url: str) -> str:
    """A URL without what must not be told."""
    scheme, mark, rest = url.rpartition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"
