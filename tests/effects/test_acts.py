"""What people do to instances that run, from Python."""

import pytest

from pawlflow import PawlError, Refused, WorkflowFailed
from tests.effects.kit import run, written

GATED = """
  steps:
    - {name: gate, approval: {role: Lead, expires: 1h, onReject: fail}}
    - {name: work, run: work, dependsOn: [gate], onFailure: escalate}
  output: ${ steps.work }
"""


@pytest.mark.req("R90", "R91", "R127", "R130", "R133")
def test_people_decide_hold_back_and_mend(engine, tmp_path):
    """Approve, pause, unpause, resume, retry with another input; refused where it is wrong."""
    path = written(tmp_path, "gated", GATED)
    asked = []

    async def main():
        async with engine() as pawl:
            pawl.load(path)

            @pawl.effect("work")
            async def work(n=0):
                asked.append(n)
                if n < 2:
                    raise RuntimeError("not enough")
                return n

            one = await pawl.start("gated", id="g-1")
            with pytest.raises(Refused) as wrong:
                await pawl.approve("g-1", "gate", by="bob", role="Clerk")
            assert wrong.value.code == "approval.wrong_role"
            await pawl.pause("g-1", by="bob", comment="not on a friday")
            await pawl.approve("g-1", "gate", by="ann", role="Lead", comment="fine")
            with pytest.raises(Refused):
                await pawl.approve("g-1", "gate", by="ann", role="Lead")
            await pawl.unpause("g-1", by="bob")
            async for event in one.events():
                if event["eventType"] == "WorkflowEscalated" and len(asked) == 1:
                    await pawl.resume("g-1", "work", by="bob")
                elif event["eventType"] == "WorkflowEscalated":
                    await pawl.retry("g-1", "work", by="bob", with_={"n": 3})
            two = await pawl.start("gated", id="g-2")
            await pawl.reject("g-2", "gate", by="ann", role="Lead")
            with pytest.raises(WorkflowFailed) as failed:
                await two.result(timeout="20s")
            assert failed.value.step == "gate"
            with pytest.raises(TypeError):
                await pawl.cancel("g-2", why="a typo")
            with pytest.raises(PawlError) as bad:
                await pawl.cancel("no such id!")
            assert bad.value.code == "instance.id"
            return await one.result(timeout="20s")

    assert run(main()) == 3
    assert asked == [0, 0, 3]


@pytest.mark.req("R134")
def test_people_say_what_they_look_after(engine, tmp_path):
    """Claimed once or twice by one, refused to another, decided by whoever may."""
    path = written(tmp_path, "gated", GATED)

    async def main():
        async with engine() as pawl:
            pawl.load(path)
            pawl.effect("work")(lambda: 7)
            one = await pawl.start("gated", id="g-1")
            await pawl.claim("g-1", "gate", by="ann", role="Lead", comment="mine")
            await pawl.claim("g-1", "gate", by="ann", role="Lead")
            assert one.show()["waiting"][0]["claimed_by"] == "ann"
            with pytest.raises(Refused, match="gate is claimed by ann") as held:
                await pawl.claim("g-1", "gate", by="eve", role="Lead")
            assert held.value.code == "review.held"
            await pawl.approve("g-1", "gate", by="eve", role="Lead")
            return await one.result(timeout="20s")

    assert run(main()) == 7


def test_tenants_do_not_meet(engine, tmp_path):
    """The same id in two tenants is two instances; nobody reaches the other's."""
    path = written(tmp_path, "waits", "  steps: [{name: w, wait: {event: go}}]\n")

    async def main():
        async with engine() as pawl:
            pawl.load(path)
            mine = await pawl.start("waits", id="same")
            await pawl.signal("same", "go", 1)
            assert await mine.result(timeout="20s") is None
            with pytest.raises(PawlError) as unknown:
                await pawl.signal("same", "go", 1, tenant="other")
            return unknown.value.code

    assert run(main()) == "instance.unknown"
