"""Everything at once: a mistake hides no other one, and what only follows from it is not said."""

import random

import pytest
from check_kit import A, all_marked, spec, step, steps

from pawlflow.definition.load import load_text, load_workflows
from pawlflow.testing.scenario import read_scenario
from pawlflow.testing.scenario_fields import EXPECT_TABLE

EFFECTS = "effects: [e.a]\nsteps:\n- {name: a, run: e.a, timeout: 1m, "
GATE = "{name: g, dependsOn: [a], approval: {role: R, expires: 1h, "


def found_in(text):
    """Everything that is said about a file, warnings too, and that nothing is accepted."""
    workflows, findings = load_workflows(text, "f.yaml")
    assert not workflows or all(each.severity == "warning" for each in findings)
    assert all(each.hint for each in findings), "no way out"
    return findings


UNDO, WAIT, APPROVAL, SPEC, GRAPH, QUIET = [
    # undo
    (spec(EFFECTS + "undo: {run: §e.q, timeout: §1q}}"), "effect.not_allowed duration.bad"),
    (spec(EFFECTS + "undo: {run: §e.q, §nope: 1}}"), "effect.not_allowed field.unknown"),
    (spec(EFFECTS + "undo: {run: §e.q, with: {s: {$secret: §5}, a: '${ §nope }'}}}"),
     "effect.not_allowed name.bad expression.unknown_name"),
    (step("run: e.a, undo: {run: e.u, with: {a: '${ §nope }'}, timeout: §1q}"),
     "expression.unknown_name duration.bad"),
    (step("run: e.a, undo: {§nope: 1, run: e.u, with: {a: '${ steps.§zz }'}}"),
     "field.unknown expression.unknown_step"),
    (step("run: e.a, undo: {run: §E!, retryPolicy: {maxRetries: §x, backoff: §y}, with: §5}"),
     "name.bad field.type field.value field.type"),
    (step("run: e.a, undo: §{run: e.u, agent: r, timeout: §1q, with: {a: '${ §nope }'}}"),
     "step.kind duration.bad expression.unknown_name"),
    (step("run: e.a, undo: §{timeout: §1q}"), "step.kind duration.bad"),
    (step("run: e.a, with: {a: {$secret: §'${ nope }'}, b: '${ §nope }'}"),
     "name.bad expression.unknown_name"),
    (step("run: e.a, retryPolicy: {maxRetries: §-1, backoff: 30s, §initialDelay: 1s}"),
     "field.value field.conflict"),
    (step("run: e.a, retryPolicy: §5, undo: {run: §E!}"), "field.type name.bad"),
    (spec("steps:\n- {name: a, run: e.a, timeout: 1m}\n"
          "compensation:\n- §{action: x, agent: R, §nope: 1}"), "field.missing field.unknown"),
], [
    # wait
    (step("wait: {event: a.b, match: '§evnt.x == 1', timeout: §0s}"),
     "expression.unknown_name duration.bad"),
    (step("wait: {event: §5, match: '§evnt.x == 1', §nope: 1}"),
     "field.type expression.unknown_name field.unknown"),
    (step("wait: §{match: 'event.x ==§'}"), "field.missing expression.syntax"),
    (step("wait: {event: a.b, match: §5, timeout: §0s}"), "field.type duration.bad"),
], [
    # approval
    (steps(A, GATE + "quorum: §0, guards: [§zz], revise: [§yy], onReject: changes}}"),
     "field.value step.unknown step.unknown"),
    (steps(A, GATE + "§nope: 1, guards: [§a, §Bad], revise: [a, §zz], onReject: changes}}"),
     "field.unknown step.guards name.bad step.unknown"),
    (steps(A, GATE + "notBy: §x, onExpire: §y, guards: [§g]}}"),
     "field.value field.value step.guards"),
    (steps(A, GATE + "quorum: §0, revise: §[a]}}"), "field.value lint.revise"),
    (step("run: e.a, policy: {action: §5, resource: {a: '${ §nope }'}}"),
     "field.type expression.unknown_name"),
    (step("run: e.a, cost: {usd: §-1, tokens: §-1, §nope: 1}"),
     "field.value field.value field.unknown"),
], [
    # the spec
    (spec(f"concurrency: {{key: §inpt.repo, limit: §0}}\nsteps: [{A}]"),
     "expression.unknown_name field.value"),
    (spec(f"concurrency: {{limit: §0, §nope: 1, key: §inpt.repo}}\nsteps: [{A}]"),
     "field.value field.unknown expression.unknown_name"),
    (spec(f"rate: {{key: §inpt.repo, limit: §0, per: §1q}}\nsteps: [{A}]"),
     "expression.unknown_name field.value duration.bad"),
    (spec(f"rate: §{{key: §inpt.repo, limit: 1}}\nsteps: [{A}]"),
     "field.missing expression.unknown_name"),
    (spec(f"budget: {{usd: {{soft: §5, hard: 4, §nope: 1}}, tokens: {{hard: §x}}}}\nsteps: [{A}]"),
     "field.value field.unknown field.type"),
    (spec(f"search: {{a: §5, b: §nope, §é: §zz}}\nsteps: [{A}]"),
     "field.type expression.unknown_name name.bad expression.unknown_name"),
    (spec(f"escalation: [§5, §{{channel: §6}}, {{role: §7, timeout: §1q}}]\nsteps: [{A}]"),
     "field.type field.missing lint.escalation field.type field.type duration.bad"),
    (spec(f"trigger: {{event: §A, condition: 'event.tag !=§'}}\nsteps: [{A}]"),
     "name.bad expression.syntax"),
    (spec(f"trigger: §{{condition: '§evnt.tag', timezone: §Nowhere}}\nsteps: [{A}]"),
     "field.missing expression.unknown_name timezone.unknown"),
    (spec(f"trigger: {{schedule: §x, §nope: 1}}\nsteps: [{A}]"), "cron.bad field.unknown"),
    (spec("concurrency: {key: §inpt.repo}\nsteps: §[]"), "expression.unknown_name steps.none"),
    (spec("concurrency: {key: §inpt.repo}\nsteps: §5\noutput: '${ steps.a }'"),
     "expression.unknown_name field.type"),
], [
    # the graph
    (steps(A, "{name: k, sleep: 1s, dependsOn: [§k]}", "{name: c, sleep: 1s, when: steps.§a.x}"),
     "step.cycle expression.not_ancestor"),
    (steps("{name: a, sleep: 1s, when: steps.§c.x}", "{name: b, sleep: 1s, dependsOn: [a, §c]}",
           "{name: c, sleep: 1s, dependsOn: [b]}", "{name: d, sleep: 1s, dependsOn: §[c],"
           " when: steps.a.x || steps.zz.x}").replace("steps.zz", "steps.§zz"),
     "expression.not_ancestor step.cycle step.unreachable expression.unknown_step"),
    (steps("{name: k, run: e.k, timeout: 1m, dependsOn: [§k], irreversible: true}", A,
           "{name: b, sleep: 1s}", "{name: g, dependsOn: [a], approval: {expires: 1h, "
           "onReject: changes, guards: [§a], revise: [§b]}}"),
     "step.cycle step.guards step.revise"),
    (steps("{name: k, approval: {expires: 1h, guards: [§k], revise: [§b], onReject: changes},"
           " dependsOn: [§k, b]}", "{name: b, sleep: 1s}"),
     "step.guards step.revise step.cycle"),
    (steps(A, "{name: b, sleep: 1s, §nope: 1, when: steps.§a.x}"),
     "field.unknown expression.not_ancestor"),
], [
    # what only follows from a mistake
    (steps(A, "{name: b, sleep: 1s, dependsOn: [§aa]}",
           "{name: c, sleep: 1s, dependsOn: [b], when: steps.a.x}"), "step.unknown"),
    (steps(A, "{name: b, sleep: 1s, §needs: [a], when: steps.a.x}"), "field.unknown"),
    (steps(A, "{name: b, sleep: 1s, §dependson: [a], when: steps.a.x}"), "field.unknown"),
    (steps(A, "{name: b, sleep: 1s, dependsOn: §a, when: steps.a.x}"), "field.type"),
    (spec(f"mode: §sequenc\nsteps: [{A}, {{name: b, sleep: 1s, when: steps.a.x}}]"), "field.value"),
    (spec(f"mode: sequence\nsteps: [{A}, {{name: §B, sleep: 1s}}, {{name: c, sleep: 1s, "
          "when: steps.a.x}]"), "name.bad"),
    (steps("{name: g, approval: {§expire: 1h}}"), "field.unknown"),
    (steps("{name: g, approval: {expires: §1q}}"), "duration.bad"),
    (steps("{name: g, timeout: §1q, approval: {role: R}}"), "duration.bad"),
    (steps(A, GATE + "onReject: §chnges, revise: [a]}}"), "field.value"),
    (steps(A, GATE + "onReject: changes, revise: §a}}"), "field.type"),
    (steps(A, GATE + "onReject: changes, revise: [§A]}}"), "name.bad"),
    (steps("{name: a, agent: r, timeout: 1m}", "{name: g, dependsOn: [§aa], "
           "approval: {expires: 1h, onReject: changes}}"), "step.unknown"),
    (steps("{name: a, §rnu: e.a, timeout: 1m}"), "field.unknown"),
    (steps("{name: a, run: e.a, §timeot: 1m}"), "field.unknown"),
    (step("run: e.a, undo: {§rnu: e.u}"), "field.unknown"),
    (step("run: e.a, §foreach: input.l, with: {a: '${ item }'}, limit: 3"), "field.unknown"),
    (step("run: e.a, forEach: §5, with: {a: '${ item }'}, undo: {run: e.u, with: "
          "{a: '${ index }'}}"), "field.type"),
    (step("wait: {§evnt: a.b}"), "field.unknown"),
    (step("emit: e.x, cost: {usd: 1}, policy: §5").replace(" timeout: 1m,", ""), "field.type"),
    (step("run: e.a, undo: §5, undoOnFailure: true"), "field.type"),
    (step("sleep: 1s, undo: §5"), "field.type"),
    (spec("failurePolicy: compensate\nsteps: [{name: a, run: e.a, timeout: 1m, mutates: §no}]"),
     "field.type"),
    (spec("failurePolicy: compensate\n"
          "steps: [{name: a, run: e.a, timeout: 1m, irreversible: §yes}]"), "field.type"),
    (spec(f"trigger: {{§evnt: a.b, condition: event.x}}\nsteps: [{A}]"), "field.unknown"),
    (spec(f"budget: {{usd: {{hard: §x}}}}\nsteps: [{A}]"), "field.type"),
    (spec(f"timeout: 1h\nsteps: [{A}]").replace("  timeout: 1h\n", "", 1).replace(
        "timeout: 1h", "§timeot: 1h"), "field.unknown"),
]  # fmt: skip


