"""A batch on the shard: whatever commit a crash falls on, each instance gets the act once."""

from collections import Counter

import pytest
from msgspec.structs import replace

from pawlflow.batches import Operation, batch_of, inputs_of
from pawlflow.engine import stepping
from pawlflow.engine.cells import take_in
from pawlflow.engine.places import mail_of
from pawlflow.kernel.replay import read_turn
from pawlflow.kernel.system import batch as batches
from pawlflow.model.batches import batch_cell
from pawlflow.model.ids import Tenant, WorkflowName
from pawlflow.model.inputs import CancelInstance, Signal
from pawlflow.model.journal import Disposition
from pawlflow.model.operate import RedriveInput
from pawlflow.model.payload import Payload
from pawlflow.model.records import read
from pawlflow.projections.proof import verify_store
from pawlflow.projections.reading import story_of
from pawlflow.store.memory import MemoryStore
from pawlflow.store.port import Filter, StoreError, position
from pawlflow.store.sqlite import SqliteStore
from tests.engine.kit import Bench

TENANT = Tenant("default")
WAITING = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: waiting}
spec:
  search: {n: input.n}
  steps:
    - {name: a, wait: {event: never}}
"""
COUNT = 7


class Memories:
    """A store in memory that outlives its engines."""

    def __init__(self, _) -> None:
        self.shared = MemoryStore().shared

    def open(self) -> MemoryStore:
        """Another handle on it."""
        return MemoryStore(self.shared)


class Files:
    """The same in a file."""

    def __init__(self, folder) -> None:
        self.path = folder / "pawl.db"

    def open(self) -> SqliteStore:
        """The file, opened again."""
        return SqliteStore(self.path)


@pytest.fixture(params=[Memories, Files])
def durable(request, tmp_path, monkeypatch):
    """What stays when an engine dies; portions are small, so that there are several."""
    monkeypatch.setattr(batches, "PORTION", 2)
    return request.param(tmp_path)


def prepared(durable) -> None:
    """Some that wait, one that is over, and a request for all of them and one that never was."""
    store = durable.open()
    bench = Bench(store)
    bench.load(WAITING)
    cells = [bench.start(f"i-{n}", WAITING, n=n) for n in range(COUNT)]
    bench.engine.drain()
    bench.ask(cells[3], CancelInstance("kit"))
    heads = store.instances(Filter(tenant=TENANT))
    gone = replace(heads[0], cell=replace(cells[0], key="nobody"))
    asked = Operation(verb="signal", by="ann", comment="now", event="go", given={"x": 1})
    inputs = inputs_of(asked, "n >= 0", [*heads, gone], TENANT)
    store.post([mail_of(batch_cell(TENANT, "b-1"), each) for each in inputs])
    store.close()


class CrashError(Exception):
    """The process is gone."""


def driven(durable, crash_at: int | None, *, after: bool) -> int:
    """Drive the store until nothing is left to do, or a crash; gives how many commits it made."""
    store = durable.open()
    bench, commits = Bench(store), 0

    def fail(action) -> StoreError | None:
        nonlocal commits
        commits += 1
        if commits != crash_at:
            return None
        if after:
            store.append(action.batch)
        raise CrashError

    bench.fail = fail
    try:
        while (wake := bench.engine.pump_on()) is not None and wake <= bench.clock.now():
            pass
    except CrashError:
        commits = -commits
    store.close()
    return commits


def check(durable) -> None:
    """Every instance that could got the act once, and the batch knows what became of each."""
    store = durable.open()
    batch = batch_of(store, TENANT, "b-1")
    assert batch.counts() == (COUNT - 1, 1, 1)
    assert batch.closed is not None
    assert (batch.codes["i-3"], batch.codes["nobody"]) == ("instance.closed", "instance.unknown")
    for n in range(COUNT):
        story = story_of(store, TENANT, f"i-{n}")
        inputs = [read_turn(data, story.payloads).input for data, _ in story.turns]
        acts = Counter((each.batch, each.by) for each in inputs if isinstance(each, Signal))
        assert acts == ({} if n == 3 else {("b-1", "ann"): 1})
    assert store.mail(range(32), 0, 100) == []
    assert verify_store(store).differences == []
    store.close()


@pytest.mark.req("R215", "R133")
def test_a_batch_comes_to_its_end(durable):
    """The shard brings the act to each, in portions, and the answers back."""
    prepared(durable)

    assert driven(durable, None, after=False) > 5
    check(durable)


@pytest.mark.req("R215", "R225")
@pytest.mark.parametrize("after", [False, True], ids=["before the commit", "after the commit"])
def test_a_crash_at_any_commit_changes_nothing(durable, tmp_path_factory, after):
    """Before or after any commit: the next engine goes on, and nobody gets the act twice."""
    crash_at = 0
    while True:
        crash_at += 1
        fresh = type(durable)(tmp_path_factory.mktemp("store"))
        prepared(fresh)
        crashed = driven(fresh, crash_at, after=after) < 0
        driven(fresh, None, after=after)
        check(fresh)
        if not crashed:
            break
    assert crash_at > 5


def test_the_attributes_of_an_instance_are_in_its_batch(durable):
    """Whoever is told that it started can find it; a commit that was lost leaves no trace."""
    store = durable.open()
    bench = Bench(store)
    bench.load(WAITING)
    bench.start("i-1", WAITING, n=5)
    bench.engine.drain()

    rows = [each for append in bench.appended for each in append.batch.attributes]
    assert [each.values for each in rows] == [{"n": 5}]
    [head] = store.instances(Filter(tenant=TENANT, workflow=WorkflowName("waiting")))
    assert store.attributes([head.ref]) == {head.ref: {"n": 5}}
    store.close()


@pytest.mark.req("R215")
def test_an_act_that_broke_its_cell_is_told_and_may_be_done_after_all(durable, monkeypatch):
    """The batch does not wait for a human; a redrive of the dead letter mends its record."""
    store = durable.open()
    bench = Bench(store)
    bench.load(WAITING)
    bad = bench.start("i-1", WAITING, n=1)
    bench.engine.drain()
    [head] = store.instances(Filter(tenant=TENANT))
    real = stepping.step

    def broken(cell, incoming, stamps):
        if isinstance(incoming, Signal):
            raise ZeroDivisionError("a defect of ours")
        return real(cell, incoming, stamps)

    monkeypatch.setattr(stepping, "step", broken)
    asked = Operation(verb="signal", by="ann", event="go")
    for each in inputs_of(asked, "n == 1", [head], TENANT):
        bench.ask(batch_cell(TENANT, "b-1"), each)
    monkeypatch.setattr(stepping, "step", real)
    told = batch_of(store, TENANT, "b-1")
    assert (told.codes, told.counts()) == ({"i-1": "cell.quarantined"}, (0, 1, 0))
    assert told.closed is not None

    [dead] = store.dispositions(TENANT, 10)
    payloads: dict[bytes, bytes] = {}
    take_in(payloads, dead.entry.beside, TENANT)
    letter = read(Disposition, dead.entry.data, payloads)
    mail = mail_of(bad, letter.input)
    again = Payload.of([mail.input, mail.beside], TENANT)
    bench.ask(bad, RedriveInput(position(dead.shard, dead.seq), again, "ann"))
    bench.engine.drain()

    assert batch_of(store, TENANT, "b-1").counts() == (1, 0, 0)
    store.close()
