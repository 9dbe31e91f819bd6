"""Labs that crash, that are misused, that block; and journals that are read back."""

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from pawlflow import Context, NoExecutor, PawlError, WorkflowFailed
from pawlflow.kernel.replay import read_turn
from pawlflow.model.journal import turn_hash
from pawlflow.model.records import write
from pawlflow.store.memory import MemoryStore
from pawlflow.testing import (
    BlockingLab,
    CrashPoint,
    Fail,
    Lab,
    LabError,
    Ok,
    StillWaiting,
    assert_replays,
)
from tests.testing.lab_kit import GATED, ORDER, PARENT, on_a_loop, workflow

pytestmark = pytest.mark.req("R198")


@pytest.fixture(params=["memory", "sqlite"])
def pawl_options(request, tmp_path):
    """Everything here holds on a file as well."""
    return {"url": "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/pawl.db"}


async def test_a_crash_loses_what_is_in_memory_alone(pawl):
    """A function in flight is called again with its key; a scripted service is asked once."""
    steps = ("name: a, run: real", "name: b, run: scripted, dependsOn: [a]")
    pawl.add(workflow("two", steps=steps))
    pawl.script("scripted", Ok({}, after="1h"))
    keys = []

    @pawl.effect("real")
    async def real(ctx: Context):
        keys.append(ctx.key)
        if len(keys) == 1:
            await pawl.sleep()

    run = await pawl.start("two")
    await pawl.crash()
    await pawl.skip("30m")
    await pawl.crash()
    await pawl.skip("30m")

    assert run.show()["state"] == "completed"
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert [each.times for each in pawl.calls()] == [2, 1]
    assert_replays(run)


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("commit", range(1, 9))
@on_a_loop
async def test_a_start_or_an_act_survives_wherever_it_crashes(commit, side, pawl_options):
    """Whoever asked is answered once, and what was asked for happened once."""
    async with Lab(**pawl_options, crash=CrashPoint(commit, side)) as lab:
        lab.add(GATED)
        lab.script("parcel.ship", [Fail.raised(), {}])
        run = await lab.start("gated", {}, id="g-1")
        again = await lab.start("gated", {}, id="g-1")
        await lab.approve("g-1", "gate", by="zoe", role="boss")
        with pytest.raises(PawlError):
            await lab.approve("g-1", "gate", by="zoe", role="boss")
        other = await lab.start("gated", {}, id="g-2")
        await lab.approve("g-2", "gate", by="zoe", role="boss")

        assert (run.show()["state"], other.show()["state"]) == ("failed", "completed")
        assert again.id == run.id
        assert len(lab.calls()) == 2
        assert (lab.crashed is None) == (commit == 8)  # there are seven
        assert_replays(run)


@pytest.mark.parametrize(("scripted", "minutes"), [(True, 1), (False, 2)])
async def test_only_what_died_with_the_engine_has_its_time_again(scripted, minutes, pawl):
    """A service that hangs elsewhere is late when it would be; a function begins anew."""
    pawl.add(ORDER)
    pawl.effect("card.charge")(sleeping(pawl))
    if scripted:
        pawl.script("card.charge", hang=True)
    run = await pawl.start("order", {"amount": 1})

    await pawl.skip("1m")
    await pawl.crash()
    with pytest.raises(WorkflowFailed, match="took too long"):
        await run.result(timeout="1h")

    assert pawl.elapsed - timedelta(minutes=1) == timedelta(minutes=minutes)


def sleeping(lab):
    """A function that never ends."""

    async def sleep():
        await lab.sleep()

    return sleep


@on_a_loop
async def test_a_lab_on_a_file_goes_on_where_it_was(tmp_path):
    """Another lab on the same file begins at the time that the file has seen."""
    url = f"sqlite:///{tmp_path}/pawl.db"
    async with Lab(url) as lab:
        lab.add(workflow("nap", steps=("name: a, sleep: 3d",)))
        await lab.start("nap", id="n-1")
        await lab.skip("1d")
        await lab.start("nap", id="n-2")
    async with Lab(url) as lab:
        began = lab.now
        await lab.skip("2d")

        assert began.isoformat() == "2026-01-02T00:00:00+00:00"
        assert [lab.run(key).show()["state"] for key in ("n-1", "n-2")] == ["completed", "waiting"]


# Journals read back


