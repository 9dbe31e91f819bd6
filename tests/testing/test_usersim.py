"""The parts of `pawl sim`: what its promises see, what is drawn, how a tape shrinks."""

import pytest

from pawlflow.definition.load import load_workflows
from pawlflow.engine.admission import violations
from pawlflow.model.codec import encode
from pawlflow.testing.sim.chance import Dice
from pawlflow.testing.sim.planted import planted
from pawlflow.testing.usersim import kinds
from pawlflow.testing.usersim.invariants import Stated, Where, names_in
from pawlflow.testing.usersim.lives import PROMISES
from pawlflow.testing.usersim.run import simulate
from pawlflow.testing.usersim.sampling import sample
from pawlflow.testing.usersim.tape import Given, Player, Shrinker
from pawlflow.testing.usersim.workload import Workload

SAGA = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: saga}
spec:
  timeout: 1d
  failurePolicy: compensate
  steps:
    - {name: a, run: x.a, timeout: 30s, retryPolicy: {maxRetries: 2}, undo: {run: x.undo}}
    - {name: b, run: x.b, dependsOn: [a], timeout: 30s, undo: {run: x.undo}}
    - {name: c, run: x.c, dependsOn: [b], timeout: 30s, retryPolicy: {maxRetries: 2}}
"""
GATE = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: gated}
spec:
  concurrency: {key: "'one'", limit: 1}
  steps:
    - {name: gate, approval: {role: Boss}}
"""
TAKEN_BACK = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: taken-back}
spec:
  timeout: 3d
  failurePolicy: compensate
  steps:
    - {name: draft, agent: writer, timeout: 1m, undo: {run: x.undo}}
    - {name: legal, approval: {expires: 1h, onExpire: fail, onReject: fail}, dependsOn: [draft],
       onFailure: skip, undoOnFailure: true, undo: {run: x.undo}}
    - {name: paid, wait: {event: money.came, timeout: 1h}, dependsOn: [draft],
       onFailure: skip, undoOnFailure: true, undo: {run: x.undo}}
    - {name: gate, approval: {expires: 1h, onReject: changes, revise: [draft], guards: [send]},
       dependsOn: [legal, paid], undo: {run: x.undo}}
    - {name: last, approval: {expires: 1h}, dependsOn: [gate], undoOnFailure: true,
       undo: {run: x.undo}}
    - {name: send, run: x.send, with: {by: "${ steps.last.by }"}, dependsOn: [last], timeout: 1m}
"""
EVERYTHING = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: everything}
spec:
  timeout: 3d
  concurrency: {key: "'one'", limit: 1}
  budget: {usd: {hard: 1}}
  steps:
    - {name: list, run: x.list, timeout: 1m, check: {type: object, required: [all],
       properties: {all: {type: array, minItems: 1, maxItems: 3, items: {type: integer}}}}}
    - {name: each, run: x.each, forEach: "${ steps.list.all }", with: {n: "${ item }"}, timeout: 1m,
       cost: {usd: 0.4}, dependsOn: [list], onFailure: escalate, undo: {run: x.undo}}
    - {name: gate, approval: {role: Boss, quorum: 2, expires: 1h}, dependsOn: [each]}
    - {name: paid, wait: {event: money.came, match: event.id == instance.id, timeout: 1h},
       dependsOn: [gate], onFailure: skip}
    - {name: kid, workflow: child, dependsOn: [paid], onFailure: skip, with: {n: 1}}
    - {name: nap, sleep: 10m, dependsOn: [kid]}
    - {name: tell, emit: all.done, dependsOn: [nap]}
---
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: child}
spec:
  timeout: 1h
  failurePolicy: compensate
  steps:
    - {name: pack, run: x.pack, timeout: 1m, undo: {run: x.undo}}
    - {name: send, run: x.send, dependsOn: [pack], timeout: 1m}
"""


def workload(text: str, faults: str = "default", **given) -> Workload:
    """A workload of some documents."""
    workflows, findings = load_workflows(text, "test.yaml")
    assert [each for each in findings if each.severity == "error"] == []
    return Workload(workflows=tuple(workflows), faults=kinds.chosen([faults]), **given)


def first_broken(work: Workload, seeds: int, *invariants: Stated):
    """The first seed that breaks something."""
    runs = (simulate(work, work.setup(seed), invariants) for seed in range(seeds))
    return next((run for run in runs if run.violation is not None), None)


@pytest.mark.req("R210")
@pytest.mark.parametrize(
    ("bug", "promise"),
    [
        ("reply-before-flush", "lost"),
        ("no-duplicate-guard", "one-result"),
        ("forward-undo", "undo-order"),
        ("not-absorbing", "absorbing"),
        ("chance-in-kernel", "replay"),
        ("deadline-not-in-row", "ends"),
        ("value-of-another", "raised"),
    ],
)
def test_a_broken_engine_breaks_its_promises(bug, promise):
    """What is built in has eyes: bugs planted in the engine are seen through a user's workflow."""
    work = workload(SAGA)
    with planted(bug):
        found = first_broken(work, 60)

    assert found is not None
    assert found.violation.invariant == PROMISES[promise]
    assert found.violation.built_in


