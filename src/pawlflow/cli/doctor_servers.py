"""What `pawl doctor` looks at beyond this machine: a PostgreSQL server, and NATS."""

import asyncio
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, Literal

import msgspec

from pawlflow.app import connect_bus
from pawlflow.bus.port import BusError, Echo
from pawlflow.cli.output import sized

CLOCK_WARN_MS: Final = 500  # deadlines and leases begin to be read differently
CLOCK_FAIL_MS: Final = 5_000  # the length of a lease
CONNECTIONS_SHARE: Final = 0.9  # of those there may be; an engine needs three
STORAGE_SHARE: Final = 0.9


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    code: str | None = None  # of the error that was met


def library(package: str) -> Check:
    """The version of a driver."""
    try:
        return Check(package, "ok", version(package))
    except PackageNotFoundError:
        return Check(package, "warn", "not installed by a package: its version is not known")


# PostgreSQL


def server_checks(found: dict[str, Any]) -> Iterator[Check]:
    """How a server keeps what it is given, and whether more can come."""
    detail = f"PostgreSQL {found['server']}, database {found['database']}, {found['schema']}"
    yield Check("server", "ok", detail)
    yield flushing(found)
    yield commits(found["synchronous_commit"])
    if found["replicas"] and not found["synchronous_standby_names"]:
        words = "commits wait for none of them: a failover may lose what was acknowledged"
        yield Check("replicas", "warn", f"{found['replicas']}; {words}")
    elif found["replicas"]:
        yield Check("replicas", "ok", f"{found['replicas']}, and commits wait")
    if found["idle_slots"]:
        names = ", ".join(found["idle_slots"])
        words = "the server keeps its log for them until its disk is full: drop those that are gone"
        yield Check("slots", "warn", f"nobody reads {names}; {words}")
    yield clock_check(found["clock_ms"], found["clock_doubt_ms"])
    yield pooler(pooled=found["pooled"])
    yield connections(found["connections"], found["connections_max"])


def flushing(found: dict[str, Any]) -> Check:
    """Is what was committed on the disk?"""
    if found["fsync"] == "off":
        words = "fsync is off: a crash of the machine may lose what was acknowledged: set it on"
        return Check("flushing", "fail", words)
    if found["full_page_writes"] == "off":
        words = "full_page_writes is off: safe only on a file system that never tears a page"
        return Check("flushing", "warn", words)
    return Check("flushing", "ok", "every commit is flushed")


def commits(setting: str) -> Check:
    """Commits of ours wait, whatever the default is."""
    if setting in ("on", "remote_apply"):
        return Check("commits", "ok", f"synchronous_commit is {setting}")
    words = f"synchronous_commit is {setting} by default; commits of Pawl are made with on"
    return Check("commits", "ok", words)


def clock_check(offset_ms: int, doubt_ms: int) -> Check:
    """How far apart the clocks are; what the way there may account for is not held against them."""
    off = max(0, abs(offset_ms) - doubt_ms)
    detail = f"the server's clock is {offset_ms:+,} ms from this machine's (within {doubt_ms:,} ms)"
    if off < CLOCK_WARN_MS:
        return Check("clock", "ok", detail)
    status: Literal["warn", "fail"] = "warn" if off < CLOCK_FAIL_MS else "fail"
    return Check("clock", status, f"{detail}: let both follow one time server (NTP)")


def pooler(*, pooled: bool) -> Check:
    """Is there something in between?"""
    if not pooled:
        return Check("pooler", "ok", "none: pokes are heard")
    words = "one is in between: mail is looked for once a second; pokes=HOST:PORT names the server"
    return Check("pooler", "ok", words)


def connections(used: int, most: int) -> Check:
    """Is there room for an engine?"""
    detail = f"{used} of {most} connections are used"
    if used < most * CONNECTIONS_SHARE:
        return Check("connections", "ok", detail)
    return Check("connections", "warn", f"{detail}: raise max_connections, or use a pooler")


def owner_words(found: dict[str, Any]) -> str:
    """Who owns the store, and for how long if nothing more is heard."""
    nodes = [each for each in found.get("nodes", ()) if each["alive"]]
    if nodes:
        told = (
            f"process {each['node']} ({each['shards']} shards"
            + (f", lease {each['lease_ms'] / 1000:.1f} s)" if each["lease_ms"] else ")")
            for each in nodes
        )
        return "; ".join(told)
    return "nobody drives it now" if found["owner"] is None else f"process {found['owner']}"


# NATS


def bus_checks(url: str) -> list[Check]:
    """The server, JetStream, and every stream and consumer of ours."""
    try:
        return asyncio.run(look_at_bus(url))
    except BusError as error:
        return [Check("nats", "fail", f"{error} [{error.code}]", error.code)]


async def look_at_bus(url: str) -> list[Check]:
    """Connect, look, hang up."""
    bus = await connect_bus(url, "pawl doctor")
    from pawlflow.nats_health import health_of  # it needs the libraries of the extra `nats`

    try:
        found = await health_of(bus)
    finally:
        await bus.close()
    facts = found.facts
    checks = [library("nats-py"), Check("nats", "ok", f"nats-server {facts.version}")]
    if not facts.streams:
        words = (
            f"it keeps nothing ({facts.why}): start nats-server with -js, and let the account use"
        )
        return [*checks, Check("jetstream", "fail", f"{words} JetStream")]
    checks.append(storage(facts.used, facts.used_max))
    checks += [echo_check(f"stream:{name}", each) for name, each in found.streams.items()]
    checks += [echo_check(f"consumer:{name}", each) for name, each in found.consumers.items()]
    return checks


def storage(used: int, most: int) -> Check:
    """Is there room for more?"""
    detail = f"on; {sized(used)} used" + (f" of {sized(most)}" if most >= 0 else "")
    if most < 0 or used < most * STORAGE_SHARE:
        return Check("jetstream", "ok", detail)
    return Check("jetstream", "warn", f"{detail}: raise max_file_store, or the account's limit")


def echo_check(name: str, echo: Echo | None) -> Check:
    """What the server says it keeps, held against what is asked for."""
    kind, _, plain = name.partition(":")
    if echo is None:
        return Check(name, "ok", "not there yet: an engine with NATS makes it")
    if echo.differs:
        told = "; ".join(
            f"{setting} is {found or 'nothing'}, wanted {wanted}"
            for setting, (wanted, found) in echo.differs.items()
        )
        way = f"delete the {kind} {plain}, and it is made anew; what it held is sent again"
        return Check(name, "fail", f"{told}: {way}")
    if kind == "stream":
        return Check(name, "ok", f"as asked for; {echo.waiting:,} messages, {sized(echo.bytes)}")
    words = f"as asked for; {echo.waiting:,} wait, {echo.unanswered:,} are being worked on"
    return Check(name, "ok", words)
