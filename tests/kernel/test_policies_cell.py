"""The cell of a tenant's policies: what is in force, and what is refused."""

import pytest

from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.snapshot import state_bytes, state_from_bytes
from pawlflow.kernel.step import Stepped
from pawlflow.kernel.system import policies
from pawlflow.model.inputs import Tick
from pawlflow.model.policies import PublishPolicy, RetirePolicy, policies_cell
from tests.kernel.support import TENANT, payload
from tests.kernel.system_kit import Alone


def publish(name: str, version: int, text: str = "permit") -> PublishPolicy:
    """A version of a policy."""
    return PublishPolicy(name, version, payload(text), "zoe")


def in_force(cell: Alone) -> dict[str, int]:
    """What decides now."""
    return {each.name: each.version for each in cell.cell.state.in_force()}


@pytest.mark.req("R138")
def test_a_published_version_never_changes():
    """The same text is no news; another one needs a higher version."""
    cell = Alone(policies_cell(TENANT))
    assert isinstance(cell.submit(publish("a", 1)), Stepped)

    assert cell.submit(publish("a", 1)).code == "policy.same"
    assert cell.submit(publish("a", 1, "forbid")).code == "policy.changed"
    assert isinstance(cell.submit(publish("a", 3, "forbid")), Stepped)
    assert cell.submit(publish("a", 2)).code == "policy.older"
    assert cell.submit(publish("a", 1)).code == "policy.same"
    assert in_force(cell) == {"a": 3}
    cell.assert_replays()


@pytest.mark.req("R138")
def test_a_retired_policy_is_in_force_no_longer():
    """Until a higher version is published; the retired one does not come back."""
    cell = Alone(policies_cell(TENANT))
    for each in (publish("a", 1), publish("b", 1)):
        cell.submit(each)

    assert isinstance(cell.submit(RetirePolicy("a", "ann", payload("old"))), Stepped)

    assert in_force(cell) == {"b": 1}
    assert cell.submit(RetirePolicy("a", "ann")).code == "policy.retired"
    assert cell.submit(publish("a", 1)).code == "policy.retired"
    assert cell.submit(RetirePolicy("c", "ann")) == Rejected("policy.unknown", "c")
    cell.submit(publish("a", 2))
    assert in_force(cell) == {"a": 2, "b": 1}
    cell.assert_replays()


def test_what_is_in_force_together_is_bounded(monkeypatch):
    """Every decision reads all of it; a new version takes the place of the old."""
    monkeypatch.setattr(policies, "POLICIES_MAX", 2)
    monkeypatch.setattr(policies, "TEXTS_MAX", 30)
    cell = Alone(policies_cell(TENANT))
    for each in (publish("a", 1), publish("b", 1)):
        cell.submit(each)

    assert cell.submit(publish("c", 1)).code == "policy.too_many"
    assert cell.submit(publish("a", 2, "x" * 40)).code == "policy.too_many"
    assert isinstance(cell.submit(publish("a", 2, "forbid")), Stepped)


def test_it_is_read_back_from_its_bytes():
    """With all of its versions."""
    cell = Alone(policies_cell(TENANT))
    for each in (publish("b", 1), publish("a", 1), RetirePolicy("b", "ann")):
        cell.submit(each)
    data = state_bytes(cell.cell.state)
    beside = {p.addr: p.data for p in (payload("permit"),)}

    again = state_from_bytes(data, policies_cell(TENANT), None, beside)

    assert state_bytes(again) == data
    assert [each.text.value for each in again.in_force()] == ["permit"]


def test_nothing_else_is_for_it():
    """A tick, say."""
    assert Alone(policies_cell(TENANT)).submit(Tick()).code == "input.misplaced"
