"""What the rows say: the columns of spec 004, and the states by its lens."""

import json
from functools import partial

import pytest

from pawlflow.definition.plan import plan_of
from pawlflow.effects.headers import instance_uuid
from pawlflow.kernel.units import SKIPPED, SUCCEEDED
from pawlflow.projections.folding import Folding
from pawlflow.projections.lenses import lens, lens_steps
from pawlflow.projections.rows import Place
from pawlflow.projections.show import show
from pawlflow.projections.units import named_units
from pawlflow.store.port import Entry
from tests.projections.kit import NAMES, story_of
from tests.projections.played import play, warned

HERE = Place(32, 1)
DAILY = NAMES[::9]


def folded(story, turn=None):
    """An instance after a turn, or after the last, with every row still to be taken."""
    made = unfolded(story)
    for number, (data, sealed) in enumerate(story.turns[:turn], 1):
        made.take(Entry(32, number, data, sealed))
    return made


def unfolded(story):
    """An instance before its first turn."""
    cell, plan = story.cell, plan_of(story.definition)
    made = Folding(cell, plan, instance_uuid(cell.tenant, cell.key), lambda *_: None)
    made.payloads.update(story.payloads)
    return made


def rows_in(story, turn=None):
    """The row of the instance, and those of its steps by name; earlier runs are left out."""
    instance, steps = folded(story, turn).rows(HERE)
    return instance, {row.name: row for row in steps if not row.superseded}


@pytest.mark.req("R164")
@pytest.mark.parametrize(
    "name",
    [name if name in DAILY else pytest.param(name, marks=pytest.mark.slow) for name in NAMES],
)
def test_what_a_turn_touched_is_all_that_changed(name):
    """Rows made again only where a turn touched them are those made of the whole state."""
    story, kept, ever = story_of(name), {}, {}
    following = unfolded(story)
    for number, (data, sealed) in enumerate(story.turns, 1):
        following.take(Entry(32, number, data, sealed))
        for row in following.rows(HERE)[1]:
            kept[row.place, row.direction] = row
        ever |= following.touched
        following.touched |= ever
        whole = {(row.place, row.direction): row for row in following.rows(HERE)[1]}
        following.touched.clear()

        assert kept == whole
        state = following.state
        known = {place for place, unit in enumerate(state.units) if unit is not None}
        assert ever.keys() == known | state.items.keys() | state.done.keys()
        done = [unit for unit in state.units if unit and unit.status in (SUCCEEDED, SKIPPED)]
        assert following.rows(HERE)[0].current_step_index == len(done)


@pytest.mark.req("R81")
@pytest.mark.parametrize("name", DAILY)
def test_states_are_those_of_the_lens_and_of_show(name):
    """At every turn: the instance, the steps that have a row, and their undos."""
    story = story_of(name)
    for turn in range(1, len(story.turns) + 1):
        following = folded(story, turn)
        state, shown = following.state, show(story, turn)
        instance, steps = following.rows(HERE)
        words = {
            row["step"]: (row["index"], row["state"])
            for row in lens_steps(state, "ores", [unit for _, unit in named_units(state)])
        }
        assert (instance.state, instance.status) == (lens(state)["ores"], shown["state"])
        for row in steps:
            if not row.superseded:
                assert words[row.name] == (row.step_index, row.state)
            if row.direction == "do" and not row.superseded:
                wanted = shown["steps"].get(row.name, {"attempts": row.attempt})
                assert row.attempt == wanted["attempts"]


SAGA = """
timeout: 1h
failurePolicy: compensate
steps:
  - name: party
    run: refdata.v1.party.save
    with: {name: "${ input.name }"}
    undo: {run: refdata.v1.party.delete, with: {id: "${ result.id }"}}
    timeout: 1m
  - {name: account, run: iam.v1.account.save, dependsOn: [party], timeout: 1m, mutates: false,
     retryPolicy: {maxRetries: 1, backoff: constant, initialDelay: 10s}}
  - {name: link, run: iam.v1.link.save, dependsOn: [account], timeout: 1m}
"""
STUBS = """
input: {name: Acme}
stubs:
  party: [{ok: {id: 7}, after: 1s}]
  account: [{fail: transient, message: again}, {ok: {id: 8}}]
  link: [{fail: terminal, message: no such party}]
  undo/party: [{ok: {}, after: 2s}]
"""


@pytest.mark.req("R81", "R117")
def test_a_saga_that_is_rolled_back(tmp_path):
    """Instance, steps in order, and the undo at -1 - the index of its step."""
    instance, steps = rows_in(play(tmp_path, SAGA, STUBS))

    assert (instance.state, instance.status, instance.rollback) == ("compensated", "failed", "full")
    assert (instance.current_step_index, instance.step_count) == (2, 3)
    assert (instance.error_step, instance.error_class) == ("link", "terminal")
    assert instance.error_message == "no such party"
    assert json.loads(instance.request_json) == {"name": "Acme"}
    assert instance.last_event_at == instance.closed_at
    table = {name: (row.step_index, row.state, row.attempt) for name, row in steps.items()}
    assert table == {
        "party": (0, "completed", 1),
        "account": (1, "completed", 2),
        "link": (2, "failed", 1),
        "undo/party": (-1, "completed", 1),
    }
    party, undo = steps["party"], steps["undo/party"]
    assert (party.command_subject, party.command_json) == (
        "refdata.v1.party.save",
        '{"name":"Acme"}',
    )
    assert party.compensation_subject == undo.command_subject == "refdata.v1.party.delete"
    assert party.compensation_json == undo.command_json == '{"id":7}'
    assert party.response_json == '{"id":7}'
    assert party.key != undo.key
    assert (steps["account"].error_message, steps["link"].error_message) == ("", "no such party")