@pytest.mark.req("R210", "R200")
def test_the_whole_language_comes_to_its_end():
    """Items, budgets, gates with a quorum, waits, children, slots: every instance ends."""
    work = workload(EVERYTHING, "all", instances=3)
    runs = [simulate(work, work.setup(seed)) for seed in range(60)]

    assert [run.violation for run in runs if run.violation] == []
    ends = {state for run in runs for state in run.ends}
    assert ends == {"completed", "failed", "cancelled"}
    assert sum(run.faults.total() for run in runs) > 500
    met = {kind for run in runs for kind in run.faults}
    assert {"people.reject", "people.silent", "people.twice", "people.cancel"} <= met
    assert {f"exec.{each}" for each in ("slow", "late", "lost", "crash", "terminal")} <= met


@pytest.mark.req("R113", "R210")
def test_gates_and_waits_are_undone_whatever_happens():
    """Granted, voided, asked again, refused, expired: in order, and what was never done is not."""
    work = workload(TAKEN_BACK, "all")
    rule = "rollback != 'full' || done_order.all(s, s == 'send' || undo_order.exists(u, u == s))"
    stated = Stated(rule, names_in(work.workflows), Where("here"))
    runs = [simulate(work, work.setup(seed), [stated]) for seed in range(40)]

    assert [run.violation for run in runs if run.violation] == []
    assert {state for run in runs for state in run.ends} >= {"completed", "failed", "cancelled"}
    with planted("grant-stays"):
        found = first_broken(work, 40, stated)
    assert found is not None
    assert found.violation.invariant == PROMISES["undo-order"]


def test_nobody_comes_without_people():
    """A gate stays open for good, and that is an end: somebody is asked, the other one waits."""
    work = workload(GATE, "none", people=False)
    run = simulate(work, work.setup(0))

    assert run.violation is None
    assert dict(run.ends) == {"waiting": 1, "queued": 1}
    assert dict(run.waits) == {"approval of gate": 1}


@pytest.mark.req("R210")
def test_a_tape_shrinks_to_what_is_needed():
    """Few of many faults, one of the instances; played again it is the same run, to the byte."""
    work = workload(SAGA, instances=4)
    names = names_in(work.workflows)
    rule = Stated("state == 'completed' || executed('c') == 0", names, Where("here"))
    player = Player(work, [rule])
    found = first_broken(work, 100, rule)
    assert found is not None

    before = player.tape_of(found, Given())
    after = Shrinker(player, before, lambda *_: None).shrink()

    assert len(after.faults) <= min(3, len(before.faults))
    assert len(after.setup.only or ()) == 1
    first, second = (player.play(after.setup, after.faults) for _ in range(2))
    assert first.violation == second.violation == after.violation
    assert first.trace == second.trace
    assert {each.id for each in first.fired} == set(after.faults)


def test_a_broken_expression_says_what_it_read():
    """Every path and count in it, with its value; variables of macros mean nothing outside."""
    work = workload(SAGA, "none")
    text = "steps.a.attempts > 5 && undone('a') == 0 && done_order.all(s, s != 'z') && id == ''"
    rule = Stated(text, names_in(work.workflows), Where("here"))
    found = simulate(work, work.setup(0), [rule]).violation

    assert found is not None
    assert found.values == (
        ("steps.a.attempts", "1"),
        ("undone('a')", "0"),
        ("done_order", '["a","b","c"]'),
        ("id", '"i1"'),
    )


@pytest.mark.parametrize(
    ("given", "inside", "outside"),
    [
        ([], {"crash.before", "people.cancel"}, {"exec.forgets", "undo.fails"}),
        (["none"], set(), {"crash.before"}),
        (["all"], {"exec.forgets", "undo.fails"}, set()),
        (["bus,exec.late"], {"bus.drop", "exec.late"}, {"exec.slow", "crash.before"}),
        (["+exec.forgets,-people"], {"exec.forgets", "bus.drop"}, {"people.cancel", "exec.deaf"}),
        (["default", "-clock"], {"bus.drop"}, {"clock.jump", "exec.deaf"}),
    ],
)
def test_kinds_are_chosen_by_name_and_group(given, inside, outside):
    """A list by itself is all there is; with + and - it changes the default."""
    found = kinds.chosen(given)

    assert inside <= found
    assert not outside & found


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "required": ["a", "b"], "properties": {"a": {"enum": [1, "x"]}}},
        {"type": "array", "minItems": 2, "items": {"type": "number", "exclusiveMinimum": 0}},
        {"anyOf": [{"type": "boolean"}, {"const": 7}]},
        {"type": ["string", "null"], "minLength": 12, "maxLength": 14},
        {"allOf": [{"type": "object"}, {"required": ["k"]}], "properties": {}},
        {"type": "integer", "minimum": 5, "exclusiveMaximum": 8},
    ],
)
def test_drawn_values_fit_their_schema(schema):
    """As far as plain words go; the same seed draws the same."""
    data = encode(schema)
    drawn = [sample(schema, Dice(seed), "here") for seed in range(40)]

    assert [value for value in drawn if violations(data, value)] == []
    assert drawn == [sample(schema, Dice(seed), "here") for seed in range(40)]
