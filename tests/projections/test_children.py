"""Children in every view: who waits for whom, why, and which turn led to which."""

import pytest

from pawlflow.model.ids import Tenant
from pawlflow.projections.kin import Kin
from pawlflow.projections.show import CHILDREN_MAX, children_shown, show
from pawlflow.projections.story import Child, Told
from pawlflow.projections.trace import trace
from pawlflow.projections.why import LEVELS_MAX, why
from tests.projections.families import example, played, written
from tests.projections.kit import up_to

CHAIN = """\
apiVersion: pawl.dev/v1
kind: Scenario
metadata: {name: top-1}
spec:
  definition:
    - apiVersion: pawl.dev/v1
      kind: Workflow
      metadata: {name: top}
      spec: {steps: [{name: a, workflow: mid}]}
    - apiVersion: pawl.dev/v1
      kind: Workflow
      metadata: {name: mid}
      spec: {steps: [{name: b, workflow: low}]}
    - apiVersion: pawl.dev/v1
      kind: Workflow
      metadata: {name: low}
      spec: {steps: [{name: c, workflow: leaf}]}
    - apiVersion: pawl.dev/v1
      kind: Workflow
      metadata: {name: leaf}
      spec: {steps: [{name: gate, approval: {role: Boss}}]}
  expect: {state: waiting}
"""


@pytest.mark.req("R92", "R184")
def test_a_parent_shows_its_children_and_a_child_its_parent(tmp_path):
    """Step, workflow, id, attempt and state one way; workflow, id and step the other."""
    with played(tmp_path, example("children-of-items-run-side-by-side")) as family:
        shown = show(family.story, kin=family.kin)

        children = shown["children"]
        assert [child["step"] for child in children] == ["c[0]", "c[1]", "c[2]"]
        assert [child["state"] for child in children] == ["completed", "failed", "completed"]
        assert {child["id"] for child in children} == set(family.ids("kid"))
        assert all((c["workflow"], c["attempt"]) == ("kid", 1) for c in children)
        assert (shown["parent"], shown["children_total"]) == (None, 3)
        one = show(family.of(children[1]["id"]), kin=family.kin)
        assert one["parent"] == {"workflow": "parent", "id": family.key, "step": "c[1]"}
        assert one["children"] == []


@pytest.mark.req("R92", "R187")
def test_in_the_past_a_child_is_what_its_parent_had_heard(tmp_path):
    """Asked about an earlier turn, nothing of what is now is told."""
    with played(tmp_path, example("a-failed-child-is-retried-as-another-child")) as family:
        story = family.story
        turns = range(1, len(story.turns) + 1)
        seen = [[c["state"] for c in show(story, at, kin=family.kin)["children"]] for at in turns]
        now = show(story, kin=family.kin)["children"]

    assert seen == [[None], ["failed"], ["failed", None], ["failed", "failed"]]
    assert [(c["attempt"], c["state"]) for c in now] == [(1, "failed"), (2, "failed")]
    assert now[0]["id"] != now[1]["id"]


@pytest.mark.req("R92")
def test_without_anybody_to_ask_the_journal_tells_what_it_knows(tmp_path):
    """A story alone, from a file say, shows what its children answered."""
    with played(tmp_path, example("children-of-items-run-side-by-side")) as family:
        told = show(family.story)["children"]

    assert [child["state"] for child in told] == ["completed", "failed", "completed"]


@pytest.mark.req("R92", "R184")
def test_what_waits_for_a_child_names_it(tmp_path):
    """The wait has the child's workflow and id, and the command that looks into it."""
    with played(tmp_path, example("an-escalated-child-keeps-its-parent-waiting")) as family:
        [wait] = show(family.story)["waiting"]
        [child] = family.ids("kid")

    assert (wait["step"], wait["kind"]) == ("c", "child")
    assert wait["child"] == {"workflow": "kid", "id": child}
    assert wait["hint"] == f"pawl why {child}"


@pytest.mark.req("R92", "R209")
def test_why_goes_on_into_the_child(tmp_path):
    """What the child waits for is what the parent waits for, and so is the next command."""
    with played(tmp_path, example("an-escalated-child-keeps-its-parent-waiting")) as family:
        told = why(family.story, kin=family.kin)
        alone = why(family.story)
        [child] = family.ids("kid")

    assert f"c waits for its child kid {child} since" in told["now"]
    assert f"; kid {child} is escalated: k waits for a human's decision since" in told["now"]
    assert told["hint"] == f"pawl resume {child} k --by NAME"
    [inside] = told["children"]
    assert (inside["step"], inside["id"], inside["state"]) == ("c", child, "escalated")
    assert f"c started its child kid {child}" in [fact["text"] for fact in told["because"]]
    assert alone["children"] == []
    assert alone["hint"] == f"pawl why {child}"