@pytest.mark.req("R63")
@pytest.mark.parametrize(("text", "codes"), [*UNDO, *WAIT, *APPROVAL, *SPEC, *GRAPH, *QUIET])
def test_all_is_said_and_nothing_twice(text, codes):
    """Every mistake at its place, in the order of the file; no warning that follows from one."""
    plain, marks = all_marked(text)
    found = found_in(plain)
    assert [each.code for each in found] == codes.split()
    at = [(each.line, each.column) for each in found]
    assert at == sorted(at)
    assert sorted(set(at)) == marks


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (steps("{name: Kk, run: e.a, timeout: 1m, dependsOn: [zz]}"),
         "step 'Kk': dependsOn names 'zz', which is not a step; steps are: none"),
        (steps("{name: 5, run: e.a, timeout: 1m, dependsOn: [zz]}"),
         "step 5: dependsOn names 'zz', which is not a step; steps are: none"),
        (steps("{name: {a: 1}, run: e.a, timeout: 1m, dependsOn: [zz]}"),
         "step without a name: dependsOn names 'zz', which is not a step; steps are: none"),
        (steps("{run: e.a, timeout: 1m, dependsOn: [zz]}"),
         "step without a name: dependsOn names 'zz', which is not a step; steps are: none"),
        (steps("{name: Kk, timeout: 1m}"), "step 'Kk' does not say what it does"),
        (steps(A, "{name: Kk, run: e.a}"),
         "step 'Kk' has no timeout, so a lost worker is never noticed"),
        (steps(A, "{name: Kk, sleep: 1s, when: steps.a.x}"),
         "step 'Kk' uses the result of 'a', which does not come before it"),
        (steps("{name: a, approval: {expires: 1h, guards: [a]}}"), "gate 'a' guards itself"),
        (steps("{name: a, approval: {expires: 1h, revise: [a], onReject: changes}}"),
         "gate 'a' sends back itself, which has no result to change"),
    ],
)  # fmt: skip
def test_who_is_meant(text, message):
    """A step is called what the file calls it, and one that names itself is told so."""
    assert message in [each.message for each in found_in(text)]


