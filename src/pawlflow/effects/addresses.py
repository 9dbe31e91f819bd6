"""Addresses: which URLs may be called, and which addresses may be connected to.

Deny by default. A URL is read by one strict grammar, so that no two readers of it can disagree;
what it resolves to must be a public address, every one of them, unless the registration allows
more by name or network. Nothing here connects: who does uses the addresses that were checked.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
PORTS: Final = {"http": 80, "https": 443}
URL_MAX: Final = 2_000  # characters; longer ones are cut by servers and proxies on the way
GRAMMAR: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<target>/[!$&'()*+,;=:@/A-Za-z0-9._~%-]*)?"
    r"(?P<query>\?[!$&'()*+,;=:@/?A-Za-z0-9._~%-]*)?"
)
LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")  # a last label that old readers take for IPv4
ESCAPES: Final = re.compile(r"%(?![0-9A-Fa-f]{2})|%(0[0-9A-Fa-f]|1[0-9A-Fa-f]|7[fF])")

# Names that mean this machine, this network, or the credentials of a machine in a cloud.
INSIDE: Final = (
    *("localhost", "localdomain", "local", "internal", "intranet", "private", "corp", "home"),
    *("lan", "arpa", "onion", "invalid"),
)
METADATA: Final[frozenset[Ip]] = frozenset(
    map(
        ipaddress.ip_address,
        (
            *("169.254.169.254", "169.254.169.253", "169.254.170.2", "169.254.170.23"),
            *("100.100.100.200", "192.0.0.192", "168.63.129.16"),
            *("fd00:ec2::254", "fd00:ec2::253", "fd00:ec2::23", "fd20:ce::254"),
        ),
    )
)
# The special-purpose registries of IANA, and all that is not handed out. Written down here, since
# what `is_global` says changes with the version of Python.
DENIED_4: Final = tuple(
    map(
        ipaddress.IPv4Network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
            *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24"),
            *("192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24"),
            *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        ),
    )
)
PUBLIC_6: Final = ipaddress.IPv6Network("2000::/3")  # mapped, NAT64, ULA and link-local are not in
DENIED_6: Final = tuple(
    map(
        ipaddress.IPv6Network,
        # protocols and Teredo, documentation, 6to4, AS112, documentation
        ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
    )
)
ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)  # an IPv4 address stands in the last four bytes


class UrlRefused(Exception):  # noqa: N818  # of an attempt, like Terminal
    """A URL that is not called. The words name the rule and the way out."""


class AddressRefused(Exception):  # noqa: N818
    """An address that is not connected to."""


class Url(msgspec.Struct, frozen=True):
    """A URL, taken apart once."""

    scheme: str
    host: str  # in small letters; IPv6 without brackets
    port: int
    target: str  # path and query

    @property
    def authority(self) -> str:
        """What a Host header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target.partition('?')[0]}"


class Allowed(msgspec.Struct, frozen=True):
    """What a registration allows beyond the public internet."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()
    ports: frozenset[int] = frozenset()

    def host(self, host: str) -> bool:
        """Is this host allowed by its name?"""
        return host in self.hosts

    def address(self, address: Ip) -> bool:
        """Is this address allowed? One of a cloud's metadata only if it is named by itself."""
        inside = [each for each in self.networks if address in each]
        if address in METADATA:
            return any(each.num_addresses == 1 for each in inside)
        return bool(inside)


def allowed_of(allow: Iterable[str], ports: Iterable[int] = ()) -> Allowed:
    """What `allow` and `ports` of a registration mean. Raises ValueError, naming what is wrong."""
    hosts: set[str] = set()
    networks: list[Network] = []
    for each in allow:
        try:
            networks.append(ipaddress.ip_network(each))
        except ValueError:
            if "/" in each or NUMBER.fullmatch(each.rpartition(".")[2]) or not is_name(each):
                said = f"allow={each!r} is neither a host name, an address nor a network"
                raise ValueError(f"{said} such as 10.1.0.0/16") from None
            hosts.add(each)
    listed = frozenset(ports)
    for port in listed:
        if type(port) is not int or not 0 < port < 65_536:
            raise ValueError(f"ports={port!r} is no port: 1 to 65535")
    return Allowed(frozenset(hosts), tuple(networks), listed)


def is_name(host: str) -> bool:
    """Is this a host's name, in the one spelling that is taken?"""
    return 0 < len(host) <= 253 and all(LABEL.fullmatch(label) for label in host.split("."))


