"""The tree and the lines of instances with very many items, and of children."""

import re

import pytest

from pawlflow.cli.family import FOLLOWED_MAX, Family
from pawlflow.cli.lines import lines_for
from pawlflow.cli.tree import instance_tree
from pawlflow.model.ids import CellId, InstanceId, Tenant
from pawlflow.model.system import Continue
from pawlflow.projections.reading import story_of
from pawlflow.projections.show import show
from pawlflow.store.port import StoreError
from tests.cli.test_render import drawn
from tests.kernel.support import Live, workflow
from tests.projections.families import example, played, written
from tests.projections.kit import told_live

FAN = (
    'steps:\n  - {name: build, run: x.build, forEach: "${ input.n }", limit: LIMIT,'
    " onFailure: ON_FAILURE}"
)
MANY = """\
apiVersion: pawl.dev/v1
kind: Scenario
metadata: {name: many}
spec:
  definition:
    - apiVersion: pawl.dev/v1
      kind: Workflow
      metadata: {name: parent}
      spec: {steps: [{name: c, workflow: kid, forEach: "${ input.n }"}]}
    - apiVersion: pawl.dev/v1
      kind: Workflow
      metadata: {name: kid}
      spec: {steps: [{name: w, wait: {event: go}}]}
  input: {n: NUMBERS}
  expect: {state: waiting}
"""


def fanned(size, limit=5, on_failure="escalate"):
    """An instance with very many items, of which some run."""
    shape = workflow(FAN.replace("LIMIT", str(limit)).replace("ON_FAILURE", on_failure))
    live = Live(shape)
    live.start({"n": list(range(size))})
    return live, shape


@pytest.mark.req("R184")
def test_a_hundred_thousand_items_are_a_summary_and_a_few_lines():
    """How many of how many, by state, with a bar; then what is open or wrong, up to a limit."""
    live, shape = fanned(100_000, limit=500)
    for item in range(9):
        live.ok(f"build[{item}]")
    for item in (400, 401, 402):
        live.fail(f"build[{item}]")

    page = drawn(instance_tree(show(told_live(live, shape)), None)).splitlines()

    summary = "● build  9 of 100,000 (3 escalated, 497 running)"
    assert summary in page[2]
    assert re.search(r"[━╌]{16}", page[2])
    assert len(page) < 60
    assert all(any(f"⚑ build[{n}]" in line for line in page) for n in (400, 401, 402))
    assert any("and 480 more like these" in line for line in page)
    assert max(map(len, page)) <= 80


@pytest.mark.req("R184")
def test_few_items_are_told_one_by_one():
    """What each gave stands below it; the step itself says how many."""
    live, shape = fanned(2)
    live.ok("build[0]", {"image": "i"})

    page = drawn(instance_tree(show(told_live(live, shape)), None)).splitlines()

    assert page[2].startswith("└── ● build  1 of 2 (1 running)  ━━━━━━━━╌╌╌╌╌╌╌╌")
    assert page[3:] == [
        "    ├── ✓ build[0]  0ms",
        '    │     {"image":"i"}',
        "    └── ● build[1]  running 0ms",
    ]


@pytest.mark.req("R184")
def test_many_items_have_a_line_for_each_tenth_and_for_what_went_wrong():
    """Piped, a thousand items are some dozen lines."""
    live, shape = fanned(1_000, limit=10, on_failure="skip")
    before, lines = None, []
    for item in range(1_000):
        if item == 500:
            live.fail("build[500]")
        else:
            live.ok(f"build[{item}]")
        if item % 50 == 49:
            shown = show(told_live(live, shape))
            lines += lines_for(before, shown)
            before = shown

    told = [line[13:] for line in lines if line[13:].startswith("build ")]

    assert len(lines) < 20
    assert re.fullmatch(r"build +running 50 of 1,000 \(10 running\)", told[0])
    assert re.fullmatch(r"build +succeeded 999 of 1,000 \(1 skipped\)", told[-1])
    assert len(told) == 11
    [wrong] = [line for line in lines if "build[500]" in line]
    assert wrong.endswith("skipped (terminal effect.failed)")


def test_items_that_are_known_later_have_their_lines():
    """A step of which nothing was known before tells its items as they come to be."""
    live, shape = fanned(3, limit=1)
    first = show(told_live(live, shape), 1)
    live.ok("build[0]", {"image": "i"})
    second = show(told_live(live, shape))

    told = [line[13:] for line in lines_for(first, second)]

    assert told == ['build[0]  succeeded {"image":"i"}', "build[1]  running"]
    assert lines_for(second, second) == []