def test_a_circle_leads_to_no_wrong_advice():
    """Which side of the step the circle lies on is not known, so no dependsOn is asked for."""
    text = steps(
        "{name: a, sleep: 1s, when: steps.b.x}",
        "{name: b, sleep: 1s, dependsOn: [c]}",
        "{name: c, sleep: 1s, dependsOn: [b, a]}",
    )
    hints = [each.hint for each in found_in(text) if each.code == "expression.not_ancestor"]
    assert hints == ["use a step before 'a'; 'b' never starts, because of a circle"]


# One line each: fields of a spec and of its steps, each wrong in its own way.
BAD_SPEC = [
    "trigger: {event: A, condition: 'event.tag !=', catchUp: x}",
    "concurrency: {key: inpt.repo, limit: 0}",
    "rate: {key: inpt.repo, limit: 0, per: 1q, nope: 1}",
    "budget: {usd: {soft: 5, hard: 4}, tokens: {hard: x}}",
    "search: {a: 5, b: nope}",
    "escalation: [{role: 5}, {channel: 1, timeout: 1q}]",
    "retention: {completed: x, failed: 0s}",
    "failurePolicy: never",
    "priority: x",
    "zzz: 1",
]
BAD_STEP = {
    "run": [
        "undo: {run: e.q, with: {a: '${ nope }', b: {$secret: 5}}, timeout: 1q, zzz: 1}",
        "policy: {action: 5, resource: {a: '${ nope }'}}",
        "cost: {usd: -1, tokens: x}",
        "retryPolicy: {maxRetries: -1, backoff: 1s, initialDelay: 1s}",
        "with: {a: '${ nope', b: '${ steps.a.x }'}",
        "check: {type: nope}",
        "timeout: 1q",
        "when: steps.zz.x && steps.a.x",
        "dependsOn: [k, zz]",
        "zzz: 1",
    ],
    "approval": [
        "approval: {role: 5, quorum: 0, expires: 1q, guards: [zz, a], revise: [yy, a], zzz: 1}",
        "show: {a: '${ nope }'}",
    ],
    "wait": ["wait: {event: 5, match: 'evnt.x == 1', timeout: 0s, zzz: 1}", "when: 'a b'"],
}
KIND = {"run": "run: e.a", "approval": "approval: {expires: 1h}", "wait": "wait: {event: e.x}"}


