"""`pawl policy`, and what the other verbs say of policies."""

import builtins
import json

import pytest

RELEASE = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: governed}
spec:
  timeout: 1h
  steps:
    - name: promote
      run: deploy.promote
      timeout: 1m
      policy: {action: "release:promote", resource: {env: "${ input.env }"}}
"""
RULES = """\
apiVersion: pawl.dev/v1
kind: Policy
metadata: {name: release-rules, version: VERSION}
spec:
  cedar: |
    @id("everyday") permit(principal, action, resource);
    @id("frozen") forbid(principal, action, resource) when { resource.env == "old" };
    @id("prod") @require("approval") @role("Boss") @expires("1d")
    forbid(principal, action == Action::"release:promote", resource)
    when { resource.env == "prod" };
"""
SCENARIO = """\
apiVersion: pawl.dev/v1
kind: Scenario
metadata: {name: NAME}
spec:
  definition:
    - apiVersion: pawl.dev/v1
      kind: Workflow
      metadata: {name: pay}
      spec: {steps: [{name: pay, run: bank.pay, policy: {action: pay}}]}
    - apiVersion: pawl.dev/v1
      kind: Policy
      metadata: {name: rules}
      spec: {cedar: '@id("all") permit(principal, action, resource);'}
  script:
    - {at: 1s, retire: {policy: rules}}
  expect: {state: completed}
