"""Documents of kind Policy: their frame, and what is refused of it."""

import pytest
from check_kit import marked

from pawlflow.definition.load import load_definitions
from pawlflow.definition.plan import compile_plan
from pawlflow.definition.policy import CEDAR_MAX
from pawlflow.definition.shape import Policy

HEAD = "apiVersion: pawl.dev/v1\nkind: Policy\n"
RULE = "permit(principal, action, resource);"


@pytest.mark.req("R138")
def test_a_policy_has_a_name_a_version_and_a_text():
    """The version is 1 if it is not said; notes are kept aside."""
    text = f"{HEAD}metadata: {{name: rules, owner: ann}}\nspec: {{cedar: '{RULE}', description: d}}"

    [found] = load_definitions(text, "p.yaml").policies

    assert found.policy == Policy(name="rules", version=1, cedar=RULE)
    assert found.text.place.line == 4


WRONG = [
    ("metadata: {name: rules}\nspec: §{}", "field.missing", "'cedar'"),
    ("metadata: {name: rules}\nspec: {cedar: §[a]}", "field.type", "text of one or many"),
    ("metadata: {name: rules}\nspec: {cedar: §'  '}", "field.type", "text of one or many"),
    ("metadata: {name: rules}\nspec: {cedar: a, §polices: b}", "field.unknown", "'polices'"),
    ("metadata: {name: §Rules}\nspec: {cedar: a}", "name.bad", "Rules"),
    ("metadata: {name: rules, version: §0}\nspec: {cedar: a}", "field.value", "1"),
]


@pytest.mark.parametrize(("text", "code", "words"), WRONG)
def test_what_is_wrong_with_it_is_said_at_its_place(text, code, words):
    """One finding each."""
    source, line, column = marked(HEAD + text)
    [found] = load_definitions(source, "p.yaml").findings

    assert (found.line, found.column, found.code) == (line, column, code)
    assert words in found.message


def test_a_text_that_nobody_reads_is_refused():
    """It would be read whole before every decision."""
    text = f"{HEAD}metadata: {{name: rules}}\nspec:\n  cedar: {'x' * (CEDAR_MAX + 1)}\n"

    [found] = load_definitions(text, "p.yaml").findings

    assert (found.code, found.line) == ("field.value", 5)


@pytest.mark.parametrize("missing", ["metadata", "spec"])
def test_a_part_that_is_missing_is_said_once(missing):
    """And there is no policy."""
    parts = {"metadata": "metadata: {name: rules}\n", "spec": f"spec: {{cedar: '{RULE}'}}\n"}
    del parts[missing]
    found = load_definitions(HEAD + "".join(parts.values()), "p.yaml")

    assert [each.code for each in found.findings] == ["field.missing"]
    assert found.policies == []


IOA = """\
apiVersion: ioa.dev/v0.2
kind: Workflow
metadata: {name: crossing}
spec:
  domainsInvolved: [finance, legal]
  steps:
    - {name: pay, agent: payer, action: Pay, policy: {action: pay}}
"""


@pytest.mark.req("R137")
def test_a_policy_may_ask_which_domains_a_workflow_crosses():
    """Where the document says so."""
    [crossing] = load_definitions(IOA, "w.yaml").workflows
    plain = IOA.replace("  domainsInvolved: [finance, legal]\n", "")
    [other] = load_definitions(plain, "w.yaml").workflows

    about = [compile_plan(each).steps[0].policy.about for each in (crossing, other)]

    assert about[0]["domains"] == ["finance", "legal"]
    assert "domains" not in about[1]
