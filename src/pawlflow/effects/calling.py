"""Calling: an attempt carried out by one HTTP request, and its answer as an outcome.

The request bears the step key, the same for every attempt and after every crash: an endpoint that
keeps it does nothing twice. docs/http.md has the envelope, the headers and the answers.
"""

import asyncio
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import quote, urljoin

import msgspec

from pawlflow.definition.express.template import SECRET
from pawlflow.effects import headers as named
from pawlflow.effects.addresses import AddressRefused, Url, UrlRefused, url_of
from pawlflow.effects.context import LATER, Context, Failing
from pawlflow.effects.endpoints import HEADER_VALUE, Endpoint
from pawlflow.effects.registry import Executor, Registry, Source
from pawlflow.effects.secrets import NOTHING, Hidden, SecretMissing, looked_up
from pawlflow.model.intents import Call
from pawlflow.model.trouble import PawlError

SAID_MAX: Final = 500  # characters of an answer in a message
MARGIN_S: Final = 1.0  # kept of an attempt's timeout, so that it ends as what it is
CODE: Final = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
FOLLOWED: Final = (307, 308)  # others would turn the request into another one
JSON: Final = b"application/json"


class HttpExecutor(Executor, frozen=True):
    """An effect whose executor is an endpoint."""

    def arguments(self, call: Call, ctx: Context | None, params: Any = None) -> dict[str, Any]:
        """The call as it is; its parameters with secrets in them, if it has any."""
        return {"ctx": ctx, "call": call, "params": call.params.value if params is None else params}

    async def close(self) -> None:
        """Let go of its connections."""
        await self.fn.__self__.close()  # type: ignore[attr-defined]


def executor_for(endpoint: Endpoint, registry: Registry) -> Executor:
    """Who calls an endpoint. Raises PawlError if the client is not installed."""
    try:
        from pawlflow.effects import connections
    except ImportError as missing:
        message = "HTTP endpoints need a client: pip install 'pawlflow[http]'"
        raise PawlError("http.client", message) from missing
    caller = Caller(endpoint, registry, connections)
    source = Source("http", f"{endpoint.method} {endpoint.url}", "")
    return HttpExecutor(
        name=endpoint.name,
        fn=caller.call,
        is_async=True,
        names=("call", "params"),
        required=frozenset(),
        takes_ctx=True,
        takes_any=False,
        source=source,
    )