"""


@pytest.fixture
def governed(place):
    """A workflow with its policies in files, and the policies in force."""
    (place.folder / "governed.yaml").write_text(RELEASE)
    (place.folder / "rules.yaml").write_text(RULES.replace("VERSION", "1"))
    (place.folder / "none.yaml").write_text("promote: [{ok: {release: r-1}}]\n")
    [row] = place.told("apply", "-f", "rules.yaml", "--by", "zoe")
    assert (row["kind"], row["name"], row["version"]) == ("Policy", "release-rules", 1)
    assert row["status"] == "new"
    return place


def start(place, env, key, exits=0):
    """A run of it, with stubs."""
    given = ("--input", json.dumps({"env": env}), "--id", key, "--by", "zoe")
    done = place.pawl("run", "governed.yaml", *given, "--stubs", "none.yaml", "--timeout", "500ms")
    assert done.exit_code == exits, done.stderr
    return done


@pytest.mark.req("R138")
def test_a_version_is_published_once(governed):
    """The same is no news; another text under the same version is refused; a new one is not."""
    [row] = governed.told("apply", "-f", "rules.yaml")
    assert row["status"] == "unchanged"
    (governed.folder / "rules.yaml").write_text(
        RULES.replace("VERSION", "1").replace("frozen", "cold")
    )
    changed = governed.told("apply", "-f", "rules.yaml", exits=5)["error"]
    assert changed["code"] == "policy.changed"
    assert changed["message"].endswith("raise metadata.version")
    (governed.folder / "rules.yaml").write_text(RULES.replace("VERSION", "2"))
    assert "policy release-rules v2" in governed.pawl("apply", "-f", "rules.yaml").stdout

    rows = governed.told("policy", "ls", "--all")

    assert [(row["version"], row["in_force"]) for row in rows] == [(1, False), (2, True)]
    assert "in force" in governed.pawl("policy", "ls").stdout
    assert "replaced by a newer version" in governed.pawl("policy", "ls", "--all").stdout


@pytest.mark.req("R138")
def test_a_policy_is_shown_and_retired(governed):
    """With its text, and who did what; a retired one decides nothing."""
    told = governed.told("policy", "show", "release-rules")
    assert (told["published_by"], told["in_force"], told["versions"]) == ("zoe", True, [1])
    assert '@id("frozen")' in told["cedar"]
    assert '@id("frozen")' in governed.pawl("policy", "show", "release-rules").stdout

    done = governed.pawl("policy", "retire", "release-rules", "--by", "ann", "--comment", "old")

    assert done.stdout == "release-rules is retired\n"
    assert "retired by ann" in governed.pawl("policy", "ls").stdout
    assert governed.told("policy", "show", "release-rules")["retired_by"] == "ann"
    again = governed.told("policy", "retire", "release-rules", exits=5)
    assert again["error"]["code"] == "policy.retired"
    for verb in ("show", "retire"):
        assert governed.told("policy", verb, "other", exits=4)["error"]["code"] == "policy.unknown"
    start(governed, "old", "r-1")


@pytest.mark.req("R125")
def test_a_request_is_tried_by_hand(governed):
    """By the policies in force, or by those of a file; the rule that decided is named."""
    ask = ("policy", "test", "--action", "release:promote")
    allowed = governed.told(*ask, "--resource", '{"env": "test"}')
    assert (allowed["decision"], allowed["policies"][0]["id"]) == ("allow", "everyday")
    denied = governed.told(*ask, "--resource", '{"env": "old"}', exits=6)
    assert denied["reason"] == "denied by policy frozen of release-rules v1"
    asks = governed.pawl(*ask, "rules.yaml", "--resource", '{"env": "prod"}')
    assert (asks.exit_code, asks.stdout.partition(":")[0]) == (6, "to be approved")
    missing = governed.told(*ask, exits=6)
    assert missing["code"] == "policy.error"
    agent = governed.told(
        *ask,
        "--principal",
        "Agent:bot",
        "--resource",
        '{"env": "x"}',
        "--context",
        '{"attempt": 2}',
    )
    assert agent["decision"] == "allow"
    assert governed.told(*ask, "--principal", "Robot:x", exits=2)["error"]["code"] == "cli.usage"
    assert governed.told(*ask, "--context", "[1]", exits=2)["error"]["code"] == "cli.usage"
    assert governed.told(*ask, "governed.yaml", exits=4)["error"]["code"] == "cli.nothing"
    (governed.folder / "bad.yaml").write_text(RULES.replace("VERSION", "1").replace("permit(", "("))
    assert governed.pawl(*ask, "bad.yaml").exit_code == 3


def test_without_a_store_nothing_is_in_force(place):
    """And there is nothing to list."""
    (place.folder / "governed.yaml").write_text(RELEASE)
    ask = ("policy", "test", "--action", "a")

    assert place.told(*ask)["reason"] == "no policy is in force"
    place.pawl("apply", "-f", "governed.yaml")
    assert place.told("policy", "ls") == []
    assert "pawl apply" in place.pawl("policy", "ls").stderr
    assert place.told("policy", "show", "x", exits=4)["error"]["code"] == "policy.unknown"


@pytest.mark.req("R125", "R126")
def test_a_denial_is_told_by_every_verb_that_looks(governed):
    """Which policy of which document, in which version."""
    start(governed, "old", "r-1", exits=1)
    words = "denied by policy frozen of release-rules v1"

    shown = governed.told("show", "r-1")
    assert (shown["error"]["code"], shown["error"]["class"]) == ("policy.denied", "governance")
    policy = shown["steps"]["promote"]["policy"]
    assert (policy["decision"], policy["why"]) == ("deny", words)
    assert policy["policies"] == [{"policy": "release-rules", "version": 1, "id": "frozen"}]
    assert policy["in_force"] == {"release-rules": 1}
    assert words in governed.pawl("show", "r-1").stdout
    assert f"deny: {words}" in governed.pawl("show", "r-1", "--step", "promote").stdout
    why = governed.told("why", "r-1")
    assert f"policy denies promote: {words}" in [each["text"] for each in why["because"]]
    [event] = [
        each
        for each in governed.told("history", "r-1")
        if each["eventType"] == "PolicyDecisionRecorded"
    ]
    assert event["payload"]["inputs"]["resource"] == {"env": "old"}
    assert len(event["payload"]["policy_hash"]) == 64
    assert f"deny: {words}" in governed.pawl("history", "r-1").stdout
    trace = governed.told("trace", "r-1")
    assert trace[0]["calls"][0]["effect"] == "sys/policy"
    assert (trace[1]["caused_by"], trace[1]["input"]["direction"]) == (1, "ask")
    decided = trace[1]["events"][0]
    assert (decided["decision"], decided["clears"], decided["why"]) == ("deny", False, words)
    lines = governed.pawl("trace", "r-1").stdout
    assert f"policy.decided promote deny: {words} => PolicyDecisionRecorded" in lines
    assert "    > promote sys/policy intent" in lines
    assert "answer promote ok  <- turn 1" in lines
    assert "promote#" not in lines  # no attempt was made
    assert governed.told("replay", "--all")["same"]


@pytest.mark.req("R127", "R132")
def test_what_a_policy_asks_is_a_review_like_any_other(governed):
    """Listed, shown, claimed and approved from another terminal."""
    start(governed, "prod", "r-1", exits=75)
    [row] = governed.told("review", "ls")
    assert (row["id"], row["kind"], row["role"]) == ("r-1/promote", "approval", "Boss")
    assert row["show"]["reason"].endswith("required by policy prod of release-rules v1")
    assert "waiting for approval" in governed.pawl("show", "r-1").stdout
    assert "waits for approval by Boss" in governed.told("why", "r-1")["now"]
    boss = ("--by", "ann", "--role", "Boss")
    wrong = governed.told("review", "approve", "r-1", "--by", "ann", exits=5)
    assert wrong["error"]["code"] == "approval.wrong_role"

    assert governed.pawl("review", "approve", "r-1", *boss).exit_code == 0

    stubs = ("--stubs", "none.yaml", "--timeout", "20s")
    assert governed.pawl("wait", "r-1", *stubs).exit_code == 0
    names = [each["eventType"] for each in governed.told("history", "r-1")]
    assert names.count("PolicyDecisionRecorded") == 2
    told = [e["payload"] for e in governed.told("history", "r-1") if "Decision" in e["eventType"]]
    assert [(e["decision"], e["clears"]) for e in told] == [("approval", False), ("approval", True)]
    said = governed.pawl("history", "r-1").stdout
    assert said.count("promote approval: ") == said.count("promote approval was given: ") == 1
    assert "policy.decided promote approval was given: " in governed.pawl("trace", "r-1").stdout
    assert names.index("ApprovalGranted") < names.index("AgentTaskAssigned")
    assert "approved by ann (Boss)" in governed.pawl("show", "r-1", "--step", "promote").stdout
    assert governed.told("replay", "--all")["same"]


def test_check_says_where_a_policy_is_wrong(place):
    """File, line and column; the kind is counted, and has a schema."""
    text = RULES.replace("VERSION", "1")
    (place.folder / "rules.yaml").write_text(text)
    assert "1 policy" in place.pawl("check", "rules.yaml").stdout
    (place.folder / "rules.yaml").write_text(text.replace('resource.env == "prod"', "env"))

    [found] = place.told("check", "rules.yaml", exits=3)

    assert (found["line"], found["column"], found["code"]) == (10, 12, "policy.syntax")
    assert "invalid variable: env" in found["message"]
    wrong = [
        ("cedar: |", "cedar: 5 #", "field.type"),
        ("spec:", "spec:\n  ceder: x", "field.unknown"),
        ("version: 1", "version: x", "field.type"),
        ("name: release-rules", "name: Release", "name.bad"),
    ]
    for old, new, code in wrong:
        (place.folder / "rules.yaml").write_text(text.replace(old, new).split("    @id")[0] + "")
        codes = [each["code"] for each in place.told("check", "rules.yaml", exits=3)]
        assert code in codes, (new, codes)
    (place.folder / "rules.yaml").write_text(f"{text}---\n{text}")
    assert [e["code"] for e in place.told("check", "rules.yaml", exits=3)] == ["policy.duplicate"]
    assert place.told("schema", "policy")["title"] == "Pawl policy"


@pytest.mark.req("R138")
def test_a_script_retires_what_its_scenario_has(place):
    """`check` and `test` refuse another name, with its place."""
    (place.folder / "one.yaml").write_text(
        SCENARIO.replace("NAME", "one").replace("retire: {policy: rules}", "retire: {policy: nope}")
    )

    [found] = place.told("check", "one.yaml", exits=3)

    assert (found["code"], found["line"]) == ("scenario.policy", 15)
    assert found["message"] == "nope is no policy of this scenario; policies are: rules"
    assert place.pawl("test", "one.yaml").exit_code == 3
    (place.folder / "one.yaml").write_text(SCENARIO.replace("NAME", "one"))
    assert place.pawl("check", "one.yaml").exit_code == 0


@pytest.fixture
def no_cedar(monkeypatch):
    """From the first call on Cedar is not installed."""
    real = builtins.__import__

    def without(name, *rest):
        if name == "cedarpy":
            raise ImportError(name)
        return real(name, *rest)

    return lambda: monkeypatch.setattr(builtins, "__import__", without)


def test_check_says_what_to_install(place, no_cedar):
    """Where Cedar is missing a policy cannot be checked, and is not published."""
    (place.folder / "rules.yaml").write_text(RULES.replace("VERSION", "1"))
    no_cedar()

    [found] = place.told("check", "rules.yaml", exits=3)

    assert found["code"] == "policy.cedar_missing"
    assert found["hint"] == 'pip install "pawlflow[cedar]"'
    assert place.pawl("apply", "-f", "rules.yaml").exit_code == 3
    for name in ("one", "two"):  # scenarios say so once, however many they are
        (place.folder / f"{name}.yaml").write_text(SCENARIO.replace("NAME", name))
    said = place.pawl("test", "one.yaml", "two.yaml")
    assert (said.exit_code, said.stderr.count("cannot be checked")) == (3, 1), said.stderr
    [found] = place.told("test", "one.yaml", "two.yaml", exits=3)["findings"]
    assert found["code"] == "policy.cedar_missing"


def test_doctor_tells_of_policies_that_nobody_here_can_read(governed, no_cedar):
    """Every step that asks them would be denied on this machine."""
    assert "policies" not in [each["name"] for each in governed.told("doctor")["checks"]]
    no_cedar()

    checks = {each["name"]: each for each in governed.told("doctor", exits=5)["checks"]}

    assert checks["policies"]["status"] == "fail"
    assert "release-rules" in checks["policies"]["detail"]
    assert "pawlflow[cedar]" in checks["policies"]["detail"]


@pytest.mark.req("R125")
def test_a_run_puts_the_policies_of_its_file_in_force(place):
    """Before anything of the file begins."""
    (place.folder / "governed.yaml").write_text(f"{RELEASE}---\n{RULES.replace('VERSION', '1')}")
    (place.folder / "none.yaml").write_text("promote: [{ok: {release: r-1}}]\n")

    start(place, "old", "r-1", exits=1)

    assert place.told("show", "r-1")["error"]["code"] == "policy.denied"
    assert "pawl policy show" in place.told("why", "r-1")["hint"]


@pytest.mark.parametrize(
    ("old", "new", "meant"),
    [("@expires", "@expire", "expires"), ("@role", "@Role", "role"), ("@id", "@ID", "id")],
)
def test_a_safeguard_is_not_lost_by_a_letter(place, old, new, meant):
    """An annotation that is nearly one of ours is refused; others are the author's own."""
    text = RULES.replace("VERSION", "1")
    (place.folder / "rules.yaml").write_text(text.replace(old, new, 1))
    found = place.told("check", "rules.yaml", exits=3)
    hints = [each["hint"] for each in found if each["code"] == "policy.annotation"]
    assert f"did you mean @{meant}?" in hints

    (place.folder / "rules.yaml").write_text(text.replace("@expires", '@owner("us") @expires'))
    assert place.told("check", "rules.yaml") == []


def test_retiring_the_last_says_what_that_means(governed):
    """Without a policy everything is allowed."""
    done = governed.pawl("policy", "retire", "release-rules", "--by", "ann")
    assert "all is allowed now" in done.stderr
    assert governed.told("policy", "show", "release-rules", "--version", "9", exits=4)
    told = governed.pawl("policy", "show", "release-rules", "--version", "9")
    assert "there are: release-rules v1" in told.stderr


def test_whoever_decides_sees_all_they_decide_about(governed):
    """Nothing of what would be done is cut off, however long it is."""
    start(governed, "prod", "r-1", exits=75)
    told = governed.pawl("review", "show", "r-1").stdout
    assert 'resource: {"env":"prod"}' in told
    assert "reason: approval by Boss is required by policy prod of release-rules v1" in told
