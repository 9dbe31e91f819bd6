"""What is confidential is in no row: secrets, passwords by name or by schema, and their copies."""

import json

import pytest

from pawlflow import Pawl, WorkflowFailed
from pawlflow.model.codec import encode
from pawlflow.model.ids import Tenant
from pawlflow.model.payload import Payload
from pawlflow.projections.veil import HIDDEN, Schema, Veil, is_confidential
from pawlflow.readmodels import rebuild
from tests.effects.kit import run, written
from tests.views.kit import ask

TENANT = Tenant("acme")
SCHEMA = {
    "type": "object",
    "properties": {
        "login": {"$ref": "#/$defs/login"},
        "keys": {"type": "array", "items": {"allOf": [{"x-secret": True}]}},
        "code": {"type": "integer", "writeOnly": True},
        "map": {"additionalProperties": {"anyOf": [{"type": "null"}, {"format": "password"}]}},
    },
    "$defs": {"login": {"properties": {"by": {"type": "string"}, "with": {"format": "password"}}}},
}
INPUT = {
    "login": {"by": "zoe", "with": "open sesame"},
    "keys": ["k-111111", "k-222222"],
    "code": 4711,
    "map": {"a": "first-of-all", "b": None},
    "note": "zoe says open sesame, twice: open sesame",
}


def payload(value):
    """A value of the tenant."""
    return Payload.of(value, TENANT)


@pytest.mark.req("R44")
def test_what_a_schema_marks_is_hidden_where_it_is_and_where_it_is_copied_to():
    """`format: password`, `writeOnly` and `x-secret`, through references and combinations."""
    veil = Veil(payload(INPUT), encode(SCHEMA))

    assert json.loads(veil.json(payload(INPUT), veil.schema)) == {
        "login": {"by": "zoe", "with": HIDDEN},
        "keys": [HIDDEN, HIDDEN],
        "code": HIDDEN,
        "map": {"a": HIDDEN, "b": None},
        "note": f"zoe says {HIDDEN}, twice: {HIDDEN}",
    }
    copies = {"x": "k-222222", "line": "curl -u zoe:open sesame", "first-of-all": 1, "n": 4712}
    told = json.loads(veil.json(payload(copies)))
    assert told == {"x": HIDDEN, "line": f"curl -u zoe:{HIDDEN}", HIDDEN: 1, "n": 4712}
    assert veil.text("open sesame was refused") == f"{HIDDEN} was refused"


@pytest.mark.req("R44")
@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("password", True),
        ("dbPassword", True),
        ("DB_PASSWD", True),
        ("x-api-key", True),
        ("access_token", True),
        ("Authorization", True),
        ("Set-Cookie", True),
        ("client_secret", True),
        ("pin", True),
        ("tokens", False),
        ("spin", False),
        ("key", False),
        ("monkey", False),
        ("passwords_changed", False),
    ],
)
def test_names_of_passwords(name, hidden):
    """By how a name ends, however it is written; counts and other things are left alone."""
    assert is_confidential(name) is hidden


@pytest.mark.req("R44")
def test_references_truths_and_nulls_are_shown():
    """A secret by its name gives nothing away, nor does whether there is a password at all."""
    value = {"password": {"$secret": "db"}, "token": None, "secret": False, "api_key": ["a", 1]}
    told = json.loads(Veil(payload({})).json(payload(value)))
    assert told == {**value, "api_key": HIDDEN}


@pytest.mark.req("R44")
def test_passwords_in_texts():
    """Of URLs, and of headers that somebody quotes."""
    veil = Veil(payload({"password": "s3cr", "pin": "123"}))
    url = "cannot reach postgresql://ann:pa55@db:5432/x"
    assert veil.text(url) == f"cannot reach postgresql://ann:{HIDDEN}@db:5432/x"
    assert (
        veil.text("sent Authorization: Bearer eyJhbGciOi") == f"sent Authorization: Bearer {HIDDEN}"
    )
    assert veil.text("see http://host/a:b@c") == "see http://host/a:b@c"
    assert veil.text("s3cr, 123, a\0b") == f"{HIDDEN}, 123, a\ufffdb"  # too short to be found


