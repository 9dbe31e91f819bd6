"""Signatures, made here by the page alone: canonical CBOR and Ed25519 of other libraries."""

import asyncio
import base64
import hashlib
import json

import cbor2
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pawlflow import NotFound, Pawl
from pawlflow.cli.main import main
from tests.services.kit import WORKFLOW, Service, done

pytestmark = pytest.mark.req("R191")


def signed(msg, key_id, private, result, tenant="default", **more):
    """A completion with its signature."""
    said = done(msg, result, attempt=int(msg.headers["X-Workflow-Attempt"]))
    digest = hashlib.sha256(said["result_json"].encode()).digest()
    parts = ["pawl.completion.1", tenant, said["workflow_instance_id"], said["step_id"]]
    data = cbor2.dumps([*parts, said["attempt"], "completed", digest], canonical=True)
    raw = base64.urlsafe_b64decode(private + "==")
    signature = base64.urlsafe_b64encode(Ed25519PrivateKey.from_private_bytes(raw).sign(data))
    return {**said, "key_id": key_id, "signature": signature.decode(), **more}


def pawl_verb(db, *words):
    """A verb of the command line, in JSON."""
    found = CliRunner().invoke(main, ["--db", db, "--json", *words])
    assert found.exit_code == 0, found.output
    return json.loads(found.output)


@pytest.mark.req("R36")
def test_only_registered_keys_are_believed(nats, tmp_path, monkeypatch):
    monkeypatch.delenv("PAWL_NATS_UNSIGNED", raising=False)
    db = f"sqlite:///{tmp_path / 'pawl.db'}"
    path = tmp_path / "provision.yaml"
    path.write_text(WORKFLOW)
    mine = pawl_verb(db, "keys", "create", "--executor", "--comment", "refdata")
    gone = pawl_verb(db, "keys", "create", "--executor")
    other = pawl_verb(db, "keys", "create", "--executor", "--tenant", "other")
    assert pawl_verb(db, "keys", "revoke", gone["id"]) == {"id": gone["id"], "revoked": True}
    listed = pawl_verb(db, "keys", "ls")
    assert [(each["id"], each["revoked"]) for each in listed] == [
        *((mine["id"], False), (gone["id"], True)),
    ]

    async def story():
        pawl = Pawl(db, nats=nats.url)
        pawl.load(path)
        async with Service(nats.url) as service, pawl:
            run = await pawl.start("provision", {"name": "Ada"}, id="s-1")
            first = await service.next("refdata.v1.party.save")
            await service.say(done(first, {"id": 0}))
            for key in (gone, other):
                await service.say(signed(first, key["id"], key["key"], {"id": 1}))
            sound = signed(first, mine["id"], mine["key"], {"id": 2})
            await service.say({**sound, "result_json": '{"id": 3}'})
            await service.say({**sound, "key_id": gone["id"]})
            await service.say(signed(first, mine["id"], mine["key"], {"id": 4}, tenant="other"))
            letters = await service.dead(6)
            codes = sorted(each.headers["X-Dead-Letter-Code"] for each in letters)
            assert codes == [
                *["completion.key"] * 3,
                *["completion.signature"] * 2,
                "completion.unsigned",
            ]
            await service.say(sound)
            second = await service.next("iam.v1.account.save")
            assert json.loads(second.data) == {"party": 2}
            await service.say(signed(second, mine["id"], mine["key"], {"id": 9}))
            assert await run.result("20s") == {"account": 9}

    asyncio.run(story())


def test_a_tenant_is_known_by_its_connection(nats, tmp_path, monkeypatch):
    monkeypatch.setenv("PAWL_NATS_UNSIGNED", "allow")
    path = tmp_path / "provision.yaml"
    path.write_text(WORKFLOW)

    async def story():
        pawl = Pawl("memory:", tenant="acme", nats={"acme": nats.url})
        pawl.load(path)
        async with Service(nats.url) as service, pawl:
            asked = {"type": "provision", "request_json": '{"name": "Ada"}', "instance_id": "t-1"}
            refused = await service.ask("workflow.v1.start", asked | {"tenant_id": "other"})
            assert refused["error"]["code"] == "nats.tenant"
            assert await service.ask("workflow.v1.start", asked) == {"instance_id": "t-1"}
            first = await service.next("refdata.v1.party.save")
            assert first.headers["X-Tenant-Id"] == "acme"
            await service.say(done(first, {"id": 1}), headers={"X-Tenant-Id": "other"})
            await service.say(done(first, {"id": 1}, tenant_id="other"))
            both = done(first, {"id": 1}, tenant_id="other")
            await service.say(both, headers={"X-Tenant-Id": "acme"})
            for letter in await service.dead(3):
                assert letter.headers["X-Dead-Letter-Code"] == "completion.tenant"
            assert pawl.run("t-1").show()["steps"]["party"]["state"] == "running"
            await service.say(done(first, {"id": 1}, tenant_id="acme"))
            await service.next("iam.v1.account.save")
            with pytest.raises(NotFound):
                pawl.run("t-1", tenant="other")

    asyncio.run(story())