@pytest.mark.req("R92", "R209")
def test_why_goes_down_a_few_generations(tmp_path):
    """Up to three levels; the gate at the bottom is the next command of the top."""
    with played(tmp_path, written(CHAIN)) as family:
        told = why(family.story, kin=family.kin)
        [mid], [low], [leaf] = (family.ids(name) for name in ("mid", "low", "leaf"))

    assert f"mid {mid} is waiting: b waits for its child low {low}" in told["now"]
    assert f"leaf {leaf} is waiting: gate waits for approval by Boss" in told["now"]
    assert told["hint"] == f"pawl review approve {leaf}/gate --by NAME --role Boss"
    depth, inside = 0, told["children"]
    while inside:
        depth, inside = depth + 1, inside[0]["children"]
    assert depth == LEVELS_MAX


@pytest.mark.req("R92", "R209")
def test_why_says_of_a_failed_child_what_failed_in_it(tmp_path):
    """The parent's failure is the child's: its step is named, and the command that tells more."""
    with played(tmp_path, example("a-failed-child-is-retried-as-another-child")) as family:
        told = why(family.story, kin=family.kin)
        first, second = family.ids("kid")

    assert "c failed after 2 attempts (external, effect.failed" in told["now"]
    assert f"; kid {second} is failed: k failed after 1 attempt" in told["now"]
    assert told["hint"] == f"pawl why {second}"
    assert first not in told["now"]


@pytest.mark.req("R92", "R209")
def test_a_child_says_who_started_it(tmp_path):
    """The first link of its chain is the step of its parent."""
    with played(tmp_path, example("a-failed-child-is-retried-as-another-child")) as family:
        first, second = (why(family.of(key))["because"][0]["text"] for key in family.ids("kid"))

    assert first == f"c of parent {family.key} started kid v1 as its child, for scenario"
    assert second == f"{first}, in attempt 2"


@pytest.mark.req("R92", "R209")
def test_a_child_that_is_not_there_yet_is_to_come(tmp_path):
    """Between the wish and the start there is nothing to look into, and that is said."""
    with played(tmp_path, example("waiting-for-a-child-is-waiting")) as family:
        elsewhere = Kin(family.store, Tenant("nobody"))  # where it is not known
        told = why(family.story, kin=elsewhere)

    assert told["children"][0]["state"] is None
    assert "is to come: it has not begun" in told["now"]
    assert told["hint"] == f"pawl watch {family.key}"


@pytest.mark.req("R92", "R182")
def test_a_trace_goes_from_parent_to_child_and_back(tmp_path):
    """A child's start comes from a turn of its parent, its end leads to one; by number."""
    with played(tmp_path, example("a-failed-child-is-retried-as-another-child")) as family:
        entries = trace(family.story, family.kin)
        children = {key: trace(family.of(key), family.kin) for key in family.ids("kid")}
        alone = trace(family.story)

    asked = {c["id"]: e["turn"] for e in entries for c in e["children"]}
    assert list(asked) == list(children)
    for key, child in children.items():
        origin = child[0]["origin"]
        assert (origin["id"], origin["turn"]) == (family.key, asked[key])
        assert (origin["workflow"], origin["step"]) == ("parent", "c")
        assert [e["origin"] for e in child[1:]] == [None] * (len(child) - 1)
    heard = [e for e in entries if e["origin"] is not None]
    assert [(e["origin"]["id"], e["origin"]["turn"]) for e in heard] == [
        (key, len(child)) for key, child in children.items()
    ]
    assert [e["caused_by"] for e in heard] == list(asked.values())
    assert [e["origin"]["turn"] for e in alone if e["origin"]] == [None, None]


@pytest.mark.req("R92")
@pytest.mark.parametrize(
    "name",
    ["a-cancel-goes-down-to-grandchildren", "a-step-timeout-cancels-the-child"],
)
def test_every_generation_can_be_told_at_every_turn(tmp_path, name):
    """Whatever a family goes through, no view of any of them stumbles."""
    with played(tmp_path, example(name)) as family:
        keys = [head.cell.key for head in family.store.refs() if head.cell.key[0] != "$"]
        assert len(keys) > 1
        for key in keys:
            story = family.of(key)
            trace(story, family.kin)
            for at in range(1, len(story.turns) + 1):
                told = why(up_to(story, at), now=90_000, kin=family.kin)
                assert told["now"] and told["hints"]
                assert show(story, at)["state"] == told["state"]


def test_of_very_many_children_those_are_shown_that_did_not_complete():
    """A thousand at most; what is open or failed is never left out for what is done."""
    told = Told(state=None)  # only its children are looked at
    for n in range(CHILDREN_MAX + 500):
        heard = None if n == 1_400 else "failed" if n == 1_300 else "completed"
        told.children[f"c.{n}"] = Child(f"c[{n}]", "kid", f"c.{n}", 1, n, heard)

    shown = children_shown(told)

    assert len(shown) == CHILDREN_MAX
    assert {"c.1400", "c.1300"} <= {child.id for child in shown}
    assert [child.turn for child in shown] == sorted(child.turn for child in shown)
