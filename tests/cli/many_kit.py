"""Many instances that wait, made in a moment, and what became of each."""

import asyncio
from collections import Counter
from typing import Any

from pawlflow import Pawl
from pawlflow.kernel.replay import read_turn
from pawlflow.model.ids import Tenant
from pawlflow.projections.reading import story_of
from pawlflow.store.port import Filter
from pawlflow.store.sqlite import SqliteStore
from tests.cli.live_kit import Place

PARKED = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: parked}
spec:
  timeout: 1h
  search: {n: input.n, lot: input.n % 10, name: "'car ' + string(input.n)"}
  steps:
    - {name: key, wait: {event: key.turned, timeout: 50m}}
    - {name: drive, run: car.drive, dependsOn: [key], onFailure: escalate, timeout: 30s}
"""
STEPS = """\
from pathlib import Path

from pawlflow import step


@step(name="car.drive")
def drive():
    if not Path("fuel").exists():
        raise RuntimeError("no fuel")
"""


def parked(place: Place, count: int) -> None:
    """So many instances that wait: p-0, p-1, ..."""
    (place.folder / "parked.yaml").write_text(PARKED)
    (place.folder / "car_steps.py").write_text(STEPS)
    asyncio.run(park(place, count))


async def park(place: Place, count: int) -> None:
    """Start them together."""
    pawl = Pawl(f"sqlite:///{place.db}")
    pawl.load(place.folder / "parked.yaml")
    pawl.effect("car.drive")(lambda: None)
    async with pawl:
        await asyncio.gather(
            *(pawl.start("parked", {"n": n}, id=f"p-{n}", by="zoe") for n in range(count))
        )


def inputs_in(place: Place, kind: str) -> dict[str, Counter[str]]:
    """The batches whose inputs of a kind each instance took, and how often."""
    store = SqliteStore(place.db)
    try:
        tenant = Tenant("default")
        heads = store.instances(Filter(tenant=tenant, limit=100_000))
        return {head.cell.key: batches_in(store, tenant, head.cell.key, kind) for head in heads}
    finally:
        store.close()


def batches_in(store: SqliteStore, tenant: Tenant, key: Any, kind: str) -> Counter[str]:
    """The same of one instance."""
    story = story_of(store, tenant, key)
    inputs = [read_turn(data, story.payloads).input for data, _ in story.turns]
    return Counter(each.batch for each in inputs if type(each).__name__ == kind)
