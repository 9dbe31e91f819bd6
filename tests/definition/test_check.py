"""Refusals: what a workflow may not say, each with its place, the names and the way out."""

from pathlib import Path

import pytest
from check_kit import (
    HEAD,
    A,
    B,
    all_marked,
    assert_one,
    cases,
    errors,
    loaded,
    marked,
    spec,
    step,
    steps,
)

from pawlflow.definition.load import load_text, load_workflows
from pawlflow.definition.read import read_yaml
from pawlflow.definition.report import Report
from pawlflow.definition.shape import Edge, Gate, Retry, Undo
from pawlflow.definition.workflow import check_workflow

FOR_B = "{name: b, run: e.b, timeout: 1m, dependsOn: [a]"
GATE = "{name: g, dependsOn: [b], approval: {expires: 1h, "

REFUSALS = cases(Path(__file__).with_name("refusals.txt"), spec)


@pytest.mark.req("R63", "R64", "R65", "R67")
@pytest.mark.parametrize(("text", "code", "name", "hint"), REFUSALS)
def test_what_is_refused(text, code, name, hint):
    """One mistake, one error: its place, the names in it, and the way out."""
    assert_one(errors(marked(text)[0]), text, code, name, hint)


def test_a_text_has_an_end():
    """Ten thousand characters say what a step is about."""
    text = step("agent: r, action: §" + "x" * 10_001)
    assert_one(errors(marked(text)[0]), text, "field.value", "10,000 characters", "")


def codes(text):
    return [(found.line, found.code) for found in errors(text)]


@pytest.mark.req("R63")
def test_all_mistakes_are_reported_in_the_order_of_the_file():
    """One mistake does not hide the next, wherever they are."""
    text = (
        HEAD.replace("name: w", "name: W")
        + "spec:\n  timeout: soon\n  effects: [e.a]\n  steps:\n"
        + "  - {name: a, run: e.zz, when: nope, timeout: 1m}\n"
        + "  - {name: b, agent: r, dependsOn: [x, c], with: {p: '${ nope }', q: '${ nope }'}}\n"
        + "  - {name: c, run: e.a, dependsOn: [b], onFailure: never}\n"
        + "  output: {a: '${ steps.d }'}\n"
    )
    assert codes(text) == [
        (3, "name.bad"),
        (5, "duration.bad"),
        (8, "effect.not_allowed"),
        (8, "expression.unknown_name"),
        (9, "step.unknown"),
        (9, "step.cycle"),
        (9, "expression.unknown_name"),
        (9, "expression.unknown_name"),
        (10, "field.value"),
        (11, "expression.unknown_step"),
    ]


@pytest.mark.req("R64")
def test_every_circle_is_named_and_what_waits_behind_it():
    """Two circles, a step behind one, and a step that is fine."""
    text = steps(
        "{name: ok, sleep: 1s}",
        "{name: a, sleep: 1s, dependsOn: [ok, c]}",
        "{name: b, sleep: 1s, dependsOn: [a]}",
        "{name: c, sleep: 1s, dependsOn: [b]}",
        "{name: late, sleep: 1s, dependsOn: [ok, c]}",
        "{name: x, sleep: 1s, dependsOn: [x]}",
    )
    found = errors(text)
    assert [(f.line, f.code) for f in found] == [
        (8, "step.cycle"),
        (11, "step.unreachable"),
        (12, "step.cycle"),
    ]
    assert "a -> c -> b -> a" in found[0].message
    assert "'late'" in found[1].message
    assert "x -> x" in found[2].message


def test_a_very_long_circle_is_shortened():
    """The message stays readable; its ends are named."""
    text = steps(*(f"{{name: s{i}, sleep: 1s, dependsOn: [s{(i + 1) % 99}]}}" for i in range(99)))
    assert "s0 -> s1" in errors(text)[0].message
    assert "s18 -> (80 more) -> s0" in errors(text)[0].message


def test_a_name_is_refused_once():
    """One that is malformed is not also unknown."""
    text = steps("{name: a, sleep: 1s, dependsOn: [Bad Name, zz]}")
    assert codes(text) == [(7, "name.bad"), (7, "step.unknown")]


def test_a_list_of_names_stays_readable():
    """Twelve names are listed, the others counted."""
    lines = [f"{{name: s{i}, sleep: 1s}}" for i in range(20)]
    found = errors(steps(*lines, "{name: z, sleep: 1s, dependsOn: [qqq]}"))
    assert found[0].message.endswith("s10, s11 and 9 more")


