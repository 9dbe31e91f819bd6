"""What is called and what is not: hundreds of forms of URLs that lead inside, and none does."""

import ipaddress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.effects.addresses import (
    METADATA,
    AddressRefused,
    Allowed,
    UrlRefused,
    allowed_of,
    check_addresses,
    kind_of,
    url_of,
)

NOTHING = Allowed()

# Names outside that resolve to something inside: one address of it is enough.
NAMES = [
    *(
        ("127.0.0.1.nip.io", ["127.0.0.1"]),
        ("localtest.me", ["127.0.0.1"]),
        ("a.example.com", ["::1"]),
    ),
    *(("b.example.com", ["10.1.2.3"]), ("c.example.com", ["93.184.215.14", "10.0.0.1"])),
    *(
        ("d.example.com", ["93.184.215.14", "::ffff:127.0.0.1"]),
        ("e.example.com", ["169.254.169.254"]),
    ),
    *(("f.example.com", ["fe80::1%eth0"]), ("g.example.com", ["fd00:ec2::254"])),
    *(("h.example.com", ["64:ff9b::7f00:1"]), ("i.example.com", ["2002:7f00:1::"])),
    *(
        ("j.example.com", ["0.0.0.0"]),
        ("k.example.com", ["100.64.0.9"]),
        ("l.example.com", ["168.63.129.16"]),
    ),
    *(
        ("m.example.com", ["224.0.0.1"]),
        ("n.example.com", ["192.168.1.1"]),
        ("kubernetes.default", ["10.96.0.1"]),
    ),
]
LISTED = (Path(__file__).parent.parent / "data" / "urls_inside.txt").read_text().splitlines()
FORMS = [
    "",
    *(each.encode().decode("unicode_escape") for each in LISTED if not each.startswith("#")),
    *(f"http://{name}/" for name, _ in NAMES),
]


def addresses_of(text, allowed=NOTHING):
    """What would be connected to: as names resolve in the table, and all others outside."""
    url = url_of(text, allowed)
    try:
        found = [str(ipaddress.ip_address(url.host))]
    except ValueError:
        found = dict(NAMES).get(url.host, ["93.184.215.14"])
    return check_addresses(url.host, found, allowed)


@pytest.mark.parametrize("text", FORMS, ids=lambda each: ascii(each)[:80])
def test_no_form_of_a_url_leads_inside(text):
    """Refused when it is registered, or before anything is connected to."""
    with pytest.raises((UrlRefused, AddressRefused)) as refused:
        addresses_of(text)
    assert len(str(refused.value)) < 400
    assert "pass@" not in str(refused.value)


@pytest.mark.parametrize("text", [each for each in FORMS if each.startswith("http://")])
def test_no_form_leads_inside_by_https_either(text):
    """The scheme changes nothing of it."""
    with pytest.raises((UrlRefused, AddressRefused)):
        addresses_of(text.replace("http://", "https://", 1))


def test_there_are_enough_forms():
    """The table is what it says it is."""
    assert len(set(FORMS)) == len(FORMS) >= 300


@pytest.mark.parametrize(
    ("text", "scheme", "host", "port", "target"),
    [
        ("https://example.com", "https", "example.com", 443, "/"),
        (
            "https://API.Example.com/v1/a%20b?x=1&y=%2F",
            "https",
            "api.example.com",
            443,
            "/v1/a%20b?x=1&y=%2F",
        ),
        ("http://example.com:80/", "http", "example.com", 80, "/"),
        ("http://example.com:443/", "http", "example.com", 443, "/"),
        ("https://xn--bcher-kva.example.com/", "https", "xn--bcher-kva.example.com", 443, "/"),
        ("https://8.8.8.8/dns-query", "https", "8.8.8.8", 443, "/dns-query"),
        ("https://[2606:4700:4700::1111]/", "https", "2606:4700:4700::1111", 443, "/"),
        ("https://[2606:4700:4700:0:0:0:0:1111]", "https", "2606:4700:4700::1111", 443, "/"),
        ("https://example.com?q", "https", "example.com", 443, "/?q"),
        ("https://example.com/a/../b//c;d=@:!", "https", "example.com", 443, "/a/../b//c;d=@:!"),
        ("https://hooks_1.example.com/", "https", "hooks_1.example.com", 443, "/"),
    ],
)
def test_ordinary_urls_are_called(text, scheme, host, port, target):
    """What people register is read as they mean it."""
    url = url_of(text, NOTHING)
    assert (url.scheme, url.host, url.port, url.target) == (scheme, host, port, target)
    assert addresses_of(text)


