"""Removal: a closed instance goes when its time is over, whole, and on the record."""

import pytest
from msgspec.structs import replace

from pawlflow.engine.actions import Accepted
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import Digest, InstanceId, Tenant
from pawlflow.model.inputs import CancelInstance, Receipt, Signal
from pawlflow.model.journal import Disposition
from pawlflow.model.operate import RemoveInstance
from pawlflow.model.payload import Payload
from pawlflow.model.records import read
from pawlflow.model.system import registry_cell
from pawlflow.projections.proof import verify_store
from pawlflow.projections.removed import removal_told
from pawlflow.store.memory import MemoryStore
from pawlflow.store.port import SHARDS, Batch, Fence, StoreUnknownError
from pawlflow.store.postgres import PostgresStore
from pawlflow.store.sqlite import SqliteStore
from tests.engine.kit import Bench, starting

DAY = 86_400_000
EVERY = range(SHARDS)
ME = Tenant("default")
KEPT = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: kept}
spec:
  retention: {completed: 30d, failed: 365d}
  search: {who: input.who}
  steps:
    - {name: a, run: do.a, mutates: true, onFailure: abort}
  output: ${ steps.a }
"""
pytestmark = pytest.mark.req("R218")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def bench(request, tmp_path):
    """An engine on a store of each kind."""
    match request.param:
        case "memory":
            store = MemoryStore()
        case "sqlite":
            store = SqliteStore(tmp_path / "kept.db")
        case _:
            store = PostgresStore(request.getfixturevalue("postgres").fresh())
    made = Bench(store)
    yield made
    made.store.close()


def closed(bench, key="k-1", *, outcome="ok", text=KEPT):
    """An instance that is over."""
    if not bench.store.published(ME):
        bench.load(text)
    cell, begin = starting(key, text, "default", {"who": "ann"})
    bench.ask(cell, begin)
    call = bench.calls()[-1]
    if outcome == "cancelled":
        bench.ask(cell, CancelInstance("zoe"))
    bench.ok(call, "x" * 100_000) if outcome == "ok" else bench.ask(
        cell, Receipt(call.key, call.attempt, outcome)
    )
    bench.engine.drain()
    return cell


def head_of(bench, cell):
    """The head of an instance; None if there is none."""
    image = bench.store.load([(cell.tenant, cell.key)]).get((cell.tenant, cell.key))
    return None if image is None else image.head


def removal(head, **said):
    """The request to remove it."""
    facts = {"turn": head.turn, "hash": head.hash, "by": "retention"} | said
    return RemoveInstance(**facts)


def verified(bench):
    """How many were removed, in a store without a difference."""
    report = verify_store(bench.store)
    assert report.differences == []
    return report.removed


def test_it_goes_when_its_time_is_over_and_not_before(bench):
    """To the millisecond; what is refused leaves no trace, what is done an entry that says so."""
    cell = closed(bench)
    head = head_of(bench, cell)
    [(until, due)] = bench.store.expiring(EVERY, (-1, 0), 9)
    before = bench.store.heads(EVERY)
    bench.clock.time += 30 * DAY - 1
    early = bench.ask(cell, removal(head))
    assert (until, due) == (head.closed_at + 30 * DAY, head)
    assert early == Rejected("retention.kept", "its time is not over: 1 ms are left")
    assert [each.seq for each in bench.store.heads(EVERY)] == [each.seq for each in before]

    bench.clock.time += 1
    assert bench.ask(cell, removal(head)) == Accepted(cell.key, head.turn)

    assert head_of(bench, cell) is None
    told = removal_told(bench.store.removed((ME, cell.key)))
    assert (told["id"], told["state"], told["turns"]) == ("k-1", "completed", head.turn)
    assert told["hash"] == head.hash.hex()
    assert bench.store.dispositions(ME, 9) == []
    assert bench.store.expiring(EVERY, (-1, 0), 9) == []
    assert verified(bench) == 1


@pytest.mark.parametrize("outcome", ["failed", "cancelled"])
def test_failed_is_every_end_but_success(bench, outcome):
    """They are kept as long as `failed` says."""
    cell = closed(bench, outcome=outcome)
    head = head_of(bench, cell)
    assert head.state == outcome
    bench.clock.time += 30 * DAY
    assert bench.ask(cell, removal(head)).code == "retention.kept"
    bench.clock.time += 335 * DAY
    assert isinstance(bench.ask(cell, removal(head)), Accepted)
    assert verified(bench) == 1


@pytest.mark.parametrize(
    ("rule", "outcome"),
    [("{failed: 1d}", "ok"), ("{completed: 1d}", "failed"), ("{completed: 1d}", "cancelled")],
)
def test_an_outcome_that_is_not_named_is_kept_for_ever(bench, rule, outcome):
    """Nothing is noted, and nobody can ask for it."""
    text = KEPT.replace("{completed: 30d, failed: 365d}", rule)
    cell = closed(bench, outcome=outcome, text=text)
    bench.clock.time += 10_000 * DAY
    answer = bench.ask(cell, removal(head_of(bench, cell)))
    assert answer == Rejected("retention.kept", "nothing says how long it is kept")
    assert bench.store.expiring(EVERY, (-1, 0), 9) == []
    assert verified(bench) == 0


def test_only_what_was_looked_at_goes(bench):
    """Another turn, an open instance, one that never was, a system cell: all of them stay."""
    cell = closed(bench)
    head = head_of(bench, cell)
    open_cell, begin = starting("k-2", KEPT, "default", {"who": "bob"})
    bench.ask(open_cell, begin)
    bench.clock.time += 400 * DAY
    assert bench.ask(cell, removal(head, turn=1)).code == "retention.kept"
    assert bench.ask(cell, removal(head, hash=Digest(bytes(32)))).code == "retention.kept"
    open_head = head_of(bench, open_cell)
    assert bench.ask(open_cell, removal(open_head)).code == "retention.kept"
    nobody = replace(cell, key=InstanceId("nobody"))
    assert bench.ask(nobody, removal(head)).code == "instance.unknown"
    registry = registry_cell(ME)
    assert bench.ask(registry, removal(head_of(bench, registry))).code == "retention.kept"
    assert (head_of(bench, cell), head_of(bench, open_cell)) == (head, open_head)
    assert verified(bench) == 0


def test_one_that_is_put_aside_stays(bench):
    """Until somebody has looked at it."""
    cell = closed(bench)
    head = replace(head_of(bench, cell), quarantined=True)
    [shard] = bench.store.heads([head.shard])
    fence = Fence(shard.shard, shard.epoch, shard.seq)
    bench.store.append(Batch(id=bytes(16), fences=[fence], heads=[head]))
    bench.core.hot.clear()
    bench.clock.time += 30 * DAY
    answer = bench.ask(cell, removal(head))
    assert answer == Rejected("retention.kept", "it is put aside until somebody has looked at it")


def test_what_comes_late_meets_nobody(bench):
    """A signal is refused, a receipt is a dead letter, and the id may be used again."""
    cell = closed(bench)
    call = bench.calls()[-1]
    head = head_of(bench, cell)
    bench.clock.time += 30 * DAY
    bench.ask(cell, removal(head))
    assert bench.ask(cell, Signal("ping", Payload.of(1, ME), "ann")).code == "instance.unknown"
    bench.ok(call, "late")
    bench.engine.drain()
    [letter] = bench.store.dispositions(ME, 9)
    assert read(Disposition, letter.entry.data, {}).kind == "dead"
    assert bench.ask(cell, removal(head)).code == "instance.unknown"

    again = closed(bench)

    assert head_of(bench, again).ref != head.ref
    assert bench.calls()[-1].key != call.key
    assert verified(bench) == 1


def test_whoever_stands_in_line_with_a_removal_waits_for_it(bench):
    """A refusal before it goes with it in the next commit; a start behind it is a new one."""
    cell = closed(bench)
    head = head_of(bench, cell)
    bench.clock.time += 30 * DAY
    _, begin = starting("k-1", KEPT, "default", {"who": "eve"})
    first = bench.hand(cell, Signal("ping", Payload.of("secret", ME), "ann"))
    second = bench.hand(cell, removal(head))
    third = bench.hand(cell, begin)
    bench.engine.drain()

    assert bench.replies[first].code == "instance.closed"
    assert bench.replies[second] == Accepted(cell.key, head.turn)
    assert bench.replies[third] == Accepted(cell.key, 1)
    beside = bench.store.beside(head.ref)
    assert [bool(each.entry.data) for each in beside] == [False, True]
    assert bench.store.dispositions(ME, 9) == []
    assert verified(bench) == 1


@pytest.mark.parametrize("applied", [True, False])
def test_a_commit_of_unknown_outcome_is_looked_up(bench, applied):
    """It happened whole, or not at all and then again: one entry says so."""
    cell = closed(bench)
    head = head_of(bench, cell)
    bench.clock.time += 30 * DAY

    def once(action):
        bench.fail = None
        if applied:
            bench.store.append(action.batch)
        return StoreUnknownError("store.unknown", "the connection broke")

    bench.fail = once
    assert isinstance(bench.ask(cell, removal(head)), Accepted)
    assert head_of(bench, cell) is None
    assert len(bench.store.beside(head.ref)) == 1
    assert verified(bench) == 1


def test_an_owner_that_was_replaced_removes_nothing(bench):
    """The fence is checked in the same transaction; the next owner finds it in the index."""
    cell = closed(bench)
    head = head_of(bench, cell)
    bench.clock.time += 30 * DAY
    bench.store.claim()
    assert bench.ask(cell, removal(head)).code == "shard.elsewhere"
    assert head_of(bench, cell) == head

    later = Bench(bench.store)
    later.clock.time = bench.clock.time
    [(_, due)] = later.store.expiring(EVERY, (-1, 0), 9)
    assert isinstance(later.ask(cell, removal(due)), Accepted)
    assert verified(later) == 1


def test_what_is_taken_out_counts_as_what_is_written(bench):
    """So a commit stays short: of large instances, each has one of its own."""
    cells = [closed(bench, f"k-{number}") for number in range(3)]
    heads = [head_of(bench, cell) for cell in cells]
    bench.clock.time += 30 * DAY
    bench.core.limits = replace(bench.core.limits, bytes=4_000)
    bench.appended.clear()
    for cell, head in zip(cells, heads, strict=True):
        bench.hand(cell, removal(head))
    bench.engine.drain()
    assert [len(each.batch.removed) for each in bench.appended] == [1, 1, 1]
    assert verified(bench) == 3


@pytest.mark.parametrize("moment", range(1, 12))
def test_a_proof_beside_an_owner_that_removes_finds_no_damage(bench, moment):
    """Whatever it has read of an instance that goes meanwhile is no difference."""
    cells = [closed(bench, f"k-{number}") for number in range(2)]
    for cell in cells:
        bench.ask(cell, Signal("ping", Payload.of(1, ME), "ann"))
    heads = [head_of(bench, cell) for cell in cells]
    bench.clock.time += 30 * DAY
    told = []

    def progress(*_):
        told.append(1)
        if len(told) == moment:
            for cell, head in zip(cells, heads, strict=True):
                bench.ask(cell, removal(head))

    report = verify_store(bench.store, progress)
    assert report.differences == []
    assert report.live == (len(told) >= moment)
    for cell, head in zip(cells, heads, strict=True):
        bench.ask(cell, removal(head))
    assert verified(bench) == 2
