"""Connections: HTTP to addresses that were checked, and to no others.

A name is resolved once for each connection; every address it has is checked, and what was checked
is what is connected to. TLS and the Host header still say the name. No proxy is used.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import httpcore
import msgspec

from pawlflow.effects.addresses import Allowed, Url, check_addresses

ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024  # as much as one value may take
IDLE_S: Final = 5.0  # a connection is kept for the next call
CONNECTIONS_MAX: Final = 100  # of one endpoint
CONNECT_S_MAX: Final = 10.0
Resolve = Callable[[str, int], Awaitable[list[str]]]
Headers = list[tuple[bytes, bytes]]


class TooLarge(Exception):  # noqa: N818  # of an attempt
    """An answer that is longer than can be kept; the rest was not read."""


class Answer(msgspec.Struct, frozen=True):
    """What an endpoint said."""

    status: int
    headers: dict[str, str]  # names in small letters; of several the first
    body: bytes


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, in the order they are to be tried. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class Checked(httpcore.AsyncNetworkBackend):
    """Connects to the addresses that were checked."""

    def __init__(self, allowed: Allowed, resolving: Resolve) -> None:
        self.allowed = allowed
        self.resolving = resolving
        self.plain = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the form of the port
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Resolve, check all, connect to the first that answers. Raises AddressRefused."""
        try:
            found = await self.resolving(host, port)
        except OSError as error:
            raise httpcore.ConnectError(f"{host} cannot be resolved: {error.strerror}") from error
        addresses = check_addresses(host, found, self.allowed)
        trouble: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                return await self.plain.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                trouble = error
        raise trouble

    async def connect_unix_socket(
        self, path: str, *_: Any, **__: Any
    ) -> httpcore.AsyncNetworkStream:
        """No file is an endpoint."""
        raise httpcore.ConnectError(f"{path} is no host")

    async def sleep(self, seconds: float) -> None:
        """Wait, between two tries of the pool."""
        await asyncio.sleep(seconds)


class Connections:
    """The connections to one endpoint, kept for a while."""

    def __init__(self, allowed: Allowed, ca: str | None, resolving: Resolve = resolve) -> None:
        self.pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context(cafile=ca),
            max_connections=CONNECTIONS_MAX,
            keepalive_expiry=IDLE_S,
            network_backend=Checked(allowed, resolving),
        )

    async def send(self, method: str, url: Url, headers: Headers, body: bytes) -> Answer:
        """One request and its answer, however long it takes; no redirect is followed.

        Raises AddressRefused, TooLarge, and the errors of httpcore.
        """
        wanted = httpcore.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target)
        async with self.pool.stream(
            method,
            wanted,
            headers=[(b"Host", url.authority.encode()), *headers],
            content=body,
            extensions={"timeout": {"connect": CONNECT_S_MAX}},
        ) as response:
            parts: list[bytes] = []
            size = 0
            async for part in response.aiter_stream():
                size += len(part)
                if size > ANSWER_BYTES_MAX:
                    raise TooLarge(f"the answer has more than {ANSWER_BYTES_MAX:,} bytes")
                parts.append(part)
            named: dict[str, str] = {}
            for name, value in response.headers:
                named.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
            return Answer(response.status, named, b"".join(parts))

    async def close(self) -> None:
        """Let go of all connections."""
        await self.pool.aclose()