@on_a_loop
async def test_a_journal_that_was_changed_does_not_replay():
    """The turn is named, of a child as well."""
    async with Lab() as lab:
        lab.add(PARENT)
        lab.add(GATED)
        lab.script("*", {})
        run = await lab.start("parent", id="p-1")
        [child] = run.show()["children"]
        await lab.approve(child["id"], "gate", by="zoe", role="boss")
        await run.result()
        assert_replays(run)

        spoil(lab.store, child["id"], turn=2)

        with pytest.raises(AssertionError, match=rf"{child['id']}.*turn 2 does not give the hash"):
            assert_replays(run)


@on_a_loop
async def test_a_turn_that_would_be_decided_otherwise_is_named():
    """All hashes fit, and still the kernel would not have decided this."""
    async with Lab() as lab:
        lab.add(GATED)
        lab.script("*", {})
        run = await lab.start("gated", id="g-1")
        await lab.pause("g-1", by="zoe")

        forge_last_turn(lab.store, "g-1")

        with pytest.raises(AssertionError, match=r"g-1 does not replay: turn 2, events\[0\]"):
            assert_replays(run)


@on_a_loop
async def test_a_row_that_does_not_follow_is_named():
    """What may be asked without reading turns must follow from them."""
    async with Lab() as lab:
        lab.add(GATED)
        lab.script("*", {})
        run = await lab.start("gated", id="g-1")
        memory = lab.store.shared
        ref = memory.addresses[("default", "g-1")]

        memory.cells[ref] = replace(memory.cells[ref], state="completed")

        with pytest.raises(AssertionError, match="g-1 after turn 1: its row does not follow"):
            assert_replays(run)


@on_a_loop
async def test_a_live_state_that_parted_from_its_journal_is_found():
    """What the engine would decide on next must be what its journal says."""
    async with Lab() as lab:
        lab.add(GATED)
        lab.script("*", {})
        run = await lab.start("gated", id="g-1")

        lab.driver.engine.core.hot.cells[("default", "g-1")].cell.state.paused = True

        with pytest.raises(AssertionError, match="after turn 1: the live state is not the one"):
            assert_replays(run)


def spoil(store: MemoryStore, key: str, turn: int) -> None:
    """Change one byte of a turn."""
    turns = store.shared.turns[store.shared.addresses[("default", key)]]
    entry = turns[turn - 1]
    turns[turn - 1] = replace(entry, data=entry.data[:-1] + bytes([entry.data[-1] ^ 1]))


def forge_last_turn(store: MemoryStore, key: str) -> None:
    """Leave the events of a turn out, and make every hash fit."""
    memory = store.shared
    ref = memory.addresses[("default", key)]
    *_, before, last = memory.turns[ref]
    data = write(replace(read_turn(last.data, {}), events=()))
    forged = replace(last, data=data, hash=turn_hash(before.hash, data))
    memory.turns[ref][-1] = forged
    memory.cells[ref] = replace(memory.cells[ref], hash=forged.hash)


# Wrong use


@on_a_loop
async def test_a_function_that_does_not_end_is_named(pawl_options):
    """Time stands still while it runs, and the error says what to do instead."""
    async with Lab(**pawl_options, patience=0.05) as lab:
        lab.add(ORDER)
        never = asyncio.Event()

        @lab.effect("card.charge")
        async def charge():
            await never.wait()

        run = await lab.start("order", {"amount": 1}, id="o-1")  # an act returns without it

        for wait in (run.result(), lab.skip("1h"), lab.idle()):
            with pytest.raises(LabError, match=r"card.charge \(charge#1 of o-1\)") as stuck:
                await wait
            assert stuck.value.code == "lab.stuck"
        await lab.cancel("o-1")
        assert run.show()["state"] == "cancelled"


