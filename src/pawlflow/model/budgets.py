"""Budgets: what happens to what an instance may spend, and to steps that would spend too much."""

from typing import Final

from pawlflow.model.ids import RoleName
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record
from pawlflow.model.shared import OfAttempt, OfUnit

AMOUNT_MAX: Final = 1_000_000_000  # of a unit of account, said at one time; as in definitions


class Amount(Record, frozen=True, gc=False):
    """So many millionths of a unit of account."""

    unit: str
    micros: int


class StepHeld(OfUnit, frozen=True, tag="step.held", gc=False):
    """The attempt would pass a hard limit of the budget; a human is asked to raise it."""

    unit: str
    shown: Payload


class StepUnheld(OfUnit, frozen=True, tag="step.unheld", gc=False):
    """The attempt fits into the budget now."""


class BudgetRaised(OfUnit, frozen=True, tag="budget.raised", gc=False):
    """A human raised hard limits, asked about this step: it is held no longer, and goes first."""

    by: str
    role: RoleName | None
    comment: Payload | None
    limits: tuple[Amount, ...]


class BudgetSpent(OfAttempt, frozen=True, tag="budget.spent", gc=False):
    """What an attempt cost that did not succeed, or came too late, as its executor said."""

    usage: tuple[Amount, ...]


class BudgetWarned(Record, frozen=True, tag="budget.warned", gc=False):
    """A soft limit is passed; said once."""

    unit: str
    micros: int


BudgetEvent = StepHeld | StepUnheld | BudgetRaised | BudgetSpent | BudgetWarned