def url_of(text: str, allowed: Allowed) -> Url:
    """Read a URL. Raises UrlRefused for anything that two readers might take differently."""
    if len(text) > URL_MAX:
        raise UrlRefused(f"the URL has more than {URL_MAX} characters")
    found = GRAMMAR.fullmatch(text)
    if found is None:
        raise UrlRefused(f"{shown(text)} is no URL that is called: {why_not(text)}")
    target = (found["target"] or "/") + (found["query"] or "")
    if ESCAPES.search(target):
        raise UrlRefused(f"{shown(text)} has a % that stands for no character, or for a control")
    scheme = found["scheme"]
    port = PORTS[scheme] if found["port"] is None else int(found["port"])
    if not 0 < port < 65_536 or (found["port"] or "").startswith("0"):
        raise UrlRefused(f"{shown(text)} has no port: 1 to 65535")
    host = found["host"].lower()
    literal = literal_in(host, text)
    check_host(str(literal or host), literal, allowed)
    check_port(port, str(literal or host), literal, allowed)
    return Url(scheme, str(literal or host), port, target)


def why_not(text: str) -> str:
    """What of the grammar a text does not keep."""
    if not text.startswith(("http://", "https://")):
        return "it must begin with https:// or http://, in small letters"
    rest = text.partition("://")[2]
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in host:
        return "a user or password in it is refused; give headers, with secrets"
    if "#" in rest:
        return "a fragment (#) is never sent"
    if not text.isascii():
        return "write a name of other letters as xn--..., and a path with %"
    if any(not sign.isprintable() or sign in ' \\<>"{}|^`' for sign in text):
        return "spaces, controls, backslashes and quotes are refused"
    if "%" in host:
        return "a % in the host is refused: no zone, no escape"
    return "after // stands a host's name or address, then perhaps :PORT, /PATH and ?QUERY"


def shown(text: str) -> str:
    """A URL in a message: without what may be a password, or a query, and not too long."""
    bare = re.sub(r"//[^/?#]*@", "//...@", text.partition("?")[0])
    return repr(bare[:200])


def literal_in(host: str, text: str) -> Ip | None:
    """The address a host is, if it is one. Raises UrlRefused for other spellings of one."""
    try:
        if host.startswith("["):
            return ipaddress.IPv6Address(host[1:-1])
        if NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
            return ipaddress.IPv4Address(host)
    except ValueError:
        said = "write an address as 192.0.2.1 or [2001:db8::1]"
        raise UrlRefused(f"{shown(text)}: {said}") from None
    if not is_name(host):
        raise UrlRefused(f"{shown(text)}: {host!r} is no host's name: no dot at its end or doubled")
    return None


def check_host(host: str, literal: Ip | None, allowed: Allowed) -> None:
    """Refuse names and addresses that mean something inside."""
    if literal is not None:
        try:
            check_address(literal, allowed)
        except AddressRefused as error:
            raise UrlRefused(str(error)) from None
    elif not allowed.host(host) and ("." not in host or host.rpartition(".")[2] in INSIDE):
        raise UrlRefused(
            f"{host} is a name of this machine or network, which is not called by default: "
            f'allow=["{host}"] if it is meant'
        )


def check_port(port: int, host: str, literal: Ip | None, allowed: Allowed) -> None:
    """Refuse ports that are not listed, of hosts that are not allowed by themselves."""
    named = allowed.host(host) or (literal is not None and allowed.address(literal))
    if not named and port not in allowed.ports and port not in PORTS.values():
        raise UrlRefused(f"port {port} of {host} is not called by default: ports=[{port}] lists it")


def check_addresses(host: str, found: Sequence[str], allowed: Allowed) -> list[str]:
    """What a host resolved to, if every address of it may be connected to.

    One that may not makes the whole answer suspicious. Raises AddressRefused.
    """
    addresses = [ipaddress.ip_address(each) for each in found]
    for address in addresses:
        if not allowed.host(host) or address in METADATA:
            check_address(address, allowed, host)
    return [str(each) for each in addresses]


def check_address(address: Ip, allowed: Allowed, host: str = "") -> None:
    """Refuse an address that is not public, unless it is allowed. Raises AddressRefused."""
    kind = kind_of(address)
    if kind is None or allowed.address(address):
        return
    where = f"{host} is at {address}, " if host else f"{address} is "
    way = f'allow=["{address}"] if it is meant'
    raise AddressRefused(f"{where}{kind}, which is not called by default: {way}")


def kind_of(address: Ip) -> str | None:
    """What an address is if it is not a public one."""
    if address in METADATA:
        return "an address of a cloud's metadata"
    if address.is_loopback:
        return "an address of this machine"
    if isinstance(address, ipaddress.IPv4Address):
        return "no public address" if any(address in each for each in DENIED_4) else None
    if address.scope_id is not None:
        return "an address of one network card"
    if address not in PUBLIC_6 or any(address in each for each in DENIED_6):
        return "no public address"
    if (int(address) >> 32) & 0xFFFF_FFFF in ISATAP:
        return "another address in disguise"
    return None
