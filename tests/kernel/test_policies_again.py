"""Policies and what happens a second time: gates that are settled again, rounds, restored cells."""

from pawlflow.kernel.snapshot import state_bytes, state_from_bytes
from pawlflow.model.inputs import Reject
from tests.kernel.policies_kit import PAY, answer, asked, done, governed, judge


def test_a_gate_that_is_left_out_again_does_not_ask_the_policies_again():
    """What it guards waits for an answer, not for the gate: one question, and its answer counts."""
    live = governed(
        "{name: build, run: ci.build, when: input.n > 1}",
        "{name: look, approval: {guards: [pay]}, dependsOn: [{step: build, require: success}]}",
        "{name: agree, approval: {onReject: changes, revise: [build]}, dependsOn: [look]}",
        PAY + "}",
    )
    assert [call.step for call in asked(live)] == ["pay"]

    live.submit(Reject("agree", "ann", None))
    assert len(asked(live)) == 1

    judge(live, answer())
    assert done(live) == [1]


def test_another_round_is_another_question_and_a_cell_that_is_read_again_knows_the_same_keys():
    """The keys of every round since it asked, and of none before."""
    live = governed(
        PAY + ", maxCorrectionAttempts: 1}",
        "{name: later, run: bank.pay, dependsOn: [pay], policy: {action: pay}}",
    )

    def keys_read_again():
        data = state_bytes(live.cell.state)
        return state_from_bytes(data, live.id, live.plan, live.payloads).keys

    judge(live, answer())
    live.fail("pay", "validation")
    assert [(call.round, call.attempt) for call in asked(live)] == [(1, 1), (2, 2)]
    assert keys_read_again() == live.cell.state.keys

    judge(live, answer())
    live.ok("pay", 1)
    assert asked(live)[-1].step == "later"
    assert keys_read_again() == live.cell.state.keys
