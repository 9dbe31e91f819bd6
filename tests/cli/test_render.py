"""What a person sees: trees, tables and lines that fit 80 columns, in colour and without."""

import io
from itertools import pairwise

import pytest
from rich.console import Console

from pawlflow.cli import render
from pawlflow.cli.lines import changed_steps, ms_of, span
from pawlflow.projections.history import history
from pawlflow.projections.show import show
from pawlflow.projections.trace import trace
from pawlflow.projections.why import why
from tests.kernel.support import Live, workflow
from tests.projections.kit import NAMES, erased, ran, story_of, told_live

HOSTILE = "[bold red]x[/bold red] \x1b[2J\r\nrm :smile: \u202e"
ROW = {
    "id": "order-1",
    "workflow": "release-service",
    "version": 3,
    "tenant": "acme",
    "state": "completed",
    "rollback": "none",
    "started_at": "2026-01-31T12:00:00.000Z",
    "closed_at": "2026-01-31T12:03:00.000Z",
}
REVIEW = {
    "id": "order-1/gate",
    "instance": "order-1",
    "step": "gate",
    "kind": "approval",
    "role": "ReleaseManager",
    "due_at": None,
    "show": {"notes": "a" * 200},
    "claimed_by": None,
}


def drawn(renderable, colour=None, width=80):
    """What a terminal of 80 columns would get."""
    file = io.StringIO()
    forced = colour is not None
    Console(file=file, width=width, color_system=colour, force_terminal=forced).print(renderable)
    return file.getvalue()


def lines_of(story):
    """What is printed while an instance is watched turn by turn."""
    views = [None, *(show(story, at) for at in range(1, len(story.turns) + 1))]
    return [line for before, after in pairwise(views) for line in render.lines_for(before, after)]


def hostile_story():
    """An instance whose every text tries to be markup, or to move the cursor."""
    shape = workflow("steps: [{name: a, run: x.y}, {name: b, approval: {role: R}, dependsOn: [a]}]")
    live = Live(shape)
    live.start({"text": HOSTILE}, by=HOSTILE)
    live.ok("a", {"text": HOSTILE})
    return told_live(live, shape)


@pytest.mark.req("R181")
@pytest.mark.parametrize("name", NAMES)
def test_every_example_can_be_drawn(name):
    """At every turn, also erased, nothing is wider than the terminal."""
    story, _ = ran(name)

    for at in range(1, len(story.turns) + 1):
        shown = show(story, at)
        page = drawn(render.instance_tree(shown, None))
        assert all(len(line) <= 80 for line in page.splitlines())
        assert all(step in page for step in shown["steps"])
    drawn(render.instance_tree(show(erased(story)), 10**9))
    page = drawn(render.why_text(why(story)))
    assert all(len(line) <= 80 for line in page.splitlines())


def test_a_failed_run_as_a_tree():
    """Symbols carry the meaning, so that it reads without colour."""
    page = drawn(render.instance_tree(show(story_of("a-failed-undo-stops-the-others")), None))

    assert page.splitlines() == [
        "✗ a-failed-undo-stops-the-others  travel v1  failed, rollback partial  2m",
        "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌ 3/4",
        "├── ✓ flight  0ms  ↩ not undone",
        "├── ✓ hotel   0ms  ↩ undo failed",
        "│     undo: transient effect.failed: stubbed transient failure",
        "├── ✓ car     0ms  ↩ undone",
        "└── ✗ visa    failed 0ms",
        "      terminal effect.failed: stubbed terminal failure",
    ]


def test_what_waits_comes_with_its_command():
    """Below the tree: what is awaited, for how long, and what to type."""
    page = drawn(render.instance_tree(show(story_of("waiting-for-an-event-is-running")), 90_000))

    assert "⏸ passenger  waiting for an event" in page
    assert "⏸ passenger waits for passenger.arrived, for 1m 30s" in page
    assert "\n  pawl signal waiting-for-an-event-is-running passenger.arrived --data '" in page


def test_an_error_of_the_instance_itself_stands_below_its_steps():
    """No step is to blame for the workflow's own timeout."""
    shown = show(story_of("for-the-workflow-timeout-skip-means-abort"))

    page = drawn(render.instance_tree(shown, None))

    assert page.splitlines()[-1] == "✗ timeout workflow.timeout: the workflow took too long"


def test_colour_is_an_addition():
    """With the codes taken out, the coloured page is the plain one."""
    shown = show(story_of("escalated-goes-before-awaiting-approval"))
    plain = drawn(render.instance_tree(shown, None))

    coloured = drawn(render.instance_tree(shown, None), colour="standard")

    assert "\x1b[" in coloured and "\x1b[" not in plain
    for word in ("⚑ ", "a human must decide", "pawl resume"):
        assert word in plain and word in coloured


