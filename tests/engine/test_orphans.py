"""Orphans: an effect that succeeded after the close is on the record, and a human is asked."""

import pytest

from pawlflow import requests
from pawlflow.engine.actions import Accepted
from pawlflow.kernel.draft import Rejected
from pawlflow.model.failure import failure_of
from pawlflow.model.ids import Tenant
from pawlflow.model.inputs import CancelInstance, Receipt
from pawlflow.model.journal import Disposition
from pawlflow.model.payload import Payload
from pawlflow.model.records import read
from pawlflow.projections.proof import verify_store
from pawlflow.store.sqlite import SqliteStore
from tests.engine.kit import Bench, starting

ORDER = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: order}
spec:
  timeout: 1h
  steps:
    - name: charge
      run: card.charge
      timeout: 1s
      grace: 1s
      check: {type: object}
      undo: {run: card.refund}
    - {name: mail, run: mail.send, timeout: 1m}
"""
SKIPS = ORDER.replace("check: {type: object}", "onFailure: skip")


@pytest.fixture
def bench(tmp_path):
    """An engine on a real file."""
    made = Bench(SqliteStore(tmp_path / "orphans.db"))
    yield made
    made.store.close()


def begun(bench, text=ORDER):
    """An order whose charge is on its way."""
    bench.load(text)
    cell, begin = starting("o-1", text, "default", {})
    bench.ask(cell, begin)
    charge = next(call for call in bench.calls() if call.step == "charge")
    mail = next(call for call in bench.calls() if call.step == "mail")
    return cell, charge, mail


def closed(bench, text=ORDER):
    """It was cancelled, and neither attempt answered within its grace."""
    cell, charge, mail = begun(bench, text)
    bench.ask(cell, CancelInstance("zoe"))
    bench.core.submit(cell, Receipt(mail.key, 1, "cancelled"))
    bench.clock.time += 60_000
    bench.engine.drain()
    assert bench.state(cell) == "cancelled"
    return cell, charge


def success(charge, value=None):
    """The answer that nobody waits for any more."""
    result = Payload.of({"id": "ch-1"} if value is None else value, Tenant("default"))
    return Receipt(charge.key, 1, "ok", result)


def reviews(bench):
    """The open reviews, as the store has them."""
    return [(each.step, each.kind) for each in bench.store.reviews(Tenant("default"))]


def disposed(bench):
    """What lies beside the turns, newest first."""
    found = bench.store.dispositions(Tenant("default"), 100)
    return [read(Disposition, each.entry.data, {}) for each in found]


def is_proven(bench):
    """Does the whole store follow from its journal?"""
    return verify_store(bench.store).differences == []


@pytest.mark.req("R35", "R34", "R186")
def test_a_success_after_the_close_opens_a_review_and_changes_nothing_else(bench):
    """The instance stays as it ended; the effect has a name on the list of what to decide."""
    cell, charge = closed(bench)
    turns = bench.store.load([(cell.tenant, cell.key)])[cell.tenant, cell.key].head.turn

    outcome = bench.ask(cell, success(charge))

    assert outcome == Rejected("instance.closed", "o-1")
    assert reviews(bench) == [("charge/late", "effect.orphaned")]
    assert [(each.kind, each.code) for each in disposed(bench)] == [("rejected", "effect.orphaned")]
    head = bench.store.load([(cell.tenant, cell.key)])[cell.tenant, cell.key].head
    assert (head.turn, head.state) == (turns, "cancelled")
    assert is_proven(bench)


@pytest.mark.req("R129", "R133")
def test_a_human_settles_it_and_that_is_kept(bench):
    """With who and why; then nobody is asked any more."""
    cell, charge = closed(bench)
    bench.ask(cell, success(charge))

    said = {"by": "ann", "role": "Treasurer", "comment": "refunded by hand"}
    outcome = bench.ask(cell, requests.settle("charge/late", "default", **said))

    assert isinstance(outcome, Accepted)
    assert reviews(bench) == []
    settled = disposed(bench)[0]
    assert (settled.kind, settled.code) == ("settled", "review.settled")
    assert (settled.input.by, settled.input.role) == ("ann", "Treasurer")
    assert is_proven(bench)


@pytest.mark.parametrize("step", ["charge", "nope/late", "late", "/late"])
def test_what_cannot_be_an_orphan_is_not_settled(bench, step):
    """The engine knows no rows, but it knows its steps."""
    cell, charge = closed(bench)
    bench.ask(cell, success(charge))

    said = {"by": "ann", "role": None, "comment": "done"}
    outcome = bench.ask(cell, requests.settle(step, "default", **said))

    assert outcome == Rejected("review.unknown", step)
    assert reviews(bench) == [("charge/late", "effect.orphaned")]


@pytest.mark.req("R34")
def test_what_nobody_needs_to_know_opens_nothing(bench):
    """A failure, a cancelled attempt, a result that its check refuses: no effect is claimed."""
    cell, charge = closed(bench)

    bench.ask(cell, Receipt(charge.key, 1, "cancelled"))
    bench.ask(cell, success(charge, value="not an object"))

    assert reviews(bench) == []
    assert is_proven(bench)


def test_what_only_reads_leaves_nothing_to_settle(bench):
    """Its late answer is on the record like any refusal, and nobody is asked."""
    reads = ORDER.replace("undo: {run: card.refund}", "mutates: false")
    cell, charge = closed(bench, reads)

    bench.ask(cell, success(charge))

    assert reviews(bench) == []
    assert [each.code for each in disposed(bench)] == ["instance.closed"]


def test_a_late_success_while_work_is_undone_is_no_orphan(bench):
    """Compensation undoes what declares an undo; the rest stays done, late or not."""
    plain = ORDER.replace("      undo: {run: card.refund}\n", "").replace(
        "timeout: 1h", "timeout: 1h\n  failurePolicy: compensate"
    )
    cell, charge, mail = begun(bench, plain)
    bench.clock.time += 2_000
    bench.engine.drain()  # the charge times out, so the order fails

    bench.ask(cell, success(charge))

    assert reviews(bench) == []
    assert mail.step == "mail"


def test_a_late_success_of_a_step_that_succeeded_is_a_duplicate(bench):
    """What is known already is no news."""
    cell, charge, mail = begun(bench)
    bench.ask(cell, success(charge))
    bench.ask(cell, Receipt(mail.key, 1, "ok", Payload.of({}, Tenant("default"))))
    assert bench.state(cell) == "completed"

    bench.ask(cell, success(charge))

    assert (reviews(bench), disposed(bench)) == ([], [])


@pytest.mark.req("R34", "R186")
def test_a_late_success_of_a_skipped_step_is_asked_about_while_the_rest_runs(bench):
    """Nothing will undo it: the instance goes on, and a human is asked at once."""
    cell, charge, mail = begun(bench, SKIPS)
    bench.clock.time += 2_000
    bench.engine.drain()

    bench.ask(cell, success(charge))

    assert reviews(bench) == [("charge/late", "effect.orphaned")]
    assert is_proven(bench)
    bench.ask(cell, Receipt(mail.key, 1, "ok", Payload.of({}, Tenant("default"))))
    assert bench.state(cell) == "completed"
    assert reviews(bench) == [("charge/late", "effect.orphaned")]  # closed, and still to be settled
    said = {"by": "ann", "role": None, "comment": "it may stand"}
    bench.ask(cell, requests.settle("charge/late", "default", **said))
    assert reviews(bench) == []
    assert is_proven(bench)


@pytest.mark.req("R34", "R117", "R186")
@pytest.mark.parametrize("settled", [False, True], ids=["open", "settled"])
def test_nobody_is_asked_any_more_once_a_late_success_is_undone(bench, settled):
    """It became known before it came to that: asked about at first, then undone by itself."""
    cell, charge, mail = begun(
        bench, SKIPS.replace("timeout: 1h", "timeout: 1h\n  failurePolicy: compensate")
    )
    bench.clock.time += 2_000
    bench.engine.drain()
    bench.ask(cell, success(charge))
    assert reviews(bench) == [("charge/late", "effect.orphaned")]
    if settled:
        said = {"by": "ann", "role": None, "comment": "it may stand"}
        bench.ask(cell, requests.settle("charge/late", "default", **said))

    failure = failure_of("terminal", "mail.failed", "no such address", tenant=Tenant("default"))
    bench.ask(cell, Receipt(mail.key, 1, "failed", failure=failure))

    undo = next(call for call in bench.calls() if call.direction == "undo")
    assert (undo.step, undo.params.value["result"]) == ("charge", {"id": "ch-1"})
    assert reviews(bench) == []
    assert is_proven(bench)


def test_an_instance_that_is_not_there_has_no_orphans(bench):
    """Settling is for what exists."""
    cell, _ = starting("nobody", ORDER, "default", {})
    bench.load(ORDER)

    said = {"by": "ann", "role": None, "comment": "done"}
    outcome = bench.ask(cell, requests.settle("charge/late", "default", **said))

    assert outcome == Rejected("review.unknown", "charge/late")


@pytest.mark.req("R34", "R186")
@pytest.mark.parametrize("restarts", [False, True], ids=["one engine", "another engine"])
@pytest.mark.parametrize("settled", [False, True], ids=["open", "settled"])
def test_a_duplicate_of_a_late_success_asks_nobody_again(bench, settled, restarts):
    """Not after it was settled, and it fills no disk before that."""
    cell, charge = closed(bench)
    bench.ask(cell, success(charge))
    said = {"by": "ann", "role": None, "comment": "refunded"}
    if settled:
        bench.ask(cell, requests.settle("charge/late", "default", **said))
    before = reviews(bench), len(disposed(bench))
    if restarts:
        path = bench.store.path
        bench.store.close()
        bench.__init__(SqliteStore(path))

    for _ in range(3):
        assert bench.ask(cell, success(charge)) == Rejected("instance.closed", "o-1")

    assert (reviews(bench), len(disposed(bench))) == before
    assert (reviews(bench) == []) is settled
    assert is_proven(bench)


def test_a_success_that_fits_is_asked_about_after_one_that_did_not(bench):
    """A result that its check refused was no effect; the same attempt may still tell of one."""
    cell, charge = closed(bench)
    bench.ask(cell, success(charge, value="not an object"))
    bench.ask(cell, success(charge, value="not an object"))
    assert (reviews(bench), [each.code for each in disposed(bench)]) == ([], ["instance.closed"])

    bench.ask(cell, success(charge))

    assert reviews(bench) == [("charge/late", "effect.orphaned")]
