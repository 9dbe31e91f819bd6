"""Decisions: forbid beats permit, nothing is allowed by default, and what is doubtful is denied."""

import builtins

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.definition.shape import Policy
from pawlflow.govern.deciding import answer, cedar_value
from pawlflow.model.trouble import PawlError

OPEN = "(principal, action, resource)"
ALL = f'@id("all") permit{OPEN};'
NO = f'@id("no") forbid{OPEN} when {{ resource.env == "prod" }};'
ASK = (
    '@id("ask") @require("approval") @role("Boss") @quorum("2") @expires("1h") '
    f'forbid{OPEN} when {{ resource.env == "prod" }};'
)
MORE = (
    '@id("more") @require("approval") @role("Boss") @expires("2h") @notBy("requester") '
    f'forbid{OPEN} when {{ resource.env == "prod" }};'
)
OTHER = f'@id("other") @require("approval") @role("Cook") forbid{OPEN};'


def asked(policies, resource, **context):
    """What these texts say; each is a document of its own, a, b, c..."""
    about = {"workflow": "w", "step": "s", "requester": "zoe", "params": {}}
    request = {
        "action": "go",
        "principal": {"type": "User", "id": "zoe"},
        "resource": resource,
        "context": about | context,
    }
    named = [Policy(name=chr(97 + n), version=n + 1, cedar=t) for n, t in enumerate(policies)]
    return answer(request, named)


PROD, TEST = {"env": "prod"}, {"env": "test"}
CASES = [
    ((), PROD, "allow", [], "no policy is in force"),
    ((ALL,), PROD, "allow", ["all"], "allowed by all of a v1"),
    ((ALL, NO), TEST, "allow", ["all"], "allowed by all of a v1"),
    ((ALL, NO), PROD, "deny", ["no"], "denied by policy no of b v2"),
    ((NO,), TEST, "deny", [], "no policy permits go (in force: a v1)"),
    ((ALL, ASK), PROD, "approval", ["ask"], "approval by Boss is required by policy ask of b v2"),
    ((ASK,), PROD, "deny", ["ask"], "no policy permits go"),
    ((ALL, ASK, NO), PROD, "deny", ["no"], "denied by policy no of c v3"),
    ((ALL, ASK, OTHER), PROD, "deny", ["ask", "other"], "different roles (Boss, Cook)"),
    ((ALL, NO), {}, "deny", [], 'no of b v2: `Resource::"w/s"` does not have the attribute `env`'),
    ((ALL,), ["prod"], "deny", [], "policy.resource gives no mapping"),
    (("permit",), PROD, "deny", [], "not Cedar"),
]


@pytest.mark.req("R125", "R126")
@pytest.mark.parametrize(("policies", "resource", "decision", "ids", "words"), CASES)
def test_a_request_is_decided(policies, resource, decision, ids, words):
    """By which policy, and why, by the names that people know."""
    said = asked(policies, resource)

    assert said["decision"] == decision
    assert [each["id"] for each in said["policies"]] == ids
    assert words in said["reason"]
    assert bool(said["code"]) == (decision == "deny")
    assert bool(said["hash"]) == bool(policies)


@pytest.mark.req("R127", "R139")
def test_several_that_ask_the_same_role_ask_together():
    """The most people, the shortest time, and whoever bars the requester is heard."""
    said = asked((ALL, ASK, MORE), PROD, params={"to": "bob"})

    assert said["gate"] == ["Boss", 2, 3_600_000, True, "cancel", "escalate"]
    assert said["show"]["params"] == {"to": "bob"}
    assert said["show"]["resource"] == PROD


def test_rules_may_ask_about_everything_that_is_known():
    """Who started it, with which parameters, in which attempt."""
    rule = """@id("r") permit(principal == User::"zoe", action == Action::"go", resource)
    when { context.params.n < 10 && context.requester == principal.name && context.attempt == 1
           && resource.tags.contains("a") && context.params.rate.lessThan(decimal("0.5"))
           && !(context.params has secret) && !(context.params has nothing) };"""
    params = {"n": 5, "rate": 0.25, "secret": {"$secret": "key"}, "nothing": None}

    said = asked((rule,), {"tags": ["a", None]}, params=params, attempt=1)

    assert said["decision"] == "allow", said


TAKEN = [
    {"__entity": {"type": "User", "id": "root"}},
    {"deep": [{"__extn": {"fn": "ip", "arg": "1.2.3.4"}}]},
    {"big": 2**64},
    {"big": 1e300},
]


@pytest.mark.parametrize("given", TAKEN)
def test_what_cedar_would_take_for_more_than_data_is_denied(given):
    """Nobody becomes root by writing so into an input."""
    said = asked((ALL,), {"x": given})

    assert (said["decision"], said["code"]) == ("deny", "policy.request")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_every_value_is_asked_about_or_denied(value):
    """None breaks the judge: the answer is one of three, whatever stands in the resource."""
    assert asked((ALL,), {"x": value})["decision"] in ("allow", "deny")


def test_numbers_keep_four_digits():
    """As Cedar does; a whole one is whole."""
    assert cedar_value([1.0, 0.12345, True, b"\x01"], "x") == [
        1,
        {"__extn": {"fn": "decimal", "arg": "0.1234"}},
        True,
        "01",
    ]
    for odd in (1e300, float("inf"), float("nan")):
        with pytest.raises(PawlError):
            cedar_value(odd, "x")


@pytest.mark.req("R126")
def test_without_cedar_everything_is_denied(monkeypatch):
    """Where the package is missing, and a policy in force: never silently allowed."""
    real = builtins.__import__

    def without(name, *rest):
        if name == "cedarpy":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)

    said = asked((ALL + " ",), PROD)

    assert (said["decision"], said["code"]) == ("deny", "policy.cedar_missing")
    assert 'pip install "pawlflow[cedar]"' in said["reason"]
    assert asked((), PROD)["decision"] == "allow"