def test_undo_and_output_may_name_any_step():
    """They are evaluated when every step may have run."""
    text = spec(
        "steps:\n"
        "- {name: a, run: e.a, timeout: 1m, undo: {run: e.u, with: {x: '${ steps.b.y }'}}}\n"
        f"- {B}\n"
        "output: '${ steps }'"
    )
    assert loaded(text).output == "${ steps }"


def test_only_strangers_are_refused():
    """The ancestors named beside one are no part of the finding."""
    text = steps(A, B, "{name: c, sleep: 1s, dependsOn: [b], when: steps.b.x && steps.a.x}")
    assert [(f.code, f.message) for f in errors(text)] == [
        (
            "expression.not_ancestor",
            "step 'c' uses the result of 'a', which does not come before it",
        )
    ]


def test_an_undo_of_items_sees_its_item():
    """Each item is undone with its own values."""
    undo = "{run: e.u, with: {a: '${ item.id }', b: '${ index }', c: '${ command.x }'}}"
    assert loaded(step(f"run: e.x, forEach: input.l, undo: {undo}")).steps[0].undo is not None


@pytest.mark.req("R215")
def test_the_condition_of_items_sees_its_item():
    """Each item is done or skipped by itself."""
    (found,) = loaded(step("run: e.x, forEach: input.l, when: item.ok && index < 3")).steps
    assert found.when == "item.ok && index < 3"


def test_a_far_ancestor_may_be_named():
    """Not only direct dependencies come before a step."""
    text = steps(
        A, FOR_B + "}", "{name: c, sleep: 1s, dependsOn: [b], when: '${ steps.a.x == 1 }'}"
    )
    assert loaded(text).steps[2].when == "steps.a.x == 1"


@pytest.mark.parametrize(
    ("policy", "retry"),
    [
        ("{maxRetries: 2}", Retry(max_retries=2)),
        ("{maxRetries: 0, backoff: linear}", Retry(max_retries=0, backoff="linear")),
        (
            "{maxRetries: 2, backoff: 30s}",
            Retry(max_retries=2, backoff="constant", initial_ms=30_000),
        ),
        (
            "{maxRetries: 2, backoff: 2m}",
            Retry(max_retries=2, backoff="constant", initial_ms=120_000, cap_ms=120_000),
        ),
        (
            "{maxRetries: 2, backoff: 2m, maxDelay: 1m}",
            Retry(max_retries=2, backoff="constant", initial_ms=120_000),
        ),
        (
            "{maxRetries: 3, backoff: exponential, initialDelay: 0s, maxDelay: 1h30m}",
            Retry(max_retries=3, initial_ms=0, cap_ms=5_400_000),
        ),
    ],
)
@pytest.mark.req("R99")
def test_retry_policies(policy, retry):
    """A duration as backoff is the constant delay itself, and the default cap does not cut it."""
    assert loaded(step(f"run: e.x, retryPolicy: {policy}")).steps[0].retry == retry


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("500ms", 500),
        ("30s", 30_000),
        ("5m", 300_000),
        ("2h", 7_200_000),
        ("1d", 86_400_000),
        ("1h30m", 5_400_000),
        ("1d1h1m1s1ms", 90_061_001),
        ("0s", 0),
        ("0", 0),
    ],
)
def test_durations(text, ms):
    """Units from days to milliseconds, largest first; a sleep may be zero."""
    assert loaded(step(f"sleep: {text}")).steps[0].sleep_ms == ms


def test_a_sequence_becomes_a_chain():
    """`mode: sequence` writes the dependencies itself."""
    flow = loaded(spec(f"mode: sequence\nsteps: [{A}, {B}, {{name: c, sleep: 1s}}]"))
    assert [s.depends_on for s in flow.steps] == [(), (Edge(step="a"),), (Edge(step="b"),)]
    assert loaded(spec(f"mode: dag\nsteps: [{A}, {B}]")).steps[1].depends_on == ()


def test_a_sequence_with_a_nameless_step_is_refused_once():
    """The step after it has nothing to depend on, which is no second mistake."""
    text = spec(f"mode: sequence\nsteps: [{{sleep: 1s}}, {A}]")
    assert codes(text) == [(7, "field.missing")]


