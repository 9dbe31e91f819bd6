"""Nodes in one process, on a real PostgreSQL and on a file: what is for another reaches it."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from pawlflow import PawlError
from pawlflow.engine.places import shard_of_address
from pawlflow.nodes import Node
from pawlflow.store.port import SHARDS

DEFINITIONS = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: order}
spec:
  steps:
    - {name: pack, run: pack}
    - {name: paid, wait: {event: paid}, dependsOn: [pack]}
    - {name: ship, run: ship, dependsOn: [paid], with: {to: "${ steps.paid.to }"}}
  output: {shipped: "${ steps.ship }"}
---
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: family}
spec:
  steps:
    - name: children
      forEach: "${ input.many }"
      workflow: child
      with: {n: "${ item }"}
  output: {all: "${ steps.children }"}
---
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: child}
spec:
  steps:
    - {name: pack, run: pack}
  output: "${ input.n }"
---
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: slow}
spec:
  steps:
    - {name: work, run: work}
  output: "${ steps.work }"
---
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: nap}
spec:
  steps:
    - {name: sleep, sleep: 1s}
---
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: hibernate}
spec:
  steps:
    - {name: sleep, sleep: 90d}
"""


@pytest.fixture
def path(tmp_path):
    """The definitions."""
    (tmp_path / "all.yaml").write_text(DEFINITIONS)
    return tmp_path / "all.yaml"


class Made:
    """Nodes with the same functions."""

    def __init__(self, url, path):
        self.url, self.path = url, path
        self.began = []
        self.go = asyncio.Event()

    @asynccontextmanager
    async def some(self, count):
        """So many nodes, each with its share."""
        async with AsyncExitStack() as stack:
            found = []
            for _ in range(count):
                node = self.node()
                await stack.enter_async_context(node)
                found.append(node)
            await self.even(*found)
            yield found

    def node(self):
        """One that is not open yet."""
        node = Node(self.url)
        node.load(self.path)

        @node.effect("pack")
        async def pack():
            return "packed"

        @node.effect("ship")
        async def ship(to):
            return f"to {to}"

        @node.effect("work")
        async def work(ctx):
            self.began.append(ctx.key)
            await self.go.wait()
            return "done"

        return node

    async def even(self, *nodes):
        """Until each has its share."""
        wanted = SHARDS // len(nodes)
        await until(lambda: {len(node.held) for node in nodes} == {wanted})


async def until(holds):
    """Wait until something holds, as it will."""
    async with asyncio.timeout(50):
        while not holds():  # noqa: ASYNC110  # several nodes, and no event for it
            await asyncio.sleep(0.01)


def ids_of(node, count, prefix="i"):
    """Ids of instances in the shards of a node."""
    made = (f"{prefix}-{n}" for n in range(10_000))
    found = (each for each in made if shard_of_address(("default", each)) in node.held)
    return [next(found) for _ in range(count)]


@pytest.mark.req("R151")
def test_a_node_that_comes_gets_its_share(url, path):
    """And when it leaves, the one that stays has everything again."""

    async def run():
        made = Made(url, path)
        async with made.node() as first:
            assert first.held == tuple(range(SHARDS))
            async with made.node() as second:
                await made.even(first, second)
                assert sorted(first.held + second.held) == list(range(SHARDS))
            await made.even(first)

    asyncio.run(run())


@pytest.mark.req("R151")
def test_what_is_for_another_node_reaches_it(url, path):
    """Starts, signals, refusals and results, through a node that does not own the instance."""

    async def run():
        made = Made(url, path)
        async with made.some(2) as (here, there):
            [key] = ids_of(there, 1)
            started = await here.start("order", {}, id=key)
            await here.signal(key, "paid", {"to": "Rome"})
            result = await started.result(30)

            with pytest.raises(PawlError) as refused:
                await here.signal(key, "paid", {"to": "Paris"})
            again = await here.start("order", {}, id=key)
            return result, refused.value.code, again.id == key

    assert asyncio.run(run()) == ({"shipped": "to Rome"}, "instance.closed", True)


def test_a_new_id_is_of_the_nodes_own_shards(url, path):
    """A start without an id needs no other node."""

    async def run():
        made = Made(url, path)
        async with made.some(2) as (here, _):
            runs = [await here.start("child", {"n": n}) for n in range(20)]
            return [shard_of_address(("default", each.id)) in here.held for each in runs]

    assert all(asyncio.run(run()))


def test_a_family_lives_on_several_nodes(url, path):
    """Children are started, and answer, wherever their shards are."""

    async def run():
        made = Made(url, path)
        async with made.some(2) as (here, _):
            started = await here.start("family", {"many": list(range(30))})
            return await started.result(50)

    assert asyncio.run(run()) == {"all": list(range(30))}


@pytest.mark.req("R151")
def test_what_runs_goes_on_where_its_shard_goes(url, path):
    """A node leaves in the middle of an attempt: it is made again elsewhere, under the same key."""

    async def run():
        made = Made(url, path)
        async with made.some(2) as (here, there):
            [key] = ids_of(there, 1)
            started = await here.start("slow", {}, id=key)
            await until(lambda: made.began)
            await there.close()
            await until(lambda: len(made.began) == 2)
            made.go.set()
            return await started.result(50), len(set(made.began))

    assert asyncio.run(run()) == ("done", 1)


@pytest.mark.req("R151", "R213")
def test_deadlines_come_along_whatever_else_a_node_waits_for(url, path):
    """Those of the shards that it gains, and new ones: a sleep of months does not hold them up."""

    async def run():
        made = Made(url, path)
        async with made.some(2) as (here, there):
            [far], [before, after] = ids_of(here, 1), ids_of(there, 2)
            await here.start("hibernate", {}, id=far)
            moved = await here.start("nap", {}, id=before)
            await there.close()
            await until(lambda: len(here.held) == SHARDS)
            await moved.result(50)
            await (await here.start("nap", {}, id=after)).result(50)
            return here.run(far).show()["state"]

    assert asyncio.run(run()) == "waiting"


def test_what_is_in_memory_cannot_be_shared():
    """The refusal names what can."""
    with pytest.raises(PawlError) as refused:
        asyncio.run(Node("memory:").open())

    assert refused.value.code == "node.store"
    assert "postgresql://" in str(refused.value)


GOVERNED = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: governed}
spec:
  steps:
    - {name: pack, run: pack, policy: {action: pack, resource: {n: "${ input.n }"}}}
---
apiVersion: pawl.dev/v1
kind: Policy
metadata: {name: rules}
spec:
  cedar: |
    @id("few") permit(principal, action, resource) when { resource.n < 5 };
"""


@pytest.mark.req("R125", "R126")
def test_every_node_decides_by_the_same_policies(url, tmp_path):
    """Whoever has the cell of policies: each node reads what is in force before its steps act."""
    (tmp_path / "all.yaml").write_text(GOVERNED)
    made = Made(url, tmp_path / "all.yaml")

    async def main():
        async with made.some(2) as nodes:
            outcomes = []
            for node in nodes:
                few, many = ids_of(node, 2, prefix=f"g{nodes.index(node)}")
                allowed = await node.start("governed", {"n": 1}, id=few)
                await allowed.result(timeout="30s")
                denied = await node.start("governed", {"n": 9}, id=many)
                with pytest.raises(PawlError) as refused:
                    await denied.result(timeout="30s")
                outcomes.append(refused.value.code)
            return outcomes

    assert asyncio.run(main()) == ["policy.denied", "policy.denied"]
