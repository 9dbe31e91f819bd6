"""Cedar's text: what is refused of it, and at which character."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.definition.shape import Policy
from pawlflow.govern.cedar import policy_set, set_hash, troubles_in
from pawlflow.govern.places import place_of_error, spans_of
from pawlflow.model.reviews import NO_POLICY
from pawlflow.model.trouble import PawlError

OPEN = "(principal, action, resource)"
GOOD = f'@id("a") permit{OPEN};'
# § stands where the finding points.
WRONG = [
    (f'{GOOD}\n@id("b") permit{OPEN} when {{ §foo }};', "policy.syntax", "invalid variable"),
    (f'{GOOD} // ;\n@id("é") permit{OPEN} when {{ context.x == 1.§5 }};', "policy.syntax", "`5`"),
    (f'@id("a") permit{OPEN} when {{ resource.env §= "prod" }};', "policy.syntax", "operator"),
    (f"permit{OPEN} when {{ 1 + §}};", "policy.syntax", "unexpected token"),
    (f"permit{OPEN} when {{ §x::y }};", "policy.syntax", "invalid variable"),
    (f"§permit{OPEN} when {{ 1 / 2 == 1 }};", "policy.syntax", "division"),
    (f"permit{OPEN} when {{ §foo(1) }};", "policy.syntax", "not a valid function"),
    ('permit(principal, action == §User::"x", resource);', "policy.syntax", "type `Action`"),
    ("permit(principal, §actions, resource);", "policy.syntax", "invalid variable"),
    (f'permit{OPEN} when {{ §"abc }};', "policy.syntax", "invalid token"),
    (f"permit{OPEN} when {{ context.x like §5 }};", "policy.syntax", "pattern literal"),
    (f"permit{OPEN} when {{ §99999999999999999999 > 1 }};", "policy.syntax", "too large"),
    ("permit(principal is §, action, resource);", "policy.syntax", "unexpected token"),
    (f"§allow{OPEN};", "policy.syntax", "policy effect"),
    (f"permit{OPEN} when {{ context.x.§contains(1, 2) }};", "policy.syntax", "exactly 1 argument"),
    ("permit(principal, action, resource§)", "policy.syntax", "end of input"),
    (f'@id("a") §@id("b") permit{OPEN};', "policy.syntax", "duplicate annotation"),
    ("§  // nothing but words", "policy.empty", "no policy"),
    (f"{GOOD} §permit{OPEN};", "policy.no_id", "no @id"),
    (f'{GOOD} §@id("") permit{OPEN};', "policy.no_id", "no @id"),
    (f'{GOOD} §@id("a") forbid{OPEN};', "policy.twin_id", "used twice"),
    (
        '§@id("t") permit(principal == ?principal, action, resource);',
        "policy.template",
        "templates",
    ),
    (f'@id("a") §@role("R") forbid{OPEN};', "policy.annotation", "without @require"),
    (f'@id("a") §@require("approval") forbid{OPEN};', "policy.annotation", "@role"),
    (f'@id("a") §@require("yes") @role("R") forbid{OPEN};', "policy.annotation", "('yes') is none"),
    (f'@id("a") §@require("approval") @role("R") permit{OPEN};', "policy.annotation", "not with"),
    (
        f'@id("a") @require("approval") @role("R") §@quorum("0") forbid{OPEN};',
        "policy.annotation",
        "@quorum",
    ),
    (
        f'@id("a") @require("approval") @role("R") §@expires("soon") forbid{OPEN};',
        "policy.annotation",
        "@expires",
    ),
    (
        f'@id("a") @require("approval") @role("R") §@notBy("me") forbid{OPEN};',
        "policy.annotation",
        "@notBy",
    ),
]


@pytest.mark.parametrize(("marked", "code", "words"), WRONG)
def test_each_mistake_is_found_where_it_is(marked, code, words):
    """The first trouble of a text, at its character, with a way out."""
    text = marked.replace("§", "")

    first = troubles_in(text)[0]

    assert (first.offset, first.code) == (marked.index("§"), code)
    assert words in first.message
    assert first.hint


def test_words_that_name_nothing_of_the_text_point_to_its_beginning():
    """Whatever the parser says: there is always a place."""
    assert place_of_error("a; b;", "odd", lambda _: "").offset == 0
    assert (
        place_of_error("a; b c;", "odd", lambda text: "no `d`" if "b c;" in text else "").offset
        == 3
    )


def test_a_sound_text_has_no_trouble():
    """With everything that may be said."""
    text = f"""
    // comments; are; nothing
    {GOOD}
    @id("b") @require("approval") @role("R") @quorum("2") @expires("1h30m") @notBy("requester")
    @note("free annotations may say anything; even this")
    forbid{OPEN} when {{ context.text == "a ; b" }};
    """

    assert troubles_in(text) == []
    assert len(spans_of(text)) == 2


@given(st.text(alphabet='permitforbid(),;"@{}= \n/', max_size=60))
def test_no_text_breaks_the_reader(text):
    """Whatever it is, it is a policy, or there is something to say about it at a place in it."""
    for each in troubles_in(text):
        assert 0 <= each.offset <= max(0, len(text))


@pytest.mark.req("R138")
def test_the_hash_names_what_is_in_force():
    """Whatever the order; another version or another word is another hash."""
    a, b = Policy(name="a", cedar=GOOD), Policy(name="b", version=2, cedar=GOOD)

    assert set_hash([a, b]) == set_hash([b, a]) == policy_set([b, a]).hash
    assert set_hash([]) == NO_POLICY
    others = [
        Policy(name="b", version=3, cedar=GOOD),
        Policy(name="b", version=2, cedar=GOOD + " "),
    ]
    assert len({set_hash([a, each]) for each in (b, *others)}) == 3


def test_a_policy_that_is_none_is_not_asked():
    """One that slipped in unchecked is refused when it is parsed."""
    with pytest.raises(PawlError, match="rules: not Cedar") as refused:
        policy_set([Policy(name="rules", cedar="permit")])

    assert refused.value.code == "policy.syntax"
