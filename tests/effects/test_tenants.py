"""Workflows of tenants: what the engine has is everybody's, what a tenant published is its own."""

import pytest

from pawlflow import NoExecutor, NotFound, Pawl
from tests.effects.kit import run, written
from tests.effects.test_children import KID, PARENT

TEN = KID.replace("x.double", "x.ten")
OTHER = PARENT.replace("workflow: kid", "workflow: other")


def double_and_ten(pawl):
    """Let an engine carry out the effects of the children."""
    pawl.effect("x.double")(lambda n: 2 * n)
    pawl.effect("x.ten")(lambda n: 10 * n)


async def published(url, tenant, *paths):
    """A tenant publishes workflows, and goes."""
    async with Pawl(url, tenant=tenant) as pawl:
        pawl.load(*paths)


@pytest.mark.req("R92", "R173")
def test_a_tenant_starts_what_it_has_published_with_its_own_children(tmp_path):
    """Of the engine's children it gets those that it has none of; nobody else sees its own."""
    url, own = f"sqlite:///{tmp_path}/pawl.db", tmp_path / "own"
    own.mkdir()
    theirs = [written(own, "parent", PARENT), written(own, "kid", TEN), written(own, "two", OTHER)]
    ours = [written(tmp_path, "kid", KID), written(tmp_path, "other", KID)]

    async def main():
        await published(url, "acme", *theirs)
        async with Pawl(url) as pawl:
            pawl.load(*ours)
            double_and_ten(pawl)
            results = []
            for name in ("parent", "two"):
                started = await pawl.start(name, {"l": [5]}, tenant="acme")
                results.append(await started.result(timeout="30s"))
            [many] = await pawl.start_many("parent", [{"l": []}], tenant="acme")
            results.append(await many.run.result(timeout="30s"))
            unknown = []
            for tenant in ("default", "globex"):
                with pytest.raises(NotFound) as refused:
                    await pawl.start("parent", {"l": []}, tenant=tenant)
                unknown.append(refused.value.code)
            return results, unknown

    results, unknown = run(main())

    assert results == [{"one": 10, "many": [50]}, {"one": 2, "many": [10]}, {"one": 10, "many": []}]
    assert unknown == ["workflow.unknown"] * 2


@pytest.mark.req("R92")
def test_the_children_of_a_tenants_workflow_are_looked_at_before_the_start(tmp_path):
    """The effects of its own, and not those of the engine's under the same name."""
    url, own = f"sqlite:///{tmp_path}/pawl.db", tmp_path / "own"
    own.mkdir()

    async def main():
        await published(url, "acme", written(own, "parent", PARENT), written(own, "kid", TEN))
        async with Pawl(url) as pawl:
            pawl.load(written(tmp_path, "kid", KID))
            pawl.effect("x.double")(lambda n: 2 * n)
            with pytest.raises(NoExecutor) as refused:
                await pawl.start("parent", {"l": []}, tenant="acme")
            return refused.value.effects

    assert run(main()) == ["x.ten"]


@pytest.mark.req("R92")
def test_what_the_engines_tenant_has_published_is_started_with_its_children(tmp_path):
    """For another tenant too, though it was another process that published them."""
    url = f"sqlite:///{tmp_path}/pawl.db"
    paths = [written(tmp_path, "parent", PARENT), written(tmp_path, "kid", KID)]

    async def main():
        await published(url, "default", *paths)
        async with Pawl(url) as pawl:
            double_and_ten(pawl)
            started = await pawl.start("parent", {"l": [5]}, tenant="acme")
            result = await started.result(timeout="30s")
            return result, started.show()["children"][0]["workflow"]

    assert run(main()) == ({"one": 2, "many": [10]}, "kid")


@pytest.mark.req("R92")
def test_the_engines_workflow_comes_before_a_tenants_of_the_same_name(tmp_path):
    """As `definitions.list` says over NATS; a child that the tenant has is the tenant's."""
    url, own = f"sqlite:///{tmp_path}/pawl.db", tmp_path / "own"
    own.mkdir()

    async def main():
        await published(url, "default", written(tmp_path, "parent", PARENT))
        await published(url, "acme", written(own, "parent", OTHER), written(own, "kid", TEN))
        async with Pawl(url) as pawl:
            double_and_ten(pawl)
            started = await pawl.start("parent", {"l": [5]}, tenant="acme")
            return await started.result(timeout="30s")

    assert run(main()) == {"one": 10, "many": [50]}