@pytest.mark.parametrize(
    ("allow", "ports", "text", "goes"),
    [
        (["127.0.0.1/32"], [], "http://127.0.0.1:8080/", True),
        (["127.0.0.1"], [], "http://127.0.0.1:8080/", True),
        (["127.0.0.1"], [], "http://127.0.0.2/", False),
        (["127.0.0.1"], [], "http://2130706433/", False),
        (["127.0.0.1"], [], "http://[::ffff:127.0.0.1]/", False),
        (["127.0.0.1"], [], "http://localhost/", False),
        (["localhost"], [], "http://localhost:5000/", True),
        (["10.0.0.0/8"], [], "http://10.9.8.7:9000/", True),
        (["10.0.0.0/8"], [], "http://b.example.com/", True),
        (["10.0.0.0/8"], [], "http://c.example.com/", True),
        (["b.example.com"], [], "http://b.example.com:8080/", True),
        (["b.example.com"], [], "http://c.example.com/", False),
        (["169.254.0.0/16"], [], "http://169.254.169.254/", False),
        (["0.0.0.0/0", "::/0"], [], "http://169.254.169.254/", False),
        (["0.0.0.0/0", "::/0"], [], "http://[fd00:ec2::254]/", False),
        (["e.example.com"], [], "http://e.example.com/", False),
        (["169.254.169.254"], [], "http://169.254.169.254/", True),
        ([], [8443], "https://example.com:8443/", True),
        ([], [8443], "https://example.com:8444/", False),
        ([], [8443], "https://127.0.0.1:8443/", False),
        (["api.internal"], [], "http://api.internal/", True),
        (["fd12:3456::/32"], [], "http://[fd12:3456::1]:8000/", True),
    ],
)
def test_a_registration_allows_what_it_names_and_nothing_beside(allow, ports, text, goes):
    """By host, address or network; a cloud's metadata only by an address of its own."""
    allowed = allowed_of(allow, ports)
    if goes:
        assert addresses_of(text, allowed)
    else:
        with pytest.raises((UrlRefused, AddressRefused)):
            addresses_of(text, allowed)


@pytest.mark.parametrize(
    "each", ["10.0.0.1/8", "", "a b", "*.example.com", "1.2.3", "x/24", "a..b"]
)
def test_what_cannot_be_allowed_is_said(each):
    """A slip in `allow` must not allow something else, or nothing, in silence."""
    with pytest.raises(ValueError, match="allow="):
        allowed_of([each])


@given(st.integers(0, 2**32 - 1))
def test_no_ipv4_address_is_public_unless_python_agrees(number):
    """Our own list is at least as strict as the one of the standard library."""
    address = ipaddress.IPv4Address(number)
    if kind_of(address) is None:
        assert address.is_global and not address.is_multicast and address not in METADATA


@given(st.one_of(st.integers(0, 2**128 - 1), st.integers(0x20 << 120, (0x40 << 120) - 1)))
def test_no_ipv6_address_is_public_unless_python_agrees(number):
    """The same; and none that is public holds an IPv4 address in a form that is unpacked."""
    address = ipaddress.IPv6Address(number)
    if kind_of(address) is None:
        assert address.is_global and not address.is_multicast
        assert (address.ipv4_mapped, address.sixtofour, address.teredo) == (None, None, None)


@given(st.text(max_size=60), st.sampled_from(["http://", "https://", "http:", ""]))
def test_any_text_is_read_or_refused(text, begin):
    """Nothing else is raised, and what is read has a host that stands in the text."""
    try:
        url = url_of(begin + text, NOTHING)
    except UrlRefused:
        return
    assert url.host in (begin + text).lower() or ":" in url.host