def grown(rng):
    """A workflow that gets one more bad field at a time: its texts, and what is new in each."""
    kinds = [rng.choice(list(KIND)) for _ in range(3)]
    rest = [(None, line) for line in BAD_SPEC]
    rest += [(i, line) for i, kind in enumerate(kinds) for line in BAD_STEP[kind]]
    rng.shuffle(rest)
    taken: list[tuple[int | None, str]] = []
    for each in rest[:12]:
        taken.append(each)
        yield text_of(kinds, taken), each


def text_of(kinds, taken):
    """Block style, so that a field more moves lines, but no columns."""
    lines = ["effects: [e.a]", *(line for at, line in taken if at is None), "steps:"]
    lines += [f"- {A}", "- {name: k, sleep: 1s, dependsOn: [k]}"]
    for i, kind in enumerate(kinds):
        own = [line for at, line in taken if at == i]
        own += [] if any(line.startswith(f"{kind}:") for line in own) else [KIND[kind]]
        own += (
            [] if kind != "run" or any(x.startswith("timeout:") for x in own) else ["timeout: 1m"]
        )
        lines += [f"- name: s{i}", *(f"  {line}" for line in own)]
    return spec("\n".join(lines))


def said(text):
    """The errors as they stay when lines move: the line's text, the column, code and message."""
    lines = text.split("\n")
    errors = [each for each in found_in(text) if each.severity == "error"]
    return [(lines[e.line - 1].lstrip(), e.column, e.code, e.message) for e in errors]


@pytest.mark.req("R63")
@pytest.mark.parametrize("seed", range(60))
def test_one_more_mistake_removes_no_finding(seed):
    """Whatever is added, what was said before is said again.

    Only a step whose dependencies could not be read is no longer told what does not come before it,
    nor one that now waits behind a circle.
    """
    before: list[tuple[str, int, str, str]] = []
    for text, (_, line) in grown(random.Random(seed)):
        after = said(text)
        if line.startswith("dependsOn"):
            before = [each for each in before if each[2] not in ORDERS]
        missing = [each for each in before if each not in after]
        assert not missing, text
        assert len(after) > len(before), text
        before = after