class Caller:
    """Calls one endpoint, over connections that are kept."""

    def __init__(self, endpoint: Endpoint, registry: Registry, connections: Any) -> None:
        self.endpoint = endpoint
        self.registry = registry
        self.kit = connections  # the module, imported when the first endpoint is registered
        self.resolving = connections.resolve
        self.kept: Any = None

    async def close(self) -> None:
        """Let go of the connections."""
        kept, self.kept = self.kept, None
        if kept is not None:
            await kept.close()

    async def call(self, ctx: Context, call: Call, params: Any) -> Any:
        """One attempt. Raises Failing with the class that the answer stands for."""
        began = asyncio.get_running_loop().time()
        beats = asyncio.ensure_future(beating(ctx, call)) if call.heartbeat_ms else None
        hidden = NOTHING
        try:
            headers, hidden = await self.headers(ctx)
            body = msgspec.json.encode(envelope_of(ctx, call, params))
            answer = await self.ask(headers, body)
            return await self.outcome(ctx, call, answer, hidden, began)
        except Failing as error:
            said, findings = hidden.text(str(error)), hidden.value(error.findings)
            raise Failing(error.kind, error.code, said, findings) from None
        finally:
            if beats is not None:
                beats.cancel()

    async def headers(self, ctx: Context) -> tuple[list[tuple[bytes, bytes, bool]], Hidden]:
        """What is sent with a request, and the secrets in it. The flag: not to another host."""
        values: dict[str, str] = {}
        provider = self.registry.secrets
        for _, parts in self.endpoint.headers:
            for part in parts:
                name = part[SECRET] if isinstance(part, dict) else None
                if name is None or name in values:
                    continue
                if provider is None:
                    raise SecretMissing(f"there is no place of secrets, for {name!r}")
                values[name] = await asyncio.to_thread(looked_up, provider, ctx.tenant, name)
        headers = [(name, value, False) for name, value in headers_of(ctx)]
        for name, parts in self.endpoint.headers:
            text = "".join(p if isinstance(p, str) else values[p[SECRET]] for p in parts)
            if not HEADER_VALUE.fullmatch(text) or text != text.strip():
                said = f"the value of the header {name} has signs that no header may have"
                raise Failing("terminal", "http.header", said)
            headers.append((name.encode(), text.encode(), True))
        return headers, Hidden(values) if values else NOTHING

    async def ask(self, headers: list[tuple[bytes, bytes, bool]], body: bytes) -> Any:
        """Send the request, and after it where redirects lead, within the time it has."""
        endpoint = self.endpoint
        url, left = endpoint.url, endpoint.redirects
        try:
            async with asyncio.timeout(endpoint.timeout_ms / 1000):
                while True:
                    own = url.host == endpoint.url.host
                    sent = [(name, value) for name, value, bound in headers if own or not bound]
                    answer = await self.send(url, sent, body)
                    if answer.status not in FOLLOWED or not left:
                        return answer
                    url, left = self.next_url(url, answer), left - 1
        except TimeoutError:
            said = f"{url} did not answer within {endpoint.timeout_ms} ms"
            raise Failing("transient", "http.timeout", said) from None

    async def send(self, url: Url, headers: list[tuple[bytes, bytes]], body: bytes) -> Any:
        """One request. Raises Failing for all that may happen on the way."""
        endpoint, kit, core = self.endpoint, self.kit, self.kit.httpcore
        if self.kept is None:
            self.kept = kit.Connections(endpoint.allowed, endpoint.ca, self.resolving)
        try:
            return await self.kept.send(endpoint.method, url, headers, body)
        except AddressRefused as error:
            raise Failing("terminal", "http.refused", str(error)) from None
        except kit.TooLarge as error:
            raise Failing("terminal", "http.too_large", f"{url}: {error}") from None
        except core.TimeoutException as error:
            said = f"{url} could not be connected to in time ({type(error).__name__})"
            raise Failing("transient", "http.timeout", said) from None
        except (core.NetworkError, core.RemoteProtocolError, OSError) as error:
            said = f"{url}: {type(error).__name__}: {error}"
            raise Failing("transient", "http.unreachable", said) from None
        except core.LocalProtocolError as error:
            raise Failing("terminal", "http.header", f"{url}: {error}") from None

    def next_url(self, url: Url, answer: Any) -> Url:
        """Where a redirect leads: by the same rules, to a host that was named, and never down."""
        given = answer.headers.get("location", "")
        whole = urljoin(f"{url.scheme}://{url.authority}{url.target}", given)
        allowed = self.endpoint.allowed
        try:
            found = url_of(whole if given else "", allowed)
        except UrlRefused as error:
            raise Failing("terminal", "http.refused", f"{url} redirects: {error}") from None
        if found.scheme != url.scheme and found.scheme == "http":
            said = f"{url} redirects to {found}, which is not encrypted"
            raise Failing("terminal", "http.refused", said)
        if found.host != self.endpoint.url.host and not allowed.host(found.host):
            said = f'{url} redirects to {found}: allow=["{found.host}"] if it is meant'
            raise Failing("terminal", "http.refused", said)
        return found

    async def outcome(
        self, ctx: Context, call: Call, answer: Any, hidden: Hidden, began: float
    ) -> Any:
        """The result an answer holds, or that it comes later. Raises Failing for all others."""
        status, endpoint = answer.status, self.endpoint
        if 200 <= status < 300:
            if status == 202 or endpoint.mode == "async":
                return LATER
            result = result_of(endpoint, answer)
            if held := hidden.held_by(result):
                names = ", ".join(sorted(held))
                said = f"{endpoint.url} was called, but its answer holds the secret {names}"
                raise Failing("terminal", "secret.in_result", said)
            return result
        code, said, findings = told_by(answer)
        message = f"{endpoint.method} {endpoint.url} answered {status}{said}"
        if status == 422 and findings:
            raise Failing("validation", code or "http.findings", message, findings)
        if not endpoint.is_transient(status):
            raise Failing("terminal", code or "http.status", message)
        wanted = retry_after_of(answer.headers)
        if wanted:
            await self.wait(ctx, call, wanted, began)
            message = f"{message} (Retry-After {wanted:g} s)"
        raise Failing("transient", code or "http.status", message)

    async def wait(self, ctx: Context, call: Call, wanted: float, began: float) -> None:
        """Hold the attempt back as long as the endpoint asks, and its own timeout lets it."""
        loop = asyncio.get_running_loop()
        limits = [wanted, self.endpoint.retry_after_ms / 1000]
        if call.timeout_ms is not None:
            limits.append(call.timeout_ms / 1000 - (loop.time() - began) - MARGIN_S)
        span = max(0.0, min(limits))
        if span < wanted:
            ctx.log(f"Retry-After {wanted:g} s is cut to {span:.3f} s by what the attempt may take")
        await asyncio.sleep(span)