async def test_a_function_may_act_and_must_not_move_time(pawl):
    """An act inside of a function waits for its answer alone; a skip would wait for itself."""
    pawl.add(workflow("asks", steps=("name: a, run: ask", "name: b, wait: {event: told}")))
    refused = []

    @pawl.effect("ask")
    async def ask(ctx: Context):
        await pawl.signal(ctx.instance, "told", {})
        try:
            await pawl.skip("1h")
        except LabError as error:
            refused.append(error.code)

    run = await pawl.start("asks")

    assert await run.result() is None
    assert refused == ["lab.misused"]


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda lab: lab.script("x", []), "says nothing: give at least one answer"),
        (lambda lab: lab.script("x", {}, after="soon"), "'soon' is no span of time"),
        (lambda lab: lab.script("x", dict), "dict is a class, and no answer"),
        (lambda lab: lab.script("x", Fail("odd")), "'odd' is no class of failures: transient"),
        (lambda lab: lab.unscript("x"), "'x' is not scripted; scripted is: nothing"),
        (lambda lab: lab.skip("-3d"), "'-3d' is no span of time"),
        (lambda lab: lab.skip(timedelta(days=-1)), "is no span of time"),
        (lambda lab: lab.skip_to("2025-01-01T00:00Z"), "is past: it is 2026-01-01"),
        (lambda lab: lab.sleep("1h"), "a test uses skip"),
        (lambda lab: lab.run("nobody").result(), "no instance 'nobody'"),
    ],
)
async def test_wrong_use_is_told(use, said, pawl):
    """What cannot be is refused at once, with the way out."""

    async def used():
        given = use(pawl)
        return await given if asyncio.iscoroutine(given) else given

    with pytest.raises((ValueError, TypeError, PawlError), match=said):
        await used()


async def test_an_effect_that_nobody_carries_out_is_refused_with_the_way_out(pawl):
    """A typing error in the name of a script is found before anything starts."""
    pawl.add(ORDER)
    pawl.script("card.chrage", {})

    with pytest.raises(NoExecutor, match=r"order needs card.charge") as missing:
        await pawl.start("order", {"amount": 1})

    assert "lab.script(NAME" in missing.value.__notes__[0]


async def test_a_call_that_lost_its_function_waits_and_says_so(pawl):
    """The error names what is missing; a script that comes later takes the call."""
    pawl.add(workflow("two", steps=("name: a, run: x, forEach: '${ [1, 2] }'",)))
    pawl.script("a[0]", {})
    run = await pawl.start("two")

    with pytest.raises(StillWaiting, match="script\\(\\) or register what nobody carries out: x"):
        await run.result()
    pawl.script("x", {})

    assert await run.result() is None


@on_a_loop
async def test_a_lab_that_is_not_open_says_how_to_open_it():
    """Before and after, and in the wrong kind of test."""
    lab, blocking = Lab(), BlockingLab()
    for use in (lab.skip("1h"), lab.idle(), lab.crash()):
        with pytest.raises(LabError, match="async with Lab"):
            await use
    with pytest.raises(PawlError, match="not open"):
        await lab.start("order")
    with pytest.raises(PawlError, match="with pawl:"):
        blocking.skip("1h")


async def test_workflows_that_never_rest_are_stopped(pawl, monkeypatch):
    """At one instant, for ever: said, with the time, instead of a test that hangs."""
    monkeypatch.setattr("pawlflow.testing.lab_hosting.TURNS_MAX", 200)
    step = "name: a, emit: go"
    pawl.add(workflow("again", "trigger: {event: go}", steps=(step,)))

    with pytest.raises(LabError, match=r"200 commits at 2026-01-01.*no end"):
        await pawl.start("again")


# Without await


def test_a_plain_test_blocks(pawl_blocking):
    """The same lab, without await; functions and scripts alike."""
    pawl_blocking.add(ORDER)
    pawl_blocking.add(GATED)
    pawl_blocking.script("parcel.ship", {})

    @pawl_blocking.effect("card.charge")
    def charge(amount: int, ctx: Context):
        return {"amount": amount, "attempt": ctx.attempt}

    order = pawl_blocking.start("order", {"amount": 3})
    gated = pawl_blocking.start("gated", id="g-1")
    with pytest.raises(StillWaiting):
        gated.result()
    pawl_blocking.crash()
    pawl_blocking.skip_to("2026-01-01T23:00Z")
    pawl_blocking.approve("g-1", "gate", by="zoe", role="boss")
    pawl_blocking.idle()

    assert order.result() == {"amount": 3, "attempt": 1}
    assert gated.result() is None
    assert len(pawl_blocking.calls("ship")) == 1
    assert pawl_blocking.elapsed == timedelta(hours=23)
    assert pawl_blocking.now.hour == 23
    pawl_blocking.unscript("parcel.ship")
    assert_replays(order)


def test_a_blocking_lab_may_be_filled_before_it_is_opened():
    """`Lab.blocking` gives one; two of them do not meet."""
    with Lab.blocking() as one, Lab.blocking() as other:
        for lab in (one, other):
            lab.add(ORDER)
            lab.script("card.charge", {"lab": lab is one})
        runs = [lab.start("order", {"amount": 1}, id="o-1") for lab in (one, other)]

        assert [run.result() for run in runs] == [{"lab": True}, {"lab": False}]
