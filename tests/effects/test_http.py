"""Effects that are carried out by HTTP: against a real server, by its real answers."""

import asyncio
import json
import logging
from uuid import UUID

import pytest

from pawlflow import Pawl, WorkflowFailed
from pawlflow.effects.calling import retry_after_of
from tests.effects.http_kit import LOCAL, RETRY, Server, one_step, outcome_of
from tests.effects.kit import run, written


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


@pytest.fixture
def one(tmp_path):
    """A function that writes a workflow of one step."""
    return lambda more="": one_step(tmp_path, more)


@pytest.mark.req("R27")
def test_a_request_says_what_is_asked_and_under_which_key(server, one):
    """The envelope, the headers, and JSON as the result."""
    server.tell("/charges", (201, {"charge": "ch-1"}))

    result, _ = outcome_of(one(), f"{server.url}/charges?v=2&x=%20")
    assert result == {}  # another path: the query is part of it
    [(path, _, _)] = server.asked
    assert path == "/charges?v=2&x=%20"

    result, _ = outcome_of(one(), f"{server.url}/charges", method="PUT")

    assert result == {"charge": "ch-1"}
    _, headers, body = server.asked[-1]
    key = headers["idempotency-key"]
    assert body == {
        "effect": "payment.charge",
        "params": {"amount": 5},
        "key": key,
        "attempt": 1,
        "direction": "do",
        "instance": "order-1",
        "tenant": "default",
        "workflow": "one",
        "step": "charge",
        "item": None,
        "round": 1,
        "feedback": [],
    }
    assert headers[":method"] == "PUT"
    assert headers["x-workflow-step-id"] == key
    assert headers["x-workflow-instance-name"] == "order-1"
    assert str(UUID(headers["x-workflow-instance-id"])) != "order-1"
    assert headers["x-workflow-tenant-id"] == headers["x-tenant-id"] == "default"
    assert headers["x-workflow-attempt"] == "1"
    assert headers["content-type"] == "application/json"
    assert headers["host"] == f"127.0.0.1:{server.port}"


PROBLEM = {
    "title": "Card declined",
    "detail": "try another",
    "code": "card.declined",
    "status": 402,
}


@pytest.mark.parametrize(
    ("answer", "kind", "code", "words", "attempts"),
    [
        ((400, {}), "terminal", "http.status", "answered 400", 1),
        ((402, PROBLEM), "terminal", "card.declined", "402: Card declined: try another", 1),
        (
            (404, b"no such page", {"Content-Type": "text/plain"}),
            "terminal",
            "http.status",
            "no such page",
            1,
        ),
        (
            (404, b"<html>", {"Content-Type": "text/html"}),
            "terminal",
            "http.status",
            "answered 404",
            1,
        ),
        (
            (409, {"error": {"code": "is.there", "message": "twice"}}),
            "terminal",
            "is.there",
            "409: twice",
            1,
        ),
        ((409, {"code": "NOT a code", "message": "x"}), "terminal", "http.status", "409: x", 1),
        ((408, {}), "transient", "http.status", "answered 408", 4),
        ((425, {}), "transient", "http.status", "answered 425", 4),
        ((429, {}), "transient", "http.status", "answered 429", 4),
        ((500, {}), "transient", "http.status", "answered 500", 4),
        ((503, {"code": "db.down"}), "transient", "db.down", "answered 503", 4),
        ((422, {"findings": ["too much"]}), "validation", "http.findings", "answered 422", 1),
        ((422, {}), "terminal", "http.status", "answered 422", 1),
        ((302, {}, {"Location": "/other"}), "terminal", "http.status", "answered 302", 1),
        ((307, {}, {"Location": "/other"}), "terminal", "http.status", "answered 307", 1),
        ((200, b"<html>"), "terminal", "http.answer", "no JSON", 1),
        ((200, b"\xff\xfe"), "terminal", "http.answer", "no JSON", 1),
        ((200, b"{}", {"Content-Encoding": "gzip"}), "terminal", "http.answer", "gzip", 1),
        (("hang up", None), "transient", "http.unreachable", "RemoteProtocolError", 4),
    ],
)
def test_an_answer_chooses_the_class_of_the_failure(  # noqa: PLR0913  # a table of answers
    server, one, answer, kind, code, words, attempts
):
    """Statuses, problems and findings; the key is the same for every attempt."""
    server.tell("/", answer)

    failed, step = outcome_of(one(RETRY), f"{server.url}/")

    assert isinstance(failed, WorkflowFailed)
    assert (failed.failure_class, step["error"]["code"]) == (kind, code)
    assert words in step["error"]["message"]
    assert len(server.asked) == attempts
    assert len(set(server.keys("/"))) == 1
    assert [headers["x-workflow-attempt"] for _, headers, _ in server.asked] == [
        str(number + 1) for number in range(attempts)
    ]