async def beating(ctx: Context, call: Call) -> None:
    """Signs of life, as long as the request is under way."""
    while True:
        await asyncio.sleep((call.heartbeat_ms or 0) / 3_000)
        ctx.heartbeat()


def envelope_of(ctx: Context, call: Call, params: Any) -> dict[str, Any]:
    """The body of a request. Members are only ever added."""
    return {
        "effect": call.target,
        "params": params,
        "key": ctx.key,
        "attempt": ctx.attempt,
        "direction": call.direction,
        "instance": ctx.instance,
        "tenant": ctx.tenant,
        "workflow": ctx.workflow,
        "step": ctx.step,
        "item": ctx.item,
        "round": call.round,
        "feedback": ctx.feedback,
    }


def headers_of(ctx: Context) -> list[tuple[bytes, bytes]]:
    """What every request says of itself."""
    tenant = told(ctx.tenant)
    return [
        (b"Content-Type", JSON),
        (b"Accept", b"application/json, application/problem+json"),
        (b"Accept-Encoding", b"identity"),
        (b"User-Agent", b"pawl"),
        (b"Idempotency-Key", ctx.key.encode()),
        (named.STEP_ID.encode(), ctx.key.encode()),
        (named.INSTANCE_ID.encode(), named.instance_uuid(ctx.tenant, ctx.instance).encode()),
        (named.INSTANCE_NAME.encode(), told(ctx.instance)),
        (named.ATTEMPT.encode(), str(ctx.attempt).encode()),
        (b"X-Workflow-Tenant-Id", tenant),
        (named.TENANT.encode(), tenant),
    ]


def told(name: str) -> bytes:
    """A name as a header may carry it; it may hold any letter."""
    return quote(name, safe=" !\"#$&'()*+,/:;<=>?@[\\]^`{|}").strip().encode()


def result_of(endpoint: Endpoint, answer: Any) -> Any:
    """The JSON of an answer; nothing at all is null."""
    coded = answer.headers.get("content-encoding", "identity")
    if coded != "identity":
        said = f"{endpoint.url} answered {answer.status} in {coded!r}, which was not asked for"
        raise Failing("terminal", "http.answer", said)
    if not answer.body.strip():
        return None
    try:
        return msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        kind = answer.headers.get("content-type", "no Content-Type")
        said = f"{endpoint.url} answered {answer.status} with {kind}, which is no JSON: {error}"
        raise Failing("terminal", "http.answer", said) from None


def told_by(answer: Any) -> tuple[str, str, list[Any]]:
    """What an answer says went wrong: its code, its words, and its findings."""
    try:
        body = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = answer.body.decode("utf-8", "replace")
        words = "".join(sign if sign.isprintable() else " " for sign in text).strip()
        is_text = answer.headers.get("content-type", "").startswith("text/plain")
        return "", f": {words[:SAID_MAX]}" if words and is_text else "", []
    if not isinstance(body, dict):
        return "", "", body if isinstance(body, list) else []
    inner = body.get("error")
    told: Mapping[str, Any] = inner if isinstance(inner, dict) else body
    texts = [told.get(name) for name in ("title", "detail", "message")]
    words = ": ".join(dict.fromkeys(each for each in texts if isinstance(each, str) and each))
    code = told.get("code")
    findings = told.get("findings", told.get("errors", []))
    return (
        code if isinstance(code, str) and CODE.fullmatch(code) else "",
        f": {words[:SAID_MAX]}" if words else "",
        findings if isinstance(findings, list) else [findings],
    )


def retry_after_of(headers: Mapping[str, str]) -> float:
    """The seconds a Retry-After asks for; a date counts from the answer's own Date."""
    given = headers.get("retry-after", "").strip()
    if given.isascii() and given.isdigit():
        return float(given[:9])
    try:
        until, since = map(parsedate_to_datetime, (given, headers.get("date", "")))
        return max(0.0, (until - since).total_seconds())
    except (ValueError, TypeError):
        return 0.0
