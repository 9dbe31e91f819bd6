"""Policies from Python: steps that ask, files that are loaded, people who agree."""

import asyncio

import pytest

from pawlflow import Pawl, PawlError, Refused, WorkflowFailed, flow, step
from pawlflow.trouble import DefinitionError
from tests.effects.kit import run

RULES = """\
apiVersion: pawl.dev/v1
kind: Policy
metadata: {name: release-rules, version: VERSION}
spec:
  cedar: |
    @id("everyday") permit(principal, action, resource);
    @id("frozen") forbid(principal, action, resource) when { resource.service == "ledger" };
    @id("prod") @require("approval") @role("Boss") @notBy("requester")
    forbid(principal, action == Action::"promote", resource) when { resource.env == "prod" };
"""


@step(policy={"action": "promote", "resource": {"env": "prod", "service": "shop"}})
async def promote(image: str) -> dict:
    """A step that is governed wherever it is used."""
    return {"release": f"r-{image}"}


@step
async def build(service: str) -> str:
    """One that is not."""
    return f"{service}-1"


@flow
def release(request):
    """Build, and promote what was built."""
    return promote(build(request.service))


@pytest.fixture
def rules(tmp_path):
    """A file of policies."""
    path = tmp_path / "rules.yaml"
    path.write_text(RULES.replace("VERSION", "1"))
    return path


async def asked_of(started):
    """Until somebody is asked."""
    async for event in started.events():
        if event["eventType"] == "ApprovalRequested":
            return event["payload"]
    raise AssertionError("nobody was asked")


@pytest.mark.req("R125", "R127", "R139")
def test_a_governed_step_waits_for_those_whom_the_policy_asks(engine, rules):
    """On every store: the decision is on record, and the requester does not agree with himself."""

    async def main():
        async with engine() as pawl:
            pawl.load(rules)
            started = await pawl.start(release, {"service": "shop"}, id="r-1", by="zoe")
            asked = await asked_of(started)
            assert (asked["step"], asked["role"]) == ("promote", "Boss")
            assert asked["show"]["resource"] == {"env": "prod", "service": "shop"}
            with pytest.raises(Refused) as refused:
                await pawl.approve("r-1", "promote", by="zoe", role="Boss")
            assert refused.value.code == "approval.by_requester"
            await pawl.approve("r-1", "promote", by="ann", role="Boss")
            result = await started.result(timeout="20s")
            return result, started.show()["steps"]["promote"]["policy"]

    result, policy = run(main())

    assert result == {"release": "r-shop-1"}
    assert (policy["decision"], policy["asked"]) == ("approval", 2)
    assert policy["policies"] == [{"policy": "release-rules", "version": 1, "id": "prod"}]
    assert policy["inputs"]["principal"] == {"type": "User", "id": "zoe"}


@pytest.mark.req("R126")
def test_a_denial_fails_the_run_before_the_function_is_called(engine, tmp_path, rules):
    """With the name of the policy in the words."""
    called = []

    async def main():
        async with engine() as pawl:
            pawl.load(rules)

            @step(policy={"action": "promote", "resource": {"service": "ledger", "env": "test"}})
            async def ship() -> None:
                called.append(1)

            @flow
            def shipping(_):
                return ship()

            with pytest.raises(WorkflowFailed) as failed:
                await (await pawl.start(shipping, {})).result(timeout="20s")
            return failed.value

    failed = run(main())

    assert (failed.code, failed.failure_class, called) == ("policy.denied", "governance", [])
    assert "denied by policy frozen of release-rules v1" in str(failed)


def test_a_policy_that_is_retired_governs_nothing(engine, rules):
    """What asks after that is allowed; retiring twice is refused, and so is a word too many."""

    async def main():
        async with engine() as pawl:
            pawl.load(rules)
            held = await pawl.start(release, {"service": "shop"}, id="r-1", by="zoe")
            await asked_of(held)
            await pawl.retire_policy("release-rules", by="ann", comment="no longer needed")
            free = await pawl.start(release, {"service": "shop"}, id="r-2", by="zoe")
            await free.result(timeout="20s")
            with pytest.raises(Refused) as refused:
                await pawl.retire_policy("release-rules", by="ann")
            with pytest.raises(TypeError, match="commment"):
                await pawl.retire_policy("release-rules", by="ann", commment="again")
            return refused.value, free.show()["steps"]["promote"]["policy"]

    refused, policy = run(main())

    assert refused.code == "policy.retired"
    assert (policy["decision"], policy["policies"]) == ("allow", [])


@pytest.mark.req("R138")
def test_a_version_that_changed_is_refused_when_it_is_loaded(tmp_path, rules):
    """The same once more is fine."""

    async def main(text):
        rules.write_text(text)
        async with Pawl(f"sqlite:///{tmp_path}/p.db") as pawl:
            pawl.load(rules)
            await pawl.start(release, {"service": "shop"}, id="r-1")

    run(main(RULES.replace("VERSION", "1")))
    run(main(RULES.replace("VERSION", "1")))
    with pytest.raises(PawlError) as refused:
        run(main(RULES.replace("VERSION", "1").replace("frozen", "melted")))
    assert refused.value.code == "policy.changed"
    assert str(refused.value) == (
        "release-rules version 1: this version of the policy is published with "
        "another text, and never changes: raise metadata.version [policy.changed]"
    )
    run(main(RULES.replace("VERSION", "3").replace("frozen", "melted")))
    with pytest.raises(Refused, match=r"version 3 is published: .*version above it \[policy.older"):
        run(main(RULES.replace("VERSION", "2")))


def test_a_file_that_is_no_cedar_is_refused_with_its_place(tmp_path):
    """Line and column of the file, not of the text in it."""
    path = tmp_path / "rules.yaml"
    text = RULES.replace("VERSION", "1").replace("resource.env ==", "resource.env =")
    path.write_text(text)
    column = text.splitlines()[8].index('= "prod"') + 1

    with pytest.raises(DefinitionError) as refused:
        Pawl("memory:").load(path)

    [found] = refused.value.findings
    assert (found.line, found.column, found.code) == (9, column, "policy.syntax")


@pytest.mark.req("R125")
def test_policies_of_one_tenant_do_not_govern_another(rules):
    """Each has its own."""

    async def main():
        async with Pawl("memory:", tenant="acme") as pawl:
            pawl.load(rules)
            other = await pawl.start(release, {"service": "shop"}, tenant="beta")
            assert await other.result(timeout="20s") == {"release": "r-shop-1"}
            own = await pawl.start(release, {"service": "shop"})
            await asked_of(own)

    asyncio.run(main())


@pytest.mark.req("R125")
def test_a_policy_that_is_loaded_later_holds_from_then_on(engine, rules):
    """Steps that are asked about after it is published are governed by it."""

    async def main():
        async with engine() as pawl:
            before = await pawl.start(release, {"service": "shop"})
            assert await before.result(timeout="20s") == {"release": "r-shop-1"}
            assert before.show()["steps"]["promote"]["policy"]["decision"] == "allow"
            pawl.load(rules)
            after = await pawl.start(release, {"service": "shop"})
            assert (await asked_of(after))["role"] == "Boss"

    run(main())