ORDERS = ("expression.not_ancestor", "step.revise", "step.guards")


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("event.tag != ", "write a value after '!='"),
        ("(event.a", "write ')' after 'a'"),
        ("size(event.a event.b)", "write ',' or ')' between 'a' and 'event'"),
        ("event.a event.b", "remove 'event', or write an operator like && or + before it"),
        ("event.a ==  == 1", "write a value between '==' and '=='"),
        ("* 3", "remove '*'"),
        ("event.a & event.b", "did you mean '&&'?"),
        ("event.a | event.b", "did you mean '||'?"),
        ("event.a == \"b", 'write " where the string ends'),
        ("event.a }", "remove it, or write the '{' that it closes"),
        ("event.a # x", "remove it, or put quotes around the text it is part of"),
        ("event.a == for", "use another name; a key is written input['for']"),
        ("event.a == '\\ud800'", "write the character itself"),
        ("event.a == b'\\u0041'", "write each byte as \\x and two digits"),
        (f"'{'x' * 99}' 1", "remove '1', or write an operator like && or + before it"),
        (f"['{'x' * 99}' 1", f"write ',' or ']' between \"'{'x' * 39}\"... and '1'"),
    ],
)  # fmt: skip
def test_a_syntax_error_says_what_to_write(source, hint):
    """The parser knows what it expected, and between which words."""
    quoted = source.replace("'", "''")
    (found,) = found_in(spec(f"trigger: {{event: e.x, condition: '{quoted}'}}\nsteps: [{A}]"))
    assert (found.code, found.hint) == ("expression.syntax", hint)


def test_a_word_is_offered_once():
    """Lists of choices that are put together name nothing twice."""
    offered = EXPECT_TABLE.fields["steps"].reader.schema["additionalProperties"]["enum"]
    assert len(offered) == len(set(offered))
    assert "running" in offered


FLOW = f"""\
    apiVersion: pawl.dev/v1
    kind: Workflow
    metadata: {{name: w}}
    spec: {{timeout: 1h, steps: [{A}]}}
"""
SCENARIO = "apiVersion: pawl.dev/v1\nkind: Scenario\nmetadata: {name: s}\nspec:\n"
SCENARIOS = [
    ("stubs: {a: [{fail: §x, after: §1q, §warnings: []}], §Zz: [], §zz: [{ok: 1}]}",
     "field.value duration.bad field.conflict name.bad step.unknown"),
    ("stubs: {a: [§{ok: 1, fail: terminal, after: §1q, §nope: 1}]}",
     "scenario.answer duration.bad field.unknown"),
    ("stubs: {a: [{hang: §1}, {§hagn: true}]}", "field.type field.unknown"),
    ("script: [{at: §1q, resume: {step: §zz, §nope: 1}, §pause: {}}]",
     "duration.bad step.unknown field.unknown scenario.verb"),
    ("script: [{at: 1s, resume: {§stp: a}}, {at: 1s, §puase: {}}, {at: 1s, pause: §5}]",
     "field.unknown field.unknown field.type"),
    ("script: [{at: §1q, publish: {policy: §5, version: §0}}, §{at: 1s, retire: {policy: p, "
     "§nope: 1}}]", "duration.bad field.type field.value scenario.policy field.unknown"),
    ("expect: {state: §x, steps: {§zz: §y, a: §z}, spent: {usd: §-1, §nope: 1}}",
     "field.value step.unknown field.value field.value field.value field.unknown"),
]  # fmt: skip


@pytest.mark.req("R63")
@pytest.mark.parametrize(("body", "codes"), SCENARIOS)
def test_scenarios_are_told_everything_too(body, codes):
    """The same for answers, script entries and expectations."""
    plain, marks = all_marked(f"{SCENARIO}  definition:\n{FLOW}  {body}\n")
    [document] = load_text(plain, "f.yaml")
    found, findings = read_scenario(document.node, load_file=lambda _: "")
    assert found is None
    assert [each.code for each in findings] == codes.split()
    assert [(each.line, each.column) for each in findings] == marks


def test_a_scenario_with_a_misspelled_field_is_told_so_once():
    """`workfow` is not also a scenario without a workflow."""
    [document] = load_text(f"{SCENARIO}  workfow: ./w.yaml\n", "f.yaml")
    _, findings = read_scenario(document.node, load_file=lambda _: "")
    assert [each.code for each in findings] == ["field.unknown"]


def test_a_schedule_with_a_misspelled_field_is_told_so_once():
    """Nor is `shedule` a schedule without times."""
    text = "apiVersion: pawl.dev/v1\nkind: Schedule\nmetadata: {name: s}\nspec:\n"
    found = found_in(text + "  workflow: w\n  shedule: 0 6 * * 1\n  timezone: Nowhere\n")
    assert [each.code for each in found] == ["field.unknown", "timezone.unknown"]