@pytest.mark.parametrize("view", ["tree", "why", "lines", "history", "trace", "ls", "reviews"])
def test_words_of_others_are_printed_and_never_obeyed(view):
    """Markup stays text; no control character reaches the terminal."""
    story = hostile_story()
    shown = show(story)
    rows = [ROW | {"id": HOSTILE, "workflow": HOSTILE}]
    reviews = [REVIEW | {"id": HOSTILE, "role": HOSTILE, "show": HOSTILE}]
    made = {
        "tree": lambda: drawn(render.instance_tree(shown, None), width=120),
        "why": lambda: drawn(render.why_text(why(story)), width=120),
        "lines": lambda: "\n".join(render.lines_for(None, shown)),
        "history": lambda: "\n".join(render.history_lines(history(story))),
        "trace": lambda: "\n".join(render.trace_lines(trace(story))),
        "ls": lambda: drawn(render.instances_table(rows), width=120),
        "reviews": lambda: drawn(render.reviews_table(reviews), width=120),
    }

    page = made[view]()

    assert "[bold red]x[/bold red]" in page
    assert not set("\x1b\r\u202e") & set(page)


def test_a_result_too_long_for_its_line_is_cut():
    """One dim line each; the whole value is in --json."""
    shape = workflow("steps: [{name: a, run: x.y}, {name: b, run: x.z}]")
    live = Live(shape)
    live.start()
    live.ok("a", {"text": "long " * 100})

    page = drawn(render.instance_tree(show(told_live(live, shape)), None))

    (below,) = [line for line in page.splitlines() if "long" in line]
    assert below.endswith("…") and len(below) == 80


def test_of_very_many_steps_only_the_open_are_drawn():
    """A thousand steps fit on a screen: what is open, and the rest by number."""
    steps = "\n".join(f"  - {{name: s{n}, run: x.y}}" for n in range(1_000))
    shape = workflow(f"maxParallel: 2\nsteps:\n{steps}")
    live = Live(shape)
    live.start()

    page = drawn(render.instance_tree(show(told_live(live, shape)), None)).splitlines()

    assert len(page) == 5
    assert page[-1].endswith("and 998 ready")


def test_changes_are_told_line_by_line():
    """From turn to turn, the failure with its retry, the end with its rollback."""
    story = story_of("a-failed-undo-stops-the-others")

    lines = lines_of(story)

    assert lines[-8:] == [
        "00:00:00.000 car     undone",
        "00:00:00.000 hotel   undoing",
        "00:00:00.000 hotel   undo failed (transient effect.failed), retry at 00:01:00.000",
        "00:01:00.000 hotel   undoing, attempt 2",
        "00:01:00.000 hotel   undo failed (transient effect.failed), retry at 00:02:00.000",
        "00:02:00.000 hotel   undoing, attempt 3",
        "00:02:00.000 hotel   undo failed (transient effect.failed)",
        "00:02:00.000 a-failed-undo-stops-the-others  failed, rollback partial",
    ]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "attempts-are-max-retries-plus-one",
            "00:00:00.000 rate  failed (transient effect.failed), retry at 00:00:01.000",
        ),
        ("attempts-are-max-retries-plus-one", "00:00:01.000 rate  running, attempt 2"),
        (
            "a-step-being-corrected-is-correcting",
            "00:01:00.000 draft  refused (validation effect.failed), to be corrected",
        ),
        ("half-a-quorum-leaves-the-gate-open", "01:00:00.000 gate     approved by ann, 1 of 2"),
        (
            "escalated-goes-before-awaiting-approval",
            "00:00:00.000 drive   escalated (terminal effect.failed): a human must decide",
        ),
        ("a-paused-run-starts-nothing-new", "00:00:03.000 a-paused-run-starts-nothing-new  paused"),
    ],
)
def test_each_kind_of_change_has_its_words(name, line):
    """What moved, why, and when it goes on."""
    story = story_of(name)

    lines = lines_of(story)

    assert line in lines


@pytest.mark.parametrize("name", NAMES)
def test_no_change_is_no_line_and_no_turn_is_skipped(name):
    """The same view twice says nothing; from nothing to the end everything is said at once."""
    story, actual = ran(name)
    shown = show(story)

    assert render.lines_for(shown, shown) == []
    whole = render.lines_for(None, shown)
    assert whole == sorted(whole, key=lambda line: line[:12])
    assert any(line.split("  ")[-1].startswith(actual["state"]) for line in whole)


