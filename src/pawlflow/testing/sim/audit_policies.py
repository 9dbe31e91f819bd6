"""What policies decide, as the audit reads it: nothing begins that they have not cleared."""

from collections.abc import Callable
from typing import Any, Final

from pawlflow.model import events as ev
from pawlflow.model import reviews
from pawlflow.model.inputs import Receipt
from pawlflow.model.reviews import ApprovalParts, approval_digest
from pawlflow.testing.sim.audit import Audit, Line

CLEARED_MS_MAX: Final = 60_000  # how old an answer may be when its attempt begins


def on_asked(audit: Audit, event: reviews.PolicyAsked) -> None:
    """About the next attempt of something that waits for it, as it would be made."""
    line = audit.line(event.step, event.item)
    busy = line.done or line.running or line.unanswered or audit.stopping
    if audit.step(event.step).policy is None or busy:
        audit.bad("policy", f"{line} asks, and was not about to begin")
    if event.number != line.questions + 1:
        audit.bad("policy", f"{line} asks for the {event.number}th time after {line.questions}")
    line.questions, line.question = event.number, event.request.value
    line.unanswered, line.queued, line.cleared, line.gate = True, False, None, None
    audit.key(line, "ask", line.round)
    if not is_about(line):
        audit.bad("policy", f"{line} asks about another call: {line.question}")


def is_about(line: Line) -> bool:
    """Was the last question about what would begin now?"""
    known = line.question["context"]
    params = None if line.params is None else line.params.value
    about = (known["attempt"], known["round"], known["params"])
    return about == (line.attempt + 1, line.round, params)


def on_decided(audit: Audit, event: reviews.PolicyDecided) -> None:
    """The answer to the last question, and what follows from it alone."""
    line, said = audit.line(event.step, event.item), audit.input
    if not isinstance(said, Receipt) or said.attempt != line.questions or not line.unanswered:
        audit.bad("policy", f"{line} takes an answer to a question that is not open")
        return
    answer = said.result.value if said.outcome == "ok" and said.result is not None else {}
    decision, policies = answer.get("decision", "deny"), answer.get("hash", b"")
    agreed = decision == "approval" and line.agreed == bound_to(audit, line, policies)
    if (event.decision, event.clears) != (decision, decision == "allow" or agreed):
        word = "clears" if event.clears else "does not clear"
        audit.bad("policy", f"{event.decision} {word} {line}, and the answer was {decision}")
    line.unanswered, line.ruled, line.gate = False, policies, event.gate
    if event.clears:
        line.cleared, line.queued = audit.now, True


def bound_to(audit: Audit, line: Line, policies: bytes) -> bytes:
    """The digest of the call that would begin, under these policies."""
    plan = audit.step(line.step)
    place = (plan.name, line.item, line.round)
    parts = ApprovalParts(plan.target, line.params, *place, audit.plan.definition, policies)
    return approval_digest(parts)


def on_agreed(audit: Audit, line: Line, event: ev.GateGranted) -> None:
    """People agreed to a call under policies: to this one, and it is asked about once more."""
    if event.digest != bound_to(audit, line, line.ruled):
        audit.bad("16", f"what was agreed to is not what {line} would do")
    line.agreed, line.queued, line.asks = event.digest, True, ""
    audit.arm(line, None)


def check_cleared(audit: Audit, line: Line) -> None:
    """What begins was cleared not long ago, exactly as it is."""
    if audit.step(line.step).policy is None:
        return
    if line.cleared is None or not is_about(line):
        audit.bad("policy", f"attempt {line.attempt + 1} of {line} begins, and is not cleared")
    elif audit.now - line.cleared > CLEARED_MS_MAX:
        audit.bad("policy", f"{line} begins {audit.now - line.cleared} ms after it was cleared")


POLICIES: Final[dict[type, Callable[[Audit, Any], None]]] = {
    reviews.PolicyAsked: on_asked,
    reviews.PolicyDecided: on_decided,
}
