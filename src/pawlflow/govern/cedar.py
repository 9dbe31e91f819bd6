"""Cedar: the text of policies, parsed once, with the rules it holds and what they ask of people.

Cedar numbers the policies of a text; people know them by `@id`, and by the document they stand in.
"""

import json
from collections.abc import Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final

import msgspec

from pawlflow.definition.fields import DURATION_FORM, duration_ms
from pawlflow.definition.shape import Policy
from pawlflow.govern.places import Trouble, place_of_error, place_of_rule, spans_of
from pawlflow.model.codec import hash_of
from pawlflow.model.ids import ROLE_NAME, DurationMs, RoleName
from pawlflow.model.reviews import NO_POLICY
from pawlflow.model.trouble import PawlError

SETS_MAX: Final = 64  # parsed sets at hand: of as many tenants
QUORUM_MAX: Final = 1_000
NEAR: Final = 0.75  # of the letters, for a word to be taken for one of ours
# What means something beside @require only.
GATE_WORDS: Final = ("role", "quorum", "expires", "notBy", "onReject", "onExpire")
CHOICES: Final = {
    "notBy": ("requester",),
    "onReject": ("cancel", "fail"),
    "onExpire": ("escalate", "fail"),
}
INSTALL: Final = 'pip install "pawlflow[cedar]"'


class Asks(msgspec.Struct, frozen=True):
    """Whom a forbidding rule asks to agree."""

    role: RoleName
    quorum: int = 1
    expires_ms: DurationMs | None = None
    not_by_requester: bool = False
    on_reject: str = "cancel"
    on_expire: str = "escalate"


class Rule(msgspec.Struct, frozen=True):
    """One Cedar policy, by the names that people know it by."""

    policy: str
    version: int
    id: str
    permits: bool
    asks: Asks | None

    def __str__(self) -> str:
        return f"{self.id} of {self.policy} v{self.version}"


class PolicySet(msgspec.Struct, frozen=True):
    """The policies in force, ready to be asked."""

    hash: bytes
    versions: dict[str, int]
    rules: tuple[Rule, ...]  # in Cedar's numbering
    whole: Any
    permits: Any  # those alone


def cedar() -> Any:
    """The parser and judge of Cedar. Raises PawlError where it is not installed."""
    try:
        import cedarpy
    except ImportError as missing:
        message = f"policies need the package of Cedar: {INSTALL}"
        raise PawlError("policy.cedar_missing", message) from missing
    return cedarpy


def set_hash(policies: Sequence[Policy]) -> bytes:
    """What names the policies in force together; with none, what stands for that."""
    ordered = sorted((each.name, each.version, each.cedar) for each in policies)
    return hash_of("pawl.policies.1", ordered) if ordered else NO_POLICY


def policy_set(policies: Sequence[Policy]) -> PolicySet:
    """Policies, parsed; kept, for the same are asked again and again. Raises PawlError."""
    return parsed(tuple(sorted(policies, key=lambda each: each.name)))


@lru_cache(SETS_MAX)
def parsed(policies: tuple[Policy, ...]) -> PolicySet:
    """Policies in the order of their names, parsed. Raises PawlError."""
    judge, rules, permits = cedar(), [], []
    for policy in policies:
        troubles = troubles_in(policy.cedar)
        if troubles:
            raise PawlError(troubles[0].code, f"{policy.name}: {troubles[0].message}")
        spans = spans_of(policy.cedar)
        for span, made in zip(spans, rules_in(policy.cedar), strict=True):
            rules.append(rule_of(policy, made))
            permits += [policy.cedar[span[0] : span[1]]] if rules[-1].permits else []
    return PolicySet(
        set_hash(policies),
        {policy.name: policy.version for policy in policies},
        tuple(rules),
        judge.PolicySet.from_str("\n".join(policy.cedar for policy in policies)),
        judge.PolicySet.from_str("\n".join(permits)),
    )


def rules_in(text: str) -> list[dict[str, Any]]:
    """The rules of a text that is Cedar, in order. Raises ValueError if it is none."""
    made = json.loads(cedar().policies_to_json_str(text))
    every = made["staticPolicies"] | made["templates"]
    return [every[f"policy{number}"] for number in range(len(every))]


def rule_of(policy: Policy, made: dict[str, Any]) -> Rule:
    """A rule whose annotations are in order."""
    said = made["annotations"]
    about = (policy.name, policy.version, said["id"])
    return Rule(*about, permits=made["effect"] == "permit", asks=asks_of(said))


