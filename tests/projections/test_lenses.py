"""The four vocabularies: every word and every edge is seen, and what must not be seen never is."""

import re
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.replay import apply_turn
from pawlflow.kernel.step import new_cell
from pawlflow.model.events import InstanceQueued
from pawlflow.model.inputs import (
    Approve,
    CancelInstance,
    ClaimReview,
    DeliverEvent,
    GrantSlot,
    HoldInstance,
    PauseInstance,
    Receipt,
    Reject,
    ResumeStep,
    Signal,
    StartInstance,
    Tick,
    UnpauseInstance,
)
from pawlflow.model.reviews import GateVoided, StepReopened
from tests.kernel.histories import push, random_workflow
from tests.kernel.support import Live, payload
from tests.projections.edges import (
    ALSO,
    EDGES,
    FORBIDDEN,
    NOTHING,
    TERMINAL,
    VOCABULARIES,
    after_turns,
    edges_between,
    words,
)
from tests.projections.kit import story_of
from tests.projections.played import SCRIPTED
from tests.scenarios import FOLDER, PATHS

PAGE = Path(__file__).parents[2] / "docs" / "states.md"
SEEDS = st.integers(min_value=0, max_value=2**32)
ALL = [(of, edge) for of, edges in EDGES.items() for edge in edges]


@pytest.mark.req("R79", "R80", "R81", "R82", "R85")
@pytest.mark.parametrize(
    ("of", "edge"), ALL, ids=[f"{of}: {e.before} to {e.after}" for of, e in ALL]
)
def test_every_edge_is_seen(of, edge, tmp_path):
    """Between two turns of the run that the page names for it."""
    story = SCRIPTED[edge.shown](tmp_path) if edge.shown in SCRIPTED else story_of(edge.shown)

    assert (of, edge.before, edge.after) in edges_between(list(after_turns(story)))


@pytest.mark.req("R79", "R80", "R81", "R82")
@pytest.mark.parametrize("of", VOCABULARIES)
def test_every_word_is_reached(of):
    """By an edge of its own."""
    assert {edge.after for edge in EDGES[of]} == set(VOCABULARIES[of])


def walked(seed):
    """A random history: what is seen after each event and turn, and the events of each turn."""
    live = push(Random(seed), Live(random_workflow(Random(seed))), turns=60)
    cell = new_cell(live.id, live.plan)
    by_event, by_turn, turns = [], [], []
    for stepped in live.turns:
        events = []
        for event in apply_turn(cell.state, stepped.turn):
            by_event.append(words(cell.state))
            events.append(event)
        by_turn.append(words(cell.state))
        turns.append(events)
    return by_event, by_turn, turns


@pytest.mark.req("R80", "R83")
@given(SEEDS)
def test_no_other_edge_is_ever_seen(seed):
    """Event by event: the edges that are drawn, those that the page adds, and none besides."""
    by_event, _, _ = walked(seed)

    for of, before, after in edges_between(by_event):
        assert after in VOCABULARIES[of]
        if of in ("ioa", "ores", "ioa steps", "ores steps", "ores undo") and before != NOTHING:
            assert (before, after) in drawn(of), (of, before, after)


@cache
def drawn(of):
    """The edges of a vocabulary, and those beside them."""
    return {(edge.before, edge.after) for edge in EDGES[of]} | set(ALSO[of])


@pytest.mark.req("R80", "R122")
@given(SEEDS)
def test_what_is_forbidden_is_never_seen(seed):
    """Not between two events; nor two turns, but that created, queued and started may be one."""
    by_event, by_turn, turns = walked(seed)

    seen = {(before, after) for of, before, after in edges_between(by_event) if of == "ioa"}
    assert not seen & FORBIDDEN
    for at in range(1, len(by_turn)):
        pair = (by_turn[at - 1]["ioa", ""], by_turn[at]["ioa", ""])
        passed = {type(event) for event in turns[at]}
        assert pair not in FORBIDDEN or (pair == ("idle", "executing") and InstanceQueued in passed)


@pytest.mark.req("R80", "R83")
@given(SEEDS)
def test_what_is_ended_stays_as_it_is(seed):
    """For the instance always; for its steps, and their undos, unless a reviewer sends one back."""
    by_event, _, turns = walked(seed)
    ended = {}

    for seen, event in zip(by_event, (event for events in turns for event in events), strict=True):
        if isinstance(event, StepReopened | GateVoided):
            ended = {place: word for place, word in ended.items() if place[1] == ""}
        for (of, what), word in seen.items():
            assert ended.get((of, what), word) == word
            if word in TERMINAL[of]:
                ended[of, what] = word


