"""Endpoints of an engine: effects that are carried out by HTTP instead of by a function."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from pawlflow.effects.calling import executor_for
from pawlflow.effects.endpoints import TRANSIENT, Header, Mode, endpoint_of
from pawlflow.effects.registry import Registry


class Offering(Protocol):
    """What is needed of an engine."""

    registry: Registry

    def offered(self) -> None:
        """Calls that waited for an executor may have one now."""
        ...


class Endpoints:
    """How endpoints are registered."""

    def http(  # noqa: PLR0913  # what may be said of an endpoint
        self: Offering,
        name: str,
        url: str,
        *,
        method: str = "POST",
        headers: Mapping[str, Header] | None = None,
        timeout: str | float = "30s",
        mode: Mode = "sync",
        retry_on: Iterable[int | str] = TRANSIENT,
        retry_after: str | float = "5m",
        allow: Iterable[str] = (),
        ports: Iterable[int] = (),
        redirects: int = 0,
        ca: str | Path | None = None,
    ) -> None:
        """Let an endpoint carry out an effect: `pawl.http("payment.charge", "https://...")`.

        Headers may hold `{"$secret": NAME}`. With `mode="async"`, and after every 202, the attempt
        stays open until `complete`. Only public addresses are called, unless `allow` lists a host,
        address or network. Raises PawlError for what cannot be called.
        """
        endpoint = endpoint_of(
            name,
            url,
            method=method,
            headers=headers,
            timeout=timeout,
            mode=mode,
            retry_on=retry_on,
            retry_after=retry_after,
            allow=allow,
            ports=ports,
            redirects=redirects,
            ca=ca,
        )
        self.registry.put(executor_for(endpoint, self.registry))
        self.offered()