COMPENSATIONS = [
    ("§nope: 1, step: §b, action: x, agent: r", ["field.unknown", "step.unknown"]),
    ("step: §b, action: x, agent: r, §nope: 1", ["step.unknown", "field.unknown"]),
    ("step: §b, action: §1, agent: r", ["step.unknown", "field.type"]),
    ("§nope: 1, step: a, action: x, agent: r}, {step: §a, action: x, agent: r",
     ["field.unknown", "step.duplicate"]),
    ("§nope: 1, step: a, action: x, agent: r}, {§nope: 1, step: §b, action: x, agent: r",
     ["field.unknown", "field.unknown", "step.unknown"]),
]  # fmt: skip


@pytest.mark.req("R66")
@pytest.mark.parametrize(("entries", "codes"), COMPENSATIONS)
def test_a_mistake_in_a_compensation_does_not_hide_the_next(entries, codes):
    """Its step is looked at whatever else is wrong; nor is the step taken for one without undo."""
    text = spec(f"failurePolicy: compensate\nsteps: [{A}]\ncompensation: [{{{entries}}}]")
    text, places = all_marked(text)
    found = load_workflows(text, "f.yaml")[1]
    wrong = [each for each in found if each.severity == "error"]
    assert [(each.line, each.column) for each in wrong] == places
    assert [each.code for each in wrong] == codes
    undone = "step: a" in entries
    assert ("lint.undo" in [each.code for each in found]) is not undone


def test_compensation_becomes_undo():
    """Spec 003's spelling is an agent's undo."""
    flow = loaded(spec(f"steps: [{A}]\ncompensation: [{{step: a, action: Take back, agent: r}}]"))
    assert flow.steps[0].undo == Undo(kind="agent", target="r", action="Take back")


def test_a_gate_with_everything():
    """Every field of an approval, and the sides its names lie on."""
    gate = "role: R, quorum: 2, notBy: requester, onReject: changes, onExpire: fail, "
    flow = loaded(
        steps(
            A,
            FOR_B + "}",
            GATE + gate + "guards: [c], revise: [a, b]}}",
            "{name: c, run: e.c, timeout: 1m, dependsOn: [g]}",
        )
    )
    assert flow.steps[2].gate == Gate(
        role="R",
        quorum=2,
        not_by_requester=True,
        expires_ms=3_600_000,
        on_reject="changes",
        on_expire="fail",
        guards=("c",),
        revise=("a", "b"),
    )


def test_retry_as_policy_is_left_to_the_plan():
    """The shape says what the file says."""
    flow = loaded(spec(f"failurePolicy: retry\nsteps: [{A}]"))
    assert (flow.failure_policy, flow.steps[0].retry) == ("retry", None)


def test_expressions_lose_their_braces():
    """With or without `${}`, and true or false as they are."""
    whens = ("' ${ input.a } '", "input.a", "true", "false")
    found = [loaded(step(f"run: e.x, when: {when}")).steps[0].when for when in whens]
    assert found == ["input.a", "input.a", "true", "false"]


def test_values_that_look_like_other_types_stay_what_they_are():
    """Parameters keep types; a whole expression may stand for them; `$${` is a literal."""
    flow = loaded(step("run: e.x, with: {a: 012, b: no, c: [1.5, ~], d: '$${x}', e: {$secret: k}}"))
    assert flow.steps[0].params == {
        "a": 12, "b": "no", "c": [1.5, None], "d": "$${x}", "e": {"$secret": "k"},
    }  # fmt: skip
    assert loaded(step("run: e.x, with: '${ input }'")).steps[0].params == "${ input }"


def test_every_field_of_a_spec_is_kept():
    """The rarer fields, read into the shape."""
    flow = loaded(
        spec(
            "concurrency: {key: input.repo}\n"
            "rate: {key: '${ input.repo }', limit: 3, per: 1m}\n"
            "search: {repo: input.repo}\n"
            "retention: {completed: 30d}\n"
            "escalation: [{role: R, channel: mail, timeout: 1h}]\n"
            "trigger: {event: e.x, condition: payload.a == 1, schedule: '*/5 0-6,22 1 jan sun',"
            " timezone: Europe/Vienna, catchUp: all}\n"
            "budget: {usd: {hard: 5}, tokens: {soft: 1, hard: 1}}\n"
            f"steps: [{A}]"
        )
    )
    assert (flow.concurrency.limit, flow.rate.key, flow.rate.per_ms) == (1, "input.repo", 60_000)
    assert (flow.search, flow.retention.completed_ms) == ({"repo": "input.repo"}, 2_592_000_000)
    assert (flow.escalation[0].role, flow.trigger.timezone) == ("R", "Europe/Vienna")
    assert flow.trigger.schedule == "*/5 0-6,22 1 jan sun"
    assert flow.budget == {"usd": {"hard": 5}, "tokens": {"soft": 1, "hard": 1}}


