"""The owner lets instances go when their time is over, and keeps them as files first if told so."""

import asyncio

import pytest

from pawlflow import Pawl, loop
from pawlflow.archiving import Archive, ArchiveError, plain
from pawlflow.model.ids import InstanceId, Tenant
from pawlflow.projections.archive import held_against
from pawlflow.projections.journal_file import read_journal
from pawlflow.projections.proof import verify_store
from pawlflow.removing import PORTION
from pawlflow.retaining import AGAIN_MS, archive_of, is_wanted
from pawlflow.store.memory import MemoryStore
from pawlflow.testing import Lab
from pawlflow.testing.journals import verify_file
from pawlflow.trouble import NotFound
from tests.testing.lab_kit import on_a_loop, workflow

ME = Tenant("default")
RULE = "retention: {completed: 30d, failed: 365d}"
SHORT = "name: a, run: x.y, timeout: 1m"
KEPT = workflow("kept", RULE, "output: '${ steps.a }'", steps=(SHORT,))
FOREVER = workflow("forever", steps=(SHORT,))
CHILD = workflow("child", "retention: {completed: 1d}", "output: '${ steps.a }'", steps=(SHORT,))
PARENT = workflow("parent", "output: '${ steps.below }'", steps=("name: below, workflow: child",))
pytestmark = pytest.mark.req("R218")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request, tmp_path):
    """A store of each kind."""
    match request.param:
        case "memory":
            return "memory:"
        case "sqlite":
            return f"sqlite:///{tmp_path}/kept.db"
        case _:
            return request.getfixturevalue("postgres").fresh()


def lab_on(url, **more):
    """A lab that knows these workflows, where every call succeeds."""
    lab = Lab(url, **more)
    for each in (KEPT, FOREVER, CHILD, PARENT):
        lab.add(each)
    lab.script("x.y", {"big": "z" * 70_000})
    return lab


def there(lab):
    """The ids of the instances there are."""
    return sorted(row["id"] for row in lab.list(state=("completed", "failed", "cancelled")))


@on_a_loop
async def test_instances_go_in_virtual_time(url):
    """By outcome and age; what is not named stays, and the store verifies."""
    async with lab_on(url) as lab:
        await (await lab.start("kept", id="done")).result()
        await (await lab.start("forever", id="always")).result()
        lab.script("x.y", hang=True)
        stopped = await lab.start("kept", id="stopped")
        await lab.cancel("stopped")
        await lab.skip("2m")
        assert there(lab) == ["always", "done", "stopped"]
        await lab.skip("29d")
        assert there(lab) == ["always", "done", "stopped"]
        await lab.skip("1d")
        assert there(lab) == ["always", "stopped"]
        await lab.skip("335d")
        assert there(lab) == ["always"]
        with pytest.raises(LookupError, match="stopped was removed at 2027-01-01T00:00:"):
            stopped.show()
        with pytest.raises(NotFound) as told:
            lab.run("done")
        report = verify_store(lab.reader)
    assert told.value.code == "instance.removed"
    assert (report.differences, report.removed, report.instances) == ([], 2, 1)


@on_a_loop
async def test_who_opens_later_finds_what_is_over(tmp_path):
    """After a restart the index knows; until then nobody had to."""
    url = f"sqlite:///{tmp_path}/kept.db"
    async with lab_on(url) as lab:
        await (await lab.start("kept", id="done")).result()
    async with lab_on(url, now="2026-03-01T00:00Z") as lab:
        assert there(lab) == ["done"]
        await lab.skip("1ms")
        assert there(lab) == []
        assert verify_store(lab.reader).removed == 1


class Counting(MemoryStore):
    """A handle that counts how often it is asked what is over."""

    asked = 0

    def expiring(self, shards, after, limit):
        self.asked += 1
        return super().expiring(shards, after, limit)


@on_a_loop
async def test_an_engine_at_rest_asks_nothing():
    """One look when it opens, one when the next instance's time is over; none for those kept."""
    async with lab_on("memory:") as lab:
        store = lab.retention.retainer.store = Counting(lab.store.shared)
        for number in range(20):
            await (await lab.start("forever", id=f"f-{number}")).result()
        await lab.skip("100d")
        assert (store.asked, lab.retention.retainer.next_at) == (1, None)
        for number in range(20):
            await (await lab.start("kept", id=f"k-{number}")).result()
            await lab.skip("1h")
        assert store.asked == 1
        await lab.skip("29d")
        assert store.asked == 1
        await lab.skip("4h")
        assert store.asked == 2
        assert len(there(lab)) == 39


@on_a_loop
async def test_many_go_in_portions():
    """A portion at a time, with a rest after each that is as long as it took."""
    async with lab_on("memory:") as lab:
        await lab.start_many("kept", [{}] * (2 * PORTION + 1))
        await lab.idle()
        rests = []
        lab.clock.time += 30 * 86_400_000

        async def rest(seconds):
            rests.append((len(there(lab)), seconds))

        done = await lab.retention.retainer.sweep(rest)
        assert len(done) == 2 * PORTION + 1
        assert [left for left, _ in rests] == [PORTION + 1, 1]
        assert there(lab) == []
        assert lab.retention.retainer.next_at is None


