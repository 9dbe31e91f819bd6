"""Endpoints: an effect that is carried out by HTTP, as it is registered and checked."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from pawlflow.definition.express.template import SECRET, is_secret
from pawlflow.definition.fields import DURATION_FORM, duration_ms
from pawlflow.effects.addresses import Allowed, Url, UrlRefused, allowed_of, url_of
from pawlflow.model.ids import EFFECT_NAME
from pawlflow.model.trouble import PawlError

METHODS: Final = ("POST", "PUT", "PATCH", "DELETE")
TIMEOUT_MS: Final = 30_000  # of one request, until its answer is read
TIMEOUT_MS_MAX: Final = 3_600_000
RETRY_AFTER_MS: Final = 300_000  # a Retry-After is waited for, at most so long
REDIRECTS_MAX: Final = 5
HEADERS_MAX: Final = 50
TRANSIENT: Final = (408, 425, 429, "5xx")
HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
HEADER_VALUE: Final = re.compile(r"[\x20-\x7e\t]*")
CLASS_OF: Final = re.compile(r"[345]xx")
OURS: Final = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"),
        *("keep-alive", "proxy-connection", "proxy-authorization", "expect", "content-type"),
        *("accept-encoding", "idempotency-key", "x-tenant-id"),
    }
)
Part = str | dict[str, str]  # a text, or {"$secret": NAME}
Header = str | Mapping[str, str] | Sequence[str | Mapping[str, str]]
Mode = Literal["sync", "async"]


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where an effect is carried out, and how its answers are taken."""

    name: str
    url: Url
    method: str
    headers: tuple[tuple[str, tuple[Part, ...]], ...]
    timeout_ms: int
    mode: Mode
    retry_on: frozenset[int | str]
    retry_after_ms: int
    redirects: int
    ca: str | None
    allowed: Allowed

    def is_transient(self, status: int) -> bool:
        """May a request that was answered so succeed later?"""
        return status in self.retry_on or f"{status // 100}xx" in self.retry_on


def endpoint_of(name: Any, url: Any, **options: Any) -> Endpoint:
    """An endpoint from its options. Raises PawlError, naming the option and the way out."""
    if not isinstance(name, str) or not EFFECT_NAME.match(name):
        raise wrong(name, f"{name!r} is no effect: a letter, then letters, digits, . _ / or -")
    known = ", ".join(OPTIONS)
    for option in options:
        if option not in OPTIONS:
            raise wrong(name, f"{option!r} is no option of an endpoint; known are: {known}")
    given = {**OPTIONS, **options}
    try:
        allowed = allowed_of(texts(name, "allow", given["allow"]), given["ports"])
        place = url_of(url if isinstance(url, str) else repr(url), allowed)
    except UrlRefused as error:
        raise PawlError("http.refused", f"endpoint {name}: {error}") from None
    except (TypeError, ValueError) as error:
        raise wrong(name, str(error)) from None
    return Endpoint(
        name=name,
        url=place,
        method=one_of(name, "method", given["method"], METHODS),
        headers=headers_of(name, given["headers"] or {}),
        timeout_ms=span_of(name, "timeout", given["timeout"]),
        mode=one_of(name, "mode", given["mode"], ("sync", "async")),
        retry_on=statuses_of(name, given["retry_on"]),
        retry_after_ms=span_of(name, "retry_after", given["retry_after"]),
        redirects=redirects_of(name, given["redirects"]),
        ca=ca_of(name, given["ca"]),
        allowed=allowed,
    )


OPTIONS: Final[dict[str, Any]] = {
    "method": "POST",
    "headers": None,
    "timeout": TIMEOUT_MS / 1000,
    "mode": "sync",
    "retry_on": TRANSIENT,
    "retry_after": RETRY_AFTER_MS / 1000,
    "allow": (),
    "ports": (),
    "redirects": 0,
    "ca": None,
}