@pytest.mark.parametrize("body", [b"", b" \n", b"null"])
def test_an_empty_answer_is_null(server, one, body):
    """A success without words is one."""
    server.tell("/", (204 if not body else 200, body))
    assert outcome_of(one(), f"{server.url}/")[0] is None


def test_retry_on_says_what_is_worth_another_attempt(server, one):
    """Listed statuses are transient, and no others."""
    server.tell("/a", (409, {}), (200, {"done": 1}))
    server.tell("/b", (500, {}))

    assert outcome_of(one(RETRY), f"{server.url}/a", retry_on=[409])[0] == {"done": 1}
    failed, _ = outcome_of(one(RETRY), f"{server.url}/b", retry_on=[409])

    assert (failed.failure_class, len(server.keys("/b"))) == ("terminal", 1)


def test_findings_go_to_the_next_round(server, one):
    """422 is a correction: another key, with the findings as feedback."""
    server.tell("/", (422, {"errors": [{"field": "amount"}]}), (200, {"ok": True}))

    result, step = outcome_of(one("maxCorrectionAttempts: 1"), f"{server.url}/")

    assert (result, step["attempts"]) == ({"ok": True}, 2)
    first, second = (body for _, _, body in server.asked)
    assert (first["feedback"], first["round"], second["round"]) == ([], 1, 2)
    assert "amount" in json.dumps(second["feedback"])
    assert first["key"] != second["key"]


def test_an_undo_may_be_an_endpoint(server, tmp_path):
    """It is told what it undoes, under a key of its own."""
    path = written(
        tmp_path,
        "one",
        """
  failurePolicy: compensate
  steps:
    - {name: charge, run: payment.charge, with: {amount: 5}, undo: {run: payment.refund}}
    - {name: ship, run: parcel.send, dependsOn: [charge]}
""",
    )
    server.tell("/charge", (200, {"charge": "ch-1"}))
    server.tell("/ship", (410, {}))

    async def main():
        pawl = Pawl("memory:")
        pawl.load(path)
        for name, at in (
            ("payment.charge", "/charge"),
            ("payment.refund", "/refund"),
            ("parcel.send", "/ship"),
        ):
            pawl.http(name, f"{server.url}{at}", allow=LOCAL)
        async with pawl:
            started = await pawl.start("one", {})
            with pytest.raises(WorkflowFailed) as failed:
                await started.result(timeout="20s")
            assert failed.value.rollback == "full"

    run(main())
    assert [path for path, _, _ in server.asked] == ["/charge", "/ship", "/refund"]
    undo = server.asked[-1][2]
    assert (undo["direction"], undo["step"]) == ("undo", "charge")
    assert undo["params"] == {"command": {"amount": 5}, "result": {"charge": "ch-1"}}


def times_of(step):
    """When each attempt began and ended, by the journal, in seconds of the day."""

    def seconds(at):
        hours, minutes, rest = at[11:-1].split(":")
        return int(hours) * 3600 + int(minutes) * 60 + float(rest)

    return [(seconds(each["started_at"]), seconds(each["ended_at"])) for each in step["ladder"]]


def test_retry_after_holds_the_attempt_back(server, one):
    """By the journal, the next attempt begins no sooner than the endpoint asked for."""
    server.tell(
        "/", (429, {}, {"Retry-After": "1"}), (500, {}, {"Retry-After": "soon"}), (200, {"ok": 1})
    )
    result, step = outcome_of(one(RETRY), f"{server.url}/")
    (first, first_end), (second, second_end), (third, _) = times_of(step)
    assert result == {"ok": 1}
    assert (first_end - first) % 86_400 >= 1  # it is the attempt that waits
    assert (second - first_end) % 86_400 >= 0
    assert (third - second_end) % 86_400 >= 0
    assert [each["message"].count("Retry-After 1 s") for each in step["ladder"][:2]] == [1, 0]
    assert len(set(server.keys("/"))) == 1


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("120", 120),
        (" 7 ", 7),
        ("Sun, 06 Nov 1994 08:49:57 GMT", 20),
        ("Sun, 06 Nov 1994 08:49:17 GMT", 0),
        ("-5", 0),
        ("1.5", 0),
        ("\u0663", 0),
        ("soon", 0),
        ("", 0),
        ("9" * 400, 999_999_999),
    ],
)
def test_retry_after_is_a_number_or_a_date(given, seconds):
    """A date counts from the answer's own, whatever our clock says; all else is not waited for."""
    headers = {"retry-after": given, "date": "Sun, 06 Nov 1994 08:49:37 GMT"}
    assert retry_after_of(headers) == seconds
    if "GMT" in given:
        assert retry_after_of({"retry-after": given}) == 0


