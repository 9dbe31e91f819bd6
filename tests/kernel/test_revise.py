"""Requested changes: what led to a gate is done again, and nothing else."""

import pytest

from pawlflow.kernel.heads import questions_changed
from pawlflow.kernel.revise import led_to
from pawlflow.kernel.snapshot import snapshot_payloads, state_bytes, state_from_bytes
from pawlflow.model.inputs import Approve, CancelInstance, PauseInstance, Receipt, Reject
from tests.kernel.support import Live, names, payload, refused

NOTES = """
timeout: 1d
failurePolicy: compensate
steps:
  - {name: collect, run: web.collect, timeout: 1h}
  - name: draft
    agent: writer
    dependsOn: [collect]
    with: {about: "${ steps.collect.topic }"}
    maxCorrectionAttempts: 1
    retryPolicy: {maxRetries: 1, backoff: 1s}
    undo: {run: disk.remove, with: {file: "${ result.file }"}}
    timeout: 1h
  - name: render
    run: web.render
    dependsOn: [draft]
    with: {file: "${ steps.draft.file }"}
    timeout: 1h
  - name: gate
    approval: {role: Editor, onReject: changes, revise: [draft], expires: 1h}
    dependsOn: [render]
  - {name: publish, run: web.publish, dependsOn: [gate], timeout: 1h}
"""


def at_gate() -> Live:
    """The first draft is rendered and looked at."""
    live = Live(NOTES)
    live.start()
    live.ok("collect", {"topic": "bees"})
    live.ok("draft", {"file": "f1"})
    live.ok("render", {"page": "p1"})
    return live


def sent_back(comment="livelier") -> Live:
    """The editor wants it livelier."""
    live = at_gate()
    live.submit(Reject("gate", "ann", "Editor", payload(comment) if comment else None))
    return live


@pytest.mark.req("R103", "R134")
def test_the_named_step_is_corrected_with_the_comment():
    """Another round, another key, the same parameters; and what follows waits for it."""
    live = at_gate()
    before = live.call("draft")

    done = live.submit(Reject("gate", "ann", "Editor", payload("livelier")))

    call = live.call("draft")
    assert names(done) == ["GateRejected", *["StepReopened"] * 3, "StepStarted"]
    assert call.feedback == ("livelier",)
    assert (call.attempt, call.round, call.params) == (2, 2, before.params)
    assert call.key != before.key
    assert [live.status(each) for each in ("collect", "draft", "render", "gate", "publish")] == [
        *("succeeded", "running", "pending", "pending", "pending"),
    ]
    assert live.cell.state.named("draft").feedback == 1


def test_without_words_there_is_still_something_to_say():
    """An agent is never sent back without a reason."""
    assert sent_back(comment=None).call("draft").feedback == ("ann asked for changes",)


@pytest.mark.req("R134")
def test_what_lies_between_runs_again_with_the_new_result():
    """A new round of each, first attempts as any other; then the gate asks again."""
    live = sent_back()

    live.ok("draft", {"file": "f2"})
    again = live.call("render")
    assert (again.params.value, again.attempt, again.round) == ({"file": "f2"}, 2, 2)
    done = live.ok("render", {"page": "p2"})

    assert names(done) == ["StepSucceeded", "StepReady", "StepWaiting"]
    assert live.cell.state.result_of(2) == {"page": "p2"}
    live.submit(Approve("gate", "ann", "Editor"))
    assert live.status("publish") == "running"


def test_an_earlier_result_stands_until_it_is_replaced():
    """Whoever had begun with it, outside of what is done again, still finds it."""
    live = sent_back()

    assert live.cell.state.result_of(1) == {"file": "f1"}
    live.ok("draft", {"file": "f2"})
    assert live.cell.state.result_of(1) == {"file": "f2"}


@pytest.mark.req("R104")
def test_changes_do_not_count_and_corrections_stay_counted():
    """MaxCorrectionAttempts is for what a validator finds."""
    live = sent_back()

    live.fail("draft", "validation", findings=["no title"])
    assert live.call("draft").feedback == ("no title",)

    live.fail("draft", "validation", findings=["no title"])
    assert live.status("draft") == "failed"


