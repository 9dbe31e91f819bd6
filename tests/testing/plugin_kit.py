"""A project that uses the plugin, in a folder of its own."""

import pytest

# Imported here, so that runs in this process share them.
import pawlflow.testing.lab
import pawlflow.testing.plugin_crashes
import pawlflow.testing.plugin_scenarios
import pawlflow.testing.replays  # noqa: F401

ORDER = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: order}
spec:
  timeout: 30d
  steps:
    - name: charge
      run: card.charge
      retryPolicy: {maxRetries: 3, backoff: exponential, initialDelay: 1s, maxDelay: 60s}
      mutates: false
    - {name: cool, sleep: 3d, dependsOn: [charge]}
    - {name: ship, run: parcel.ship, dependsOn: [cool], mutates: false}
"""
GOOD = """
from pawlflow.testing import Fail, assert_replays

async def test_it_ships_once(pawl):
    pawl.load("order.yaml")
    pawl.script("card.charge", [Fail.transient(), {"id": 1}])
    shipped = set()

    @pawl.effect("parcel.ship")
    async def ship(ctx):
        shipped.add(ctx.key)

    run = await pawl.start("order", id="o-1")
    await pawl.skip("4d")
    assert await run.result() is None
    assert len(shipped) == 1
    assert_replays(run)
"""
FORGETFUL = """
async def test_it_ships_once(pawl):
    pawl.load("order.yaml")
    pawl.script("card.charge", {})
    shipped = []

    @pawl.effect("parcel.ship")
    async def ship():
        shipped.append("a parcel")

    await pawl.start("order", id="o-1")
    await pawl.skip("4d")
    assert shipped == ["a parcel"]
"""
SCENARIO = """\
apiVersion: pawl.dev/v1
kind: Scenario
metadata: {name: %s}
spec:
  workflow: ./order.yaml
  expect: {state: %s}
"""


@pytest.fixture
def project(pytester):
    """A folder with a workflow."""
    pytester.makefile(".yaml", order=ORDER)
    return pytester


def run(project, *arguments):
    """Run pytest there, in this process."""
    return project.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist", *arguments)
