"""Budgets: what was spent and set aside, and what a step that is held for it would need."""

from collections.abc import Iterable
from typing import Any

from pawlflow.kernel.budget import figures, limit_of, plain_amount, short_of
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import Unit
from pawlflow.model.budgets import Amount
from pawlflow.projections.plain import value_of


def budget_told(state: Instance) -> dict[str, dict[str, float | None]]:
    """Each unit of account: its limits, as they are now, what is spent and what is reserved."""
    return {
        name: {
            "soft": None if soft is None else plain_amount(soft),
            "hard": None if (hard := limit_of(state, name)) is None else plain_amount(hard),
            "spent": plain_amount(state.spent.get(name, 0)),
            "reserved": plain_amount(state.reserved.get(name, 0)),
        }
        for name, (soft, _) in state.plan.budget.items()
    }


def amounts_told(amounts: Iterable[Amount]) -> dict[str, float]:
    """Amounts by unit of account."""
    return {amount.unit: plain_amount(amount.micros) for amount in amounts}


def amounts_text(amounts: Iterable[Amount]) -> str:
    """Amounts in words: `usd 1.2 and tokens 5000`."""
    return " and ".join(f"{name} {amount}" for name, amount in amounts_told(amounts).items())


def held_told(state: Instance, unit: Unit) -> dict[str, Any]:
    """What holds a step, in the figures of now: unit, limit, spent, reserved, needed."""
    asked = (value_of(unit.shown) or {}).get("unit")
    name = next(iter(short_of(state, unit)), asked) or next(iter(state.plan.budget))
    return {"unit": name} | figures(state, unit, name)


def held_text(told: dict[str, Any]) -> str:
    """Why an attempt may not begin."""
    unit, needed, limit = told["unit"], told["needed"], told["limit"]
    return f"it would take {unit} to {needed}, and the hard limit is {limit}"