@pytest.mark.req("R148")
def test_a_command_is_kept_before_it_is_published(tmp_path):
    """The spec's order: the command, then the time it was sent out; again for another round."""
    spec = """
timeout: 1h
maxParallel: 1
steps:
  - {name: first, run: a.b, with: {n: 1}, timeout: 1m}
  - {name: second, agent: Writer, action: write, with: {n: 2}, timeout: 1m,
     maxCorrectionAttempts: 1, check: {type: object, required: [title]}}
"""
    stubs = "stubs:\n  first: [{ok: {}, after: 5s}]\n  second: [{ok: {}}, {ok: {title: t}}]"
    story = play(tmp_path, spec, stubs)
    told = [rows_in(story, turn)[1] for turn in range(1, len(story.turns) + 1)]

    waits = told[0]["second"]
    assert (waits.state, waits.status, waits.command_json) == ("pending", "ready", '{"n":2}')
    assert (waits.command_published_at, waits.started_at) == (None, None)
    rounds = [(each["second"].round, each["second"].key) for each in told]
    assert [number for number, _ in dict.fromkeys(rounds)] == [1, 2]
    assert len({key for _, key in rounds}) == 2  # a correction has a key of its own
    last = told[-1]["second"]
    assert (last.state, last.attempt, last.round) == ("completed", 2, 2)
    assert last.ready_at < last.started_at <= last.command_published_at <= last.completed_at


def test_items_have_rows_of_their_own(tmp_path):
    """The step stands for all of them, and its results are theirs."""
    spec = """
timeout: 1h
steps:
  - {name: build, run: ci.build, forEach: "${ input.targets }", with: {t: "${ item }"}, timeout: 1m}
"""
    story = play(tmp_path, spec, "input: {targets: [a, b]}\nstubs: {build: [{ok: {done: 1}}]}")
    _, steps = rows_in(story)

    assert list(steps) == ["build", "build[0]", "build[1]"]
    assert [row.item for row in steps.values()] == [None, 0, 1]
    assert [row.response_json for row in steps.values()] == ["", '{"done":1}', '{"done":1}']
    assert [row.called for row in steps.values()] == [False, True, True]
    assert [row.attempt for row in steps.values()] == [2, 1, 1]
    assert len({row.key for row in steps.values()}) == 3


def test_a_step_that_was_sent_back_keeps_the_rows_of_its_earlier_runs():
    """They are marked, and what they did is undone under their own keys."""
    rows = folded(story_of("each-run-of-a-revised-step-is-undone")).rows(HERE)[1]
    runs = [row for row in rows if row.superseded and row.direction == "do"]

    assert runs
    for run in runs:
        [now] = [r for r in rows if (r.name, r.superseded) == (run.name, False)]
        assert (run.step_index, run.round < now.round) == (now.step_index, True)
    undone = [run for run in runs if run.compensation_subject]
    assert undone
    for run in undone:
        [undo] = [r for r in rows if (r.place, r.direction) == (run.place, "undo")]
        assert (undo.name, undo.state, undo.superseded) == (f"undo/{run.name}", "completed", True)
    assert len({row.key for row in rows}) == len(rows)


def test_gates_waits_and_children(tmp_path):
    """What waits has no key to give away; who decides is told; a child has one."""
    gate = rows_in(story_of("an-open-gate-blocks-the-run"))[1]["gate"]
    assert (gate.state, gate.status, gate.waits_for) == ("in_progress", "waiting", "approval")
    assert (gate.called, gate.command_subject, bool(gate.role)) == (False, "", True)
    _, steps = rows_in(story_of("children-of-items-run-side-by-side"))
    [child] = [row for row in steps.values() if row.item == 0]
    assert (child.kind, child.called, child.waits_for) == ("workflow", True, "child")
    done = rows_in(warned(tmp_path))[1]["work"]
    assert done.state == "completed_with_warnings"


def test_times_are_those_of_the_journal(tmp_path):
    """No clock is read: the same journal gives the same rows for ever."""
    story = play(tmp_path, SAGA, STUBS)
    shown = show(story)
    instance, steps = rows_in(story)

    assert instance.started_at == shown["started_at"]
    assert instance.closed_at == shown["closed_at"]
    for name, told in shown["steps"].items():
        row = steps[name]
        assert (row.started_at, row.completed_at) == (told["started_at"], told["ended_at"])
    take = partial(rows_in, story)
    assert take() == take()
