"""Planted bugs about policies: what is asked, what clears an attempt, what people agreed to."""

from typing import Any, Final

from msgspec.structs import replace

from pawlflow.kernel import guards, policies, snapshot
from pawlflow.kernel.draft import Draft
from pawlflow.kernel.units import Asking, Unit
from pawlflow.model.inputs import Receipt
from pawlflow.testing.sim.patching import Change


def any_answer_counts() -> list[Change]:
    """The answer to an earlier question is taken for that to the last."""
    old = policies.receive_answer

    def receive_answer(made: Draft, unit: Unit, incoming: Receipt) -> bool:
        asked = unit.asking
        return old(made, unit, replace(incoming, attempt=asked.number) if asked else incoming)

    return [(policies, "receive_answer", receive_answer)]


def cleared_for_anything() -> list[Change]:
    """What was allowed lets the next attempt begin as well."""

    def is_cleared(made: Draft, asked: Asking, _: Any) -> bool:
        since = asked.cleared
        return since is not None and made.now - since <= policies.CLEARED_MS_MAX

    return [(policies, "is_cleared", is_cleared)]


def denial_ignored() -> list[Change]:
    """A denial is taken for a permit."""
    old = policies.answer_in

    def answer_in(made: Draft, incoming: Receipt) -> Any:
        answer, said = old(made, incoming)
        return (replace(answer, decision="allow") if answer.decision == "deny" else answer), said

    return [(policies, "answer_in", answer_in)]


def agreed_under_any_policies() -> list[Change]:
    """What people agreed to holds although the policies have changed."""
    old = guards.digest_of
    return [(guards, "digest_of", lambda state, unit, params, _=b"": old(state, unit, params))]


def question_forgotten() -> list[Change]:
    """A cell that is read again does not know that it has asked."""
    return [(snapshot, "is_asking", lambda _: False)]


POLICY_BUGS: Final = (
    ("any-answer-counts", "an answer to another question is taken", any_answer_counts),
    ("cleared-for-anything", "a permit is used for another attempt", cleared_for_anything),
    ("denial-ignored", "what is denied begins", denial_ignored),
    ("agreed-under-any", "an approval outlives its policies", agreed_under_any_policies),
    ("question-forgotten", "a question is not asked again", question_forgotten),
)