def test_large_and_erased_values_are_only_named():
    """A row stays a row; the address says which value it is."""
    large = payload("x" * 70_000)
    assert Veil().json(large) == f'{{"$omitted":"{large.addr.hex()}"}}'
    assert Veil().json(Payload(large.addr, None)) == Veil().json(large)
    assert Veil().json(None) == ""


def test_schemas_that_lead_nowhere_or_in_circles():
    """They mark nothing, and end."""
    circle = {"$ref": "#", "allOf": [{"$ref": "#/nowhere"}, {"$ref": "https://else.where"}, True]}
    veil = Veil(payload({"a": {"a": {"a": "text"}}}), encode(circle))
    assert veil.inside == []
    assert not Schema.of(encode({"properties": {"a": circle}})).inner("a").marks()


FLOW = """
  input: {type: object, properties: {card: {type: string, format: password}, to: {type: string}}}
  failurePolicy: compensate
  steps:
    - name: call
      run: http.call
      with:
        token: {$secret: deploy-key}
        headers:
          {Authorization: {$secret: deploy-key}, X-Card: "${ input.card }", To: "${ input.to }"}
      undo: {run: http.undo, with: {token: {$secret: deploy-key}, card: "${ input.card }"}}
    - {name: give, run: give.away, with: {key: {$secret: deploy-key}}, dependsOn: [call]}
"""
SECRET, CARD, RESULT = "hunter2-and-more", "4000-1234-5678", "made-up-password"


@pytest.mark.req("R44", "R230")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_no_value_is_in_any_table(store, tmp_path, request):
    """A secret in parameters, in a header and in a refused result; a password of the input."""
    url = f"sqlite:///{tmp_path}/pawl.db"
    if store == "postgres":
        url = request.getfixturevalue("postgres").fresh()
    path = written(tmp_path, "careless", FLOW)

    async def main():
        async with Pawl(url, secrets={"deploy-key": SECRET}) as pawl:
            pawl.load(path)
            pawl.effect("http.call")(lambda token, headers: {"password": RESULT, "len": len(token)})
            pawl.effect("http.undo")(lambda token, card: None)
            pawl.effect("give.away")(lambda key: {"found": key})
            started = await pawl.start("careless", {"card": CARD, "to": "ann"}, id="c-1")
            with pytest.raises(WorkflowFailed, match="holds the secret"):
                await started.result(timeout="30s")

    run(main())
    rebuild(url)

    told = "".join(
        str(ask(url, f"SELECT * FROM {name}"))
        for name in ("workflow_instance", "workflow_step", "read_instance", "read_step")
    )
    assert [value for value in (SECRET, CARD, RESULT) if value in told] == []
    steps = ask(url, "SELECT name, command_json, failure_code FROM workflow_step ORDER BY name")
    assert [(row["name"], row["failure_code"]) for row in steps] == [
        ("call", ""),
        ("give", "secret.in_result"),
        ("undo/call", ""),
    ]
    assert json.loads(steps[0]["command_json"]) == {
        "token": {"$secret": "deploy-key"},
        "headers": {"Authorization": {"$secret": "deploy-key"}, "X-Card": HIDDEN, "To": "ann"},
    }


def test_a_large_input_marks_too(tmp_path):
    """It is kept apart, and not in the rows; what it marks is hidden all the same."""
    body = """
  steps:
    - {name: use, run: use.it, with: {said: "with ${ input.password }"}}
"""
    path, url = written(tmp_path, "large", body), f"sqlite:///{tmp_path}/pawl.db"

    async def main():
        async with Pawl(url) as pawl:
            pawl.load(path)
            pawl.effect("use.it")(lambda said: None)
            large = {"password": "hunter2!", "rest": "x" * 100_000}
            await (await pawl.start("large", large, id="l-1")).result(timeout="30s")

    run(main())
    rebuild(url)

    [row] = ask(url, "SELECT command_json FROM workflow_step")
    [instance] = ask(url, "SELECT request_json FROM workflow_instance")
    assert row["command_json"] == f'{{"said":"with {HIDDEN}"}}'
    assert list(json.loads(instance["request_json"])) == ["$omitted"]