def test_history_and_trace_have_a_line_for_everything():
    """One for each event; one for each turn, with the turn that caused it."""
    story = story_of("attempts-are-max-retries-plus-one")

    events, turns = render.history_lines(history(story)), render.trace_lines(trace(story))

    assert len(events) == len(history(story))
    assert events[4] == (
        "   5 00:00:00.000 AgentTaskFailed                "
        "rate#1 transient effect.failed: stubbed transient failure"
    )
    heads = [line for line in turns if line.startswith("turn ")]
    assert heads[:3] == [
        "turn 1 00:00:00.000 start by scenario",
        "turn 2 00:00:00.000 receipt rate#1 failed  <- turn 1",
        "turn 3 00:00:01.000 tick  <- turn 2",
    ]


def test_instances_are_a_table():
    """Short ids beside their workflow, long ones above it; whole either way."""
    rows = [ROW, ROW | {"id": "order-2", "state": "failed", "rollback": "full"}]
    short_ids = drawn(render.instances_table(rows)).splitlines()

    assert [line.split() for line in short_ids] == [
        ["INSTANCE", "WORKFLOW", "STATE", "STARTED", "TOOK"],
        ["order-1", "release-service", "v3", "✓", "completed", "01-31", "12:00", "3m"],
        ["order-2", "release-service", "v3", "✗", "failed", "↩", "full", "01-31", "12:00", "3m"],
    ]
    uuid = "0198c0de-0000-7000-8000-000000000001"
    long_ids = drawn(render.instances_table([ROW, ROW | {"id": uuid, "tenant": "b"}]))
    assert uuid in long_ids and "  release-service v3" in long_ids and "TENANT" in long_ids
    assert drawn(render.instances_table([])).split()[0] == "INSTANCE"


def test_reviews_are_a_table():
    """The id to copy, who is asked, until when, and a glance at what is shown."""
    lines = drawn(render.reviews_table([REVIEW, REVIEW | {"role": None, "show": None}]))

    first, second = lines.splitlines()[1:]
    assert first.split()[:4] == ["order-1/gate", "approval", "ReleaseManager", "never"]
    assert first.rstrip().endswith("…") and len(first) <= 80
    assert second.split() == ["order-1/gate", "approval", "anybody", "never"]


def test_who_looks_after_a_review_has_a_column_if_anybody_does():
    """It takes no room where it would be empty."""
    lines = drawn(render.reviews_table([REVIEW, REVIEW | {"claimed_by": "ann"}]))

    head, first, second = lines.splitlines()
    assert "CLAIMED BY" in head
    assert first.split()[:4] == ["order-1/gate", "approval", "ReleaseManager", "never"]
    assert second.split()[2:5] == ["ReleaseManager", "ann", "never"]
    assert "CLAIMED" not in drawn(render.reviews_table([REVIEW]))


def test_a_claim_is_a_line_of_its_own():
    """Said once for each who takes it on; not again with the next move."""
    lines = lines_of(story_of("a-review-that-is-asked-again-is-claimed-anew"))

    claims = [line.split(maxsplit=1)[1] for line in lines if "claimed by" in line]
    assert [each.split() for each in claims] == [
        ["gate", "claimed", "by", "ann"],
        ["gate", "claimed", "by", "bob"],
        ["gate", "claimed", "by", "eve"],
        ["promote", "claimed", "by", "ann"],
    ]


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0ms"), (1_250, "1.2s"), (60_000, "1m"), (3_661_000, "1h 1m"), (90_000_000, "1d 1h")],
)
def test_spans_are_short(ms, text):
    """Two units at most."""
    assert span(ms) == text


def test_times_are_read_back():
    """What `show` writes as a time is a number again."""
    assert ms_of("1970-01-01T00:00:01.250Z") == 1_250
    assert ms_of(None) is None


def test_what_was_undone_between_two_looks_is_told_last_first():
    """A look may come late; its lines keep the order of what happened."""
    step = {"state": "succeeded", "attempts": 1, "undo": "none", "started_at": "t0", "error": None}
    before = {"steps": {"one": {**step, "ended_at": "t1"}, "two": {**step, "ended_at": "t2"}}}
    undone = {name: {**each, "undo": "done"} for name, each in before["steps"].items()}

    told = list(changed_steps(before, {"steps": undone, "updated_at": "t9"}))

    assert [(each.name, each.text) for each in told] == [("two", "undone"), ("one", "undone")]