@pytest.mark.parametrize(
    ("more", "options"),
    [(f"timeout: 1500ms\n      {RETRY}", {}), (RETRY, {"retry_after": 0})],
    ids=["the timeout of the attempt", "the limit of the endpoint"],
)
def test_a_long_retry_after_is_cut(server, one, more, options):
    """It ends as a transient failure in time, not as a timeout, and the log says so."""
    server.tell("/", (429, {}, {"Retry-After": "3600"}), (200, {"ok": 1}))
    result, step = outcome_of(one(more), f"{server.url}/", **options)
    assert result == {"ok": 1}
    assert step["ladder"][0]["class"] == "transient"
    assert "Retry-After 3600 s is cut" in step["ladder"][0]["log"][0]


def test_a_server_that_does_not_answer_is_not_waited_for(server, one):
    """The endpoint's own timeout is transient, and the next attempt has the same key."""
    server.tell("/", ("hold", 200), (200, {"ok": 1}))
    result, step = outcome_of(one(RETRY), f"{server.url}/", timeout=0.2)
    assert result == {"ok": 1}
    assert (step["ladder"][0]["class"], step["ladder"][0]["code"]) == ("transient", "http.timeout")
    assert len(set(server.keys("/"))) == 1


def test_heartbeats_are_given_while_the_request_is_under_way(server, one):
    """A slow answer is no silence."""
    server.tell("/", (429, {}, {"Retry-After": "5"}), (200, {"ok": 1}))
    result, step = outcome_of(
        one(f"heartbeat: 4s\n      timeout: 1m\n      {RETRY}"), f"{server.url}/"
    )
    assert (result, step["ladder"][0]["code"]) == ({"ok": 1}, "http.status")


def test_an_answer_that_is_too_large_is_not_read_to_its_end(server, one):
    """A bound on what an endpoint can make us keep."""
    server.tell("/", (200, b'"' + b"a" * (16 * 1024 * 1024) + b'"'))
    failed, step = outcome_of(one(RETRY), f"{server.url}/")
    assert (failed.failure_class, step["error"]["code"]) == ("terminal", "http.too_large")


def test_nobody_there_is_transient(one):
    """A server that is being restarted is found again by a retry."""
    gone = Server()
    gone.close()
    failed, step = outcome_of(one(), f"{gone.url}/")
    assert (failed.failure_class, step["error"]["code"]) == ("transient", "http.unreachable")


@pytest.mark.req("R44", "R230")
def test_secrets_in_headers_stay_there(server, one, caplog):
    """They reach the endpoint, and nothing else, even if it sends them back."""
    caplog.set_level(logging.DEBUG)
    value = "tok-5f1e77-xyz"
    server.tell("/a", (200, {"ok": 1}))
    server.tell("/b", (400, {"message": f"bad token {value}"}))
    server.tell("/c", (200, {"you": f"Bearer {value}"}))
    server.tell("/d", (422, {"findings": [value]}))
    headers = {"Authorization": ["Bearer ", {"$secret": "token"}], "X-Plain": "yes"}

    shown = []
    for path in "abcd":
        pawl = Pawl("memory:", secrets={"token": value})
        shown.append(outcome_of(one(), f"{server.url}/{path}", pawl, headers=headers))

    assert {h["authorization"] for _, h, _ in server.asked} == {f"Bearer {value}"}
    assert server.asked[0][1]["x-plain"] == "yes"
    assert shown[0][0] == {"ok": 1}
    assert "bad token [secret token]" in shown[1][1]["error"]["message"]
    assert shown[2][1]["error"]["code"] == "secret.in_result"
    assert value not in repr(shown) and value not in caplog.text


@pytest.mark.parametrize(
    ("secrets", "code"), [({}, "secret.missing"), ({"token": "line\r\nX: y"}, "http.header")]
)
def test_a_secret_that_cannot_be_sent_is_not(server, one, secrets, code):
    """Missing, or one that would write headers of its own."""
    headers = {"Authorization": {"$secret": "token"}}
    pawl = Pawl("memory:", secrets=secrets)
    failed, step = outcome_of(one(RETRY), f"{server.url}/", pawl, headers=headers)
    assert (failed.failure_class, step["error"]["code"], server.asked) == ("terminal", code, [])


def test_connections_are_kept_and_closed(server, tmp_path):
    """A hundred calls do not need a hundred connections, and none is left behind."""
    path = written(
        tmp_path,
        "one",
        """
  steps:
    - {name: charge, run: payment.charge, forEach: "${ input.all }", limit: 1}
""",
    )
    peers = set()
    finish = server.web.finish_request
    server.web.finish_request = lambda request, peer: (peers.add(peer), finish(request, peer))

    async def main():
        pawl = Pawl("memory:")
        pawl.load(path)
        pawl.http("payment.charge", f"{server.url}/", allow=LOCAL)
        async with pawl:
            started = await pawl.start("one", {"all": list(range(20))})
            await started.result(timeout="20s")
        assert len(asyncio.all_tasks()) == 1

    run(main())
    assert (len(server.asked), len(peers)) == (20, 1)
    assert [body["item"] for _, _, body in server.asked] == list(range(20))
