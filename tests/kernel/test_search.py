"""Search attributes: fixed when an instance is created, kept in its state, replayed."""

import pytest

from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.snapshot import snapshot_payloads, state_bytes, state_from_bytes
from pawlflow.kernel.step import Stepped
from pawlflow.kernel.system.search import TEXT_BYTES_MAX
from pawlflow.model.events import InstanceCreated
from tests.kernel.support import TENANT, Live

STEPS = "steps: [{name: a, run: x.a}]"


def started(search: str, value: object, rules: int = 2) -> Live:
    """An instance of a workflow with these attributes, after its start."""
    live = Live(f"search: {search}\n{STEPS}", rules=rules)
    outcome = live.start(value, by="zoe")
    assert isinstance(outcome, Stepped), outcome
    return live


def refused(search: str, value: object) -> str:
    """Why a start is refused."""
    outcome = Live(f"search: {search}\n{STEPS}").start(value)
    assert isinstance(outcome, Rejected)
    assert outcome.code == "search.failed"
    return outcome.detail


@pytest.mark.req("R216")
@pytest.mark.parametrize(
    ("search", "value", "found"),
    [
        ("{repo: input.repo}", {"repo": "r1"}, {"repo": "r1"}),
        ("{n: input.n, d: input.n / 2.0}", {"n": 3}, {"n": 3, "d": 1.5}),
        ("{big: input.n}", {"n": 2**63 - 1}, {"big": 2**63 - 1}),
        ("{who: instance.started_by, id: instance.id}", {}, {"who": "zoe", "id": "i-1"}),
        ("{urgent: input.n > 2}", {"n": 3}, {"urgent": True}),
        ("{missing: input.a.b.c}", {}, {"missing": None}),
        ("{t: input.t}", {"t": "x" * TEXT_BYTES_MAX}, {"t": "x" * TEXT_BYTES_MAX}),
    ],
)
def test_attributes_are_what_their_expressions_give(search, value, found):
    """Text, numbers, truth values and null, over input and instance."""
    live = started(search, value)

    created = live.turns[0].turn.events[0]
    assert isinstance(created, InstanceCreated)
    assert created.search is not None
    assert created.search.value == found
    assert live.cell.state.search == created.search


@pytest.mark.req("R216")
@pytest.mark.parametrize(
    ("search", "value", "why"),
    [
        ("{n: int(input.t)}", {"t": "abc"}, "n: "),
        ("{l: input.l}", {"l": [1]}, "l is a list"),
        ("{m: input}", {"m": 1}, "m is a dict"),
        ("{ok: input.n, b: input.b}", {"n": 1, "b": b"raw"}, "b is a bytes"),
        ("{n: input.n}", {"n": 2**63}, "n has more than 64 bits"),
        ("{t: input.t}", {"t": "x" * (TEXT_BYTES_MAX + 1)}, f"t has {TEXT_BYTES_MAX + 1} bytes"),
        ("{t: input.t}", {"t": "ä" * 257}, "t has 514 bytes"),
    ],
)
def test_what_nothing_can_be_found_by_refuses_the_start(search, value, why):
    """An instance that its filter does not find is found too late: the start says so at once."""
    assert refused(search, value).startswith(why)


@pytest.mark.req("R216", "R11")
def test_attributes_are_in_the_state_and_its_bytes():
    """A snapshot holds them, and the turns decide to the same bytes again."""
    live = started("{repo: input.repo}", {"repo": "r1"})

    state = live.cell.state
    kept = {each.addr: each.data for each in snapshot_payloads(state)}
    again = state_from_bytes(state_bytes(state), live.id, live.plan, kept)

    assert again.search is not None
    assert again.search.value == {"repo": "r1"}
    assert again.search.addr in kept


def test_without_attributes_nothing_is_written():
    """A workflow that declares none, and an instance of rules 1, have no bytes of it."""
    plain = Live(STEPS)
    plain.start({"repo": "r1"})
    old = started("{repo: input.repo}", {"repo": "r1"}, rules=1)

    for live in (plain, old):
        assert live.turns[0].turn.events[0].search is None
        assert live.cell.state.search is None


def test_equal_attributes_of_two_tenants_have_two_addresses():
    """The map is a payload like any other: it can be erased, and links nobody."""
    here = started("{repo: input.repo}", {"repo": "r1"})
    there = Live(f"search: {{repo: input.repo}}\n{STEPS}", tenant=type(TENANT)("other"))
    there.start({"repo": "r1"})

    assert here.cell.state.search != there.cell.state.search