@pytest.mark.req("R61")
def test_a_file_may_hold_several_workflows():
    """Versions of one name may stand together; two of the same version may not."""
    first, second = spec(f"steps: [{A}]"), spec(f"steps: [{B}]")
    both = f"{first}---\n{second.replace('name: w', 'name: w, version: 2')}"
    assert [w.name for w in map(loaded, [first, second])] == ["w", "w"]
    assert errors(both) == []
    assert codes(f"{first}---\n{second}") == [(10, "workflow.duplicate")]


@pytest.mark.parametrize("kind", ["AgentPool", "ModelPolicy", "Manifest", "Blueprint"])
def test_kinds_of_later_versions_are_accepted(kind):
    """Their frame is checked, their spec is not; a warning says so."""
    text = f"apiVersion: pawl.dev/v1\nkind: §{kind}\nmetadata: {{name: X y}}\nspec: {{a: [1]}}\n"
    plain, line, column = marked(text)
    found = load_workflows(plain, "f")[1]
    assert [(f.line, f.column, f.code) for f in found] == [(line, column, "kind.later")]
    assert [d.kind for d in load_text(plain, "f")] == [kind]
    assert codes(plain.replace("name: X y", "nmae: x")) == [(3, "field.unknown")]
    assert codes(plain.replace("name: X y", "zzz: x")) == [
        (3, "field.missing"),
        (3, "field.unknown"),
    ]
    assert codes(plain.replace("metadata: {name: X y}\n", "")) == [(1, "field.missing")]


def test_one_document_can_be_checked_alone():
    """For callers that have a node already: an inline definition, a posted document."""
    [node] = read_yaml(spec(f"steps: [{A}]"), "f", Report())
    assert check_workflow(node)[0].name == "w"
    [node] = read_yaml(spec("steps: []"), "f", Report())
    assert check_workflow(node)[0] is None
    [node] = read_yaml("kind: Scenario", "f", Report())
    assert [f.code for f in check_workflow(node)[1]] == ["field.missing"] * 3


def test_big_plans_are_checked():
    """Five thousand steps whose expressions look far back; quadratic work would time out."""
    far = (
        f"{{name: s{i}, run: e.x, timeout: 1m, dependsOn: [s{i - 1}], when: steps.s{i // 2}.ok}}"
        for i in range(1, 5_000)
    )
    assert len(loaded(steps("{name: s0, run: e.x, timeout: 1m}", *far)).steps) == 5_000


def test_a_dependency_that_could_not_be_read_is_the_only_complaint():
    """The result is used because dependsOn was meant to be there: the cause is told, not both."""
    text = HEAD + (
        "spec:\n  timeout: 1h\n  steps:\n"
        "    - {name: a, run: e.a, timeout: 1m}\n"
        "    - name: b\n      run: e.b\n      timeout: 1m\n      depends_on: [a]\n"
        "      with: {v: '${ steps.a.x }'}\n"
        "    - {name: c, run: e.c, timeout: 1m, with: {v: '${ steps.a.x }'}}\n"
    )
    assert [(found.code, found.line) for found in errors(text)] == [
        ("field.unknown", 11),
        ("expression.not_ancestor", 13),
    ]


@pytest.mark.req("R216")
def test_search_attributes_are_named_bounded_and_read():
    """So many at most, by good names; each an expression over input and instance."""
    body = "steps: [{name: a, sleep: 1s}]\n"
    most = ", ".join(f"a{n}: input.n" for n in range(32))
    assert errors(spec(f"{body}search: {{{most}}}")) == []
    [many] = errors(spec(f"{body}search: {{{most}, one-more: input.n}}"))
    assert (many.code, "at most 32 attributes" in many.message) == ("field.value", True)
    found = errors(spec(f"{body}search: {{1x: input.a, b: steps.a.c, c: inpt.d}}"))
    assert [each.code for each in found] == [
        "name.bad",
        "expression.unknown_name",
        "expression.unknown_name",
    ]
