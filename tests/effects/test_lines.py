"""Lines: calls that wait. Tenants take turns, only so many are kept, and nothing is lost."""

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow import Pawl
from pawlflow.effects import lines as room
from pawlflow.effects.lines import Lines, Places
from pawlflow.model.ids import CellId, Digest, InstanceId, StepKey, StepName, Tenant, WorkflowName
from pawlflow.model.intents import Call
from pawlflow.model.payload import Payload
from tests.effects.kit import run, written


def call(tenant, number, cell=0, size=0):
    """A call of some cell of a tenant."""
    name = f"{tenant}-{number}".encode()
    where = CellId(Tenant(tenant), WorkflowName("w"), InstanceId(f"i-{cell}"))
    params = Payload.of("x" * size, Tenant(tenant))
    effect = (False, "do", None, params, (), None, None, 0)
    return Call(Digest(name), where, StepKey(name), 1, "do", StepName("s"), 0, 0, *effect)


def taken(lines, count):
    """The next calls, by tenant."""
    return "".join(each.cell.tenant for _ in range(count) if (each := lines.take()))


@pytest.mark.req("R214")
def test_tenants_take_turns():
    """One call of B goes out second, behind a thousand of A."""
    lines = Lines(10_000)
    for n in range(1_000):
        lines.put(call("a", n))
    lines.put(call("b", 0))
    lines.put(call("b", 1))

    assert taken(lines, 6) == "ababaa"
    assert len(lines) == 996


def test_a_call_that_is_told_again_keeps_its_place():
    """It waits once, where it stood."""
    lines = Lines(10)
    for n in (0, 1, 0):
        lines.put(call("a", n))

    assert len(lines) == lines.room == 2
    assert [lines.take().id, lines.take().id, lines.take()] == [b"a-0", b"a-1", None]
    assert lines.room == 0


@pytest.mark.req("R214")
def test_who_has_the_most_gives_way_and_is_asked_for_later():
    """Above the bound the newest of the longest line is left to the journal, by its cell."""
    lines, asked = Lines(10), []
    lines.again = asked.append
    for n in range(40):
        lines.put(call("a", n, cell=n))
    for n in range(4):
        lines.put(call("b", n, cell=n))

    assert lines.room == 10
    assert [each for each in lines.where if each.startswith(b"b")] == [
        b"b-0",
        b"b-1",
        b"b-2",
        b"b-3",
    ]
    assert lines.missing == 34
    assert asked == []
    assert taken(lines, 5) == "ababa"
    assert [len(each) for each in asked] == [5]
    assert set(asked[0]) <= {("a", f"i-{n}") for n in range(40)}
    assert taken(lines, 4) == "baba"
    assert len(asked) == 1  # what was asked for is on its way
    assert taken(lines, 2) == "a"
    assert [len(each) for each in asked] == [5, 5]  # it did not come, and nothing is left


def test_large_parameters_take_the_room_of_many():
    """What waits is bounded in bytes: 4 KiB count as one call."""
    lines = Lines(10)
    lines.again = lambda _: None
    for n in range(9):
        lines.put(call("a", n, size=20_000))

    assert len(lines) == 2
    assert lines.room == 10


def test_more_cells_than_are_remembered_are_found_in_the_journal(monkeypatch):
    """Then everything in flight is asked for, once the rest is done."""
    monkeypatch.setattr(room, "MISSED_MAX", 3)
    lines, asked = Lines(2), []
    lines.again = asked.append
    for n in range(20):
        lines.put(call("a", n, cell=n))
    assert (lines.missing, lines.lost) == (3, True)

    while lines.take() is not None:
        pass

    assert sum(len(each) for each in asked if each is not None) <= 3
    while lines.missing or lines.lost:
        lines.ask()
    assert asked[-1] is None


def test_what_others_look_after_is_forgotten():
    """Another node took a shard over: neither calls nor cells of it are kept."""
    lines, asked = Lines(4), []
    lines.again = asked.append
    for n in range(12):
        lines.put(call("a", n, cell=n))

    lines.abandon(lambda cell: int(cell.key[2:]) % 2 == 0)

    assert (len(lines), lines.room, lines.missing) == (2, 2, 4)
    while lines.take() is not None:
        pass
    assert {key for each in asked for _, key in each} == {f"i-{n}" for n in (5, 7, 9, 11)}


class Journal:
    """What is in flight, and lines that may ask for it."""

    def __init__(self, most):
        self.lines = Lines(most)
        self.wanted, self.open, self.done = [], {}, set()
        self.lines.again = self.wanted.append

    def offer(self):
        """Give what was asked for."""
        while self.wanted:
            cells = self.wanted.pop()
            for each in list(self.open.values()):
                if cells is None or (each.cell.tenant, each.cell.key) in cells:
                    self.lines.put(each)

    def take(self):
        """Carry out a call, once."""
        found = self.lines.take()
        if found is not None:
            assert found.id not in self.done
            self.done.add(found.id)
            del self.open[found.id]