@pytest.mark.req("R34", "R130")
def test_answers_of_a_round_that_was_sent_back_change_nothing():
    """Neither a duplicate of its success nor a late one of another attempt."""
    live = at_gate()
    old = live.call("draft")
    live.submit(Reject("gate", "ann", "Editor"))

    again = live.submit(Receipt(old.key, old.attempt, "ok", payload({"file": "f1"})))

    assert refused(again) == "receipt.not_awaited"
    assert live.status("draft") == "running"


@pytest.mark.req("R112", "R113", "R117")
def test_every_run_that_succeeded_is_undone_last_first():
    """What was done before a revision was done all the same."""
    live = sent_back()
    live.ok("draft", {"file": "f2"})
    live.ok("render", {})

    live.submit(CancelInstance("zoe"))
    first = live.call("undo/draft")
    live.ok("undo/draft")
    second = live.call("undo/draft")
    live.ok("undo/draft")

    assert [first.params.value, second.params.value] == [{"file": "f2"}, {"file": "f1"}]
    assert first.key != second.key
    assert (live.state, live.cell.state.rollback) == ("cancelled", "full")


def test_an_undo_of_an_earlier_run_is_found_again_after_a_crash():
    """The state knows which run is being undone, and offers the same call again."""
    live = sent_back()
    live.submit(CancelInstance("zoe"))
    live.settle("draft")

    again = live.reread()
    values = {each.addr: each.data for each in snapshot_payloads(again.cell.state)}
    read = state_from_bytes(state_bytes(again.cell.state), live.id, live.plan, values)

    assert again.cell.state.undoing == read.undoing
    assert again.ok("undo/draft").turn.events[0].round == 1
    assert again.state == "cancelled"


def test_a_late_success_of_a_skipped_run_is_remembered_with_that_run():
    """The step may be at work again: it is not settled by what came too late before."""
    live = Live(
        """
timeout: 1d
steps:
  - {name: draft, agent: writer, timeout: 10s, onFailure: skip}
  - {name: gate, approval: {onReject: changes, expires: 1h}, dependsOn: [draft]}
"""
    )
    live.start()
    old = live.call("draft")
    live.tick(10_000)
    live.submit(Reject("gate", "ann", None, payload("do it")))

    done = live.submit(Receipt(old.key, 1, "ok", payload({"late": True})))

    assert names(done) == ["LateSuccess", "AttemptEnded"]
    assert live.status("draft") == "running"
    [(review, asked)] = questions_changed(live.cell.state)  # nobody will undo it
    assert (review, asked.kind) == ("draft/late", "effect.orphaned")
    assert live.call("draft").feedback == ("do it",)


def test_a_pause_holds_the_correction_back():
    """It is to be corrected, and shown as that."""
    live = at_gate()
    live.submit(PauseInstance("zoe"))

    live.submit(Reject("gate", "ann", "Editor", payload("livelier")))

    assert live.status("draft") == "correcting"
    assert live.reread().status("draft") == "correcting"


@pytest.mark.req("R130")
def test_what_is_done_again_for_one_gate_is_not_sent_back_by_another():
    """The second would be lost: it is refused by name, and accepted later."""
    live = Live(
        """
timeout: 1d
steps:
  - {name: draft, agent: writer, timeout: 1h}
  - {name: style, approval: {onReject: changes, expires: 1h}, dependsOn: [draft]}
  - {name: facts, approval: {onReject: changes, expires: 1h}, dependsOn: [draft]}
"""
    )
    live.start()
    live.ok("draft")
    live.submit(Reject("style", "ann", None))

    outcome = live.submit(Reject("facts", "bob", None))

    assert refused(outcome) == "approval.revising"
    assert outcome.detail == "draft is being done again already"
    live.ok("draft")
    assert names(live.submit(Reject("facts", "bob", None)))[0] == "GateRejected"


def test_dependencies_come_before_what_needs_them():
    """Whatever their order in the file, and only what the named step leads to."""
    live = Live(
        """
timeout: 1d
steps:
  - {name: gate, approval: {onReject: changes, revise: [a], expires: 1h}, dependsOn: [d, e]}
  - {name: d, sleep: 1s, dependsOn: [c, b]}
  - {name: c, sleep: 1s, dependsOn: [b]}
  - {name: b, sleep: 1s, dependsOn: [a]}
  - {name: e, sleep: 1s, dependsOn: [x]}
  - {name: a, agent: r, timeout: 1m, dependsOn: [x]}
  - {name: x, sleep: 1s}
"""
    )
    found = [live.plan.steps[i].name for i in led_to(live.plan, 0, live.plan.steps[0].revise)]

    assert found == ["a", "b", "c", "d", "gate"]


