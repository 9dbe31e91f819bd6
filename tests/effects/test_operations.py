"""Finding instances and acting on many of them, from Python."""

from pathlib import Path

import pytest

from pawlflow import Pawl, PawlError
from pawlflow.projections.proof import verify_store
from tests.effects.kit import run, written

ORDER = """
  timeout: 1h
  search: {repo: input.repo, amount: input.amount}
  steps:
    - {name: paid, wait: {event: paid, timeout: 30m}}
    - {name: ship, run: parcel.send, dependsOn: [paid], onFailure: escalate, timeout: 30s}
"""


class Shop:
    """Orders in an engine; shipping fails while the lorry is broken."""

    def __init__(self, pawl: Pawl, path: Path) -> None:
        self.broken = True
        self.pawl = pawl
        self.pawl.load(path)
        self.pawl.effect("parcel.send")(self.send)

    async def send(self) -> dict[str, str]:
        """Ship, if that is possible today."""
        if self.broken:
            raise RuntimeError("no lorry")
        return {"parcel": "p"}

    async def order(self, count: int) -> None:
        """So many orders of two repositories."""
        for n in range(count):
            await self.pawl.start("order", {"repo": f"r{n % 2}", "amount": n}, id=f"o-{n}")

    def ids(self, *where: str, **more: object) -> list[str]:
        """The orders that a filter means."""
        return [row["id"] for row in self.pawl.list(where, **more)]


@pytest.fixture
def shop(engine, tmp_path):
    """A shop on each store, with each driver."""
    return Shop(engine(), written(tmp_path, "order", ORDER))


@pytest.mark.req("R216", "R183")
def test_instances_are_found_from_python(shop):
    """By attributes and facts, page by page, newest first, as `pawl ls --json` would."""
    run(find(shop))


async def find(shop: Shop) -> None:
    """Orders, looked for."""
    async with shop.pawl:
        await shop.order(6)

        assert sorted(shop.ids()) == ["o-0", "o-1", "o-2", "o-3", "o-4", "o-5"]
        assert sorted(shop.ids("repo == 'r1' && amount > 1")) == ["o-3", "o-5"]
        assert shop.ids("repo == 'r1'", "amount < 4", "amount > 1") == ["o-3"]
        assert sorted(shop.ids(state="waiting", workflow="order")) == sorted(shop.ids())
        assert shop.ids(state=["failed", "completed"]) == []
        pages, last = [], None
        while page := shop.ids("amount >= 0", limit=4, after=last):
            pages.append(page)
            last = page[-1]
        assert [len(page) for page in pages] == [4, 2]
        assert [*pages[0], *pages[1]] == shop.ids()
        assert shop.pawl.list("amount == 0")[0]["search"] == {"repo": "r0", "amount": 0}
        for bad, code in [("repoo == 1", "where.unknown"), ("repo =", "where.invalid")]:
            with pytest.raises(PawlError) as error:
                shop.ids(bad)
            assert error.value.code == code
        with pytest.raises(PawlError, match="no instance 'nobody'"):
            shop.ids(after="nobody")


@pytest.mark.req("R215", "R133")
def test_many_are_told_and_mended_from_python(shop):
    """A signal to some, a retry of what is escalated, a cancel of the rest; each a batch."""
    run(mend(shop))


async def mend(shop: Shop) -> None:
    """Orders, looked after."""
    async with shop.pawl as pawl:
        await shop.order(5)
        told = await pawl.batch("signal", where="repo == 'r0'", by="ann", event="paid", data={})
        for key in ("o-0", "o-2", "o-4"):
            await until_state(pawl, key, "escalated")
        shop.broken = False
        mended = await pawl.batch("retry", where="amount < 3", by="bob", comment="new lorry")
        for key in ("o-0", "o-2"):
            assert await pawl.run(key).result(timeout=20) is None
        stopped = await pawl.batch("cancel", where=["repo == 'r1'", "amount > 0"], by="ann")
        nobody = await pawl.batch("pause", where="amount > 100", by="ann")

        assert (told["act"], told["done"], told["refused"]) == ("signal paid", 3, 0)
        assert {each["id"] for each in mended["results"]} == {"o-2", "o-0"}
        assert (mended["comment"], mended["by"], mended["state"]) == ("new lorry", "bob", "closed")
        assert stopped["where"] == "(repo == 'r1') && (amount > 0)"
        assert (stopped["matched"], stopped["done"]) == (2, 2)
        assert (nobody["matched"], nobody["state"]) == (0, "closed")
        heard = {event.get("batch") for event in pawl.run("o-2").history()}
        assert heard == {None, told["id"], mended["id"]}
        assert verify_store(pawl.reader).differences == []


async def until_state(pawl: Pawl, key: str, state: str) -> None:
    """Wait until an instance is in a state."""
    run = pawl.run(key)
    while (shown := run.show())["state"] != state:
        await pawl.changed((run.tenant, run.id), shown["turns"])
