"""Rows of instances that were removed go when the entry that says so is followed."""

import asyncio

import pytest

from pawlflow.effects.headers import instance_uuid
from pawlflow.projections.comparing import Comparison
from pawlflow.testing import Lab
from tests.testing.lab_kit import workflow

STEP = ("name: a, run: x.a, timeout: 1m",)
KEPT = workflow("kept", "retention: {completed: 1d}", steps=STEP)
FOREVER = workflow("forever", steps=STEP)


def played(url, then):
    """One instance that goes after a day, and one that stays; `then` is done in between."""

    async def main():
        async with Lab(url) as lab:
            lab.add(KEPT)
            lab.add(FOREVER)
            lab.script("x.a", "fine")
            for name in ("kept", "forever"):
                await (await lab.start(name, id=name)).result()
            then()
            await lab.skip("1d")

    asyncio.run(main())


def ids(books):
    """The instances and steps that the views show."""
    instances, steps = books.rows()
    return [row["id"] for row in instances], [row["workflow_instance_id"] for row in steps]


def difference(books):
    """The first row that is not as the journal gives it."""
    return Comparison(books.store, books.models, instance_uuid).run().difference


@pytest.mark.req("R218", "R164")
def test_rows_go_with_what_was_removed(books):
    """Until then they are behind, and no difference; a rebuild makes none of them."""
    played(books.url, books.follower().catch_up)
    assert ids(books)[0] == ["forever", "kept"]
    assert difference(books) is None

    books.follower(page=1).catch_up()
    followed = books.rows()
    assert ids(books) == (["forever"], ["forever"])
    assert difference(books) is None

    books.models.restart(range(32))
    books.follower().catch_up()
    assert books.rows() == followed
    assert difference(books) is None


@pytest.mark.req("R218", "R164")
def test_who_follows_from_the_beginning_meets_hashes_alone(books):
    """Turns without bytes are passed by."""
    played(books.url, lambda: None)
    books.follower().catch_up()
    assert ids(books)[0] == ["forever"]
    assert difference(books) is None
