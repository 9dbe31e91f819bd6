"""Heads and seals: what is kept beside the turns, and can always be computed again."""

import pytest

from pawlflow.kernel.heads import Facts, facts_of, found_by, questions_changed
from pawlflow.kernel.snapshot import opened_state, sealed_state, state_bytes
from pawlflow.kernel.step import new_cell
from pawlflow.model.ids import StepKey, StepName
from pawlflow.model.inputs import Approve, ResumeStep, StartInstance
from pawlflow.model.kin import Parent
from pawlflow.model.payload import Payload
from pawlflow.model.system import topic_cell
from pawlflow.store.port import Head
from tests.kernel.support import TENANT, Live

GATED = """
timeout: 1h
steps:
  - {name: gate, approval: {role: Lead, expires: 10m}, show: {n: 1}}
  - {name: work, run: do.work, dependsOn: [gate], onFailure: escalate}
"""


@pytest.mark.req("R132", "R186")
def test_a_turn_says_what_humans_are_asked_and_no_longer_asked():
    """A gate opens and is decided, a step escalates and is resumed: four changes, by step."""
    live = Live(GATED)

    live.start()
    [(step, gate)] = questions_changed(live.cell.state)
    assert (step, gate.kind, gate.role, gate.due_at) == ("gate", "approval", "Lead", 600_000)
    assert gate.show.value == {"n": 1}

    live.submit(Approve("gate", "ann", "Lead"))
    assert questions_changed(live.cell.state) == [("gate", None)]

    live.fail("work")
    [(step, escalated)] = questions_changed(live.cell.state)
    assert (step, escalated.kind, escalated.role) == ("work", "escalation", None)
    assert escalated.show.value["attempts"] == 1

    live.submit(ResumeStep("work", "ann", "resume"))
    assert questions_changed(live.cell.state) == [("work", None)]


def test_a_head_follows_from_the_state():
    """What may be asked without reading turns; a system cell has little to say."""
    live = Live(GATED)
    live.start()
    facts = facts_of(live.cell.state)
    assert (facts.state, facts.due_at, facts.calls) == ("waiting", 600_000, 0)

    live.submit(Approve("gate", "ann", "Lead"))
    assert (facts_of(live.cell.state).state, facts_of(live.cell.state).calls) == ("running", 1)
    assert facts_of(new_cell(topic_cell(TENANT, "e"), None).state).state == "system"


def test_the_facts_of_a_head_have_its_order():
    """A store's head is its place and these; it is made of them by position."""
    place = ("ref", "cell", "shard", "turn", "hash")
    assert (*place, *Facts.__struct_fields__, "quarantined") == Head.__struct_fields__


@pytest.mark.req("R57", "R60")
def test_a_kept_state_is_opened_only_under_its_own_seal():
    """A changed byte, another turn, another cell or other values beside: it is not believed."""
    live = Live(GATED)
    live.start()
    cell, head = live.cell.state.cell, live.cell.head
    kept = sealed_state(live.cell.state, head, b"beside")

    assert opened_state(cell, head, kept, b"beside") == state_bytes(live.cell.state)
    first, last = bytes([kept[0] ^ 1]), bytes([kept[-1] ^ 1])
    for changed in (kept[:-1] + last, first + kept[1:], kept[:40], b""):
        assert opened_state(cell, head, changed, b"beside") is None
    assert opened_state(cell, head, kept, b"besides") is None
    assert opened_state(cell, bytes([head[0] ^ 1]) + head[1:], kept, b"beside") is None
    assert opened_state(Live(GATED, key="i-2").id, head, kept, b"beside") is None


@pytest.mark.req("R92", "R183")
def test_a_child_is_found_by_its_parent():
    """Beside what its definition says; an attribute of that name is the definition's own."""
    parent = Parent("top", "t-1", StepKey(bytes(16)), 1, StepName("c"))
    plain = "steps: [{name: a, run: x.y}]"

    for search, found in [
        ("", {"parent": "t-1"}),
        ("search: {repo: input.repo}\n", {"repo": "r1", "parent": "t-1"}),
        ("search: {parent: input.repo}\n", {"parent": "r1"}),
    ]:
        live = Live(search + plain)
        given = Payload.of({"repo": "r1"}, TENANT)
        live.submit(StartInstance(live.plan.definition, given, "zoe", parent))
        assert found_by(live.cell.state) == found
    alone = Live(plain)
    alone.start()
    assert found_by(alone.cell.state) == {}