def wrong(name: str, message: str) -> PawlError:
    """An endpoint that cannot be registered."""
    return PawlError("http.endpoint", f"endpoint {name}: {message}")


def one_of(name: str, option: str, value: Any, known: Sequence[str]) -> Any:
    """One of several words."""
    if value not in known:
        raise wrong(name, f"{option}={value!r} is none; use {' or '.join(known)}")
    return value


def texts(name: str, option: str, value: Any) -> list[str]:
    """A list of texts; a single one is a common slip."""
    if isinstance(value, str) or not all(isinstance(each, str) for each in value):
        raise wrong(name, f"{option}={value!r} must be a list of texts")
    return list(value)


def span_of(name: str, option: str, value: Any) -> int:
    """Milliseconds of `"30s"`, or of a number of seconds."""
    ms = duration_ms(value) if isinstance(value, str) else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        ms = duration_ms("0s") if value == 0 else int(value * 1000)  # type: ignore[assignment]
    if ms is None or not (0 if option == "retry_after" else 1) <= ms <= TIMEOUT_MS_MAX:
        raise wrong(name, f"{option}={value!r} is not {DURATION_FORM}, of at most an hour")
    return int(ms)


def statuses_of(name: str, value: Any) -> frozenset[int | str]:
    """Which answers are transient: `[429, 503]`, `"5xx"` for all of a class."""
    found = frozenset([value] if isinstance(value, str | int) else value)
    for each in found:
        is_status = type(each) is int and 300 <= each <= 599
        if not is_status and not (isinstance(each, str) and CLASS_OF.fullmatch(each)):
            raise wrong(name, f"retry_on={each!r} is no status: 300 to 599, or such as '5xx'")
    return found


def redirects_of(name: str, value: Any) -> int:
    """How many redirects are followed."""
    if type(value) is not int or not 0 <= value <= REDIRECTS_MAX:
        raise wrong(name, f"redirects={value!r} must be 0 to {REDIRECTS_MAX}")
    return value


def ca_of(name: str, value: Any) -> str | None:
    """A file of certificates that are trusted instead of the system's."""
    if value is None:
        return None
    if not Path(value).is_file():
        raise wrong(name, f"ca={str(value)!r}: there is no such file of certificates")
    return str(value)


def headers_of(name: str, given: Any) -> tuple[tuple[str, tuple[Part, ...]], ...]:
    """Headers, their values in parts. No value is told: it may be what nobody should see."""
    if not isinstance(given, Mapping) or len(given) > HEADERS_MAX:
        raise wrong(name, f"headers must be a mapping of at most {HEADERS_MAX}")
    found: dict[str, tuple[Part, ...]] = {}
    for header, value in given.items():
        if not isinstance(header, str) or not HEADER_NAME.fullmatch(header):
            raise wrong(name, f"{str(header)[:100]!r} is no name of a header")
        lower = header.lower()
        if lower in OURS or lower.startswith("x-workflow-"):
            raise wrong(name, f"the header {header} is set by the engine")
        if lower in map(str.lower, found):
            raise wrong(name, f"the header {header} is given twice")
        found[header] = parts_of(name, header, value)
    return tuple(found.items())


def parts_of(name: str, header: str, value: Any) -> tuple[Part, ...]:
    """The parts of a value: texts, and references to secrets."""
    parts: Any = [value] if isinstance(value, str | Mapping) else value
    found: list[Part] = []
    for part in parts if isinstance(parts, Iterable) else [parts]:
        if isinstance(part, str) and HEADER_VALUE.fullmatch(part):
            found.append(part)
        elif isinstance(part, dict) and is_secret(part) and isinstance(part[SECRET], str):
            found.append({SECRET: part[SECRET]})
        else:
            form = '"text", {"$secret": NAME}, or a list of these'
            raise wrong(
                name, f"the value of the header {header} must be {form}, in printable ASCII"
            )
    return tuple(found)