def asks_of(said: dict[str, str]) -> Asks | None:
    """Whom a rule asks, by its annotations."""
    if "require" not in said:
        return None
    expires = duration_ms(said["expires"]) if "expires" in said else None
    return Asks(
        RoleName(said["role"]),
        int(said.get("quorum", "1")),
        expires,
        "notBy" in said,
        said.get("onReject", "cancel"),
        said.get("onExpire", "escalate"),
    )


# What is wrong with a text


def troubles_in(text: str) -> list[Trouble]:
    """Everything that keeps a text from being a policy, each with its place in it."""
    try:
        rules = rules_in(text)
    except ValueError as error:
        return [place_of_error(text, str(error), parses)]
    spans = spans_of(text)
    found: list[Trouble] = []
    if not rules:
        hint = 'write at least one, such as @id("all") permit(principal, action, resource);'
        found.append(Trouble(0, "policy.empty", "the text holds no policy", hint))
    seen: dict[str, int] = {}
    for number, (span, made) in enumerate(zip(spans, rules, strict=True)):
        at, id_ = span[0], made.get("annotations", {}).get("id")
        if "slot" in json.dumps([made["principal"], made["resource"]]):
            hint = "write the principal and the resource out"
            found.append(
                Trouble(at, "policy.template", "templates (?principal) are not read", hint)
            )
        if not id_:
            hint = f'write @id("...") before it, for example @id("rule-{number + 1}")'
            found.append(Trouble(at, "policy.no_id", "this policy has no @id", hint))
        elif seen.setdefault(id_, number) != number:
            place = place_of_rule(text, span, "id")
            message = f"@id({id_!r}) is used twice; the first is policy {seen[id_] + 1}"
            found.append(Trouble(place, "policy.twin_id", message, "give one of them another"))
        found += annotation_troubles(text, span, made)
    return found


def parses(text: str) -> str:
    """What Cedar has to say against a text; nothing if it is one."""
    try:
        cedar().PolicySet.from_str(text)
    except ValueError as error:
        return str(error)
    return ""


def annotation_troubles(text: str, span: tuple[int, int], made: dict[str, Any]) -> list[Trouble]:
    """What is wrong with the annotations that ask for an approval."""
    said = made.get("annotations", {})
    wrong: list[tuple[str, str, str]] = []
    if "require" in said:
        if said["require"] != "approval":
            wrong.append(("require", f"@require({said['require']!r}) is none", '"approval" is all'))
        if made["effect"] == "permit":
            hint = "forbid it, and let another policy permit it"
            wrong.append(("require", "@require goes with forbid, not with permit", hint))
        if not ROLE_NAME.match(said.get("role") or ""):
            hint = 'name it, for example @role("ReleaseManager")'
            wrong.append(("require", "@require needs the @role of who may agree", hint))
    else:
        wrong += [
            (word, f"@{word} means nothing without @require", 'add @require("approval")')
            for word in GATE_WORDS
            if word in said
        ]
    wrong += misspelt(said)
    quorum, expires = said.get("quorum", "1") or "", said.get("expires", "1s") or ""
    if not (quorum.isdecimal() and len(quorum) < 5 and 1 <= int(quorum) <= QUORUM_MAX):
        wrong.append(("quorum", f"@quorum({quorum!r}) is none", f"use 1 to {QUORUM_MAX:,}"))
    if not duration_ms(expires):
        wrong.append(("expires", f"@expires({expires!r}) is none", f"use {DURATION_FORM}"))
    for word, known in CHOICES.items():
        if said.get(word, known[0]) not in known:
            hint = f"use {' or '.join(map(json.dumps, known))}"
            wrong.append((word, f"@{word}({said[word]!r}) is none", hint))
    return [
        Trouble(place_of_rule(text, span, word), "policy.annotation", message, hint)
        for word, message, hint in wrong
    ]


def misspelt(said: dict[str, str]) -> list[tuple[str, str, str]]:
    """Annotations that are nearly ours: a safeguard must not be lost by a letter.

    Others are the author's own, and mean nothing here.
    """
    ours = {word.lower(): word for word in ("id", "require", *GATE_WORDS)}
    found = []
    for word in said:
        near = get_close_matches(word.lower(), ours, 1, NEAR)
        if near and word != ours[near[0]]:
            hint = f"did you mean @{ours[near[0]]}?"
            found.append((word, f"@{word} means nothing here", hint))
    return found
