"""Deciding: a request to the policies in force, and their answer. What cannot be asked is denied.

Cedar denies by default, and a forbid beats every permit. A forbid that carries
`@require("approval")` asks people instead, as long as something permits it and no other forbids it.
"""

from collections.abc import Sequence
from decimal import Decimal
from math import isfinite
from typing import Any, Final

from pawlflow.definition.express.template import is_secret
from pawlflow.definition.shape import Policy
from pawlflow.govern.cedar import Asks, PolicySet, Rule, cedar, policy_set, set_hash
from pawlflow.model.trouble import PawlError

LONG_MAX: Final = 2**63
DECIMAL: Final = Decimal("0.0001")  # Cedar keeps four digits behind the point
DECIMAL_MAX: Final = Decimal(922337203685477)
NAMED_MAX: Final = 20  # rules in an answer; a person reads them
ESCAPES: Final = ("__entity", "__extn", "__expr")  # by which JSON would be taken for more than data

Request = dict[str, Any]  # action, principal, resource, context: as the kernel asks


def answer(request: Request, policies: Sequence[Policy]) -> dict[str, Any]:
    """What the policies in force say. Never raises: what goes wrong is a denial."""
    if not policies:
        return answered("allow", "no policy is in force", b"", {}, [])
    try:
        known = policy_set(policies)
        return decide(request, known)
    except PawlError as error:
        versions = {each.name: each.version for each in policies}
        return answered("deny", str(error), set_hash(policies), versions, [], code=error.code)


def decide(request: Request, known: PolicySet) -> dict[str, Any]:
    """Ask Cedar. Raises PawlError if the request cannot be put to it."""
    about = (known.hash, known.versions)
    asked, entities = cedar_request(request)
    judged = cedar().is_authorized(asked, known.whole, entities)
    errors = judged.diagnostics.errors
    if errors or judged.decision.value == "NoDecision":
        said = "; ".join(named_errors(errors, known.rules)[:NAMED_MAX]) or "Cedar decided nothing"
        return answered("deny", said, *about, [], code="policy.error")
    rules = [known.rules[int(each.removeprefix("policy"))] for each in judged.diagnostics.reasons]
    rules.sort(key=str)
    if judged.allowed:
        return answered("allow", f"allowed by {listed(rules)}", *about, rules)
    if not rules:
        names = ", ".join(f"{name} v{version}" for name, version in known.versions.items())
        said = f"no policy permits {request['action']} (in force: {names})"
        return answered("deny", said, *about, [])
    asks = [rule.asks for rule in rules if rule.asks is not None]
    if len(asks) < len(rules):
        denying = [rule for rule in rules if rule.asks is None]
        return answered("deny", f"denied by policy {listed(denying)}", *about, denying)
    return required(
        request, known, rules, asks, cedar().is_authorized(asked, known.permits, entities)
    )


def required(
    request: Request, known: PolicySet, rules: list[Rule], asks: list[Asks], permitted: Any
) -> dict[str, Any]:
    """Every rule that forbids it asks people: those, if something permits it at all."""
    about = (known.hash, known.versions)
    if not permitted.allowed:
        return answered("deny", f"no policy permits {request['action']}", *about, rules)
    roles = sorted({each.role for each in asks})
    if len(roles) > 1:
        said = f"policies ask for different roles ({', '.join(roles)}): {listed(rules)}"
        return answered("deny", said, *about, rules, code="policy.roles")
    spans = [each.expires_ms for each in asks if each.expires_ms is not None]
    said = f"approval by {roles[0]} is required by policy {listed(rules)}"
    quorum, requester = max(each.quorum for each in asks), any(e.not_by_requester for e in asks)
    shown = {name: request[name] for name in ("action", "principal", "resource")}
    shown |= {"params": request["context"].get("params"), "reason": said}
    ends = [
        "fail" if all(each.on_reject == "fail" for each in asks) else "cancel",
        "fail" if any(each.on_expire == "fail" for each in asks) else "escalate",
    ]
    gate = [roles[0], quorum, min(spans, default=None), requester, *ends]
    return answered("approval", said, *about, rules) | {"gate": gate, "show": shown}


def answered(
    decision: str,
    reason: str,
    hash_: bytes,
    versions: dict[str, int],
    rules: Sequence[Rule],
    *,
    code: str = "policy.denied",
) -> dict[str, Any]:
    """An answer as it is journalled."""
    return {
        "decision": decision,
        "code": code if decision == "deny" else "",
        "reason": reason,
        "hash": hash_,
        "in_force": versions,
        "policies": [
            {"policy": rule.policy, "version": rule.version, "id": rule.id}
            for rule in rules[:NAMED_MAX]
        ],
    }


def listed(rules: Sequence[Rule]) -> str:
    """Rules by name; of very many, some."""
    more = len(rules) - NAMED_MAX
    shown = ", ".join(map(str, rules[:NAMED_MAX]))
    return f"{shown} and {more} more" if more > 0 else shown


def named_errors(errors: Sequence[str], rules: Sequence[Rule]) -> list[str]:
    """What Cedar says about policies by number, by the names that people know."""
    found = []
    for each in errors:
        for number in range(len(rules) - 1, -1, -1):
            each = each.replace(f"`policy{number}`", str(rules[number]))  # noqa: PLW2901
        found.append(each)
    return found


# A request in Cedar's form


def cedar_request(request: Request) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The request, and the entities it is about. Raises PawlError."""
    context, given = request["context"], request["resource"]
    if not isinstance(given, dict):
        raise PawlError("policy.request", "policy.resource gives no mapping of attributes")
    principal = request["principal"]
    resource = {"type": "Resource", "id": f"{context['workflow']}/{context['step']}"}
    asked = {
        "principal": principal,
        "action": {"type": "Action", "id": request["action"]},
        "resource": resource,
        "context": cedar_value(context, "context"),
    }
    about = {"name": principal["id"], "requester": context["requester"]}
    entities = [
        {"uid": principal, "attrs": about, "parents": []},
        {"uid": resource, "attrs": cedar_value(given, "resource"), "parents": []},
    ]
    return asked, entities


def cedar_value(value: Any, where: str) -> Any:
    """A value as Cedar has it: no null, no secret, whole numbers and decimals. Raises PawlError."""
    if isinstance(value, dict):
        taken = [name for name in ESCAPES if name in value]
        if taken:
            raise PawlError("policy.request", f"{where} has a member {taken[0]}, which Cedar keeps")
        members = ((name, each) for name, each in value.items() if is_said(each))
        return {name: cedar_value(each, f"{where}.{name}") for name, each in members}
    if isinstance(value, list | tuple):
        return [cedar_value(each, where) for each in value if is_said(each)]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        return cedar_decimal(value, where)
    if isinstance(value, int) and not -LONG_MAX <= value < LONG_MAX:
        raise PawlError("policy.request", f"{where} does not fit into 64 bits")
    return value


def is_said(value: Any) -> bool:
    """Null is what is not there, and a secret is nobody's business."""
    return value is not None and not is_secret(value)


def cedar_decimal(value: float, where: str) -> Any:
    """A number with a point; a whole one is a whole number."""
    if not isfinite(value):
        raise PawlError("policy.request", f"{where} is no number that Cedar has")
    if value == int(value) and -LONG_MAX <= value < LONG_MAX:
        return int(value)
    exact = Decimal(repr(value))
    if abs(exact) > DECIMAL_MAX:
        raise PawlError("policy.request", f"{where} is too large for Cedar")
    return {"__extn": {"fn": "decimal", "arg": str(exact.quantize(DECIMAL))}}
