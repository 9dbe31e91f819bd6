"""The URL of a PostgreSQL store: what libpq reads, what we read, and what may be shown of it."""

import re
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import msgspec

from pawlflow.store.port import StoreError

SCHEMES: Final = ("postgresql://", "postgres://")
OURS: Final = ("schema", "pokes", "wait", "claim")  # options that libpq never sees
SECRETS: Final = ("password", "sslpassword", "passfile", "sslkey")
SCHEMA: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}\Z")
WAIT_S: Final = 60.0  # for a server that is away: a failover takes seconds, a restart less
WAY_OUT: Final = (
    "use postgresql://USER:PASSWORD@HOST:PORT/DATABASE?OPTIONS, "
    "with the characters @ / ? # % of a password written as %40 %2F %3F %23 %25"
)
# A connection that is dead is noticed within half a minute, also by who only waits for an answer.
DEFAULTS: Final = {
    "application_name": "pawl",
    "connect_timeout": "5",
    "target_session_attrs": "read-write",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}


class Where(msgspec.Struct, frozen=True):
    """Where a store is. `told` may be shown to anybody."""

    told: str
    url: str  # for libpq
    schema: str = "pawl"
    pokes: str = "auto"  # auto, on, off, or the server to hear them from
    wait_s: float = WAIT_S
    free: bool = False  # claim it only if nobody owns it

    def options(self) -> dict[str, str]:
        """What libpq is told beside the URL: our defaults, where the URL says nothing else."""
        given = {name for name, _ in parse_qsl(urlsplit(self.url).query)}
        return {name: value for name, value in DEFAULTS.items() if name not in given}

    def listening(self) -> "Where":
        """Where pokes are heard from: a server without a pooler before it."""
        if self.pokes in ("auto", "on"):
            return self
        if self.pokes.startswith(SCHEMES):
            return msgspec.structs.replace(where_of(self.pokes), schema=self.schema)
        parts = urlsplit(self.url)
        who = parts.netloc.rpartition("@")[0]
        direct = parts._replace(netloc=f"{who}@{self.pokes}" if who else self.pokes).geturl()
        return msgspec.structs.replace(self, url=direct)


def is_postgres(url: str) -> bool:
    """Is this the URL of such a store?"""
    return url.startswith(SCHEMES)


def where_of(url: str) -> Where:
    """Read a URL. Raises StoreError("store.url"), whose message shows nothing of a password."""
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as trouble:
        raise unread() from trouble
    plain = re.fullmatch(r"[^@]*@?[^@]*", parts.netloc) and not parts.fragment
    if not is_postgres(url) or not plain or not _ports_are_numbers(parts.netloc):
        raise unread()
    ours = {name: value for name, value in query if name in OURS}
    theirs = [(name, value) for name, value in query if name not in OURS]
    rest = urlencode(theirs, quote_via=quote)  # libpq takes a plus for a plus
    schema = ours.get("schema", "pawl")
    if not SCHEMA.match(schema) or schema.startswith("pg_"):
        raise bad_option("schema", "a name of letters, digits and _, not beginning with pg_")
    if ours.get("claim", "take") not in ("take", "free"):
        raise bad_option("claim", "take or free")
    try:
        wait = float(ours.get("wait", WAIT_S))
    except ValueError as trouble:
        raise bad_option("wait", "a number of seconds") from trouble
    return Where(
        told=re.sub(r"([?&])claim=free(&|$)", lambda m: m[1] if m[2] else "", masked(url)),
        url=parts._replace(scheme="postgresql", query=rest).geturl(),
        schema=schema,
        pokes=ours.get("pokes", "auto"),
        wait_s=wait,
        free=ours.get("claim") == "free",
    )


def _ports_are_numbers(netloc: str) -> bool:
    """A slash in a password makes its beginning look like a port."""
    hosts = netloc.rpartition("@")[2].split(",")
    ports = (re.sub(r"\A\[[^]]*\]", "", host).partition(":")[2] for host in hosts)
    return all(not port or port.isdecimal() for port in ports)


def unread() -> StoreError:
    """The URL cannot be read. It is not quoted: what is wrong may be its password."""
    return StoreError("store.url", f"the URL of the PostgreSQL store cannot be read: {WAY_OUT}")


def bad_option(name: str, wanted: str) -> StoreError:
    """An option of ours has a value that means nothing."""
    return StoreError("store.url", f"the option {name} of the PostgreSQL URL must be {wanted}")


def masked(url: str) -> str:
    """A URL as it may be shown: without its password, wherever that stands."""
    if not is_postgres(url):
        return url
    scheme, _, rest = url.partition("://")
    ends = rest.rfind("@")
    who, where = (rest[:ends], rest[ends + 1 :]) if ends >= 0 else ("", rest)
    user = who.partition(":")[0]
    base, _, query = where.partition("?")
    kept = [part for part in query.split("&") if part and not _is_secret(part)]
    shown = f"{base}?{'&'.join(kept)}" if kept else base
    return f"{scheme}://{user}@{shown}" if user else f"{scheme}://{shown}"


def _is_secret(part: str) -> bool:
    """Does an option of a URL hold a secret, or another URL that may?"""
    name, _, value = part.partition("=")
    return unquote(name) in SECRETS or "@" in unquote(value)


def scrubbed(text: Any, where: Where) -> str:
    """Words of the driver or the server, on one line, without the password if they quote it."""
    words = " ".join(str(text).split())
    parts = urlsplit(where.url)
    given = [value for name, value in parse_qsl(parts.query) if name in SECRETS]
    # To mask what is in the URL anyway, a database that is named like the password, would tell it.
    plain = {parts.username, parts.hostname, parts.path.strip("/")}
    for secret in {parts.password, unquote(parts.password or ""), *given} - plain:
        if secret:
            before, after = (r"\b" if re.match(r"\w", secret[end]) else "" for end in (0, -1))
            words = re.sub(f"{before}{re.escape(secret)}{after}", "***", words)
    return words
