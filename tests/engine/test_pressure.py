"""Under pressure: starts are shed, receipts never; nobody waits behind another tenant's crowd."""

import pytest

from pawlflow import requests
from pawlflow.engine import core as core_room
from pawlflow.engine import fair, shard, timers
from pawlflow.engine.actions import Append, Publish
from pawlflow.engine.places import mail_of
from pawlflow.engine.shard import SHARED_MS, SHARED_S, Limits
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import CellId, InstanceId, TimeMs
from tests.engine.kit import CHAIN, Bench, starting

WAITS = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: waits}
spec:
  steps:
    - {name: w, wait: {event: go, match: event.to == instance.id}}
"""


@pytest.fixture
def bench():
    made = Bench()
    for tenant in ("default", "a", "b"):
        made.load(CHAIN, tenant)
        made.load(WAITS, tenant)
    return made


def refused(bench, token):
    """Why an input was turned away at once; None if it waits."""
    found = [each for each in bench.core.out if getattr(each, "token", None) == token]
    return found[0].outcome.code if found else None


# Shedding


@pytest.mark.req("R214")
def test_only_starts_are_shed_whatever_waits(bench, monkeypatch):
    """Receipts, signals and cancels are taken above every limit, and all become durable."""
    running = bench.start("i-1", tenant="a")
    bench.engine.drain()
    [call] = bench.calls()
    monkeypatch.setattr(core_room, "WAITING_MAX", 3)
    first = [bench.hand(*starting(f"s-{n}", CHAIN, "a", {})) for n in range(3)]
    late = bench.hand(*starting("late", CHAIN, "a", {}))
    signal = bench.hand(running, requests.signal("go", {}, "a", "ann"))
    steer = requests.steer("pause", "a", by="ann", comment=None)
    held = bench.hand(requests.instance_cell("a", "s-1"), steer)
    bench.ok(call, 1)  # by the runner: nobody would hear that it was refused

    assert refused(bench, late) == "engine.overloaded"
    assert [refused(bench, each) for each in (*first, signal, held)] == [None] * 5
    bench.engine.drain()
    assert not isinstance(bench.replies[signal], Rejected)
    assert not isinstance(bench.replies[held], Rejected)
    assert [each.step for each in bench.calls() if each.cell.key == "i-1"] == ["a", "b"]


@pytest.mark.req("R214")
def test_a_tenant_that_fills_its_room_leaves_room_for_others(bench):
    """Each may fill as much as it leaves free: alone half of it, of two each a third."""
    bench.core.limits = Limits(starts=90)
    codes = {"a": [], "b": []}
    for n in range(60):
        token = bench.hand(*starting(f"i-{n}", CHAIN, "a", {}))
        codes["a"].append(refused(bench, token))
    for n in range(60):
        token = bench.hand(*starting(f"i-{n}", CHAIN, "b", {}))
        codes["b"].append(refused(bench, token))

    assert codes["a"].count(None) == 45
    assert codes["b"].count(None) == 23  # half of what A left
    assert set(codes["a"][45:] + codes["b"][23:]) == {"engine.overloaded"}
    bench.engine.drain()
    assert bench.core.inbox.starts == 0
    assert bench.core.inbox.starts_of == {}
    again = bench.hand(*starting("again", CHAIN, "a", {}))
    assert refused(bench, again) is None


def test_a_large_start_takes_the_room_of_many(bench):
    """What waits in memory is bounded in bytes: 4 KiB count as one small start."""
    bench.core.limits = Limits(starts=100)
    cell, begin = starting("large", CHAIN, "a", {"x": "y" * 200_000})
    bench.core.submit(cell, begin, 901, 200_000)

    token = bench.hand(*starting("small", CHAIN, "a", {}))

    assert bench.core.inbox.starts == 50  # 49 and the small one
    assert refused(bench, token) is None
    assert refused(bench, bench.hand(*starting("next", CHAIN, "a", {}))) == "engine.overloaded"
    assert refused(bench, bench.hand(*starting("other", CHAIN, "b", {}))) is None


# Turns


def crowd(bench, count, *, fresh):
    """Starts of tenant A that wait; without `fresh`, each has to be looked up first."""
    cell, begin = starting("crowd", CHAIN, "a", {})
    for n in range(count):
        each = CellId(cell.tenant, cell.workflow, InstanceId(f"crowd-{n}"))
        bench.core.submit(each, begin, None, 0, fresh=fresh)


def begin_mine(bench, *, fresh):
    """A start of tenant B."""
    cell, begin = starting("mine", CHAIN, "b", {})
    bench.core.submit(cell, begin, None, 0, fresh=fresh)


@pytest.mark.req("R52", "R214")
@pytest.mark.parametrize("fresh", [True, False], ids=["new ids", "given ids"])
def test_a_start_is_stepped_soon_behind_ten_thousand_of_another_tenant(bench, fresh):
    """In the batch after that under way, among the first; one more if it must be looked up."""
    crowd(bench, 10_000, fresh=fresh)
    bench.engine.pump()
    bench.turns.clear()
    before = len(bench.appended)
    begin_mine(bench, fresh=fresh)

    while not any(turn.cell.tenant == "b" for turn in bench.turns):
        bench.engine.pump()

    batches = [[head.cell.tenant for head in each.batch.heads] for each in bench.appended[before:]]
    found = next(nth for nth, tenants in enumerate(batches) if "b" in tenants)
    assert found <= (0 if fresh else 1)
    assert batches[found].index("b") <= 2 * fair.START_EVERY


@pytest.mark.req("R52", "R214")
def test_a_start_gets_its_turn_while_receipts_never_end(bench):
    """A tenant that begins does not wait for all that goes on elsewhere, but for one quantum."""
    crowd(bench, 400, fresh=True)
    bench.engine.drain()
    for call in bench.calls():
        bench.ok(call)
    bench.turns.clear()
    begin_mine(bench, fresh=True)
    bench.engine.drain()

    order = [turn.cell.tenant for turn in bench.turns]
    assert order.index("b") <= fair.QUANTUM_TURNS


@pytest.mark.req("R52", "R214")
def test_two_tenants_get_as_many_turns_whatever_they_are_for(bench):
    """Thirty starts beside four hundred receipts: turn about, until the thirty are done."""
    crowd(bench, 400, fresh=True)
    bench.engine.drain()
    for call in bench.calls():
        bench.ok(call)
    bench.turns.clear()
    cell, begin = starting("mine", CHAIN, "b", {})
    for n in range(30):
        each = CellId(cell.tenant, cell.workflow, InstanceId(f"mine-{n}"))
        bench.core.submit(each, begin, None, 0, fresh=True)
    bench.engine.drain()

    order = [turn.cell.tenant for turn in bench.turns]
    assert sorted(order[:60]).count("b") >= 30 - fair.QUANTUM_TURNS


@pytest.mark.req("R214")
def test_what_a_commit_lets_out_begins_before_the_next_batch_while_tenants_meet(bench):
    """A function of one tenant does not wait for the turns of another that are ready."""
    begin_mine(bench, fresh=True)
    crowd(bench, 2_000, fresh=True)
    core = bench.core
    core.limits = Limits(turns=64)
    now = bench.clock.now()
    [append] = [each for each in core.work(now) if isinstance(each, Append)]
    bench.store.append(append.batch)
    core.appended(None, now)

    told = core.work(now)
    assert [type(each) for each in told if isinstance(each, Publish | Append)] == [Publish]
    assert any(isinstance(each, Append) for each in core.work(now))


@pytest.mark.req("R214")
def test_batches_are_short_while_tenants_meet(bench):
    """So that nobody waits long for a commit of another's; alone, they are as long as may be."""
    core = bench.core
    for tenant in ("b", "a"):
        bench.start("i-1", tenant=tenant)
    bench.engine.drain()
    now = bench.clock.time = TimeMs(bench.clock.time + 2 * SHARED_MS)
    bench.hand(requests.instance_cell("a", "i-1"), requests.signal("go", {}, "a", "ann"))
    bench.engine.drain()
    assert core.shares(now) == (core.limits.stepping_s, core.limits.stepping_s)

    for tenant in ("a", "b"):
        cell = requests.instance_cell(tenant, "i-1")
        bench.hand(cell, requests.signal("go", {}, tenant, "ann"))
    bench.engine.drain()

    assert core.shares(now) == (SHARED_S, SHARED_S)
    core.took = 0.005  # a commit
    assert core.shares(now) == (0.005, 0.005)
    later = TimeMs(now + SHARED_MS + 1)
    assert core.shares(later) == (core.limits.stepping_s, core.limits.stepping_s)
    for tenant in ("a", "b"):
        cell = requests.instance_cell(tenant, "i-1")
        bench.hand(cell, requests.signal("go", {}, tenant, "ann"))
    assert core.shares(later) == (0.0025, 0.010)  # longer for as long as both wait


