"""Which endpoints are called: registrations, names that lead inside, redirects, proxies, TLS."""

import ssl
import subprocess
import sys

import pytest

from pawlflow import Pawl, PawlError, WorkflowFailed
from tests.effects.http_kit import LOCAL, RETRY, Server, one_step, outcome_of
from tests.effects.kit import run


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


@pytest.fixture
def one(tmp_path):
    """A function that writes a workflow of one step."""
    return lambda more="": one_step(tmp_path, more)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "GET"}, "method='GET' is none"),
        ({"mode": "later"}, "mode='later' is none"),
        ({"timeout": "soon"}, "timeout='soon'"),
        ({"timeout": 0}, "timeout=0"),
        ({"timeout": "2h"}, "at most an hour"),
        ({"retry_on": [200]}, "retry_on=200"),
        ({"retry_on": ["2xx"]}, "retry_on='2xx'"),
        ({"redirects": 99}, "redirects=99"),
        ({"redirects": True}, "redirects=True"),
        ({"allow": "127.0.0.1"}, "must be a list"),
        ({"allow": ["10.0.0.1/8"]}, "neither a host name"),
        ({"ports": [0]}, "ports=0"),
        ({"ca": "/no/such.pem"}, "no such file"),
        ({"headers": {"Host": "x"}}, "set by the engine"),
        ({"headers": {"X-Workflow-Step-Id": "x"}}, "set by the engine"),
        ({"headers": {"idempotency-key": "x"}}, "set by the engine"),
        ({"headers": {"X Y": "x"}}, "no name of a header"),
        ({"headers": {"X": "a\r\nB: c"}}, "must be"),
        ({"headers": {"X": {"$secret": 1}}}, "must be"),
        ({"headers": {"X": 7}}, "must be"),
        ({"headers": {"X": "a", "x": "b"}}, "given twice"),
    ],
)
def test_a_registration_that_is_wrong_is_refused_at_once(options, words):
    """The option and the way out are named."""
    with pytest.raises(PawlError) as refused:
        Pawl("memory:").http("payment.charge", "https://example.com/", **options)
    assert refused.value.code == "http.endpoint"
    assert words in str(refused.value)


def test_a_registration_inside_is_refused_at_once():
    """Loopback and the like need to be allowed."""
    with pytest.raises(PawlError) as refused:
        Pawl("memory:").http("payment.charge", "http://127.0.0.1/")
    assert refused.value.code == "http.refused"
    assert 'allow=["127.0.0.1"]' in str(refused.value)


def test_an_effect_has_one_executor():
    """The same endpoint may be registered again; another one, or a function, may not."""
    pawl = Pawl("memory:")
    pawl.http("payment.charge", "https://example.com/a")
    pawl.http("payment.charge", "https://example.com/a", timeout="5s")
    with pytest.raises(PawlError, match=r"effect\.taken|already"):
        pawl.http("payment.charge", "https://example.com/b")
    with pytest.raises(PawlError, match="already"):
        pawl.effect("payment.charge")(lambda amount: None)


def call_with(pawl, path, url, resolving, **options):
    """As `outcome_of`, where names resolve by a function of the test's."""
    pawl.load(path)
    pawl.http("payment.charge", url, **options)
    caller = pawl.registry.effects["payment.charge"].fn.__self__
    caller.resolving = resolving

    async def main():
        async with pawl:
            started = await pawl.start("one", {"amount": 5})
            try:
                return await started.result(timeout="20s")
            except WorkflowFailed as failed:
                return failed

    return run(main())


def test_what_was_checked_is_what_is_connected_to(server, one):
    """A name is resolved once for a connection: there is no second answer to be fooled by."""
    asked = []

    async def resolving(host, port):
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    url = f"http://shop.example.com:{server.port}/"
    result = call_with(Pawl("memory:"), one(), url, resolving, allow=LOCAL, ports=[server.port])

    assert (result, asked) == ({}, ["shop.example.com"])
    assert server.asked[0][1]["host"] == f"shop.example.com:{server.port}"


@pytest.mark.parametrize(
    "found", [["127.0.0.1"], ["93.184.215.14", "127.0.0.1"], ["::ffff:127.0.0.1"]]
)
def test_a_name_that_leads_inside_is_not_connected_to(server, one, found):
    """Not even to the one address of it that would be fine; and no retry helps."""

    async def resolving(host, port):
        return found

    url = f"http://shop.example.com:{server.port}/"
    failed = call_with(Pawl("memory:"), one(RETRY), url, resolving, ports=[server.port])

    assert (failed.failure_class, failed.code, failed.attempts) == ("terminal", "http.refused", 1)
    assert server.asked == []


