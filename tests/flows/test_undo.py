"""Gates and waits of a flow that are undone: how they are written, and that it happens."""

import pytest

from pawlflow import Terminal, WorkflowFailed, approval, flow, step, wait_for
from tests.effects.kit import run
from tests.flows.test_running import reached


@pytest.mark.req("R113")
def test_a_gate_and_a_wait_are_undone_by_a_function_an_effect_or_as_in_a_file():
    """The function is brought along; what is written is what a file would say."""

    @step
    def withdraw(result): ...

    @flow(failure_policy="compensate")
    def outer(request):
        legal = approval("legal", undo=withdraw, undo_on_failure=True)
        gate = approval("gate", undo="board.withdraw", on_failure="skip", after=[legal])
        refund = {"run": "bank.refund", "with": {"id": request.id}}
        wait_for("paid", timeout="1h", undo=refund, undo_on_failure=True, after=[gate])

    legal, gate, paid = outer.workflow.steps
    assert set(outer.brought().functions) == {"withdraw"}
    assert [each.undo.target for each in (legal, gate, paid)] == [
        *("withdraw", "board.withdraw", "bank.refund"),
    ]
    assert paid.undo.params == {"id": "${ input.id }"}
    assert [each.undo_on_failure for each in (legal, gate, paid)] == [True, False, True]
    assert (gate.on_failure, legal.on_failure) == ("skip", None)


@pytest.mark.req("R113")
def test_a_gate_is_undone_by_a_function_that_knows_who_granted(engine):
    """It runs in its turn, and gets the answer; what was asked of nobody brings no command."""
    done: list[str] = []

    @step
    def discard(result):
        done.append(f"discard {result}")

    @step(undo=discard)
    def build():
        return "i-1"

    @step
    def withdraw(command, result):
        done.append(f"withdraw {result['by']} {command}")

    @step
    def promote(image):
        raise Terminal(f"{image} does not fit")

    @flow(failure_policy="compensate")
    def gated(request):
        image = build()
        agreed = approval("agreed", expires="1h", undo=withdraw, after=[image])
        promote(image, after=[agreed])

    async def main():
        async with engine() as pawl:
            started = await pawl.start(gated, {})
            await reached(started, "ApprovalRequested")
            await pawl.approve(started.id, "agreed", by="ann")
            with pytest.raises(WorkflowFailed) as failed:
                await started.result(timeout="30s")
            return failed.value, started.show()["steps"]["agreed"]["undo"]

    failed, undo = run(main())

    assert (failed.step, failed.rollback, undo) == ("promote", "full", "done")
    assert done == ["withdraw ann None", "discard i-1"]