@given(st.data(), st.integers(1, 6))
@pytest.mark.req("R28", "R214")
def test_every_call_comes_out_in_the_end(data, most):
    """Whatever comes, goes and is stopped: what was not stopped is taken, and the bound is kept."""
    journal = Journal(most)
    lines = journal.lines
    for n in range(data.draw(st.integers(0, 40))):
        tenant, cell = data.draw(st.sampled_from("aaab")), data.draw(st.integers(0, 5))
        made = call(tenant, n, cell)
        journal.open[made.id] = made
        lines.put(made)
        assert lines.room == len(lines) <= most
        if data.draw(st.booleans()):
            journal.take()
        if journal.open and data.draw(st.integers(0, 9)) == 0:
            gone = data.draw(st.sampled_from(sorted(journal.open)))
            del journal.open[gone]
            lines.discard(gone)
        journal.offer()
    for _ in range(500):
        journal.take()
        lines.ask()
        journal.offer()

    assert journal.open == {}
    assert (len(lines), lines.room, lines.missing, lines.lost) == (0, 0, 0, False)


@pytest.mark.req("R214")
def test_the_last_places_are_for_others():
    """A tenant alone gets seven of eight; few places are all for whoever comes."""
    every = Places(16)
    threads = Places(8, every)
    count = 0
    while threads.has_room("a"):
        threads.take("a")
        count += 1

    assert (count, every.used) == (7, 7)
    assert threads.has_room("b")
    assert every.has_room("a")
    threads.leave("a")
    assert threads.has_room("a")
    one = Places(1)
    assert one.has_room("a")
    one.take("a")
    assert not one.has_room("b")


# With real functions

TWO = "  steps: [{name: l, run: work}]\n"


@pytest.mark.req("R214")
@pytest.mark.parametrize("threads", [False, True], ids=["on the loop", "in threads"])
def test_a_call_begins_though_another_tenant_holds_every_place_it_may(tmp_path, threads):
    """A has a hundred calls that do not end; B's call begins, and ends, beside them."""
    path = written(tmp_path, "work", TWO)
    hold, begun = threading.Event(), []

    async def main():
        async with Pawl("memory:", concurrency=16) as pawl:
            [workflow] = pawl.load(path)
            free = asyncio.Event()

            def work(ctx):
                begun.append(ctx.tenant)
                return ctx.tenant == "b" or hold.wait(20)

            async def work_on_loop(ctx):
                begun.append(ctx.tenant)
                return ctx.tenant == "b" or await free.wait()

            pawl.effect("work")(work if threads else work_on_loop)
            runs = [await pawl.start(workflow, tenant="a") for _ in range(100)]
            mine = await pawl.start(workflow, tenant="b")
            await mine.result(timeout="20s")
            seen = list(begun)
            hold.set()
            free.set()
            for each in runs:
                await each.result(timeout="20s")
            return seen

    seen = run(main())

    assert seen.count("a") == 14  # seven of eight of sixteen places
    assert seen.count("b") == 1
    assert len(begun) == 101


@pytest.mark.req("R28", "R214")
def test_more_calls_than_are_kept_are_all_carried_out(engine, tmp_path):
    """The line is bounded; what finds no room comes back from the journal, and runs once."""
    path = written(tmp_path, "many", TWO)
    ran, most = [], 0

    async def main():
        nonlocal most
        async with engine(concurrency=8) as pawl:
            [workflow] = pawl.load(path)
            pawl.runner.line.most = 20
            free = asyncio.Event()

            @pawl.effect("work")
            async def work(ctx):
                await free.wait()
                ran.append(ctx.instance)

            answers = await pawl.start_many(workflow, [(f"i-{n}", {}) for n in range(200)])
            line = pawl.runner.line
            most = max(line.room, len(pawl.runner.jobs))
            assert line.missing == 200 - len(line) - len(pawl.runner.jobs)
            free.set()
            for each in answers:
                await each.run.result(timeout="20s")

    run(main())

    assert most <= 20
    assert sorted(ran) == sorted(f"i-{n}" for n in range(200))


@pytest.mark.req("R214")
def test_whoever_waited_leaves_nothing_behind(engine, tmp_path):
    """Asked for after the end, or given up before it: nothing is kept of those who waited."""
    path = written(tmp_path, "wait", TWO)

    async def main():
        async with engine() as pawl:
            pawl.load(path)
            free = asyncio.Event()
            pawl.effect("work")(free.wait)
            run = await pawl.start("wait")
            with pytest.raises(TimeoutError):
                await run.result(timeout="1ms")
            kept = [dict(pawl.closing)]
            free.set()
            await run.result(timeout="20s")
            await run.result(timeout="20s")
            return [*kept, pawl.closing, pawl.changing]

    assert run(main()) == [{}, {}, {}]
