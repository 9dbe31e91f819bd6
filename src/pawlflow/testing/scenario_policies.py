"""Policies in scenarios: documents beside the workflow, and what a script does to them."""

from collections.abc import Iterable
from typing import Any, Final

from pawlflow.definition.fields import Field, integer
from pawlflow.definition.finding import Place
from pawlflow.definition.frame import read_frame
from pawlflow.definition.policy import read_policy
from pawlflow.definition.read import Node
from pawlflow.definition.readers import WORKFLOW
from pawlflow.definition.report import Report, listing, spot
from pawlflow.definition.shape import Policy
from pawlflow.policing import findings_of

PUBLISHED: Final = {
    "policy": Field("policy", WORKFLOW, "a policy of this scenario", required=True),
    "version": Field("version", integer(1), "which of it, default 1"),
}
RETIRED: Final = {"policy": Field("policy", WORKFLOW, "its name", required=True)}


def check_policy(node: Node, report: Report) -> Policy | None:
    """The policy that a node of `definition` is, if it is one."""
    document = read_frame(node, Report())  # what is wrong with the frame was said
    found = read_policy(document, report) if document and document.kind == "Policy" else None
    for each in () if found is None else findings_of(found):
        report.error(Place(*spot(each)), each.code, each.message, each.hint)
    return None if found is None else found.policy


def check_published(script: Iterable[Any], policies: tuple[Policy, ...], report: Report) -> None:
    """What a script publishes or retires is a policy of the scenario."""
    known = {(policy.name, policy.version) for policy in policies}
    named = {policy.name for policy in policies}
    for action in script:
        if not action.policy or not action.version:  # none, or not readable
            continue
        if action.verb == "retire" and action.policy not in named:
            report.error(
                action.place,
                "scenario.policy",
                f"{action.policy} is no policy of this scenario; "
                f"policies are: {listing(sorted(named))}",
                "put the document of kind: Policy beside the workflow",
            )
        if action.verb == "publish" and (action.policy, action.version) not in known:
            names = sorted(f"{name} version {version}" for name, version in known)
            report.error(
                action.place,
                "scenario.policy",
                f"{action.policy} version {action.version} is no policy of this scenario; "
                f"policies are: {listing(names)}",
                "put the document of kind: Policy beside the workflow",
            )


def first_of_each(policies: Iterable[Policy]) -> tuple[Policy, ...]:
    """What is in force when a scenario begins: of each name the lowest version."""
    lowest = {each.name: each for each in sorted(policies, key=lambda each: -each.version)}
    return tuple(lowest.values())
