"""A flow and the YAML that says the same are one definition."""

import pytest

from pawlflow.definition.canonical import definition_hash, written
from pawlflow.definition.load import load_workflows
from tests.flows.pairs import PAIRS


@pytest.mark.req("R229")
@pytest.mark.parametrize("name", PAIRS)
def test_a_flow_is_the_same_definition_as_its_yaml(name):
    """Not only alike: the same bytes, so that instances of either run under the other."""
    flow, text = PAIRS[name]
    (workflow,), findings = load_workflows(text, f"{name}.yaml")
    assert not [found for found in findings if found.severity == "error"]
    assert written(flow.workflow) == written(workflow)
    assert flow.plan_hash == definition_hash(workflow).hex()


def test_a_flow_is_traced_once():
    """The function runs when somebody asks, and never again."""
    flow, _ = PAIRS["provision"]
    assert flow.workflow is flow.workflow
    assert flow.brought().functions.keys() == {
        "save_party",
        "delete_party",
        "save_account",
        "link",
    }