# Mail


@pytest.mark.req("R214", "R225")
def test_mail_is_read_while_local_inputs_wait(bench):
    """A crowd that this process handed in does not keep the mailbox closed."""
    bench.start("i-1", WAITS, tenant="b")
    bench.engine.drain()
    cell = requests.instance_cell("b", "i-1")
    bench.core.limits = Limits(turns=10)
    crowd(bench, 3 * shard.MAIL_PAGE, fresh=True)
    [number] = bench.store.post([mail_of(cell, requests.signal("x", {}, "b", "ann"))])
    bench.core.poked()
    before = len(bench.appended)

    while bench.store.answer(number) is None:
        bench.engine.pump()

    assert len(bench.appended) - before <= 20
    assert bench.core.inbox.count > shard.MAIL_PAGE


@pytest.mark.req("R214", "R225")
def test_mail_of_one_tenant_is_taken_in_few_commits_behind_another_backlog(bench):
    """20,000 signals of A in the mailbox, and one of B behind them."""
    for tenant in ("a", "b"):
        bench.start("i-1", WAITS, tenant=tenant)
    bench.engine.drain()

    def signal(tenant):
        cell = requests.instance_cell(tenant, "i-1")
        return mail_of(cell, requests.signal("x", {}, tenant, "ann"))

    one = signal("a")
    bench.store.post([one] * 20_000)
    [number] = bench.store.post([signal("b")])
    bench.core.poked()
    before, most = len(bench.appended), 0

    while bench.store.answer(number) is None:
        bench.engine.pump()
        most = max(most, len(bench.core.held), bench.core.inbox.count)

    taken = [{each.id for each in action.batch.taken} for action in bench.appended[before:]]
    assert [number in each for each in taken].index(True) <= 3
    assert most <= 2 * shard.MAIL_PAGE


# Memory


def test_silence_is_timed_for_so_many_cells_and_the_rest_is_swept(bench, monkeypatch):
    """Nothing is forgotten: what is not timed by itself is offered again with everything else."""
    monkeypatch.setattr(timers, "PLACED_MAX", 10)
    for n in range(25):
        bench.start(f"i-{n}", tenant="a")
    bench.engine.drain()
    assert len(bench.core.reoffers.placed) == 10
    bench.published.clear()

    bench.clock.time = TimeMs(bench.clock.time + timers.LAST_REOFFER_MS)
    assert bench.core.next_wake() <= bench.clock.time
    bench.engine.drain()

    again = [each for each in bench.published if isinstance(each, Publish) and each.again]
    assert {call.cell.key for each in again for call in each.intents} == {
        f"i-{n}" for n in range(25)
    }
    assert len(bench.core.reoffers.placed) == 10
    assert bench.core.reoffers.sweep_at == bench.clock.time + timers.LAST_REOFFER_MS