@on_a_loop
async def test_nothing_goes_before_its_archive_is_durable(url, tmp_path):
    """A folder that cannot be written keeps everything; later it is tried again."""
    folder = tmp_path / "archive"
    folder.write_text("in the way")
    async with lab_on(url) as lab:
        lab.retention.retainer.archive = Archive(folder)
        await (await lab.start("kept", id="done")).result()
        lab.clock.time += 30 * 86_400_000
        with pytest.raises(ArchiveError, match="nothing is removed that cannot be archived"):
            await lab.retention.retainer.sweep()
        assert there(lab) == ["done"]
        await lab.retention.retainer.work()
        assert lab.retention.retainer.next_at == lab.now_ms + AGAIN_MS
        folder.unlink()
        await lab.skip("1h")
        assert there(lab) == []
        [path] = folder.rglob("*.journal")
        data = path.read_bytes()
        verdict = verify_file(data)
        assert list(held_against(lab.reader, read_journal(data))) == []
    assert path.parent == folder / "default" / "2026-01-01"
    assert (verdict.difference, verdict.turns) == (None, 2)


@on_a_loop
async def test_checkpoints_go_with_their_instance(url, tmp_path):
    """Those of a loop that a dead process left open, too; each has its archive."""

    @loop(timeout="1m")
    async def think(ctx) -> int:
        await ctx.do("first", lambda: "secret" * 20)
        return await ctx.do("second", lambda: 2)

    async with Lab(url) as lab:
        lab.retention.retainer.archive = Archive(tmp_path)
        lab.add(workflow("thinks", RULE, steps=("name: t, run: think, timeout: 1m",)))
        lab.register(think)
        await (await lab.start("thinks", id="t-1")).result()
        [loop_cell] = lab.reader.systems(ME, "$loop", "", 9)
        await lab.skip("30d")
        assert lab.reader.systems(ME, "$loop", "", 9) == []
        report = verify_store(lab.reader)
        assert (there(lab), report.differences, report.removed) == ([], [], 2)
    names = sorted(path.name.split(".")[0] for path in tmp_path.rglob("*.journal"))
    assert names == [plain(loop_cell.cell.key), "t-1"]
    for path in tmp_path.rglob("*.journal"):
        assert verify_file(path.read_bytes()).difference is None


@on_a_loop
async def test_a_parent_keeps_what_it_heard_of_a_child_that_is_gone():
    """A child goes by the retention of its own workflow."""
    async with lab_on("memory:") as lab:
        run = await lab.start("parent", id="p")
        result = await run.result()
        [child] = run.show()["children"]
        await lab.skip("2d")
        assert there(lab) == ["p"]
        assert run.show()["children"] == [child]
        assert (await run.result(), child["state"]) == (result, "completed")
        assert verify_store(lab.reader).differences == []


async def done():
    """What the step of a real engine does."""
    return "done"


@pytest.mark.parametrize("driver", ["inline", "thread"])
def test_an_engine_on_real_time_removes_by_itself(driver, tmp_path):
    """Its timer wakes it; on a thread nobody on the loop waits for the disk."""
    quick = workflow("quick", "retention: {completed: 1ms}", steps=(SHORT,))

    async def main():
        url = f"sqlite:///{tmp_path}/quick.db"
        async with Pawl(url, driver=driver, archive=tmp_path / "archive") as pawl:
            pawl.effect("x.y")(done)
            pawl.add(quick)
            async with asyncio.timeout(10):
                await (await pawl.start("quick", id="q")).result()
                while pawl.reader.removed((ME, InstanceId("q"))) is None:  # noqa: ASYNC110
                    await asyncio.sleep(0)
            assert verify_store(pawl.reader).removed == 1

    asyncio.run(main())
    assert len(list(tmp_path.rglob("q.*.journal"))) == 1


def test_it_can_be_turned_off(monkeypatch, tmp_path):
    """By the environment, or where the engine is made; what is said there goes first."""
    assert is_wanted(given=None)
    monkeypatch.setenv("PAWL_RETENTION", "off")
    monkeypatch.setenv("PAWL_ARCHIVE", str(tmp_path))
    assert not is_wanted(given=None)
    assert is_wanted(given=True)
    assert archive_of(None).folder == tmp_path
    assert archive_of(tmp_path / "other").folder == tmp_path / "other"

    async def main():
        async with Pawl("memory:") as pawl:
            return pawl.retention.retainer

    assert asyncio.run(main()) is None


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("i-1", "i-1"),
        ("a:b_c.d", "a:b_c.d"),
        ("../../etc", "..%2F..%2Fetc"),
        ("..", "%2E%2E"),
        ("ann & co", "ann%20%26%20co"),
    ],
)
def test_a_name_is_one_part_of_a_path(name, part):
    """Whatever a tenant is called, its archives stay in the folder."""
    assert plain(name) == part


def test_a_long_name_still_fits():
    """And two of them never meet."""
    one, two = plain("ä" * 128), plain("ä" * 127 + "ö")
    assert one != two
    assert max(len(one), len(two)) < 200
