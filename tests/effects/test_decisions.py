"""Changes, roles on a ladder and late effects, from Python."""

import pytest

from pawlflow import Refused, WorkflowFailed
from tests.effects.kit import run, written

NOTES = """
  escalation: [{role: OnCall, timeout: 1h}, {role: Lead}]
  steps:
    - {name: draft, run: draft}
    - name: gate
      approval: {role: Editor, expires: 1h, onReject: changes, revise: [draft]}
      dependsOn: [draft]
    - {name: publish, run: publish, dependsOn: [gate], onFailure: escalate}
  output: ${ steps.draft }
"""


@pytest.mark.req("R103", "R133", "R134", "R135")
def test_work_is_sent_back_and_an_escalation_asks_for_its_rung(engine, tmp_path):
    """The comment reaches `ctx.feedback`; who acts in the wrong role is refused by code."""
    path = written(tmp_path, "notes", NOTES)
    told = []

    async def main():
        async with engine() as pawl:
            pawl.load(path)

            @pawl.effect("draft")
            async def draft(ctx):
                told.append((ctx.attempt, list(ctx.feedback)))
                return f"draft {ctx.attempt}"

            @pawl.effect("publish")
            async def publish():
                raise RuntimeError("no route")

            one = await pawl.start("notes", id="n-1")
            asked = 0
            async for event in one.events():
                if event["eventType"] == "ApprovalRequested":
                    asked += 1
                    decide = pawl.reject if asked == 1 else pawl.approve
                    await decide("n-1", "gate", by="ann", role="Editor", comment="livelier")
                elif event["eventType"] == "WorkflowEscalated":
                    assert (event["payload"]["level"], event["payload"]["role"]) == (1, "OnCall")
                    with pytest.raises(Refused) as wrong:
                        await pawl.resume("n-1", "publish", by="joe", role="Janitor")
                    assert wrong.value.code == "escalation.wrong_role"
                    with pytest.raises(Refused) as wrong:
                        await pawl.cancel("n-1", by="joe", role="Janitor")
                    assert wrong.value.code == "escalation.wrong_role"
                    with pytest.raises(Refused) as unknown:
                        await pawl.settle("n-1", "gate", by="joe", comment="it is fine")
                    assert unknown.value.code == "review.unknown"
                    await pawl.cancel("n-1", by="lea", role="Lead", comment="not tonight")
            with pytest.raises(WorkflowFailed):
                await one.result(timeout="20s")

    run(main())
    assert told == [(1, []), (2, ["livelier"])]