FLOW = """
failurePolicy: compensate
steps:
  - {name: a, run: x.a, undo: {run: x.undo}}
  - {name: b, run: x.b, dependsOn: [a], onFailure: %s}
"""


def ended_as(word):
    """An instance that is closed, or being undone, by the word of `ioa` for it."""
    live = Live(FLOW % ("abort" if word == "failed" else "compensate"))
    live.start()
    live.ok("a")
    if word == "completed":
        live.ok("b")
    else:
        live.fail("b")
    assert words(live.cell.state)["ioa", ""] == word
    return live


def forward_inputs(live):
    """Everything by which somebody could want an instance to go on, or to begin again."""
    key = live.call("b").key
    return [
        StartInstance(live.plan.definition, payload(None), "zoe"),
        Receipt(key, 1, "ok", payload(None)),
        Receipt(key, 1, "failed"),
        Approve("b", "ann", "Boss"),
        Reject("b", "ann", "Boss"),
        ClaimReview("b", "ann", "Boss", None),
        *(ResumeStep("b", "ann", how, "Boss") for how in ("resume", "retry", "reassign")),
        Signal("e", payload(1), "ann"),
        DeliverEvent("e", payload(1)),
        PauseInstance("ann"),
        UnpauseInstance("ann"),
        CancelInstance("ann"),
        GrantSlot(),
        HoldInstance(1),
        Tick(),
    ]


@pytest.mark.req("R80", "R122")
@pytest.mark.parametrize("word", ["completed", "failed", "compensating"])
def test_nothing_brings_it_back(word):
    """Whatever is tried is refused, and the word stays; a restart is another instance."""
    live = ended_as(word)
    tried = forward_inputs(live)
    if word == "compensating":  # a late success of the failed attempt is kept, to be undone
        tried = [each for each in tried if not (isinstance(each, Receipt) and each.outcome == "ok")]

    for incoming in tried:
        outcome = live.submit(incoming)
        assert isinstance(outcome, Rejected), incoming
        assert words(live.cell.state)["ioa", ""] == word


# The page


def page_tables():
    """The generated part of docs/states.md: a table of edges for each vocabulary."""
    lines = []
    for of, edges in EDGES.items():
        lines += ["", f"### {of}", "", "| from | to | because | shown by |", "|---|---|---|---|"]
        lines += [f"| {e.before} | {e.after} | {e.because} | {link_to(e.shown)} |" for e in edges]
        if of in ALSO:
            lines += ["", "Also possible:", "", "| from | to | because |", "|---|---|---|"]
            lines += [f"| {b} | {a} | {because} |" for (b, a), because in ALSO[of].items()]
    return "\n".join(lines).replace("[*]", "`[*]`") + "\n"


def link_to(shown):
    """Where the run is written."""
    if shown in SCRIPTED:
        return f"`{shown}` in [played.py](../tests/projections/played.py)"
    (path,) = (path for path in PATHS if path.stem == shown)
    return f"[{shown}](../{path.relative_to(FOLDER.parents[1])})"


def test_the_page_has_every_edge(request):
    """docs/states.md names the run that shows each of them."""
    begin, end = "<!-- edges: made by tests/projections/test_lenses.py -->\n", "<!-- end -->\n"
    text = PAGE.read_text()
    before, _, rest = text.partition(begin)
    if request.config.getoption("--rewrite-golden"):
        _, _, after = rest.partition(end)
        PAGE.write_text(before + begin + page_tables() + "\n" + end + after)
        text = PAGE.read_text()
    found = re.search(f"{re.escape(begin)}(.*)\n{re.escape(end)}", text, re.DOTALL)
    assert found is not None and found[1] == page_tables()


@pytest.mark.req("R80")
def test_the_page_has_every_word_and_every_forbidden_edge():
    """Each word is explained, and each rule is stated."""
    text = PAGE.read_text()
    for of in VOCABULARIES:
        assert all(f"`{word}`" in text for word in VOCABULARIES[of]), of
    for before, after in FORBIDDEN:
        assert f"`{before}` to `{'any other' if before == 'completed' else after}`" in text