def test_a_very_long_chain_is_walked_without_recursion():
    """Three thousand steps between are no deeper than one."""
    chain = "\n".join(
        f"  - {{name: s{i}, sleep: 1s, dependsOn: [{'a' if i == 0 else f's{i - 1}'}]}}"
        for i in range(3_000)
    )
    live = Live(
        "timeout: 1d\nsteps:\n  - {name: a, agent: r, timeout: 1m}\n"
        + chain
        + "\n  - {name: gate, approval: {onReject: changes, revise: [a], expires: 1h},"
        " dependsOn: [s2999]}"
    )

    assert len(led_to(live.plan, 3_001, live.plan.steps[3_001].revise)) == 3_002


FAN = """
timeout: 1d
steps:
  - {name: outline, agent: writer, timeout: 1h}
  - name: chapter
    run: x.write
    dependsOn: [outline]
    forEach: steps.outline.titles
    with: {title: "${ item }"}
    timeout: 1h
  - name: gate
    approval: {onReject: changes, revise: [outline], expires: 1h}
    dependsOn: [chapter]
  - name: copy
    run: x.copy
    dependsOn: [outline]
    forEach: steps.outline.titles
    limit: 1
    with: {t: "${ item }"}
    timeout: 1h
"""


def test_a_fan_that_is_under_way_elsewhere_keeps_its_list():
    """Its items were counted by what was so then; the new result must not change them."""
    live = Live(FAN)
    live.start()
    live.ok("outline", {"titles": ["a", "b"]})
    live.ok("chapter[0]")
    live.ok("chapter[1]")
    live.submit(Reject("gate", "ann", None))
    live.ok("outline", {"titles": ["z"]})

    again = live.reread()
    assert again.call("copy[0]").params.value == {"t": "a"}
    again.ok("copy[0]")
    assert again.call("copy[1]").params.value == {"t": "b"}


def test_the_results_of_a_fan_stand_until_they_are_replaced():
    """Item by item, while it runs again."""
    live = Live(FAN)
    live.start()
    live.ok("outline", {"titles": ["a", "b"]})
    first, second = [call for call in live.calls if call.step == "chapter"]
    live.submit(Receipt(first.key, 1, "ok", payload(1)))
    live.submit(Receipt(second.key, 1, "ok", payload(2)))
    live.submit(Reject("gate", "ann", None))
    assert live.cell.state.result_of(1) == [1, 2]

    live.ok("outline", {"titles": ["a", "b", "c"]})
    newest = [call for call in live.calls if call.step == "chapter"][2:]
    live.submit(Receipt(newest[1].key, newest[1].attempt, "ok", payload(20)))

    assert live.cell.state.result_of(1) == [1, 20, None]
    assert [(call.item, call.attempt, call.round) for call in newest] == [
        *((0, 2, 2), (1, 2, 2), (2, 1, 1)),
    ]


@pytest.mark.req("R134")
def test_what_was_skipped_with_its_dependency_runs_once_that_does():
    """A step that requires success is no longer doomed when its dependency is decided again."""
    live = Live(
        """
timeout: 1d
steps:
  - {name: draft, agent: writer, timeout: 1h}
  - {name: pictures, run: p, dependsOn: [draft], when: steps.draft.pictures, timeout: 1h}
  - {name: frame, run: f, dependsOn: [{step: pictures, require: success}], timeout: 1h}
  - {name: gate, approval: {onReject: changes, revise: [draft], expires: 1h}, dependsOn: [frame]}
"""
    )
    live.start()
    live.ok("draft", {"pictures": False})
    assert live.status("frame") == "skipped"
    live.submit(Reject("gate", "ann", None, payload("with pictures")))
    live.ok("draft", {"pictures": True})
    live.ok("pictures")
    live.ok("frame")
    live.submit(Approve("gate", "ann", None))

    assert live.state == "completed"