@pytest.mark.req("R92", "R184")
def test_a_child_is_a_tree_below_its_step(tmp_path):
    """Workflow, id, state and progress, then its own steps; no further down than that."""
    with played(tmp_path, example("an-escalated-child-keeps-its-parent-waiting")) as found:
        family = Family(found.store, found.story)
        shown = family.look()
        [child] = found.ids("kid")
        page = drawn(instance_tree(shown, None), width=100)

    assert [line.rstrip() for line in page.splitlines()[2:5]] == [
        "└── ⏸ c  waiting for its child",
        f"    └── ⚑ kid {child}  escalated  ╌╌╌╌╌╌╌╌ 0/1  0ms",
        "        └── ⚑ k  a human must decide",
    ]


@pytest.mark.req("R92", "R184")
def test_children_are_followed_as_they_move(tmp_path):
    """A look reads what came since; who does not move is not told again."""
    with played(tmp_path, example("waiting-for-a-child-is-waiting")) as found:
        family = Family(found.store, found.story)
        first, second = family.look(), family.look()
        [child] = found.ids("kid")

        assert list(first["family"]) == [child]
        assert second is None
        assert [key for (_, key), _ in family.open()] == [found.key, child]
        assert not family.awaited
        lines = lines_for(None, first)
        assert any(f"  child {child}: kid v1 started by scenario" in line for line in lines)
        assert all(key in family.whole() for key in ("children", "parent"))


@pytest.mark.req("R92")
def test_of_many_children_some_are_followed(tmp_path):
    """A screen's worth of those that are open; the others are counted by their step."""
    scenario = written(MANY.replace("NUMBERS", str(list(range(30)))))
    with played(tmp_path, scenario) as found:
        family = Family(found.store, found.story)
        shown = family.look()
        page = drawn(instance_tree(shown, None), width=120)

    assert len(shown["family"]) == FOLLOWED_MAX
    assert "⏸ c  0 of 30 (30 running)" in page
    assert page.count("⏸ w  waiting for an event") == FOLLOWED_MAX
    assert "and 10 more like these" in page


def test_a_story_that_grew_is_caught_up_with(tmp_path):
    """Reading on gives what reading anew gives, and refuses what does not follow."""
    with played(tmp_path, example("children-of-items-run-side-by-side")) as found:
        whole = found.story
        cut = type(whole)(whole.cell, whole.definition, whole.turns[:2], dict(whole.payloads))
        family = Family(found.store, cut)

        assert family.look()["turns"] == len(whole.turns)
        assert cut.turns == whole.turns
        assert story_of(found.store, whole.cell.tenant, InstanceId(found.key)) == whole
        other = type(whole)(whole.cell, whole.definition, [(b"", b"another")] * 2, {})
        with pytest.raises(StoreError, match="cannot be trusted"):
            Family(found.store, other).look()


def test_a_turn_looks_at_a_thousand_items_and_the_next_goes_on():
    """What is shown in between is right too: the rest is pending."""
    live, shape = fanned(3_000, limit=3_000)
    counts = [show(told_live(live, shape))["steps"]["build"]["items"]]
    for _ in range(2):
        live.submit(Continue())
        counts.append(show(told_live(live, shape))["steps"]["build"]["items"])

    assert [each["running"] for each in counts] == [1_000, 2_000, 3_000]
    assert [each["pending"] for each in counts] == [2_000, 1_000, 0]


@pytest.mark.req("R92")
def test_who_belongs_to_a_family_is_known_down_to_the_last(tmp_path):
    """A grandchild does; a parent, or an instance of another tenant, does not."""
    with played(tmp_path, example("a-cancel-goes-down-to-grandchildren")) as found:
        cells = {head.cell.workflow: head.cell for head in found.store.refs()}
        every = [cells[name] for name in ("top", "mid", "low")]
        whole = Family(found.store, found.story)
        part = Family(found.store, found.of(cells["mid"].key))
        other = CellId(Tenant("another"), cells["low"].workflow, cells["low"].key)

        assert [whole.has(cell) for cell in every] == [True, True, True]
        assert [part.has(cell) for cell in every] == [False, True, True]
        assert not whole.has(other)