@pytest.mark.parametrize(
    ("location", "allow", "code", "paths"),
    [
        ("/there", [], None, ["/", "/there"]),
        ("//127.0.0.1:PORT/there", [], None, ["/", "/there"]),
        ("http://127.0.0.2:PORT/there", [], "http.refused", ["/"]),
        ("http://127.0.0.2:PORT/there", ["127.0.0.2"], "http.refused", ["/"]),
        ("http://169.254.169.254/latest", [], "http.refused", ["/"]),
        ("http://[::1]:PORT/", [], "http.refused", ["/"]),
        ("http://2130706433:PORT/", [], "http.refused", ["/"]),
        ("http://user@127.0.0.1:PORT/", [], "http.refused", ["/"]),
        ("file:///etc/passwd", [], "http.refused", ["/"]),
        ("http://example.com/", [], "http.refused", ["/"]),
        ("", [], "http.refused", ["/"]),
        ("/", [], "http.status", ["/", "/", "/"]),
    ],
)
def test_a_redirect_is_followed_by_the_same_rules(server, one, location, allow, code, paths):
    """Only if asked for, only 307 and 308, only to what was named; and not for ever."""
    where = location.replace("PORT", str(server.port))
    server.tell("/", (307, {}, {"Location": where} if where else {}))
    result, step = outcome_of(one(), f"{server.url}/", allow=[*LOCAL, *allow], redirects=2)
    assert [path for path, _, _ in server.asked] == paths
    assert (step["error"] or {"code": None})["code"] == code
    assert len(set(server.keys("/"))) == 1
    if code is None:
        assert result == {}


def test_a_proxy_of_the_environment_is_not_used(server, one, monkeypatch):
    """What is called does not depend on who started the process."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    assert outcome_of(one(), f"{server.url}/")[0] == {}


def test_tls_names_the_host_and_not_the_address(one, tmp_path):
    """The certificate is that of the name; one of another name is not trusted."""
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    names = ["-subj", "/CN=shop.example.com", "-addext", "subjectAltName=DNS:shop.example.com"]
    subprocess.run(
        ["openssl", *made.split(), "-keyout", "key.pem", "-out", "cert.pem", *names],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    seen = []
    context.sni_callback = lambda _, name, __: seen.append(name)
    server = Server(context)

    async def resolving(host, port):
        return ["127.0.0.1"]

    def called(host, ca):
        options = {"allow": LOCAL, "ports": [server.port], "ca": ca}
        url = f"https://{host}:{server.port}/"
        return call_with(Pawl("memory:"), one(), url, resolving, **options)

    try:
        good = called("shop.example.com", tmp_path / "cert.pem")
        other = called("bank.example.com", tmp_path / "cert.pem")
        unknown = called("shop.example.com", None)
    finally:
        server.close()

    assert good == {}
    assert [other.code, unknown.code] == ["http.unreachable"] * 2
    assert seen == ["shop.example.com", "bank.example.com", "shop.example.com"]
    assert len(server.asked) == 1


def test_the_client_is_imported_for_those_who_use_it():
    """An engine without endpoints does not pay for them."""
    said = (
        "import sys, pawlflow.embedded as made; pawl = made.Pawl('memory:'); "
        "before = 'httpcore' in sys.modules; pawl.http('a.b', 'https://example.com/'); "
        "print(before, 'httpcore' in sys.modules, 'httpx' in sys.modules)"
    )
    command = [sys.executable, "-c", said]
    printed = subprocess.run(command, check=False, capture_output=True, text=True)
    assert printed.stdout == "False True False\n", printed.stderr


def test_the_next_address_is_tried_if_one_does_not_answer(server, one):
    """Of the addresses that were checked, and only of these."""

    async def resolving(host, port):
        return ["127.0.0.9", "127.0.0.1"]  # the server listens at the second

    url = f"http://shop.example.com:{server.port}/"
    options = {"allow": ["127.0.0.0/8"], "ports": [server.port]}
    assert call_with(Pawl("memory:"), one(), url, resolving, **options) == {}
    assert len(server.asked) == 1
