"""The escalation ladder: who is asked about what nobody could mend, one rung after another."""

from pawlflow.definition.shape import Rung
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import ESCALATED, Unit
from pawlflow.model.ids import RoleName
from pawlflow.model.reviews import StepRaised


def rung_of(state: Instance, unit: Unit) -> Rung | None:
    """Who is asked about an escalated step now, where a ladder says so."""
    ladder = state.plan.ladder
    return ladder[unit.level - 1] if ladder and unit.status == ESCALATED else None


def raise_up(draft: Draft, unit: Unit) -> None:
    """The time of a rung is over: ask the next."""
    draft.emit(StepRaised(unit.step, unit.item, unit.level + 1))


def bars(state: Instance, unit: Unit, role: RoleName | None) -> Rejected | None:
    """Why who acts in a role may not act on this escalation: only its rung and those above may.

    Without a role an operator acts, whom the ladder does not bind.
    """
    rungs = state.plan.ladder[unit.level - 1 :] if unit.status == ESCALATED else ()
    roles = [rung.role for rung in rungs]
    if role is None or not roles or role in roles:
        return None
    return Rejected("escalation.wrong_role", f"{state.name_of(unit)} asks for {' or '.join(roles)}")


def bars_cancel(state: Instance, role: RoleName | None) -> Rejected | None:
    """Why who acts in a role may not cancel: none of the escalations is for them."""
    units = (state.unit(place) for place in sorted(state.open) if role is not None)
    refused = [bars(state, unit, role) for unit in units if unit.status == ESCALATED]
    return refused[0] if refused and None not in refused else None
