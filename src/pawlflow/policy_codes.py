"""What the codes of policies mean: cause, and the way out."""

from typing import Final

POLICY_CODES: Final[dict[str, tuple[str, str]]] = {
    "policy.annotation": (
        "An annotation of a Cedar policy does not say what it could: @require, @role, @quorum...",
        'Write @require("approval") @role("ROLE") on a forbid; docs/policies.md has them all.',
    ),
    "policy.cedar_missing": (
        "Policies are written in Cedar, and the package that reads it is not installed here.",
        'pip install "pawlflow[cedar]", on every node that runs steps with a policy.',
    ),
    "policy.changed": (
        "This version of the policy is published with another text, and never changes: "
        "raise metadata.version.",
        "Give the document a version above the highest, and publish it again.",
    ),
    "policy.denied": (
        "A policy forbids what the step would do, or none permits it. The message names it.",
        "Ask whoever owns the policy; `pawl policy test` tries a request by hand.",
    ),
    "policy.empty": (
        "The text of a policy holds no Cedar policy.",
        'Write at least one, such as @id("all") permit(principal, action, resource);',
    ),
    "policy.error": (
        "A policy could not be evaluated, so the step was denied: often an attribute is missing.",
        "Write `resource has NAME && ...`, or let the step's policy.resource say it.",
    ),
    "policy.no_id": (
        "A Cedar policy has no @id: nobody could say which one decided.",
        'Write @id("NAME") before it.',
    ),
    "policy.older": (
        "A higher version of the policy is published, and this one would never be in force: "
        "raise metadata.version above it.",
        "Give it a version above the highest.",
    ),
    "policy.request": (
        "What a step asks cannot be put to Cedar, so it was denied.",
        "Let policy.resource give a mapping of texts, whole numbers and flags.",
    ),
    "policy.retired": (
        "The policy is retired: only a higher metadata.version puts it in force again.",
        "Nothing, if it shall stay so; else raise metadata.version, and publish it.",
    ),
    "policy.roles": (
        "Several policies require an approval, each by another role: no one gate asks them all.",
        "Let them name the same role, or forbid it in one of them.",
    ),
    "policy.same": (
        "This version of the policy is published already, word for word.",
        "Nothing.",
    ),
    "policy.syntax": (
        "The text is not Cedar; the message says what was not expected, and where.",
        "Mend it at the place named.",
    ),
    "policy.template": (
        "A Cedar policy has slots (?principal, ?resource), which nothing fills.",
        "Write the principal and the resource out.",
    ),
    "policy.too_many": (
        "More policies would be in force than are asked for every decision.",
        "Put several into one document, or retire some.",
    ),
    "policy.twin_id": (
        "Two Cedar policies of one document have the same @id.",
        "Give one of them another.",
    ),
    "policy.unavailable": (
        "Nobody could ask the policies, or their answer could not be read: the step was denied.",
        "`pawl why ID` says what went wrong; mend it, and resume or start again.",
    ),
    "policy.unknown": (
        "There is no policy of this name.",
        "`pawl policy ls` lists them.",
    ),
}
